# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sections of patterns: one compiled form for all places, held against rows and columns of the whole's matrix."""

import numpy as np
import pytest
import torch
import weft
from weft.compiler.diagnostics import CompilationError

N, SECTION, HEADS = 96, 32, 2
IDS = np.repeat(np.arange(4), [20, 30, 26, 20]).astype(np.int32)
TABLE = np.random.default_rng(5).integers(0, 2, N).astype(np.int32)
BITS = np.random.default_rng(6).random((1, HEADS, 6, 6)) < 0.5
PATTERNS = {
    "full": weft.full(),
    "causal": weft.causal(),
    "window": weft.window(20, 0),
    "window ahead": weft.window(5, 40).shift(3),
    "block window": weft.block_window(24),
    "prefix": weft.prefix(40) | weft.causal(),
    "global": weft.global_tokens(5) & weft.causal(),
    "transpose": (weft.prefix(40) & weft.causal()).transpose(),
    "dilated": weft.dilated(3, 9),
    "document": weft.document(IDS, IDS) & weft.causal(),
    "grid": weft.neighbourhood((8, 12), (3, 5)),
    "random": weft.random_blocks(3, 2, 16),
    "bitmap": weft.block_bitmap(BITS, block=16),
    "mask": weft.mask(lambda b, h, n, m: (n + m) % 5 != TABLE[m]),
    "per head": weft.per_head([weft.causal(), weft.window(9, 9)]),
    "not": ~weft.window(8, 8),
}


def place(first):
    return np.array([first, N], np.int32)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_section_is_a_part_of_the_whole(name, seed):
    pattern = PATTERNS[name]
    rng = np.random.default_rng(seed)

    @weft.program
    def section(q, k, v, rows, keys):
        return weft.attention.attend(q, k, v, pattern.section(rows, keys), return_lse=True)

    whole = [rng.standard_normal((1, HEADS, N, 8), dtype=np.float32) for _ in "qkv"]
    matrix = np.broadcast_to(pattern.matrix(N, N, heads=HEADS), (1, HEADS, N, N))
    forms = set()
    for row, key in ((0, 0), (32, 64), (64, 32), (37, 11)):
        q, k, v = (each[:, :, at : at + SECTION].copy() for each, at in zip(whole, (row, key, key), strict=True))
        inside = matrix[:, :, row : row + SECTION, key : key + SECTION]
        own = pattern.section(place(row), place(key)).matrix(SECTION, SECTION, heads=HEADS)
        assert (np.broadcast_to(own, inside.shape) == inside).all()
        found, saved = section.forward(q, k, v, place(row), place(key))
        forms.add(section.ir(q, k, v, place(row), place(key)))

        leaves = [torch.from_numpy(each).double().requires_grad_() for each in (q, k, v)]
        scores = (leaves[0] @ leaves[1].mT / np.sqrt(8)).masked_fill(torch.from_numpy(~inside), -torch.inf)
        lse = scores.logsumexp(-1)
        out = torch.exp(scores - lse.where(lse.isfinite(), 0.0)[..., None]) @ leaves[2]
        np.testing.assert_allclose(found[0], out.detach(), atol=2e-6)
        np.testing.assert_allclose(found[1], lse.detach(), atol=2e-6)

        by = rng.standard_normal(q.shape, dtype=np.float32)
        (out * torch.from_numpy(by)).sum().backward()
        gradients = section.backward(saved, by, None)
        for given, leaf in zip("qkv", leaves, strict=True):
            np.testing.assert_allclose(gradients[given], leaf.grad, atol=5e-6)
    assert len(forms) == 1


def test_a_section_names_its_place():
    pattern = weft.causal()
    with pytest.raises(CompilationError, match=r"expected 'rows' of weft.section to be an array"):
        pattern.section(3, place(0))
    with pytest.raises(CompilationError, match=r"expected 4 keys of a section to lie among 96, but they begin at 93"):
        pattern.section(place(0), place(93)).matrix(4)
    q = np.zeros((1, 1, 4, 8), np.float32)
    with pytest.raises(CompilationError, match=r"expected 'keys' of Pattern.section \[2\]"):
        weft.attention.attend(q, q, q, pattern.section(place(0), np.zeros(3, np.int32)))
    with pytest.raises(CompilationError, match=r"expected 'rows' of Pattern.section \[2\] of int32"):
        weft.attention.attend(q, q, q, pattern.section(np.zeros(2, np.int64), place(0)))
    starts = np.array([0, 4], np.int32)
    with pytest.raises(CompilationError, match=r"expected cu_seqlens or Pattern.section, but got both"):
        section = pattern.section(place(0), place(0))
        weft.attention.attend(q, q, q, section, cu_seqlens_q=starts, cu_seqlens_k=starts)
