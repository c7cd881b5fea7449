# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A mixer as its matrix: what it gives for the columns of the identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import Error
from .patterns import Domain

_COLUMNS = 64  # of the identity at a time


@dataclass
class Extent:
    """What a mixer's operands say of the values that it takes: batch, heads, length for each domain, channels."""

    batch: int | None = None
    heads: int | None = None
    lengths: tuple[int, ...] | None = None
    channels: int | None = None
    taps: int | None = None  # heads · channels of a convolution
    like: Any = None  # an array whose framework, device and type the values take


def matrix(mixer: Any, n: int | None, heads: int | None, apply: Callable[[Any, Any], Any]) -> Any:
    """The matrix [B, H, N, M]; [B, H, C, N, M] where it differs by channel. A tuple of them for several domains."""
    extent = Extent(heads=heads)
    _look(mixer, extent)
    if extent.lengths is None:
        if n is None:
            raise Error("expected the length n: nothing in the mixer says it")
        extent.lengths = (n,)
    batch, of_heads = extent.batch or 1, extent.heads or 1
    if extent.taps is not None:
        channels = extent.taps // of_heads
        if extent.channels not in (None, channels):
            raise Error(f"expected taps for {extent.channels} channels, but got them for {channels}")
        extent.channels = channels
    make = _Values(extent.like, batch, of_heads)
    parts = []
    for domain in range(len(extent.lengths)):
        columns = _channelwise if extent.channels else _plain
        found = [
            make.wide(apply(mixer, make.split(value, domain, extent.lengths)))
            for value in columns(make, extent.lengths[domain], extent.channels or 0)
        ]
        parts.append(make.stack(found) if extent.channels else make.join(found, extent.lengths[domain]))
    return parts[0] if len(parts) == 1 else tuple(parts)


def _look(mixer: Any, extent: Extent) -> None:
    """Collect what the mixers of a sum or a product say, from right to left: the rightmost takes the values."""
    from .concrete import ConcreteMixer

    if mixer.make.__name__ in ("_add", "_compose"):
        for part in reversed(mixer.args):
            if isinstance(part, ConcreteMixer):
                _look(part, extent)
        return
    if mixer.make.__name__ == "mean":
        if extent.like is None:
            extent.like = mixer.keywords.get("cu_seqlens")
        return
    first = mixer.args[0]
    if extent.like is None or mixer.make.__name__ == "softmax":
        extent.like = first
    if mixer.make.__name__ == "toeplitz":
        extent.taps = int(first.shape[1])
        return
    if mixer.make.__name__ == "diag":
        keys = first
        if first.shape[3] != 1:
            extent.channels = int(first.shape[3])
    else:
        domains = [d for d in mixer.args[1:] if isinstance(d, Domain)] or [Domain(mixer.args[1])]
        keys = domains[0].keys
        extent.lengths = extent.lengths or tuple(int(d.keys.shape[2]) for d in domains)
    extent.batch = int(keys.shape[0])
    extent.heads = extent.heads or int(keys.shape[1])
    extent.lengths = extent.lengths or (int(keys.shape[2]),)


@dataclass(frozen=True)
class _Values:
    """Makes values in the framework of a mixer's arrays."""

    like: Any
    batch: int
    heads: int

    @property
    def torch(self) -> bool:
        return hasattr(self.like, "data_ptr")

    def zeros(self, length: int, channels: int) -> Any:
        shape = (self.batch, self.heads, length, channels)
        if self.torch:
            import torch

            dtype = self.like.dtype if self.like.dtype.is_floating_point else torch.float32
            return torch.zeros(shape, dtype=dtype, device=self.like.device)
        import numpy as np

        starts = self.like is None or self.like.dtype == np.int32
        return np.zeros(shape, np.float32 if starts else self.like.dtype)

    def split(self, value: Any, domain: int, lengths: tuple[int, ...]) -> Any:
        """The values of every domain, zero but for one."""
        if len(lengths) == 1:
            return value
        return tuple(value if i == domain else self.zeros(m, value.shape[3]) for i, m in enumerate(lengths))

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


def _plain(make: _Values, length: int, channels: int) -> Iterator[Any]:
    """The identity, some columns at a time, one in each channel."""
    for start in range(0, length, _COLUMNS):
        value = make.zeros(length, _COLUMNS)
        for column in range(min(_COLUMNS, length - start)):
            value[:, :, start + column, column] = 1
        yield value


def _channelwise(make: _Values, length: int, channels: int) -> Iterator[Any]:
    """Each column of the identity, in every channel."""
    for column in range(length):
        value = make.zeros(length, channels)
        value[:, :, column] = 1
        yield value
