# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention's gradients in one pass, where their last bits may differ from run to run: deterministic=False."""

import pytest
import torch
import weft
from test_attention_backward import HALF, N, held, plain, qkv
from weft.attention import attend
from weft.testing import masks, mixers
from weft.testing.attention import Domain, attention
from weft.testing.plans import counted


def fast(pattern=None):
    return lambda q, k, v: attend(q, k, v, pattern, deterministic=False)


@weft.program
def one_pass(q, k, v, pattern):
    return weft.softmax(q, k, pattern, deterministic=False) @ v


@weft.program
def two_passes(q, k, v, pattern):
    return weft.softmax(q, k, pattern) @ v


def kernels(program, *arrays, **static):
    return [launched.kernel for launched in counted(program, *arrays, **static)["backward"].launches]


def operands(n, D=64, dtype=HALF):
    return [torch.randn(1, 1, n, D).to(dtype) for _ in range(3)]


@pytest.mark.parametrize(
    "dtype, sizes",
    [
        (HALF, (1, 2, 150, 64)),
        (HALF, (1, 1, 141, 128)),
        (torch.bfloat16, (2, 1, 65, 32)),
        (HALF, (1, 1, 63, 40)),
        (HALF, (1, 1, 1, 64)),
    ],
)
def test_gradients(dtype, sizes):
    n = sizes[2]
    held(fast(weft.causal()), plain(masks.causal(n, n)), qkv(*sizes), dtype)


def test_groups_lengths_and_head_sizes():
    inputs = qkv(2, 4, 70, 32, Hkv=1, M=141, Dv=64)
    held(fast(weft.causal()), plain(masks.causal(70, 141)), inputs)


def test_every_pair_and_listed_blocks():
    held(fast(), plain(), qkv(1, 1, 113, 64, M=203))
    distance = torch.arange(N)[:, None] - torch.arange(N)[None, :]
    strided = (distance >= 0) & (distance % 4 == 0)
    held(fast(weft.causal() & weft.strided(4)), plain(strided), qkv(1, 1, N, 64))


@pytest.mark.parametrize(
    "pattern, mask",
    [
        (weft.full(), masks.full),
        (weft.causal(), masks.causal),
        (weft.window(100, 30), lambda n, m: masks.window(n, m, 100, 30)),
    ],
)
@pytest.mark.parametrize("n, m", [(300, 141), (141, 300), (259, 259), (256, 256)])
def test_keys_that_do_not_exist(pattern, mask, n, m):
    """Where scores lie far below zero, weights of keys past the end, whose scores are 0, would be infinite: they are
    none in whatever block of queries, whether a tile has all of its keys or not."""

    def inputs(randn):
        sides = {name: randn(1, 1, count, 64) for name, count in (("q", n), ("k", m), ("v", m))}
        return sides | {"q": 0.25 * sides["q"] + 3, "k": 0.25 * sides["k"] - 3}

    held(fast(pattern), plain(mask(n, m)), inputs)


def test_packed_sequences():
    starts = torch.tensor([0, 40, 40, 133], dtype=torch.int32)
    which = torch.searchsorted(starts[1:], torch.arange(133), right=True)
    mask = (which[:, None] == which[None, :]) & masks.causal(133, 133)

    def program(q, k, v):
        return attend(q, k, v, weft.causal(), cu_seqlens_q=starts, cu_seqlens_k=starts, deterministic=False)

    held(program, plain(mask), qkv(1, 2, 133, 64))


def test_rotated_queries():
    """What is computed of dq row by row takes it from its sums."""

    def program(q, k, v):
        q, k = weft.rope(q, k)
        return weft.softmax(q, k, weft.causal(), deterministic=False) @ v

    def formula(q, k, v, form):
        q, k = (mixers.rope(x, torch.arange(N)) for x in (q, k))
        return attention(q, [Domain(k, v, masks.causal(N, N))], form=form)[0]

    held(weft.program(program), formula, qkv(1, 1, N, 64))


def test_one_kernel_and_fewer_products():
    arrays = operands(256)
    cost = {f: counted(f, *arrays, pattern=weft.full())["backward"] for f in (one_pass, two_passes)}
    assert [each.kernel for each in cost[one_pass].launches].count("attend_backward") == 1
    assert not any("query" in each.kernel for each in cost[one_pass].launches)
    assert 7 * cost[one_pass].total("mma_macs") == 5 * cost[two_passes].total("mma_macs")


def test_torch_may_forbid_it():
    arrays = operands(64)
    assert "attend_backward" in kernels(one_pass, *arrays, pattern=weft.causal())
    torch.use_deterministic_algorithms(True)
    try:
        assert "attend_backward" not in kernels(one_pass, *arrays, pattern=weft.causal())
    finally:
        torch.use_deterministic_algorithms(False)


def test_deterministic_is_the_default():
    assert "attend_backward" not in kernels(two_passes, *operands(64), pattern=weft.causal())
    with pytest.raises(weft.Error, match="expected 'deterministic' to be True or False, but got 'no'"):
        attend(*operands(16), deterministic="no")


def test_float32_and_wide_heads_take_two_passes():
    for D, dtype in ((64, torch.float32), (256, HALF)):
        assert "attend_backward" not in kernels(one_pass, *operands(32, D, dtype), pattern=weft.full())


def test_gradients_go_on_into_expansions():
    """Sums of dq that other programs add to are read by whatever takes dq, kernels of convolutions over heads too."""
    q, k, v = (torch.randn(2, 1, 64, 32).half() for _ in range(3))
    w = torch.randn(3, 1, 3).half()

    @weft.program
    def convolved(q, k, v, w, deterministic):
        q, k, v = (weft.head_conv(x, w) for x in (q, k, v))
        return weft.softmax(q, k, deterministic=deterministic) @ v

    found = []
    for deterministic in (True, False):
        leaves = [x.clone().requires_grad_() for x in (q, k, v, w)]
        found.append(torch.autograd.grad(convolved(*leaves, deterministic).float().sum(), leaves))
    for a, b in zip(*found, strict=True):
        assert (a - b).abs().max() <= 4e-3 * a.abs().max()
