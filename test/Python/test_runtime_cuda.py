# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Host arrays on CUDA: copied in and back. Runs against the CUDA driver of test/Unit/Runtime/FakeCuda.cpp, whose device
is host memory; on a machine with a GPU the last test runs on the real one."""

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft
from runtime_samples import write_vector_add
from weft import runtime

ROOT = pathlib.Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
import numpy as np
import torch
import weft
from weft import runtime
from runtime_samples import TYPES, vector_add_ptx

assert weft.device() == "cuda:0", weft.device()
device = runtime.open_device()
assert device.properties["model"] == "Fake GPU 0" and not device.simulated
module = runtime.Module(vector_add_ptx(), "add", 0, device, TYPES)
assert module.attributes["registers"] == 26
x, z = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
module.launch(1, 128, (x, x[::1], z[:50], 50))
assert (z[:50] == 2 * x[:50]).all() and (z[50:] == 0).all()
t = torch.zeros(100)
module.launch(1, 128, (torch.from_numpy(x), x, t, 100))
assert torch.equal(t, torch.from_numpy(2 * x))

buffer = runtime.Buffer(device, 400)
buffer.fill(0)
buffer.write(x)
module.launch(1, 128, (buffer.address, buffer.address, buffer.address, 100))
buffer.read(z)
assert (z == 2 * x).all()

library = weft.load(sys.argv[1])
library.launch("add", None, x, x, z, 100, device="cuda:1")
assert (z == 2 * x).all()

fault = runtime.Module(vector_add_ptx() + ".visible .entry fault() { ret; }", "fault", 0, device, [])
fault.launch(1, 32, ())
try:
    device.synchronize()
    raise SystemExit("the fault was lost")
except runtime.Error as error:
    assert error.status == "driver error" and "unspecified launch failure" in str(error), error
print("passed")
"""


@pytest.fixture(scope="module")
def fake_driver(tmp_path_factory):
    compiler = shutil.which("clang++-22")
    if not compiler:
        pytest.skip("no clang++-22 to build the stand-in driver with")
    path = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    source = ROOT / "test" / "Unit" / "Runtime" / "FakeCuda.cpp"
    subprocess.run([compiler, "-std=c++23", "-shared", "-fPIC", f"-I{ROOT}", source, "-o", path], check=True)
    return path


def test_host_arrays_are_copied(fake_driver, tmp_path):
    write_vector_add(tmp_path / "libadd")
    environment = {**os.environ, "WEFT_LIBCUDA": str(fake_driver), "WEFT_DEVICE": ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "test" / "Python")])
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "libadd")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "passed", done.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(tmp_path, seed):
    write_vector_add(tmp_path / "libadd")
    library = weft.load(tmp_path / "libadd")
    x, y = np.random.default_rng(seed).standard_normal((2, 1000), dtype=np.float32)
    z = np.zeros(1000, np.float32)
    library.launch("add", None, x, y, z, 1000, device="cuda:0")
    assert np.array_equal(z, x + y)
    gx, gy, gz = (torch.from_numpy(each).cuda() for each in (x, y, np.zeros_like(z)))
    with torch.cuda.stream(torch.cuda.Stream()):
        library.launch("add", None, gx, gy, gz, 1000)
        assert np.array_equal(gz.cpu().numpy(), x + y)
    assert runtime.open_device("cuda:0").properties["capability"] == torch.cuda.get_device_capability(0)
