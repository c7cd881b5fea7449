# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.select_blocks: the chosen key blocks against the definition in float64."""

import pytest
import torch
import weft
from weft.attention.append import append
from weft.selection import select_blocks


def importance(q, k, block, causal, scale):
    """[B, Hkv, R, C], by the definition."""
    (B, H, N, D), (_, heads, M, _) = q.shape, k.shape
    means = torch.stack([part.mean(2) for part in k.double().split(block[1], 2)], 2)
    scores = (D**-0.5 if scale is None else scale) * q.double() @ means.repeat_interleave(H // heads, 1).mT
    position = torch.arange(N) + M - N
    if causal:
        begins = torch.arange(means.shape[2]) * block[1]
        scores = scores.masked_fill(begins > position[:, None], -torch.inf)
    share = torch.nan_to_num(torch.softmax(scores, -1)).view(B, heads, H // heads, N, -1).sum(2)
    return torch.stack([rows.sum(2) for rows in share.split(block[0], 2)], 2)


def own_blocks(r, N, M, block):
    last = min((r + 1) * block[0], N) - 1
    return {p // block[1] for p in range(r * block[0] + M - N, last + M - N + 1) if p >= 0}


CASES = {
    "plain": ((2, 4, 2, 256, 256, 64), (32, 32), 4, {}),
    "ragged": ((1, 2, 2, 203, 203, 64), (64, 32), 4, {}),
    "wide blocks": ((1, 2, 1, 150, 150, 72), (16, 64), 2, {"scale": 0.5}),
    "longer keys": ((1, 2, 2, 96, 1300, 32), (32, 16), 7, {}),
    "all": ((1, 2, 2, 128, 256, 64), (32, 32), 3, {"causal": False}),
    "more than there are": ((1, 1, 1, 64, 64, 64), (16, 16), 9, {}),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_chosen_blocks(seed, name, dtype):
    (B, H, heads, N, M, D), block, top, options = CASES[name]
    generator = torch.Generator().manual_seed(seed)
    q = (2 * torch.randn(B, H, N, D, generator=generator)).to(dtype)
    k = (torch.randn(B, heads, M, D, generator=generator) + torch.randn(B, heads, M, 1, generator=generator)).to(dtype)
    index, count = select_blocks(q, k, top=top, block=block, **options)
    exact = importance(q, k, block, options.get("causal", True), options.get("scale"))
    # Mean keys are rounded to the storage type: shares nearer than that may change places.
    slack = 0.02 if dtype == torch.float16 else 0.1
    assert index.shape == (B, H, -(-N // block[0]), top) and count.shape == index.shape[:3]
    for b in range(B):
        for h in range(H):
            for r in range(index.shape[2]):
                chosen = index[b, h, r, : count[b, h, r]].tolist()
                assert (index[b, h, r, count[b, h, r] :] == -1).all()
                assert chosen == sorted(set(chosen))
                own = own_blocks(r, N, M, block)
                assert {0, *own} <= set(chosen)
                shares = exact[b, h // (H // heads), r]
                seen = [c for c in range(len(shares)) if shares[c] > 0]
                assert set(chosen) <= set(seen) and len(chosen) == min(top, len(seen))
                free = set(chosen) - own - {0}
                passed = set(seen) - set(chosen)
                if free and passed:
                    assert min(shares[c] for c in free) > max(shares[c] for c in passed) * (1 - slack) - 1e-6


def test_heads_of_a_group_share_their_choice(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k = (
        torch.randn(1, 6, 128, 64, generator=generator).half(),
        torch.randn(1, 2, 128, 64, generator=generator).half(),
    )
    index, _ = select_blocks(q, k, top=3, block=(16, 16))
    assert torch.equal(index[:, 0], index[:, 2]) and torch.equal(index[:, 3], index[:, 5])
    assert not torch.equal(index[:, 0], index[:, 3])


def test_refuses_too_few_blocks():
    q = torch.zeros(1, 1, 128, 64, dtype=torch.float16)
    with pytest.raises(ValueError, match="top of at least 3, for the first block and the row's own, but got 2"):
        select_blocks(q, q, top=2, block=(64, 32))
    with pytest.raises(ValueError, match=r"expected keys \[1, a divisor of 1, M, 64\], but got \[1, 1, 128, 32\]"):
        select_blocks(q, q[..., :32], top=2)


def test_transforms_of_torch_are_refused_by_the_users_names():
    q, k = torch.randn(2, 1, 2, 40, 16), torch.randn(2, 1, 1, 40, 16)
    for transform in (torch.func.vmap, lambda f: torch.func.grad(lambda *x: f(*x).sum().float())):
        with pytest.raises(weft.runtime.Error, match="expected 'q' to be a plain tensor, but got "):
            transform(lambda q, k: select_blocks(q, k, top=3)[0])(
                *((q, k) if transform is torch.func.vmap else (q[0], k[0]))
            )
    cache, new = torch.zeros(1, 2, 16, 8), torch.randn(3, 1, 2, 1, 8)
    with pytest.raises(
        weft.runtime.Error, match=r"expected 'k_new' to be a plain tensor, but got a batch of torch.vmap"
    ):
        torch.vmap(lambda x: append(cache, cache, x, new[0], seqused_k=torch.ones(1, dtype=torch.int32)))(new)
    assert not cache.any()
