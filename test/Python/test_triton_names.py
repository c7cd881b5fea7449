# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft.triton``: scripts for Triton run as they are, and Triton's names are there."""

import collections
import importlib
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft
import weft.triton as triton
import weft.triton.language as tl
from weft.compiler import ptxas
from weft.compiler.ptxas import find_tool
from weft.triton import knobs, reports

SCRIPT = """
import numpy as np
import triton
import triton.language as tl
import triton.language.extra.libdevice as tldevice
from triton.language.math import exp2
from triton.runtime.autotuner import Autotuner
from triton.runtime import driver
import sys

@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (64, 128) for w in (1, 2)], key=["n"])
@triton.jit(do_not_specialize=["n"])
def kernel(x, y, n, EVEN: tl.constexpr = None, BLOCK: tl.constexpr = 64):
    p = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * BLOCK,), (BLOCK,), (0,))
    v = exp2(tldevice.abs(tl.load(p, boundary_check=(0,))))
    q = tl.make_block_ptr(y, (n,), (1,), (tl.program_id(0) * BLOCK,), (BLOCK,), (0,))
    tl.store(q, v.to(q.dtype.element_ty), boundary_check=(0,))

x, y = np.linspace(-3, 3, 100, dtype=np.float32), np.zeros(100, np.float32)
"""
CALL = """
kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100)
np.testing.assert_allclose(y, np.exp2(abs(x)), rtol=1e-5)
print("right", sys.argv[1:], __name__, driver.active.get_current_target().backend)
"""


@pytest.mark.parametrize("form", [[], ["-m"]])
def test_a_script_runs_as_it_is(form, tmp_path):
    text = SCRIPT.replace('@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})\n', "") + CALL
    (tmp_path / "script.py").write_text(text)
    named = "script" if form else str(tmp_path / "script.py")
    command = [sys.executable, "-m", "weft.triton", *form, named, "3", "--four"]
    environment = {
        **os.environ,
        "WEFT_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join(["python", str(tmp_path)]),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("right ['3', '--four'] __main__")


def test_without_a_script_its_usage_is_said():
    done = subprocess.run([sys.executable, "-m", "weft.triton"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage: python -m weft.triton" in done.stderr


# What Triton's modules name and Weft's do not: of Triton's own machinery.
ABSENT = {
    "runtime": {"RedisRemoteCacheBackend", "RemoteCacheBackend"},
    "": {"AsyncCompileMode", "FutureKernel", "aggregate", "must_use_result"},
}


@pytest.mark.parametrize("module", ["runtime", ""])
def test_names_of_triton(module):
    pytest.importorskip("triton")
    theirs = importlib.import_module(f"triton.{module}".rstrip("."))
    ours = importlib.import_module(f"weft.triton.{module}".rstrip("."))
    missing = {name for name in theirs.__all__ if not hasattr(ours, name)}
    assert missing <= ABSENT[module], missing - ABSENT[module]


def test_hooks_are_assigned():
    seen = []

    @triton.jit
    def kernel(x):
        tl.store(x, 1.0)

    x = __import__("numpy").zeros(1, "float32")
    knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append("added"))
    try:
        knobs.runtime.launch_enter_hook = lambda metadata: seen.append("assigned")
        knobs.runtime.launch_exit_hook = knobs.runtime.launch_enter_hook
        kernel[(1,)](x)
    finally:
        knobs.runtime.launch_enter_hook = knobs.runtime.launch_exit_hook = None
    kernel[(1,)](x)
    assert seen == ["assigned", "assigned"]
    with pytest.raises(TypeError, match="expected a function of a launch's metadata, or None, but got int"):
        knobs.runtime.launch_exit_hook = 3


def test_hooks_of_launches():
    seen = []

    @triton.jit
    def kernel(x):
        tl.store(x, 1.0)

    def hook(metadata):
        seen.append(metadata.get()["name"])

    x = __import__("numpy").zeros(1, "float32")
    knobs.runtime.launch_enter_hook.add(hook)
    knobs.runtime.launch_exit_hook.add(hook)
    try:
        made = kernel[(1,)](x)
    finally:
        knobs.runtime.launch_enter_hook.remove(hook)
        knobs.runtime.launch_exit_hook.remove(hook)
    kernel[(1,)](x)
    assert seen == ["kernel", "kernel"]
    assert made.asm["ptx"] == made.ptx
    assert "tile" in made.asm["ttir"]
    kernel.add_pre_run_hook(lambda *args, **options: seen.append((len(args), options)))
    kernel.run(x, grid=(1,), num_warps=2)
    assert seen[2:] == [(1, {"num_warps": 2})]
    assert kernel.run(x, grid=(1,), warmup=True) is kernel.warmup(x)
    kernel[(1,)](x, num_ctas=1, maxnreg=128, extern_libs={"libdevice": "/where/triton/has/it"})
    with pytest.raises(ValueError, match="expected 'extern_libs' to name 'libdevice' alone"):
        kernel[(1,)](x, extern_libs={"mine": "mine.bc"})


@triton.jit
def scaled_by_two(x):
    at = tl.arange(0, 64)
    tl.store(x + at, tl.load(x + at) * 2)


@triton.jit
def row_sums(x, y, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        tl.store(y + row, tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0)))


def test_what_a_warm_up_gives_is_launched(monkeypatch):
    """As scripts do that ask a kernel's registers and shared memory for how many programs fit."""
    x, y = np.arange(12, dtype=np.float32).reshape(4, 3), np.zeros(4, np.float32)
    made = row_sums.warmup(x, y, 4, 3, BLOCK=4, num_stages=2, num_warps=2, grid=(1,))
    made._init_handles()
    known = made.metadata
    assert (known.shared, known.num_warps, known.num_ctas, known.name) == (made.shared_bytes, 2, 1, "row_sums")
    assert known.target.arch == int("".join(filter(str.isdigit, made.target)))
    if find_tool("ptxas"):
        assert 0 < made.n_regs <= 255 and made.n_spills == 0
    assert made[(3, 1, 1)](x, y, 4, 3, 4, 2) is made
    np.testing.assert_array_equal(y, x.sum(1))
    monkeypatch.setattr("weft.compiler.kernel.assemble", lambda *given: None)
    other = row_sums.warmup(x, y, 4, 3, BLOCK=8, num_stages=2)
    with pytest.raises(weft.Error, match="expected ptxas to say the registers of 'row_sums', but found none"):
        _ = other.n_regs


def test_texts_of_a_kernel_are_listed_and_made_when_asked_for(monkeypatch):
    made = scaled_by_two.compile("x:*fp32", target="sm_90a")
    assert {"source", "python", "tile", "ttir", "ttgir", "llir", "ptx"} <= set(made.asm) == set(dict(made.asm))
    assert made.asm["ttir"] == made.asm["tile"] != made.asm["ttgir"] and "llvm" in made.asm["llir"]
    assert made.asm.get("amdgcn") is None and len(made.asm) == len([*made.asm]) and "ptx" in repr(made.asm)
    with pytest.raises(KeyError, match=r"expected a stage among source, .* but got 'amdgcn'"):
        made.asm["amdgcn"]
    for missing, said in (("ptxas", "ptxas"), ("nvdisasm cuobjdump", "nvdisasm or cuobjdump")):
        monkeypatch.setattr(ptxas, "find_tool", lambda name, gone=missing: None if name in gone.split() else name)
        assert ("sass" in made.asm, "cubin" in made.asm) == (False, missing != "ptxas")
        with pytest.raises(weft.Error, match=f"^expected {said} on PATH, .* for 'sass' of 'scaled_by_two'"):
            made.asm["sass"]


@pytest.mark.skipif(not find_tool("ptxas") or not find_tool("nvdisasm"), reason="CUDA's tools are not installed")
@pytest.mark.parametrize("without", [(), ("nvdisasm",)])
def test_machine_code_of_a_kernel(without, monkeypatch):
    if without and not find_tool("cuobjdump"):
        pytest.skip("there is no cuobjdump")
    monkeypatch.setattr(ptxas, "find_tool", lambda name: None if name in without else find_tool(name))
    made = scaled_by_two.compile("x:*fp32", target="sm_90a")
    assert made.asm["cubin"].startswith(b"\x7fELF")
    assert "scaled_by_two" in made.asm["sass"] and "STG" in made.asm["sass"] and "EXIT" in made.asm["sass"]


def test_the_driver_says_what_is_there():
    target = triton.runtime.driver.active.get_current_target()
    facts = triton.runtime.driver.active.utils.get_device_properties(0)
    assert target.warp_size == facts["warpSize"] == 32
    assert facts["max_shared_mem"] > 48 * 1024
    assert facts["multiprocessor_count"] > 0
    assert (target.backend == "cpu") == (weft.device() == "simulator")


@triton.jit
def of_its_target(x, FROM: tl.constexpr):
    tl.store(x, tl.target_info.current_target().arch if tl.target_info.cuda_capability_geq(FROM) else 0)


def test_the_target_is_known_in_kernels_and_outside():
    now = tl.target_info.current_target()
    assert (now.backend, now.warp_size) == ("cuda", 32)
    assert now.arch == triton.runtime.driver.active.get_current_target().arch
    assert tl.target_info.is_cuda() and not tl.target_info.is_hip()
    for major in (8, 9, 10):
        known = tl.target_info.cuda_capability_geq(major)
        assert known is (now.arch >= 10 * major)
        x = torch.full((1,), -1, dtype=torch.int32)
        of_its_target[(1,)](x, major)
        assert x.item() == (now.arch if known else 0)


def test_a_report_is_a_table(capsys, tmp_path):
    bench = reports.Benchmark(["M", "N"], [1, (2, 3)], "provider", ["a", "b"], ["A", "B"], "times", args={"k": 10})
    mark = triton.testing.perf_report(bench)(lambda M, N, provider, k: M + N + k * (provider == "b"))
    rows = mark.run(print_data=True, save_path=str(tmp_path), return_df=True)
    assert rows == [[1, 1, 2, 12], [2, 3, 5, 15]]
    assert "M,N,A,B" in capsys.readouterr().out
    assert (tmp_path / "times.csv").read_text().splitlines()[2] == "2,3,5,15"
    triton.testing.assert_close([1.0], [1.001])
    with pytest.raises(AssertionError):
        triton.testing.assert_close([1.0], [1.1])


@triton.jit
def with_names_of_core(x, n):
    i = 0
    while tl.condition(i < n, disable_licm=True):
        pair = tl.tuple([i, i + 1])
        tl.store(x + i, tl.expect_zero(pair[0] - pair[1] + 1, i >= 0))
        i += 1


def test_condition_tuple_and_expect_zero():
    x = __import__("numpy").ones(4, "int32")
    with_names_of_core[(1,)](x, 3, debug=True)
    assert x.tolist() == [0, 0, 0, 1]


#: of ``triton.language.core``, and refused: what docs/Triton.md says of them
REFUSED = {"dispatch", "extern", "extern_elementwise", "slice_type"}
#: of Triton's own front end, or what its module imports
MACHINERY = {
    *("CAT_CAN_REORDER_WARNING", "RESHAPE_CAN_REORDER_WARNING", "JITCallable", "T", "TRITON_BUILTIN"),
    *("binary_op_type_legalization", "builtin_max", "builtin_min", "check_bit_width", "get_primitive_bitwidth", "ir"),
    *(
        "is_builtin",
        "is_enabled",
        "is_negative_zero",
        "knobs",
        "must_use_result",
        "validate_block_shape",
        "warn_once",
        "dataclass_transform",
    ),
}


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_all_names_of_the_installed_triton_are_there_or_refused_on_the_page():
    script = (
        "import triton.language as tl, triton\n"
        "own = [name for name, value in vars(tl.core).items() if 'triton' in getattr(value, '__module__', '')]\n"
        "print(*dir(tl), '|', *dir(tl.tensor), '|', *dir(triton), '|', *own)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    language, tensor, package, core = (
        {name for name in part.split() if not name.startswith("_")} for part in done.stdout.split("|")
    )
    assert language - set(dir(tl)) == set()
    assert core - set(dir(tl.core)) - MACHINERY == REFUSED
    assert tensor - set(dir(tl.tensor)) == set()
    assert package - set(dir(triton)) <= {"AsyncCompileMode", "FutureKernel"}
    page = pathlib.Path(inspect.getfile(weft)).parents[2] / "docs" / "Triton.md"
    text = page.read_text()
    assert not [name for name in REFUSED if f"`{name}`" not in text]


@triton.jit
def kinds_of(v):
    if isinstance(v, tl.tuple):
        return 2
    return 1 if isinstance(v, tl.core.base_value) else 0


@triton.jit
def with_kinds(x, N: tl.constexpr, T: tl.constexpr):
    at = tl.arange(0, N)
    tl.static_assert(isinstance(at.type, tl.core.base_type) and isinstance(at, tl.tensor))
    tl.static_assert(isinstance(N, tl.core.base_value) and tl.int32 == T)
    block = tl.make_tensor_descriptor(x, [N], [1], [N])
    tl.static_assert(isinstance(block, tl.core.tensor_descriptor_base) and isinstance(block, tl.core.base_value))
    tl.static_assert(not isinstance(at, tl.tensor_descriptor) and not isinstance((at, at), tl.tensor))
    tl.store(x + at, 100 * kinds_of(at) + 10 * kinds_of((at, at)) + kinds_of(N))


def test_kinds_of_values_are_asked_for():
    x = np.zeros(16, np.int32)
    with_kinds[(1,)](x, 16, tl.str_to_ty("i32", None))
    assert (x == 121).all()
    assert isinstance(tl.constexpr(3), tl.core.base_value) and not isinstance(3, tl.core.base_value)
    assert isinstance(tl.pointer_type(tl.int8), tl.core.base_type) and not isinstance(int, tl.core.base_type)


def test_types_are_read_from_text():
    read = tl.str_to_ty
    pair = collections.namedtuple("pair", ("x", "y"))
    assert read("*ki32", None) == tl.pointer_type(tl.int32, const=True) != read("*i32", None)
    assert read("u1", None) == read("B", None) == tl.int1
    assert read("constexpr", 3) == tl.constexpr_type(3) != tl.constexpr_type(4)
    named = read(pair("i32", "*fp32"), None)
    assert named == tl.tuple_type([tl.int32, tl.pointer_type(tl.float32)], ["x", "y"]) != read(("i32", "*fp32"), None)
    assert str(named) == "[x:int32,y:pointer<fp32>]" and [*named] == [named[0], named[1]] and len(named) == 2
    descriptor = read("tensordesc<fp16[64, 32]>", None)
    assert isinstance(descriptor, tl.tensor_descriptor_type) and descriptor == read("tensordesc<fp16[64,32]>", None)
    assert descriptor.block_type == tl.block_type(tl.float16, [64, 32]) and len(descriptor.shape_type) == 2
    assert len({descriptor, named, tl.constexpr_type(3), read("constexpr", 3)}) == 3
    with pytest.raises(ValueError, match="expected a type such as 'i32', 'fp32' or '\\*fp16', but got 'i3'"):
        read("i3", None)
    with pytest.raises(ValueError, match=r"expected a descriptor such as .* without a layout, but got"):
        read("tensordesc<fp16[64, 32],NVMMASharedLayout()>", None)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_types_of_text_are_written_as_triton_writes_them():
    texts = ["fp16", "*i32", "*ki32", "u64", "B", "fp8e4nv", ("i32", "*fp32"), "constexpr"]
    script = f"import triton.language as tl; print([str(tl.str_to_ty(each, 3)) for each in {texts}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([str(tl.str_to_ty(each, 3)) for each in texts])


COMPILED = """
import torch
import triton
import triton.language as tl


@triton.jit
def doubled(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(x + at) * 2)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        doubled[1,](x, y, N=x.numel())
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy * 2


x = torch.ones(16, requires_grad=True)
y = torch.compile(lambda x: Doubled.apply(x) + 1)(x)
y.sum().backward()
assert torch.equal(y, torch.full((16,), 3.0)) and torch.equal(x.grad, torch.full((16,), 2.0))
print("compiled")
"""


def test_torch_compiles_around_kernels_of_a_replaced_triton(tmp_path):
    script = tmp_path / "compiled.py"
    script.write_text(COMPILED)
    command = [sys.executable, "-m", "weft.triton", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("compiled\n")


def test_files_are_kept_by_a_key(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    kept = triton.runtime.cache.get_cache_manager("key")
    assert kept.get_file("a.so") is None and kept.get_group("all") is None
    path = kept.put(b"code", "a.so")
    assert kept.get_file("a.so") == path and pathlib.Path(path).read_bytes() == b"code"
    assert pathlib.Path(kept.put("text", "a.so")).read_text() == "text"
    assert [each.name for each in pathlib.Path(kept.cache_dir).iterdir()] == ["a.so"]
    kept.put_group("all", {"a.so": path})
    assert triton.runtime.cache.get_cache_manager("key").get_group("all") == {"a.so": path}
    assert triton.runtime.cache.get_cache_manager("other").get_group("all") is None
    pathlib.Path(path).unlink()
    assert kept.get_group("all") is None
    with pytest.raises(weft.Error, match=r"expected the name of a file, without a folder, but got '../a'"):
        kept.put("", "../a")
    with pytest.raises(weft.Error, match=r"expected a key that names a folder, but got '\.\.'"):
        triton.runtime.cache.get_cache_manager("..")
    monkeypatch.setenv("WEFT_CACHE", "0")
    with pytest.raises(weft.Error, match="expected a folder to keep files in, but WEFT_CACHE=0 turns it off"):
        triton.runtime.cache.get_cache_manager("key")


def test_packages_may_ask_for_the_version_of_ptxas():
    from weft.triton.backends.nvidia.compiler import get_ptxas

    if find_tool("ptxas") is None:
        with pytest.raises(weft.Error, match="expected ptxas on PATH"):
            get_ptxas(100)
    else:
        major, minor = map(int, get_ptxas(100).version.split("."))
        assert (major, minor) >= (11, 0)
