# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention's and recurrences' kernels at their default schedules: no registers are spilled, forward and backward."""

import pytest
import torch
import weft
from weft.compiler.ptxas import assemble, find_tool
from weft.programs.compiled import compiled

pytestmark = pytest.mark.skipif(find_tool("ptxas") is None, reason="ptxas was not found")
HALF, BFLOAT, SINGLE = torch.float16, torch.bfloat16, torch.float32


@weft.program
def attention(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern) @ v


@weft.program
def one_pass(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern, deterministic=False) @ v


@weft.program
def sema(q, k, v, lepe, *, window, grid=None):
    q, k = weft.rope(q, k, window=window, grid=grid)
    local = weft.softmax(q, k, weft.block_window(window, grid=grid))
    return (local + weft.mean() + weft.toeplitz(lepe, centred=True, grid=grid)) @ v


def spilled_of(program, arrays, **static):
    """Bytes that each kernel spills, of those that spill any."""
    form = compiled(program.trace(program.bind(arrays, static)), "sm_80", True)
    found = {each["entry"]: assemble(form.ptx, "sm_80", each["entry"]) for each in form.info["kernels"]}
    bytes_of = {name: each.spilled_bytes for name, each in found.items()}
    return {name: count for name, count in bytes_of.items() if count}


def spilled(program, D, dtype, taps=0, Dv=None, **static):
    """The same of a program of queries, keys and values."""
    arrays = [torch.zeros(1, 1, 196, channels, dtype=dtype) for channels in (D, D, Dv or D)]
    if taps:
        arrays.append(torch.zeros(taps, D, dtype=dtype))
    return spilled_of(program, arrays, **static)


#: bytes that are known to be stored and loaded (docs/Benchmarks.md)
KNOWN = {("window", 128, SINGLE): 16, ("causal", 64, HALF): 24, ("causal", 64, BFLOAT): 24}
PATTERNS = {"full": weft.full(), "causal": weft.causal(), "window": weft.window(256, 0)}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "name, D, dtype",
    [
        ("causal", 64, HALF),
        ("causal", 64, SINGLE),
        *(slow(name, D, dtype) for name in PATTERNS for D in (64, 128) for dtype in (HALF, BFLOAT, SINGLE)),
    ],
)
def test_dense_patterns(name, D, dtype):
    found = spilled(attention, D, dtype, pattern=PATTERNS[name])
    assert sum(found.values()) <= KNOWN.get((name, D, dtype), 0), found


@pytest.mark.parametrize("D, dtype", [(64, HALF), slow(64, BFLOAT), slow(128, HALF)])
def test_one_pass(D, dtype):
    assert not spilled(one_pass, D, dtype, pattern=weft.causal())


@pytest.mark.parametrize(
    "pattern, known", [(weft.full(), {}), slow(weft.causal(), {"attend_backward": 64})], ids=["full", "causal"]
)
def test_wide_values(pattern, known):
    """What a causal backward spills is stored before its loops and loaded between them."""
    found = spilled(attention, 128, HALF, Dv=1536, pattern=pattern)
    assert all(count <= known.get(name, 0) for name, count in found.items()), found


@pytest.mark.parametrize(
    "window, D, dtype",
    [
        (64, 64, HALF),
        *(slow(64, D, dtype) for D in (64, 128) for dtype in (HALF, BFLOAT)),
        *(slow(window, 64, dtype) for window in (64, 128) for dtype in (HALF, BFLOAT, SINGLE)),
    ],
)
def test_sema(window, D, dtype):
    assert not spilled(sema, D, dtype, taps=3, window=window)


@pytest.mark.slow
@pytest.mark.parametrize(
    "window, D, dtype, taps, grid",
    [
        (128, 128, HALF, 3, None),
        (128, 128, BFLOAT, 3, None),
        (64, 128, SINGLE, 3, None),
        (128, 128, SINGLE, 3, None),
        ((7, 7), 32, HALF, 9, (14, 14)),
        ((7, 7), 64, HALF, 9, (14, 14)),
    ],
)
def test_what_still_spills_spills_little(window, D, dtype, taps, grid):
    """Forward only, where the values of a whole window stay beside the products for the convolution."""
    found = spilled(sema, D, dtype, taps=taps, window=window, grid=grid)
    assert all("backward" not in name and count <= 256 for name, count in found.items())


@pytest.mark.slow
def test_sfa_with_its_loss():
    """All kernels but that of attention's backward: gains' gradients have everything of a row at hand."""
    from weft.attention.sfa import _sfa

    static = {"eps": 1e-6, "heads": 4, "thresholds": (2e-4, 0.0175), "max_joins": 20, "values": ("sum", 0)}

    @weft.program
    def sfa(q, k, v, q_gain, k_gain):
        return _sfa(q, k, v, q_gain, k_gain, None, None, rope=False, scale=None, loss=(1.0, "all"), **static)

    arrays = [*(torch.zeros(1, 8, 256, 128, dtype=HALF) for _ in range(3)), *(torch.ones(8, 128) for _ in range(2))]
    form = compiled(sfa.trace(sfa.bind(arrays, {})), "sm_80", True)
    names = [each["entry"] for each in form.info["kernels"] if "attend_backward_keys" not in each["entry"]]
    found = {name: assemble(form.ptx, "sm_80", name) for name in names}
    assert sum(each.spilled_bytes for each in found.values()) <= 16, found.keys()


@weft.program
def linear(q, k, v, decay):
    return weft.linear_attention(q, k, decay) @ v


@weft.program
def delta(q, k, v, beta, decay):
    return weft.delta_rule(q, k, beta, decay) @ v


#: bytes that are known (docs/Recurrences.md)
KNOWN_OF_RECURRENCES = {("channel", 64): 240, ("channel", 128): 1344, ("gated delta", 64): 8}


@pytest.mark.parametrize(
    "kind, D",
    [("gated delta", 128), *(slow(kind, D) for kind in ("token", "channel", "gated delta") for D in (64, 128))],
)
def test_recurrences(kind, D):
    q, k, v = (torch.zeros(1, 1, 196, D, dtype=HALF) for _ in range(3))
    numbers = torch.zeros(1, 1, 196, *([D] if kind == "channel" else []))
    beside = (numbers, numbers) if kind == "gated delta" else (numbers,)
    found = spilled_of(delta if kind == "gated delta" else linear, [q, k, v, *beside])
    assert sum(found.values()) <= KNOWN_OF_RECURRENCES.get((kind, D), 0), found


def read_pairs():
    mask = torch.ones(196, 196, dtype=torch.bool)
    return attention, weft.mask(lambda b, h, n, m: mask[n, m]), ()


def read_blocks():
    bits = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    return attention, weft.block_bitmap(bits, block=(64, 64)), ()


@weft.program
def tempered(q, k, v, factor, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: score * factor[h, n]) @ v


def keep_scores():
    return tempered, weft.causal(), (torch.zeros(1, 196),)


@weft.program
def biased(q, k, v, table, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: score + table[h, n, m]) @ v


def add_tables():
    return biased, weft.full(), (torch.zeros(1, 196, 196),)


@pytest.mark.parametrize("D", [64, slow(128)])
@pytest.mark.parametrize("make", [read_pairs, read_blocks, keep_scores, add_tables])
def test_what_is_held_for_pairs(make, D):
    """Masks and score_mods that hold something for each pair have schedules that leave it room."""
    program, pattern, beside = make()
    arrays = [torch.zeros(1, 1, 196, D, dtype=HALF) for _ in range(3)]
    found = spilled_of(program, [*arrays, *beside], pattern=pattern)
    assert sum(found.values()) <= (0 if D == 64 else 32), found
