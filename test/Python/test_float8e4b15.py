# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""float8e4b15, Triton's format that no machine has: its conversions, bit by bit, against the rule that Triton's inline
PTX computes, written down here for each number."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import simulate

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")

HALVES = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)  # from 0 to the largest


def decoded(codes):
    """Sign, four bits of exponent with bias 15, three of mantissa; no infinities and no NaNs."""
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7) / 8
    size = np.where(exponent == 0, mantissa * 2.0**-14, (1 + mantissa) * 2.0 ** (exponent - 15))
    return np.where(codes >> 7, -size, size)


def encoded(values):
    """float16's magnitude to the nearest multiple of 128 of its bits, halves up, but at most 1.75, NaNs too."""
    bits = values.view(np.uint16).astype(int)
    size = np.minimum(bits & 0x7FFF, 0x3F00)
    return ((bits >> 8 & 0x80) | (size + 64) // 128).astype(np.uint8)


def truncated(values):
    """float32 as float16, toward zero."""
    wide = np.abs(values.astype(np.float64))
    near = HALVES[np.searchsorted(HALVES, np.where(np.isnan(wide), 0, wide), side="right") - 1]
    return np.copysign(np.where(np.isfinite(wide), near, wide), values).astype(np.float16)


@weft.jit
def widen(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    codes = wl.load((x + at).to(wl.pointer_type(wl.float8e4b15)))
    wl.store(y + at, codes.to(y.dtype.element_ty))


@weft.jit
def narrow(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at).to(wl.float8e4b15).to(wl.uint8, bitcast=True))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int32])
def test_every_number_is_read(kind):
    x, y = np.arange(256, dtype=np.uint8), np.full(256, 77, kind)
    simulate(widen, (1,), x, y, N=256)
    np.testing.assert_array_equal(y, decoded(x).astype(kind))


def test_every_float16_is_written():
    x = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    for part in np.split(x, 8):
        y = np.full(part.size, 77, np.uint8)
        simulate(narrow, (1,), part.copy(), y, N=part.size)
        np.testing.assert_array_equal(y, encoded(part))


def test_float32_is_cut_to_float16_before():
    x = (rng.standard_normal(4096) * 2.0 ** rng.integers(-26, 3, 4096)).astype(np.float32)
    x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, 1.75, 1e-9, 3e38]
    x[8:520] = (decoded(rng.integers(0, 255, 512).astype(np.uint8)) * 1.03125).astype(np.float32)  # near the halves
    y = np.full(x.size, 77, np.uint8)
    simulate(narrow, (1,), x, y, N=x.size)
    np.testing.assert_array_equal(y, encoded(truncated(x)))


@weft.jit
def constants(y, V: wl.constexpr):
    at = wl.arange(0, 32)
    wl.store(y + at, wl.full((32,), V, wl.float8e4b15).to(wl.uint8, bitcast=True))


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1, -1.0, 0.3, -1.9, 1e-5, 2.0**-17, 6.1e-5, 1e30, float("inf"), float("nan")]
)
def test_constants_are_what_conversions_give(value):
    y = np.full(32, 77, np.uint8)
    simulate(constants, (1,), y, V=value)
    assert set(y) == {encoded(truncated(np.array([value], np.float32)))[0]}


@weft.jit
def product(a, b, c):
    i, j = wl.arange(0, 16)[:, None], wl.arange(0, 16)[None, :]
    at = i * 16 + j
    eight = wl.pointer_type(wl.float8e4b15)
    wl.store(c + at, wl.dot(wl.load((a + at).to(eight)), wl.load((b + at).to(eight))))


def test_products_are_those_of_float16():
    a, b = (rng.integers(0, 256, (16, 16)).astype(np.uint8) for _ in range(2))
    c = np.full((16, 16), np.nan, np.float32)
    simulate(product, (1,), a, b, c)
    assert np.abs(c - decoded(a) @ decoded(b)).max() < 1e-5


def test_pointers_of_it_are_arguments():
    made = narrow_pointer.compile("x:*fp16, y:*fp8e4b15")
    x, y = rng.standard_normal(64).astype(np.float16), np.full(64, 77, np.uint8)
    weft.simulator.launch(made.ptx, made.name, (1,), 128, [x, y], shared=made.shared_bytes)
    np.testing.assert_array_equal(y, encoded(x))


@weft.jit
def narrow_pointer(x, y):
    at = wl.arange(0, 64)
    wl.store(y + at, wl.load(x + at))


@weft.jit
def computes(x, HOW: wl.constexpr):
    value = wl.load((x + wl.arange(0, 32)).to(wl.pointer_type(wl.float8e4b15)))
    if HOW == "+":
        value = value + value
    elif HOW == "<":
        value = wl.where(value < value, value, value)
    elif HOW == "fma":
        value = wl.fma(value, value, value)
    elif HOW == "-":
        value = -value
    else:
        value = wl.maximum(value, value)
    wl.store(x + wl.arange(0, 32), value.to(wl.uint8, bitcast=True))


@pytest.mark.parametrize("how", ["+", "<", "fma", "-", "maximum"])
def test_arithmetic_is_refused(how):
    """Its bits are integers below, which nothing may add or compare in its name."""
    with pytest.raises(weft.CompilationError, match="fp8e4b15"):
        computes.compile("x:*u8", constants={"HOW": how})


@weft.jit
def magnitude(x, y, z):
    at = wl.arange(0, 256)
    value = wl.load((x + at).to(wl.pointer_type(wl.float8e4b15)))
    wl.store(y + at, wl.abs(value).to(wl.float32))
    wl.store(z + at, value.to(wl.int1).to(wl.uint8))


def test_magnitudes_and_truths():
    x, y, z = np.arange(256, dtype=np.uint8), np.full(256, np.nan, np.float32), np.full(256, 77, np.uint8)
    simulate(magnitude, (1,), x, y, z)
    np.testing.assert_array_equal(y, np.abs(decoded(x)))
    np.testing.assert_array_equal(z, decoded(x) != 0)


@weft.jit
def widened(x, y, n, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + at, wl.load(x + at, at < n, 0), at < n)


def test_wrappers_of_tensors():
    """Torch has no such type: tensors of bytes stand for those of it."""
    torch, triton = pytest.importorskip("torch"), pytest.importorskip("weft.triton")
    codes = torch.arange(256, dtype=torch.uint8)
    wrapped, values = triton.reinterpret(codes, wl.float8e4b15), torch.full((256,), torch.nan)
    widened[(2,)](wrapped, values, 256, BLOCK=128)
    np.testing.assert_array_equal(values.numpy(), decoded(codes.numpy()))
    back = wrapped.new_empty((256,))
    widened[(2,)](values, back, 256, BLOCK=128)
    assert back.dtype is wl.float8e4b15 and back.stride(0) == back.element_size() == 1
    kept = codes.numpy() & 127 != 127  # the greatest number stands for those that are out of range
    np.testing.assert_array_equal(back.base.numpy()[kept], codes.numpy()[kept])
    assert torch.equal(triton.reinterpret(wrapped, torch.uint8), codes) and wrapped.clone().base is not codes
    with pytest.raises(weft.Error, match="out-of-bounds"):
        widened[(3,)](wrapped, torch.zeros(300), 300, BLOCK=128)
