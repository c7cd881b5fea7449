# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Composite attention: mixers put together in sequence and recurrently, by matrix and by program; convolution-equipped
attention; the equations and figures of the paper."""

import functools

import pytest
import torch
import weft
from weft.testing import Domain, attention, convolved_gau, drawn, judge, masks, mixers
from weft.testing.gau import silu

CAUSAL = weft.causal()


def judged(program, formula, inputs, seed, dtype=torch.float16):
    generator = torch.Generator().manual_seed(seed)

    def draw():
        tensors = drawn(inputs, dtype, generator)
        taps = [name for name in tensors if name.startswith("taps")]
        return judge(program, formula, tensors, parameters=taps, generator=generator, products_as_given=False)

    return draw


def attended(q, k, v, form, mask=None):
    return attention(q, [Domain(k, v, mask)], form=form)[0]


# ---- Programs


@weft.program
def sequential(x, taps, g):
    """Equation 5: three mixers, each generated from the same input."""
    return weft.diag(g) @ weft.softmax(x, x, CAUSAL) @ weft.toeplitz(taps) @ x


def sequential_formula(x, taps, g, *, form):
    mask = masks.causal(x.shape[2], x.shape[2])
    return g * attended(x, x, mixers.toeplitz(x, taps), form, mask)


@weft.program
def recurrent(x, taps):
    """Equations 6 and 7: y₁ = T x;  y₂ = diag(σ(y₁)) y₁ (figure 2's SiLU);  y₃ = softmax(y₂, y₂) y₂."""
    y = weft.toeplitz(taps) @ x
    y = weft.diag(weft.sigmoid(y)) @ y
    return weft.softmax(y, y, CAUSAL) @ y


def recurrent_formula(x, taps, *, form):
    y = silu(mixers.toeplitz(x, taps))
    return attended(y, y, y, form, masks.causal(y.shape[2], y.shape[2]))


@weft.program
def twice(x, w):
    """Attention whose queries and keys another attention made."""
    y = weft.softmax(x, x, CAUSAL) @ x
    return weft.softmax(w * y, y, CAUSAL) @ y


def twice_formula(x, w, *, form):
    mask = masks.causal(x.shape[2], x.shape[2])
    y = attended(x, x, x, form, mask)
    return attended((w * y).to(y.dtype), y, y, form, mask)


def of_x(randn, **more):
    return {"x": randn(1, 1, 100, 32) * 0.5} | {name: randn(*shape) for name, shape in more.items()}


PROGRAMS = {
    "sequential": (sequential, sequential_formula, {"taps": (3, 32), "g": (1, 1, 100, 32)}),
    "recurrent": (recurrent, recurrent_formula, {"taps": (3, 32)}),
    "long filter": (sequential, sequential_formula, {"taps": (100, 32), "g": (1, 1, 100, 32)}),
    "attention in a generator": (twice, twice_formula, {"w": (32,)}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_composition(name, seed, held):
    program, formula, more = PROGRAMS[name]
    held("composite", judged(program, formula, functools.partial(of_x, **more), seed))


# ---- Convolution-equipped attention


@weft.program
def equipped(x_u, x_v, x_g, taps_u, taps_g, kappa_q, mu_q, kappa_k, mu_k):
    """Equations 19 and 20."""
    u = weft.silu(weft.toeplitz(taps_u) @ x_u)
    g = weft.silu(weft.toeplitz(taps_g) @ x_g)
    q, k = kappa_q * u + mu_q, kappa_k * u + mu_k
    return weft.diag(g) @ weft.softmax(q, k, CAUSAL) @ weft.silu(x_v)


def equipped_formula(*tensors, form):
    tokens = tensors[0].shape[2]
    return convolved_gau(*tensors, mask=masks.causal(tokens, tokens), form=form)


def generators(randn, *, tokens, taps, head=64, values=96):
    wide = {f"x_{name}": randn(2, 1, tokens, size) for name, size in (("u", head), ("v", values), ("g", values))}
    wide["x_u"] = wide["x_u"] * 2
    filters = {"taps_u": randn(taps, head) / taps**0.5, "taps_g": randn(taps, values) / taps**0.5}
    # Scales near 1: where few pairs have all the weight, a row's gradients are the rounding of few numbers.
    scales = {name: randn(head) / 8 + ("kappa" in name) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}
    return wide | filters | scales


@pytest.mark.parametrize(("tokens", "taps"), [(113, 4), (65, 16), (113, 113)])
def test_convolution_equipped(tokens, taps, seed, held):
    draw = functools.partial(generators, tokens=tokens, taps=taps)
    held("convolution-equipped GAU", judged(equipped, equipped_formula, draw, seed))


def launches(program, inputs):
    tensors = inputs(torch.randn).values()
    plan = program.explain(*(x.half() for x in tensors), backward=False)
    return [line.split()[0] for line in str(plan).splitlines() if "×" in line]


def test_short_convolutions_are_computed_where_queries_and_keys_are(seed):
    """Keys and values are made by one launch, which has the convolution in it; queries and gate in attention's own."""
    plain = launches(equipped, functools.partial(generators, tokens=113, taps=1))
    short = launches(equipped, functools.partial(generators, tokens=113, taps=16))
    assert len(short) == len(plain) == 2, short
    assert "attend" in short[-1]


# ---- Matrices


def impulse(n, at, channels=1):
    x = torch.zeros(1, 1, n, channels)
    x[:, :, at] = 1
    return x


@pytest.mark.parametrize(
    ("taps", "expected"),
    [([1 / 3, 1 / 3, 1 / 3], {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}), ([0.0, 1.0], {1: 1.0})],
    ids=["aggregation", "shift"],
)
def test_filters_of_figure_3(taps, expected, tmp_path):
    """A unit impulse convolved, as queries and keys: their outer product has the filter in both directions."""
    n, at = 10, 4
    A = weft.toeplitz(torch.tensor(taps)[:, None])
    q = A.matrix(n)[0, 0, 0][:, at]
    column = torch.zeros(n)
    for back, weight in expected.items():
        column[at + back] = weight
    torch.testing.assert_close(q, column)
    torch.testing.assert_close((A @ impulse(n, at))[0, 0, :, 0], column)
    weft.draw(q[:, None] * q[None, :], tmp_path / "scores.svg")
    weft.draw(A, tmp_path / "filter.png", n)
    assert (tmp_path / "scores.svg").stat().st_size and (tmp_path / "filter.png").stat().st_size


def test_a_shift_moves_attention_by_a_token():
    """[0, 1] before the keys: each query attends to the token after the one that it would."""
    n, D = 12, 16
    q, k = torch.randn(1, 1, n, D), torch.randn(1, 1, n, D)
    shifted = weft.toeplitz(torch.tensor([[0.0], [1.0]]).expand(2, D).contiguous()) @ k
    plain = (q @ k.mT / D**0.5).softmax(-1)
    found = weft.softmax(q, shifted).matrix()
    ratio = found[0, 0, :, 1:] / plain[0, 0, :, :-1]
    torch.testing.assert_close(ratio, ratio[:, :1].expand_as(ratio), rtol=1e-4, atol=1e-5)


def test_a_gate_makes_one_head_many():
    """Equations 15 to 17: A_GAU = A_G · Repeat(A_SHA, h_g), with h_g heads or one for each channel."""
    n, D, gates = 9, 16, 3
    u = torch.randn(1, 1, n, D)
    one = weft.softmax(u, u, CAUSAL)
    single = one.matrix()
    assert single.shape == (1, 1, n, n)
    torch.testing.assert_close(single[0, 0].sum(-1), torch.ones(n))
    heads = torch.rand(1, gates, n, 1)
    many = (weft.diag(heads) @ one).matrix()
    assert many.shape == (1, gates, n, n)
    torch.testing.assert_close(many, heads * single.repeat(1, gates, 1, 1))
    channels = torch.rand(1, 1, n, D)
    each = (weft.diag(channels) @ one).matrix()
    assert each.shape == (1, 1, D, n, n)
    torch.testing.assert_close(each, channels.mT[..., None] * single[:, :, None])
    v = torch.randn(1, 1, n, D)
    y = weft.diag(channels) @ one @ v
    torch.testing.assert_close(y, torch.einsum("bhcnm,bhmc->bhnc", each, v), rtol=1e-4, atol=1e-5)


def test_a_composition_is_the_product_of_its_matrices():
    n, D = 8, 16
    q, taps = torch.randn(1, 1, n, D), torch.randn(n, D)
    A, T = weft.softmax(q, q, CAUSAL), weft.toeplitz(taps)
    found = (A @ T).matrix()
    assert found.shape == (1, 1, D, n, n)
    torch.testing.assert_close(found, A.matrix()[:, :, None] @ T.matrix(n), rtol=1e-4, atol=1e-5)
