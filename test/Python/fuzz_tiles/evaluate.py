# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program by NumPy: one program of the grid after another, statement by statement."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from .moves import OPS
from .program import Branch, Call, Loop, Op, Program
from .values import FORMATS, Value, cast, floats, integers, is_float, rounded


class UnknownError(Exception):
    """Which way a program goes depends on what cannot be known."""


def contents(program: Program) -> dict[str, np.ndarray]:
    """What buffers hold at first: floats as float64 that their types have, results NaN or 77."""
    found = {}
    for buffer in program.buffers:
        random = np.random.default_rng([program.seed, zlib.crc32(buffer.name.encode())])
        count = buffer.each * (1 if buffer.role == "shared" else program.programs)
        if buffer.role == "shared":
            found[buffer.name] = np.zeros(count, np.float64 if is_float(buffer.dtype) else buffer.dtype)
        elif is_float(buffer.dtype):
            numbers = random.integers(-4, 5, count).astype(np.float64)
            numbers = numbers if random.random() < 0.5 else rounded(random.standard_normal(count), buffer.dtype)
            found[buffer.name] = np.full(count, np.nan) if buffer.role == "out" else numbers
        else:
            info = np.iinfo(buffer.dtype)
            wide = random.random() < 0.3
            low, high = (info.min, info.max) if wide else (max(info.min, -9), 9)
            numbers = random.integers(low, high, count, dtype=buffer.dtype, endpoint=True)
            found[buffer.name] = np.full(count, 77, buffer.dtype) if buffer.role == "out" else numbers
    return found


class Machine:
    """One program of the grid."""

    def __init__(self, program: Program, memory: dict[str, Value], pid: int):
        self.program, self.memory, self.pid = program, memory, pid
        self.values: dict[str, Value] = {}
        self.counters: dict[str, int] = {}

    def run(self, body: tuple[Any, ...]) -> None:
        for statement in body:
            if isinstance(statement, Op):
                self.operation(statement)
            elif isinstance(statement, Loop):
                self.loop(statement)
            elif isinstance(statement, Branch):
                condition = self.known(statement.condition)
                self.run(statement.then if condition else statement.otherwise)
                new = [self.values[a if condition else b] for _, a, b in statement.assigned]
                self.values.update(zip((name for name, _, _ in statement.assigned), new, strict=True))
            else:
                self.call(statement)

    def known(self, name: str) -> bool:
        value = self.values[name]
        if np.isinf(value.err).any():
            raise UnknownError
        return bool(value.data)

    def loop(self, s: Loop) -> None:
        for t in range(s.first, self.program.n if s.kind == "argument" else s.count, s.step):
            self.counters[s.counter] = t
            self.values[s.counter] = integers("int32", np.int32(t), np.zeros((), bool))
            self.run(s.body)
            new = [self.values[made] for _, made in s.carried]
            self.values.update(zip((name for name, _ in s.carried), new, strict=True))

    def call(self, s: Call) -> None:
        inner = Machine(self.program, self.memory, self.pid)
        inner.values = {name: self.values[outer] for outer, name in s.parameters}
        inner.run(s.body)
        self.values.update({outer: inner.values[name] for name, outer in s.results})

    def operation(self, s: Op) -> None:
        if s.name in ("load", "store", "atomic"):
            self.access(s)
            return
        if s.name == "argument":
            number = self.program.n if s.attrs[0] == "n" else self.pid
            self.values[s.out[0]] = integers("int32", np.int32(number), np.zeros((), bool))
            return
        found = OPS[s.name][1](*(self.values[name] for name in s.ins), *s.attrs)
        for name, value in zip(s.out, found if isinstance(found, tuple) else (found,), strict=True):
            tile = self.program.types[name]
            assert (value.dtype, value.shape) == (tile.dtype, tile.shape), (s, value.dtype, value.shape, tile)
            self.values[name] = value

    def formula(self, text: str, shape: tuple[int, ...]) -> np.ndarray:
        e = np.arange(int(np.prod(shape))).reshape(shape)
        names = {f"i{axis}": np.indices(shape)[axis] for axis in range(len(shape))} if shape else {}
        wide = {"w": e, "p": int(self.pid), "m": int(self.program.n), "minimum": np.minimum}
        return np.broadcast_to(eval(text, {"e": e, "n": self.program.n, **wide, **names, **self.counters}), shape)

    def access(self, s: Op) -> None:
        buffer = next(b for b in self.program.buffers if b.name == s.attrs[0])
        shape, order, text = s.attrs[1], s.attrs[2], s.attrs[3]
        at = self.formula(order, shape) + (0 if buffer.role == "shared" else self.pid * buffer.each)
        mask = np.ones(shape, bool) if text is None else self.formula(text, shape).astype(bool)
        memory = self.memory[buffer.name]
        if s.name == "load":
            data, err = memory.data[at], memory.err[at]
            if text is not None:
                data, err = np.where(mask, data, np.asarray(s.attrs[4], data.dtype)), np.where(mask, err, 0.0)
            self.values[s.out[0]] = Value(buffer.dtype, data, err)
            return
        value = cast(self.values[s.ins[0]], buffer.dtype)
        if s.name == "store":
            memory.data[at[mask]], memory.err[at[mask]] = value.data[mask], value.err[mask]
        else:
            self.atomic(s.attrs[4], memory, at[mask], value, mask)

    def atomic(self, kind: str, memory: Value, at: np.ndarray, value: Value, mask: np.ndarray) -> None:
        function = {"add": np.add, "max": np.maximum, "xor": np.bitwise_xor}[kind]
        with np.errstate(all="ignore"):
            function.at(memory.data, at, value.data[mask])
        err = value.err[mask]
        if is_float(memory.dtype):
            # Partial sums of small integers are exact in any order; of anything else each addition may round.
            # A sum that is no integer is rounded as a whole, whichever of its parts came last.
            given, total = value.data[mask], memory.data[at]
            small = (given == np.rint(given)) & (np.abs(given) < 1000) & (err == 0) & (total == np.rint(total))
            err = err + np.where(small, 0, np.maximum(np.abs(given), np.abs(total)) * 1e-4 + 1e-30)
        np.add.at(memory.err, at, err)


def evaluate(program: Program) -> dict[str, Value]:
    """What buffers hold after a launch. UnknownError where a branch hangs on what cannot be known."""
    memory = {}
    for buffer in program.buffers:
        data = contents(program)[buffer.name]
        memory[buffer.name] = Value(buffer.dtype, data, np.zeros(data.shape))
    with np.errstate(all="ignore"):
        for pid in range(program.programs):
            Machine(program, memory, pid).run(program.body)
    return memory


__all__ = ["FORMATS", "UnknownError", "contents", "evaluate", "floats"]
