# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients come in any strides; the backward counts on aligned ones where the program's inputs are aligned."""

import pytest
import torch
import weft
from weft.testing import accuracy


def attend(q, k, v, dtype):
    """Plain causal attention in a dtype: the output, and the operands that take its gradients."""
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in (q, k, v))
    scores = (q @ k.mT) / q.shape[-1] ** 0.5
    later = torch.ones(scores.shape[-2:]).triu(1).bool()
    return torch.softmax(scores.masked_fill(later, -torch.inf), -1) @ v, (q, k, v)


@pytest.mark.parametrize("shift", [0, 1, None], ids=["rows of odd length", "an odd address", "one number everywhere"])
def test_gradients_of_any_strides(shift, seed):
    torch.manual_seed(seed)
    # Of one number everywhere dv's channels are all alike: more heads, for as many different ones to take the mean of.
    H, N, D = 16 if shift is None else 2, 70, 64
    q, k, v = (torch.randn(1, H, N, D).half().requires_grad_() for _ in range(3))
    gradient = torch.randn(()).half().expand(1, H, N, D)
    if shift is not None:
        gradient = torch.randn(1, H, N, D + 1).half()[..., shift : D + shift]
    weft.attention.attend(q, k, v, weft.causal()).backward(gradient)
    out, exact = attend(q, k, v, torch.float64)
    out.backward(gradient.double())
    out, plain = attend(q, k, v, torch.float16)
    out.backward(gradient)
    for ours, ref, pt in zip((q, k, v), exact, plain, strict=True):
        result = accuracy(ours.grad, ref.grad, [pt.grad], gradient=True)
        assert result.ok, result.failures
