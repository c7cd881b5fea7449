# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random functions of loops, branches, ``break``, ``continue`` and ``return``: as kernels, and as Python runs them."""

import importlib.util
import random

import numpy as np
import pytest
from kernel_support import simulate

SEED = int(np.random.default_rng().integers(1 << 30))
print(f"seed {SEED}")
COUNT, NUMBERS = 12, 16
HEAD = """
import weft
import weft.language as wl


@weft.jit
def {name}(x, n):
{body}

@weft.jit
def kernel_{name}(x, out, n):
    a, b = {name}(x, n)
    wl.store(out, a)
    wl.store(out + 1, b)


def plain_{name}(x, n):
{plain}
"""


class Writer:
    """Writes one function, in which every loop ends: counters only grow, and values stay below 97."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.depth, self.loops, self.names, self.left = [], 1, [], 0, 26

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def expression(self):
        pick = self.random.choice
        terms = ["a", "b", "n", "7", *(name for name, _ in self.loops)]
        kind = self.random.randrange(4)
        if kind == 0:
            return f"LOAD({pick(terms)} % {NUMBERS})"
        if kind == 1:
            return f"({pick(terms)} * {self.random.randrange(2, 5)} + {pick(terms)}) % 97"
        return pick(terms)

    def condition(self):
        left, right = self.expression(), self.expression()
        return f"{left} {self.random.choice(['<', '>', '==', '!='])} {right}"

    def block(self):
        for _ in range(self.random.randrange(1, 5)):
            self.statement()

    def inner(self):
        self.depth += 1
        self.block()
        self.depth -= 1

    def statement(self):
        self.left -= 1
        kind = self.random.randrange(10) if self.left > 0 else 0
        if kind < 4 or self.depth > 6:
            self.put(f"{self.random.choice('ab')} = ({self.expression()} + {self.expression()}) % 97")
        elif kind < 6:
            self.put(f"if {self.condition()}:")
            self.inner()
            if self.random.randrange(2):
                self.put("else:")
                self.inner()
        elif kind < 8 and len(self.loops) < 3:
            self.loop()
        elif self.loops and kind == 8:
            self.put(f"if {self.condition()}:")
            self.depth += 1
            self.put(self.random.choice(["break", "continue"]) if self.loops[-1][1] else "break")
            self.depth -= 1
        else:
            self.put(f"if {self.condition()}:")
            self.depth += 1
            self.put("return a, (b + 1) % 97")
            self.depth -= 1

    def loop(self):
        name = f"i{self.names}"
        self.names += 1
        kind = self.random.randrange(4)
        if kind == 3:
            self.put(f"{name} = 0")
            self.put(self.random.choice(["while True:", f"while {name} < n % 5:"]))
            self.depth += 1
            self.put(f"{name} += 1")
            self.put(f"if {name} > 4:")
            self.put("    break")
            self.depth -= 1
        else:
            bounds = self.random.choice(["n % 5", "1, 6, 2", "4, n % 3, -1", "b % 4"])
            self.put(f"for {name} in {'range' if kind else 'UNROLLED'}({bounds if kind else '4'}):")
        self.loops.append((name, True))
        self.inner()
        self.loops.pop()

    def write(self):
        self.put("a = n % 97")
        self.put("b = 3")
        for _ in range(3):
            self.loop()
            self.statement()
        self.put("return a, b")
        return "\n".join(self.lines) + "\n"


def sources(seed, name):
    text = Writer(seed).write()
    body = text.replace("LOAD(", "wl.load(x + ").replace("UNROLLED", "wl.static_range")
    plain = text.replace("LOAD(", "int(x[").replace(f"% {NUMBERS})", f"% {NUMBERS}])").replace("UNROLLED", "range")
    return HEAD.format(name=name, body=body, plain=plain)


@pytest.mark.parametrize("number", range(COUNT))
def test_a_random_function_is_what_python_computes(number, tmp_path):
    seed = SEED + number
    file = tmp_path / "drawn.py"
    file.write_text(sources(seed, "drawn"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("drawn", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.random.default_rng(seed).integers(0, 97, NUMBERS).astype(np.int32)
    for n in (0, 7, 33):
        out = np.full(2, -1, np.int32)
        simulate(module.kernel_drawn, (1,), x, out, np.int32(n), num_warps=1)
        assert tuple(out.tolist()) == tuple(module.plain_drawn(x, n)), f"seed {seed}, n {n}\n{file.read_text()}"
