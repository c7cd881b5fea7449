# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A described kernel by NumPy: every program in turn, every statement in the order of the program."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from . import describe as d


class UnfitError(Exception):
    """Numbers that a float would round."""


#: the greatest integers that sums may reach where every one up to it is a float
LIMITS = {"float16": 2048, "float32": 2**22, "float64": 2**40}


@dataclass
class Memory:
    """A buffer: integers in their type, floats in float64; and which elements are defined."""

    numbers: np.ndarray
    defined: np.ndarray


@dataclass
class Outcome:
    memory: dict[str, Memory]
    #: whether a value that is undefined reaches memory
    undefined: bool = False
    ticket: int = 0


@dataclass
class Program:
    """One program: its number, and the values that it has made."""

    kernel: d.Kernel
    outcome: Outcome
    pid: int
    values: dict[str, tuple[np.ndarray, np.ndarray, str]] = field(default_factory=dict)
    t: int = 0

    def formula(self, text: str) -> np.ndarray:
        shape = self.kernel.shape
        e = np.arange(self.kernel.size).reshape(shape)
        i, j = (e // shape[1], e % shape[1]) if len(shape) > 1 else (e, e)
        return np.broadcast_to(eval(text, {"e": e, "i": i, "j": j, "t": self.t, "n": self.kernel.n}), shape)

    def mask(self, text: str | None) -> np.ndarray:
        return np.ones(self.kernel.shape, bool) if text is None else self.formula(text).astype(bool)

    def address(self, name: str, index: str) -> tuple[Memory, np.ndarray]:
        own = self.kernel.buffer(name).role in ("private", "out")
        return self.outcome.memory[name], self.formula(index) + own * self.pid * self.kernel.size

    def bind(self, name: str, numbers: np.ndarray, defined: np.ndarray, dtype: str) -> None:
        self.values[name] = (fit(numbers, dtype, defined), defined, dtype)

    def write(self, memory: Memory, at: np.ndarray, numbers, defined, mask, dtype: str) -> None:
        self.outcome.undefined |= bool((~defined & mask).any())
        memory.numbers[at[mask]] = fit(numbers, dtype, defined)[mask]
        memory.defined[at[mask]] = defined[mask]


def fit(numbers: np.ndarray, dtype: str, defined: np.ndarray) -> np.ndarray:
    """Numbers as a type has them: integers wrap, floats must be exact."""
    if dtype.startswith("float"):
        numbers = np.asarray(numbers, np.float64)
        if (np.abs(np.where(defined, numbers, 0)) > LIMITS[dtype]).any():
            raise UnfitError
        return numbers
    return np.asarray(np.nan_to_num(numbers) if numbers.dtype.kind == "f" else numbers).astype(np.int64).astype(dtype)


def exact_sum(numbers: np.ndarray, defined: np.ndarray, axis, dtype: str) -> np.ndarray:
    if dtype.startswith("float") and (np.abs(np.where(defined, numbers, 0)).sum(axis) > LIMITS[dtype]).any():
        raise UnfitError
    return numbers.sum(axis, dtype=numbers.dtype, keepdims=True)


def contents(kernel: d.Kernel) -> dict[str, np.ndarray]:
    """What buffers hold at first, as arrays to launch with: small integers, and NaN where nothing is read."""
    random, arrays = np.random.default_rng(kernel.seed), {}
    for buffer in kernel.buffers:
        count = kernel.size * (1 if buffer.role in ("shared", "common") else kernel.programs)
        low = 0 if buffer.dtype.startswith("u") else -9
        array = random.integers(low, 10, count).astype(buffer.dtype)
        if buffer.role == "out":
            array[:] = np.nan if buffer.dtype.startswith("float") else 77
        arrays[buffer.name] = array
    return arrays


def interpret(kernel: d.Kernel) -> Outcome:
    """What memory holds after a launch. UnfitError where floats would round."""
    memory = {}
    for name, array in contents(kernel).items():
        numbers = array.astype(np.float64) if array.dtype.kind == "f" else array.copy()
        memory[name] = Memory(numbers, np.ones(array.shape, bool))
    outcome = Outcome(memory)
    with np.errstate(over="ignore", invalid="ignore"):
        last = Program(kernel, outcome, 0)
        for pid in range(kernel.programs):
            last = Program(kernel, outcome, pid)
            for statement in kernel.body:
                if not isinstance(statement, d.LastBlock):
                    _run(last, statement)
        for statement in kernel.body:
            if isinstance(statement, d.LastBlock):
                _run(last, statement)
    return outcome


def _run(p: Program, s: object) -> None:
    _RUNNERS[type(s)](p, s)


def _load(p, s):
    memory, at = p.address(s.buffer, s.index)
    mask = p.mask(s.mask)
    numbers, defined = memory.numbers[at], memory.defined[at] & mask
    if s.other is not None:
        numbers, defined = np.where(mask, numbers, np.asarray(s.other).astype(numbers.dtype)), defined | ~mask
    p.bind(s.to, numbers, defined, s.dtype)


def _store(p, s):
    memory, at = p.address(s.buffer, s.index)
    numbers, defined, _ = p.values[s.value]
    p.write(memory, at, numbers, defined, p.mask(s.mask), p.kernel.buffer(s.buffer).dtype)


def _binary(p, s):
    (a, a_defined, dtype), (b, b_defined, _) = p.values[s.a], p.values[s.b]
    combine = {"+": np.add, "-": np.subtract, "maximum": np.maximum, "minimum": np.minimum}[s.op]
    p.bind(s.to, combine(a, b), a_defined & b_defined, dtype)


def _scale(p, s):
    numbers, defined, dtype = p.values[s.a]
    p.bind(s.to, numbers * numbers.dtype.type(s.by), defined, dtype)


def _where(p, s):
    mask, (a, a_defined, dtype), (b, b_defined, _) = p.mask(s.mask), p.values[s.a], p.values[s.b]
    p.bind(s.to, np.where(mask, a, b), np.where(mask, a_defined, b_defined), dtype)


def _cast(p, s):
    if s.a == "0":
        zeros = np.zeros(p.kernel.shape, np.int64)
        p.bind(s.to, zeros, zeros == 0, s.dtype)
    else:
        numbers, defined, _ = p.values[s.a]
        p.bind(s.to, numbers, defined, s.dtype)


def _reduced(p, op, name, axis):
    numbers, defined, dtype = p.values[name]
    axes = tuple(range(numbers.ndim)) if axis is None else axis
    if op == "sum":
        numbers = exact_sum(numbers, defined, axes, dtype)
    else:
        numbers = {"max": np.max, "min": np.min}[op](numbers, axes, keepdims=True)
    return numbers, defined.all(axes, keepdims=True), dtype


def _reduce(p, s):
    total, all_defined, dtype = _reduced(p, s.op, s.a, s.axis)
    numbers, defined, _ = p.values[s.a]
    p.bind(s.to, numbers + total, defined & all_defined, dtype)


def _store_reduced(p, s):
    numbers, defined, _ = _reduced(p, s.op, s.value, s.axis)
    at = p.pid * p.kernel.size + np.arange(numbers.size)
    everywhere = np.ones(numbers.size, bool)
    dtype = p.kernel.buffer(s.buffer).dtype
    p.write(p.outcome.memory[s.buffer], at, numbers.ravel(), defined.ravel(), everywhere, dtype)


def _scan(p, s):
    numbers, defined, dtype = p.values[s.a]
    exact_sum(numbers, defined, s.axis, dtype)
    p.bind(s.to, np.cumsum(numbers, s.axis, dtype=numbers.dtype), np.logical_and.accumulate(defined, s.axis), dtype)


_COMBINE = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _atomic(p, s):
    memory, at = p.address(s.buffer, s.index)
    buffer, mask, (numbers, defined, _) = p.kernel.buffer(s.buffer), p.mask(s.mask), p.values[s.value]
    p.outcome.undefined |= bool((~defined & mask).any())
    numbers = fit(numbers, buffer.dtype, defined)
    for place, number, known in zip(at[mask], numbers[mask], defined[mask], strict=True):
        memory.numbers[place] = _COMBINE[buffer.kind](memory.numbers[place], number)
        memory.defined[place] &= known
    if buffer.kind == "add" and buffer.dtype.startswith("float"):
        # Partial sums may have either sign, so the sum of magnitudes may not pass the limit either.
        bounds = p.outcome.__dict__.setdefault("bounds", {}).setdefault(s.buffer, np.abs(memory.numbers) * 0 + 9)
        np.add.at(bounds, at[mask], np.abs(np.where(defined, numbers, 0))[mask])
        if (bounds > LIMITS[buffer.dtype]).any():
            raise UnfitError


def _old(p, s):
    memory, at = p.address(s.buffer, s.index)
    mask, (numbers, defined, dtype) = p.mask(s.mask), p.values[s.value]
    old, old_defined = memory.numbers[at], memory.defined[at] & mask
    if s.kind == "cas":
        expected, expected_defined, _ = p.values[s.expected]
        p.outcome.undefined |= bool((~expected_defined).any())
        new = np.where(old == expected, numbers, old)
        known = defined & expected_defined & old_defined
        p.outcome.undefined |= bool((~defined).any())
        memory.numbers[at], memory.defined[at] = new, known
    else:
        new = numbers if s.kind == "xchg" else _COMBINE[s.kind](old, numbers)
        known = defined if s.kind == "xchg" else defined & memory.defined[at]
        p.write(memory, at, new, known, mask, p.kernel.buffer(s.buffer).dtype)
        p.outcome.undefined |= bool((~defined & mask).any())
    p.bind(s.to, old, old_defined, dtype)


def _scalar(p, s):
    memory, place = p.outcome.memory[s.buffer], p.pid * p.kernel.size + s.at
    numbers, defined, dtype = p.values[s.a]
    old, known = memory.numbers[place], memory.defined[place]
    memory.numbers[place] = fit(old + memory.numbers.dtype.type(s.by), dtype, np.asarray(True))
    p.outcome.undefined |= not known and not s.atomic
    p.bind(s.to, numbers + old, defined & known, dtype)


def _loop(p, s):
    for p.t in range(s.count):
        for inner in s.body:
            _run(p, inner)
        _binary(p, d.Binary(s.carried, "+", s.carried, s.added))


def _turn(p, s):
    for inner in s.body:
        _run(p, inner)


def _last(p, s):
    memory, size = p.outcome.memory[s.buffer], p.kernel.size
    at = p.formula(s.index)
    dtype = p.kernel.buffer(s.buffer).dtype
    everywhere = np.ones(p.kernel.shape, bool)
    total, defined = np.zeros(p.kernel.shape, memory.numbers.dtype), everywhere
    for q in range(p.kernel.programs):
        total, defined = (
            fit(total + memory.numbers[q * size + at], dtype, defined),
            defined & memory.defined[q * size + at],
        )
    p.write(p.outcome.memory[s.out], p.formula("e"), total, defined, everywhere, dtype)


_RUNNERS = {
    d.Load: _load,
    d.Store: _store,
    d.Binary: _binary,
    d.Scale: _scale,
    d.Where: _where,
    d.Cast: _cast,
    d.Reduce: _reduce,
    d.StoreReduced: _store_reduced,
    d.Scan: _scan,
    d.Atomic: _atomic,
    d.AtomicOld: _old,
    d.ScalarInPlace: _scalar,
    d.Loop: _loop,
    d.Turn: _turn,
    d.LastBlock: _last,
}
