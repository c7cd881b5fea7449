# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Draws a kernel's text: sums that products add to, hand on and change places, in loops and branches."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

#: elements of the memory that operands come from, and of that which a program reads and writes
OPERANDS, OWN = 1 << 18, 1 << 16
#: as many iterations a loop has at most
MOST = 3
HEAD = "def kernel(a, out, narrow, counts, own, idx, n0, n1, n2, rows):"


@dataclass
class Drawn:
    seed: int
    text: str
    dtype: str
    warps: int
    stages: int
    programs: int
    counts: tuple[int, int, int]
    stored: int  # elements of the memory that results go to
    options: dict[str, Any] = field(default_factory=dict)  # of the compilation

    @property
    def sums(self) -> str:
        return "int32" if self.dtype == "int8" else "float32"

    @property
    def narrow(self) -> str:
        return "int8" if self.dtype == "int8" else "float16"


class Draw:
    """A kernel in the making. `sums` are tiles of M rows by their columns, `maxima` vectors of M numbers."""

    def __init__(self, seed: int):
        self.random, self.seed = random.Random(seed), seed
        pick = self.random.choice
        self.dtype = pick(("float16",) * 4 + ("bfloat16",) * 2 + ("float32",) * 2 + ("float8e5", "int8"))
        self.M, self.warps = pick(((128, 4),) * 3 + ((64, 4), (256, 8), (128, 8), (256, 4)))
        least = 32 if self.dtype in ("float8e5", "int8") else 16
        uneven = (8, 24, 48, 80, 96) if least == 16 and self.chance(0.25) else ()
        self.columns = [max(pick((16, 32, 64, 64, *uneven)), least * (not uneven)) for _ in range(2)]
        self.inner = [max(pick((16, 32, 64)), 32 if self.dtype == "float32" else least) for _ in range(2)]
        self.sums: dict[str, int] = {}
        self.maxima: list[str] = []
        self.operands: dict[str, int] = {}  # that products took on their left, by their inner size
        self.lines: list[str] = []
        self.begin: list[str] = []
        self.counters: list[str] = []
        self.depth, self.names, self.stored, self.scalings, self.left = 1, 0, 0, 0, 24
        self.programs = pick((1, 1, 2, 3))

    # ---- words

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def put(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def new(self, text: str) -> str:
        self.names += 1
        self.put(f"v{self.names} = {text}")
        return f"v{self.names}"

    def of(self, columns: int | None = None) -> str:
        return self.random.choice([name for name, N in self.sums.items() if columns in (None, N)])

    @property
    def of_integers(self) -> bool:
        return self.dtype == "int8"

    @property
    def sum_type(self) -> str:
        return "wl.int32" if self.of_integers else "wl.float32"

    def within(self, value: str, limit: int) -> str:
        """Whole numbers from -limit to limit."""
        if self.of_integers:
            return f"wl.minimum(wl.maximum({value}, -{limit}), {limit})"
        return f"wl.floor(wl.minimum(wl.maximum({value}, -{limit}.0), {limit}.0))"

    def operand(self, value: str) -> str:
        return f"{self.within(value, self.random.choice((2, 4)))}.to(wl.{self.dtype})"

    def condition(self) -> str:
        options = [f"n{self.random.randrange(3)} > {self.random.randrange(3)}"]
        for counter in self.counters:
            options += [f"{counter} % 2 == {self.random.randrange(2)}", f"{counter} > 0"]
        return self.random.choice(options)

    # ---- memory

    def load(self, rows: int, columns: int) -> str:
        first = 64 * self.random.randrange((OPERANDS - 4 * rows * columns) // 64 - 64)
        step = self.random.choice(self.counters) if self.counters and self.chance(0.75) else "0"
        i, j = f"wl.arange(0, {rows})[:, None]", f"wl.arange(0, {columns})[None, :]"
        way = self.random.choice(("plain", "plain", "turned", "masked", "described", "chosen"))
        place = f"a + {first} + {step} * {rows * columns} + pid * 64"
        whole = (rows & (rows - 1)) == 0 and (columns & (columns - 1)) == 0 and columns >= 16
        if way == "described" and whole:
            self.names += 1
            name = f"d{self.names}"
            shape = f"[{rows * (MOST + 1)}, {columns}], [{columns}, 1], [{rows}, {columns}]"
            self.begin.append(f"    {name} = wl.make_tensor_descriptor(a + {first}, {shape})")
            return self.new(f"{name}.load([{step} * {rows}, 0])")
        if way == "chosen" and rows == self.M and self.sums and self.chance(0.3):
            i = self.new(f"wl.argmax({self.within(self.of(), 4)}, 1).to(wl.int32)") + "[:, None]"
        if way == "turned":
            return self.new(f"wl.load({place} + {i} + {j} * {rows})")
        mask = self.random.choice((f"{i} < rows", f"{j} < rows", f"({i} < rows) & ({j} < {columns - 4})"))
        return self.new(f"wl.load({place} + {i} * {columns} + {j}" + f", mask={mask}, other=0)" * (way == "masked")
                        + ")" * (way != "masked"))  # fmt: skip

    def place(self, size: int) -> str:
        """Where results of this line go, in each iteration and program elsewhere."""
        text, each = str(self.stored), size
        for counter in self.counters:
            text, each = f"{text} + {counter} * {each}", each * (MOST + 1)
        self.stored += each * self.programs
        return f"{text} + pid * {each}"

    def store(self, name: str | None = None) -> None:
        name = name or self.of()
        M, N = self.M, self.sums[name]
        i, j = f"wl.arange(0, {M})[:, None]", f"wl.arange(0, {N})[None, :]"
        at = f"{self.place(M * N)} + " + (f"{i} * {N} + {j}" if self.chance(0.8) else f"{i} + {j} * {M}")
        kind = self.random.randrange(5)
        if kind == 0 and not self.of_integers:
            self.put(f"wl.store(narrow + {at}, ({name} * 0.5).to(wl.float16))")
        elif kind == 1:
            narrow = "int8" if self.of_integers else "float16"
            self.put(f"wl.store(narrow + {at}, {self.within(name, 100)}.to(wl.{narrow}))")
        else:
            self.put(f"wl.store(out + {at}, {name})")

    def in_place(self) -> None:
        """Memory that the program reads and writes."""
        name = self.of()
        N = self.sums[name]
        at = f"own + pid * {OWN} + wl.arange(0, {self.M})[:, None] * {N} + wl.arange(0, {N})[None, :]"
        old = self.new(f"wl.load({at})")
        self.put(f"wl.store({at}, {self.operand(name)})")
        self.put(f"{name} = {self.within(name, 64)} + {old}.to({self.sum_type})")

    # ---- products

    def left_operand(self) -> tuple[str, int]:
        if self.operands and self.chance(0.35):
            return self.random.choice(list(self.operands.items()))
        name, K = self.of(), self.random.choice(self.inner)
        if self.sums[name] >= 16 and self.chance(0.5):
            operand, K = self.new(self.operand(name)), self.sums[name]
        else:
            operand = self.load(self.M, K)
            if self.chance(0.25):
                odd = f"wl.arange(0, {self.M})[:, None] % 2"
                operand = self.new(f"({operand}.to({self.sum_type}) * -1 + {odd}).to(wl.{self.dtype})")
        self.operands[operand] = K
        return operand, K

    def right_operand(self, K: int, N: int) -> str:
        for name, columns in self.sums.items():
            if (columns, self.M) == (K, N) and self.chance(0.3):
                return f"wl.trans({self.new(self.operand(name))})"
            if (self.M, columns) == (K, N) and self.chance(0.3):
                return self.new(self.operand(name))
        return f"{self.load(N, K)}.T" if self.chance(0.3) else self.load(K, N)

    def product(self, a: str, b: str, onto: str = "") -> str:
        return f"wl.dot({a}, {b}{', ' * bool(onto)}{onto}{', out_dtype=wl.int32' * self.of_integers})"

    def dot(self) -> None:
        name = self.of()
        (a, K), N = self.left_operand(), self.sums[name]
        b = self.right_operand(K, N)
        kind = self.random.randrange(8)
        if kind == 0:
            self.put(f"{name} = {self.of(N)} + {self.product(a, b)}")
        elif kind == 1:
            self.sums[self.new(self.product(a, b))] = N
        else:
            self.put(f"{name} = {self.product(a, b, self.of(N) if kind < 4 else name)}")

    def attend(self) -> None:
        """Scores, their maxima, and weights that another product takes."""
        name, N, K = self.of(), self.random.choice(self.columns), self.random.choice(self.inner)
        if N < 16:
            return
        scores = self.new(self.product(self.load(self.M, K), self.right_operand(K, N)))
        if self.maxima:
            best = self.random.choice(self.maxima)
            most = self.new(f"wl.maximum({best}, wl.max({scores}, 1))")
            if not self.of_integers and self.scalings < 6:
                self.scalings += 1
                self.put(f"{name} = {name} * wl.where({most} > {best}, 0.5, 1.0)[:, None]")
            self.put(f"{best} = {most}")
            scores = f"({scores} - {most}[:, None])"
        weights = self.new(self.operand(scores))
        self.put(f"{name} = {self.product(weights, self.right_operand(N, self.sums[name]), name)}")

    # ---- what is done with sums

    def scale(self) -> None:
        if self.scalings >= 6:
            return
        self.scalings += 1
        name = self.of()
        by = self.random.choice(("2", "-1") if self.of_integers else ("0.5", "0.5", "-1.0", "2.0"))
        if self.maxima and self.chance(0.4) and not self.of_integers:
            by = f"wl.where({self.random.choice(self.maxima)} > 3.0, 0.5, 1.0)[:, None]"
        other = self.of(self.sums[name]) if self.chance(0.3) else name
        if self.chance(0.25):
            self.sums[self.new(f"{other} * {by}")] = self.sums[name]
        else:
            self.put(f"{name} = {other} * {by}")

    def change(self) -> None:
        name = self.of()
        M, N = self.M, self.sums[name]
        other, some = self.of(N), self.within(name, 8)
        by_powers = (M & (M - 1)) == 0 and (N & (N - 1)) == 0 and N >= 16
        whole = [f"{name}, {other} = {other}, {name}"] * 3 * (name != other)
        whole += [f"{name} = {other}", f"{name} = {self.within(name, 64)}"]
        whole += [
            f"{name} = wl.where({self.condition()}, {name}, {other})",
            f"{name} = wl.where({name} > 0, {name}, 0)",
        ]
        whole += [f"{name} = {self.within(name, 64)} - {self.within(other, 32)}", f"{name} = wl.flip({name}, 1)"]
        whole += [f"{name} = wl.cumsum({some}, {self.random.randrange(2)})"]
        whole += [f"{name} = wl.reshape({name}, ({N}, {M})).T"] * by_powers
        whole += [f"wl.atomic_add(counts + wl.arange(0, {N})[None, :] + wl.arange(0, {M})[:, None] * 0, {some})"]
        for best in self.maxima:
            whole.append(f"{name} = {self.within(name, 64)} - {self.within(best, 64)}[:, None]")
        self.put(self.random.choice(whole))

    def reduce(self) -> None:
        name, N = self.of(), 0
        N = self.sums[name]
        value = f"wl.max({name}, 1)" if self.chance(0.5) else f"wl.sum({self.within(name, 8)}, 1)"
        kind = self.random.randrange(3)
        if kind == 0:
            self.put(f"wl.store(out + {self.place(N)} + wl.arange(0, {N}), wl.max({name}, 0))")
        elif kind == 1 and self.maxima:
            best = self.random.choice(self.maxima)
            self.put(f"{best} = wl.maximum({best}, {value})")
        else:
            self.maxima.append(self.new(value))

    # ---- blocks

    def within_block(self, count: int, end: str = "") -> None:
        known = dict(self.sums), list(self.maxima), dict(self.operands)
        self.depth += 1
        self.put("pass_ = 0")
        self.block(count)
        if end:
            self.put(end)
        self.depth -= 1
        self.sums, self.maxima, self.operands = known

    def branch(self) -> None:
        self.put(f"if {self.condition()}:")
        self.within_block(self.random.randint(1, 3))
        if self.chance(0.4):
            self.put("else:")
            self.within_block(self.random.randint(1, 3))

    def loop(self) -> None:
        if len(self.counters) == 2:
            return
        counter, n = f"i{len(self.lines)}", f"n{self.random.randrange(3)}"
        kind = self.random.choice(("range", "range", "range", "while", "break", "unrolled"))
        heads = {
            "range": f"for {counter} in wl.range(0, {n}, num_stages={self.random.randint(1, 4)}):",
            "while": f"while {counter} < {n}:",
            "break": f"for {counter} in range(0, {n}):",
            "unrolled": f"for {counter} in wl.static_range({self.random.randint(1, 3)}):",
        }
        ends = {"while": f"{counter} = {counter} + 1", "break": f"if {counter} == 1: break"}
        if kind == "while":
            self.put(f"{counter} = 0")
        self.put(heads[kind])
        self.counters.append(counter)
        self.within_block(self.random.randint(2, 6), ends.get(kind, ""))
        self.counters.pop()

    def block(self, count: int) -> None:
        steps = {self.dot: 6, self.attend: 1.6, self.scale: 2, self.change: 3, self.reduce: 0.9, self.store: 0.9,
                 self.in_place: 0.2}  # fmt: skip
        if self.depth < 4:
            steps |= {self.branch: 0.8, self.loop: 0.8}
        for _ in range(count):
            if self.left > 0:
                self.left -= 1
                self.random.choices(list(steps), list(steps.values()))[0]()

    def drawn(self) -> Drawn:
        for _ in range(self.random.randint(1, 3)):
            N = self.random.choice(self.columns)
            self.sums[self.new(f"wl.zeros(({self.M}, {N}), {self.sum_type})")] = N
        if self.chance(0.5):
            self.maxima.append(self.new(f"wl.zeros(({self.M},), {self.sum_type})"))
        self.block(self.random.randint(2, 5))
        self.loop()
        self.block(self.random.randint(0, 3))
        for name in list(self.sums):
            self.store(name)
        for name in self.maxima:
            self.put(f"wl.store(out + {self.place(self.M)} + wl.arange(0, {self.M}), {name})")
        text = "\n".join([HEAD, "    pid = wl.program_id(0)", *self.begin, *self.lines]) + "\n"
        counts = tuple(self.random.choice((0, 1, 2, 2, MOST)) for _ in range(3))
        return Drawn(
            self.seed, text, self.dtype, self.warps, self.random.choice((1, 2, 2, 3, 4)), self.programs, counts,
            self.stored + 64,
        )  # fmt: skip


def draw(seed: int) -> Drawn:
    return Draw(seed).drawn()
