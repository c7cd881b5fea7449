# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A mixer as its matrix: what it gives for the columns of the identity."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import Error
from .patterns import Domain

_COLUMNS = 64  # of the identity at a time


@dataclass
class Extent:
    """What a mixer's operands say of the values that it takes: batch, heads and length for each domain."""

    batch: int | None = None
    heads: tuple[int, ...] | None = None
    exact: bool = False  # whether heads are those of keys: any other number is a multiple of the values'
    lengths: tuple[int, ...] | None = None
    like: Any = None  # an array whose framework, device and type the values take


def matrix(mixer: Any, n: int | None, heads: int | None, apply: Callable[[Any, Any], Any]) -> Any:
    """The matrix [B, H, N, M]; [B, H, C, N, M] where it differs by channel. A tuple of them for several domains."""
    extent = Extent()
    _look(mixer, extent, takes=True)
    if extent.lengths is None:
        if n is None:
            raise Error("expected the length n, which nothing in the mixer says, but got None: .matrix(n)")
        extent.lengths = (n,)
    if heads is not None and not extent.exact:
        extent.heads = (heads,)
    of_heads = extent.heads or (1,) * len(extent.lengths)
    found = _channels(mixer, max(of_heads))[1]
    if len(found) > 1:
        several = " and ".join(map(str, sorted(found)))
        raise Error(f"expected taps and gates for one number of channels, but got them for {several}")
    channels = found.pop() if found else None
    make = _Values(extent.like, extent.batch or 1, of_heads, extent.lengths)
    parts = []
    for domain in range(len(extent.lengths)):
        columns = _channelwise(make, domain, channels) if channels else _plain(make, domain)
        results = [make.wide(apply(mixer, make.split(value, domain))) for value in columns]
        parts.append(make.stack(results) if channels else make.join(results, extent.lengths[domain]))
    return parts[0] if len(parts) == 1 else tuple(parts)


def _look(mixer: Any, extent: Extent, takes: bool) -> None:
    """Collect what the mixers of a sum or a product say, from right to left. ``takes``: whether it takes the values, as
    the rightmost mixer of a product does and all of a sum do."""
    name = mixer.make.__name__
    first: Any = next(iter(mixer.args), None)
    if name in ("_add", "_compose"):
        last = mixer.args[-1]
        for part in reversed(mixer.args):
            _look(part, extent, takes and (name == "_add" or part is last))
    elif name == "_scale":
        _look(first, extent, takes)
    elif name == "mean":
        if extent.like is None:
            extent.like = mixer.keywords.get("cu_seqlens")
    elif name == "toeplitz":
        extent.like = first if extent.like is None else extent.like
    elif name == "diag":
        extent.like = first if extent.like is None else extent.like
        extent.batch = int(first.shape[0])
        extent.lengths = extent.lengths or (int(first.shape[2]),)
        if takes and not extent.exact:
            own = int(first.shape[1])
            extent.heads = (math.gcd(own, *(extent.heads or (own,))),)
    else:
        if mixer.keywords.get("initial_state") is not None:
            raise Error("expected a recurrence that begins with no state, but got one with initial_state")
        extent.like = first
        extent.batch = int(first.shape[0])
        keys = [d.keys for d in _domains(mixer)]
        if takes:
            extent.heads, extent.exact = tuple(int(k.shape[1]) for k in keys), True
        if takes or not extent.lengths:
            extent.lengths = tuple(int(k.shape[2]) for k in keys)


def _domains(softmax: Any) -> list[Domain]:
    """Of a softmax, or the keys of a recurrence."""
    return [d for d in softmax.args[1:] if isinstance(d, Domain)] or [Domain(softmax.args[1])]


def _channels(mixer: Any, heads: int) -> tuple[int, set[int]]:
    """How many heads a mixer makes of so many, and the numbers of channels that taps and gates are for."""
    name = mixer.make.__name__
    first: Any = next(iter(mixer.args), None)
    if name == "_compose":
        heads, right = _channels(mixer.args[1], heads)
        heads, left = _channels(mixer.args[0], heads)
        return heads, left | right
    if name == "_scale":
        return _channels(first, heads)
    if name == "_add":
        both = [_channels(part, heads) for part in mixer.args]
        return max(h for h, _ in both), both[0][1] | both[1][1]
    if name == "toeplitz":
        return heads, {int(first.shape[1]) // heads}
    if name == "diag":
        by_channel = len(first.shape) == 4 and first.shape[3] != 1
        return int(first.shape[1]), {int(first.shape[3])} if by_channel else set()
    return (heads if name == "mean" else int(first.shape[1])), set()


@dataclass(frozen=True)
class _Values:
    """Makes values in the framework of a mixer's arrays."""

    like: Any
    batch: int
    heads: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def torch(self) -> bool:
        return hasattr(self.like, "data_ptr")

    def zeros(self, domain: int, channels: int) -> Any:
        shape = (self.batch, self.heads[domain], self.lengths[domain], channels)
        if self.torch:
            import torch

            dtype = self.like.dtype if self.like.dtype.is_floating_point else torch.float32
            return torch.zeros(shape, dtype=dtype, device=self.like.device)
        import numpy as np

        starts = self.like is None or self.like.dtype == np.int32
        return np.zeros(shape, np.float32 if starts else self.like.dtype)

    def split(self, value: Any, domain: int) -> Any:
        """The values of every domain, zero but for one."""
        if len(self.lengths) == 1:
            return value
        return tuple(value if i == domain else self.zeros(i, value.shape[3]) for i in range(len(self.lengths)))

    def wide(self, array: Any) -> Any:
        return array.detach().float() if self.torch else array.astype("float32")

    def join(self, parts: list[Any], length: int) -> Any:
        if self.torch:
            import torch

            return torch.cat(parts, 3)[..., :length]
        import numpy as np

        return np.concatenate(parts, 3)[..., :length]

    def stack(self, columns: list[Any]) -> Any:
        """Columns [B, H, N, C] as [B, H, C, N, M]."""
        if self.torch:
            import torch

            return torch.stack(columns, 4).transpose(2, 3)
        import numpy as np

        return np.stack(columns, 4).swapaxes(2, 3)


def _plain(make: _Values, domain: int) -> Iterator[Any]:
    """The identity, some columns at a time, one in each channel."""
    length = make.lengths[domain]
    for start in range(0, length, _COLUMNS):
        value = make.zeros(domain, _COLUMNS)
        for column in range(min(_COLUMNS, length - start)):
            value[:, :, start + column, column] = 1
        yield value


def _channelwise(make: _Values, domain: int, channels: int) -> Iterator[Any]:
    """Each column of the identity, in every channel."""
    for column in range(make.lengths[domain]):
        value = make.zeros(domain, channels)
        value[:, :, column] = 1
        yield value
