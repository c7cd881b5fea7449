# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Merging runs of tokens: shifts, decisions, units and their tables, the rows of units and their gradients."""

import pytest
import torch
import weft
from weft.testing import poisoned
from weft.testing.sfa import decide, kept_joins, merged, seen, units_of

TABLES = ("unit", "lower", "upper", "ends", "first", "past", "kept")


def joins_of(p, batch, heads, length, generator):
    return torch.rand(batch, heads, length, generator=generator) < p


def expected_tables(joins, max_joins, offset, cu=None):
    """Every table by loops over the reference's units; -1 where it does not matter."""
    B, H, N = joins.shape
    tables = {name: torch.full((B, H, N), N, dtype=torch.int32) for name in TABLES}
    for b in range(B):
        for h in range(H):
            row = joins[b, h].tolist()
            units = units_of(row, max_joins, cu)
            leader = 0
            for m, unit in enumerate(units):
                leader = m if unit.leads else leader
                inside = slice(unit.begin, unit.end)
                tables["unit"][b, h, inside] = m
                tables["lower"][b, h, inside] = leader
                tables["ends"][b, h, m] = unit.end
                last = m + 1 == len(units) or units[m + 1].leads
                tables["first"][b, h, m] = unit.end if not offset else unit.past if last else units[m + 1].end - 1
                tables["past"][b, h, m] = unit.past
            visible = seen([[units]], N, offset)[0, 0].sum(-1)
            tables["upper"][b, h] = tables["lower"][b, h] + visible
            tables["kept"][b, h] = torch.tensor(kept_joins(row, max_joins, cu))
    return tables


def check_units(joins, k, v, *, max_joins=20, mode="sum", offset=0, cu=None):
    lengths = None if cu is None else torch.tensor(cu, dtype=torch.int32)
    k, v = k.requires_grad_(), v.requires_grad_()
    options = {"max_joins": max_joins, "modes": ("sum", mode), "offsets": (0, offset), "cu_seqlens": lengths}
    with poisoned():
        units = weft.merge_units(joins, k, v, **options)
    wanted = expected_tables(joins, max_joins, offset, cu)
    for name in TABLES:
        assert torch.equal(getattr(units, name).to(torch.int32), wanted[name].to(torch.int32)), name
    found = [[units_of(row, max_joins, cu) for row in heads] for heads in joins.tolist()]
    seeds = [torch.randn(x.shape) for x in (k, v)]
    results, grads = [], []
    for x, mine, way, seed in zip((k, v), units.merged, (("sum", 0), (mode, offset)), seeds, strict=True):
        exact = x.detach().double().requires_grad_()
        rows = merged(exact, found, *way)
        count = torch.tensor([[len(units) for units in heads] for heads in found])[:, :, None, None]
        valid = torch.arange(k.shape[2])[:, None] < count
        results.append((mine.detach().double().masked_fill(~valid, 0), rows.detach()))
        seed.masked_fill_(~valid, 0)
        grads.append(torch.autograd.grad(rows, exact, seed.double())[0])
    mine_grads = torch.autograd.grad(units.merged, (k, v), [s.to(x.dtype) for s, x in zip(seeds, (k, v), strict=True)])
    for mine, exact in [*results, *zip(mine_grads, grads, strict=True)]:
        tolerance = {torch.float16: 2e-3, torch.float32: 1e-5}[k.dtype]
        torch.testing.assert_close(mine.double(), exact, rtol=tolerance, atol=4 * tolerance)


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 113, 300, pytest.param(799, marks=pytest.mark.slow)])
@pytest.mark.parametrize("p", [0.0, 0.5, 0.9])
def test_units(length, p, seed):
    g = torch.Generator().manual_seed(seed)
    k, v = torch.randn(1, 2, length, 32, generator=g), torch.randn(1, 2, length, 32, generator=g)
    check_units(joins_of(p, 1, 2, length, g), k, v)


FORMS = {
    "f16": {"dtype": torch.float16},
    "batches, values of another size": {"batch": 2, "values": 48, "length": 290},
    "all joined": {"p": 1.0, "length": 700},
    "units of two": {"p": 0.9, "max_joins": 1},
    "nothing merges": {"p": 0.9, "max_joins": 0},
    "last": {"mode": "last"},
    "mean": {"mode": "mean", "p": 0.8},
    "offset": {"offset": 1},
    "offset, last": {"mode": "last", "offset": 1, "p": 0.8},
    "offset, mean": {"mode": "mean", "offset": 1},
    "packed": {"cu": [0, 0, 1, 40, 40, 201, 300, 300]},
    "packed, offset, last": {"cu": [0, 37, 37, 38, 290, 300], "mode": "last", "offset": 1},
    "packed, offset, mean": {"cu": [0, 256, 300], "mode": "mean", "offset": 1, "p": 0.8},
}


#: in every run of the tests; the others are slow ones
QUICK = ("f16", "all joined", "offset, mean", "packed", "packed, offset, last")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FORMS])
def test_forms_of_units(name, seed):
    form = dict(FORMS[name])
    g = torch.Generator().manual_seed(seed)
    length, batch = form.pop("length", 300), form.pop("batch", 1)
    dtype, values = form.pop("dtype", torch.float32), form.pop("values", 32)
    k = torch.randn(batch, 2, length, 32, generator=g).to(dtype)
    v = torch.randn(batch, 2, length, values, generator=g).to(dtype)
    check_units(joins_of(form.pop("p", 0.5), batch, 2, length, g), k, v, **form)


@pytest.mark.parametrize("by", [1, -1, 5])
@pytest.mark.parametrize("cu", [None, [0, 3, 3, 40, 70]], ids=["whole", "packed"])
def test_shift(by, cu, seed):
    x = torch.randn(1, 2, 70, 32, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    lengths = None if cu is None else torch.tensor(cu, dtype=torch.int32)
    with poisoned():
        y = weft.shift(x, by, lengths)
    n = torch.arange(70)
    of = torch.bucketize(n, torch.tensor([0, 70] if cu is None else cu), right=True)
    source = n - by
    valid = (source >= 0) & (source < 70)
    valid &= of[source.clamp(0, 69)] == of
    wanted = x.detach()[:, :, source.clamp(0, 69)] * valid[:, None]
    assert torch.equal(y.detach(), wanted)
    seed_of = torch.randn(y.shape)
    (mine,) = torch.autograd.grad(y, x, seed_of)
    exact = torch.zeros_like(x).index_add(2, source[valid], seed_of[:, :, valid])
    assert torch.equal(mine, exact)


def near(k, similar_heads):
    """Keys of which some neighbours are alike, and some orthogonal, in every head."""
    _, H, N, _ = k.shape
    for h in range(H):
        for i in range(1, N):
            if i % 3 == 0 and h < similar_heads:
                k[:, h, i] = k[:, h, i - 1] * 1.5 + 0.003 * k[:, h, i]
            elif i % 3 == 0:
                along = (k[:, h, i] * k[:, h, i - 1]).sum(-1) / k[:, h, i - 1].square().sum(-1)
                k[:, h, i] -= along[:, None] * k[:, h, i - 1]
    return k


@pytest.mark.parametrize("cu", [None, [0, 3, 3, 90, 150]], ids=["whole", "packed"])
@pytest.mark.parametrize("similar", [None, 0, 3])
def test_decisions(similar, cu, seed):
    g = torch.Generator().manual_seed(seed)
    k = near(torch.randn(1, 3, 150, 64, generator=g), 2 if similar is None else similar)
    k[0, 1, 20] = k[0, 0, 21] = k[0, 2, 22] = 0
    lengths = None if cu is None else torch.tensor(cu, dtype=torch.int32)
    with poisoned():
        mine = weft.merge_decide(k, similarity_heads=similar, cu_seqlens=lengths)
    wanted, distance = decide(k.double(), similar, cu_seqlens=cu)
    assert 20 < int(wanted.sum()) < 300
    clear = distance > 1e-6
    assert torch.equal(mine[clear], wanted[clear])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, j: weft.shift(x, 0), "expected by to be an integer other than 0, but got 0"),
        (lambda x, j: weft.merge_decide(x, similarity_heads=3), "expected similarity_heads from 0 to 2"),
        (lambda x, j: weft.merge_units(x, x), r"expected joins \[B, Hkv, N\] of bool"),
        (lambda x, j: weft.merge_units(j, x, max_joins=-1), "expected max_joins to be an integer of at least 0"),
        (lambda x, j: weft.merge_units(j, x, modes="max"), "expected modes to be 'sum' or 'last' or 'mean'"),
        (lambda x, j: weft.merge_units(j, x, cu_seqlens=j), r"expected cu_seqlens \[S\+1\] of int32"),
        (
            lambda x, j: weft.merge_units(j[:, :, :4], x),
            "expected tensors to merge of the joins' batch, heads and length",
        ),
    ],
)
def test_errors(make, message):
    x, joins = torch.zeros(1, 2, 8, 16), torch.zeros(1, 2, 8, dtype=torch.bool)
    with pytest.raises(weft.CompilationError, match=message):
        make(x, joins)
