# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that TileLang writes in CUDA C++ for sm_90a when the tests run, compiled by nvcc: TMA by boxes and in bulk, a
producer's warps with setmaxnreg, rings on mbarriers, wgmma with A from shared memory and from registers. Right against
float64, no finding.

It needs TileLang, in this Python or in one that WEFT_TILELANG_PYTHON names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sparse_operands as operands
import weft.simulator as simulator
from corpus.case import from_bfloat, to_bfloat
from triton_boxes import E4M3

pytestmark = [pytest.mark.ecosystem, pytest.mark.slow]
PYTHON = os.environ.get("WEFT_TILELANG_PYTHON", sys.executable)
NVCC = shutil.which("nvcc")
WRITE = Path(__file__).parent / "corpus" / "tilelang_kernels.py"
#: CUtensorMapDataType and CUtensorMapSwizzle, as cuda.h numbers them.
TYPES = {0: "u8", 1: "u16", 6: "f16", 7: "f32", 9: "bf16"}
SWIZZLES = (None, "32B", "64B", "128B")


@pytest.fixture(scope="session")
def written(once):
    """A kernel's PTX and launch by its name."""
    if subprocess.run([PYTHON, "-c", "import tilelang"], capture_output=True).returncode:
        pytest.skip("no TileLang in this Python: pip install -r tools/requirements-ecosystem.txt")
    if NVCC is None:
        pytest.skip("no nvcc on this machine")

    def write(place: Path) -> None:
        command = [PYTHON, str(WRITE), str(place)]
        home = {"TILELANG_CACHE_DIR": str(place / "cache"), "TILELANG_TMP_DIR": str(place / "cache" / "tmp")}
        result = subprocess.run(command, env={**os.environ, **home}, capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, result.stderr[-2000:]
        package = Path(result.stdout.splitlines()[-1])
        include = ["-I", package / "src", "-I", package / "3rdparty" / "cutlass" / "include"]

        def compiled(source: Path) -> None:
            command = [NVCC, "-ptx", "-arch=sm_90a", "-std=c++17", *include, source, "-o", source.with_suffix(".ptx")]
            subprocess.run(command, check=True, capture_output=True)

        # Tests of the same fixture wait for this one, so that its processes have all cores.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            list(threads.map(compiled, place.glob("*.cu")))

    folder = once("tilelang", write)

    def kernel(name: str) -> SimpleNamespace:
        launch = json.loads((folder / f"{name}.json").read_text())
        return SimpleNamespace(ptx=(folder / f"{name}.ptx").read_text(), **launch)

    return kernel


def described(array: np.ndarray, kind: int, rank: int, numbers: list[int]):
    """The map of an array by cuTensorMapEncodeTiled's numbers, whose dimensions begin with the contiguous one."""
    sizes, strides, box, steps = (numbers[i * rank : (i + 1) * rank][::-1] for i in range(4))
    assert tuple(sizes) == array.shape and tuple(strides[:-1]) == array.strides[:-1]
    swizzle = SWIZZLES[numbers[4 * rank + 1]]
    return simulator.tensor_map(array, box, swizzle, TYPES[kind], element_strides=steps)


def run(kernel, arrays: dict[str, np.ndarray], output: str, seed: int) -> np.ndarray:
    """What the kernel leaves in `output`, which holds NaN before."""
    given = {**arrays, output: np.full_like(arrays[output], np.nan)}
    args = []
    for name in kernel.arguments:
        entry = kernel.maps.get(name)
        array = given[entry["tensor"] if entry else name]
        args.append(described(array, entry["kind"], entry["rank"], entry["numbers"]) if entry else array)
    *grid, threads, _, _, shared = kernel.sizes
    assert threads == kernel.threads
    entry = re.search(r"\.entry\s+(\w+)", kernel.ptx)[1]
    report = simulator.launch(kernel.ptx, entry, tuple(grid), threads, args, shared=shared, seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert report.counters["ring_waits"] > 0
    return given[output].astype(np.float64)


def drawn(kind: str, shape: tuple[int, ...], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """An array of a kind as the kernel takes it, and its numbers in float64."""
    if kind == "e4m3":
        bits = random.integers(0, 0x60, shape, np.uint8) | random.integers(0, 2, shape, np.uint8) << 7
        return bits, E4M3[bits]
    values = random.standard_normal(shape)
    if kind == "bf16":
        bits = to_bfloat(values)
        return bits, from_bfloat(bits).astype(np.float64)
    half = values.astype(np.float16)
    return half, half.astype(np.float64)


@pytest.mark.parametrize(
    ("name", "kind", "m", "n", "k", "transposed"),
    [
        ("matmul_bf16", "bf16", 256, 256, 256, False),
        ("matmul_f16_transposed", "f16", 128, 256, 320, True),
        ("matmul_e4m3", "e4m3", 128, 128, 512, True),
    ],
)
def test_matmul(name, kind, m, n, k, transposed, written):
    random = np.random.default_rng(k)
    a, wide_a = drawn(kind, (m, k), random)
    b, wide_b = drawn(kind, (n, k) if transposed else (k, n), random)
    expected = wide_a @ (wide_b.T if transposed else wide_b)
    kernel = written(name)
    assert "wgmma.mma_async" in kernel.ptx and "setmaxnreg" in kernel.ptx
    for seed in (0, 3):
        got = run(kernel, {"A": a, "B": b, "C": np.empty((m, n), np.float32)}, "C", seed)
        np.testing.assert_allclose(got, expected, rtol=2**-10, atol=2**-9 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("name", "kind", "n", "k", "transposed", "described"),
    [
        ("sparse_f16", "f16", 128, 256, False, 16),
        ("sparse_bf16_transposed", "bf16", 128, 256, True, 16),
        ("sparse_tf32_transposed", "tf32", 64, 128, True, 8),
    ],
)
def test_sparse_matmul(name, kind, n, k, transposed, described, written):
    """TileLang's own map says which thread has which metadata."""
    random = np.random.default_rng(n + k)
    a = operands.sparse(random, kind, 128, k)
    wide, stored = operands.encode(kind, random.integers(0, 8, (n, k)))
    element = {"f16": np.float16, "bf16": np.uint16, "tf32": np.float32}[kind]
    b = stored.view(element)
    e = np.zeros((128, k // described), np.uint16)
    for chunk in range(a.indices.shape[1]):
        e[:, chunk // 4] |= (a.indices[:, chunk] << 4 * (chunk % 4)).astype(np.uint16)
    kernel = written(name)
    assert "wgmma.mma_async.sp" in kernel.ptx
    arrays = {"A": a.stored.view(element), "E": e, "B": b if transposed else np.ascontiguousarray(b.T)}
    for seed in (0, 3):
        got = run(kernel, {**arrays, "C": np.empty((128, n), np.float32)}, "C", seed)
        np.testing.assert_array_equal(got, a.whole @ wide.T)


def test_scaled_weights(written):
    random = np.random.default_rng(8)
    a, wide = drawn("f16", (128, 256), random)
    w = random.integers(-128, 128, (128, 256), np.int8)
    scale = (random.uniform(0.5, 2, 128) / 128).astype(np.float16)
    weights = (w.astype(np.float16) * scale[:, None]).astype(np.float64)
    expected = wide @ weights.T
    for seed in (0, 3):
        arrays = {"A": a, "W": w.view(np.uint8), "scale": scale, "C": np.empty((128, 128), np.float32)}
        np.testing.assert_allclose(run(written("scaled_weights"), arrays, "C", seed), expected, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "heads", "d", "causal"), [("attention", 2, 64, False), ("attention_causal", 1, 128, True)]
)
def test_attention(name, heads, d, causal, written):
    n = 384
    random = np.random.default_rng(d)
    (q, wide_q), (k, wide_k), (v, wide_v) = (drawn("f16", (heads, n, d), random) for _ in "qkv")
    scores = wide_q @ wide_k.transpose(0, 2, 1) / np.sqrt(d)
    scores = np.where(np.tril(np.ones((n, n))) > 0, scores, -np.inf) if causal else scores
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide_v
    for seed in (0, 3):
        got = run(written(name), {"Q": q, "K": k, "V": v, "O": np.empty_like(q)}, "O", seed)
        np.testing.assert_allclose(got, expected, atol=3e-3)
