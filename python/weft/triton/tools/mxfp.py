# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.tools.mxfp``: torch tensors in the formats of the OCP Microscaling Formats (MX) specification, version 1.0:
elements of four bits (E2M1) and scales that blocks of elements share (E8M0).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

#: the magnitudes of E2M1 by their three bits (section 5.3.3)
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
#: what is added to an exponent of E8M0, and the byte that is NaN (section 5.4.1)
_BIAS, _NAN = 127, 255


class _Codes:
    """A tensor of numbers in bytes: of ``data``, or of a ``size`` that ``random`` fills."""

    data: Any

    def __init__(self, data: Any = None, size: int | Sequence[int] | None = None, device: Any = None):
        import torch

        self.device = device
        if data is not None:
            if not isinstance(data, torch.Tensor):
                raise TypeError(f"expected a torch tensor of numbers, but got {type(data).__name__}")
            self.device = data.device
            self.data = self._encoded(data if data.is_floating_point() else data.to(torch.float64))
        elif size is not None:
            self.size = (size,) if isinstance(size, int) else tuple(size)
        else:
            raise ValueError("expected 'data', a tensor, or 'size', a shape, but got neither")

    def _encoded(self, values: Any) -> Any:
        raise NotImplementedError

    def _drawn(self, first: int, last: int) -> Any:
        """Bytes from ``first`` to ``last``, equally likely."""
        import torch

        return torch.randint(first, last + 1, self.size, dtype=torch.uint8, device=self.device)


class MXFP4Tensor(_Codes):
    """Elements E2M1: a sign, two bits of exponent, one of mantissa, in the low four bits of each byte of ``data``.

    Numbers become the nearest element, the even one of two that are as near; those above 6, infinities and NaNs, which
    the format has not, become 6 with their sign.
    """

    def _encoded(self, values: Any) -> Any:
        import torch

        size = values.abs()
        codes = torch.zeros(values.shape, dtype=torch.uint8, device=values.device)
        for code, (below, above) in enumerate(itertools.pairwise(_MAGNITUDES)):
            middle = (below + above) / 2  # goes to the even code
            codes += size >= middle if code % 2 else size > middle
        codes[values.isnan()] = len(_MAGNITUDES) - 1
        return codes | (torch.signbit(values).to(torch.uint8) << 3)

    def random(self) -> MXFP4Tensor:
        """Fill with elements; all sixteen are equally likely."""
        self.data = self._drawn(0, 15)
        return self

    def to(self, dtype: Any) -> Any:
        """The numbers, as floats of 16 bits or more; all of them have these values exactly."""
        import torch

        _expect(dtype, (torch.float32, torch.float64, torch.float16, torch.bfloat16))
        values = torch.tensor([*_MAGNITUDES, *(-each for each in _MAGNITUDES)], dtype=dtype, device=self.data.device)
        return values[self.data.to(torch.int64)]

    def to_packed_tensor(self, dim: int) -> Any:
        """Two elements a byte along an axis, the first in the low bits; an odd one has a zero beside it."""
        import torch

        axis = _axis(dim, self.data.ndim)
        first, second = (_every_other(self.data, axis, start) for start in (0, 1))
        if first.shape != second.shape:
            second = torch.cat([second, torch.zeros_like(self.data.narrow(axis, 0, 1))], axis)
        return first | second << 4

    def unpack_packed_tensor(self, packed_tensor: Any, dim: int, original_shape: Sequence[int]) -> Any:
        """The elements of what ``to_packed_tensor`` gave, one a byte, in the shape that they had."""
        import torch

        axis = _axis(dim, packed_tensor.ndim)
        wanted, size = list(original_shape), int(original_shape[axis])
        wanted[axis] = (size + 1) // 2
        if list(packed_tensor.shape) != wanted:
            raise ValueError(
                f"expected a tensor of two elements a byte along axis {axis} of {tuple(original_shape)}, but got one "
                f"of shape {tuple(packed_tensor.shape)}"
            )
        pairs = torch.stack([packed_tensor & 15, packed_tensor >> 4 & 15], axis + 1).to(torch.uint8)
        return pairs.flatten(axis, axis + 1).narrow(axis, 0, size)


class MXScaleTensor(_Codes):
    """Scales E8M0: powers of two from 2^-127 to 2^127, by their exponents in ``data``; 255 is NaN.

    A number becomes the greatest power of two that is not above it, or 2^-127 where none is. What is no positive finite
    number becomes NaN.
    """

    def _encoded(self, values: Any) -> Any:
        import torch

        scales = (values > 0) & ~values.isinf()
        exponents = torch.frexp(torch.where(scales, values, 1).to(torch.float64)).exponent - 1
        codes = (exponents + _BIAS).clamp(0, _NAN - 1).to(torch.uint8)
        return codes.masked_fill(~scales, _NAN)

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Fill with powers of two from ``low`` to ``high``, of all without bounds, equally likely."""
        for name, bound in (("low", low), ("high", high)):
            if bound is not None and not 0 < bound < math.inf:
                raise ValueError(f"expected '{name}' to be a positive number, but got {bound}")
        least = 0 if low is None else max(0, _BIAS + _ceil_log2(low))
        most = _NAN - 1 if high is None else min(_NAN - 1, _floor_log2(high) + _BIAS)
        if least > most:
            raise ValueError(
                f"expected a power of two from 2^-127 to 2^127 between {low} and {high}, but there is none"
            )
        self.data = self._drawn(least, most)
        return self

    def to(self, dtype: Any) -> Any:
        """The scales, as floats of a type that has all of them: float32, float64 or bfloat16."""
        import torch

        _expect(dtype, (torch.float32, torch.float64, torch.bfloat16))
        return _scales(self.data).to(dtype)


def fp8e8m0_to_float32(scale: Any) -> Any:
    """The scales whose exponents are the bytes of a tensor, uint8 or float8_e8m0fnu, as float32."""
    import torch

    return _scales(scale.view(torch.uint8)).to(torch.float32)


def _scales(codes: Any) -> Any:
    """Powers of two as float64: their exponents in its bits, which hold all of them as normal numbers."""
    import torch

    bits = (codes.to(torch.int64) + (1023 - _BIAS)) << 52
    return bits.view(torch.float64).masked_fill(codes == _NAN, math.nan)


def _floor_log2(value: float) -> int:
    return math.frexp(value)[1] - 1


def _ceil_log2(value: float) -> int:
    return _floor_log2(value) + (math.frexp(value)[0] != 0.5)


def _every_other(data: Any, axis: int, start: int) -> Any:
    """The elements along an axis at ``start``, ``start + 2``, ..."""
    return data[(slice(None),) * axis + (slice(start, None, 2),)]


def _axis(dim: int, rank: int) -> int:
    if not -rank <= dim < rank:
        raise ValueError(f"expected 'dim' to be an axis of {rank}, but got {dim}")
    return dim % rank


def _expect(dtype: Any, known: tuple[Any, ...]) -> None:
    if dtype not in known:
        raise TypeError(f"expected a type among {', '.join(map(str, known))}, but got {dtype}")


__all__ = ["MXFP4Tensor", "MXScaleTensor", "fp8e8m0_to_float32"]
