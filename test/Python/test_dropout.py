# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Dropout of attention weights: which stay is computed here again by NumPy, and held, with all gradients, against the
formula in float64."""

import math

import numpy as np
import pytest
import torch
import weft
from weft.patterns import Pattern
from weft.testing import drawn, judge
from weft.testing.plans import counted, instructions

B, H, N, M, D = 2, 4, 40, 56, 16


def philox(low, high, key, rounds=10):
    """Philox-2x32, by the paper, on arrays of 32 bits."""
    low, high, key = (np.asarray(np.asarray(x) & 0xFFFFFFFF, np.uint64) for x in (low, high, key))
    for number in range(rounds):
        stepped = (key + np.uint64(number * 0x9E3779B9)) & np.uint64(0xFFFFFFFF)
        product = low * np.uint64(0xD256D193)
        low, high = (product >> np.uint64(32)) ^ stepped ^ high, product & np.uint64(0xFFFFFFFF)
    return low, high


def test_the_numbers_are_philoxs():
    """Known answers of the authors' own implementation (Random123's kat_vectors)."""
    assert philox(0, 0, 0) == (0xFF1DAE59, 0x6CD10DF2)
    assert philox(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) == (0x2C3F628B, 0xAB4FD7AD)
    assert philox(0x243F6A88, 0x85A308D3, 0x13198A2E) == (0xDD7CE038, 0xF62A4C12)
    assert philox(0, 0, 0, rounds=7) == (0x257A3673, 0xCD26BE2A)
    assert philox(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, rounds=7) == (0xAB302C4D, 0x3DC9D239)
    assert philox(0x243F6A88, 0x85A308D3, 0x13198A2E, rounds=7) == (0xBEDBBE6B, 0xE4C770B3)


def stays(seed, share, batch=B, heads=H, n=N, m=M):
    """The weights that stay, [B, H, N, M]."""
    first, second = (int(x) for x in seed)
    b, h, i, j = np.ogrid[:batch, :heads, :n, :m]
    key, _ = philox(philox(h, b, first)[0], second, first)
    low, high = philox(j // 16 * 8 + j % 8, i // 16 * 8 + i % 8, key, rounds=7)
    word = np.where(i & 8, high, low)
    bits = np.where(j & 8, word >> np.uint64(16), word & np.uint64(0xFFFF))
    return torch.from_numpy(bits >= np.uint64(round(share * 2**16)))


def formula(q, k, v, allowed, keep, share, score=lambda s: s, sink=None):
    """Softmax over all that is allowed; then weights are dropped, and the others scaled."""
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    s = score((q @ k.mT).to(kind) / math.sqrt(q.shape[3])).masked_fill(~allowed, -math.inf)
    if sink is not None:
        s = torch.cat([s, sink.to(kind)[:, None, None].expand(*s.shape[:3], 1)], 3)
    lse = s.logsumexp(-1)
    weights = torch.exp(s - lse[..., None])[..., : k.shape[2]]
    return (torch.where(keep, weights, 0) / (1 - share)).to(q.dtype) @ v, lse


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_forward_and_gradients(share, dtype, seed, held):
    generator = torch.Generator().manual_seed(seed)
    given = torch.randint(-(2**31), 2**31, (2,), generator=generator).int()
    keep, allowed = stays(given, share), torch.ones(N, M, dtype=torch.bool).tril(M - N)

    def attend(q, k, v, sink):
        options = {"sink": sink, "score_mod": lambda s, b, h, n, m: weft.tanh(s), "return_lse": True}
        return weft.attention.attend(q, k, v, weft.causal(), dropout_p=share, dropout_seed=given, **options)

    def exact(q, k, v, sink, form):
        return formula(q, k, v, allowed, keep, share, torch.tanh, sink)

    def inputs(randn):
        return {"q": randn(B, H, N, D), "k": randn(B, 2, M, D), "v": randn(B, 2, M, D), "sink": randn(H)}

    def draw():
        tensors = drawn(inputs, dtype, generator)
        return judge(attend, exact, tensors, names=("out", "lse"), generator=generator)

    held("dropout", draw)


def test_rows_that_lose_all(seed):
    """With a window of one key, a dropped weight is a row of zeros, and no gradient is NaN."""
    given = torch.tensor([seed >> 1, 7], dtype=torch.int32)
    q, k, v = (torch.randn(1, 2, N, D).requires_grad_() for _ in range(3))
    out = weft.attention.attend(q, k, v, weft.window(0, 0), dropout_p=0.5, dropout_seed=given)
    keep = stays(given, 0.5, 1, 2, N, N).diagonal(dim1=2, dim2=3)
    torch.testing.assert_close(out, torch.where(keep[..., None], 2 * v, 0.0))
    for grad in torch.autograd.grad(out.square().sum(), (q, k, v)):
        assert bool(grad.isfinite().all())


def test_the_share_and_the_seed(seed):
    given = torch.tensor([seed >> 1, 3], dtype=torch.int32)
    q, k = torch.zeros(2, 4, 64, D), torch.zeros(2, 4, 64, D)
    v = torch.eye(64).expand(2, 4, 64, 64)
    first, again, other = (
        weft.attention.attend(q, k, v, dropout_p=0.25, dropout_seed=given + torch.tensor([0, i], dtype=torch.int32))
        for i in (0, 0, 1)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)
    share = float((first == 0).float().mean())
    assert abs(share - 0.25) < 6 * math.sqrt(0.25 * 0.75 / first.numel())
    # batches and heads have numbers of their own
    lost = (first == 0).reshape(8, -1).float()
    assert float((torch.corrcoef(lost) - torch.eye(8)).abs().max()) < 6 / math.sqrt(64 * 64)


def test_weights_that_share_a_philox_are_dropped_apart(seed):
    given = torch.tensor([seed >> 1, 9], dtype=torch.int32)
    keep = stays(given, 0.5, 1, 64, 64, 64).double().reshape(64, 4, 2, 8, 4, 2, 8)
    four = keep.permute(2, 5, 0, 1, 3, 4, 6).reshape(4, -1)
    assert float((torch.corrcoef(four) - torch.eye(4)).abs().max()) < 6 / math.sqrt(four.shape[1])


def test_second_order(seed):
    """The gradient of a gradient, and the tangent of the output, of weights that are dropped."""
    generator = torch.Generator().manual_seed(seed)
    given = torch.randint(-(2**31), 2**31, (2,), generator=generator).int()
    keep, allowed = stays(given, 0.3, 1, 2, 24, 24), torch.ones(24, 24, dtype=torch.bool).tril()
    q, k, v, *changes = torch.randn(6, 1, 2, 24, D, generator=generator).unbind()

    def attend(q, k, v):
        return weft.attention.attend(q, k, v, weft.causal(), dropout_p=0.3, dropout_seed=given)

    def exact(q, k, v):
        return formula(q, k, v, allowed, keep, 0.3)[0]

    def found(form, dtype):
        given = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        first = torch.autograd.grad(form(*given).square().sum(), given, create_graph=True)
        second = torch.autograd.grad(sum((x.square()).sum() for x in first), given)
        _, tangent = torch.func.jvp(form, tuple(given), tuple(x.to(dtype) for x in changes))
        return (*second, tangent)

    for one, other in zip(found(attend, torch.float32), found(exact, torch.float64), strict=True):
        assert (one.detach().double() - other.detach()).abs().max() <= 1e-4 * max(
            1.0, float(other.detach().abs().max())
        )


@weft.program
def dropping(q, k, v, seed, *, share):
    return weft.attention.attend(q, k, v, weft.causal(), dropout_p=share, dropout_seed=seed)


def test_what_it_costs():
    """One attention each way, and random numbers beside it; it was two, of 5.7 times the instructions."""
    q, k, v = torch.zeros(3, 1, 4, 512, 64, dtype=torch.float16).unbind()
    given = torch.zeros(2, dtype=torch.int32)

    def cost(share):
        passes = counted(dropping, q, k, v, given, target="sm_80", share=share)
        return sum(sum(instructions(each).values()) for each in passes.values())

    assert cost(0.1) <= 2.6 * cost(0.0)


def test_a_pattern_with_dropout_says_so():
    pattern = Pattern("kept", (), (weft.causal(), weft.window(3, 3)))
    assert repr(pattern) == "weft.causal() with weights of weft.window(3, 3)"
    assert (pattern.matrix(4, 4) == weft.causal().matrix(4, 4)).all()


def test_refusals():
    q = torch.zeros(1, 2, 16, D)
    seed = torch.zeros(2, dtype=torch.int32)
    for words, given in (
        ("'dropout_seed' .2. of int32 with dropout_p, but got None", {"dropout_p": 0.1}),
        ("from 0 to 1", {"dropout_p": 1.0, "dropout_seed": seed}),
        ("from 0 to 1", {"dropout_p": -0.1, "dropout_seed": seed}),
        ("of int32", {"dropout_p": 0.1, "dropout_seed": seed.long()}),
        ("of two numbers", {"dropout_p": 0.1, "dropout_seed": seed[:1]}),
    ):
        with pytest.raises(weft.CompilationError, match=words):
            weft.attention.attend(q, q, q, **given)
    starts = torch.tensor([0, 4, 16], dtype=torch.int32)
    with pytest.raises(weft.CompilationError, match="no dropout of packed sequences"):
        packed = {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
        weft.attention.attend(q, q, q, dropout_p=0.1, dropout_seed=seed, **packed)
