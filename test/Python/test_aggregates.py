# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Classes of values in kernels, waiting for memory, and atomics as methods, under Triton's names."""

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.triton as triton
import weft.triton.language as tl


@triton.aggregate
class Running:
    highest: tl.tensor
    total: tl.tensor
    SCALE: tl.constexpr

    def __init__(self, highest, total, SCALE=2):
        self.highest = highest
        self.total = total
        self.SCALE = SCALE

    @triton.jit
    def with_block(self, block):
        new = tl.maximum(self.highest, block * self.SCALE)
        return tl.core.aggregate_replace(self, highest=new, total=self.total + 1)


@triton.aggregate
class Pair:
    first: Running
    second: tl.tensor = 0


@triton.jit
def stepped(pair, block, odd):
    if odd:
        pair = Pair(pair.first.with_block(block), pair.second + 1)
    return pair


@triton.jit
def kernel(x, y, n, N: tl.constexpr):
    at = tl.arange(0, N)
    pair = Pair(Running(tl.full([N], -1e30, tl.float32), 0))
    for i in range(n):
        pair = stepped(pair, tl.load(x + i * N + at), i % 2 == 1)
    while pair.second < 100:
        pair = tl.core.aggregate_replace(pair, second=pair.second + 10)
    tl.store(y + at, pair.first.highest)
    tl.store(y + N, pair.first.total)
    tl.store(y + N + 1, pair.second)
    tl.static_assert(pair.first.SCALE == 2)


def test_instances_go_through_helpers_branches_and_loops(seed):
    x = np.random.default_rng(seed).standard_normal((7, 24)).astype(np.float32)
    y = np.full(26, np.nan, np.float32)
    kernel[1,](x, y, 7, N=24)
    np.testing.assert_array_equal(y[:24], 2 * x[1::2].max(0))
    assert tuple(y[24:]) == (3, 103)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Running(n)", "missing 1 required positional argument|'Running'"),
        ("Pair()", "'Pair' to be given 'first', 'second', but 'first' has no value"),
        ("Pair(n, n, other=1)", "'Pair' to be given 'first', 'second', once each, but got 'other'"),
        ("wl.aggregate_replace(Pair(n), third=1)", "but got 'third'"),
        ("wl.aggregate_replace(n, first=1)", "the instance of 'aggregate_replace'"),
    ],
)
def test_what_is_no_instance_is_refused(line, words, tmp_path):
    text = f"import weft\nimport weft.language as wl\n@weft.jit\ndef refused(x, n):\n    p = {line}\n"
    file = tmp_path / "refused.py"
    file.write_text(text)
    scope = {"Running": Running, "Pair": Pair}
    exec(compile(text, str(file), "exec"), scope)
    with pytest.raises(weft.CompilationError, match=words) as caught:
        scope["refused"].compile("x:*fp32, n:i32")
    assert caught.value.position.line == 5


@triton.jit
def waiting(flags, x, y, N: tl.constexpr, TIMEOUT: tl.constexpr):
    at = tl.arange(0, N)
    if tl.program_id(0) == 0:
        tl.store(x + at, at * 3)
        tl.atomic_store(flags + at, tl.full([N], 1, tl.int32))
        (flags + N).atomic_xchg(7)
    else:
        found = (flags + at).atomic_poll(1)
        tl.atomic_poll(flags + N, 7, sem="relaxed")
        tl.store(y + at, tl.where(found, tl.load(x + at, volatile=True), -1))
        late = tl.atomic_poll(flags + N, 8, timeout_ns=TIMEOUT)
        tl.store(y + N, late.to(tl.int32))


def test_a_program_waits_for_another():
    flags, x, y = np.zeros(65, np.int32), np.zeros(64, np.int32), np.full(65, -5, np.int32)
    waiting[2,](flags, x, y, N=64, TIMEOUT=1000)
    assert (y[:64] == np.arange(64) * 3).all() and y[64] == 0


@wl.aggregate
class Base:
    size: wl.constexpr


@wl.aggregate
class Derived(Base):
    value: wl.tensor


@weft.jit
def derived(x):
    made = Derived(wl.constexpr(4), 2.5)
    wl.store(x + wl.arange(0, made.size), made.value)


def test_fields_of_a_base_come_first():
    x = np.zeros(4, np.float32)
    derived[1,](x)
    assert (x == 2.5).all()
