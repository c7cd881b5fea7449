# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SFA end to end: results, loss and all gradients against float64, by the accuracy rule."""

import functools

import pytest
import torch
import weft
from weft.attention.sfa import _sfa
from weft.testing import drawn, judge
from weft.testing import sfa as formula
from weft.testing.plans import counted, instructions, launches

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
TYPES = ["f16", pytest.param("bf16", marks=pytest.mark.slow)]


def inputs(randn, *, tokens, head=64, heads=2, kv_heads=2, batch=1, values=None, gains=True):
    tensors = {
        "q": randn(batch, heads, tokens, head),
        "k": randn(batch, kv_heads, tokens, head),
        "v": randn(batch, kv_heads, tokens, values or head),
    }
    if gains:
        tensors |= {"q_gain": randn(heads, head) * 0.2 + 1, "k_gain": randn(kv_heads, head) * 0.2 + 1}
    return tensors


def check(seed, held, dtype, sizes, p, **options):
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, **sizes)
    batch, heads, tokens = sizes.get("batch", 1), sizes.get("kv_heads", 2), sizes["tokens"]
    if p is not None:
        options["decisions"] = torch.rand(batch, heads, tokens, generator=generator) < p
    cu = options.pop("cu", None)
    lengths = {} if cu is None else {"cu_seqlens": torch.tensor(cu, dtype=torch.int32)}
    names = ("out", "loss") if options.get("return_loss") else ("out",)
    held(
        "SFA",
        lambda: judge(
            functools.partial(weft.attention.sfa, **options, **lengths),
            functools.partial(formula, **options, **lengths),
            drawn(draw, dtype, generator),
            names=names,
            generator=generator,
            products_as_given=False,
        ),
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, *(pytest.param(p, marks=pytest.mark.slow) for p in (0.1, 0.3, 0.7))])
def test_ratios(p, dtype, seed, held):
    check(seed, held, DTYPES[dtype], {"tokens": 150, "batch": 2}, p)


LENGTHS = [1, 2, 65, *(pytest.param(n, marks=pytest.mark.slow) for n in (63, 64, 113, 799))]


@pytest.mark.parametrize("tokens", LENGTHS)
def test_lengths(tokens, seed, held):
    check(seed, held, torch.float16, {"tokens": tokens}, 0.5)


FORMS = {
    "grouped heads": ({"tokens": 130, "heads": 4}, 0.5, {}),
    "one key head": ({"tokens": 130, "heads": 4, "kv_heads": 1}, 0.5, {}),
    "head of 128": ({"tokens": 150, "head": 128}, 0.5, {}),
    "head of 80, values of 48": ({"tokens": 100, "head": 80, "values": 48}, 0.5, {}),
    "all joined": ({"tokens": 200}, 1.0, {}),
    "cap of 3": ({"tokens": 130}, 0.9, {"max_joins": 3}),
    "last": ({"tokens": 130}, 0.5, {"value_merge": "last"}),
    "mean": ({"tokens": 130}, 0.8, {"value_merge": "mean"}),
    "as printed": ({"tokens": 130}, 0.5, {"value_merge": "last", "value_offset": 1}),
    "offset": ({"tokens": 130}, 0.5, {"value_offset": 1}),
    "rope": ({"tokens": 130}, 0.5, {"rope": True}),
    "no gains": ({"tokens": 130, "gains": False}, 0.5, {}),
    "scale": ({"tokens": 130}, 0.5, {"scale": 0.05}),
    "loss": ({"tokens": 130}, 0.5, {"return_loss": True, "loss_factor": 0.7}),
    "loss of merged pairs": ({"tokens": 130}, 0.5, {"return_loss": True, "loss_pairs": "merged"}),
    "loss, nothing merged": ({"tokens": 70}, 0.0, {"return_loss": True}),
    "packed": ({"tokens": 200}, 0.5, {"cu": [0, 0, 1, 64, 64, 150, 200]}),
    "packed, rope, loss": ({"tokens": 200}, 0.5, {"cu": [0, 37, 37, 200], "rope": True, "return_loss": True}),
    "packed, as printed": (
        {"tokens": 150},
        0.5,
        {"cu": [0, 37, 38, 150, 150], "value_merge": "last", "value_offset": 1},
    ),
    "decided": ({"tokens": 130}, None, {"difference_threshold": 0.05}),
}


#: in every run of the tests; the others are slow ones
QUICK = ("grouped heads", "as printed", "packed, rope, loss", "decided")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FORMS])
def test_forms(name, dtype, seed, held):
    sizes, p, options = FORMS[name]
    check(seed, held, DTYPES[dtype], sizes, p, **options)


def test_nothing_merged_is_causal_attention(seed, held):
    """Rows of the norm that both take are made before: attention proper is the same."""
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, tokens=150, gains=False)
    program = functools.partial(weft.attention.sfa, max_joins=0)

    def causal(q, k, v, form):
        from weft.testing import Domain, attention, masks, mixers
        from weft.testing.attention import wide

        q, k = (mixers.rms_norm(wide(x)).to(x.dtype) for x in (q, k))
        return attention(q, [Domain(k, v, masks.causal(150, 150))], form=form)[0]

    held(
        "SFA, nothing merged",
        lambda: judge(
            program, causal, drawn(draw, torch.float16, generator), generator=generator, products_as_given=False
        ),
    )


def as_program(**options):
    """weft.attention.sfa's program, without gains unless given."""
    static = {"eps": 1e-6, "heads": None, "thresholds": (2e-4, 0.0175), "max_joins": 20, "values": ("sum", 0)}
    static |= {"rope": False, "scale": None, "loss": None, **options}

    @weft.program
    def sfa_of(q, k, v, q_gain=None, k_gain=None, decisions=None, cu_seqlens=None):
        return _sfa(q, k, v, q_gain, k_gain, decisions, cu_seqlens, **static)

    return sfa_of


GAINS = {name: torch.ones(2, 128) for name in ("q_gain", "k_gain")}
LAUNCHED = {
    "plain": ({}, {}),
    "gains": (GAINS, {}),
    "decided": ({**GAINS, "decisions": torch.zeros(1, 2, 64, dtype=torch.bool)}, {}),
    "packed": ({**GAINS, "cu_seqlens": torch.tensor([0, 20, 64], dtype=torch.int32)}, {}),
    "mean": (GAINS, {"values": ("mean", 0)}),
    "loss": (GAINS, {"loss": (0.5, "all")}),
    "loss, no gains": ({}, {"loss": (1.0, "all")}),
    "loss of merged pairs": (GAINS, {"loss": (1.0, "merged")}),
    "loss, packed": (
        {**GAINS, "cu_seqlens": torch.tensor([0, 20, 64], dtype=torch.int32)},
        {"loss": (1.0, "all"), "rope": True},
    ),
    "loss, decided": (
        {**GAINS, "decisions": torch.zeros(1, 2, 64, dtype=torch.bool)},
        {"loss": (1.0, "merged"), "values": ("last", 1)},
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        n if n in ("packed", "loss", "loss of merged pairs") else pytest.param(n, marks=pytest.mark.slow)
        for n in LAUNCHED
    ],
)
def test_launches(name):
    """Decide; units and merge; attend, and the loss. Queries, numbers of rows and of pairs; attention; rows; the last
    sums."""
    tensors, options = LAUNCHED[name]
    q, k, v = (torch.zeros(1, 2, 64, 128, dtype=torch.float16) for _ in range(3))
    found = launches(as_program(**options), q, k, v, **tensors)
    assert len(found["forward"]) <= 3 and len(found["backward"]) <= 4, found


def test_instructions_beside_causal_attention(seed):
    """At 8,192 tokens: with nothing merged beside the attention that SFA then equals, of normalised rows, and with half
    and nine tenths of the tokens merged beside causal attention of rows as they are. Of attention 42 of 64 blocks run,
    whose mean tile is the middle one.
    """
    generator = torch.Generator().manual_seed(seed)

    @weft.program
    def causal(q, k, v):
        return weft.softmax(q, k, weft.causal()) @ v

    @weft.program
    def normalised(q, k, v):
        return weft.softmax(weft.rms_norm(q), weft.rms_norm(k), weft.causal()) @ v

    q, k, v = (torch.randn(1, 1, 8192, 128, generator=generator).half() for _ in range(3))
    cost = functools.partial(counted, sample=42, counts_only=False, backward=False)
    dense, equal = (sum(instructions(cost(f, q, k, v)["forward"]).values()) for f in (causal, normalised))
    for merged, most in ((0.0, 1.05 * equal), (0.5, 0.62 * dense), (0.9, 0.25 * dense)):
        joins = torch.rand(8192, generator=generator) < merged
        joins[0] = False
        last = torch.cummax(torch.arange(8192) * ~joins, 0).values
        found = instructions(cost(as_program(heads=1), q, k[:, :, last].contiguous(), v)["forward"])
        deciding = sum(count for kernel, count in found.items() if "attend" not in kernel)
        # About 0.61 million, 0.039 of what attention took when it multiplied its sums in every block.
        assert deciding <= 0.043 * dense, (merged, found, dense)
        assert sum(found.values()) <= most, (merged, found, dense, equal)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value_merge": "max"}, "expected value_merge to be 'sum', 'last' or 'mean', but got 'max'"),
        ({"value_offset": 2}, "expected value_offset to be 0 or 1, but got 2"),
        ({"max_joins": -1}, "expected max_joins to be an integer of at least 0, but got -1"),
        ({"loss_pairs": "some"}, "expected loss_pairs to be 'all' or 'merged', but got 'some'"),
        ({"decisions": torch.zeros(1, 2, 9, dtype=torch.bool)}, r"expected decisions of shape \[1, 2, 10\]"),
        ({"decisions": torch.zeros(1, 2, 10)}, "expected decisions of bool"),
        ({"cu_seqlens": torch.tensor([0, 10])}, "expected 'cu_seqlens' .* of int32"),
    ],
)
def test_errors(options, message):
    q, k, v = (torch.zeros(1, 2, 10, 32) for _ in range(3))
    with pytest.raises(ValueError, match=message):
        weft.attention.sfa(q, k, v, **options)
