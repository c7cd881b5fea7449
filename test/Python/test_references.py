# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The references of weft.testing against PyTorch's own operations, the definitions pair by pair, and differences."""

import math

import pytest
import torch
import torch.nn.functional as F
from weft.testing import FORMS, Domain, attention, masks, mixers, plain_attention, reference_attention, sema
from weft.testing.sema import lepe, window_rope

DOUBLE = torch.float64


@pytest.fixture
def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape, dtype=DOUBLE: torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)


# Masks: the definition of each, in plain integers, for one pair.


def neighbours(i, length, kernel, dilation):
    """The keys of NATTEN's window around i: walk the line of i's residue, take the kernel nearest places inside."""
    line = [j for j in range(length) if j % dilation == i % dilation]
    at = line.index(i)
    start = at - kernel // 2
    while start < 0:
        start += 1
    while start + kernel > len(line):
        start -= 1
    return set(line[start : start + kernel])


def cell(token, grid):
    return token // grid[1], token % grid[1]


def same_window(p, m, size, grid):
    (a, b), (c, d) = cell(p, grid), cell(m, grid)
    return a // size[0] == c // size[0] and b // size[1] == d // size[1]


def near_on_grid(p, m, shape, kernel, dilation):
    places = zip(cell(p, shape), cell(m, shape), shape, kernel, dilation, strict=True)
    return all(j in neighbours(i, length, size, step) for i, j, length, size, step in places)


ANY = [(1, 1), (7, 7), (12, 12), (5, 9), (9, 5), (1, 8), (8, 1)]
DEFINITIONS = {
    "full": (masks.full, lambda p, m: True, ANY),
    "causal": (masks.causal, lambda p, m: m <= p, ANY),
    "window": (lambda n, m: masks.window(n, m, 3, 1), lambda p, m: p - 3 <= m <= p + 1, ANY),
    "window-left": (lambda n, m: masks.window(n, m, 2, None), lambda p, m: m >= p - 2, ANY),
    "window-right": (lambda n, m: masks.window(n, m, None, 0), lambda p, m: m <= p, ANY),
    "block-window": (lambda n, m: masks.block_window(n, m, 4), lambda p, m: p // 4 == m // 4, ANY),
    "block-window-grid": (
        lambda n, m: masks.block_window(n, m, (2, 3), (5, 7)),
        lambda p, m: same_window(p, m, (2, 3), (5, 7)),
        [(35, 35)],
    ),
    "strided": (lambda n, m: masks.strided(n, m, 3), lambda p, m: (p - m) % 3 == 0, ANY),
    "dilated": (lambda n, m: masks.dilated(n, m, 2, 2), lambda p, m: (p - m) % 2 == 0 and abs(p - m) <= 4, ANY),
    "prefix": (lambda n, m: masks.prefix(n, m, 3), lambda p, m: m < 3, ANY),
    "global": (lambda n, m: masks.global_tokens(n, m, 2), lambda p, m: p < 2 or m < 2, ANY),
    "neighbourhood": (
        lambda n, m: masks.neighbourhood(n, m, (13,), (3,), (2,)),
        lambda p, m: m in neighbours(p, 13, 3, 2),
        [(13, 13)],
    ),
    "neighbourhood-even": (
        lambda n, m: masks.neighbourhood(n, m, (9,), (4,)),
        lambda p, m: m in neighbours(p, 9, 4, 1),
        [(9, 9)],
    ),
    "neighbourhood-grid": (
        lambda n, m: masks.neighbourhood(n, m, (5, 8), (3, 3), (1, 2)),
        lambda p, m: near_on_grid(p, m, (5, 8), (3, 3), (1, 2)),
        [(40, 40)],
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_mask_is_its_definition(name):
    dense, belongs, sizes = DEFINITIONS[name]
    for n, m in sizes:
        expected = [[belongs(row + m - n, key) for key in range(m)] for row in range(n)]
        assert torch.equal(dense(n, m), torch.tensor(expected).view(n, m)), (n, m)


def test_neighbourhood_has_exactly_its_kernel():
    assert (masks.neighbourhood(56, 56, (7, 8), (3, 5)).sum(1) == 15).all()


def test_masks_from_tables():
    ids = torch.tensor([0, 0, 1, 1, 1, 4])
    assert masks.document(ids, ids).sum() == 4 + 9 + 1
    both = torch.stack([ids, torch.arange(6)])
    assert masks.document(both, both).shape == (2, 1, 6, 6) and masks.document(both, both)[1].sum() == 6

    index, count = torch.tensor([[[[2, 0], [1, 99]]]]), torch.tensor([[[2, 1]]])
    dense = masks.blocks(5, 9, index, count, (4, 3))[0, 0]
    assert dense[0].tolist() == [True] * 3 + [False] * 3 + [True] * 3
    assert dense[4].tolist() == [False] * 3 + [True] * 3 + [False] * 3
    bits = torch.tensor([[[[True, False, True], [False, True, False]]]])
    assert torch.equal(masks.block_bitmap(5, 9, bits, (4, 3))[0, 0], dense)

    said = masks.mask(3, 4, lambda b, h, n, m: (n + m + h) % 2 == b, batch=2, heads=3)
    assert said.shape == (2, 3, 3, 4) and bool(said[1, 2, 1, 2]) and not bool(said[0, 2, 1, 2])
    cu = torch.tensor([0, 2, 2, 5])
    assert masks.packed(cu, cu, masks.causal).sum() == 3 + 6


# Attention.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_attention_is_torch_attention(draw, form, causal):
    q, k, v = draw(2, 4, 9, 8), draw(2, 4, 9, 8), draw(2, 4, 9, 8)
    out, lse = attention(q, [Domain(k, v, masks.causal(9, 9) if causal else None)], form=form)
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    scores = (q @ k.mT / math.sqrt(8)).masked_fill(~masks.causal(9, 9), -math.inf) if causal else q @ k.mT / 8**0.5
    torch.testing.assert_close(lse, torch.logsumexp(scores, -1))


def test_grouped_heads_bias_and_different_head_sizes(draw):
    q, k, v, bias = draw(2, 6, 7, 8), draw(2, 2, 11, 8), draw(2, 2, 11, 5), draw(2, 6, 7, 11)
    out, _ = attention(q, [Domain(k, v)], bias=bias, scale=0.3)
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(out, expected)
    assert out.shape == (2, 6, 7, 5)


def test_score_mod_sees_scores_before_the_mask_with_indices(draw):
    q, k, v, bias = draw(2, 3, 5, 4), draw(2, 3, 6, 4), draw(2, 3, 6, 4), draw(1, 3, 5, 6)
    out, _ = attention(q, [Domain(k, v)], score_mod=lambda s, b, h, n, m: s + bias[0, h, n, m] * (b + 1))
    both = torch.cat([bias, 2 * bias])
    torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v, attn_mask=both))


def test_domains_are_one_softmax(draw):
    q, k, v = draw(1, 2, 6, 8), draw(1, 2, 10, 8), draw(1, 2, 10, 8)
    split = [Domain(k[:, :, :4], v[:, :, :4]), Domain(k[:, :, 4:], v[:, :, 4:])]
    torch.testing.assert_close(attention(q, split), attention(q, [Domain(k, v)]))
    counted = [Domain(k, v, count=torch.full((1, 2), 7))]
    torch.testing.assert_close(attention(q, counted), attention(q, [Domain(k[:, :, :7], v[:, :, :7])]))


def test_sink_is_a_key_without_a_value(draw):
    q, k, v, sink = draw(1, 2, 6, 8), draw(1, 2, 10, 8), draw(1, 2, 10, 8), draw(2)
    k0, v0 = torch.cat([torch.zeros(1, 2, 1, 8, dtype=DOUBLE), k], 2), torch.cat([torch.zeros(1, 2, 1, 8), v], 2)
    bias = torch.zeros(1, 2, 6, 11, dtype=DOUBLE)
    bias[:, :, :, 0] = sink[:, None]
    torch.testing.assert_close(
        attention(q, [Domain(k, v)], sink=sink), attention(q, [Domain(k0, v0.double())], bias=bias)
    )


@pytest.mark.parametrize("form", FORMS)
def test_empty_rows_give_zero_and_no_gradient(draw, form):
    q, k, v, sink = (x.requires_grad_() for x in (draw(1, 2, 9, 8), draw(1, 2, 4, 8), draw(1, 2, 4, 8), draw(2)))
    out, lse = attention(q, [Domain(k, v, masks.causal(9, 4))], form=form)
    assert (out[:, :, :5] == 0).all() and (lse[:, :, :5] == -math.inf).all() and lse[:, :, 5:].isfinite().all()
    gradients = torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
    assert all(g.isfinite().all() for g in gradients) and (gradients[0][:, :, :5] == 0).all()
    out, lse = attention(q, [Domain(k, v, masks.causal(9, 4))], sink=sink, form=form)
    assert (out[:, :, :5] == 0).all()
    torch.testing.assert_close(lse[:, :, :5], sink[None, :, None].expand(1, 2, 5))


@pytest.mark.parametrize("form", FORMS)
def test_attention_gradients_by_differences(draw, form):
    q, k, v, bias, sink = draw(1, 2, 5, 4), draw(1, 1, 6, 4), draw(1, 1, 6, 3), draw(1, 2, 5, 6), draw(2)

    def f(q, k, v, bias, sink):
        domain = Domain(k, v, masks.causal(5, 6))
        return attention(
            q, [domain, Domain(k[:, :, ::2], v[:, :, ::2])], sink=sink, form=form,
            score_mod=lambda s, b, h, n, m: 2 * torch.tanh(s / 2) + bias[b, h, n, m],
        )  # fmt: skip

    assert torch.autograd.gradcheck(f, [x.requires_grad_() for x in (q, k, v, bias, sink)])


def test_plain_forms_round(draw):
    q, k, v = (draw(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(3))
    ref, _ = reference_attention(q, k, v)
    forms = plain_attention(q, k, v)
    assert all(form.dtype == torch.bfloat16 for form in forms)
    assert all(1e-5 < float((form.double() - ref).abs().max()) < 2e-2 for form in forms)
    scaled = [attention(q, [Domain(k, v)], scale=0.3, form=form)[0] for form in FORMS[:2]]
    assert not torch.equal(*scaled), "expected the two forms to round differently"


# Mixers.


def test_toeplitz_is_a_convolution(draw):
    x, taps = draw(2, 3, 17, 4), draw(5, 12)
    channels = x.transpose(2, 3).reshape(2, 12, 17)
    for dilation in (1, 2, 3):
        causal = F.conv1d(F.pad(channels, (4 * dilation, 0)), taps.mT[:, None].flip(-1), groups=12, dilation=dilation)
        causal = causal.view(2, 3, 4, 17).transpose(2, 3)
        torch.testing.assert_close(mixers.toeplitz(x, taps, dilation=dilation), causal)
    centred = F.conv1d(channels, taps.mT[:, None].flip(-1), groups=12, padding=2).view(2, 3, 4, 17).transpose(2, 3)
    torch.testing.assert_close(mixers.toeplitz(x, taps, centred=True), centred)


@pytest.mark.parametrize("size", [3, 5])
def test_lepe_is_torch_convolution(draw, size):
    v, bias = draw(2, 3, 35, 4), draw(12)
    channels = v.transpose(2, 3).reshape(2, 12, 35)
    weight = draw(12, 1, size)
    expected = F.conv1d(channels, weight, bias, groups=12, padding=size // 2)
    torch.testing.assert_close(lepe(v, weight, bias), expected.view(2, 3, 4, 35).transpose(2, 3))
    weight = draw(12, 1, size, size)
    expected = F.conv2d(channels.view(2, 12, 5, 7), weight, bias, groups=12, padding=size // 2)
    torch.testing.assert_close(lepe(v, weight, bias, (5, 7)), expected.view(2, 3, 4, 35).transpose(2, 3))


def test_means(draw):
    x = draw(2, 3, 7, 4)
    torch.testing.assert_close(mixers.mean(x), x.mean(2, keepdim=True).expand_as(x))
    expected = torch.stack([x[:, :, : n + 1].mean(2) for n in range(7)], 2)
    torch.testing.assert_close(mixers.causal_mean(x), expected)


def test_rms_norm_is_torch_rms_norm(draw):
    x, gain = draw(2, 3, 7, 8), draw(3, 8)
    torch.testing.assert_close(mixers.rms_norm(x, eps=1e-3), F.rms_norm(x, (8,), eps=1e-3))
    torch.testing.assert_close(mixers.rms_norm(x, gain), F.rms_norm(x, (8,), eps=1e-6) * gain[:, None])


def test_rope_turns_complex_pairs(draw):
    x = draw(1, 2, 9, 8)
    turn = torch.polar(
        torch.ones(9, 4, dtype=DOUBLE),
        torch.arange(9, dtype=DOUBLE)[:, None] * 10000.0 ** (-torch.arange(0, 8, 2, dtype=DOUBLE) / 8),
    )
    expected = torch.view_as_real(torch.view_as_complex(x.view(1, 2, 9, 4, 2)) * turn).flatten(-2)
    torch.testing.assert_close(mixers.rope(x), expected)


def test_window_rope_counts_from_each_window(draw):
    x = draw(1, 2, 10, 8)
    turned = window_rope(x, 4)
    for start in (0, 4, 8):
        torch.testing.assert_close(turned[:, :, start : start + 4], mixers.rope(x[:, :, start : start + 4]))


@pytest.mark.parametrize("form", ["axial", "flat"])
def test_window_rope_on_a_grid(draw, form):
    """A score depends on the difference of places in the window alone; rows turn the first half, columns the rest."""
    x = draw(1, 1, 1, 8).expand(1, 1, 35, 8)
    turned = window_rope(x, (2, 3), (5, 7), form)[0, 0].view(5, 7, 8)
    torch.testing.assert_close(turned[2:4, 3:6], turned[0:2, 0:3])
    torch.testing.assert_close(turned[4, 6], x[0, 0, 0])  # the ragged corner's window has one token
    if form == "axial":
        torch.testing.assert_close(turned[0, 1, :4], x[0, 0, 0, :4])
        torch.testing.assert_close(turned[1, 0, 4:], x[0, 0, 0, 4:])
        along = mixers.rope(x[:, :, :3, 4:])
        torch.testing.assert_close(turned[0, :3, 4:], along[0, 0])
    else:
        torch.testing.assert_close(turned[1, 1], mixers.rope(x[:, :, :6])[0, 0, 4])


# SEMA, window by window, as a framework would write it.


@pytest.mark.parametrize("mean", [False, True])
def test_sema_window_by_window(draw, mean):
    q, k, v, weight, bias = draw(2, 4, 22, 8), draw(2, 2, 22, 8), draw(2, 2, 22, 8), draw(16, 1, 3), draw(16)
    pieces = []
    for start in range(0, 22, 5):
        here = slice(start, min(start + 5, 22))
        turned = [mixers.rope(x[:, :, here]) for x in (q, k)]
        pieces.append(F.scaled_dot_product_attention(*turned, v[:, :, here], enable_gqa=True))
    rest = F.conv1d(v.transpose(2, 3).reshape(2, 16, 22), weight, bias, groups=16, padding=1)
    rest = rest.view(2, 2, 8, 22).transpose(2, 3)
    if mean:
        rest = rest + v.mean(2, keepdim=True)
    expected = torch.cat(pieces, 2) + rest.repeat_interleave(2, 1)
    torch.testing.assert_close(sema(q, k, v, weight, bias, window=5, mean=mean), expected)


def test_sema_on_a_grid_window_by_window(draw):
    h, w = 5, 7
    q, k, v, weight = draw(1, 2, 35, 8), draw(1, 2, 35, 8), draw(1, 2, 35, 8), draw(16, 1, 3, 3)
    rest = F.conv2d(v.transpose(2, 3).reshape(1, 16, h, w), weight, groups=16, padding=1)
    expected = rest.view(1, 2, 8, 35).transpose(2, 3) + v.mean(2, keepdim=True)
    tokens = torch.arange(35).view(h, w)
    for top in range(0, h, 2):
        for left in range(0, w, 3):
            window = tokens[top : top + 2, left : left + 3]
            row, column = (x.flatten() for x in torch.meshgrid(*map(torch.arange, window.shape), indexing="ij"))
            at = window.flatten()
            a, b = (mixers.rope_axial(x[:, :, at], row, column) for x in (q, k))
            expected[:, :, at] += F.scaled_dot_product_attention(a, b, v[:, :, at], scale=1.0)
    torch.testing.assert_close(sema(q, k, v, weight, window=(2, 3), grid=(h, w), scale=1.0), expected)


@pytest.mark.parametrize("options", [{}, {"rope_values": True, "scale": 1.0}, {"rope": False, "mean": False}])
def test_sema_gradients_by_differences(draw, options):
    q, k, v, weight, bias = draw(1, 2, 7, 4), draw(1, 1, 7, 4), draw(1, 1, 7, 4), draw(4, 1, 3), draw(4)
    inputs = [x.requires_grad_() for x in (q, k, v, weight, bias)]
    assert torch.autograd.gradcheck(lambda *x: sema(*x, window=3, **options), inputs)
