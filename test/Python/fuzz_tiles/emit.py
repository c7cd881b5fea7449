# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program as source text."""

from __future__ import annotations

import re
from typing import Any

from .moves import OPS
from .program import Branch, Call, Loop, Op, Program, every

HEAD = """# Part of Weft. SPDX-License-Identifier: Apache-2.0
import weft
import weft.language as wl


@weft.jit
def larger(a, b):
    return wl.maximum(a, b)


@weft.jit
def multiplied(a, b):
    return a * b


@weft.jit
def smaller(a, b):
    if b < a:
        return b
    return a


@weft.jit
def halvings(a):
    count = 0
    while a > 1:
        a = a // 2
        count += 1
    return count
"""


def source(program: Program) -> str:
    """The module: functions, then the kernel."""
    parts = [HEAD]
    for statement in every(program.body):
        if isinstance(statement, Call):
            names = ", ".join([*(inner for _, inner in statement.parameters), *_surroundings(statement)])
            results = ", ".join(inner for inner, _ in statement.results)
            parts.append(f"@weft.jit\ndef {statement.function}({names}):\n{_block(program, statement.body)}")
            parts[-1] += f"    return {results}\n"
    arguments = ", ".join([*(b.name for b in program.buffers), "n"])
    parts.append(f"@weft.jit\ndef kernel({arguments}):\n    pid = wl.program_id(0)\n{_block(program, program.body)}")
    return "\n\n".join(parts)


def _surroundings(call: Call) -> list[str]:
    """What a function's body reads besides its parameters."""
    memory = [s.attrs[0] for s in every(call.body) if isinstance(s, Op) and s.name in ("load", "store", "atomic")]
    return [*dict.fromkeys(memory), "pid", "n"]


def _block(program: Program, body: tuple[Any, ...], indent: int = 1) -> str:
    lines = [line for statement in body for line in _statement(program, statement)]
    return "".join(f"{'    ' * indent}{line}\n" for line in lines or ["pass"])


def _statement(program: Program, s: Any) -> list[str]:
    if isinstance(s, Loop):
        return _loop(program, s)
    if isinstance(s, Branch):
        sides = [(s.then, [(n, a) for n, a, _ in s.assigned]), (s.otherwise, [(n, b) for n, _, b in s.assigned])]
        lines = []
        for word, (body, pairs) in zip((f"if {s.condition}:", "else:"), sides, strict=True):
            copies = [f"{n} = {x}" for n, x in pairs if n != x]
            inner = [line for x in body for line in _statement(program, x)] + copies
            if inner or word != "else:":
                lines += [word, *(f"    {line}" for line in inner or ["pass"])]
        return lines
    if isinstance(s, Call):
        outs = ", ".join(outer for _, outer in s.results)
        given = ", ".join([*(outer for outer, _ in s.parameters), *_surroundings(s)])
        return [f"{outs} = {s.function}({given})"]
    if s.name in ("load", "store", "atomic"):
        return [_access(program, s)]
    if s.name == "argument":
        return [f"{s.out[0]} = {s.attrs[0]} + 0"]
    return [f"{', '.join(s.out)} = {OPS[s.name][0](*s.ins, *s.attrs)}"]


def _loop(program: Program, s: Loop) -> list[str]:
    inner = [line for x in s.body for line in _statement(program, x)]
    # Each takes what the body made of the values that the iteration began with.
    both = ", ".join(name for name, _ in s.carried), ", ".join(made for _, made in s.carried)
    inner.append(f"{both[0]} = {both[1]}")
    if s.kind == "while":
        head = [f"{s.counter} = n * 0", f"while {s.counter} < {s.count}:"]
        inner.append(f"{s.counter} += 1")
    else:
        stop = s.count if s.kind == "constant" else "n"
        head = [f"for {s.counter} in range({stop if (s.first, s.step) == (0, 1) else f'{s.first}, {stop}, {s.step}'}):"]
    return [*head, *(f"    {line}" for line in inner)]


def _access(program: Program, s: Op) -> str:
    buffer = next(b for b in program.buffers if b.name == s.attrs[0])
    shape, order, mask = s.attrs[1], s.attrs[2], s.attrs[3]
    own = "" if buffer.role == "shared" else f" + pid * {buffer.each}"
    at = f"{buffer.name}{own} + ({spelled(order, shape)})"
    masked = "" if mask is None else f", mask={spelled(mask, shape)}"
    if s.name == "load":
        other = "" if mask is None else f", other={s.attrs[4]}"
        return f"{s.out[0]} = wl.load({at}{masked}{other})"
    if s.name == "store":
        return f"wl.store({at}, {s.ins[0]}{masked})"
    return f"wl.atomic_{s.attrs[4]}({at}, {s.ins[0]}{masked})"


def spelled(formula: str, shape: tuple[int, ...]) -> str:
    """A formula of e, i0 ... in the language; w, p and m are e, the program's
    number and n in 64 bits."""
    formula = re.sub(r"\bp\b", "pid.to(wl.int64)", formula).replace("minimum", "wl.minimum")
    formula = re.sub(r"\bm\b", "(n + pid * 0).to(wl.int64)", formula)
    if not shape:
        return re.sub(r"\be\b", "0", re.sub(r"\bw\b", "(n * 0).to(wl.int64)", formula))
    coordinates = []
    for axis, extent in enumerate(shape):
        marks = ", ".join(":" if d == axis else "None" for d in range(len(shape)))
        text = f"wl.arange(0, {extent})" if extent > 1 else "wl.zeros([1], wl.int32)"
        coordinates.append(f"{text}[{marks}]" if len(shape) > 1 else text)
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    element = "(" + " + ".join(f"{c} * {s}" for c, s in zip(coordinates, strides, strict=True)) + ")"
    wide = re.sub(r"wl\.(arange|zeros)(\([^)]*\))", r"wl.\1\2.to(wl.int64)", element)
    formula = re.sub(r"\bw\b", lambda found: wide, formula)
    formula = re.sub(r"\bi(\d)\b", lambda found: coordinates[int(found[1])], formula)
    return re.sub(r"\be\b", lambda found: element, formula)
