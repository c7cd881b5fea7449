# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libweft_torch.so: programs of libraries as operators of torch in a process that has none of Weft's Python."""

import pathlib
import subprocess
import sys

import pytest
import torch
import weft
from weft import native

SHARED = pathlib.Path(str(native.load("_runtime").__file__)).parent / "libweft_torch.so"

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="built where torch's headers are found")


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v, weft.mean(causal=True) @ v


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = tmp_path_factory.mktemp("library") / "attention"
    attention.compile("sm_80", ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv"), out)
    return weft.load(out)


RUN = """
import ctypes, sys, torch
shared, library, tensors, out, name = sys.argv[1:]
loaded = ctypes.CDLL(shared)
message = ctypes.create_string_buffer(500)
for _ in range(2):  # the second time it is known
    assert loaded.weft_torch_load(library.encode(), message, 500) == 0, message.value
operator = getattr(torch.ops.weft, name).default
torch.save(operator(*torch.load(tensors)), out)
assert not any(module.split(".")[0] == "weft" for module in sys.modules)
"""


def ran(library, tensors, folder, name):
    torch.save(tensors, folder / "in.pt")
    arguments = [SHARED, library.path, folder / "in.pt", folder / "out.pt", name]
    done = subprocess.run([sys.executable, "-c", RUN, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "out.pt")


@pytest.mark.parametrize("kind", ["contiguous", "slices of one tensor", "transposed", "unaligned", "empty"])
def test_runs_without_python(library, tmp_path, kind, seed):
    torch.manual_seed(seed)
    if kind == "slices of one tensor":
        tensors = torch.randn(2, 2, 24, 48).split(16, 3)
    elif kind == "transposed":
        tensors = [torch.randn(2, 2, 16, 24).transpose(2, 3) for _ in range(3)]
    elif kind == "unaligned":
        tensors = [torch.randn(2 * 2 * 24 * 16 + 1)[1:].reshape(2, 2, 24, 16) for _ in range(3)]
    else:
        tensors = [torch.randn(2, 2, 0 if kind == "empty" else 24, 16) for _ in range(3)]
    program = library.program("attention")
    name = f"attention_{program.identity}"
    plain = [each.clone(memory_format=torch.contiguous_format) for each in tensors]
    wanted = program(*plain)
    assert all(map(torch.equal, ran(library, tensors, tmp_path, f"{name}_inference"), wanted))
    kept = library.program("attention.forward")(*plain)
    assert all(map(torch.equal, ran(library, tensors, tmp_path, name), kept))


def test_what_does_not_fit_is_refused(library, tmp_path):
    tensors = [torch.randn(2, 2, 24, 16) for _ in range(3)]
    name = f"attention_{library.program('attention').identity}_inference"
    for wrong in ([tensors[0].double(), *tensors[1:]], [tensors[0][..., :8], *tensors[1:]]):
        with pytest.raises(AssertionError, match="expected"):
            ran(library, wrong, tmp_path, name)
    with pytest.raises(AssertionError, match="libnothing"):
        ran(type("Missing", (), {"path": str(tmp_path / "libnothing")}), tensors, tmp_path, name)


def test_needs_nothing_of_torch_but_its_c_interface():
    symbols = subprocess.run(["nm", "-D", "--undefined-only", str(SHARED)], capture_output=True, text=True, check=True)
    names = {line.split()[-1].split("@")[0] for line in symbols.stdout.splitlines()}
    assert not any("c10" in name or "2at" in name for name in names)
    assert {name for name in names if "torch" in name} <= {
        "aoti_torch_copy_", "aoti_torch_delete_tensor_object", "aoti_torch_empty_strided", "aoti_torch_get_data_ptr",
        "aoti_torch_get_device_index", "aoti_torch_get_device_type", "aoti_torch_get_dim", "aoti_torch_get_dtype",
        "aoti_torch_get_sizes", "aoti_torch_get_strides", "aoti_torch_library_def", "aoti_torch_library_impl",
        "aoti_torch_library_init_fragment", "aoti_torch_library_init_impl", "aoti_torch_device_type_cuda",
        *(f"aoti_torch_dtype_{kind}" for kind in ("bool", "int8", "int32", "int64", "float16", "bfloat16", "float32")),
        "aoti_torch_dtype_float8_e4m3fn", "aoti_torch_dtype_float8_e5m2",
    }  # fmt: skip


class Layer(torch.nn.Module):
    def __init__(self, library):
        super().__init__()
        self.project = torch.nn.Linear(32, 96)
        self.attention = library.program("attention")

    def forward(self, x):
        heads = self.project(x).reshape(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        out, mean = self.attention(heads[0], heads[1], heads[2])
        return (out + mean).transpose(1, 2).flatten(2)


MODEL = """
import ctypes, sys, torch
shared, library, package, tensors, out = sys.argv[1:]
assert ctypes.CDLL(shared).weft_torch_load(library.encode(), None, 0) == 0
loaded = torch._C._aoti.AOTIModelPackageLoader(package, "model", False, 1, -1)
torch.save(loaded.run([torch.load(tensors)])[0], out)
assert not any(module.split(".")[0] == "weft" for module in sys.modules)
"""


@pytest.mark.slow
def test_a_compiled_model_runs_without_python(library, tmp_path, seed):
    """AOTInductor's package and a library are a whole model: torch's C++ loader runs it, of any batch and length."""
    torch.manual_seed(seed)
    model = Layer(library).eval()
    with torch.no_grad():
        dims = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("length", min=2, max=512)}
        exported = torch.export.export(model, (torch.randn(2, 24, 32),), dynamic_shapes=(dims,))
        package = torch._inductor.aoti_compile_and_package(exported, package_path=str(tmp_path / "model.pt2"))
        for batch, length in ((2, 24), (3, 37)):
            x = torch.randn(batch, length, 32)
            torch.save(x, tmp_path / "in.pt")
            arguments = [SHARED, library.path, package, tmp_path / "in.pt", tmp_path / "out.pt"]
            done = subprocess.run([sys.executable, "-c", MODEL, *map(str, arguments)], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            torch.testing.assert_close(torch.load(tmp_path / "out.pt"), model(x), rtol=1e-5, atol=1e-6)
