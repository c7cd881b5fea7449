# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``@weft.jit`` between the call and the PTX: specialisation, the caches in memory and on disk, options, dumps."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
import weft
import weft.language as wl
from weft.compiler import cache, fingerprint, specialise


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_DUMP", raising=False)
    return tmp_path / "cache"


SCALE = wl.constexpr(3)


@weft.jit
def scaled(value):
    return value * SCALE


@weft.jit
def copy(x, y, n, BLOCK: wl.constexpr):
    offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + offsets, scaled(wl.load(x + offsets, mask=offsets < n)), mask=offsets < n)


SIGNATURE = "x:*fp32:16, y:*fp32:16, n:i32, BLOCK=128"


def aligned(count, dtype, offset=0):
    """Zeros whose address is ``offset`` bytes past a multiple of 16."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def token(value, annotation=None, **options):
    @weft.jit(**options)
    def kernel(x):
        pass

    if annotation is not None:
        kernel.fn.__annotations__["x"] = annotation
        kernel = weft.jit(kernel.fn)
    return specialise.token(kernel.params[0], value)


def test_what_arguments_tell():
    assert token(aligned(4, np.float16)) == ("*fp16", 16)
    assert token(aligned(4, np.float16, offset=2)) == ("*fp16", 1)
    assert token(aligned(4, np.bool_)) == ("*i1", 16)
    assert (
        token(5) == ("i32", 1)
        and token(32) == ("i32", 16)
        and token(2**40) == ("i64", 16)
        and token(2**63) == ("u64", 16)
    )
    assert token(2.0) == ("fp32", 1) and token(True) == ("i1", 1)
    assert (
        token(np.int64(3)) == ("i64", 1) and token(np.float64(3)) == ("fp64", 1) and token(np.uint8(16)) == ("u8", 16)
    )
    assert token(1) == (specialise.CONSTANT, 1, int) and token(None) == (specialise.CONSTANT, None, type(None))
    assert token(1, do_not_specialize=["x"]) == ("i32", 1) and token(32, do_not_specialize=[0]) == ("i32", 1)
    assert token(aligned(4, np.int8), do_not_specialize_on_alignment=["x"]) == ("*i8", 1)
    assert token(wl.float16) == ("*fp16", 16)


def test_annotations_name_types():
    assert token(aligned(4, np.uint16), "*bf16") == ("*bf16", 16)
    assert token(7, "i64") == ("i64", 1) and token(1, wl.int32) == ("i32", 1) and token(1.5, "fp64") == ("fp64", 1)
    with pytest.raises(TypeError, match=r"expected \*bf16, but got an array of fp32"):
        token(aligned(4, np.float32), "*bf16")


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    for kind, name in (
        (torch.bfloat16, "*bf16"),
        (torch.float8_e4m3fn, "*fp8e4nv"),
        (torch.int64, "*i64"),
        (torch.bool, "*i1"),
    ):
        assert token(torch.zeros(16, dtype=kind))[0] == name


@pytest.mark.parametrize("value", ["text", [1, 2], {1: 2}, object(), 2**64], ids=lambda value: type(value).__name__)
def test_arguments_that_kernels_cannot_take(value):
    with pytest.raises(TypeError, match="'x': expected"):
        token(value)


def test_compile():
    kernel = copy.compile(SIGNATURE)
    assert kernel.name == "copy" and ".target sm_80" in kernel.ptx and ".entry copy(" in kernel.ptx
    assert kernel.types == ["*fp32", "*fp32", "i32"] and kernel.shared_bytes == 0
    assert kernel.info["times_ms"]["total"] > 0 and not kernel.cached
    assert "tile.load" in kernel.ir["python"] and "#warp" in kernel.ir["warp"] and "llvm." in kernel.ir["llvm"]
    assert ".target sm_90a" in copy.compile(SIGNATURE, target="sm_90a").ptx


def test_kernel_abi():
    @weft.jit
    def many(a, b, c, d, e, f, C: wl.constexpr, one):
        wl.store(a, (b + c).to(wl.float32) + d + e.to(wl.float32) + wl.where(f, 1, 0) + C + one)

    text = many.compile("a:*fp32, b:i32, c:i64, d:fp32, e:fp16, f:i1, C=2, one=1").ptx
    parameters = [line.split(".param")[1].split()[0] for line in text.splitlines() if line.strip().startswith(".param")]
    assert [kind.lstrip(".bfsu") for kind in parameters][:4] == ["64", "32", "64", "32"], parameters
    assert len(parameters) == 6


def test_unknown_target():
    with pytest.raises(weft.CompilationError, match="sm_12"):
        copy.compile(SIGNATURE, target="sm_12")


@pytest.mark.parametrize(
    "options", [{"num_warps": 3}, {"num_warps": 64}, {"num_stages": -1}, {"num_warps": "4"}], ids=str
)
def test_options_are_checked(options):
    with pytest.raises(ValueError, match="expected num_"):
        copy.compile(SIGNATURE, **options)


def test_disk_cache(own_cache):
    first = copy.compile(SIGNATURE)
    entries = list(own_cache.rglob("*.json"))
    assert len(entries) == 1 and not list(own_cache.rglob("*.partial"))
    second = copy.compile(SIGNATURE)
    assert second.cached and second.ptx == first.ptx and second.info == first.info
    for signature, options in (
        (SIGNATURE.replace("128", "64"), {}),
        (SIGNATURE.replace("n:i32", "n:i64"), {}),
        (SIGNATURE, {"num_warps": 8}),
    ):
        assert not copy.compile(signature, **options).cached
    assert not copy.compile(SIGNATURE, target="sm_90a").cached


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "other name", "not json", "unreadable payload"])
def test_damaged_entries_are_ignored_and_replaced(own_cache, damage):
    first = copy.compile(SIGNATURE)
    (entry,) = own_cache.rglob("*.json")
    text = entry.read_text()
    middle = len(text) // 2
    flipped = text[:middle] + ("a" if text[middle] != "a" else "b") + text[middle + 1 :]
    other = json.loads(text)
    other["sha256"] = cache._digest("other", other["payload"])
    damaged = {
        "truncate": text[:middle],
        "flip": flipped,
        "empty": "",
        "other name": json.dumps(other),
        "not json": "{",
        "unreadable payload": '{"sha256": 1, "payload": 2}',
    }
    entry.write_text(damaged[damage])
    again = copy.compile(SIGNATURE)
    assert not again.cached and again.ptx == first.ptx
    assert copy.compile(SIGNATURE).cached


def test_the_cache_may_be_off_or_unwritable(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE", "0")
    copy.compile(SIGNATURE)
    assert not copy.compile(SIGNATURE).cached
    monkeypatch.delenv("WEFT_CACHE")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert not copy.compile(SIGNATURE).cached


MODULE = """
import weft
import weft.language as wl
FACTOR = wl.constexpr({factor})

@weft.jit
def helper(x):
    return x {operator} 2

@wl.constexpr_function
def size(n):
    return n * {size}

@weft.jit
def kernel(x):
    wl.store(x, helper(wl.load(x)) * FACTOR + size(3))
"""


def module_with(path, factor=2, operator="+", size=1):
    path.write_text(MODULE.format(factor=factor, operator=operator, size=size))
    module = types.ModuleType(path.stem)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


@pytest.mark.parametrize("change", [{"factor": 3}, {"operator": "-"}, {"size": 2}], ids=str)
def test_the_key_covers_helpers_and_constants(tmp_path, change):
    before = module_with(tmp_path / "before.py").kernel.cache_key
    assert module_with(tmp_path / "same.py").kernel.cache_key == before
    assert module_with(tmp_path / "after.py", **change).kernel.cache_key != before


def test_code_elsewhere_is_compiled_anew(tmp_path):
    """PTX names lines, so that of the same text in another place is not taken from the disk."""
    text = MODULE.format(factor=2, operator="+", size=1)
    for name, moved in (
        ("a", text),
        ("b", text),
        ("a", "\n" + text),
        ("a", text.replace("@wl.constexpr", "\n@wl.constexpr")),
    ):
        path = tmp_path / f"{name}.py"
        path.write_text(moved)
        for cached in (False, True):
            module = types.ModuleType(path.stem)
            exec(compile(moved, str(path), "exec"), vars(module))
            kernel = module.kernel.compile("x:*i32")
            assert kernel.cached == cached
            assert str(path) in kernel.ptx


def test_the_fingerprint_is_of_contents(tmp_path, monkeypatch):
    """Of the compiler's library and of the front end's sources, whatever their times."""
    package = pathlib.Path(weft.__file__).parent
    native = pathlib.Path(weft.native.load("_compiler").__file__).parent
    other = tmp_path / "weft"
    shutil.copytree(package / "language", other / "language")
    shutil.copytree(package / "compiler", other / "compiler")
    shutil.copytree(native, other / "_native")
    monkeypatch.setattr(fingerprint, "__file__", str(other / "compiler" / "fingerprint.py"))
    loaded = types.SimpleNamespace(__file__=str(other / "_native" / "_compiler.so"), version=lambda: "1")
    monkeypatch.setattr(fingerprint.native, "load", lambda name: loaded)
    found = {fingerprint.compiler_fingerprint.__wrapped__()}
    for changed in ("_native/libweft-compiler.so", "language/maths.py", "compiler/loops.py"):
        path = other / changed
        times = path.stat()
        contents = bytearray(path.read_bytes())
        contents[len(contents) // 2] ^= 1
        path.write_bytes(contents)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        found.add(fingerprint.compiler_fingerprint.__wrapped__())
    assert len(found) == 4


def test_a_changed_global_is_seen(tmp_path):
    module = module_with(tmp_path / "changing.py")
    first = module.kernel.compile("x:*i32").ptx
    module.FACTOR = wl.constexpr(50)
    assert module.kernel.compile("x:*i32").ptx != first


def test_arguments_that_do_not_fit():
    x = aligned(16, np.float32)
    with pytest.raises(TypeError, match="expected an argument for 'n', but got none; it takes x, y, n, BLOCK"):
        copy.warmup(x, x, BLOCK=16)
    with pytest.raises(TypeError, match="'blok' is none of its parameters or options"):
        copy.warmup(x, x, 16, BLOCK=16, blok=3)
    with pytest.raises(TypeError, match="'x' is given twice"):
        copy.warmup(x, x, 16, BLOCK=16, x=x)
    with pytest.raises(TypeError, match="at most 4 arguments, but got 5"):
        copy.warmup(x, x, 16, 16, 16)
    with pytest.raises(weft.CompilationError, match=r"expected a grid: 'copy' is a kernel"):
        copy(x, x, 16, 16)


def test_warmup_compiles_once_for_what_it_is_given():
    x = aligned(16, np.float32)
    kernel = copy.warmup(x, x, 12, BLOCK=16, num_warps=2)
    assert copy.warmup(x, x, 13, BLOCK=16, num_warps=2) is kernel
    assert copy.warmup(x, x, 16, BLOCK=16, num_warps=2) is not kernel
    assert ".reqntid 64" in kernel.ptx or ".maxntid 64" in kernel.ptx


def test_dumps(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("WEFT_DUMP", "python, ptx")
    copy.compile(SIGNATURE)
    text = capfd.readouterr().err
    assert "---- copy: python" in text and "tile.load" in text and ".entry copy(" in text
    monkeypatch.setenv("WEFT_DUMP", "all")
    monkeypatch.setenv("WEFT_DUMP_DIR", str(tmp_path / "dump"))
    copy.compile(SIGNATURE)
    assert {p.name for p in (tmp_path / "dump").iterdir()} >= {
        "copy.python.mlir",
        "copy.warp.mlir",
        "copy.llvm.mlir",
        "copy.ptx.ptx",
    }
    monkeypatch.setenv("WEFT_DUMP", "everything")
    with pytest.raises(weft.CompilationError, match="expected WEFT_DUMP to name stages"):
        copy.compile(SIGNATURE)


def test_library(tmp_path):
    library = weft.compile(copy, target="sm_80, sm_90a", signature=SIGNATURE, out=tmp_path / "libcopy")
    kernel = library.kernels["copy"]
    assert kernel.arguments == {"x": "*fp32", "y": "*fp32", "n": "i32"}
    assert [v["target"] for v in kernel.variants] == ["sm_90a", "sm_80"]
    assert kernel.variants[0]["constants"] == {"BLOCK": 128}
    guards = [(guard["argument"], guard["divisible_by"]) for guard in kernel.variants[1]["guards"]]
    assert guards == [("x", 16), ("y", 16)]
    with pytest.raises(TypeError, match=r"decorated with @weft\.jit"):
        weft.compile(print, out=tmp_path)


def test_source_must_be_there():
    scope = {"weft": weft}
    exec("@weft.jit\ndef kernel(x):\n    pass\n", scope)
    with pytest.raises(weft.CompilationError, match="expected the source of 'kernel'"):
        scope["kernel"].compile("x:i32")


def test_source_is_that_of_the_definition(tmp_path):
    module = module_with(tmp_path / "edited.py")
    (tmp_path / "edited.py").write_text("# nothing is where it was\n" * 40)
    assert "muli" in module.kernel.compile("x:*i32").ir["python"]


def test_import_loads_nothing_heavy():
    heavy = ("numpy", "torch", "weft._native._compiler", "weft._native._runtime")
    code = f"import sys, weft; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=None, check=True)
    assert run.stdout.strip() == "[]"


def test_every_public_function_has_a_docstring():
    missing = [name for name in wl.__all__ if callable(getattr(wl, name)) and not getattr(wl, name).__doc__]
    assert not missing


def test_every_public_name_is_in_the_documentation():
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "Language.md").read_text()
    missing = [name for name in wl.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing


@weft.jit
def counted(x, n):
    wl.store(x, n)


@pytest.mark.parametrize("value", [1 << 64, -(1 << 63) - 1])
def test_integers_of_more_than_64_bits_are_refused(value):
    with pytest.raises(TypeError, match=f"'n': expected an integer of at most 64 bits, but got {value}"):
        counted[(1,)](np.zeros(1, np.int64), value)
