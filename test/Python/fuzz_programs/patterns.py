# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns as trees: ["causal"], ["and", a, b], ["shift", a, 3], ["block_bitmap", table, 16, 8], ["mask", expression].

Membership is written here from the definitions in docs/Patterns.md, pair by pair. Under packed sequences n, m and
lengths are those of a pair's own sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from . import scalars


@dataclass(frozen=True)
class Pairs:
    """Indices of all pairs and the lengths that they count in, as tensors that broadcast to [B, H, N, M]."""

    b: torch.Tensor
    h: torch.Tensor
    n: torch.Tensor
    m: torch.Tensor
    N: torch.Tensor
    M: torch.Tensor
    group: int  # query heads for each key head

    @property
    def p(self):
        """The query's position among the keys."""
        return self.n + (self.M - self.N)

    @property
    def inside(self):
        return (self.n >= 0) & (self.n < self.N) & (self.m >= 0) & (self.m < self.M)


def floor(a, b):
    return torch.div(a, b, rounding_mode="floor")


# ---- As text


def text(tree):
    match tree:
        case ["and" | "or" as name, *parts]:
            return "(" + {"and": " & ", "or": " | "}[name].join(map(text, parts)) + ")"
        case ["not", part]:
            return f"~{text(part)}"
        case ["shift", part, by]:
            return f"{text(part)}.shift({by})"
        case ["transpose", part]:
            return f"{text(part)}.transpose()"
        case ["per_head", parts]:
            return f"weft.per_head([{', '.join(map(text, parts))}])"
        case ["mask", expression]:
            return f"weft.mask(lambda b, h, n, m: {scalars.text(expression)})"
        case ["blocks", index, count, bm, bn]:
            return f"weft.blocks({index}, {count}, block=({bm}, {bn}))"
        case ["block_bitmap", bits, bm, bn]:
            return f"weft.block_bitmap({bits}, block=({bm}, {bn}))"
        case ["block_grid", window, grid]:
            return f"weft.block_window({tuple(window)}, grid={tuple(grid)})"
        case ["neighbourhood", shape, kernel, dilation]:
            return f"weft.neighbourhood({tuple(shape)}, {tuple(kernel)}, {tuple(dilation)})"
        case ["document" | "span" as name, *tables]:
            return f"weft.{name}({', '.join(tables)})"
        case [name, *numbers]:
            return f"weft.{name}({', '.join(map(repr, numbers))})"
    raise ValueError(f"expected a pattern, but got {tree!r}")


def tables(tree):
    """The tables that a pattern names."""
    match tree:
        case ["mask", expression]:
            return scalars.names(expression) - set("bhnm")
        case ["per_head", parts]:
            return set().union(*map(tables, parts))
        case ["document" | "span", *names]:
            return set(names)
        case ["blocks", index, count, _, _]:
            return {index, count}
        case ["block_bitmap", bits, _, _]:
            return {bits}
        case ["and" | "or", *parts]:
            return set().union(*map(tables, parts))
        case ["not" | "transpose" | "shift", part, *_]:
            return tables(part)
    return set()


# ---- Membership


def read(table, inside, *index):
    """table[index] where ``inside``, else 0."""
    inside, *index = torch.broadcast_tensors(inside, *index)
    if table.numel() == 0:
        return torch.zeros(inside.shape, dtype=torch.int64)
    kept = [torch.where(inside, i, 0) for i in index]
    return torch.where(inside, table[tuple(kept)].long(), 0)


def member(tree, at, values):
    """Which pairs belong: bool, to be broadcast to [B, H, N, M]. ``values`` are tables by name."""
    p, m = at.p, at.m
    match tree:
        case ["full"]:
            return torch.ones_like(m + p, dtype=torch.bool)
        case ["causal"]:
            return m <= p
        case ["window", left, right]:
            result = torch.ones_like(m + p, dtype=torch.bool)
            if left is not None:
                result = result & (p - left <= m)
            return result if right is None else result & (m <= p + right)
        case ["block_window", w]:
            return floor(p, w) == floor(m, w)
        case ["block_grid", (rows, columns), (height, width)]:

            def window(x):
                return floor(floor(x, width), rows), floor(x % width, columns)

            (pr, pc), (mr, mc) = window(p), window(m)
            ends = (p >= 0) & (p < height * width) & (m >= 0) & (m < height * width)
            return (pr == mr) & (pc == mc) & ends
        case ["prefix", n]:
            return (m < n) & (p == p)
        case ["global_tokens", n]:
            return (p < n) | (m < n)
        case ["strided", step]:
            return (p - m) % step == 0
        case ["dilated", step, width]:
            return ((p - m) % step == 0) & ((p - m).abs() <= step * width)
        case ["neighbourhood", shape, kernel, dilation]:
            return neighbours(p, m, shape, kernel, dilation)
        case ["random_blocks", seed, per_row, block]:
            return random_blocks(at, seed, per_row, block)
        case ["document", q_ids, k_ids]:
            q, k = values[q_ids], values[k_ids]
            isq, isk = (at.n >= 0) & (at.n < at.N), (at.m >= 0) & (at.m < at.M)
            a = read(q, isq, *((at.b, at.n) if q.dim() == 2 else (at.n,)))
            b = read(k, isk, *((at.b, at.m) if k.dim() == 2 else (at.m,)))
            return (a == b) & isq & isk
        case ["blocks", index, count, bm, bn]:
            row, column = floor(at.n, bm), floor(at.m, bn)
            listed = values[index]
            result = torch.zeros_like(at.b + at.h + at.n + at.m, dtype=torch.bool)
            for i in range(listed.shape[3]):
                place = torch.full_like(row, i)
                hit = read(listed, at.inside, at.b, at.h, row, place) == column
                result = result | (hit & (place < read(values[count], at.inside, at.b, at.h, row)))
            return result & at.inside
        case ["block_bitmap", bits, bm, bn]:
            return (read(values[bits], at.inside, at.b, at.h, floor(at.n, bm), floor(at.m, bn)) != 0) & at.inside
        case ["span", lower, upper, _, _]:
            isq = (at.n >= 0) & (at.n < at.N)
            h = at.h if values[lower].shape[1] == 1 else floor(at.h, at.group)
            h = torch.zeros_like(h) if values[lower].shape[1] == 1 else h
            return (read(values[lower], isq, at.b, h, at.n) <= at.m) & (at.m < read(values[upper], isq, at.b, h, at.n))
        case ["mask", expression]:
            given = {"b": at.b, "h": at.h, "n": at.n, "m": at.m, **values}
            return scalars.value(expression, given, torch.float64)
        case ["and", *parts]:
            result = member(parts[0], at, values)
            for part in parts[1:]:
                result = result & member(part, at, values)
            return result
        case ["or", *parts]:
            result = member(parts[0], at, values)
            for part in parts[1:]:
                result = result | member(part, at, values)
            return result
        case ["not", part]:
            return ~member(part, at, values)
        case ["shift", part, by]:
            return member(part, replace(at, m=at.m - by), values)
        case ["transpose", part]:
            return member(part, replace(at, n=at.m, m=at.n, N=at.M, M=at.N), values)
        case ["per_head", parts]:
            result = torch.zeros_like(at.b + at.h + p + m, dtype=torch.bool)
            for head, part in enumerate(parts):
                result = result | ((at.h == head) & member(part, at, values))
            return result
    raise ValueError(f"expected a pattern, but got {tree!r}")


def neighbours(p, m, shape, kernel, dilation):
    """On each axis m is in the window of ``kernel`` tokens of p's line (its residue) that is centred at p, moved
    inwards at the ends."""
    size = 1
    for length in shape:
        size *= length
    result = (p >= 0) & (p < size) & (m >= 0) & (m < size)
    stride = size
    for length, taps, step in zip(shape, kernel, dilation, strict=True):
        stride //= length
        table = torch.zeros(length, length, dtype=torch.bool)
        for query in range(length):
            line = list(range(query % step, length, step))
            start = min(max(query // step - taps // 2, 0), len(line) - taps)
            table[query, line[start : start + taps]] = True
        q, k = torch.broadcast_tensors(floor(p, stride) % length, floor(m, stride) % length)
        result = result & table[q, k]
    return result


def philox(low, high, key):
    """The first word of Philox-2x32-10 (Salmon et al., 2011)."""
    for _ in range(10):
        product = 0xD256D193 * low
        low, high = (product >> 32) ^ key ^ high, product & 0xFFFFFFFF
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return low


def random_blocks(at, seed, per_row, block):
    """Floyd's sampling without replacement: the i-th draw t is of 0 .. C - per_row + i, and that last number itself
    where t has been drawn."""
    rows, columns = floor(at.n, block), floor(at.m, block)
    result = torch.zeros_like(rows + columns, dtype=torch.bool)
    for M in at.M.unique().tolist():
        count = -(-M // block)
        for row in rows.unique().tolist():
            chosen = set(range(count)) if count <= per_row else set()
            for i in range(per_row if count > per_row else 0):
                top = count - per_row + i
                t = philox(row & 0xFFFFFFFF, (i ^ (seed >> 32)) & 0xFFFFFFFF, seed & 0xFFFFFFFF) * (top + 1) >> 32
                chosen.add(top if t in chosen else t)
            hit = torch.isin(columns, torch.tensor(sorted(chosen), dtype=torch.int64))
            result = result | ((at.M == M) & (rows == row) & hit)
    return result & at.inside


# ---- Random ones


@dataclass
class Where:
    """What a random pattern is of: the symbols of its lengths, and how to make tables."""

    n: str
    m: str
    table: object  # (kind, dims, ...) -> name
    heads: int  # query heads, for per_head
    key_heads: str  # the symbol of the keys' heads
    query_heads: str
    packed: bool = False
    grid: tuple | None = None  # of the keys, where n and m are its tokens
    raw: bool = True  # indices are those of real pairs: no shift or transpose around

    def inner(self):
        return replace(self, raw=False)

    def transposed(self):
        return replace(self, n=self.m, m=self.n, raw=False)


def draw(rng, where, depth=3, top=True):
    """A random pattern of at most that depth."""
    if depth > 1 and rng.random() < (0.45 if top else 0.3):
        kind = rng.choice(["and", "or", "or", "not", "shift", "per_head", "transpose", "and"])
        if kind in ("and", "or"):
            return [kind, *(draw(rng, where, depth - 1, False) for _ in range(2))]
        if kind == "not":
            return ["not", draw(rng, where, depth - 1, False)]
        if kind == "shift":
            return ["shift", draw(rng, where.inner(), depth - 1, False), rng.choice([-7, -2, -1, 1, 3, 16])]
        if kind == "transpose":
            return ["transpose", draw(rng, where.transposed(), depth - 1, False)]
        if top or where.raw:
            return ["per_head", [draw(rng, where, 1 if i else depth - 1, False) for i in range(where.heads)]]
    return leaf(rng, where)


def leaf(rng, where):
    number = rng.randint
    plain = [
        lambda: ["causal"],
        lambda: ["causal"],
        lambda: ["full"],
        lambda: ["window", rng.choice([0, 1, 5, 20, None, -1]), rng.choice([0, 0, 2, 9, None, -1])],
        lambda: ["block_window", rng.choice([1, 4, 7, 16, 32])],
        lambda: ["prefix", number(0, 20)],
        lambda: ["global_tokens", number(0, 4)],
        lambda: ["strided", number(1, 4)],
        lambda: ["dilated", number(1, 3), number(0, 5)],
        lambda: ["random_blocks", rng.choice([0, 5, 2**33 + 7]), number(0, 3), rng.choice([4, 8, 16])],
    ]
    plain += [lambda: bitmap(rng, where), lambda: listed(rng, where), *[lambda: mask(rng, where)] * 2]
    if not where.packed:  # documents and spans keep sequences apart by themselves
        plain.append(lambda: documents(rng, where))
        if where.raw:
            plain.append(lambda: span(where))
    if where.grid and where.n == where.m:
        h, w = where.grid
        plain += [lambda: ["block_grid", [number(1, h), number(1, w)], [h, w]]] * 2
        plain += [lambda: ["neighbourhood", [h, w], [min(h, 3), min(w, number(1, 3))], [1, 1]]] * 2
    return rng.choice(plain)()


def documents(rng, where):
    """Ids of one batch, or of each."""
    batches = ["B"] if rng.random() < 0.5 else []
    kind = rng.choice(["ids", "sorted"])
    q = where.table(kind, [*batches, where.n])
    return ["document", q, q if where.n == where.m else where.table(kind, [*batches, where.m])]


def bitmap(rng, where):
    bm, bn = rng.choice([(16, 16), (64, 32), (8, 5), (32, 64)])
    dims = ["B", where.query_heads, f"-(-{where.n}//{bm})", f"-(-{where.m}//{bn})"]
    return ["block_bitmap", where.table("bits", dims), bm, bn]


def listed(rng, where):
    bm, bn = rng.choice([(16, 16), (64, 32), (7, 8)])
    rows, columns = f"-(-{where.n}//{bm})", f"-(-{where.m}//{bn})"
    index = where.table("permutation", ["B", where.query_heads, rows, columns])
    count = where.table("count", ["B", where.query_heads, rows], columns)
    return ["blocks", index, count, bm, bn]


def span(where):
    lower = where.table("span", ["B", where.key_heads, where.n], where.m)
    return ["span", lower, *(f"{lower}_{name}" for name in ("upper", "first", "past"))]


def mask(rng, where):
    def table(kind):
        if kind == "limit":
            return where.table("limit", [where.query_heads])
        if kind == "key":
            return where.table("ids", [where.m])
        return where.table("ids", [where.n]) if where.n == where.m else None

    return ["mask", scalars.index_condition(rng, table)]
