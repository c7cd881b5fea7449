# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Draws a random program: statements on tiles of a few shapes, with loops, branches and functions around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .ops import COMPARISONS, FUNCTIONS, common
from .program import Branch, Buffer, Call, Loop, Op, Program, Tile
from .values import FLOATS, INTEGERS, NARROW, bits, is_float

#: a program's tiles have this many elements at most, those of large ones
MOST, MOST_LARGE = 2048, 16384
#: the share of large programs, whose values registers hardly hold, and whose products fill a warpgroup
LARGE = 0.08
TARGETS = ("sm_80", "sm_90a", "sm_100a")  # which move and multiply tiles by other instructions
#: sizes that are no powers of two, which the compiler cuts into such
UNEVEN = (3, 5, 6, 12, 20, 24, 40, 48, 72, 80, 96)
TYPES = ("float32", "float32", "float16", "bfloat16", "float64", "int32", "int32", "int64", "int16", "int8",
         "uint8", "uint16", "uint32", "uint64")  # fmt: skip


class Draw:
    """A program in the making."""

    def __init__(self, seed: int, large: float | None = None):
        self.random = np.random.default_rng(seed)
        self.seed = seed
        self.types: dict[str, Tile] = {}
        self.buffers: list[Buffer] = []
        self.scopes: list[list[str]] = [[]]
        self.blocks: list[list[Any]] = [[]]
        self.depth = 0
        self.n = self.number(1, 5)
        self.large = self.chance(LARGE if large is None else large)
        self.most = MOST_LARGE if self.large else MOST
        self.dims = [2 ** self.number(0, 6) for _ in range(self.number(1, 2))] + [self.pick((16, 32, 64))]
        if self.large:
            self.dims = [self.pick((16, 32, 64, 128)), self.pick((64, 128)), self.pick((64, 128, 256))]
        if self.chance(0.3):
            self.dims[0] = self.pick(UNEVEN)
        self.counters: list[str] = []

    # ---- choices

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.random.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        while True:
            found = tuple(self.pick(self.dims) for _ in range(rank or self.pick((1, 1, 2, 2, 2, 3))))
            if np.prod(found) <= self.most:
                return found

    # ---- names and statements

    def fresh(self, dtype: str, shape: tuple[int, ...]) -> str:
        name = f"v{len(self.types)}"
        self.types[name] = Tile(dtype, shape)
        return name

    def add(self, name: str, ins: Sequence[str], dtype: str, shape: tuple[int, ...], *attrs: Any) -> str:
        out = self.fresh(dtype, shape)
        self.blocks[-1].append(Op(name, (out,), tuple(ins), attrs))
        self.scopes[-1].append(out)
        return out

    def values(self, fits: Any = lambda t: True) -> list[str]:
        return [name for scope in self.scopes for name in scope if fits(self.types[name])]

    def value(self, fits: Any = lambda t: True) -> str | None:
        """One of the values that fit, of late ones rather."""
        names = self.values(lambda t: t.shape and fits(t))
        return None if not names else self.pick(names[-8:] if self.chance(0.7) else names)

    def of(self, shape: tuple[int, ...], dtype: str) -> str:
        """A value of a type, made where there is none."""
        names = self.values(lambda t: t == Tile(dtype, shape))
        if names and self.chance(0.85):
            return self.pick(names)
        near = self.values(lambda t: t.shape == shape and t.dtype != "int1")
        if near and self.chance(0.75) and dtype not in NARROW and dtype != "int1":
            return self.add("cast", (self.pick(near),), dtype, shape, dtype)
        if dtype == "int1":
            return self.compare(shape)
        return self.load(shape, dtype)

    # ---- memory

    def load(self, shape: tuple[int, ...], dtype: str) -> str:
        """Of a buffer, in one of several orders, under a mask or not."""
        size = int(np.prod(shape))
        role = self.pick(("in", "in", "in", "inout"))
        walks = bool(self.counters) and not self.inside and self.chance(0.7)
        size *= 5 if walks else 1
        known = [b for b in self.buffers if b.dtype == dtype and b.role == role and b.each >= size]
        if known and self.chance(0.5):
            buffer = self.pick(known)
        else:
            buffer = Buffer(f"b{len(self.buffers)}", dtype, size, role)
            self.buffers.append(buffer)
        other = None if self.chance(0.6) else self.number(0, 3)
        mask = None if other is None else self.mask(int(np.prod(shape)))
        order = self.order(shape)
        if walks:
            order = f"({order}) + {self.counters[-1]} * {size // 5}"
        return self.add("load", (), dtype, shape, buffer.name, shape, order, mask, other)

    def order(self, shape: tuple[int, ...]) -> str:
        """How offsets run over a tile: of elements numbered e, of coordinates i0, i1 ..., t a loop's counter."""
        size = int(np.prod(shape))
        forms = ["e"] * 4 + [f"{size - 1} - e"]
        if even(size):
            forms.append(f"e ^ {self.number(0, size - 1)}")
        if size % 3:
            forms.append(f"(e * 3 + 1) % {size}")
        if len(shape) == 2:
            forms += [f"i1 * {shape[0]} + i0", f"i0 * {shape[1]} + ({shape[1] - 1} - i1)"]
        return self.wide_order(size) if self.chance(0.2) else self.pick(forms)

    def wide_order(self, size: int) -> str:
        """In 64 bits, counted from where a program begins, w is e: that cancels."""
        far = self.pick((size, 1000000007, 1 << 40))
        return self.pick(
            (
                f"(p * {far} + w) - p * {far}",
                f"(w + p * {far}) * 3 - p * {3 * far} - w * 2",
                f"{size - 1} - (w - p + p)",
                f"(w + {far}) % {far}",
            )
        )

    def mask(self, size: int) -> str:
        c = self.number(0, size)
        if self.chance(0.3):
            return self.wide_mask(size, c)
        return self.pick(
            (f"e < {c}", f"e >= {c}", "e % 3 != 1", f"(e < {c}) | (e > n)", f"e < n * {max(1, size // 4)}")
        )

    def wide_mask(self, size: int, c: int) -> str:
        """As kernels mask that count in 64 bits: the same on both sides, the smaller of two bounds, the ends of 64
        bits.
        """
        ends = (1 << 62, -(1 << 62), (1 << 63) - 1, 1 - (1 << 63), 1 << 31, -(1 << 31))
        far = self.pick((size, 1000000007, 1 << 40))
        sign = self.pick(("<", "<=", ">", ">=", "==", "!="))
        return self.pick(
            (
                f"p * {far} + w {sign} p * {far} + {c}",
                f"w + p {sign} m * {max(1, size // 4)}",
                f"m * {max(1, size // 4)} {sign} w - p * {size}",
                f"p * {far} + w < minimum(p * {far} + {c}, m * {far})",
                f"w * {self.pick((3, -2, 1 << 33))} {sign} {c} + p",
                f"(p * {far} + w) * 5 {sign} p * {5 * far} + w * 4 + {c}",
                f"w + p {sign} {self.pick(ends)} + m * 0",
            )
        )

    def store(self) -> None:
        value = self.value(lambda t: t.dtype != "int1")
        if value is None:
            return
        tile = self.types[value]
        known = [b for b in self.buffers if b.role == "inout" and b.each >= tile.size and fitting(b.dtype, tile.dtype)]
        if not known:
            return
        mask = self.mask(tile.size) if self.chance(0.4) else None
        out = Op("store", (), (value,), (self.pick(known).name, tile.shape, self.order(tile.shape), mask))
        self.blocks[-1].append(out)

    def atomic(self) -> None:
        value = self.value(lambda t: t.dtype in ("int32", "float32", "uint32", "int64"))
        if value is None:
            return
        tile = self.types[value]
        kind = "add" if is_float(tile.dtype) else self.pick(("add", "add", "max", "xor"))
        if tile.dtype in ("int64", "uint32"):
            kind = "add"
        buffer = Buffer(f"b{len(self.buffers)}_{kind}", tile.dtype, tile.size, "shared")
        self.buffers.append(buffer)
        order = self.pick([self.order(tile.shape), f"e % {max(1, tile.size // 4)}", "e // 2", "e * 0"])
        mask = self.mask(tile.size) if self.chance(0.4) else None
        self.blocks[-1].append(Op("atomic", (), (value,), (buffer.name, tile.shape, order, mask, kind)))

    # ---- operations

    def pair(self) -> tuple[str, str, tuple[int, ...]] | None:
        """Two values of one shape, or of shapes that broadcast."""
        a = self.value(lambda t: t.dtype not in ("int1", *NARROW))
        if a is None:
            return None
        shape, dtype = self.types[a].shape, self.types[a].dtype
        other = self.pick((dtype, dtype, dtype, self.pick(TYPES)))
        if "float16" in (dtype, other) and "bfloat16" in (dtype, other):
            other = dtype
        if self.chance(0.2) and len(shape) > 1:
            narrow = tuple(1 if self.chance(0.5) else extent for extent in shape)
            return a, self.of(narrow, other), shape
        return a, self.of(shape, other), shape

    def binary(self) -> None:
        found = self.pair()
        if found is None:
            return
        a, b, shape = found
        dtype = common(self.types[a].dtype, self.types[b].dtype)
        if self.types[a].dtype == self.types[b].dtype and self.chance(0.1):
            symbol = "map smaller"
        elif is_float(dtype):
            symbol = self.pick(("+", "-", "*", "/", "maximum", "minimum"))
            if symbol == "/":
                dtype = common(self.types[a].dtype, self.types[b].dtype, division=True)
        else:
            symbol = self.pick(("+", "-", "*", "&", "|", "^", "maximum", "minimum", "//", "%"))
            signs = {self.types[x].dtype[0] for x in (a, b)}
            if symbol in ("//", "%"):
                if len(signs) > 1:
                    return
                one = self.add("literal", (b,), self.types[b].dtype, self.types[b].shape, "|", 1)
                b = one
        if self.chance(0.3):
            a, b = (b, a) if symbol not in ("//", "%", "/") else (a, b)
        self.add(symbol, (a, b), dtype, shape)

    def compare(self, shape: tuple[int, ...] | None = None) -> str:
        shape = shape or self.shape()
        near = self.values(lambda t: t.shape == shape and t.dtype not in ("int1", *NARROW))
        a = self.pick(near) if near else self.load(shape, self.pick(TYPES))
        dtype = self.types[a].dtype
        if dtype in INTEGERS and self.chance(0.3):
            dtype = self.pick(INTEGERS)
        return self.add(self.pick(list(COMPARISONS)), (a, self.of(shape, dtype)), "int1", shape)

    def literal(self) -> None:
        a = self.value(lambda t: t.dtype not in ("int1", *NARROW))
        if a is None:
            return
        tile = self.types[a]
        if is_float(tile.dtype):
            self.add("literal", (a,), tile.dtype, tile.shape, self.pick("+-*"), self.pick((0.5, 2.0, 3, 1.25)))
        elif self.chance(0.4):
            by = self.of(tile.shape, self.pick(INTEGERS))
            dtype = common(tile.dtype, self.types[by].dtype)
            self.add(self.pick(("tile <<", "tile >>")), (a, by), dtype, tile.shape, bits(dtype) - 1)
        elif self.chance(0.4):
            self.add(self.pick(("<<", ">>")), (a,), tile.dtype, tile.shape, self.number(0, bits(tile.dtype) - 1))
        else:
            self.add(
                "literal", (a,), tile.dtype, tile.shape, self.pick(("+", "-", "*", "&", "//", "%")), self.number(1, 100)
            )

    def unary(self) -> None:
        a = self.value(lambda t: t.dtype not in NARROW)
        if a is not None and self.types[a].dtype in INTEGERS and self.chance(0.2):
            self.add("map halvings", (a,), "int32", self.types[a].shape)
            return
        if a is None:
            return
        tile = self.types[a]
        if tile.dtype == "int1":
            name = "not"
        elif is_float(tile.dtype):
            names = ["neg", "abs", "floor", "ceil"] + (list(FUNCTIONS) if tile.dtype == "float32" else [])
            name = self.pick(names)
        else:
            name = self.pick(("abs", "not", "neg")) if tile.dtype[0] == "i" else "not"
        self.add(name, (a,), tile.dtype, tile.shape)

    def cast(self) -> None:
        a = self.value()
        if a is None:
            return
        tile = self.types[a]
        if tile.dtype in INTEGERS and self.chance(0.3):
            to = tile.dtype[1:] if tile.dtype[0] == "u" else f"u{tile.dtype}"
            self.add("bitcast", (a,), to, tile.shape, to)
            return
        if tile.dtype in NARROW:
            to = self.pick(("float32", "float16", "bfloat16"))
        else:
            to = self.pick((*TYPES, "int1"))
            if tile.dtype in ("float32", "float16") and self.chance(0.15):
                to = "float8e5"
        self.add("cast", (a,), to, tile.shape, to)

    def select(self) -> None:
        a = self.value(lambda t: t.dtype != "int1" and t.dtype not in NARROW)
        if a is None:
            return
        tile = self.types[a]
        self.add("where", (self.of(tile.shape, "int1"), a, self.of(tile.shape, tile.dtype)), tile.dtype, tile.shape)

    def move(self) -> None:
        a = self.value()
        if a is None:
            return
        tile = self.types[a]
        rank = len(tile.shape)
        ways = ["reshape", "expand", "join", "interleave"]
        ways += (
            ["trans"] * (rank > 1) * 2 + ["split"] * (tile.shape[-1] == 2) * 3 + ["broadcast"] * (1 in tile.shape) * 2
        )
        ways += ["flip"] * (tile.dtype not in ("int1", *NARROW))
        self.moved(self.pick(ways), a, tile)

    def moved(self, way: str, a: str, tile: Tile) -> None:
        rank = len(tile.shape)
        if way == "reshape":
            shapes = [(tile.size,), tile.shape[::-1], *splits(tile.size)]
            if not even(tile.size):
                shapes = uneven_reshapes(tile.shape)
            if not shapes:
                return
            shape = self.pick(shapes)
            self.add(way, (a,), tile.dtype, shape, shape)
        elif way == "trans":
            order = tuple(int(x) for x in self.random.permutation(rank))
            self.add(way, (a,), tile.dtype, tuple(tile.shape[x] for x in order), order)
        elif way == "expand" and rank < 4:
            axis = self.number(0, rank)
            self.add(way, (a,), tile.dtype, (*tile.shape[:axis], 1, *tile.shape[axis:]), axis)
        elif way == "broadcast":
            shape = tuple(self.pick(self.dims) if extent == 1 else extent for extent in tile.shape)
            if np.prod(shape) <= self.most:
                self.add(way, (a,), tile.dtype, shape, shape)
        elif way in ("join", "interleave") and tile.size * 2 <= self.most and rank < 4:
            b = a if tile.dtype in NARROW else self.of(tile.shape, tile.dtype)
            shape = (*tile.shape, 2) if way == "join" else (*tile.shape[:-1], 2 * tile.shape[-1])
            self.add(way, (a, b), tile.dtype, shape)
        elif way == "split" and rank > 1:
            outs = tuple(self.fresh(tile.dtype, tile.shape[:-1]) for _ in range(2))
            self.blocks[-1].append(Op("split", outs, (a,)))
            self.scopes[-1] += outs
        elif way == "flip":
            self.add(way, (a,), tile.dtype, tile.shape, self.number(0, rank - 1))

    def along(self) -> None:
        """A reduction, a scan, or something sorted."""
        a = self.value(lambda t: t.dtype not in ("int1", *NARROW))
        if a is None:
            return
        tile = self.types[a]
        axis = self.number(0, len(tile.shape) - 1)
        rest = tile.shape[:axis] + tile.shape[axis + 1 :]
        ways = ["sum", "sum", "max", "min", "argmax", "cumsum", "scan_max", "gather"]
        ways += ["xor_sum", "reduce_mul"] * (not is_float(tile.dtype))
        ways += ["sort", "topk"] * (1 < tile.shape[-1] <= 64 and even(tile.shape[-1]))
        way = self.pick(ways)
        if way in ("sum", "max", "min"):
            whole = self.chance(0.2)
            self.add(way, (a,), tile.dtype, () if whole else rest, None if whole else axis, tile.dtype)
        elif way == "argmax":
            self.add(way, (a,), "int32", rest, axis)
        elif way in ("xor_sum", "reduce_mul"):
            self.add(way, (a,), tile.dtype, rest, axis)
        elif way == "cumsum":
            wide = (
                tile.dtype if is_float(tile.dtype) or bits(tile.dtype) >= 32 else tile.dtype.rstrip("0123456789") + "32"
            )
            self.add(way, (a,), wide, tile.shape, axis, self.chance(0.3))
        elif way == "scan_max":
            self.add(way, (a,), tile.dtype, tile.shape, axis, self.chance(0.3))
        elif way == "gather":
            shape = tuple(self.pick(self.dims) if d == axis else extent for d, extent in enumerate(tile.shape))
            if np.prod(shape) <= self.most:
                index = self.add(
                    "literal", (self.of(shape, "int32"),), "int32", shape, "&", below(tile.shape[axis]) - 1
                )
                self.add(way, (a, index), tile.dtype, shape, axis)
        elif way == "sort":
            self.add(way, (a,), tile.dtype, tile.shape, self.chance(0.5))
        else:
            k = 2 ** self.number(0, int(np.log2(tile.shape[-1])))
            self.add(way, (a,), tile.dtype, (*tile.shape[:-1], k), k)

    def multiplied(self) -> tuple[str, str]:
        """The types of a product's operands and of its sums."""
        kind = self.pick(("float16", "float16", "float16", "bfloat16", "float32", "int8", "float64", *NARROW))
        return kind, {"int8": "int32", "float64": "float64"}.get(kind, "float32")

    def sizes_of_large(self) -> tuple[int, int, int]:
        """Rows, columns and the inner size of a product that warpgroups may make."""
        rows = self.pick((64, 128))
        return rows, self.pick((16, 32, 64, 128)) if rows == 128 else self.pick((16, 64, 128, 256)), self.pick((32, 64))

    def dot(self) -> None:
        M, N, K = (self.pick((16, 32)) if self.chance(0.8) else self.pick((8, 12, 24, 40, 48)) for _ in range(3))
        kind, out = self.multiplied()
        if self.large:
            M, N, K = self.sizes_of_large()
        K = max(K, 32) if bits(kind) == 8 else K
        ways = {"float32": ("ieee", "tf32")}
        precision = self.pick(ways.get(kind, ("",)))
        a, b = self.of((M, K), kind), self.of((K, N), kind)
        if self.chance(0.5):
            self.add("dot_onto", (a, b, self.of((M, N), out)), out, (M, N), precision, out)
        else:
            self.add("dot", (a, b), out, (M, N), precision, out)

    def counts(self) -> None:
        bins = self.pick((4, 16, 32, 24))
        a = self.value(lambda t: t.dtype == "int32" and len(t.shape) == 1 and t.size >= 4)
        if a is None:
            return
        shape = self.types[a].shape
        index = self.add("literal", (a,), "int32", shape, "&", below(bins) - 1)
        self.add("histogram", (index,), "int32", (bins,), bins)

    # ---- control flow

    def inner(self, count: int) -> tuple[Any, ...]:
        """Statements of a block of their own; its names stay in ``last``."""
        self.scopes.append([])
        self.blocks.append([])
        self.depth += 1
        for _ in range(count):
            self.statement()
        self.depth -= 1
        self.last = self.scopes.pop()
        return tuple(self.blocks.pop())

    def outcome(self, tile: Tile, body: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        """A value of a type at the end of a block: one that it has, or one cast and reshaped."""
        fitting = [x for x in self.last if self.types[x] == tile]
        if fitting:
            return self.pick(fitting), body
        same = [x for x in self.last if self.types[x].shape == tile.shape]
        same = [x for x in same if self.types[x].dtype not in NARROW]
        if same:
            name = self.fresh(tile.dtype, tile.shape)
            return name, (*body, Op("cast", (name,), (self.pick(same),), (tile.dtype,)))
        return "", body

    def loop(self) -> None:
        outer = [x for x in self.scopes[-1] if self.types[x].dtype not in NARROW]
        if not outer:
            return
        names = list(dict.fromkeys(self.pick(outer[-6:]) for _ in range(self.number(1, 3))))
        counter = self.fresh("int32", ())
        kind, count = self.pick(("constant", "argument", "while")), self.number(0, 4)
        body = self.inside_loop(counter, self.number(2, 6))
        carried = []
        for name in names:
            made, body = self.outcome(self.types[name], body)
            carried += [(name, made)] if made else []
        if carried:
            self.blocks[-1].append(self.looped(Loop(kind, count, counter, tuple(carried), body)))

    def looped(self, loop: Loop) -> Loop:
        """A loop from zero in steps of one, or another one."""
        if loop.kind == "while" or self.chance(0.6):
            return loop
        return replace(loop, first=self.pick((0, 1, 2, 3)), step=self.pick((1, 2, 3, 16)))

    def inside_loop(self, counter: str, count: int) -> tuple[Any, ...]:
        self.scopes.append([counter])
        self.counters.append(counter)
        body = self.inner(count)
        self.counters.pop()
        self.scopes.pop()
        return body

    def product_loop(self) -> None:
        """Tiles along an inner size, loaded as the loop goes, changed or not, multiplied and added up."""
        M, N, K = (self.pick((16, 32, 64)) if self.chance(0.8) else self.pick((24, 48, 72, 80)) for _ in range(3))
        kind, out = self.multiplied()
        if self.large:
            M, N, K = self.sizes_of_large()
        K = max(K, 32) if bits(kind) == 8 else K
        total = self.add("full", (), out, (M, N), (M, N), 0, out)
        counter = self.fresh("int32", ())
        self.scopes.append([counter])
        self.counters.append(counter)
        self.scopes.append([])
        self.blocks.append([])
        self.depth += 1
        sides = [self.operand(shape, kind) for shape in ((M, K), (K, N))]
        for _ in range(self.number(0, 3)):
            self.statement()
        precision = self.pick(("ieee", "tf32")) if kind == "float32" else ""
        made = self.add("dot_onto", (*sides, total), out, (M, N), precision, out)
        if self.chance(0.2):
            made = self.add("literal", (made,), out, (M, N), "*", 2)
        self.depth -= 1
        self.counters.pop()
        self.scopes.pop()
        self.scopes.pop()
        kind, count = self.pick(("constant", "argument", "argument")), self.number(0, 4)
        body = tuple(self.blocks.pop())
        self.blocks[-1].append(self.looped(Loop(kind, count, counter, ((total, made),), body)))

    def operand(self, shape: tuple[int, ...], kind: str) -> str:
        """A tile of a loop's product: loaded in the type, or of another type and cast, scaled, transposed, masked."""
        if bits(kind) == 8 or self.chance(0.4):
            return self.load(shape, kind)
        way = self.pick(("cast", "scale", "trans", "where", "of"))
        if way == "cast":
            source = self.load(shape, self.pick(("int8", "float32", "float8e5", "int32", "bfloat16")))
            source = self.add("cast", (source,), "float32", shape, "float32")
            return self.add("cast", (source,), kind, shape, kind)
        if way == "scale":
            rows = self.load((shape[0], 1), kind)
            return self.add("*", (self.load(shape, kind), rows), kind, shape)
        if way == "trans":
            return self.add("trans", (self.load(shape[::-1], kind),), kind, shape, (1, 0))
        if way == "where":
            a = self.load(shape, kind)
            return self.add("where", (self.compare(shape), a, self.of(shape, kind)), kind, shape)
        return self.of(shape, kind)

    def branch(self) -> None:
        outer = [x for x in self.scopes[-1] if self.types[x].dtype not in NARROW]
        if not outer:
            return
        scalars = self.values(lambda t: t.dtype in ("int32", "int64") and not t.shape)
        if scalars and self.chance(0.7):
            number = self.pick(scalars)
        else:
            number = self.add("argument", (), "int32", (), self.pick(("n", "pid")))
        condition = self.add("literal", (number,), "int1", (), self.pick(("<", ">", "==")), self.number(0, 4))
        names = list(dict.fromkeys(self.pick(outer[-6:]) for _ in range(self.number(1, 2))))
        sides, found = [], {name: [name, name] for name in names}
        for side in range(2):
            body = self.inner(self.number(1, 4)) if side == 0 or self.chance(0.6) else ()
            for name in names if body else ():
                made, body = self.outcome(self.types[name], body)
                found[name][side] = made or name
            sides.append(body)
        assigned = tuple((name, a, b) for name, (a, b) in found.items() if (a, b) != (name, name))
        if assigned:
            self.blocks[-1].append(Branch(condition, assigned, *sides))

    def call(self) -> None:
        outer = self.values(lambda t: t.dtype not in NARROW)
        if not outer or self.depth:
            return
        given = list(dict.fromkeys(self.pick(outer[-6:]) for _ in range(self.number(1, 3))))
        inner = [self.fresh(self.types[x].dtype, self.types[x].shape) for x in given]
        scopes, self.scopes = self.scopes, [inner]
        self.inside = True
        body = self.inner(self.number(2, 5))
        self.inside = False
        self.scopes = scopes
        made = [x for x in self.last if self.types[x].dtype not in NARROW]
        if made:
            chosen = list(dict.fromkeys(self.pick(made) for _ in range(2)))
            outs = [self.fresh(self.types[x].dtype, self.types[x].shape) for x in chosen]
            pairs = tuple(zip(given, inner, strict=True)), tuple(zip(chosen, outs, strict=True))
            self.blocks[-1].append(Call(f"helper{len(self.types)}", *pairs, body))
            self.scopes[-1] += outs

    inside = False

    def statement(self) -> None:
        ways = {
            self.binary: 8, self.literal: 3, self.unary: 3, self.cast: 4, self.select: 3, self.move: 7, self.along: 6,
            self.dot: 1.5, self.counts: 0.5, self.fill: 1,
        }  # fmt: skip
        if not self.inside:
            ways |= {self.any_load: 2, self.store: 1, self.atomic: 0.4 if not self.depth else 0}
        if self.depth < 2 and not self.inside:
            ways |= {self.loop: 1.2, self.branch: 1, self.call: 0.6, self.product_loop: 1 if not self.depth else 0.3}
        weights = np.array(list(ways.values()))
        list(ways)[int(self.random.choice(len(weights), p=weights / weights.sum()))]()

    def any_load(self) -> None:
        self.load(self.shape(), self.pick((*TYPES, "float8e5")))

    def fill(self) -> None:
        if self.chance(0.5):
            self.add("arange", (), "int32", (size := self.pick([x for x in self.dims if x > 1] or [16]),), size)
        else:
            shape, dtype = self.shape(), self.pick(TYPES)
            self.add("full", (), dtype, shape, shape, self.number(0, 5), dtype)


def even(size: int) -> bool:
    """Whether a size is a power of two."""
    return size & (size - 1) == 0


def below(size: int) -> int:
    """The greatest power of two that is no more than a size."""
    return 1 << (size.bit_length() - 1)


def uneven_reshapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of as many elements that take few runs of elements apart."""
    *rest, last = shape
    small = int(np.prod(shape)) <= 256
    parts = (2, 3, 4, 16) if small else (2, 4, 16)
    found = [(*rest, last // part, part) for part in parts if last % part == 0 and len(shape) < 4]
    if len(shape) > 1 and small:
        found.append((int(np.prod(shape)),))
    if len(shape) > 1 and (even(last) or shape[-2] <= 4):
        found.append((*shape[:-2], shape[-2] * last))
    return found


def splits(size: int) -> list[tuple[int, ...]]:
    """Shapes of rank 2 and 3 with as many elements."""
    found = [(size // part, part) for part in (2, 4, 16) if size % part == 0]
    return found + [(size // 8, 2, 4)] * (size % 8 == 0)


def fitting(memory: str, value: str) -> bool:
    """Whether a store's own conversion is one that is judged: floats to floats, integers to integers."""
    return memory == value or (is_float(memory) and memory in FLOATS and value in FLOATS)


def draw(seed: int, large: float | None = None) -> Program:
    """The program of a seed; ``large`` is how likely it is a large one."""
    made = Draw(seed, large)
    for _ in range(made.number(2, 3)):
        made.any_load()
    for _ in range(made.number(4, 12 if made.large else 24)):
        made.statement()
    body = list(made.blocks[0])
    names = [x for x in made.scopes[0] if made.types[x].dtype not in NARROW]
    changed = [x for s in body for x in (getattr(s, "carried", ()) or getattr(s, "assigned", ()))]
    for name in dict.fromkeys([*(x[0] for x in changed), *names[-6:]]):
        tile = made.types[name]
        if tile.dtype in NARROW:
            continue
        dtype = "int8" if tile.dtype == "int1" else tile.dtype
        buffer = Buffer(f"out_{name}", dtype, tile.size, "out")
        made.buffers.append(buffer)
        body.append(Op("store", (), (name,), (buffer.name, tile.shape, "e", None)))
    used = {x.attrs[0] for x in _accesses(tuple(body))}
    buffers = tuple(b for b in made.buffers if b.name in used)
    programs, warps, stages = made.pick((1, 2, 3)), made.pick((1, 2, 4, 4)), made.pick((1, 2, 3))
    if made.large:
        programs, warps = 1, made.pick((4, 4, 8))
    return Program(seed, programs, warps, stages, made.n, buffers, tuple(body), made.types, made.pick(TARGETS))


def _accesses(body: tuple[Any, ...]) -> list[Op]:
    from .program import every

    return [x for x in every(body) if isinstance(x, Op) and x.name in ("load", "store", "atomic")]
