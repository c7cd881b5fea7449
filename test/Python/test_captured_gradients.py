# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Gradients of a table that a score_mod reads at places that several pairs share: in fixed point, the same in any
order, and, where `fast` allows it, by atomic additions."""

import json

import numpy as np
import pytest
import torch
import weft
from weft import native
from weft.testing.plans import launches, run_plan

D, TABLE = 32, 64
TENSOR, ROW, SCORES = (
    f"!attn.tensor<[B, H, N, {D}], f16>",
    "!attn.tensor<[B, H, N], f32>",
    f"!attn.tensor<[{TABLE}], f32>",
)


def backward(fast):
    """Attention with score + table[(n - m) & 63] and its gradients, as attn IR."""
    index = f"""
    %distance = arith.subi %n, %m : i32
    %most = arith.constant {TABLE - 1} : i32
    %place = arith.andi %distance, %most : i32"""
    given = "".join(f', %{x}: {TENSOR} {{attn.name = "{x}"}}' for x in ("k", "v", "d_out"))
    return f"""
func.func @f(%q: {TENSOR} {{attn.name = "q"}}{given}, %t: {SCORES} {{attn.name = "t"}},
             %lse: {ROW} {{attn.name = "lse"}}, %delta: {ROW} {{attn.name = "delta"}})
    -> ({TENSOR} {{attn.name = "d_q"}}, {TENSOR} {{attn.name = "d_k"}}, {TENSOR} {{attn.name = "d_v"}},
        {SCORES} {{attn.name = "d_t"}}) attributes {{attn.program}} {{
  %dq, %d:3 = attn.attend_backward %q keys(%k : {TENSOR}) values(%v : {TENSOR}) lse(%lse : {ROW}) delta(%delta : {ROW})
      gradient(%d_out : {TENSOR}) {{patterns = [#attn.causal], scale = 0.25 : f32{", fast" if fast else ""}}}
      : {TENSOR} -> {TENSOR}, {TENSOR}, {TENSOR}, {SCORES}
  score_mod {{
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):{index}
    %x = attn.element %t[%place] : {SCORES} -> f32
    %r = arith.addf %s, %x : f32
    attn.yield %r : f32
  }} grad {{
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %gs: f32):{index}
    attn.accumulate %gs into 0[%place]
    attn.yield %gs : f32
  }}
  func.return %dq, %d#0, %d#1, %d#2 : {TENSOR}, {TENSOR}, {TENSOR}, {SCORES}
}}
"""


def reference(q, k, v, table):
    """Output and LSE in float64, of arrays that require gradients."""
    n = q.shape[2]
    distance = torch.arange(n)[:, None] - torch.arange(n)
    score = (q @ k.mT * 0.25 + table[distance & (TABLE - 1)]).masked_fill(distance < 0, -torch.inf)
    return score.softmax(-1) @ v, score.logsumexp(-1)


@pytest.mark.parametrize("fast", [False, True], ids=["fixed point", "fast"])
def test_shared_places(fast, seed):
    context = native.load("_compiler").Context()
    ptx, info, error = context.parse(backward(fast)).compile(json.dumps({"target": "sm_80"}))
    assert error is None, error
    generator = torch.Generator().manual_seed(seed)
    shape = (2, 2, 150, D)
    q, k, v, d_out = (torch.randn(shape, generator=generator).half() for _ in range(4))
    table = torch.randn(TABLE, generator=generator)
    leaves = [x.double().requires_grad_() for x in (q, k, v, table)]
    out, lse = reference(*leaves)
    expected = torch.autograd.grad(out, leaves, d_out.double())
    delta = (out.detach() * d_out.double()).sum(-1).float()
    inputs = [x.numpy() for x in (q, k, v, d_out, table, lse.detach().float(), delta)]
    run = run_plan(ptx, json.loads(info), "f", inputs)
    assert run.findings == []
    for (name, found), right in zip(run.outputs.items(), expected, strict=True):
        error = np.abs(found.astype(np.float64) - right.numpy()).max()
        assert error <= 2e-3 * float(right.abs().max()), name
    again = run_plan(ptx, json.loads(info), "f", inputs)
    if not fast:
        assert all((run.outputs[name] == again.outputs[name]).all() for name in run.outputs)


@weft.program
def read_twice(q, k, v, decay, table):
    def modified(score, b, h, n, m):
        return score + decay[b, h, n] - decay[b, h, m] + table[h, n, m] * table[h, m, n]

    return weft.softmax(q, k, weft.causal(), score_mod=modified) @ v


def test_reads_at_other_places():
    """What is read at a query and at a key is added up by the kernels that have queries, or keys, as rows; without
    atomics."""
    seed = torch.random.seed() % 2**31
    print("seed", seed)
    torch.manual_seed(seed)
    N = 150
    given = [torch.randn(2, 2, N, D) for _ in range(3)] + [torch.randn(2, 2, N), torch.randn(2, N, N)]
    ours = [x.half() if x.ndim == 4 else x for x in given]
    leaves = [x.double().requires_grad_() for x in ours]
    q, k, v, decay, table = leaves
    scores = q @ k.mT / D**0.5 + decay[..., :, None] - decay[..., None, :] + table * table.mT
    causal = torch.ones(N, N, dtype=torch.bool).tril()
    out = scores.masked_fill(~causal, -torch.inf).softmax(-1) @ v
    d_out = torch.randn(out.shape).half()
    expected = torch.autograd.grad(out, leaves, d_out.double())
    for x in ours:
        x.requires_grad_()
    found = torch.autograd.grad(read_twice(*ours), ours, d_out)
    for name, each, right in zip(("q", "k", "v", "decay", "table"), found, expected, strict=True):
        assert (each.double() - right).abs().max() <= 4e-3 * right.abs().max(), name
    assert not any("fixed_point" in kernel for kernel in launches(read_twice, *ours)["backward"])
