# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients of queries that programs add up in memory one after another: the same bits whatever the interleaving."""

import re

import numpy as np
import pytest
import torch
import weft
from weft.attention import attend
from weft.programs.compiled import compiled
from weft.testing.plans import run_plan

#: tiles of 16 keys by 16 queries: many programs, which meet at many blocks
SMALL = {"0.backward.keys": [16, 16, 1, 2]}
PATTERNS = {
    "full": lambda: weft.full(),
    "causal": lambda: weft.causal(),
    "window": lambda: weft.window(20, 3),
    "two bands": lambda: weft.prefix(20) | weft.window(17, 0),
    "block window": lambda: weft.block_window(24),
    "global": lambda: weft.global_tokens(5) | weft.window(8, 0),
}


def gradients(pattern, arrays, *, deterministic=True, starts=None, seeds=(0,)):
    """The three gradients, run once for each seed on the same output gradient; and what the runs were given."""
    packed = {} if starts is None else {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
    program = weft.program(lambda q, k, v: attend(q, k, v, pattern, deterministic=deterministic, **packed))
    traced = program.trace(program.bind(tuple(arrays), {}))
    form = compiled(traced, "sm_80", True, SMALL)
    inputs = [np.asarray(array) for array in (*arrays, *traced.captured)]
    forward = run_plan(form.ptx, form.info, f"{traced.name}.forward", inputs)
    outputs = list(forward.outputs.values())
    saved = [*inputs, *(outputs[number] for number in form.saved_outputs)]
    given = torch.randn(outputs[0].shape).half().numpy()
    found = []
    for seed in seeds:
        run = run_plan(form.ptx, form.info, f"{traced.name}.backward", [*saved, given], seed=seed)
        assert not [finding for launched in run.launches for finding in launched.report.findings]
        found.append(list(run.outputs.values()))
    return found, saved, given


def reference(saved, given, mask):
    """dq, dk and dv in float64, of one query head for each head of keys or several."""
    q, k, v = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in saved[:3])
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT / q.shape[3] ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num()
    (weights @ v.repeat_interleave(group, 1)).backward(torch.tensor(given, dtype=torch.float64))
    return [x.grad.numpy() for x in (q, k, v)]


def operands(N, M, H=1, Hkv=1, batch=1):
    """Heads of 16 and values of 272 channels, which are wide."""
    sizes = ((batch, H, N, 16), (batch, Hkv, M, 16), (batch, Hkv, M, 272))
    return [torch.randn(size).half() for size in sizes]


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(("N", "M"), [(49, 83), (83, 35)])
def test_patterns(name, N, M, seed):
    torch.manual_seed(seed)
    pattern = PATTERNS[name]()
    found, saved, given = gradients(pattern, operands(N, M))
    for gradient, expected in zip(found[0], reference(saved, given, torch.tensor(pattern.matrix(N, M))), strict=True):
        assert np.abs(gradient - expected).max() <= 4e-3 * np.abs(expected).max()


def test_heads_that_share_keys(seed):
    torch.manual_seed(seed)
    pattern = weft.per_head([weft.causal(), weft.window(9, 0)] * 2)
    found, saved, given = gradients(pattern, operands(40, 40, H=4, Hkv=2, batch=2))
    for gradient, expected in zip(found[0], reference(saved, given, torch.tensor(pattern.matrix(40, 40))), strict=True):
        assert np.abs(gradient - expected).max() <= 4e-3 * np.abs(expected).max()


@pytest.mark.parametrize("name", ["full", "causal", "window"])
def test_packed_sequences(name, seed):
    torch.manual_seed(seed)
    starts = torch.tensor([0, 37, 37, 41, 90], dtype=torch.int32)
    which = torch.searchsorted(starts[1:], torch.arange(90), right=True)
    pattern = PATTERNS[name]()
    mask = torch.tensor(pattern.matrix(90, 90)) & (which[:, None] == which[None, :])
    found, saved, given = gradients(pattern, operands(90, 90), starts=starts)
    for gradient, expected in zip(found[0], reference(saved, given, mask), strict=True):
        assert np.abs(gradient - expected).max() <= 4e-3 * np.abs(expected).max()


def test_every_interleaving_ends_with_the_same_bits(seed):
    torch.manual_seed(seed)
    arrays = operands(130, 130)
    found, _, _ = gradients(weft.causal(), arrays, seeds=range(6))
    for each in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(each, found[0], strict=True))


@pytest.mark.parametrize("warps", [1, 4])
def test_turns_say_their_order(warps):
    """In PTX, tickets are drawn relaxed, a turn is awaited with an acquire and passed on with a release; a barrier
    stands behind the one and before the other, since what is added up in between is added by the whole block.

    (No run shows it where one of them is missing: sums are made by atomics, which do not race, so that only their order
    would change, and their bits.)
    """
    program = weft.program(lambda q, k, v: attend(q, k, v, weft.full()))
    traced = program.trace(program.bind(tuple(operands(49, 83)), {}))
    ptx = compiled(traced, "sm_80", True, {"0.backward.keys": [16 * warps, 16, warps, 2]}).ptx
    turns = r"\b(?:atom|red)\.(\w+)\.gpu\.global\.add\.u32"
    orders = re.findall(turns, ptx)
    assert orders[0] == "relaxed"
    assert orders[1:]
    assert orders[1:] == ["acquire", "release"] * (len(orders) // 2)
    steps = re.findall(rf"{turns}|(bar)\.(?:warp\.)?sync|\bred\.relaxed\.gpu\.global\.(add)\.f32", ptx)
    steps = [next(filter(None, step)) for step in steps]
    for i, step in enumerate(steps):
        if step == "acquire":
            assert steps[i + 1] == "bar"
        if step == "release":
            assert steps[i - 1] == "bar"


def test_who_takes_turns():
    arrays = operands(40, 40)

    def launched(pattern, **options):
        program = weft.program(lambda q, k, v: attend(q, k, v, pattern, **options))
        return program.ir(*arrays, stage="launches")

    starts = torch.tensor([0, 11, 40], dtype=torch.int32)
    packed = {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
    for options, turns in (({}, True), ({"deterministic": False}, False), (packed, True)):
        text = launched(weft.causal(), **options)
        assert "attend_backward_query" not in text
        assert ("scf.while" in text) == turns
    text = launched(weft.causal() & weft.strided(3))
    assert "attend_backward_query" in text
    assert "scf.while" not in text
