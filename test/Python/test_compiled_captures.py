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


class Around(torch.nn.Module):
    """A module whose score_mod reads it by its name."""

    def __init__(self):
        super().__init__()
        self.slopes, self.cap = torch.nn.Parameter(torch.randn(2)), 3.0
        self.register_buffer("table", torch.randn(2, 12))

    def forward(self, q, k, v):
        def capped(s, b, h, n, m):
            return self.cap * weft.tanh((s + self.slopes[h] * m + self.table[h, m]) / self.cap)

        return weft.attention.attend(q, k, v, score_mod=capped)


class ByMethod(Around):
    """One whose score_mod is a method of its own."""

    def capped(self, s, b, h, n, m):
        return self.cap * weft.tanh((s + self.slopes[h] * m + self.table[h, m]) / self.cap)

    def forward(self, q, k, v):
        return weft.attention.attend(q, k, v, score_mod=self.capped)


class Computed(Around):
    """One whose score_mod computes with its parameters by torch's functions, in a property."""

    @property
    def doubled(self):
        return torch.add(self.slopes, self.slopes)

    def forward(self, q, k, v):
        def capped(s, b, h, n, m):
            return self.cap * weft.tanh((s + self.doubled[h] * 0.5 * m + self.table[h, m]) / self.cap)

        return weft.attention.attend(q, k, v, score_mod=capped)


@pytest.mark.parametrize("kind", [Around, ByMethod, Computed])
def test_modules(kind, operands):
    """A module's own parameters, buffers and numbers: in one graph, with gradients, changed and replaced."""
    torch._dynamo.reset()
    q, k, v = operands
    module = kind()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)

    def check():
        slopes, cap = module.slopes.detach().double().requires_grad_(), module.cap
        scores = q.double() @ k.double().mT / 4 + slopes[:, None, None] * torch.arange(12) + module.table[:, None]
        wanted = torch.softmax(cap * torch.tanh(scores / cap), -1) @ v.double()
        found = compiled(q, k, v)
        near(found.detach(), wanted.detach())
        given = torch.randn_like(found)
        ours = torch.autograd.grad(found, module.slopes, given)[0]
        exact = torch.autograd.grad(wanted, slopes, given.double())[0]
        assert (ours - exact).abs().max() < 1e-5 * 12  # sums of terms that are multiplied by m

    check()
    with torch.no_grad():
        module.slopes.mul_(3)
    check()
    module.cap = 2.0
    check()
    module.table, module.slopes = torch.randn(2, 12), torch.nn.Parameter(torch.randn(2))
    check()


class Called(torch.nn.Module):
    """One whose score_mod calls a module: what that reads is not known."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Identity()

    def forward(self, q, k, v):
        inner = self.inner
        return weft.attention.attend(q, k, v, score_mod=lambda s, b, h, n, m: inner(s))


def test_modules_that_are_called(operands):
    torch._dynamo.reset()
    compiled = torch.compile(Called(), backend="aot_eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="a value of type 'Identity'"):
        compiled(*operands)
