# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The tensors of a description: inputs with their strides, and integer tables."""

from __future__ import annotations

import zlib

import torch

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


class Invalid(Exception):
    """A description that is no program: sizes that do not fit."""


def extent(dim, sizes):
    return dim if isinstance(dim, int) else eval(dim, {}, dict(sizes))


def shape(dims, sizes):
    return tuple(extent(dim, sizes) for dim in dims)


def generator(description, name, draw):
    seed = zlib.crc32(f"{description['seed']} {name} {draw}".encode())
    return torch.Generator().manual_seed(seed)


def inputs(description, sizes, draw=0):
    """The inputs by name, of their types and strides."""
    return {
        name: laid_out(numbers(each, shape(each["dims"], sizes), generator(description, name, draw)), each["layout"])
        for name, each in description["inputs"].items()
    }


def numbers(given, shape, random):
    """Contiguous random numbers of a tensor's role."""
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    fan = 1
    for size in shape[1:]:
        fan *= size
    match given["role"]:
        case "gain":
            x = 1 + 0.2 * x
        case "small":
            x = 0.3 * x
        case "weight":
            x = x / max(fan, 1) ** 0.5
        case "unit":
            x = torch.nn.functional.normalize(x, dim=-1)
        case "share":
            x = x.sigmoid()
        case "decay":
            x = torch.nn.functional.logsigmoid(x)
        case "taps":
            x = x / max(shape[0], 1) ** 0.5
    return x.to(TYPES[given["dtype"]])


def laid_out(x, layout):
    """The same numbers in other strides; memory between them is NaN."""
    if layout == "transposed" and x.dim() == 4:
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "last strided" and x.dim() >= 2:
        return x.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "batch expanded" and x.dim() == 4 and x.shape[0]:
        return x[:1].expand(x.shape)
    if layout == "heads expanded" and x.dim() == 4 and x.shape[1]:
        return x[:, :1].expand(x.shape)
    if layout == "sliced" and x.dim() >= 2:
        room = x.new_full((*x.shape[:-2], 2 * x.shape[-2] + 1, x.shape[-1] + 8), float("nan"))
        view = room[..., 1::2, 8:]
        view.copy_(x)
        return view
    if layout == "unaligned":
        room = x.new_full((x.numel() + 1,), float("nan"))
        view = room[1:].view(x.shape)
        view.copy_(x)
        return view
    return x


def tables(description, sizes, draw=0):
    """The integer tables by name; those of a span are four."""
    found = {}
    for name, table in description["tables"].items():
        random = generator(description, name, draw)
        dims = shape(table["dims"], sizes)
        along = extent(table["along"], sizes) if table["along"] else 0
        if table["kind"] == "span":
            parts = zip(("", "_upper", "_first", "_past"), staircase(dims, along, random), strict=True)
            found |= {name + part: x for part, x in parts}
        else:
            found[name] = integers(table["kind"], dims, along, random)
    return found


def integers(kind, dims, along, random):
    def draw(low, high):  # both included
        return torch.randint(low, max(low, high) + 1, dims, generator=random, dtype=torch.int32)

    match kind:
        case "ids":
            return draw(0, 3)
        case "sorted":
            return draw(0, 3).sort(-1).values
        case "limit":
            return draw(-1, 50)
        case "bits":
            return draw(0, 2) > 0
        case "permutation":
            return torch.rand(dims, generator=random).argsort(-1).to(torch.int32)
        case "count":
            return draw(0, along)
        case "starts":
            if dims[0] < 2:
                raise Invalid("no sequences")
            return torch.cat([torch.zeros(1), draw(0, along)[2:].sort().values, torch.tensor([along])]).to(torch.int32)
        case "joins":
            return draw(0, 1) > 0
    raise ValueError(f"expected a kind of table, but got {kind!r}")


def staircase(dims, keys, random):
    """Bounds that never fall, and what they say of each key."""
    bounds = torch.randint(0, keys + 1, (2, *dims), generator=random).sort(-1).values
    lower, upper = bounds[0], bounds[1]
    rises = bool(torch.randint(2, (1,), generator=random))
    lower = torch.minimum(lower, upper) if rises else torch.zeros_like(lower)
    m = torch.arange(keys)
    first = (upper[..., None] <= m).sum(-2)
    past = torch.maximum((lower[..., None] <= m).sum(-2), first)
    return [x.to(torch.int32) for x in (lower, upper, first, past)]
