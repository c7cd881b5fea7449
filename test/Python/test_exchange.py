# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries where tensors are taken: by DLPack on the host, by the CUDA array interface on a GPU. No
such library is needed: objects that have nothing but the protocols stand for its arrays."""

import os
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
import weft
from runtime_samples import vector_add_kernel, vector_add_ptx
from test_runtime_cuda import ROOT, fake_driver  # noqa: F401 (a fixture)
from weft.runtime.library import write_library

standin = types.ModuleType("standin")


class Array:
    """An array that has DLPack and nothing else."""

    __module__ = "standin"

    def __init__(self, data):
        self._data = data

    def __dlpack__(self, **options):
        return self._data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._data.__dlpack_device__()


standin.from_dlpack = lambda array: Array(np.from_dlpack(array))


@pytest.fixture(autouse=True)
def library_of_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "standin", standin)
    monkeypatch.setenv("WEFT_DEVICE", "simulator")


@weft.program
def attend(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.jit
def double(x, y, n, BLOCK: weft.language.constexpr):
    i = weft.language.program_id(0) * BLOCK + weft.language.arange(0, BLOCK)
    weft.language.store(y + i, 2 * weft.language.load(x + i, i < n), i < n)


def operands(seed, count=3, shape=(1, 2, 12, 16)):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for _ in range(count)]


def test_programs(seed):
    q, k, v = operands(seed)
    wanted = attend(q, k, v)
    out = attend(Array(q), Array(k), v)
    assert type(out) is Array and np.array_equal(out._data, wanted)  # of the first library that is not NumPy
    mixed = attend(torch.from_numpy(q), Array(k), v)
    assert isinstance(mixed, torch.Tensor) and np.array_equal(mixed.numpy(), wanted)
    strided = Array(np.ascontiguousarray(q.swapaxes(1, 2)).swapaxes(1, 2))
    assert np.array_equal(attend(strided, k, v)._data, wanted)
    out, saved = attend.forward(Array(q), Array(k), Array(v))
    gradients = attend.backward(saved, Array(np.ones_like(q)))
    _, plain = attend.forward(q, k, v)
    for name, gradient in attend.backward(plain, np.ones_like(q)).items():
        assert type(gradients[name]) is Array and np.array_equal(gradients[name]._data, gradient)
    assert type(weft.attention.attend(Array(q), Array(k), Array(v), weft.causal())) is Array


def test_libraries(tmp_path, seed):
    signature = "q:fp32[B,H,N,16]:16, k:fp32[B,H,N,16]:16, v:fp32[B,H,N,16]:16"
    library = attend.compile("sm_80", signature, tmp_path / "lib", differentiate=False)
    q, k, v = operands(seed)
    wanted = library.run("attend", q, k, v)
    assert np.array_equal(library.run("attend", Array(q), k, v)._data, wanted)
    place = Array(np.full_like(q, np.nan))
    (given,) = library.programs["attend"].run((q, k, Array(v)), outputs=(place,))
    assert given is place and np.array_equal(place._data, wanted)
    fixed = np.empty_like(q)
    fixed.flags.writeable = False
    for lent in (fixed, Array(fixed)):
        with pytest.raises(
            weft.runtime.Error, match=r"expected an array for results, but got a read-only one"
        ) as refused:
            library.programs["attend"].run((q, k, v), outputs=(lent,))
        assert refused.value.status == "invalid argument"


def test_kernels(tmp_path, seed):
    (x,) = operands(seed, 1, (100,))
    y = np.full(100, np.nan, np.float32)
    double[(1,)](Array(x), Array(y), 100, BLOCK=128)
    assert np.array_equal(y, 2 * x)
    files = {"add.sm_80.ptx": vector_add_ptx()}
    write_library(tmp_path / "lib", [vector_add_kernel(("sm_80",))], files)
    weft.load(tmp_path / "lib").launch("add", None, Array(x), x, Array(y), 100)
    assert np.array_equal(y, x + x)
    fixed = np.zeros_like(y)
    fixed.flags.writeable = False
    with pytest.raises(weft.runtime.Error, match="read-only"):
        double[(1,)](Array(x), Array(fixed), 100, BLOCK=128)


class Refusing(Array):
    """An exporter that would have to copy: its elements are not in memory as they are."""

    __module__ = "standin"

    def __dlpack__(self, **options):
        raise BufferError("the conjugate bit is set")


class Elsewhere(Array):
    __module__ = "standin"

    def __dlpack_device__(self):
        return (10, 0)  # of AMD


def test_what_cannot_be_used_where_it_is(seed):
    q, k, v = operands(seed)
    with pytest.raises(weft.Error, match=r"'k': .*'Refusing' says: the conjugate bit is set"):
        attend(q, Refusing(k), v)
    with pytest.raises(weft.Error, match=r"'v': expected an array on the CPU or a CUDA device, but got .* type 10"):
        attend(q, k, Elsewhere(v))
    with pytest.raises(weft.Error, match=r"'q'.*float64|float64.*'q'"):
        attend(Array(q.astype(np.float64)), k, v)


@pytest.mark.ecosystem
def test_arrays_of_jax(seed):
    jax = pytest.importorskip("jax")
    q, k, v = operands(seed)
    out = attend(*map(jax.numpy.asarray, (q, k, v)))
    assert isinstance(out, jax.Array) and np.array_equal(np.asarray(out), attend(q, k, v))
    halves = [jax.numpy.asarray(each, jax.numpy.bfloat16) for each in (q, k, v)]
    assert attend(*halves).dtype == jax.numpy.bfloat16


ON_CUDA = """
import sys
import types
import numpy as np
import weft
from weft import runtime

class Array:
    '''Memory of the stand-in driver, whose device is the host.'''
    __module__ = "standin"
    def __init__(self, data, stream=None, **changes):
        self.data = data
        self.facts = {"version": 3, "shape": data.shape, "typestr": data.dtype.str, "strides": None,
                      "data": (data.ctypes.data, not data.flags.writeable), "stream": stream, **changes}
    @property
    def __cuda_array_interface__(self):
        return self.facts

standin = types.ModuleType("standin")
standin.float32 = np.float32
standin.empty = lambda shape, dtype: Array(np.full(shape, np.nan, dtype))
sys.modules["standin"] = standin

library = weft.load(sys.argv[1])
x, z = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
library.launch("add", None, Array(x), Array(x, stream=1), Array(z), 100)
assert (z == 2 * x).all()
(out,) = library.programs["sum"].run((Array(x), Array(x)))
assert type(out) is Array and (out.data == 2 * x).all()
place = Array(np.zeros_like(x))
library.programs["sum"].run((Array(x), x), outputs=(place,))
assert (place.data == 2 * x).all()
assert "torch" not in sys.modules

def refused(part, *arrays, **options):
    try:
        library.programs["sum"].run(arrays, **options)
    except runtime.Error as error:
        assert part in str(error), error
    else:
        raise SystemExit("not refused: " + part)

device = runtime.open_device("cuda:0")
refused("'x': expected a stream of the CUDA array interface, but got 0", Array(x, stream=0), Array(x))
refused("'y': expected a plain array, but got a masked one", Array(x), Array(x, mask=Array(x)))
refused("'x': expected elements of", Array(x, typestr="<c8"), Array(x))
refused("'x': expected elements of", Array(x, typestr=">f4"), Array(x))
refused("'x': expected the CUDA array interface of version 2 or 3, but got 1", Array(x, version=1), Array(x))
refused("'x': expected strides of whole elements", Array(x, strides=(6,)), Array(x))
refused("'x'", Array(x, strides=(8,), shape=(50,)), Array(x[:50]))
fixed = np.zeros_like(x)
fixed.flags.writeable = False
refused("'z': expected an array for results, but got a read-only one", Array(x), Array(x), outputs=(Array(fixed),))
# a stream that is none of the driver's: it is asked for it, and says so
refused("the stream ended in an error", Array(x, stream=1 << 20), Array(x, stream=1 << 21))
print("passed")
"""


def test_on_a_gpu_by_the_cuda_array_interface(fake_driver, tmp_path):  # noqa: F811
    tensors = [{"name": name, "type": "fp32", "dims": ["N"]} for name in "xyz"]
    arguments = [{"pointer": 0}, {"pointer": 1}, {"pointer": 2}, {"size": "N"}]
    launch = {"kernel": "add", "grid": ["cdiv(N, 128)", "1", "1"], "writes": [2], "zeroed": [], "arguments": arguments}
    plan = {"target": "sm_80", "buffers": [], "launches": [launch]}
    program = {"name": "sum", "inputs": tensors[:2], "outputs": tensors[2:], "variants": [plan]}
    files = {"add.sm_80.ptx": vector_add_ptx()}
    write_library(tmp_path / "lib", [vector_add_kernel(("sm_80",))], files, [program])
    environment = {**os.environ, "WEFT_LIBCUDA": str(fake_driver), "WEFT_DEVICE": ""}
    environment["PYTHONPATH"] = str(ROOT / "python")
    command = [sys.executable, "-c", ON_CUDA, str(tmp_path / "lib")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "passed", done.stderr
