# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program that is prepared allocates nothing, loads nothing and waits for nothing when it runs, so that a CUDA graph
can capture it: counted by the stand-in driver of test/Unit/Runtime/FakeCuda.cpp, which refuses all else in a capture.

Torch's tensors on CUDA, its current stream and its memory are stood in for as well.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from unittest import mock

import pytest
import torch
import weft
from weft.programs import compiled

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: z = (x + y) + y on fp32, by a buffer in between; the result is filled with zero before
PROGRAM = {
    "name": "twice",
    "inputs": [{"name": name, "type": "fp32", "dims": ["N"]} for name in "xy"],
    "outputs": [{"name": "z", "type": "fp32", "dims": ["N"]}],
    "variants": [
        {
            "target": "sm_80",
            "buffers": [{"type": "fp32", "dims": ["N"]}],
            "launches": [
                {
                    "kernel": "add",
                    "grid": ["cdiv(N, 128)", "1", "1"],
                    "writes": [last],
                    "zeroed": [last],
                    "arguments": [{"pointer": first}, {"pointer": 1}, {"pointer": last}, {"size": "N"}],
                }
                for first, last in ((0, 3), (3, 2))
            ],
        }
    ],
}

SCRIPT = """
import ctypes, json, sys
import torch, weft
from types import SimpleNamespace
from runtime_samples import vector_add_kernel, vector_add_ptx

cuda = ctypes.CDLL(sys.argv[2])
cuda.fakeCudaCapture.argtypes = [ctypes.c_void_p]
counts = lambda: [getattr(cuda, "fakeCuda" + what)() for what in ("Allocations", "Loads", "Waits")]
STREAM = 0x1230
pool = []  # as torch's memory, which a capture may take from

class OnCuda:
    is_cuda, is_cpu, requires_grad = True, False, False

    def __init__(self, shape, dtype=torch.float32, device=None):
        self.host = torch.zeros(tuple(shape) + (64,), dtype=dtype).flatten()
        start = -self.host.data_ptr() % 256 // self.host.element_size()
        self.host = self.host[start:][: torch.Size(shape).numel()].view(shape)
        self.device, self.dtype, self.shape = SimpleNamespace(index=0), dtype, self.host.shape
        pool.append(self)

    def data_ptr(self): return self.host.data_ptr()
    def stride(self): return self.host.stride()
    def get_device(self): return 0
    def element_size(self): return self.host.element_size()

empty, torch.empty = torch.empty, OnCuda
torch._C._cuda_getCurrentRawStream = lambda ordinal: STREAM

weft.runtime.write_library(
    sys.argv[1], [vector_add_kernel(["sm_80"])], {"add.sm_80.ptx": vector_add_ptx()}, [json.loads(sys.argv[3])]
)
program = weft.load(sys.argv[1]).programs["twice"]
assert program.prepare("cuda:0") is program
before = counts()
assert before[1] == 1
x, y = OnCuda([200]), OnCuda([200])
x.host.copy_(torch.arange(200.0)); y.host.fill_(2.5)
launched = cuda.fakeCudaLaunches()
cuda.fakeCudaCapture(STREAM)
(z,) = program.queue((x, y))  # outputs and workspace from torch's memory
(out,) = program.run((x, y), outputs=(OnCuda([200]),))
cuda.fakeCudaCapture(None)
assert counts() == before, (before, counts())
assert cuda.fakeCudaLaunches() == launched + 4
for each in (z, out):
    assert torch.equal(each.host, x.host + 5), each.host

cuda.fakeCudaCapture(STREAM + 8)  # of another stream: this is refused, or nothing would be shown
try:
    program.queue((x, y))
    raise SystemExit("work went to another stream than torch's")
except weft.runtime.Error as error:
    assert error.status == "driver error", error
cuda.fakeCudaCapture(None)
torch.empty = empty

@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v

q, k, v = (torch.zeros(1, 2, 32, 16, device="meta", requires_grad=True) for _ in range(3))
loads = cuda.fakeCudaLoads()
assert attention.prepare(q, k, v, device="cuda:0") is attention
assert cuda.fakeCudaLoads() > loads
loads = cuda.fakeCudaLoads()
attention.prepare(q, k, v, device="cuda:0")
assert cuda.fakeCudaLoads() == loads
print("passed")
"""


def test_a_run_of_a_prepared_program_only_queues(tmp_path):
    compiler = shutil.which("clang++-22")
    if not compiler:
        pytest.skip("no clang++-22 to build the stand-in driver with")
    driver = tmp_path / "libcuda.so.1"
    source = ROOT / "test" / "Unit" / "Runtime" / "FakeCuda.cpp"
    subprocess.run([compiler, "-std=c++23", "-shared", "-fPIC", f"-I{ROOT}", source, "-o", driver], check=True)
    environment = {**os.environ, "WEFT_LIBCUDA": str(driver), "WEFT_DEVICE": ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "test" / "Python")])
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "library"), str(driver), json.dumps(PROGRAM)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "passed", done.stderr


@pytest.mark.parametrize("gradients", [False, True])
def test_a_prepared_program_is_compiled_already(gradients):
    @weft.program
    def attention(q, k, v):
        return weft.softmax(q, k, weft.window(5, 0)) @ v

    like = [torch.empty(1, 2, 20, 16, device="meta", requires_grad=gradients) for _ in range(3)]
    attention.prepare(*like)
    with mock.patch.object(compiled, "_build", side_effect=AssertionError("compiled again")):
        for n in (20, 33):
            q, k, v = (torch.randn(1, 2, n, 16, requires_grad=gradients) for _ in range(3))
            out = attention(q, k, v)
            if gradients:
                out.sum().backward()


def test_the_profiler_names_runs():
    @weft.program
    def attention(q, k, v):
        return weft.softmax(q, k, weft.causal()) @ v

    q, k, v = (torch.randn(1, 2, 20, 16, requires_grad=True) for _ in range(3))
    for _ in range(3):
        attention(q, k, v)
    with torch.profiler.profile() as profile:
        attention(q, k, v).sum().backward()
        with torch.no_grad():
            attention(q, k, v)
    found = [each.name for each in profile.events() if each.name.startswith("weft::")]
    assert found.count("weft::attention") == 2 and found.count("weft::attention.backward") == 1
