# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Draws loops whose tiles bulk copies bring ahead, one behind another or in a loop over tiles, and results that leave
as boxes."""

from __future__ import annotations

from .draw import HEAD, MOST, OPERANDS, OWN, Draw, Drawn

#: as many iterations a loop has that no other is around
MOST_INNER = 5


class Rings(Draw):
    """`fixed` is an operand from before the loops, `carried` are pointers that a loop moves on."""

    def __init__(self, seed: int):
        super().__init__(seed)
        pick = self.random.choice
        self.dtype = pick(("float16",) * 5 + ("bfloat16",) * 3 + ("float8e5", "int8"))
        self.M, self.warps = pick(((128, 8),) * 3 + ((128, 4), (64, 4), (256, 8), (256, 4)))
        self.bytes = 1 if self.dtype in ("float8e5", "int8") else 2
        self.columns = [pick((32, 64, 64, 128) if self.M <= 128 else (32, 64)) for _ in range(2)]
        self.inner = [pick((32, 64, 64)) for _ in range(2)]
        self.fixed: tuple[str, int] | None = None
        self.carried: list[tuple[str, int, int]] = []
        self.asks, self.owns, self.left = self.chance(0.8), self.chance(0.15), 0

    # ---- tiles

    def begin_of(self, elements: int) -> int:
        """Where an array of so many begins in the operands."""
        return 64 * self.random.randrange((OPERANDS - elements) // 64)

    def descriptor(self, memory: str, shape: tuple[str, str], stride: int, block: tuple[int, int]) -> str:
        self.names += 1
        sizes = f"[{shape[0]}, {shape[1]}], [{stride}, 1], [{block[0]}, {block[1]}]"
        self.begin.append(f"    d{self.names} = wl.make_tensor_descriptor({memory}, {sizes})")
        return f"d{self.names}"

    def described(self, rows: int, columns: int, step: str) -> str:
        """A box of an array that ends within it or elsewhere, or begins before it."""
        pick, unit, along = self.random.choice, 16 // self.bytes, self.chance(0.3)
        stride = columns * (2 if along else 1) + unit * pick((0, 0, 2))
        ends = (str(rows * (MOST_INNER + 1)), str(rows * 2 + 3), "rows", "n1 * 16", "1")
        widths = (str(stride), str(stride), str(columns - 3))
        memory = f"a + {pick(('', 'pid * 64 + '))}{self.begin_of(rows * stride * (MOST_INNER + 1) + 256)}"
        name = self.descriptor(memory, (pick(ends), pick(widths)), stride, (rows, columns))
        if along:
            return f"{name}.load([{pick((0, 0, 'pid', -2))}, {step} * {columns}])"
        return f"{name}.load([{step} * {rows} + {pick((0, 0, 'pid', -5))}, {pick((0, 0, -unit, 2 * unit))}])"

    def pointed(self, rows: int, columns: int, step: str) -> str:
        """A box of pointers: rows that wrap, or masks that end where an argument says."""
        pick = self.random.choice
        i, j = f"wl.arange(0, {rows})", f"wl.arange(0, {columns})[None, :]"
        if self.chance(0.5):
            begin = pick((f"pid * {rows}", "0"))
            row = pick((f"({begin} + {i})", f"(({begin} + {i}) % rows)"))
            mask = pick(("", f", mask={j} < rows - {step} * {columns}, other=0"))
            stride, at = columns * 4, f"{row}[:, None]"
            first = self.begin_of(rows * 3 * stride + 16 * columns)
            return f"wl.load(a + {first} + {at} * {stride} + ({step} * {columns} + {j}){mask})"
        mask = pick(("", f", mask=({step} * {rows} + {i})[:, None] < rows, other=0"))
        first = self.begin_of(rows * columns * 10)
        return f"wl.load(a + {first} + ({step} * {rows} + {i})[:, None] * {columns} + {j}{mask})"

    def brought(self, rows: int, columns: int, step: str) -> str:
        """A tile of an iteration."""
        fit = [name for name, *size in self.carried if size == [rows, columns]]
        if fit and self.chance(0.7):
            return self.new(f"wl.load({self.random.choice(fit)})")
        if self.owns and self.chance(0.3) and rows * columns * 8 <= OWN:
            place = f"wl.arange(0, {rows})[:, None] * {columns} + wl.arange(0, {columns})[None, :]"
            return self.new(f"wl.load(own + pid * {OWN} + {step} * {columns} + {place})")
        way = self.described if self.chance(0.65) else self.pointed
        return self.new(way(rows, columns, step))

    def brought_right(self, K: int, N: int, step: str) -> str:
        """Instructions of 8 bits take neighbours along K."""
        return f"{self.brought(N, K, step)}.T" if self.bytes == 1 or self.chance(0.4) else self.brought(K, N, step)

    def carry(self) -> list[str]:
        """Pointers that the next loop moves on, and how."""
        moves = []
        for K in self.inner[: self.random.choice((0, 0, 0, 1, 2))]:
            first = self.begin_of(self.M * K * 8 + 4096)
            place = f"wl.arange(0, {self.M})[:, None] * {8 * K} + wl.arange(0, {K})[None, :]"
            self.carried.append((self.new(f"a + {first} + ({place})"), self.M, K))
            moves.append(f"{self.carried[-1][0]} += {self.random.choice((K, 64))}")
        return moves

    # ---- products

    def left_of(self, step: str) -> tuple[str, int]:
        if self.fixed and self.chance(0.6):
            return self.fixed
        K = self.random.choice(self.inner)
        return self.brought(self.M, K, step), K

    def multiply(self, step: str) -> None:
        """A product of an iteration, or one and another of what is computed from it."""
        name = self.of()
        (a, K), N = self.left_of(step), self.sums[name]
        if self.chance(0.55):
            self.put(f"{name} = {self.product(a, self.brought_right(K, N, step), name)}")
            return
        W = self.random.choice((32, 64))
        scores = self.new(self.product(a, self.brought_right(K, W, step)))
        if self.chance(0.3):
            pairs = f"{step} * {W} + wl.arange(0, {W})[None, :] <= wl.arange(0, {self.M})[:, None] + rows - 64"
            self.put(f"{scores} = wl.where({pairs}, {scores}, 0)")
        if self.maxima and self.scalings < 3 and not self.counters and not self.of_integers:
            self.scalings += 1
            best = self.maxima[0]
            most = self.new(f"wl.maximum({best}, wl.max({scores}, 1))")
            self.put(f"{name} = {name} * wl.where({most} > {best} + 6.0, 0.5, 1.0)[:, None]")
            self.put(f"{best} = {most}")
        weights = self.new(self.operand(scores))
        for onto in (name, self.of(N))[: 1 + self.chance(0.25)]:
            self.put(f"{onto} = {self.product(weights, self.brought_right(W, N, step), onto)}")

    # ---- loops

    def advice(self) -> str:
        text = f", num_stages={self.random.randint(1, 5)}" if self.chance(0.6) else ""
        text += ", warp_specialize=True" * (self.asks and self.chance(0.7))
        return text + ", flatten=True" * self.chance(0.15)

    def write_own(self) -> None:
        name = self.of()
        place = f"wl.arange(0, {self.M})[:, None] * {self.sums[name]} + wl.arange(0, {self.sums[name]})[None, :]"
        self.put(f"wl.store(own + pid * {OWN} + {place}, {self.operand(name)})")

    def inner_loop(self, outer: str) -> None:
        moves, known = self.carry(), dict(self.sums)
        index = f"i{len(self.lines)}"
        most = self.random.choice(("n0", "n1", "n2", f"{outer or 'pid'} + 1", "wl.load(idx + pid) % 4"))
        first = self.random.choice(("0", "0", "0", "1", "pid"))
        if self.chance(0.85):
            self.put(f"for {index} in wl.range({first}, {most}{self.advice()}):")
        else:
            self.put(f"{index} = {first}")
            self.put(f"while {index} < {most}:")
            moves.append(f"{index} = {index} + 1")
        self.depth += 1
        step = index if not outer or self.chance(0.5) else f"({index} + {outer})"
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3))):
            self.multiply(step)
            self.sums = dict(known)
        if self.owns and self.chance(0.3):
            self.write_own()
        for move in moves:
            self.put(move)
        self.depth -= 1
        self.carried = []

    def outer_loop(self) -> None:
        """Over tiles, of which each program has its own."""
        outer, count = f"o{len(self.lines)}", f"n{self.random.randrange(3)}"
        self.put(f"for t{outer} in wl.range(pid, {count} * {self.programs}, wl.num_programs(0){self.advice()}):")
        self.depth += 1
        self.put(f"{outer} = t{outer} // {self.programs}")
        self.counters.append(outer)
        for name, N in self.sums.items():
            if self.chance(0.7):
                self.put(f"{name} = wl.zeros(({self.M}, {N}), {self.sum_type})")
        for _ in range(self.random.choice((1, 1, 2))):
            self.inner_loop(outer)
        for name in self.sums:
            self.leave(name)
        self.counters.pop()
        self.depth -= 1

    # ---- results

    def leave(self, name: str) -> None:
        """Stores sums as they are or narrowed, or adds them to those of others, as a box that may end outside."""
        if self.chance(0.25):
            return self.store(name)
        pick, M, N = self.random.choice, self.M, self.sums[name]
        memory, value, unit = "out", name, 4
        if self.chance(0.4):
            memory, unit = "narrow", 16 if self.of_integers else 8
            value = f"{self.within(name, 100)}.to(wl.{'int8' if self.of_integers else 'float16'})"
        shared = memory == "out" and not self.of_integers and self.chance(0.3)
        tile, tiles = "pid", self.programs
        for counter in self.counters:
            tile, tiles = f"({tile} * {MOST + 1} + {counter})", tiles * (MOST + 1)
        rows = M + self.programs if shared else M * tiles
        stride, first = N + unit * pick((0, 0, 1)), (self.stored + 63) // 64 * 64
        self.stored = first + rows * stride
        shape = pick((str(rows), str(rows - 3), "rows")), pick((str(N), str(N - 1), str(N - unit)))
        name = self.descriptor(f"{memory} + {first}", shape, stride, (M, N))
        if shared:
            return self.put(f"{name}.atomic_add([{pick((0, -5, 'pid'))}, 0], {self.within(value, 64)})")
        return self.put(f"{name}.store([{tile} * {M}, {pick((0, 0, 0, unit)) if stride == N else 0}], {value})")

    def drawn(self) -> Drawn:
        for _ in range(self.random.choice((1, 1, 2))):
            N = self.random.choice(self.columns)
            self.sums[self.new(f"wl.zeros(({self.M}, {N}), {self.sum_type})")] = N
        if self.chance(0.4):
            self.maxima.append(self.new(f"wl.zeros(({self.M},), {self.sum_type})"))
        if self.chance(0.6):
            K = self.random.choice(self.inner)
            self.fixed = self.brought(self.M, K, "pid"), K
        if self.owns:
            self.write_own()
        if self.chance(0.1):
            self.put(f"if {self.random.choice(('pid >= n0', 'wl.load(idx + pid) > 40', 'rows < 40'))}:")
            self.put("    return")
        around = self.chance(0.4)
        if around:
            self.outer_loop()
        for _ in range(self.random.choice((1, 1, 2)) if not around else self.random.randrange(2)):
            self.inner_loop("")
        for name in self.sums:
            self.leave(name)
        for name in self.maxima:
            self.put(f"wl.store(out + {self.place(self.M)} + wl.arange(0, {self.M}), {name})")
        text = "\n".join([HEAD, "    pid = wl.program_id(0)", *self.begin, *self.lines]) + "\n"
        counts = tuple(self.random.randint(0, MOST if around else MOST_INNER) for _ in range(3))
        made = Drawn(
            self.seed, text, self.dtype, self.warps, self.random.choice((2, 2, 3, 3, 4)), self.programs, counts,
            self.stored + 64,
        )  # fmt: skip
        if not around and self.chance(0.15):
            made.options["persistent"] = True
        elif self.programs == 2 and self.chance(0.3):
            made.options["cluster"] = 2
        return made


def draw(seed: int) -> Drawn:
    return Rings(seed).drawn()
