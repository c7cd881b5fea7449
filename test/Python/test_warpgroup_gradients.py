# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients of attention by matrix instructions of warpgroups, at their default schedules: right against float64
whatever is early or late, all products of warpgroups, no spill, and a bounded number of machine instructions.
"""

import math

import pytest
import torch
import weft
from weft.compiler.ptxas import assemble, find_tool
from weft.cycles.flow import loops_of
from weft.programs.compiled import compiled
from weft.programs.simulated import run_plan
from weft.targets import targets
from weft.testing import masks

TARGET = next(name for name, each in targets().items() if each.warpgroup_mma)
needs_ptxas = pytest.mark.skipif(
    not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)


@weft.program
def attention(q, k, v, *, pattern, deterministic=True, slope=0.0):
    score_mod = (lambda score, b, h, i, j: score - slope * (i - j)) if slope else None
    return weft.softmax(q, k, pattern, score_mod=score_mod, deterministic=deterministic) @ v


def form_of(D, heads, groups, **given):
    """Compiled with its gradient, at the default schedules, for aligned operands of any length."""
    operands = [torch.zeros(1, count, 128, D, dtype=torch.float16) for count in (heads, groups, groups)]
    return compiled(attention.trace(attention.bind(operands, given)), TARGET, differentiate=True)


#: what a case's `masked` is: a pattern, and the dense mask
PATTERNS = {
    False: (weft.full(), masks.full),
    True: (weft.causal(), masks.causal),
    "window": (weft.window(70, 9), lambda n, m: masks.window(n, m, 70, 9)),
}


def reference(known, heads, groups, masked, slope):
    """Results in float64."""
    leaves = [known[name].double().requires_grad_() for name in "qkv"]
    k, v = (leaf.repeat_interleave(heads // groups, 1) for leaf in leaves[1:])
    (N, D), M = leaves[0].shape[-2:], k.shape[-2]
    scores = leaves[0] @ k.mT / math.sqrt(D)
    scores = scores - slope * (torch.arange(N)[:, None] - torch.arange(M)[None, :])
    scores = scores.masked_fill(~PATTERNS[masked][1](N, M), -math.inf)
    out = scores.softmax(-1) @ v
    found = dict(zip(("d_q", "d_k", "d_v"), torch.autograd.grad(out, leaves, known["d_out"].double()), strict=True))
    return found | {"out": out.detach()}


@pytest.mark.parametrize(
    "D, heads, groups, masked, deterministic, slope",
    [
        (64, 1, 1, False, True, 0.0),
        (64, 2, 1, False, True, 0.0),
        (64, 1, 1, True, True, 0.0),
        (64, 2, 1, True, False, 0.0),
        (64, 1, 1, False, False, 0.0),
        (64, 1, 1, "window", False, 0.0),
        (64, 1, 1, False, True, 0.02),
        (96, 1, 1, False, False, 0.0),
        (128, 1, 1, False, True, 0.0),
        (128, 2, 1, False, False, 0.0),
        (128, 1, 1, False, False, 0.0),
        (128, 1, 1, True, False, 0.0),
        (128, 1, 1, "window", False, 0.0),
        (128, 1, 1, False, False, 0.02),
        (136, 1, 1, "window", True, 0.0),
        (160, 1, 1, True, True, 0.02),
        (192, 2, 1, False, True, 0.0),
        (192, 1, 1, "window", True, 0.0),
        (256, 2, 1, False, True, 0.0),
        (256, 1, 1, True, True, 0.0),
    ],
)
@pytest.mark.parametrize("queries, keys", [(139, 277)])
def test_gradients(D, heads, groups, masked, deterministic, slope, queries, keys):
    """Lengths that fill no tile, in several schedules of the simulator."""
    given = {"pattern": PATTERNS[masked][0], "deterministic": deterministic, "slope": slope}
    form = form_of(D, heads, groups, **given)
    start = torch.random.seed() % 2**31
    print("seed", start)
    torch.manual_seed(start)
    lengths = {"q": (heads, queries), "k": (groups, keys), "v": (groups, keys), "d_out": (heads, queries)}
    known = {name: torch.randn(1, count, tokens, D).half() for name, (count, tokens) in lengths.items()}
    expected = reference(known, heads, groups, masked, slope)
    plans = {each["name"]: each for each in form.info["programs"]}
    for seed in range(3):
        arrays = {name: tensor.numpy() for name, tensor in known.items()}
        for name in ("attention.forward", "attention.backward"):
            inputs = [arrays[each["name"]] for each in plans[name]["inputs"]]
            run = run_plan(form.ptx, form.info, name, inputs, seed=start + seed)
            assert run.findings == []
            arrays |= run.outputs
        for name, right in expected.items():
            error = float((torch.from_numpy(arrays[name]).double() - right).abs().max())
            assert error <= 4e-3 * float(right.abs().max()), (name, seed)


#: head size, one pass: kernels, with the most machine instructions that the shortest loop takes for 64 × 64 pairs of a
#: warpgroup
LIMITS = {
    (64, False): {"attend_backward_query": 190, "attend_backward_keys": 225},
    (128, False): {"attend_backward_query": 245, "attend_backward_keys": 300},
    (64, True): {"attend_backward": 330},
    (128, True): {"attend_backward": 380},
    (192, False): {"attend_backward_query": 300, "attend_backward_keys": 300, "attend_backward_values": 240},
    (256, False): {"attend_backward_query": 460, "attend_backward_keys": 460, "attend_backward_values": 260},
}
#: pairs of a warpgroup in an iteration, over 64 × 64: of all kernels of a head size, or of one
PAIRS = {(64, ""): 2, (256, "attend_backward_query"): 0.5, (256, "attend_backward_keys"): 0.5}


@needs_ptxas
@pytest.mark.parametrize("D, one_pass", LIMITS)
def test_loops(D, one_pass):
    """Warpgroups make all products, whatever the head size; nothing is spilled."""
    form = form_of(D, 1, 1, pattern=weft.full(), deterministic=not one_pass)
    assert "mma.sync" not in form.ptx
    found = loops_of(form.ptx, TARGET)
    for name, limit in LIMITS[D, one_pass].items():
        resources = assemble(form.ptx, TARGET, name)
        assert resources is not None, "ptxas was found"
        assert (resources.spill_store_bytes, resources.spill_load_bytes) == (0, 0), name
        assert not resources.advice, name
        shortest = min((loop for loop in found[name] if loop.matrix), key=lambda loop: loop.count)
        pairs = 1 if one_pass else PAIRS.get((D, ""), PAIRS.get((D, name), 1))
        assert shortest.count <= limit * pairs, (name, shortest.count)


NAMED = {"full": weft.full(), "causal": weft.causal(), "window": weft.window(256, 0)}
#: head size, heads that share keys, slope: where nothing may spill, those first that every run takes
HELD = [(64, 1, 0.0, pattern) for pattern in NAMED] + [(64, 4, 0.0, "causal"), (64, 1, 0.02, "causal")]
HELD_TOO = [
    (D, heads, slope, pattern)
    for D in (64, 128)
    for heads, slope in ((1, 0.0), (4, 0.0), (1, 0.02))
    for pattern in NAMED
    if (D, heads, slope, pattern) not in HELD
]


#: bytes that are still spilled: differences of places, as numbers, beside products under way (docs/Benchmarks.md)
STILL_SPILLS = {(128, 1, 0.02, "causal", True): 36, (128, 1, 0.02, "window", True): 64}


@needs_ptxas
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(
    "D, heads, slope, pattern", [*HELD, *(pytest.param(*each, marks=pytest.mark.slow) for each in HELD_TOO)]
)
def test_nothing_spills(D, heads, slope, pattern, deterministic):
    """What fills registers is taken where nothing else has to be held."""
    most = STILL_SPILLS.get((D, heads, slope, pattern, deterministic), 0)
    form = form_of(D, heads, 1, pattern=NAMED[pattern], deterministic=deterministic, slope=slope)
    for each in form.info["kernels"]:
        found = assemble(form.ptx, TARGET, each["entry"])
        assert found is not None, "ptxas was found"
        assert found.spilled_bytes <= most, each["entry"]
