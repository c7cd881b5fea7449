# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions of every element as torch has them, each number judged by its own size: at the values where a formula for
them overflows, cancels or has a kink, and their derivatives there.
"""

import math

import pytest
import torch
import torch.nn.functional as F
import weft
from weft.attention import attend

EDGES = (0.0, 1.0, -1.0, 0.5, 20.0, -20.0, 88.0, -89.0, -100.0, 100.0, 1e4, -1e4, 1e-3, -1e-3, 1e-9, -1e-9)

FUNCTIONS = {
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "expm1": lambda x: torch.expm1(x.clamp(-50, 50)),
    "1 / (1 + exp(-x))": lambda x: 1 / (1 + torch.exp(-x.clamp(min=-80))),
    "x ** 3": lambda x: x**3,
    "x ** 9": lambda x: x.clamp(-90, 90) ** 9,
    "x ** -2": lambda x: (x + 0.25) ** -2,
    "|x| ** 1.5": lambda x: (x * x + 1e-12) ** 0.75,
    "relu(x) ** 1.5": lambda x: F.relu(x) ** 1.5,
    "(-1) ** floor(x)": lambda x: x * (-1.0) ** torch.floor(x.clamp(-50, 50)),
    "x % 0.25": lambda x: torch.remainder(x, 0.25),
    "x % -3": lambda x: x % -3.0,
    "fmod": lambda x: torch.fmod(x, 0.375),
}


def _assert_close(found, wanted, x, tolerance):
    """Each number within ``tolerance`` of its own size; numbers that float32 makes 0 are 0 or tiny."""
    wanted = wanted.detach()
    assert found.isfinite().all(), x[~found.isfinite()]
    off = (found.double() - wanted).abs() / wanted.abs().clamp(min=1e-30)
    worst = off.argmax()
    assert off.max() <= tolerance, (x.flatten()[worst], found.flatten()[worst], wanted.flatten()[worst])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_and_derivatives(name, seed):
    """Of a tensor, at fixed edges and random numbers; a derivative may cancel to float32's last bits of its terms."""
    body = FUNCTIONS[name]
    x = torch.cat([torch.tensor(EDGES), torch.randn(48) * 4]).reshape(1, 1, 8, 8).requires_grad_()
    exact = x.detach().double().requires_grad_()
    found, wanted = weft.program(lambda x: body(x))(x), body(exact)
    _assert_close(found.detach(), wanted, x, 1e-5)
    found.sum().backward()
    (slope,) = torch.autograd.grad(wanted.sum(), exact)
    assert x.grad.isfinite().all(), x.detach()[~x.grad.isfinite()]
    assert ((x.grad - slope).abs() <= 1e-5 * slope.abs() + 1e-6).all(), (x, x.grad, slope)


def test_quotients_of_reals(seed):
    """//, %, and their kin are exact: a / b rounded to the next whole number is no quotient."""
    a = torch.cat([torch.tensor([0.3, 1.0, 100.0, -100.0, -1e-12, 7.0, -7.0, 6.0]), torch.randn(56) * 50])
    a = a.reshape(1, 1, 8, 8)
    for b in (0.1, -0.1, 0.3, 3.0, math.inf, -math.inf):
        for body in (torch.remainder, torch.fmod, torch.floor_divide):
            found, wanted = weft.program(lambda a: body(a, b))(a), body(a, torch.tensor(b))  # noqa: B023
            assert torch.equal(found, wanted), (body, b, a[found != wanted], found[found != wanted])


def test_truths_are_added_as_torch_adds_them(seed):
    """The sum of two truths is "or" and their product "and", in masks, in scores and on whole tensors."""
    q, k, v = torch.randn(3, 1, 1, 40, 8).unbind(0)
    n, m = torch.arange(40)[:, None], torch.arange(40)

    def either(b, h, n, m):
        return ~((n >= m) + (m < 5)) + (n == 7) * (m < 20)

    scores = q.double() @ k.double().mT / math.sqrt(8)
    kept = either(0, 0, n, m)
    assert torch.equal(torch.from_numpy(weft.mask(either).matrix(40)), kept)
    wanted = torch.softmax(scores.masked_fill(~kept, -math.inf), -1).nan_to_num() @ v.double()
    assert (attend(q, k, v, weft.mask(either)) - wanted).abs().max() < 1e-5

    found = attend(q, k, v, score_mod=lambda s, b, h, n, m: s + ((n >= m) + (m < 5)) + weft.maximum(n > 3, m > 3))
    wanted = torch.softmax(scores + ((n >= m) + (m < 5)) + torch.maximum((n > 3) + (m < 0), (m > 3) + (n < 0)), -1)
    assert (found - wanted @ v.double()).abs().max() < 1e-5

    both = weft.program(lambda a, b: (a > 0) + (b > 0))(q, k)
    assert both.dtype == torch.bool
    assert torch.equal(both, (q > 0) | (k > 0))
    with pytest.raises(weft.CompilationError, match="expected two numbers to subtract, but got two truths"):
        weft.program(lambda a, b: (a > 0) - (b > 0))(q, k)


def test_fmax_leaves_nan_out():
    x = torch.tensor([1.0, math.nan, -2.0, math.nan]).reshape(1, 1, 1, 4).requires_grad_()
    y = torch.tensor([math.nan, 3.0, 5.0, math.nan]).reshape(1, 1, 1, 4).requires_grad_()
    for body in (torch.fmax, torch.fmin):
        found, wanted = weft.program(lambda x, y: body(x, y))(x, y), body(x, y)  # noqa: B023
        assert torch.equal(found.nan_to_num(-9), wanted.nan_to_num(-9))
        got = torch.autograd.grad(found[..., :3].sum(), (x, y))
        expected = torch.autograd.grad(wanted[..., :3].sum(), (x, y))
        assert all(torch.equal(a[..., :3], b[..., :3]) for a, b in zip(got, expected, strict=True))


def test_tangents_of_the_logistic_function():
    x = torch.tensor(EDGES).reshape(1, 1, 2, 8)
    _, found = torch.func.jvp(weft.program(lambda x: F.silu(x)), (x,), (torch.ones_like(x),))
    _, wanted = torch.func.jvp(F.silu, (x.double(),), (torch.ones_like(x).double(),))
    assert (found - wanted).abs().max() < 1e-5


def test_integers_are_shifted():
    x = torch.arange(-8, 8, dtype=torch.int32).reshape(1, 1, 2, 8)
    assert torch.equal(weft.program(lambda x: (x >> 1) + (x << 3))(x), (x >> 1) + (x << 3))
