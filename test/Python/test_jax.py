# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.jax: programs as functions that JAX compiles, differentiates and batches; XLA calls their kernels on a CPU."""

import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
import weft.jax  # noqa: E402

pytestmark = pytest.mark.ecosystem
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def on_the_simulator(monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", "simulator")
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def operands(seed, *shapes, dtype=np.float32):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def reference(q, k, v):
    """Causal attention in the type of its arguments, by plain JAX."""
    n = q.shape[-2]
    scores = jnp.einsum("bhnd,bhmd->bhnm", q, k) / np.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -jnp.inf)
    return jax.nn.softmax(scores, -1) @ v


def expected(function, *arrays):
    """``function`` of plain JAX in float64, as NumPy arrays."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, function(*(jnp.asarray(each, jnp.float64) for each in arrays)))


def weighted(function, weights):
    return lambda *arrays: (function(*arrays) * weights).sum()


def near(got, wanted, within=2e-6):
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted)
    assert got.shape == wanted.shape
    assert np.isfinite(got).all()
    assert np.abs(got - wanted).max() <= within * max(1, np.abs(wanted).max())


def test_values_and_gradients(seed):
    q, k, v, weights = operands(seed, *[(1, 2, 20, 32)] * 4)
    wrapped = weft.jax.wrap(causal)
    out = wrapped(q, k, v)
    assert isinstance(out, jax.Array) and out.dtype == jnp.float32
    near(out, expected(reference, q, k, v))
    assert np.array_equal(jax.jit(wrapped)(q, k, v), out)
    assert np.array_equal(np.asarray(out), causal(q, k, v))  # NumPy's bits, and torch's
    assert np.array_equal(np.asarray(out), causal(*map(torch.from_numpy, (q, k, v))).numpy())
    found = jax.jit(jax.grad(weighted(wrapped, weights), (0, 1, 2)))(q, k, v)
    wanted = expected(jax.grad(weighted(reference, weights), (0, 1, 2)), q, k, v)
    for got, want in zip(found, wanted, strict=True):
        near(got, want)


def test_vmap(seed):
    q, k, v, weights = operands(seed, (3, 1, 2, 12, 16), *[(1, 2, 12, 16)] * 3)
    wrapped = weft.jax.wrap(causal)
    batched = jax.jit(jax.vmap(wrapped, (0, None, None)))(q, k, v)
    gradients = jax.vmap(jax.grad(weighted(wrapped, weights), (0, 2)), (0, None, None))(q, k, v)
    for i in range(3):  # the same bits as one after the other
        assert np.array_equal(batched[i], wrapped(q[i], k, v))
        alone = jax.grad(weighted(wrapped, weights), (0, 2))(q[i], k, v)
        assert all(np.array_equal(many[i], one) for many, one in zip(gradients, alone, strict=True))


def calls_of(function, *arrays):
    """How many calls of a program code has, and whether it has a loop."""
    text = str(jax.make_jaxpr(function)(*arrays))
    return text.count("ffi_call["), "scan[" in text or "while[" in text


def test_vmap_becomes_part_of_the_batch(seed):
    q, k, v, weights = operands(seed, (2, 3, 1, 2, 12, 16), (3, 1, 2, 12, 16), (1, 2, 12, 16), (1, 2, 12, 16))
    wrapped = weft.jax.wrap(causal)
    inner = jax.vmap(wrapped, (0, 0, None))
    assert calls_of(inner, q[0], k, v) == (1, False)
    both = jax.vmap(inner, (0, None, None))
    assert calls_of(both, q, k, v) == (1, False)
    out = both(q, k, v)
    per_sample = jax.vmap(jax.grad(weighted(wrapped, weights), (0, 2)), (0, 0, None))
    assert calls_of(per_sample, q[0], k, v) == (2, False)
    gradients = per_sample(q[0], k, v)
    for j in range(3):
        near(out[1, j], expected(reference, q[1, j], k[j], v))
        wanted = expected(jax.grad(weighted(reference, weights), (0, 2)), q[0, j], k[j], v)
        for many, one in zip(gradients, wanted, strict=True):
            near(many[j], one)


def test_vmap_without_a_batch_runs_one_after_the_other(seed):
    @weft.program
    def scaled(x, scales):
        return x * scales

    x, scales = operands(seed, (3, 5, 8), (3, 8))
    out = jax.vmap(weft.jax.wrap(scaled))(x, scales)
    near(out, x * scales[:, None])


def test_starts_of_packed_sequences_are_looked_at(seed):
    def packed(q, k, v, starts):
        return weft.attention.attend(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts)

    q, k, v = operands(seed, *[(1, 1, 12, 16)] * 3)
    wrapped = weft.jax.wrap(packed)
    starts = np.array([0, 5, 12], np.int32)
    near(wrapped(q, k, v, starts), weft.attention.attend(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts))
    with pytest.raises(weft.Error, match=r"to rise from 0 to the number of tokens, 12, but got \[0, 7, 5, 12\]"):
        wrapped(q, k, v, np.array([0, 7, 5, 12], np.int32))
    compiled = jax.jit(wrapped)
    near(compiled(q, k, v, starts), wrapped(q, k, v, starts))
    with pytest.raises(
        jax.errors.JaxRuntimeError, match=r"rise from 0 to the number of tokens, N = 12, but got \[0, 7, "
    ):
        compiled(q, k, v, np.array([0, 7, 5, 12], np.int32)).block_until_ready()


@pytest.mark.parametrize(
    "starts", [[0, 7, 5, 12], [1, 5, 8, 12], [0, 5, 8, 11], [0, 5, 8, 13], [0, -3, 8, 12]], ids=str
)
def test_starts_that_nobody_sees_give_nan_where_they_do_not_fit(seed, starts, monkeypatch):
    """As on a GPU: the runtime of a CPU, which sees them, is told nothing of starts."""
    monkeypatch.setattr("weft.programs.emit.Emitter._starts", lambda emitter, argument: [])

    def packed(q, k, v, starts):
        return weft.attention.attend(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts)

    arrays, right = operands(seed, *[(1, 1, 12, 16)] * 3), np.array([0, 5, 5, 12], np.int32)
    wrapped = weft.jax.wrap(packed)
    compiled = jax.jit(wrapped)
    assert np.array_equal(compiled(*arrays, right), wrapped(*arrays, right))
    gradients = jax.jit(jax.grad(lambda q, k, v, s: wrapped(q, k, v, s).sum(), (0, 1, 2)))
    assert all(np.isfinite(each).all() for each in gradients(*arrays, right))
    wrong = np.array(starts, np.int32)
    assert np.isnan(compiled(*arrays, wrong)).all()
    assert all(np.isnan(each).any() for each in gradients(*arrays, wrong))
    both = jax.vmap(wrapped, (None, None, None, 0))(*arrays, np.stack([right, wrong]))
    assert np.array_equal(both[0], wrapped(*arrays, right)) and np.isnan(both[1]).all()


def test_without_jax_the_remedy_is_named():
    script = """
import sys
sys.modules["jax"] = None  # as where it is not installed
import weft
assert not hasattr(weft, "jax")
import weft.jax
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "ModuleNotFoundError: weft.jax needs jax, which is not installed: pip install jax" in done.stderr


def test_results_without_gradients(seed):
    x, y = map(jnp.asarray, operands(seed, (3, 4), (3, 4)))
    larger = weft.jax.wrap(lambda x, y: x > y)
    found = jax.grad(lambda x: jnp.where(larger(x, y), x, 0.0).sum())(x)
    assert (np.asarray(found) == np.asarray(x > y)).all()


def test_half_precision_and_other_lengths(seed):
    wrapped = jax.jit(weft.jax.wrap(causal))
    for dtype, n, within in ((jnp.float16, 17, 4e-3), (jnp.bfloat16, 33, 3e-2)):
        q, k, v = (jnp.asarray(each, dtype) for each in operands(seed, *[(2, 1, n, 16)] * 3))
        out = wrapped(q, k, v)
        assert out.dtype == dtype
        near(out.astype(jnp.float32), expected(reference, q, k, v), within)


def test_what_a_program_takes_and_gives(seed):
    """Values of every kind: dicts, integers that have no gradient, numbers that are fixed, arrays from around."""
    (around,) = operands(seed, (24,))

    @weft.program
    def several(x, parts, chosen, *, scale):
        total = x * scale + parts["shift"]
        return {"sum": total * around, "chosen": weft.where(chosen > 0, total, 0.0), "same": x}

    x, shift = operands(seed + 1, (2, 5, 24), (2, 5, 24))
    chosen = np.random.default_rng(seed).integers(-2, 3, (2, 5, 24), dtype=np.int32)
    wrapped = weft.jax.wrap(several)

    def total(x, shift):
        found = wrapped(x, {"shift": shift}, chosen, scale=3.0)
        assert set(found) == {"sum", "chosen", "same"}
        return found["sum"].sum() + (2 * found["chosen"]).sum() + found["same"].sum()

    value, (dx, dshift) = jax.jit(jax.value_and_grad(total, (0, 1)))(x, shift)
    sums = (x.astype(np.float64) * 3 + shift) * around
    near(value, sums.sum() + 2 * np.where(chosen > 0, x.astype(np.float64) * 3 + shift, 0).sum() + x.sum(), 1e-4)
    near(dshift, around + 2.0 * (chosen > 0))
    near(dx, 3 * (around + 2.0 * (chosen > 0)) + 1)


def test_a_function_and_a_mechanism(seed):
    def local(q, k, v, *, window):
        return weft.attention.attend(q, k, v, weft.window(window, 0))

    q, k, v = operands(seed, *[(1, 1, 24, 16)] * 3)
    wrapped = weft.jax.wrap(local)
    out = jax.jit(lambda *arrays: wrapped(*arrays, window=3))(q, k, v)
    near(out, weft.attention.attend(q, k, v, weft.window(3, 0)))


def test_a_library(tmp_path, seed):
    signature = "q:fp32[B,H,N,16]:16, k:fp32[B,H,N,16]:16, v:fp32[B,H,N,16]:16"
    library = causal.compile("sm_80", signature, tmp_path / "lib")
    attend = weft.jax.wrap(library, "causal")
    q, k, v, weights = operands(seed, *[(1, 2, 12, 16)] * 4)
    assert np.array_equal(attend(q, v=v, k=k), library.run("causal", q, k, v))
    found = jax.jit(jax.grad(weighted(attend, weights), (0, 1, 2)))(q, k, v)
    wanted = expected(jax.grad(weighted(reference, weights), (0, 1, 2)), q, k, v)
    for got, want in zip(found, wanted, strict=True):
        near(got, want)
    with pytest.raises(TypeError, match=r"'causal': expected 'k' to be fp32\[B, H, N, 16\], but got fp32\[12, 16\]"):
        attend(q, k[0, 0], v)
    with pytest.raises(TypeError, match=r"expected 'q' to be fp32.*, but got fp16"):
        jax.jit(attend)(q.astype(np.float16), k, v)
    with pytest.raises(Exception, match="expected") as refused:  # a size that another says
        jax.block_until_ready(attend(q, k[:, :, :7], v))
    assert "'k'" in str(refused.value)
    with pytest.raises(TypeError, match="expected the name of a program, one of causal"):
        weft.jax.wrap(library)
    with pytest.raises(KeyError, match="has no program 'other'"):
        weft.jax.wrap(library, "other")


def test_what_is_refused(seed):
    q, k, v = operands(seed, *[(1, 1, 8, 16)] * 3)
    wrapped = weft.jax.wrap(causal)
    with pytest.raises(TypeError, match="expected a program, a function to make one of, or a library, but got 3"):
        weft.jax.wrap(3)
    with pytest.raises(weft.CompilationError, match=r"'q'.*uint8"):
        wrapped(q.astype(np.uint8), k, v)
    with pytest.raises(TypeError, match="jvp"):  # forward mode
        jax.jvp(wrapped, (q, k, v), (q, k, v))
    with pytest.raises(Exception, match="differentiate"):  # second order
        jax.grad(lambda x: jax.grad(lambda y: (wrapped(y, k, v) ** 2).sum())(x).sum())(jnp.asarray(q))
    foreign = jax.ffi.ffi_call("weft_program", jax.ShapeDtypeStruct(q.shape, q.dtype))
    with pytest.raises(Exception, match=r"expected a program that weft\.jax\.wrap has registered in this process"):
        jax.block_until_ready(foreign(q, program="none"))
    with pytest.raises(Exception, match="expected the attribute 'program'"):
        jax.block_until_ready(foreign(q))


CHECKED = """
#include "python/bindings/XlaFfi.h"
#include "xla/ffi/api/c_api.h"
namespace ours = weft::python::xla;
#define SAME(mine, field, theirs, other) static_assert(offsetof(ours::mine, field) == offsetof(theirs, other))
static_assert(XLA_FFI_API_MAJOR == ours::versionMajor && XLA_FFI_API_MINOR >= ours::versionMinor);
static_assert(ours::errorInvalidArgument == XLA_FFI_Error_Code_INVALID_ARGUMENT);
static_assert(ours::errorNotFound == XLA_FFI_Error_Code_NOT_FOUND);
static_assert(ours::errorExhausted == XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
static_assert(ours::errorPrecondition == XLA_FFI_Error_Code_FAILED_PRECONDITION);
static_assert(ours::errorInternal == XLA_FFI_Error_Code_INTERNAL);
static_assert(ours::extensionMetadata == XLA_FFI_Extension_Metadata);
static_assert(ours::attributeText == XLA_FFI_AttrType_STRING);
static_assert(ours::kindBuffer == XLA_FFI_ArgType_BUFFER && ours::kindBuffer == XLA_FFI_RetType_BUFFER);
static_assert(XLA_FFI_DataType_PRED == 1 && XLA_FFI_DataType_S8 == 2 && XLA_FFI_DataType_S32 == 4);
static_assert(XLA_FFI_DataType_S64 == 5 && XLA_FFI_DataType_F16 == 10 && XLA_FFI_DataType_F32 == 11);
static_assert(XLA_FFI_DataType_BF16 == 16);
static_assert(sizeof(ours::Version) == sizeof(XLA_FFI_Api_Version));
static_assert(sizeof(ours::Text) == sizeof(XLA_FFI_ByteSpan));
SAME(Metadata, version, XLA_FFI_Metadata, api_version);
SAME(Metadata, traits, XLA_FFI_Metadata, traits);
SAME(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);
SAME(Buffer, type, XLA_FFI_Buffer, dtype);
SAME(Buffer, data, XLA_FFI_Buffer, data);
SAME(Buffer, rank, XLA_FFI_Buffer, rank);
SAME(Buffer, dims, XLA_FFI_Buffer, dims);
SAME(Buffers, items, XLA_FFI_Args, args);
SAME(Buffers, items, XLA_FFI_Rets, rets);
SAME(Attributes, names, XLA_FFI_Attrs, names);
SAME(Attributes, values, XLA_FFI_Attrs, attrs);
SAME(CallFrame, api, XLA_FFI_CallFrame, api);
SAME(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
SAME(Api, errorCreate, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME(Api, streamGet, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME(Api, allocate, XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate);
SAME(Api, free, XLA_FFI_Api, XLA_FFI_DeviceMemory_Free);
SAME(Api, ordinalGet, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);
SAME(ErrorCreateArgs, code, XLA_FFI_Error_Create_Args, errc);
SAME(StreamGetArgs, stream, XLA_FFI_Stream_Get_Args, stream);
SAME(AllocateArgs, data, XLA_FFI_DeviceMemory_Allocate_Args, data);
SAME(FreeArgs, data, XLA_FFI_DeviceMemory_Free_Args, data);
SAME(OrdinalGetArgs, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
"""


def test_the_interface_is_xlas(tmp_path):
    compiler = shutil.which("clang++-22")
    if compiler is None:
        pytest.skip("needs clang++-22")
    (tmp_path / "checked.cpp").write_text(CHECKED)
    flags = ["-std=c++20", "-fsyntax-only", f"-I{ROOT}", "-isystem", jax.ffi.include_dir()]
    subprocess.run([compiler, *flags, tmp_path / "checked.cpp"], check=True)
