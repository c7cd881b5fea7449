# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools.mxfp`` against the formats' definitions, computed in float64 and by exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
import torch
import weft.triton as triton
import weft.triton.language as tl
from weft.triton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32


def element(code: int) -> float:
    """A number of the form E2M1 by its fields: bias 1, subnormal where the exponent is 0."""
    sign, exponent, mantissa = code >> 3, code >> 1 & 3, code & 1
    size = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return -size if sign else size


def nearest(value: float) -> int:
    """The code of the nearest element, the even one of two, found among all of them."""
    sign = 8 if np.signbit(value) else 0
    if not np.isfinite(value):
        return sign | 7
    distance = lambda code: abs(Fraction(element(code)) - abs(Fraction(value)))  # noqa: E731
    return sign | min(range(8), key=lambda code: (distance(code), code & 1))


def hard_numbers(rng: np.random.Generator) -> np.ndarray:
    """Elements, what lies in the middle of two and beside it, what is too large or too small, and others."""
    sizes = np.arange(0, 33) / 4.0
    beside = np.concatenate([sizes, np.nextafter(sizes, np.inf), np.nextafter(sizes, -np.inf)])
    others = [rng.standard_normal(200) * 3, [1e30, 1e-30, 5e-324, np.inf, np.nan, -0.0, 6.5, 7.0]]
    values = np.concatenate([beside, *others])
    return np.concatenate([values, -values])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_numbers_become_the_nearest_elements(dtype, seed):
    numbers = torch.from_numpy(hard_numbers(np.random.default_rng(seed))).to(dtype)
    made = MXFP4Tensor(data=numbers)
    assert made.data.dtype == torch.uint8 and made.device == numbers.device
    assert made.data.tolist() == [nearest(value) for value in numbers.double().tolist()]
    np.testing.assert_array_equal(made.to(torch.float64).numpy(), [element(nearest(v)) for v in numbers.tolist()])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_elements_are_numbers_of_every_float(dtype):
    made = MXFP4Tensor(size=16)
    made.data = torch.arange(16, dtype=torch.uint8)
    assert made.to(dtype).dtype == dtype and made.to(dtype).tolist() == [element(code) for code in range(16)]
    assert MXFP4Tensor(data=made.to(dtype)).data.tolist() == list(range(16))  # the sign of zero among them
    with pytest.raises(TypeError, match=r"expected a type among torch.float32, .* but got torch.int32"):
        made.to(torch.int32)


@pytest.mark.parametrize("shape", [(4, 6), (3, 5), (1, 2), (2, 3, 7)])
def test_two_elements_a_byte(shape, seed):
    torch.manual_seed(seed)
    made = MXFP4Tensor(size=shape).random()
    for axis in range(len(shape)):
        packed = made.to_packed_tensor(dim=axis)
        codes = np.moveaxis(made.data.numpy(), axis, -1)
        odd = np.concatenate([codes, np.zeros_like(codes[..., :1])], -1)[..., 1::2]
        wanted = codes[..., 0::2] + 16 * odd[..., : (shape[axis] + 1) // 2]
        np.testing.assert_array_equal(np.moveaxis(packed.numpy(), axis, -1), wanted)
        assert torch.equal(made.unpack_packed_tensor(packed, axis, shape), made.data)
    with pytest.raises(ValueError, match="expected 'dim' to be an axis of"):
        made.to_packed_tensor(dim=len(shape))
    with pytest.raises(ValueError, match=r"expected a tensor of two elements a byte along axis 0 of .* but got one"):
        made.unpack_packed_tensor(made.data.repeat(4, *[1] * (len(shape) - 1)), 0, shape)


def scale(value: float) -> float:
    """The greatest power of two that is not above a number, of those of E8M0, by exact comparison."""
    if not 0 < value < np.inf:
        return np.nan
    return max((2.0**e for e in range(-127, 128) if Fraction(2) ** e <= Fraction(value)), default=2.0**-127)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_numbers_become_scales(dtype, seed):
    powers = 2.0 ** np.arange(-149, 128)
    exact = torch.from_numpy(np.concatenate([powers, 3 * powers[:-2], np.exp(np.linspace(-99, 88, 99))])).to(dtype)
    beside = [torch.nextafter(exact, torch.full_like(exact, to)) for to in (0.0, np.inf)]
    rest = torch.tensor([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1.0], dtype=dtype)
    numbers = torch.cat([exact, *beside, rest])
    made = MXScaleTensor(data=numbers)
    wanted = np.array([scale(value) for value in numbers.tolist()])
    np.testing.assert_array_equal(made.to(torch.float64).numpy(), wanted)
    np.testing.assert_array_equal(made.to(torch.float32).numpy(), wanted)
    np.testing.assert_array_equal(fp8e8m0_to_float32(made.data).numpy(), wanted)
    assert torch.equal(made.data == 255, torch.from_numpy(np.isnan(wanted)))


def test_all_scales_are_those_of_torch():
    codes = torch.arange(256).to(torch.uint8)
    theirs = codes.view(torch.float8_e8m0fnu)
    assert torch.equal(fp8e8m0_to_float32(theirs).nan_to_num(-1), theirs.float().nan_to_num(-1))
    made = MXScaleTensor(size=256)
    made.data = codes
    assert torch.equal(made.to(torch.bfloat16).double().nan_to_num(-1), made.to(torch.float64).nan_to_num(-1))
    with pytest.raises(TypeError, match=r"but got torch.float16"):
        made.to(torch.float16)


def test_random_scales_are_within_their_bounds(seed):
    torch.manual_seed(seed)
    drawn = MXScaleTensor(size=(4, 100)).random(low=0.3, high=5.0)
    assert drawn.to(torch.float32).unique().tolist() == [0.5, 1.0, 2.0, 4.0]
    assert MXScaleTensor(size=9).random(low=2.0, high=2.0).to(torch.float32).tolist() == [2.0] * 9
    assert MXScaleTensor(size=(5000,)).random().data.max() <= 254
    assert MXFP4Tensor(size=5000).random().data.unique().tolist() == list(range(16))
    with pytest.raises(
        ValueError, match=r"a power of two from 2\^-127 to 2\^127 between 5.0 and 7.0, but there is none"
    ):
        MXScaleTensor(size=1).random(5.0, 7.0)
    with pytest.raises(ValueError, match="expected 'low' to be a positive number, but got 0"):
        MXScaleTensor(size=1).random(0)


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="expected a torch tensor of numbers, but got list"):
        MXFP4Tensor(data=[1.0])
    with pytest.raises(ValueError, match="expected 'data', a tensor, or 'size', a shape, but got neither"):
        MXScaleTensor()


@triton.jit
def product(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 2), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * (K // 2) + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    x_scale = tl.load(sa + m[:, None] * (K // 32) + g[None, :])
    y_scale = tl.load(sb + n[:, None] * (K // 32) + g[None, :])
    made = tl.dot_scaled(x, x_scale, "e2m1", y, y_scale, "e2m1")
    tl.store(c + m[:, None] * N + n[None, :], made)


def test_a_product_of_scaled_elements(seed):
    torch.manual_seed(seed)
    m, n, k = 32, 16, 64
    a, b = MXFP4Tensor(size=(m, k)).random(), MXFP4Tensor(size=(k, n)).random()
    sa, sb = (MXScaleTensor(size=(rows, k // 32)).random(low=0.25, high=4.0) for rows in (m, n))
    c = torch.zeros(m, n)
    product[(1,)](a.to_packed_tensor(1), sa.data, b.to_packed_tensor(0), sb.data, c, m, n, k)
    left = a.to(torch.float64) * sa.to(torch.float64).repeat_interleave(32, 1)
    right = b.to(torch.float64) * sb.to(torch.float64).repeat_interleave(32, 1).T
    torch.testing.assert_close(c.double(), left @ right, rtol=1e-6, atol=1e-6)


def test_results_are_those_of_the_installed_triton(seed):
    theirs = pytest.importorskip("triton.tools.mxfp")
    numbers = torch.from_numpy(hard_numbers(np.random.default_rng(seed))).float()
    numbers = numbers[~(numbers.abs() == 1e30)]  # which becomes 0 there
    assert torch.equal(theirs.MXFP4Tensor(data=numbers.clone()).data, MXFP4Tensor(data=numbers).data)
    powers = 2.0 ** torch.arange(-126, 128)
    assert torch.equal(theirs.MXScaleTensor(data=powers).data, MXScaleTensor(data=powers).data)
