# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Devices, modules and launches from Python, on the simulator."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
import weft
from runtime_samples import TYPES, vector_add_ptx
from weft import runtime


@pytest.fixture
def add():
    return runtime.Module(vector_add_ptx(), "add", 0, runtime.open_device("simulator"), TYPES)


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_device_is_the_simulator_without_a_driver():
    code = "import weft; print(weft.device())"
    assert run_python(code, WEFT_DEVICE="", WEFT_LIBCUDA="/nonexistent/libcuda.so.1") == "simulator"
    assert run_python(code, WEFT_DEVICE="simulator:sm_80") == "simulator:sm_80"
    assert run_python(code, WEFT_DEVICE="cuda:3") == "cuda:3"


def test_missing_driver_is_a_message():
    code = """
import weft.runtime
try:
    weft.runtime.open_device("cuda:0")
except weft.runtime.Error as error:
    print(error.status, "|", error)
"""
    said = run_python(code, WEFT_LIBCUDA="/nonexistent/libcuda.so.1")
    assert said.startswith("not found | no CUDA driver: /nonexistent/libcuda.so.1")


def test_importing_the_runtime_imports_no_arrays():
    code = (
        "import sys, weft.runtime; weft.runtime.open_device('simulator'); print({'numpy', 'torch'} & set(sys.modules))"
    )
    assert run_python(code) == "set()"


def test_device_properties():
    device = runtime.open_device("simulator:sm_80")
    assert device is runtime.open_device("simulator:sm_80")
    assert device.name == "simulator:sm_80"
    assert device.properties["capability"] == (8, 0)
    assert device.properties["simulated"] is device.simulated is True
    with pytest.raises(runtime.Error, match="'cuda:N', 'simulator' or 'simulator:sm_NN', but got 'tpu'") as caught:
        runtime.open_device("tpu")
    assert caught.value.status == "invalid argument"


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
def test_numpy_arrays_in_place(add, n, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, n), dtype=np.float32)
    z = np.full(n + 5, 7, np.float32)
    add.launch((n + 127) // 128, 128, (x, y, z, n))
    assert np.array_equal(z[:n], x + y)
    assert (z[n:] == 7).all()


def test_torch_tensors_in_place(add):
    x, z = torch.arange(300.0), torch.zeros(300)
    add.launch((3, 1, 1), (128,), (x, x, z, 300))
    assert torch.equal(z, 2 * x)


def test_arrays_that_share_memory(add):
    base = torch.arange(256.0)
    z = torch.zeros(128)
    add.launch(1, 128, (base[:128], base[64:192], z, 128))
    assert torch.equal(z, base[:128] + base[64:192])
    add.launch(1, 128, (base[:128], base[128:], base[128:], 128))
    assert torch.equal(base[128:], torch.arange(128.0) + torch.arange(128.0, 256.0))


def test_views_with_negative_and_zero_strides(add):
    x = np.arange(64, dtype=np.float32)
    z = np.zeros(64, np.float32)
    # The kernel sees the address of the first element: of a reversed view that is the last in memory.
    add.launch(1, 32, (x[::-1], x, z, 1))
    assert z[0] == 63
    add.launch(1, 32, (np.broadcast_to(np.float32(5), 64), x, z, 1))
    assert z[0] == 5


def test_access_past_a_view_is_found(add):
    x, z = np.ones(128, np.float32), np.zeros(128, np.float32)
    with pytest.raises(runtime.Error, match="out-of-bounds") as caught:
        add.launch(1, 128, (x, x, z[:100], 128))
    assert caught.value.status == "finding"


def test_freed_arrays_are_not_reachable(add):
    x = np.ones(32, np.float32)
    address = x.__array_interface__["data"][0]
    with pytest.raises(runtime.Error) as caught:
        add.launch(1, 32, (address, address, address, 32))
    assert caught.value.status == "finding"


def test_read_only_arrays(add):
    x = np.ones(32, np.float32)
    x.flags.writeable = False
    z = np.zeros(32, np.float32)
    add.launch(1, 32, (x, x, z, 32))
    assert (z == 2).all()
    with pytest.raises(runtime.Error, match="read-only"):
        add.launch(1, 32, (z, z, x, 32))
    assert (x == 1).all()


def test_empty_arrays_and_none(add):
    empty = np.empty(0, np.float32)
    add.launch(1, 32, (empty, None, torch.empty(0), 0))


@pytest.mark.parametrize("number", [3, np.int32(3), np.int64(3), np.uint8(3), True + 2])
def test_numbers(add, number):
    x, z = np.ones(4, np.float32), np.zeros(4, np.float32)
    add.launch(1, 32, (x, x, z, number))
    assert z.tolist() == [2, 2, 2, 0]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((1, 2, 3), "expected 4 arguments, but got 3"),
        ((0, 0, 0, 1.5), "argument 3: expected 'i32', but got a real number"),
        ((0, 0, 0, 1 << 31), "argument 3: expected 'i32'"),
        ((0, 0, 0, 1 << 64), "argument 3: expected an integer of 64 bits"),
        ((0, 0, 0, "1"), "argument 3: expected a number, but got 'str'"),
        ((0, 0, 2.5, 1), "argument 2: expected an array, a tensor or an address, but got 'float'"),
    ],
)
def test_arguments_that_do_not_fit(add, args, message):
    with pytest.raises(runtime.Error, match=message) as caught:
        add.launch(1, 32, args)
    assert caught.value.status == "invalid argument"


@pytest.mark.parametrize("grid", [0, (1, 0), (), (1, 1, 1, 1), -1, 1 << 40])
def test_grids_that_cannot_be(add, grid):
    with pytest.raises(runtime.Error, match="expected a grid of"):
        add.launch(grid, 32, (0, 0, 0, 0))


def test_ptx_that_does_not_load():
    device = runtime.open_device("simulator")
    with pytest.raises(runtime.Error) as caught:
        runtime.Module("int main() {}", "add", 0, device, TYPES)
    assert caught.value.status == "corrupt"
    with pytest.raises(runtime.Error, match="no entry 'sub': it has 'add'") as caught:
        runtime.Module(vector_add_ptx(), "sub", 0, device, TYPES)
    assert caught.value.status == "not found"
    with pytest.raises(runtime.Error, match=r"parameter 0 of 'add': expected a type like .*'float\*'"):
        runtime.Module(vector_add_ptx(), "add", 0, device, ["float*"])


@pytest.mark.skipif("WEFT_SANITIZED" in os.environ, reason="measures time, which a sanitizer takes")
def test_launch_overhead(add):
    """What a launch costs beside the kernel: the budget of a whole cached call is 1 ms."""
    x = np.zeros(1 << 20, np.float32)
    args = (x, x, x, 0)
    add.launch(1, 32, args)
    best = min(_seconds(lambda: add.launch(1, 32, args)) for _ in range(50))
    assert best < 0.5e-3, f"{best * 1e6:.0f} µs"


def _seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def test_error_is_a_runtime_error():
    assert issubclass(runtime.Error, RuntimeError)
    assert weft.device is runtime.device
