# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``:=`` in conditions, loops and calls: as the assignment that it is in Python."""

import numpy as np
import pytest
import weft.triton as triton
import weft.triton.language as tl
from weft.compiler.diagnostics import CompilationError


@triton.jit
def in_conditions(x, y):
    s = tl.load(x)
    if (first := s) > 3:
        s = first + 1
        first = 0
    else:
        s = (twice := 2 * first) + twice
    tl.store(y, s)
    z = (w := s + 1) if s > 0 else (w := s - 1)
    tl.store(y + 1, z + w)


@pytest.mark.parametrize("first", [7, 2, -5])
def test_conditions_and_their_sides(first):
    y = np.zeros(2, np.int32)
    in_conditions[(1,)](np.array([first], np.int32), y)
    s = first + 1 if first > 3 else 4 * first
    assert y.tolist() == [s, 2 * (s + 1 if s > 0 else s - 1)]


@triton.jit
def in_loops(x, y, n):
    at = 0
    total = 0
    last = -1
    while (last := tl.load(x + at)) != 0:
        at += 1
        if last == 5:
            continue
        total += last
    tl.store(y, total)
    tl.store(y + 1, last)
    step = 1
    for i in range(n):
        total += (step := step * 2) + i
    tl.store(y + 2, total)
    tl.store(y + 3, step)


@pytest.mark.parametrize("values", [[0], [3, 0], [1, 5, 9, 5, 0, 7]])
def test_loops_carry_what_is_assigned(values):
    y = np.full(4, -9, np.int32)
    in_loops[(1,)](np.array(values, np.int32), y, 3)
    total = sum(value for value in values[: values.index(0)] if value != 5)
    assert y.tolist() == [total, 0, total + 2 + 4 + 8 + 3, 8]


@triton.jit
def on_one_side(x, y):
    z = (w := 1) if tl.load(x) > 0 else 2
    tl.store(y, z + w)


@triton.jit
def in_a_comprehension(x, y):
    last = 0
    values = [(last := i) for i in tl.static_range(3)]
    tl.store(y, values[0] + last)


def test_what_has_no_value_is_refused():
    with pytest.raises(CompilationError, match="'w' may have no value here"):
        on_one_side.warmup(np.zeros(1, np.int32), np.zeros(1, np.int32), grid=(1,))
    with pytest.raises(CompilationError, match="':=' in a comprehension"):
        in_a_comprehension.warmup(np.zeros(1, np.int32), np.zeros(1, np.int32), grid=(1,))
