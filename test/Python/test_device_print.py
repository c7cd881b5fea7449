# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``device_print``: each element once, with its place; promises by ``assume``."""

import re

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, ptx_of, simulate
from weft import native


@weft.jit
def prints(x, n, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    tile = wl.load(x + at[:, None] * 4 + wl.arange(0, 4)[None, :])
    wl.device_print("tile", tile)
    if wl.program_id(0) == 1:
        wl.device_print("only 100%:", n, n.to(wl.uint8))
        wl.device_print("starts")
    wl.device_print("", wl.max(at, 0), hex=True)


@pytest.mark.parametrize("warps", [1, 4])
def test_every_element_is_printed_once(warps):
    x = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float16)
    report = simulate(prints, (2,), x, np.int32(-3), BLOCK=8, num_warps=warps)
    lines = report.output.splitlines()
    found = {}
    for line in lines:
        if match := re.fullmatch(r"pid \((\d), 0, 0\) idx \((\d), (\d)\) tile: (\S+)", line):
            place = tuple(map(int, match.groups()[:3]))
            assert place not in found
            found[place] = float(match.group(4))
    assert found == {
        (p, i, j): pytest.approx(float(x[i, j]), abs=1e-6) for p in range(2) for i in range(8) for j in range(4)
    }
    rest = sorted(line for line in lines if "tile" not in line)
    assert rest == [
        "pid (0, 0, 0)  0x00000007",
        "pid (1, 0, 0)  0x00000007",
        "pid (1, 0, 0) only 100%: (operand 0) -3",
        "pid (1, 0, 0) only 100%: (operand 1) 253",
        "pid (1, 0, 0) starts",
    ]


def test_the_text_does_not_tell_what_was_compiled_before():
    # LLVM numbers calls for as long as a target's machine lives, which other kernels of a thread share.
    kernel = compiled(prints, np.zeros((8, 4), np.float16), np.int32(-3), BLOCK=8)[0]
    context = native.load("_compiler").Context()
    texts = [context.parse(kernel.ir["python"]).compile('{"target": "sm_80"}')[0] for _ in range(3)]
    assert texts[0].count("callseq") > 2
    assert texts[0] == texts[1] == texts[2]


@weft.jit
def prints_a_line_end(x):
    wl.device_print("two\nlines", x)


def test_texts_of_several_lines_are_refused():
    with pytest.raises(weft.CompilationError, match="printable ASCII text for 'device_print'"):
        prints_a_line_end.compile("x:i32")


def test_a_launch_prints(capfd):
    x = np.zeros((8, 4), np.float16)
    prints[(1,)](x, 5, BLOCK=8, num_warps=1)
    assert capfd.readouterr().out.count("tile: 0.0") == 32


@weft.jit
def copies(x, y, n, m, PROMISE: wl.constexpr):
    if PROMISE:
        wl.assume(n % 8 == 0)
        wl.assume((m >= 0) & (m % 8 == 0))
    at = wl.program_id(0) * n + wl.arange(0, 1024)
    wl.store(y + at + m, wl.load(x + at + m))


def test_assume_widens_accesses():
    x, y = np.zeros(4096, np.float16), np.zeros(4096, np.float16)
    plain, promised = (
        copies.compile("x:*fp16:16, y:*fp16:16, n:i32, m:i32", constants={"PROMISE": promise}).ptx
        for promise in (False, True)
    )
    assert "ld.global.v4.b32" not in plain and "ld.global.b16" in plain
    assert promised.count("ld.global.v4.b32") == 1 and promised.count("st.global.v4.b32") == 1
    simulate(copies, (2,), x, y, np.int32(1024), np.int32(8), PROMISE=True)


@weft.jit
def on_one_side(x, y, n, m):
    if m > 0:
        wl.assume(n % 8 == 0)
        wl.store(y, 1)
    at = n + wl.arange(0, 1024)
    wl.store(y + at, wl.load(x + at))


def test_a_promise_of_one_branch_does_not_leak_into_the_other():
    assert "ld.global.v4" not in on_one_side.compile("x:*fp16:16, y:*fp16:16, n:i32, m:i32").ptx


@weft.jit
def breaks_its_word(x):
    wl.assume(wl.arange(0, 4) >= 0)
    wl.assume(1 > 2)
    wl.store(x, 0)


def test_a_promise_that_cannot_hold_is_refused():
    with pytest.raises(weft.CompilationError, match="expected a condition that can hold for 'assume'"):
        breaks_its_word.compile("x:*i32")


def test_nothing_is_printed_by_kernels_that_do_not_ask():
    assert "vprintf" not in ptx_of(
        copies, np.zeros(9, np.float16), np.zeros(9, np.float16), np.int32(1), np.int32(1), PROMISE=False
    )
