# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy whose elements are of ml_dtypes (JAX brings it), and their bits as integers: taken where tensors of
torch of the type are taken, with the same bits in the results."""

import sys

import numpy as np
import pytest
import torch
import weft
import weft.language as wl

BITS = {"bfloat16": np.uint16, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}
EIGHT = ("float8_e4m3fn", "float8_e5m2")


@pytest.fixture
def ml_dtypes():
    return pytest.importorskip("ml_dtypes")


def of_torch(tensor, ml_dtypes):
    """A tensor as an array of ml_dtypes, or of NumPy."""
    kind = str(tensor.dtype).removeprefix("torch.")
    if kind not in BITS:
        return tensor.numpy()
    bits = tensor.view(torch.uint16 if tensor.element_size() == 2 else torch.uint8)
    return bits.numpy().view(getattr(ml_dtypes, kind))


def bits_of(array):
    """The elements of an array or a tensor as integers."""
    if isinstance(array, torch.Tensor):
        return array.view(torch.uint16 if array.element_size() == 2 else torch.uint8).numpy()
    return array.view(f"u{array.itemsize}")


@weft.jit
def doubled(x, y, n, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + at, (wl.load(x + at, mask=at < n).to(wl.float32) * 2).to(y.dtype.element_ty), mask=at < n)


@pytest.mark.parametrize("kind", BITS)
def test_kernels(kind, ml_dtypes, seed):
    given = torch.randn(70, generator=torch.Generator().manual_seed(seed)).to(getattr(torch, kind))
    expected = torch.empty_like(given)
    doubled[(2,)](given, expected, 70, BLOCK=64)
    x = of_torch(given, ml_dtypes)
    for _ in range(3):  # compiled, then by the key of a known call
        y = np.zeros_like(x)
        doubled[(2,)](x, y, 70, BLOCK=64)
        assert y.dtype == x.dtype and np.array_equal(bits_of(y), bits_of(expected))
    strided = np.repeat(x, 2)[::2]  # what kernels use is the memory
    doubled[(1,)](strided, y, 1, BLOCK=64)
    assert bits_of(y)[0] == bits_of(expected)[0]
    wide = np.zeros(70, np.float32)
    doubled[(2,)](x, wide, 70, BLOCK=64)
    assert np.array_equal(wide, 2 * given.float().numpy())
    narrow = np.zeros(70, np.float16)  # another kernel, of other types
    doubled[(2,)](narrow, y, 70, BLOCK=64)
    assert not y.astype(np.float32).any()


def test_what_may_not_be_written(ml_dtypes):
    y = np.zeros(70, ml_dtypes.bfloat16)
    y.flags.writeable = False
    with pytest.raises(Exception, match=r"read-only|not writ|may not"):
        doubled[(2,)](np.ones(70, ml_dtypes.bfloat16), y, 70, BLOCK=64)


@weft.program
def attended(q, k, v):
    return weft.softmax(q, k.to(q.dtype), weft.causal()) @ v.to(q.dtype)


def heads(seed, *kinds):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 2, 40, 32, generator=generator).to(getattr(torch, kind)) for kind in kinds]


def test_programs_of_bfloat16(ml_dtypes, seed):
    """Results and gradients are of ml_dtypes too."""
    given = heads(seed, *["bfloat16"] * 4)
    arrays = [of_torch(each, ml_dtypes) for each in given]
    expected, saved = attended.forward(*given[:3])
    out, kept = attended.forward(*arrays[:3])
    assert out.dtype == ml_dtypes.bfloat16 and np.array_equal(bits_of(out), bits_of(expected))
    wanted, found = attended.backward(saved, given[3]), attended.backward(kept, arrays[3])
    for name, gradient in found.items():
        assert gradient.dtype == ml_dtypes.bfloat16 and np.array_equal(bits_of(gradient), bits_of(wanted[name]))
    assert np.array_equal(bits_of(attended(*arrays[:3])), bits_of(expected))
    # a last axis that is not contiguous is copied
    turned = [np.ascontiguousarray(each.swapaxes(2, 3)).swapaxes(2, 3) for each in arrays[:3]]
    assert np.array_equal(bits_of(attended(*turned)), bits_of(expected))
    # beside a tensor of torch the results are torch's
    mixed = attended(given[0], *arrays[1:3])
    assert torch.equal(mixed, expected)


@pytest.mark.parametrize("kind", EIGHT)
def test_programs_of_eight_bits(kind, ml_dtypes, seed):
    given = heads(seed, "float16", kind, kind)
    expected = attended(*given).numpy()
    arrays = [of_torch(each, ml_dtypes) for each in given]
    assert np.array_equal(attended(*arrays), expected)
    assert torch.equal(attended(given[0], *arrays[1:]), torch.from_numpy(expected))


@weft.program
def noted(q, k: "fp8e5[1, 2, 40, 32]", v: "bf16[1, 2, 40, 32]"):  # noqa: F821
    return weft.softmax(q, k.to(q.dtype), weft.causal()) @ v.to(q.dtype)


def test_bits_are_what_annotations_say(seed):
    given = heads(seed, "float16", "float8_e5m2", "bfloat16")
    expected = noted(*given).numpy()
    assert np.array_equal(noted(given[0].numpy(), bits_of(given[1]), bits_of(given[2])), expected)
    with pytest.raises(weft.CompilationError, match=r"expected 'k' of .* but got uint8"):
        attended(given[0].numpy(), bits_of(given[1]), given[0].numpy())


SIGNATURE = "q: fp16[B,H,N,32], k: KIND[B,H,N,32], v: KIND[B,H,N,32]"


@pytest.mark.parametrize("kind", BITS)
def test_programs_of_libraries(kind, seed):
    """Bits as integers, and arrays of ml_dtypes where there is ml_dtypes."""
    short = {"bfloat16": "bf16", "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}[kind]
    library = attended.compile("sm_80", SIGNATURE.replace("KIND", short), differentiate=False)
    program = library.program("attended")
    given = heads(seed, "float16", kind, kind)
    expected = program(*given).numpy()
    assert np.array_equal(program(given[0].numpy(), *map(bits_of, given[1:])), expected)
    if "ml_dtypes" in sys.modules:
        arrays = [of_torch(each, sys.modules["ml_dtypes"]) for each in given]
        assert np.array_equal(program(*arrays), expected)
    with pytest.raises(weft.Error, match="'k'"):
        program(given[0].numpy(), *(bits_of(each).astype(np.uint32) for each in given[1:]))


def test_outputs_of_the_caller(ml_dtypes, seed):
    """Written in place, of ml_dtypes or as bits; of another type they are refused."""
    signature = SIGNATURE.replace("KIND", "bf16").replace("fp16", "bf16")
    program = attended.compile("sm_80", signature, differentiate=False).program("attended")
    given = heads(seed, *["bfloat16"] * 3)
    arrays = [of_torch(each, ml_dtypes) for each in given]
    expected = bits_of(program(*given))
    poisoned = program(*arrays, poison=True)
    assert poisoned.dtype == ml_dtypes.bfloat16 and np.array_equal(bits_of(poisoned), expected)
    for out in (np.zeros(arrays[0].shape, ml_dtypes.bfloat16), np.zeros(arrays[0].shape, np.uint16)):
        program.run(arrays, [out])
        assert np.array_equal(bits_of(out), expected)
    with pytest.raises(weft.Error, match="'out'"):
        program.run(arrays, [np.zeros(arrays[0].shape, ml_dtypes.float8_e5m2)])


@pytest.mark.parametrize("kind", ["float8_e4m3b11fnuz", "float8_e4m3", "int4"])
def test_types_that_kernels_lack(kind, ml_dtypes):
    array = np.zeros((1, 2, 40, 32), getattr(ml_dtypes, kind))
    with pytest.raises(weft.CompilationError, match=f"expected 'q' of .* but got {kind}"):
        attended(array, array, array)
    with pytest.raises(TypeError, match=f"but got {kind}"):
        doubled[(1,)](array, array, 64, BLOCK=64)


COPY = """.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 x, .param .u64 y) {
  .reg .b64 %a<4>; .reg .b16 %v; .reg .b32 %t; .reg .b64 %o;
  ld.param.u64 %a1, [x]; ld.param.u64 %a2, [y]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 2;
  add.s64 %a1, %a1, %o; add.s64 %a2, %a2, %o; ld.global.b16 %v, [%a1]; st.global.b16 [%a2], %v; ret;
}
"""


def test_the_simulator(ml_dtypes):
    x = np.arange(32).astype(ml_dtypes.bfloat16)
    y = np.zeros(32, ml_dtypes.bfloat16)
    report = weft.simulator.launch(COPY, "copy", (1,), 32, [x, y])
    assert not report.findings and np.array_equal(bits_of(x), bits_of(y))
