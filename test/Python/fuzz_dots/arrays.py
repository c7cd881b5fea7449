# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays under the language's names, so that Python runs a kernel's text. Sums are float64."""

from __future__ import annotations

import types

import numpy as np
import torch

KINDS = {"bfloat16": torch.bfloat16, "float8e5": torch.float8_e5m2, "float8e4nv": torch.float8_e4m3fn}


class UnfitError(Exception):
    """A number that float32, or an integer, does not hold: its kernel is not judged."""


def exact(x):
    """The array, of which float32 holds every number."""
    x = np.asarray(x)
    if not np.isfinite(x).all() or (x != x.astype(np.float32)).any():
        raise UnfitError("a number is rounded")
    return x


def encoded(x: np.ndarray, dtype: str) -> np.ndarray:
    """Numbers as memory has them."""
    if dtype not in KINDS:
        return x.astype(dtype)
    bits = torch.from_numpy(x.astype(np.float32)).to(KINDS[dtype]).view(torch.uint8).numpy()
    return bits.view(np.uint16 if dtype == "bfloat16" else np.uint8)


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype in KINDS:
        return torch.from_numpy(np.ascontiguousarray(x, np.float32)).to(KINDS[dtype]).double().numpy()
    if dtype in ("int8", "int32"):
        info = np.iinfo(dtype)
        if (x != np.trunc(x)).any() or (x < info.min).any() or (x > info.max).any():
            raise UnfitError(f"a number that {dtype} does not hold")
        return x.astype(np.int64) if dtype == "int32" else x
    return x.astype(dtype).astype(float)


class Tile(np.ndarray):
    def to(self, dtype):
        return tile(rounded(exact(self), dtype))

    @property
    def T(self):
        return np.swapaxes(self, -1, -2)


def tile(x) -> Tile:
    return np.asarray(x).view(Tile)


class Pointer:
    def __init__(self, memory, at=0):
        self.memory, self.at = memory, at

    def __add__(self, offset):
        return Pointer(self.memory, self.at + np.asarray(offset))


class Descriptor:
    def __init__(self, base, shape, strides, block_shape):
        self.base, self.shape, self.strides, self.block = base, shape, strides, block_shape

    def places(self, offsets):
        """Of a block's elements, and which of them there are."""
        axes = np.meshgrid(*(np.arange(b) + o for b, o in zip(self.block, offsets, strict=True)), indexing="ij")
        inside = np.all([(x >= 0) & (x < size) for x, size in zip(axes, self.shape, strict=True)], axis=0)
        return self.base.at + sum(x * stride for x, stride in zip(axes, self.strides, strict=True)), inside

    def load(self, offsets):
        at, inside = self.places(offsets)
        return tile(np.where(inside, self.base.memory[np.where(inside, at, 0)], 0))

    def store(self, offsets, value):
        at, inside = self.places(offsets)
        store(Pointer(self.base.memory, at), value, inside)

    def atomic_add(self, offsets, value):
        at, inside = self.places(offsets)
        atomic_add(Pointer(self.base.memory, at[inside]), np.asarray(value)[inside])


def load(pointer, mask=True, other=0):
    mask = np.broadcast_to(mask, np.broadcast_shapes(np.shape(mask), np.shape(pointer.at)))
    return tile(np.where(mask, pointer.memory[np.where(mask, pointer.at, 0)], other))


def store(pointer, value, mask=True):
    mask = np.broadcast_to(mask, np.shape(pointer.at))
    pointer.memory[pointer.at[mask]] = np.broadcast_to(exact(value), np.shape(pointer.at))[mask]


def atomic_add(pointer, value):
    np.add.at(pointer.memory, pointer.at, np.broadcast_to(exact(value), np.shape(pointer.at)))


def dot(a, b, acc=None, out_dtype=None):
    product = exact(a).astype(float) @ exact(b)  # of integers NumPy multiplies no faster than Python
    return tile(exact(product if acc is None else product + exact(acc)))


def language() -> types.SimpleNamespace:
    """What stands for `weft.language`."""
    names = ("float16", "float32", "int8", "int32", *KINDS)
    return types.SimpleNamespace(
        **{name: name for name in names},
        load=load, store=store, atomic_add=atomic_add, dot=dot, make_tensor_descriptor=Descriptor,
        arange=np.arange, static_range=range, range=lambda *bounds, **advice: range(*bounds),
        zeros=lambda shape, dtype: tile(np.zeros(shape)),
        where=lambda c, a, b: tile(np.where(c, a, b)),
        maximum=lambda a, b: tile(np.maximum(a, b)), minimum=lambda a, b: tile(np.minimum(a, b)),
        floor=lambda x: tile(np.floor(x)), trans=lambda x: x.T,
        sum=lambda x, axis: tile(exact(np.asarray(x).sum(axis))), max=lambda x, axis: tile(np.asarray(x).max(axis)),
        argmax=lambda x, axis: tile(np.argmax(np.asarray(x), axis)),
        cumsum=lambda x, axis: tile(exact(np.cumsum(np.asarray(x), axis))),
        flip=lambda x, axis: tile(np.flip(np.asarray(x), axis)),
        reshape=lambda x, shape: tile(np.reshape(x, shape)),
        debug_barrier=lambda: None,
        join=lambda a, b: tile(np.stack([a, b], -1)), split=lambda x: (tile(x[..., 0]), tile(x[..., 1])),
    )  # fmt: skip
