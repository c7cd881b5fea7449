# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""flash-linear-attention's own operators against their definitions in plain PyTorch. Run it in Triton's place:

    python -m weft.triton test/Python/linear_attention.py chunk_gla chunk_kda

prints a line for each: its name, the relative error of its result, and of each gradient.
"""

import importlib
import os
import sys

import torch
from torch.nn import functional

BATCH, TOKENS, HEADS, KEYS, VALUES = 1, 100, 2, 32, 32
SCALE = KEYS**-0.5


def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()


def decays(*sizes):
    return functional.logsigmoid(torch.randn(*sizes)).requires_grad_()


def recurrence(q, k, v, decay, beta=None):
    """o_t = q_t S_t, where S_t is S_{t-1} decayed, plus k_t v_t; of a delta rule v_t less what k_t finds, scaled."""
    state, outputs = torch.zeros(BATCH, HEADS, KEYS, VALUES), []
    for t in range(TOKENS):
        state = state * decay[:, t].exp()[..., None]
        value = v[:, t]
        if beta is not None:
            value = beta[:, t][..., None] * (value - (state * k[:, t][..., None]).sum(-2))
        state = state + k[:, t][..., None] * value[:, :, None, :]
        outputs.append((q[:, t][..., None] * SCALE * state).sum(-2))
    return torch.stack(outputs, 1)


def linear(module, name, gate):
    q, k, v = leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, VALUES)
    g = decays(BATCH, TOKENS, HEADS, *([KEYS] if gate == "channels" else []))
    function = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    wide = g if gate == "channels" else g[..., None].expand(-1, -1, -1, KEYS)
    if gate is None:
        return (
            function(q, k, v, scale=SCALE, normalize=False)[0],
            recurrence(q, k, v, torch.zeros_like(wide)),
            (q, k, v),
        )
    return function(q, k, v, g, scale=SCALE)[0], recurrence(q, k, v, wide), (q, k, v, g)


def delta(module, name, gate, backward=True):
    q, k, v = leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, KEYS), leaf(BATCH, TOKENS, HEADS, VALUES)
    beta, unit = torch.rand(BATCH, TOKENS, HEADS).requires_grad_(), functional.normalize(k, dim=-1)
    g = decays(BATCH, TOKENS, HEADS, *([KEYS] if gate == "channels" else []))
    function = getattr(importlib.import_module(f"fla.ops.{module}"), name)
    wide = g if gate == "channels" else g[..., None].expand(-1, -1, -1, KEYS)
    gates = {} if gate is None else {"g": g}
    exact = recurrence(q, unit, v, torch.zeros_like(wide) if gate is None else wide, beta)
    leaves = (q, k, v, beta) if gate is None else (q, k, v, beta, g)
    return function(q, unit, v, beta=beta, scale=SCALE, **gates)[0], exact, leaves if backward else ()


def attention():
    q, k, v = (leaf(BATCH, TOKENS, HEADS, KEYS) for _ in range(3))
    scores = torch.einsum("bthd,bshd->bhts", q, k) * SCALE
    scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), float("-inf"))
    exact = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v)
    return importlib.import_module("fla.ops.attn").parallel_attn(q, k, v, scale=SCALE), exact, (q, k, v)


def hgrn():
    x, g = leaf(BATCH, TOKENS, 64), decays(BATCH, TOKENS, 64)
    state, outputs = torch.zeros(BATCH, 64), []
    for t in range(TOKENS):
        state = state * g[:, t].exp() + x[:, t]
        outputs.append(state)
    return importlib.import_module("fla.ops.hgrn").fused_recurrent_hgrn(x, g)[0], torch.stack(outputs, 1), (x, g)


def norm():
    x, layer = leaf(4, 50, 64), importlib.import_module("fla.modules").RMSNorm(64)
    return layer(x), functional.rms_norm(x, (64,), layer.weight, 1e-5), (x,)


def swiglu():
    x, y = leaf(64, 128), leaf(64, 128)
    return importlib.import_module("fla.modules.activations").swiglu(x, y), functional.silu(x) * y, (x, y)


def operator(module, name):
    return getattr(importlib.import_module(f"fla.ops.{module}"), name)


def vectors(channels=KEYS):
    return leaf(BATCH, TOKENS, HEADS, channels)


def units(channels=KEYS):
    return functional.normalize(torch.randn(BATCH, TOKENS, HEADS, channels), dim=-1).requires_grad_()


def parts(*sizes):
    return torch.rand(*(sizes or (BATCH, TOKENS, HEADS))).requires_grad_()


def first(result):
    return result[0] if isinstance(result, tuple) else result


def against(module, name, naive, leaves, *more, **options):
    """An operator against its library's own definition in plain PyTorch, of the same arguments."""
    found = first(operator(module, name)(*leaves, *more, **options))
    return found, first(operator(f"{module}.naive", naive)(*leaves, *more, **options)), leaves


def rwkv7():
    r, k, v = vectors(), vectors(), vectors()
    w = (-0.6 * torch.rand(BATCH, TOKENS, HEADS, KEYS) - 0.01).requires_grad_()
    along = functional.normalize(torch.randn(BATCH, TOKENS, HEADS, KEYS), dim=-1)
    a, b = (-along).requires_grad_(), (along * torch.rand(BATCH, TOKENS, HEADS, KEYS)).requires_grad_()
    state, outputs = torch.zeros(BATCH, HEADS, KEYS, VALUES), []
    for t in range(TOKENS):
        found = torch.einsum("bhk,bhkv->bhv", a[:, t], state)
        state = state * w[:, t].exp()[..., None] + b[:, t][..., None] * found[:, :, None]
        state = state + k[:, t][..., None] * v[:, t][:, :, None]
        outputs.append(torch.einsum("bhk,bhkv->bhv", r[:, t], state))
    made = operator("rwkv7", "chunk_rwkv7")(r, w, k, v, a, b, scale=1.0)[0]
    return made, torch.stack(outputs, 1), (r, w, k, v, a, b)


def rwkv6():
    r, k, v, w, u = vectors(), vectors(), vectors(), decays(BATCH, TOKENS, HEADS, KEYS), leaf(HEADS, KEYS)
    state, outputs = torch.zeros(BATCH, HEADS, KEYS, VALUES), []
    for t in range(TOKENS):
        own = k[:, t][..., None] * v[:, t][:, :, None]
        outputs.append((r[:, t][..., None] * SCALE * (state + u[None, ..., None] * own)).sum(-2))
        state = state * w[:, t].exp()[..., None] + own
    made = operator("rwkv6", "chunk_rwkv6")(r, k, v, w, u, scale=SCALE)[0]
    return made, torch.stack(outputs, 1), (r, k, v, w, u)


def selected():
    """Native sparse attention over selected blocks of keys."""
    block, heads = 32, 16
    q, k, v = leaf(BATCH, TOKENS, heads, KEYS), leaf(BATCH, TOKENS, 1, KEYS), leaf(BATCH, TOKENS, 1, VALUES)
    chosen = torch.tensor([[0, max(t // block, 1)] for t in range(TOKENS)])[None, :, None].contiguous()
    ones = torch.ones(BATCH, TOKENS, heads)
    made = operator("nsa", "parallel_nsa")(
        q, k, v, None, ones, None, block_indices=chosen, block_counts=2, block_size=block, scale=SCALE
    )
    return made, operator("nsa.naive", "naive_nsa_selection")(q, k, v, chosen, block, SCALE), (q, k, v)


def comba():
    q, k, v, p, g, beta = vectors(), units(), vectors(), units(), decays(BATCH, TOKENS, HEADS), parts()
    exact = operator("comba.naive", "naive_chunk_comba")(q, k, v, p, g, beta, scale=SCALE)
    return operator("comba", "chunk_comba")(q, k, v, p=p, g=g, beta=beta, scale=SCALE)[0], first(exact), (q, k, v, p, g)


def path():
    q, k, v, w, beta, g = vectors(64), vectors(64), vectors(64), units(64), parts(), decays(BATCH, TOKENS, HEADS)
    exact = operator("path_attn", "naive_path_attn")(q, k, v, w, beta, g, 64**-0.5)
    return first(operator("path_attn", "parallel_path_attn")(q, k, v, w, beta, g)), first(exact), (q, k, v, w, beta, g)


def mesa():
    q, k, v, g, beta, ridge = units(), units(), vectors(), decays(BATCH, TOKENS, HEADS), parts(), parts(HEADS, KEYS)
    ridge = (ridge.detach() * 0.5 + 0.5).requires_grad_()
    exact = operator("mesa_net.naive", "naive_mesa_net_exact")(q, k, v, g, ridge, beta)
    made = operator("mesa_net", "chunk_mesa_net")(q, k, v, g, beta, ridge)
    return first(made), first(exact), (q, k, v, g, beta, ridge)


def retention():
    leaves = (vectors(), vectors(), vectors())
    exact = operator("retention.naive", "naive_retention")(*(x.transpose(1, 2) for x in leaves)).transpose(1, 2)
    return operator("retention", "chunk_retention")(*leaves)[0], exact, leaves


def whole_blocks(channels=KEYS):
    """Vectors of 128 tokens, for operators that read beyond the last ones of a block that is not whole."""
    return leaf(BATCH, 128, HEADS, channels)


def based(name):
    """Attention by the Taylor series of exp to the second order."""
    q, k, v = whole_blocks(16), whole_blocks(16), whole_blocks()
    exact = operator("based.naive", "naive_parallel_based")(*(x.transpose(1, 2) for x in (q, k, v)), use_norm=True)
    return operator("based", name)(q, k, v), exact.transpose(1, 2), (q, k, v)


def ttt(name):
    """A layer that learns as it reads: its state takes a step of gradient descent for every 16 tokens."""
    q, k, v = vectors(), units(), vectors()
    weight, bias = (1 + 0.1 * torch.randn(HEADS, KEYS)).requires_grad_(), leaf(HEADS, KEYS)
    eta = (5e-3 * torch.rand(BATCH, TOKENS, HEADS, 1)).requires_grad_()
    leaves = (q, k, v, weight, bias, eta)
    exact = operator("ttt.naive", "chunk_ttt_linear_ref")(*leaves, scale=SCALE)[0]
    return operator("ttt", name)(*leaves, scale=SCALE)[0], exact, leaves


def deltaformer():
    """Values less what attention to the keys before finds; the attention to these is another library's."""
    q, k, v, beta = whole_blocks(), whole_blocks(), whole_blocks(), parts(BATCH, 128, HEADS)
    weights = operator("deltaformer.naive", "tril_softmax")(torch.einsum("bthd,bshd->bhts", q, k) * SCALE)
    made = [v[:, 0]]
    for t in range(1, 128):
        found = torch.einsum("bhs,bshd->bhd", weights[:, :, t, :t], torch.stack(made, 1))
        made.append(v[:, t] - beta[:, t, :, None] * found)
    function = operator("deltaformer.parallel", "ParallelDeltaformerFunction")
    return function.apply(q, k, v, beta, 128, None), torch.stack(made, 1), (q, k, v, beta)


def gates():
    return decays(BATCH, TOKENS, HEADS)


CASES = {
    "chunk_gla": lambda: linear("gla", "chunk_gla", "channels"),
    "fused_recurrent_gla": lambda: linear("gla", "fused_recurrent_gla", "channels"),
    "chunk_simple_gla": lambda: linear("simple_gla", "chunk_simple_gla", "heads"),
    "parallel_simple_gla": lambda: linear("simple_gla", "parallel_simple_gla", "heads"),
    "chunk_linear_attn": lambda: linear("linear_attn", "chunk_linear_attn", None),
    "fused_chunk_linear_attn": lambda: linear("linear_attn", "fused_chunk_linear_attn", None),
    "fused_recurrent_delta_rule": lambda: delta("delta_rule", "fused_recurrent_delta_rule", None),
    "chunk_gated_delta_rule": lambda: delta("gated_delta_rule", "chunk_gated_delta_rule", "heads"),
    "fused_recurrent_gated_delta_rule": lambda: delta(
        "gated_delta_rule", "fused_recurrent_gated_delta_rule", "heads", backward=False
    ),
    "chunk_kda": lambda: delta("kda", "chunk_kda", "channels"),
    "parallel_attn": attention,
    "fused_recurrent_hgrn": hgrn,
    "chunk_hgrn": lambda: against(
        "hgrn", "chunk_hgrn", "naive_recurrent_hgrn", (leaf(BATCH, TOKENS, 64), decays(BATCH, TOKENS, 64))
    ),
    "chunk_gsa": lambda: against(
        "gsa",
        "chunk_gsa",
        "naive_recurrent_gsa",
        (vectors(), vectors(), vectors(), vectors(), decays(BATCH, TOKENS, HEADS, KEYS)),
        scale=SCALE,
    ),
    "parallel_forgetting_attn": lambda: against(
        "forgetting_attn",
        "parallel_forgetting_attn",
        "naive_forgetting_attn",
        (vectors(), vectors(), vectors(), gates()),
        scale=SCALE,
    ),
    "parallel_stickbreaking_attn": lambda: against(
        "stickbreaking_attn",
        "parallel_stickbreaking_attn",
        "naive_stickbreaking_attn",
        (vectors(), vectors(), vectors()),
        SCALE,
    ),
    "chunk_rwkv7": rwkv7,
    "chunk_rwkv6": rwkv6,
    "parallel_nsa": selected,
    "chunk_comba": comba,
    "parallel_path_attn": path,
    "chunk_mesa_net": mesa,
    "chunk_retention": retention,
    "parallel_based": lambda: based("parallel_based"),
    "fused_chunk_based": lambda: based("fused_chunk_based"),
    "chunk_ttt_linear": lambda: ttt("chunk_ttt_linear"),
    "fused_chunk_ttt_linear": lambda: ttt("fused_chunk_ttt_linear"),
    "deltaformer": deltaformer,
    "rms_norm": norm,
    "swiglu": swiglu,
}


def error(pairs):
    """Of several results, each with what it should be: their errors over their sizes, all together."""
    pairs = [(found.detach(), exact.detach()) for found, exact in pairs]
    return float(sum((a - b).square().sum() for a, b in pairs) / sum(b.square().sum() for _, b in pairs)) ** 0.5


def gradients(found, exact, leaves):
    """The leaves' gradients, each with what it should be, along a random direction."""
    along = torch.randn_like(exact)
    given, wanted = (torch.autograd.grad(each, leaves, along, retain_graph=True) for each in (found, exact))
    return zip(given, wanted, strict=True)


def main(names):
    for number, name in enumerate(names):
        torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", "0")) + number)
        found, exact, leaves = CASES[name]()
        errors = [error([(found, exact)])]
        if leaves:
            # A gate's gradient is a difference, along one direction in thirty a small one: three are judged together.
            draws = [gradients(found, exact, leaves) for _ in range(3)]
            errors += [error(pairs) for pairs in zip(*draws, strict=True)]
        print(name, *(f"{each:.2e}" for each in errors), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or CASES)
