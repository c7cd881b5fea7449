# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The handler that XLA calls for arrays on a GPU, called as XLA calls it: on the driver of
test/Unit/Runtime/FakeCuda.cpp, with a stream and memory of the caller's. No JAX is needed."""

import os
import subprocess
import sys

from runtime_samples import vector_add_kernel, vector_add_ptx
from test_runtime_cuda import ROOT, fake_driver  # noqa: F401 (a fixture)
from weft.runtime.library import write_library

SCRIPT = """
import ctypes
import sys
import numpy as np
import weft
from weft import native, runtime

SIZE, POINTER, I32, I64 = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64

def struct(*fields):
    made = type("Struct", (ctypes.Structure,), {"_fields_": [("size", SIZE), ("extensions", POINTER), *fields]})
    return made

def new(kind, **values):
    return kind(size=ctypes.sizeof(kind), extensions=None, **values)

Version = struct(("major", I32), ("minor", I32))
Failure = struct(("message", ctypes.c_char_p), ("code", I32))
StreamGet = struct(("context", POINTER), ("stream", POINTER))
Allocate = struct(("context", POINTER), ("bytes", SIZE), ("alignment", SIZE), ("data", POINTER))
Free = struct(("context", POINTER), ("bytes", SIZE), ("data", POINTER))
Ordinal = struct(("context", POINTER), ("ordinal", I32))
Buffer = struct(("type", I32), ("data", POINTER), ("rank", I64), ("dims", POINTER))
List = struct(("count", I64), ("kinds", POINTER), ("items", POINTER))
Attributes = struct(("count", I64), ("kinds", POINTER), ("names", POINTER), ("values", POINTER))
FUNCTION = ctypes.CFUNCTYPE(POINTER, POINTER)
NAMES = ("create message destroy register stream type context set get allocate free schedule threads future available "
         "error run ordinal").split()
Api = struct(("version", Version), ("internal", POINTER), *((name, POINTER) for name in NAMES))
Frame = struct(("api", POINTER), ("context", POINTER), ("stage", I32), ("arguments", List), ("results", List),
               ("attributes", Attributes))

said, held, asked = [], {}, []

@FUNCTION
def create(at):
    failure = Failure.from_address(at)
    said.append((failure.code, failure.message.decode()))
    return 1

@FUNCTION
def stream(at):
    asked.append("stream")
    StreamGet.from_address(at).stream = None
    return None

@FUNCTION
def allocate(at):
    wanted = Allocate.from_address(at)
    memory = ctypes.create_string_buffer(wanted.bytes)
    wanted.data = ctypes.addressof(memory)
    held[wanted.data] = memory
    asked.append(wanted.bytes)
    return None

@FUNCTION
def free(at):
    del held[Free.from_address(at).data]
    return None

@FUNCTION
def ordinal(at):
    Ordinal.from_address(at).ordinal = 1
    return None

api = new(Api)
functions = {"create": create, "stream": stream, "allocate": allocate, "free": free, "ordinal": ordinal}
for name, each in functions.items():
    setattr(api, name, ctypes.cast(each, POINTER).value)

def arrays(*given):
    kept = []
    for each in given:
        dims = (I64 * each.ndim)(*each.shape)
        kept.append((new(Buffer, type=11, data=each.ctypes.data, rank=each.ndim, dims=ctypes.addressof(dims)), dims))
    items = (POINTER * len(given))(*(ctypes.addressof(buffer) for buffer, _ in kept))
    kinds = (I32 * len(given))(*[1] * len(given))
    made = new(List, count=len(given), kinds=ctypes.addressof(kinds), items=ctypes.addressof(items))
    made.kept = (kept, items, kinds)
    return made

class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", SIZE)]

get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = POINTER, [ctypes.py_object, ctypes.c_char_p]
handler = FUNCTION(get(native.load("_runtime").jax_handler_cuda, None))

def call(key, inputs, outputs):
    name, value = Text(b"program", 7), Text(key, len(key))
    names, values = (POINTER * 1)(ctypes.addressof(name)), (POINTER * 1)(ctypes.addressof(value))
    kinds = (I32 * 1)(4)
    attributes = new(Attributes, count=1, kinds=ctypes.addressof(kinds), names=ctypes.addressof(names),
                     values=ctypes.addressof(values))
    one, two = arrays(*inputs), arrays(*outputs)
    frame = new(Frame, api=ctypes.addressof(api), context=None, stage=3, arguments=one, results=two,
                attributes=attributes)
    return handler(ctypes.addressof(frame))

library = weft.load(sys.argv[1])
native.load("_runtime").jax_register("key", library.handle, "sum", "simulator")
x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
z = np.full(100, np.nan, np.float32)
assert not call(b"key", (x, y), (z,)), said
assert (z == x + 2).all()
assert not held and asked == [768, "stream"], asked  # 100 floats at a multiple of 256, with room to get there
assert call(b"other", (x, y), (z,)) and said.pop()[0] == 5
assert call(b"key", (x, y[:50]), (z,))
code, text = said.pop()
assert code == 3 and "'y'" in text, text
assert call(b"key", (x, y), (z[:50],)) and "room for results" in said.pop()[1]
assert not held
print("passed")
"""


def test_the_handler(fake_driver, tmp_path):  # noqa: F811
    tensors = [{"name": name, "type": "fp32", "dims": ["N"]} for name in "xyz"]

    def launch(first, second, result):
        arguments = [{"pointer": first}, {"pointer": second}, {"pointer": result}, {"size": "N"}]
        grid = ["cdiv(N, 128)", "1", "1"]
        return {"kernel": "add", "grid": grid, "writes": [result], "zeroed": [], "arguments": arguments}

    buffers = [{"type": "fp32", "dims": ["N"]}]
    plan = {"target": "sm_80", "buffers": buffers, "launches": [launch(0, 1, 3), launch(3, 1, 2)]}
    program = {"name": "sum", "inputs": tensors[:2], "outputs": tensors[2:], "variants": [plan]}
    files = {"add.sm_80.ptx": vector_add_ptx()}
    write_library(tmp_path / "lib", [vector_add_kernel(("sm_80",))], files, [program])
    environment = {**os.environ, "WEFT_LIBCUDA": str(fake_driver), "WEFT_DEVICE": ""}
    environment["PYTHONPATH"] = str(ROOT / "python")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "lib")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "passed", done.stderr
