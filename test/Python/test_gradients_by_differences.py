# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients of programs through PyTorch: by finite differences, in fp32 and run after run."""

import pytest
import torch
import weft


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def biased(q, k, v, table, sink):
    def score(s, b, h, n, m):
        return s + table[h, n, m]

    return weft.softmax(q, k, weft.window(8, 8), score_mod=score, sink=sink) @ v


@weft.program
def sema(q, k, v, lepe):
    q, k = weft.rope(q, k, window=8)
    return (weft.softmax(q, k, weft.block_window(8)) + weft.mean() + weft.toeplitz(lepe, centred=True)) @ v


@weft.program
def gated(q, k, v, gate, gain):
    q, k = weft.rms_norm(q, gain), weft.rms_norm(k, gain)
    return weft.diag(gate) @ (weft.softmax(q, k) + weft.mean(causal=True)) @ v


JOINS = torch.tensor([[[False, True, True, False, False] * 4]])


def sfa(q, k, v, q_gain, k_gain):
    """Decisions are given: what is differentiated moves none of them."""
    return weft.attention.sfa(q, k, v, q_gain, k_gain, decisions=JOINS, rope=True)


STEP = 2e-2


def differences(f, tensors, d_out, generator, step=STEP):
    """The gradient of sum(f·d_out) in each tensor by central differences, along a random direction."""
    found = []
    for i, x in enumerate(tensors):
        direction = torch.randn(x.shape, generator=generator)

        def at(t, i=i, x=x, direction=direction):
            moved = [x + t * direction if j == i else y for j, y in enumerate(tensors)]
            return (f(*moved).double() * d_out).sum()

        # Fifth-order differences: fp32 leaves little room for a small step.
        slope = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
        found.append((float(slope), direction))
    return found


def noise(out, d_out, step=STEP):
    """The standard deviation of such a difference, where each element of an fp32 forward is off by one unit in its last
    place: four sums, weighted by 8, 8, 1 and 1."""
    return float((out.double() * d_out).norm()) * 2**-23 * (8**2 + 8**2 + 1 + 1) ** 0.5 / (12 * step)


PROGRAMS = {
    "causal": (causal, [(1, 2, 20, 16), (1, 1, 24, 16), (1, 1, 24, 32)]),
    "biased": (biased, [(1, 2, 20, 16), (1, 2, 20, 16), (1, 2, 20, 16), (2, 20, 20), (2,)]),
    "sema": (sema, [(1, 2, 20, 16), (1, 1, 20, 16), (1, 1, 20, 16), (3, 16)]),
    "sfa": (sfa, [(1, 2, 20, 16), (1, 1, 20, 16), (1, 1, 20, 16), (2, 16), (1, 16)]),
    "gated": (gated, [(1, 2, 20, 16), (1, 2, 20, 16), (1, 2, 20, 16), (1, 2, 20, 1), (2, 16)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_by_differences(name, seed):
    """fp32 operands: directional derivatives of each tensor agree with differences of the forward alone."""
    program, shapes = PROGRAMS[name]
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    out = program(*tensors)
    d_out = torch.randn(out.shape, generator=generator)
    gradients = torch.autograd.grad(out, tensors, d_out)
    with torch.no_grad():
        slopes = differences(program, [x.detach() for x in tensors], d_out.double(), generator)
    for gradient, (slope, direction) in zip(gradients, slopes, strict=True):
        found = float((gradient.double() * direction).sum())
        # A direction's derivative may be small by chance; its terms are not, unless the tensor has few elements: then
        # the differences know no more than the forward's rounding leaves.
        size = float((gradient.double() * direction).norm())
        assert abs(found - slope) <= 2e-3 * size + 3 * noise(out.detach(), d_out), (found, slope)


@pytest.mark.parametrize("name", ["causal", "sema", "sfa"])
def test_fifty_runs_are_bit_equal(name, seed):
    program, shapes = PROGRAMS[name]
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(shape, generator=generator).half().requires_grad_() for shape in shapes]
    d_out = torch.randn(program(*tensors).shape, generator=generator).half()

    def run():
        return torch.autograd.grad(program(*tensors), tensors, d_out)

    first = run()
    for _ in range(49):
        assert all(torch.equal(a, b) for a, b in zip(first, run(), strict=True))
