# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Integers of masks and score_mods have 32 bits: where a product of positions wraps, what follows sees the wrapped
number, as NumPy's int32 has it, and rounds its quotients down as Python does."""

import random

import numpy as np
import pytest
import torch
import weft

EXPRESSIONS = {
    "hash": lambda n, m, a, b: (n * a + m * b) % 4,
    "hash of a table's length": lambda n, m, a, b: (n * a - m) % 37,
    "bucket": lambda n, m, a, b: ((m * a) // 65536) % 7,
    "nested": lambda n, m, a, b: ((n + 1) * (m + 1) * a % 11) * b % 5,
    "square": lambda n, m, a, b: (n * n * n * n * n * n * n + m) % 13,
    "positions": lambda n, m, a, b: (n * 3 + m // 5) % 4,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_integers_that_wrap(name):
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    numbers, torch_numbers = random.Random(seed), torch.Generator().manual_seed(seed)
    a, b = (numbers.randrange(2**27, 2**31) | 1 for _ in range(2))
    number, length = EXPRESSIONS[name], 67
    n, m = np.arange(length, dtype=np.int32)[:, None], np.arange(length, dtype=np.int32)[None]
    with np.errstate(over="ignore"):
        wanted = number(n, m, np.int32(a), np.int32(b))
    assert wanted.dtype == np.int32
    pattern = weft.mask(lambda _b, _h, i, j: number(i, j, a, b) != 1)
    assert (np.asarray(pattern.matrix(length, length)) == (wanted != 1)).all()
    q, k, v = (torch.randn(1, 1, length, 16, generator=torch_numbers) for _ in range(3))
    out = weft.attention.attend(q, k, v, pattern, score_mod=lambda s, _b, _h, i, j: s + 0.25 * number(i, j, a, b))
    scores = q.double() @ k.double().mT / 4 + 0.25 * torch.from_numpy(wanted)
    weights = scores.masked_fill(torch.from_numpy(wanted == 1), -torch.inf).softmax(-1)
    torch.testing.assert_close(out.double(), weights @ v.double(), rtol=0, atol=2e-6)
