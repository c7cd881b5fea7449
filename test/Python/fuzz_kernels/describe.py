# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a random kernel does: statements over blocks of one shape, on memory of each program's own, on memory that all
add to, and, in turns or by the last program, on memory that all see.

Indices and masks are formulas in ``e`` (the number of an element in its block), ``i`` and ``j`` (its row and column),
``t`` (a loop's counter) and sizes; what is true of them here must be true of Python's integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: types of values, and of memory that they may be kept in
VALUE_TYPES = ("int32", "int64", "float32")
MEMORY_TYPES = {
    "int32": ("int8", "uint8", "int16", "int32", "uint32", "int64"),
    "int64": ("int64", "uint64", "int32", "int16"),
    "float32": ("float16", "float32", "float64"),
}
SEMS = ("relaxed", "acquire", "release", "acq_rel", None)
#: what all may do to one memory in any order
COMMUTING = {
    "int32": ("add", "max", "min", "and", "or", "xor"),
    "int64": ("add", "max", "min", "xor"),
    "uint32": ("add", "max", "min", "or"),
    "float32": ("add", "max", "min"),
    "float64": ("add",),
    "float16": ("add",),
}


@dataclass(frozen=True)
class Buffer:
    """Memory: a block's elements for each program (``private``), or for all together (``shared``, ``common``)."""

    name: str
    dtype: str
    role: str  # "private", "out" (written only), "shared" (atomics of one kind), "common" (in turns)
    kind: str = ""  # of a shared one


@dataclass(frozen=True)
class Load:
    to: str
    buffer: str
    index: str
    mask: str | None
    other: int | None
    dtype: str
    policy: str = ""


@dataclass(frozen=True)
class Store:
    buffer: str
    index: str
    value: str
    mask: str | None
    policy: str = ""


@dataclass(frozen=True)
class Binary:
    to: str
    op: str  # "+", "-", "maximum", "minimum"
    a: str
    b: str


@dataclass(frozen=True)
class Scale:
    to: str
    a: str
    by: int


@dataclass(frozen=True)
class Where:
    to: str
    mask: str
    a: str
    b: str


@dataclass(frozen=True)
class Cast:
    to: str
    a: str
    dtype: str


@dataclass(frozen=True)
class Reduce:
    """value + op(value, axis), the result of the reduction broadcast again."""

    to: str
    op: str  # "sum", "max", "min"
    a: str
    axis: int | None


@dataclass(frozen=True)
class StoreReduced:
    buffer: str
    op: str
    value: str
    axis: int | None


@dataclass(frozen=True)
class Scan:
    to: str
    a: str
    axis: int


@dataclass(frozen=True)
class Atomic:
    """Adds and the like to shared memory; nobody reads what was there."""

    buffer: str
    index: str
    value: str
    mask: str | None
    sem: str | None
    scope: str | None


@dataclass(frozen=True)
class AtomicOld:
    """An atomic on a program's own memory, of which the old value is taken; ``cas`` compares with ``expected``."""

    to: str
    kind: str
    buffer: str
    index: str
    value: str
    expected: str
    mask: str | None
    sem: str | None


@dataclass(frozen=True)
class ScalarInPlace:
    """A number in memory, changed in place by a load and a store, or an atomic; a block plus what it was before."""

    to: str
    buffer: str
    at: int
    a: str
    by: int
    sem: str | None
    atomic: bool


@dataclass(frozen=True)
class Loop:
    count: int
    body: tuple
    carried: str  # a value that the body adds to, once more
    added: str


@dataclass(frozen=True)
class Turn:
    """Programs one after the other, by a flag that each hands to the next, or in any order under a lock; ``body`` is on
    common memory. Under a lock it is additions only.
    """

    by: str  # "volatile", "acquire", "lock"
    body: tuple


@dataclass(frozen=True)
class LastBlock:
    """The last program to arrive sums a memory of all programs."""

    buffer: str
    index: str
    out: str
    sem: str | None


@dataclass(frozen=True)
class Kernel:
    shape: tuple[int, ...]
    programs: int
    warps: int
    n: int  # an argument that masks compare with
    buffers: tuple[Buffer, ...]
    body: tuple
    seed: int = 0  # of the memory's contents

    @property
    def size(self) -> int:
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    def buffer(self, name: str) -> Buffer:
        return next(buffer for buffer in self.buffers if buffer.name == name)


# ---- Drawing one


@dataclass
class Draw:
    """A kernel in the making."""

    random: object  # numpy.random.Generator
    shape: tuple[int, ...]
    programs: int
    buffers: list[Buffer] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)  # name -> type
    made: int = 0

    @property
    def size(self) -> int:
        return self.shape[0] * (self.shape[1] if len(self.shape) > 1 else 1)

    def chance(self, p: float) -> bool:
        return bool(self.random.random() < p)

    def pick(self, options):
        options = list(options)
        return options[int(self.random.integers(len(options)))]

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def bind(self, dtype: str) -> str:
        name = self.name()
        self.values[name] = dtype
        return name

    def memory(self, role: str, dtype: str, fresh: float = 0.4, kind: str = "") -> Buffer:
        known = [b for b in self.buffers if b.role == role and b.dtype == dtype and b.kind == kind]
        if known and not self.chance(fresh):
            return self.pick(known)
        buffer = Buffer(f"b{len(self.buffers)}", dtype, role, kind)
        self.buffers.append(buffer)
        return buffer

    # ---- formulas

    def permutation(self, loop: bool = False) -> str:
        size, c = self.size, self.number(0, self.size - 1)
        forms = ["e", "e", "e", f"{size - 1} - e", f"e ^ {c}", f"(e + {c}) % {size}", f"(e * 5 + {c}) % {size}"]
        if len(self.shape) > 1:
            forms += [f"j * {self.shape[0]} + i", f"i * {self.shape[1]} + ({self.shape[1] - 1} - j)"]
        if loop:
            forms += [f"(e + t) % {size}", f"(e + {c} * t) % {size}"]
        return self.pick(forms)

    def index(self, loop: bool = False) -> str:
        if self.chance(0.7):
            return self.permutation(loop)
        forms = ["e // 2", f"e * 0 + {self.number(0, self.size - 1)}", f"e % {self.number(1, self.size)}"]
        if len(self.shape) > 1:
            forms += ["i + j * 0", "j + i * 0"]
        return self.pick(forms)

    def mask(self, p: float = 0.5) -> str | None:
        if not self.chance(p):
            return None
        c = self.number(0, self.size)
        forms = [f"e < {c}", f"e >= {c}", "e < n", f"e % {self.number(2, 5)} == 1", f"(e < {c}) | (e > n)"]
        if len(self.shape) > 1:
            forms += [f"(i < {self.number(0, self.shape[0])}) & (j < n)", f"j % 2 == {self.number(0, 1)}"]
        return self.pick(forms)

    def policy(self, volatile: bool) -> str:
        if not self.chance(0.1):
            return ""
        options = ['cache_modifier=".cg"', 'eviction_policy="evict_last"', 'eviction_policy="evict_first"']
        return self.pick([*options, "volatile=True"] if volatile else options)

    # ---- statements

    def value(self, dtype: str | None = None) -> str | None:
        names = [name for name, kind in self.values.items() if dtype in (None, kind)]
        return self.pick(names[-6:]) if names else None

    def load(self, role: str = "private", loop: bool = False) -> list:
        dtype = self.pick(VALUE_TYPES)
        buffer = self.memory(role, self.pick(MEMORY_TYPES[dtype]))
        mask = self.mask()
        other = self.number(-5, 5) if mask and self.chance(0.6) else None
        if other is not None and buffer.dtype.startswith("u"):
            other = abs(other)
        made = Load(self.name(), buffer.name, self.index(loop), mask, other, dtype, self.policy(True))
        if mask and other is None and self.chance(0.6):  # mostly only what was read is used
            return [made, *self.where_read(made.to, mask, dtype)]
        self.values[made.to] = dtype
        return [made]

    def where_read(self, name: str, mask: str, dtype: str) -> list:
        """The value where its mask is true, and 0 elsewhere."""
        zero = Cast(self.name(), "0", dtype)
        return [zero, Where(self.bind(dtype), mask, name, zero.to)]

    def store(self, role: str | None = None, loop: bool = False) -> list:
        value = self.value()
        if value is None:
            return self.load(loop=loop)
        buffer = self.memory(
            role or self.pick(("private", "private", "out")), self.pick(MEMORY_TYPES[self.values[value]])
        )
        return [Store(buffer.name, self.permutation(loop), value, self.mask(0.4), self.policy(False))]

    def in_place(self) -> list:
        dtype = self.pick(VALUE_TYPES)
        buffer = self.memory("private", self.pick(MEMORY_TYPES[dtype]))
        index, mask = self.permutation(), self.mask(0.4)
        read = index if self.chance(0.6) else self.index()
        made, doubled = self.name(), self.bind(dtype)
        other = None if mask is None or (read == index and self.chance(0.5)) else 1
        found = [Load(made, buffer.name, read, mask, other, dtype), Scale(doubled, made, self.pick((2, -1, 3)))]
        if mask and other is None:
            del self.values[doubled]  # is undefined outside of the mask
        return [*found, Store(buffer.name, index, doubled, mask)]

    def arithmetic(self) -> list:
        a = self.value()
        if a is None:
            return self.load()
        dtype = self.values[a]
        form = self.number(0, 4)
        if form == 0:
            return [Scale(self.bind(dtype), a, self.pick((-3, -2, -1, 2, 3)))]
        if form == 1:
            to = self.pick([kind for kind in VALUE_TYPES if kind != dtype])
            return [Cast(self.bind(to), a, to)]
        b = self.value(dtype)
        if form == 2:
            return [Where(self.bind(dtype), self.mask(1), a, b)]
        op = self.pick(("+", "maximum", "minimum", *("-" * (a != b))))
        return [Binary(self.bind(dtype), op, a, b)]

    def axis(self) -> int | None:
        return self.pick((None, *range(len(self.shape))))

    def reduction(self) -> list:
        a = self.value()
        if a is None:
            return self.load()
        op, form = self.pick(("sum", "max", "min")), self.number(0, 3)
        if form == 0:
            return [Scan(self.bind(self.values[a]), a, self.number(0, len(self.shape) - 1))]
        if form == 1:
            buffer = self.memory("out", self.pick(MEMORY_TYPES[self.values[a]]), fresh=1)
            return [StoreReduced(buffer.name, op, a, self.axis())]
        return [Reduce(self.bind(self.values[a]), op, a, self.axis())]

    def scope(self) -> str | None:
        return self.pick((None, "gpu", "sys", "cta") if self.programs == 1 else (None, "gpu", "sys"))

    def atomic(self, loop: bool = False) -> list:
        value = self.value()
        if value is None:
            return self.load()
        dtype = self.pick([kind for kind in MEMORY_TYPES[self.values[value]] if kind in COMMUTING])
        buffer = self.memory("shared", dtype, kind=self.pick(COMMUTING[dtype]))
        return [Atomic(buffer.name, self.index(loop), value, self.mask(), self.pick(SEMS), self.scope())]

    def old(self) -> list:
        value = self.value()
        if value is None:
            return self.load()
        dtype = self.values[value]
        kinds = ("add", "xchg") if dtype == "float32" else ("add", "max", "min", "xchg", "cas", "xor")
        buffer, kind = self.memory("private", dtype), self.pick(kinds)
        mask = None if kind == "cas" else self.mask(0.4)
        expected = self.value(dtype)
        made = AtomicOld(
            self.bind(dtype), kind, buffer.name, self.permutation(), value, expected, mask, self.pick(SEMS)
        )
        if mask is None:
            return [made]
        del self.values[made.to]
        return [made, *self.where_read(made.to, mask, dtype)]

    def scalar(self) -> list:
        dtype = self.pick(("int32", "int64", "float32"))
        a = self.value(dtype)
        if a is None:
            return self.load()
        buffer, at = self.memory("private", dtype), self.number(0, self.size - 1)
        return [
            ScalarInPlace(self.bind(dtype), buffer.name, at, a, self.number(1, 4), self.pick(SEMS), self.chance(0.5))
        ]

    def loop(self) -> list:
        carried = self.value()
        if carried is None:
            return self.load()
        dtype, outside = self.values[carried], dict(self.values)
        body: list = []
        for _ in range(self.number(1, 3)):
            body += self.pick((self.load, self.store, self.atomic))(loop=True)
        inner = self.value(dtype)
        self.values = outside  # what the body makes is its own
        added = inner if inner else carried
        return [Loop(self.number(0, 4), tuple(body), carried, added)]

    def turn(self) -> list:
        by, outside = self.pick(("volatile", "acquire", "lock")), dict(self.values)
        value = self.value()
        if value is None:
            return []
        dtype = self.values[value]
        body: list = []
        for _ in range(self.number(1, 2)):
            buffer = self.memory("common", self.pick(MEMORY_TYPES[dtype]), fresh=0.2)
            index, mask = self.permutation(), self.mask(0.3)
            read = index if by == "lock" or self.chance(0.5) else self.index()
            made, total = self.name(), self.name()
            body += [
                Load(made, buffer.name, read, mask, None if mask is None else 0, dtype),
                Binary(total, "+", made, value),
                Store(buffer.name, index, total, mask),
            ]
        self.values = outside
        return [Turn(by, tuple(body))]

    def last_block(self) -> list:
        written = [b for b in self.buffers if b.role == "private" and b.dtype in ("int32", "int64", "float32")]
        if not written:
            return []
        buffer = self.pick(written)
        out = self.memory("common", buffer.dtype, fresh=1, kind="last")
        sem = self.pick(("acq_rel", None))
        return [LastBlock(buffer.name, self.index(), out.name, sem)]


def draw(random) -> Kernel:
    """A random kernel."""
    shapes = [(1 << int(random.integers(0, 9)),)]
    shapes += [(1 << int(random.integers(0, 5)), 1 << int(random.integers(0, 5)))]
    shape = shapes[int(random.random() < 0.4)]
    d = Draw(random, shape, int(random.integers(1, 5)))
    body: list = []
    steps = [d.load, d.load, d.store, d.store, d.in_place, d.arithmetic, d.arithmetic, d.reduction, d.atomic, d.old]
    steps += [d.scalar, d.loop]
    for _ in range(int(random.integers(2, 10))):
        body += d.pick(steps)()
    body += d.store("out")
    if d.chance(0.3):
        body += d.turn()
    if d.chance(0.3):
        body += d.last_block()
    return Kernel(
        shape, d.programs, 1 << int(random.integers(0, 4)), int(random.integers(0, d.size + 1)), tuple(d.buffers),
        tuple(body), int(random.integers(2**31)),
    )  # fmt: skip
