# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tensors that patterns and score_mods made before a compiled function read: each call reads those of its own."""

import pytest
import torch
import weft
from weft.programs.torch_reads import AsTorch

KINDS = {"weft's": lambda function: function, "torch's": AsTorch}


class Box:
    """An object that a compiled function takes, and that holds a pattern."""

    def __init__(self, pattern):
        self.pattern = pattern


class Table:
    """A score_mod that is an object."""

    def __init__(self, slopes):
        self.slopes = slopes

    def __call__(self, s, b, h, n, m):
        return s + self.slopes[h] * m


@pytest.fixture
def operands(seed):
    torch.manual_seed(seed)
    return torch.randn(3, 2, 2, 12, 16)


def near(ours, wanted):
    torch.testing.assert_close(ours, wanted.float(), rtol=0, atol=1e-5)


def around(seen):
    return lambda b, h, n, m: seen[b, m] > 0


def by_default(seen):
    return lambda b, h, n, m, seen=seen: seen[b, m] > 0


def by_name(seen):
    def reads(b, h, n, m, *, seen=seen):
        return seen[b, m] > 0

    return reads


@pytest.mark.parametrize("held", [around, by_default, by_name])
@pytest.mark.parametrize(
    ("kind", "dtype"), [("weft's", torch.int32), ("torch's", torch.int32), ("torch's", torch.int64)]
)
def test_patterns(kind, dtype, held, operands):
    """Tensors around a pattern's function, and those that are its arguments where none are given."""
    torch._dynamo.reset()
    q, k, v = operands

    def run(q, k, v, box):
        return 2 * weft.attention.attend(q, k, v, box.pattern)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for padding in (3, 6, 1):
        seen = torch.ones(2, 12).to(dtype)
        seen[1, :padding] = 0
        box = Box(weft.mask(KINDS[kind](held(seen))) & ~weft.mask(KINDS[kind](lambda b, h, n, m: n < 0)))
        allowed = seen.bool()[:, None, None]
        wanted = 2 * torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), allowed)
        near(compiled(q, k, v, box), wanted)


def test_objects(operands):
    """Another object, another tensor of the same object, and other numbers in its tensor."""
    torch._dynamo.reset()
    q, k, v = operands

    def run(q, k, v, mod):
        return 2 * weft.attention.attend(q, k, v, score_mod=mod)

    def check(mod):
        bias = mod.slopes.double()[:, None, None] * torch.arange(12)
        wanted = 2 * torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), bias)
        near(compiled(q, k, v, mod), wanted)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for mod in (Table(torch.randn(2)), Table(torch.randn(2))):
        check(mod)
        mod.slopes = torch.randn(2)
        check(mod)
        mod.slopes.mul_(3)
        check(mod)
