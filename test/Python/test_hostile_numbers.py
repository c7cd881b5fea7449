# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Numbers in tensors that say where to read and write: lengths, counts, lists of blocks, bounds, indices. What the host
has is checked at the call; past that check, whatever they are, kernels stay inside of their buffers and no two programs
write one row. The simulator checks both, with guards around each tensor.
"""

import re

import numpy as np
import pytest
import torch
import weft

N, D = 40, 16
STARTS = {
    "beyond the tokens": [0, 20, 1 << 20],
    "far beyond": [0, 2**31 - 1, 2**31 - 1],
    "below 0": [-(1 << 20), 20, N],
    "descending": [0, 30, 10],
    "overlapping": [0, 25, 5, 30, 12, N],
    "backwards": [N, 20, 0],
    "not from 0": [7, 20, N],
    "not to the end": [0, 20, 33],
    "nothing": [0, 0, 0],
}


@pytest.fixture
def operands(seed):
    torch.manual_seed(seed)
    return [torch.randn(1, 2, N, D) for _ in range(3)]


@weft.program
def attention(q, k, v, starts):
    return weft.softmax(q, k, weft.causal(), cu_seqlens=starts) @ v


@weft.program
def two(q, k, v, starts, key_starts):
    return weft.attention.attend(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=key_starts)


@weft.program
def mean(v, starts):
    return weft.mean(cu_seqlens=starts) @ v


@weft.program
def convolved(v, taps, starts):
    return weft.toeplitz(taps, centred=True, cu_seqlens=starts) @ v


@weft.program
def turned(q, k, v, starts):
    q, k = weft.rope(q, k, cu_seqlens=starts)
    return weft.softmax(q, k, cu_seqlens=starts) @ weft.shift(v, 1, starts)


@weft.program
def merged(q, k, v, joins, starts):
    units = weft.merge_units(joins, k, v, max_joins=4, cu_seqlens=starts)
    keys, values = units.merged
    return weft.softmax(q, weft.domain(k, weft.window(0, 0)), weft.domain(keys, units.seen)) @ (v, values)


def taps():
    return torch.randn(3, 2 * D)


def starts_of(name):
    return torch.tensor(STARTS[name], dtype=torch.int32)


PACKED = {
    "attention": lambda q, k, v, s: (attention, (q, k, v, s)),
    "keys of their own": lambda q, k, v, s: (two, (q, k, v, torch.linspace(0, N, len(s)).int(), s)),
    "queries of their own": lambda q, k, v, s: (two, (q, k, v, s, torch.linspace(0, N, len(s)).int())),
    "mean": lambda q, k, v, s: (mean, (v, s)),
    "convolution": lambda q, k, v, s: (convolved, (v, taps(), s)),
    "rope and shift": lambda q, k, v, s: (turned, (q, k, v, s)),
    "merged": lambda q, k, v, s: (merged, (q, k, v, torch.rand(1, 2, N) > 0.5, s)),
}


@pytest.mark.parametrize("name", PACKED)
def test_starts_are_checked_at_the_call(operands, name):
    """With the arguments' name; for lists of every kind that the host has."""
    for numbers in STARTS:
        program, given = PACKED[name](*operands, starts_of(numbers))
        with pytest.raises(
            weft.CompilationError, match=r"starts' to rise from 0 to the number of tokens, 40, but got \["
        ):
            program(*given)
    for numbers in ([0, N], [0, 0, N], [0, 13, 13, N]):
        program, given = PACKED[name](*operands, torch.tensor(numbers, dtype=torch.int32))
        assert program(*given).isfinite().all()


@pytest.mark.parametrize("make", [lambda starts: starts.numpy(), lambda starts: starts])
def test_functions_check_them(operands, make):
    q, k, v = operands if make(torch.ones(1)) is not None else ()
    starts = make(starts_of("beyond the tokens"))
    if isinstance(starts, np.ndarray):
        q, k, v = (x.numpy() for x in (q, k, v))
    for call in (
        lambda: weft.attention.sema(q, k, v, window=8, cu_seqlens=starts),
        lambda: weft.attention.sfa(q, k, v, cu_seqlens=starts),
        lambda: weft.attention.attend(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts),
        lambda: weft.softmax(q, k, cu_seqlens=starts) @ v,
    ):
        with pytest.raises(
            weft.CompilationError, match=r"to rise from 0 to the number of tokens, 40, but got \[0, 20, "
        ):
            call()


@pytest.fixture
def unchecked(monkeypatch):
    """Makes a program whose calls come without a look at the numbers, as those on a GPU: neither the host's, nor the
    runtime's, which is told nothing of starts."""
    monkeypatch.setattr("weft.programs.running.packed_as_said", lambda traced, arrays: None)
    monkeypatch.setattr("weft.programs.emit.Emitter._starts", lambda emitter, argument: [])
    return lambda program: weft.program(program.fn)  # which has not been traced


def survives(program, *given):
    """Forward and backward: whatever comes out, the simulator finds no access outside of a buffer and no race. Rows
    that no sequence has are not written: a later kernel may read that."""
    given = [x.clone().requires_grad_() if x.is_floating_point() else x for x in given]
    try:
        program(*given).sum().backward()
    except weft.runtime.Error as error:
        kinds = re.findall(r"^ +([a-z-]+): '", str(error), re.MULTILINE)
        assert kinds and set(kinds) == {"uninitialised"}, error


MOST = ("beyond the tokens", "below 0", "overlapping")  # the others take as long again


@pytest.mark.parametrize(
    "numbers", [*MOST, *(pytest.param(n, marks=pytest.mark.slow) for n in STARTS if n not in MOST)]
)
@pytest.mark.parametrize("name", PACKED)
def test_starts_that_kernels_meet(operands, unchecked, name, numbers):
    program, given = PACKED[name](*operands, starts_of(numbers))
    survives(unchecked(program), *given)


def library_of(program, given):
    declared = ", ".join(
        f"{key}:{'i32[S]' if x.dtype == torch.int32 else 'fp32[1,H,N,16]:16'}"
        for key, x in zip(program.signature.parameters, given, strict=True)
    )
    return program.compile("sm_80", declared)


@pytest.mark.parametrize("name", ["attention", "mean", "rope and shift"])
def test_starts_that_kernels_of_a_library_meet(operands, unchecked, name):
    program, given = PACKED[name](*operands, starts_of("overlapping"))
    call = library_of(unchecked(program), given).differentiable(program.__name__)
    for numbers in ("overlapping", "beyond the tokens", "below 0"):
        survives(call, *given[:-1], starts_of(numbers))


@pytest.mark.parametrize("name", ["attention", "keys of their own", "mean", "rope and shift"])
def test_a_library_checks_starts_that_the_host_has(operands, name):
    """Its manifest says which inputs they are, of its forward and its backward too, and the runtime looks at them
    before anything runs."""
    program, given = PACKED[name](*operands, starts_of("overlapping"))
    library = library_of(program, given)
    for part in ("", ".forward", ".backward"):
        inputs = library.program(program.__name__ + part).inputs
        assert [each["name"] for each in inputs if each.get("starts") == ["N"]] == [
            key for key in program.signature.parameters if key.endswith("starts")
        ]
    call = library.differentiable(program.__name__)
    for numbers in STARTS:
        _, given = PACKED[name](*operands, starts_of(numbers))
        expected = (
            r"argument '\w*starts': expected numbers that rise from 0 to the number of tokens, N = 40, but got \["
        )
        with pytest.raises(weft.runtime.Error, match=expected):
            call(*given)
    for numbers in ([0, N], [0, 0, N], [0, 13, 13, N]):
        _, given = PACKED[name](*operands, torch.tensor(numbers, dtype=torch.int32))
        assert call(*given).isfinite().all()


HOSTILE = torch.tensor([-(2**31), -1, 0, 5, N - 1, N, 1 << 20, 2**31 - 1], dtype=torch.int32)


def hostile(*shape):
    return HOSTILE[torch.randint(len(HOSTILE), shape)]


@weft.program
def counted(q, k, v, count):
    return weft.softmax(q, weft.domain(k, count=count)) @ v


@weft.program
def listed(q, k, v, index, count):
    return weft.softmax(q, k, weft.blocks(index, count, block=8)) @ v


@weft.program
def documents(q, k, v, ids, other):
    return weft.softmax(q, k, weft.document(ids, other) & weft.causal()) @ v


@weft.program
def spanned(q, k, v, lower, upper, first, past):
    return weft.softmax(q, k, weft.span(lower, upper, first, past)) @ v


@weft.program
def looked_up(q, k, v, table, ids):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + table[ids[n]] + table[ids[m] - ids[n]]) @ v


@weft.program
def distance(q, k, v, table):
    return weft.softmax(q, k, weft.causal(), score_mod=lambda s, b, h, n, m: s + table[n - m - 30]) @ v


@weft.program
def by_batch(q, k, v, table, slots):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + table[slots[b]]) @ v


@weft.program
def masked(q, k, v, limits, ids):
    return weft.softmax(q, k, weft.mask(lambda b, h, n, m: (m <= n) & (m > limits[ids[n]]))) @ v


TABLES = {
    "count": lambda: (counted, (hostile(1, 2),)),
    "blocks": lambda: (listed, (hostile(1, 2, 5, 3), hostile(1, 2, 5))),
    "documents": lambda: (documents, (hostile(N), hostile(N))),
    "span": lambda: (spanned, tuple(hostile(1, 2, N) for _ in range(4))),
    "span that rises": lambda: (spanned, tuple(hostile(1, 2, N).sort(-1)[0] for _ in range(4))),
    "captured by what is read": lambda: (looked_up, (torch.randn(9), hostile(N))),
    "captured by a distance": lambda: (distance, (torch.randn(9),)),
    "captured by the batch": lambda: (by_batch, (torch.randn(9), hostile(1))),
    "mask": lambda: (masked, (hostile(9), hostile(N))),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_kernels_meet(operands, name):
    for _ in range(2):
        program, tables = TABLES[name]()
        survives(program, *operands, *tables)


def test_indices_outside_are_the_nearest_inside(operands):
    """What is read, and what gradients go to: an index that leaves a table counts as its first or last."""
    q, k, v = operands
    table = torch.randn(9, requires_grad=True)
    weights = torch.randn(1, 2, N, D)
    out = distance(q, k, v, table)
    (out * weights).sum().backward()
    found, table.grad = table.grad, None
    places = torch.arange(N)
    far = (places[:, None] - places - 30).clamp(0, 8)
    scores = (q.double() @ k.double().transpose(2, 3)) * D**-0.5 + table.double()[far]
    scores = scores.masked_fill(places > places[:, None], -torch.inf)
    wanted = torch.softmax(scores, -1) @ v.double()
    (wanted * weights.double()).sum().backward()
    torch.testing.assert_close(out.double(), wanted, atol=2e-5, rtol=2e-5)
    torch.testing.assert_close(found.double(), table.grad.double(), atol=1e-4, rtol=1e-4)


PLACES = {
    "a product that wraps": lambda n, m, zero: n * m * 70000,
    "its remainder": lambda n, m, zero: (n * m * 70000 + m) % 8,
    "a sum that wraps": lambda n, m, zero: n + 2147483640,
    "a sum of sums": lambda n, m, zero: (n + 2147483600) + (m + 3),
    "a square of a square": lambda n, m, zero: (n * n * 50) * (n * n * 50),
    "a quotient by 0": lambda n, m, zero: 7 // (n * 0),
    "a remainder by 0": lambda n, m, zero: m % (n * 0),
    "by a 0 from memory": lambda n, m, zero: m // zero[0] + m % zero[0],
}


@pytest.mark.parametrize("name", PLACES)
def test_arithmetic_of_indices_stays_inside(operands, name):
    """Integers of 32 bits wrap, and are divided by what may be 0: neither leads out of the tensor, also backward."""
    place, zero = PLACES[name], torch.zeros(1, dtype=torch.int32)
    table = torch.ones(8, requires_grad=True)
    q, k, v = (x.repeat(1, 1, 4, 1).requires_grad_() for x in operands)  # 160 tokens
    for call in (
        lambda mod: weft.attention.attend(q, k, v, score_mod=mod),
        lambda mod: weft.flex_attention(q, k, v, mod),
    ):
        out = call(lambda s, b, h, n, m: s + table[place(n, m, zero)])
        torch.testing.assert_close(out, weft.attention.attend(q, k, v), rtol=1e-4, atol=1e-4)  # each of table is 1
        grads = torch.autograd.grad(out.square().sum(), (q, k, v, table))
        assert all(bool(grad.isfinite().all()) for grad in grads)


FAR = (2**30, -(2**30), 2**31 - 1, -(2**31))


@pytest.mark.parametrize(
    ("moved", "wanted"),
    [
        (lambda v, by: weft.shift(v, by), lambda v, by: torch.zeros_like(v)),
        (lambda v, by: weft.toeplitz(torch.ones(2, 2 * D), dilation=by) @ v, lambda v, by: v),
        (
            lambda v, by: weft.attention.attend(v, v, v, weft.causal().shift(by)),
            lambda v, by: weft.attention.attend(v, v, v) if by > 0 else torch.zeros_like(v),
        ),
        (
            lambda v, by: weft.attention.attend(v, v, v, (~weft.causal().shift(by)).shift(by)),
            lambda v, by: pytest.fail("two shifts of 2**30 are 2**31, of which kernels have no sum"),
        ),
    ],
    ids=["rows", "taps", "pattern", "pattern twice"],
)
def test_far_distances(operands, moved, wanted):
    """What positions are moved by is refused where sums of it would not have 32 bits; what is not, is right."""
    v = operands[2]
    for by in FAR:
        try:
            found = moved(v, by)
        except weft.CompilationError as error:
            assert re.search(r"to be (at least|from) -?\d+.*, but got|at most \d+ in all, but got", str(error)), error
        else:
            torch.testing.assert_close(found, wanted(v, by), atol=1e-5, rtol=0)
