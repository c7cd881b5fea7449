# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that a thread compiles one after another share a back end, and those of a context their passes: what a kernel
becomes does not tell what was compiled before it.
"""

import itertools
import threading

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled
from weft import native


@weft.jit
def one_block(x):
    at = x + wl.arange(0, 256)
    wl.store(at, wl.exp(wl.load(at)))


@weft.jit
def whole_or_not(x, n):
    at = wl.program_id(0) * 1024 + wl.arange(0, 1024)
    wl.store(x + at, wl.load(x + at, mask=at < n) * 2, mask=at < n)


@weft.jit
def product(x, n):
    row, column = wl.arange(0, 64)[:, None], wl.arange(0, 64)[None, :]
    total = wl.zeros((64, 64), wl.float32)
    for k in range(0, n, 64):
        tile = wl.load(x + row * n + column + k)
        total = wl.dot(tile, tile, total)
    wl.store(x + row * n + column, total.to(wl.float16))


@weft.jit
def taken_in_turn(x):
    old = wl.atomic_add(x, 1)  # one thread's, which the others read from a variable of the kernel's
    wl.store(x + 1 + wl.arange(0, 128), old + wl.arange(0, 128))


@weft.jit
def prints(x):
    wl.device_print("first", wl.load(x + wl.arange(0, 32)))


@weft.jit
def turned(x):
    row, column = wl.arange(0, 128)[:, None], wl.arange(0, 128)[None, :]
    wl.store(x + row * 128 + column, wl.trans(wl.load(x + row * 128 + column)))


CALLS = {
    "one block": (one_block, np.zeros(256, np.float32)),
    "two ways": (whole_or_not, np.zeros(2048, np.float32), np.int32(2000)),
    "a loop": (product, np.zeros((64, 128), np.float16), np.int32(128)),
    "a variable": (taken_in_turn, np.zeros(129, np.int32)),
    "calls": (prints, np.zeros(32, np.float32)),
}


@pytest.fixture(scope="module")
def texts():
    return {name: compiled(kernel, *given)[0].ir["python"] for name, (kernel, *given) in CALLS.items()}


def in_one_thread(texts, names, target, line_info=True):
    """The PTX of kernels that a new thread compiles in that order, in a context of their own."""
    made = []
    options = f'{{"target": "{target}", "line_info": {str(line_info).lower()}}}'

    def work():
        context = native.load("_compiler").Context()
        made.extend(context.parse(texts[name]).compile(options)[0] for name in names)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(made) == len(names)
    return made


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_kernels_in_any_order_are_as_each_alone(texts, target):
    alone = {name: in_one_thread(texts, [name], target)[0] for name in texts}
    assert ".shared .align" in alone["a variable"] and "callseq" in alone["calls"]
    for order in itertools.permutations(texts):
        assert in_one_thread(texts, order, target) == [alone[name] for name in order], order


def test_kernels_of_several_targets_with_lines_and_without_do_not_mix(texts):
    names = ["a loop", "one block", "a loop"]
    expected = {
        (target, lines): in_one_thread(texts, names, target, lines)
        for target in ("sm_80", "sm_90a")
        for lines in (True, False)
    }
    assert len({made[0] for made in expected.values()}) == 4
    context = native.load("_compiler").Context()
    for (target, lines), made in itertools.chain(expected.items(), reversed(expected.items())):
        options = f'{{"target": "{target}", "line_info": {str(lines).lower()}}}'
        assert [context.parse(texts[name]).compile(options)[0] for name in names] == made


def test_a_kernel_that_is_refused_leaves_nothing_behind(texts):
    """Its stage has not come to its end."""
    context = native.load("_compiler").Context()
    before = context.parse(texts["a loop"]).compile('{"target": "sm_90a"}')[0]
    too_large = compiled(turned, np.zeros((128, 128), np.float32))[0].ir["python"].replace("128", "512")
    ptx, _, error = context.parse(too_large).compile('{"target": "sm_90a"}')
    assert ptx is None and error
    assert "shared memory" in str(context.take_diagnostics())
    assert context.parse(texts["a loop"]).compile('{"target": "sm_90a"}')[0] == before
