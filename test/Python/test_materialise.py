# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A.matrix() of mixers, sums and products of every small size and type, against float64."""

import numpy as np
import pytest
import weft

torch = pytest.importorskip("torch")

TYPES = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
CASES = 24


def choose(rng, options):
    return options[rng.integers(len(options))]


def over(x, heads):
    return x.repeat_interleave(heads // x.shape[1], 1)


def softmax(q, k, causal):
    score = q.double() @ over(k.double(), q.shape[1]).mT / q.shape[-1] ** 0.5
    n, m = score.shape[-2:]
    below = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    return (score.masked_fill(~below, -torch.inf) if causal else score).softmax(-1).nan_to_num(0)


def toeplitz(taps, heads, n):
    """[H, C, N, N]."""
    apart = torch.arange(n)[:, None] - torch.arange(n)
    one = torch.zeros(taps.shape[1], n, n, dtype=torch.float64)
    for j, tap in enumerate(taps.double()):
        one += tap[:, None, None] * (apart == j)
    return one.view(heads, -1, n, n)[None]


def drawn(rng, kind, heads, groups, n, channels, dtype):
    """A mixer of values of ``groups`` heads, and its matrix [1, H, C or 1, N, N]."""
    rand = lambda *shape: torch.randn(shape).to(dtype)  # noqa: E731
    size, causal = int(choose(rng, (1, 2, 3, 5, 8, 16, 24))), bool(rng.integers(2))
    if kind == "softmax":
        q, k = rand(1, heads, n, size), rand(1, groups, n, size)
        return weft.softmax(q, k, weft.causal() if causal else None), softmax(q, k, causal)[:, :, None]
    if kind == "mean":
        below = torch.ones(n, n, dtype=torch.float64)
        below = below.tril() if causal else below
        return weft.mean(causal=causal), (below / below.sum(1, keepdim=True)).expand(1, groups, 1, n, n)
    if kind == "toeplitz":
        taps = rand(int(choose(rng, (1, 3, 4))), groups * channels)
        return weft.toeplitz(taps), toeplitz(taps, groups, n)
    last = {"gate": (), "one gate": (1,), "gates": (channels,)}[kind]
    g = rand(1, heads, n, *last)
    each = g.double().reshape(1, heads, n, -1).mT
    return weft.diag(g), torch.diag_embed(each)


def agree(mixer, exact, n, heads, dtype, what):
    found, many = torch.as_tensor(mixer.matrix(n, heads=heads)), exact.shape[2] > 1
    wanted = exact if found.dim() == 5 else exact[:, :, 0]
    assert found.dim() == 5 or not many, what
    error = (found.double() - wanted).abs().max() if wanted.numel() else 0
    assert found.shape == wanted.shape and error <= TYPES[dtype] * (4 + wanted.abs().max()), (what, float(error))


KINDS = ("softmax", "mean", "toeplitz", "gate", "one gate", "gates")


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_mixers_sums_and_products(seed, dtype):
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    for number in range(CASES // 3):
        n, channels = int(choose(rng, (1, 2, 3, 12, 17, 65))), int(choose(rng, (1, 2, 5)))
        groups = int(choose(rng, (1, 2)))
        heads = groups * int(choose(rng, (1, 1, 2)))
        how, kinds = choose(rng, ("one", "sum", "product")), [choose(rng, KINDS) for _ in range(2)]
        what = (number, how, kinds, n, channels, heads, groups)
        print(what)
        right, exact = drawn(rng, kinds[1], heads, groups, n, channels, dtype)
        if how == "sum":
            left, other = drawn(rng, kinds[0], heads, groups, n, channels, dtype)
            most = max(exact.shape[1], other.shape[1])
            right, exact = left + right, over(exact, most) + over(other, most)
        elif how == "product":
            left, other = drawn(rng, kinds[0], exact.shape[1], exact.shape[1], n, channels, dtype)
            right, exact = left @ right, other @ exact
        agree(right, exact, n, groups, dtype, what)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_one_channel_and_one_token(seed, dtype):
    """A size of 1 stands for any where tensors meet: not in products."""
    torch.manual_seed(seed)
    for n, m, size, channels in ((1, 1, 1, 1), (12, 12, 16, 1), (12, 5, 1, 16), (1, 9, 1, 1), (9, 1, 3, 1)):

        @weft.program
        def attend(q, k, v):
            assert (q.shape[2] == 1) == (n == 1) and (k.shape[2] == 1) == (m == 1)  # noqa: B023  (known when compiled)
            return weft.softmax(q, k) @ v

        q, k, v = (torch.randn(1, h, t, c) for h, t, c in ((4, n, size), (2, m, size), (2, m, channels)))
        with weft.testing.poisoned():
            leaves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
            out = attend(*leaves)
            gradient = torch.randn(out.shape)
            found = torch.autograd.grad(out, leaves, gradient.to(dtype))
        doubles = [x.detach().double().requires_grad_() for x in leaves]
        score = doubles[0] @ over(doubles[1], 4).mT / size**0.5
        exact = score.softmax(-1) @ over(doubles[2], 4)
        wanted = torch.autograd.grad(exact, doubles, gradient.to(dtype).double())
        for mine, right in zip((out, *found), (exact, *wanted), strict=True):
            error = (mine.double() - right).abs().max().item()
            assert error <= 8 * TYPES[dtype] * (1 + right.abs().max()), (n, m, size, channels, error)


def test_differences_and_multiples(seed):
    torch.manual_seed(seed)
    q, k, taps = torch.randn(1, 2, 11, 8), torch.randn(1, 2, 11, 8), torch.randn(3, 2)
    exact = softmax(q, k, causal=False)
    assert ((weft.softmax(q, k) - weft.mean()).matrix() - (exact - 1 / 11)).abs().max() < 1e-6
    both = (-weft.toeplitz(taps) / 4 + 3 * weft.softmax(q, k)).matrix()
    assert (both - (3 * exact[:, :, None] - toeplitz(taps, 2, 11) / 4)).abs().max() < 1e-5
    for made in (lambda: q - weft.mean(), lambda: weft.mean() - q, lambda: weft.mean() * q, lambda: weft.mean() / 0):
        with pytest.raises(weft.CompilationError, match="expected"):
            made()


def test_domains_of_different_heads(seed):
    torch.manual_seed(seed)
    q, k, landmarks = torch.randn(1, 4, 11, 8), torch.randn(1, 2, 11, 8), torch.randn(1, 1, 3, 8)
    left, right = weft.softmax(q, weft.domain(k), weft.domain(landmarks)).matrix()
    exact = torch.cat([q.double() @ over(x.double(), 4).mT for x in (k, landmarks)], -1) / 8**0.5
    assert (torch.cat([left, right], -1) - exact.softmax(-1)).abs().max() < 1e-5
