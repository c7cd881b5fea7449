# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Device-wide algorithms of CUB and Thrust for sm_80, compiled by nvcc when the tests run: their own host code chooses
and launches the kernels, on a CUDA runtime (corpus/cub/runtime.cpp) whose device is the simulator. Decoupled look-back
above all: blocks that spin on what others publish. Right against NumPy, no finding."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weft.simulator as simulator
from planted import ENVIRONMENT, NVCC

pytestmark = [
    pytest.mark.ecosystem,
    pytest.mark.slow,
    pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine"),
]
CORPUS = Path(__file__).parent / "corpus" / "cub"
SEGMENTS = 20
#: The arguments of an algorithm before `n`; and by position what those hold afterwards that it writes, from element 0.
#: All else, in these arrays and in the others, must stay as it was.
Call = tuple[list[Any], dict[int, np.ndarray]]
CASES: list[Callable[[np.random.Generator, int], Call]] = []
LAUNCH = ctypes.CFUNCTYPE(
    None,
    ctypes.c_char_p,
    ctypes.POINTER(ctypes.c_uint * 3),
    ctypes.POINTER(ctypes.c_uint * 3),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_size_t,
)
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)


@pytest.fixture(scope="session")
def compiled(once) -> Path:
    """A folder with host.so, in which CUB's host code and the runtime are, and the PTX of its kernels."""

    def make(place: Path) -> None:
        command = [NVCC, "-std=c++17", "-lineinfo", "-gencode", "arch=compute_80,code=compute_80", "-shared"]
        # The PTX is an intermediate file. The library calls its own runtime, though another may be loaded.
        command += ["--keep", "--keep-dir", str(place), "-cudart", "none", "-Xlinker", "-Bsymbolic,-z,defs"]
        command += ["-Xcompiler", "-fPIC", str(CORPUS / "algorithms.cu"), str(CORPUS / "runtime.cpp")]
        result = subprocess.run(
            [*command, "-o", str(place / "host.so")], capture_output=True, text=True, env=ENVIRONMENT
        )
        assert result.returncode == 0, result.stderr

    return once("cub", make)


class Device:
    """What the runtime runs on: memory and launches."""

    def __init__(self, folder: Path, seed: int):
        self.ptx, self.seed = folder / "algorithms.ptx", seed
        self.memory: list[np.ndarray] = []
        self.grids: list[tuple[int, ...]] = []
        self.findings: list[simulator.Finding] = []
        self.error: Exception | None = None
        self.library = ctypes.CDLL(str(folder / "host.so"))
        self.callbacks = LAUNCH(self._launch), ALLOCATE(self._allocate)  # kept, for the library has their addresses
        self.library.set_device(*self.callbacks)
        #: bytes of each parameter, by kernel
        self.parameters = {
            entry: [
                int(bits) // 8 * int(count or 1)
                for bits, count in re.findall(r"\.param (?:\.align \d+ )?\.[a-z](\d+)[^,\[]*(?:\[(\d+)\])?", parameters)
            ]
            for entry, parameters in re.findall(r"\.entry (\w+)\((.*?)\)", self.ptx.read_text(), re.DOTALL)
        }

    def array(self, values: np.ndarray) -> np.ndarray:
        """A copy in the device's memory, which begins where cudaMalloc's would."""
        room = np.zeros(values.nbytes + 256, np.uint8)
        start = -room.ctypes.data % 256
        self.memory.append(room[start : start + values.nbytes])
        copy = self.memory[-1].view(values.dtype).reshape(values.shape)
        copy[...] = values
        return copy

    def call(self, name: str, arguments: list[Any], n: int) -> None:
        """Calls an algorithm with arrays in the device's memory."""
        given = [ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else each for each in arguments]
        status = self.library[name](*given, n)
        if self.error:
            raise self.error
        assert status == 0, f"a call of the runtime returned error {status}"

    def _allocate(self, size: int) -> int:
        return self.array(np.full(size, 0xA5, np.uint8)).ctypes.data  # not zeros, which nobody promised

    def _launch(self, kernel: bytes, grid, block, args, shared: int) -> None:
        if self.error:
            return
        try:
            entry = kernel.decode()
            values = [ctypes.string_at(args[i], size) for i, size in enumerate(self.parameters[entry])]
            sizes = tuple(grid.contents), tuple(block.contents)
            options = {"shared": shared, "memory": self.memory, "seed": self.seed, "limit": 10**7}
            report = simulator.launch(self.ptx, entry, *sizes, values, **options)
            self.grids.append(sizes[0])
            self.findings += report.findings
        except Exception as error:  # it cannot pass through the library
            self.error = error


def algorithm(prepare: Callable[[np.random.Generator, int], Call]) -> Callable[[np.random.Generator, int], Call]:
    """Registers a function named as the algorithm that takes its arguments."""
    CASES.append(prepare)
    return prepare


def blank(n: int, dtype=np.int32) -> np.ndarray:
    """What an output holds before."""
    return np.full(n, 77, dtype)


def integers(random: np.random.Generator, n: int, dtype=np.int32) -> np.ndarray:
    return random.integers(-99, 100, n).astype(dtype)


def runs(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys, equal ones beside one another, and where each run of them begins."""
    keys = np.sort(random.integers(0, max(2, n // 50), n)).astype(np.int32)
    return keys, np.flatnonzero(np.diff(keys, prepend=-1))


def segments(random: np.random.Generator, n: int) -> np.ndarray:
    return np.sort(np.r_[0, random.integers(0, n + 1, SEGMENTS - 1), n]).astype(np.int32)


def sums_of_runs(x: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Inclusive sums, from each start anew."""
    return np.concatenate([run.cumsum() for run in np.split(x, starts[1:])])


@algorithm
def inclusive_sum(random, n):
    x = integers(random, n)
    return [x, blank(n)], {1: x.cumsum()}


@algorithm
def exclusive_sum(random, n):
    x = integers(random, n, np.float64)
    return [x, blank(n, np.float64)], {1: x.cumsum() - x}


@algorithm
def inclusive_scan_of_maps(random, n):
    """Of x -> scale * x + shift: what f and then g is depends on which is first."""
    maps = random.integers(0, 2**32, (n, 2), np.uint32)
    maps[:, 0] |= 1  # odd, so that no product becomes 0
    composed = maps.tolist()
    for i in range(1, n):
        (scale, shift), (before, added) = composed[i], composed[i - 1]
        composed[i] = [scale * before % 2**32, (scale * added + shift) % 2**32]
    return [maps, np.full_like(maps, 77)], {1: np.array(composed, np.uint32)}


@algorithm
def inclusive_sum_by_key(random, n):
    (keys, starts), x = runs(random, n), integers(random, n, np.int64)
    return [keys, x, blank(n, np.int64)], {2: sums_of_runs(x, starts)}


@algorithm
def thrust_exclusive_scan_by_key(random, n):
    (keys, starts), x = runs(random, n), integers(random, n)
    return [keys, x, blank(n)], {2: sums_of_runs(x, starts) - x}


@algorithm
def reduce_by_key(random, n):
    (keys, starts), x = runs(random, n), integers(random, n)
    expected = {2: keys[starts], 3: np.add.reduceat(x, starts), 4: np.array([len(starts)])}
    return [keys, x, blank(n), blank(n), blank(1)], expected


@algorithm
def run_length_encode(random, n):
    keys, starts = runs(random, n)
    expected = {1: keys[starts], 2: np.diff(starts, append=n), 3: np.array([len(starts)])}
    return [keys, blank(n), blank(n), blank(1)], expected


@algorithm
def unique(random, n):
    keys, starts = runs(random, n)
    return [keys, blank(n), blank(1)], {1: keys[starts], 2: np.array([len(starts)])}


@algorithm
def select_if(random, n):
    x = integers(random, n)
    return [x, blank(n), blank(1)], {1: x[x < 0], 2: np.array([(x < 0).sum()])}


@algorithm
def partition_if(random, n):
    """Those that are not selected come last, the other way round."""
    x = integers(random, n)
    return [x, blank(n), blank(1)], {1: np.r_[x[x < 0], x[x >= 0][::-1]], 2: np.array([(x < 0).sum()])}


@algorithm
def radix_sort_keys(random, n):
    keys = random.integers(0, 2**32, n, np.uint32)
    return [keys, blank(n, np.uint32)], {1: np.sort(keys)}


@algorithm
def radix_sort_pairs(random, n):
    """Descending, and equal keys in order."""
    keys, x = integers(random, n, np.float32), np.arange(n, dtype=np.int32)
    order = np.argsort(-keys, kind="stable")
    return [keys, x, blank(n, np.float32), blank(n)], {2: keys[order], 3: order}


@algorithm
def merge_sort(random, n):
    keys = random.integers(-(2**31), 2**31, n, np.int64).astype(np.int32)
    return [keys], {0: np.sort(keys)}


@algorithm
def histogram(random, n):
    x = random.integers(0, 256, n, np.uint8)
    return [x, blank(256)], {1: np.bincount(x, minlength=256)}


@algorithm
def segmented_sum(random, n):
    x, offsets = integers(random, n), segments(random, n)
    sums = np.r_[0, x.cumsum()][offsets]
    return [x, offsets, blank(SEGMENTS), SEGMENTS], {2: np.diff(sums)}


def run(name: str, call: Call, n: int, device: Device) -> None:
    """Runs an algorithm and holds all its arrays to what they must hold."""
    arguments, expected = call
    given = [device.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    device.call(name, given, n)
    for position, (before, after) in enumerate(zip(arguments, given, strict=True)):
        if isinstance(before, np.ndarray):
            values = expected.get(position, before)
            np.testing.assert_array_equal(after[: len(values)], values, err_msg=f"argument {position}")
            np.testing.assert_array_equal(after[len(values) :], before[len(values) :], err_msg=f"argument {position}")


@pytest.fixture(params=[1_000, 20_000])
def n(request, seed) -> int:
    """About as many elements."""
    return request.param + seed % 100


@pytest.fixture(params=["in-order", "interleaved"])
def device(request, compiled, seed) -> Device:
    return Device(compiled, 0 if request.param == "in-order" else seed | 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_algorithm(case, n, device, seed):
    run(case.__name__, case(np.random.default_rng(seed), n), n, device)
    assert not device.findings, [str(finding) for finding in device.findings]
    assert n < 20_000 or max(device.grids) > (1, 1, 1), "one block had everything to do"


def test_segmented_radix_sort(n, device, seed):
    """It adds up the counts of all threads, of which those beyond the digits have none: `bin_count` of CUB's
    kernels/radix_sort.cuh, which ExtractCounts leaves as it was there. The offsets that come of it are right, for what
    was added is taken away again, and they are found to rest on what nothing wrote."""
    random = np.random.default_rng(seed)
    keys, offsets = integers(random, n), segments(random, n)
    ordered = np.concatenate([np.sort(each) for each in np.split(keys, offsets[1:-1])])
    run("segmented_radix_sort", ([keys, offsets, blank(n), SEGMENTS], {2: ordered}), n, device)
    places = {(finding.kind, Path(finding.source.split(":")[0]).name) for finding in device.findings}
    assert places == {("uninitialised", "agent_radix_sort_downsweep.cuh")}
    assert all("uses as an address a value that nothing wrote" in finding.message for finding in device.findings)
