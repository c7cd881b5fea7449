# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What training and state-space models take beside attention: losses over a vocabulary in chunks, optimisers, gates,
scans of chunks and of single steps."""

import torch
import triton
import triton.language as tl
from torch.nn import functional

from . import Case, case, poisoned


@triton.jit
def chunked_loss_kernel(logits, targets, losses, V, ignored, smoothing, count, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    at = logits + row * V
    if target == ignored:
        for start in range(0, V, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            tl.store(at + columns, 0.0, mask=columns < V)
        tl.store(losses + row, 0.0)
        return
    highest, total, sums = -float("inf"), 0.0, 0.0
    own = tl.load(at + target).to(tl.float32)
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(at + columns, mask=columns < V, other=-float("inf")).to(tl.float32)
        sums += tl.sum(tl.where(columns < V, value, 0.0), 0)
        new = tl.maximum(highest, tl.max(value, 0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(value - new), 0)
        highest = new
    lse = highest + tl.log(total)
    for start in range(0, V, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        value = tl.load(at + columns, mask=columns < V, other=-float("inf")).to(tl.float32)
        grad = tl.exp(value - lse) - smoothing / V
        grad = tl.where(columns == target, grad - (1 - smoothing), grad) / count
        tl.store(at + columns, grad.to(logits.dtype.element_ty), mask=columns < V)
    tl.store(losses + row, lse - (1 - smoothing) * own - smoothing * sums / V)


@case("cross entropy by chunks, gradient in place, bf16")
def chunked_loss():
    M, V, smoothing = 6, 3000, 0.1
    logits, targets = torch.randn(M, V).bfloat16(), torch.randint(0, V, (M,))
    targets[2] = -100
    x = logits.double().requires_grad_()
    losses = functional.cross_entropy(x, targets, reduction="none", ignore_index=-100, label_smoothing=smoothing)
    (losses.sum() / 5).backward()
    arguments = {"logits": logits, "targets": targets, "losses": poisoned(M), "V": V, "ignored": -100}
    arguments |= {"smoothing": smoothing, "count": 5.0}
    expected = {"losses": losses.detach(), "logits": x.grad}
    return Case(chunked_loss_kernel, (M,), arguments, {"BLOCK": 1024}, expected, 4, 2)


@triton.jit
def linear_loss_kernel(
    x, weight, lse, own, targets, M, V, K, BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    target = tl.load(targets + rows, mask=rows < M, other=-1)
    highest = tl.full([BLOCK_M], -float("inf"), tl.float32)
    total, mine = tl.zeros([BLOCK_M], tl.float32), tl.zeros([BLOCK_M], tl.float32)
    for first in range(0, V, BLOCK_V):
        words = first + tl.arange(0, BLOCK_V)
        logits = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)
        for k in range(0, K, BLOCK_K):
            at = k + tl.arange(0, BLOCK_K)
            x_tile = tl.load(x + rows[:, None] * K + at[None, :], mask=rows[:, None] < M, other=0.0)
            w_tile = tl.load(weight + words[None, :] * K + at[:, None], mask=words[None, :] < V, other=0.0)
            logits = tl.dot(x_tile, w_tile, logits)
        logits = tl.where(words[None, :] < V, logits, -float("inf"))
        new = tl.maximum(highest, tl.max(logits, 1))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(logits - new[:, None]), 1)
        mine += tl.sum(tl.where(words[None, :] == target[:, None], logits, 0.0), 1)
        highest = new
    tl.store(lse + rows, highest + tl.log(total), mask=rows < M)
    tl.store(own + rows, mine, mask=rows < M)


@case("cross entropy of a linear layer bf16")
def linear_loss():
    M, V, K = 60, 300, 128
    x, weight, targets = torch.randn(M, K).bfloat16(), torch.randn(V, K).bfloat16(), torch.randint(0, V, (M,)).int()
    logits = x.double() @ weight.double().T
    expected = {"lse": logits.logsumexp(-1), "own": logits.gather(1, targets.long()[:, None])[:, 0]}
    arguments = {"x": x, "weight": weight, "lse": poisoned(M), "own": poisoned(M), "targets": targets}
    arguments |= {"M": M, "V": V, "K": K}
    constants = {"BLOCK_M": 64, "BLOCK_V": 128, "BLOCK_K": 32}
    return Case(linear_loss_kernel, (1,), arguments, constants, expected, 4, 3)


@triton.jit
def adamw_kernel(
    p, g, m, v, m_scale, v_scale, rate, beta1, beta2, eps, decay, correction1, correction2, n, BLOCK: tl.constexpr
):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    grad = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    first = tl.load(m + at, mask=mask, other=0).to(tl.float32) * tl.load(m_scale + block)
    second = tl.load(v + at, mask=mask, other=0).to(tl.float32) * tl.load(v_scale + block)
    first = beta1 * first + (1 - beta1) * grad
    second = beta2 * second + (1 - beta2) * grad * grad
    value = tl.load(p + at, mask=mask, other=0.0).to(tl.float32) * (1 - rate * decay)
    value -= rate * (first / correction1) / (tl.sqrt(second / correction2) + eps)
    tl.store(p + at, value.to(tl.bfloat16), mask=mask)
    largest1, largest2 = tl.max(tl.abs(first), 0) / 127.0, tl.max(second, 0) / 255.0
    tl.store(m + at, tl.floor(first / largest1 + 0.5).to(tl.int8), mask=mask)
    tl.store(v + at, (second / largest2 + 0.5).to(tl.uint8), mask=mask)
    tl.store(m_scale + block, largest1)
    tl.store(v_scale + block, largest2)


@case("AdamW of 8-bit states bf16")
def adamw():
    n, B = 3000, 1024
    blocks = triton.cdiv(n, B)
    p, g = torch.randn(n).bfloat16(), torch.randn(n).bfloat16()
    m, v = torch.randint(-127, 128, (n,)).to(torch.int8), torch.randint(0, 256, (n,)).to(torch.uint8)
    m_scale, v_scale = torch.rand(blocks) * 0.01, torch.rand(blocks) * 0.001
    rate, beta1, beta2, eps, decay, c1, c2 = 0.01, 0.9, 0.99, 1e-8, 0.1, 0.5, 0.25
    of = torch.arange(n) // B
    first = beta1 * m.double() * m_scale.double()[of] + (1 - beta1) * g.double()
    second = beta2 * v.double() * v_scale.double()[of] + (1 - beta2) * g.double().square()
    value = p.double() * (1 - rate * decay) - rate * first / c1 / ((second / c2).sqrt() + eps)
    scales = [
        torch.stack([x[of == b].abs().max() for b in range(blocks)]) / d for x, d in ((first, 127), (second, 255))
    ]
    arguments = {"p": p, "g": g, "m": m, "v": v, "m_scale": m_scale, "v_scale": v_scale, "rate": rate, "beta1": beta1}
    arguments |= {"beta2": beta2, "eps": eps, "decay": decay, "correction1": c1, "correction2": c2, "n": n}
    expected = {"p": value, "m_scale": scales[0], "v_scale": scales[1]}
    expected |= {"m": first / scales[0][of], "v": second / scales[1][of]}
    return Case(adamw_kernel, (blocks,), arguments, {"BLOCK": B}, expected, 4, 1, 1.2e-2)


@triton.jit
def gate_backward_kernel(x, dy, dx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < N
    gate = tl.load(x + row * 2 * N + columns, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(x + row * 2 * N + N + columns, mask=mask, other=0.0).to(tl.float32)
    grad = tl.load(dy + row * N + columns, mask=mask, other=0.0).to(tl.float32)
    cubic = 0.7978845608028654 * (gate + 0.044715 * gate * gate * gate)
    tanh = 2 * tl.sigmoid(2 * cubic) - 1
    slope = 0.5 * (1 + tanh) + 0.5 * gate * (1 - tanh * tanh) * 0.7978845608028654 * (1 + 0.134145 * gate * gate)
    tl.store(dx + row * 2 * N + columns, (grad * value * slope).to(dx.dtype.element_ty), mask=mask)
    tl.store(dx + row * 2 * N + N + columns, (grad * 0.5 * gate * (1 + tanh)).to(dx.dtype.element_ty), mask=mask)


@case("gated gelu backward bf16")
def gate_backward():
    M, N = 8, 1000
    x, dy = torch.randn(M, 2 * N).bfloat16(), torch.randn(M, N).bfloat16()
    given = x.double().requires_grad_()
    (functional.gelu(given[:, :N], approximate="tanh") * given[:, N:]).backward(dy.double())
    arguments = {"x": x, "dy": dy, "dx": poisoned(M, 2 * N, dtype=x.dtype), "N": N}
    return Case(gate_backward_kernel, (M, 1), arguments, {"BLOCK": 1024}, {"dx": given.grad}, 4, 1)


@triton.jit
def gated_matmul_kernel(x, w, out, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    gate = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    value = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + tl.arange(0, BLOCK_K)
        x_tile = tl.load(x + rows[:, None] * K + at[None, :])
        gate = tl.dot(x_tile, tl.load(w + columns[None, :] * K + at[:, None]), gate)
        value = tl.dot(x_tile, tl.load(w + (N + columns)[None, :] * K + at[:, None]), value)
    tl.store(out + rows[:, None] * N + columns[None, :], (gate * tl.sigmoid(gate) * value).to(tl.bfloat16))


@case("two products of one tile, gated, bf16")
def gated_matmul():
    M, N, K = 64, 128, 256
    x, w = torch.randn(M, K).bfloat16(), torch.randn(2 * N, K).bfloat16()
    both = x.double() @ w.double().T
    arguments = {"x": x, "w": w, "out": poisoned(M, N, dtype=x.dtype), "N": N, "K": K}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
    expected = {"out": functional.silu(both[:, :N]) * both[:, N:]}
    return Case(gated_matmul_kernel, (1, 2), arguments, constants, expected, 4, 3)


@triton.jit
def chunk_scan_kernel(
    cb, x, decay, c, state, d, out, T, P: tl.constexpr, S: tl.constexpr, C: tl.constexpr, BLOCK_K: tl.constexpr
):
    chunk, head = tl.program_id(0), tl.program_id(1)
    rows, channels, states = tl.arange(0, C), tl.arange(0, P), tl.arange(0, S)
    base = head * T + chunk * C
    own = tl.load(decay + base + rows)
    c_tile = tl.load(c + (base + rows)[:, None] * S + states[None, :])
    state_tile = tl.load(state + ((head * (T // C) + chunk) * S + states)[:, None] * P + channels[None, :])
    acc = tl.dot(c_tile, state_tile) * tl.exp(own)[:, None]
    for k in range(0, C, BLOCK_K):
        at = k + tl.arange(0, BLOCK_K)
        weights = tl.load(cb + (base + rows)[:, None] * C + at[None, :]).to(tl.float32)
        weights *= tl.exp(own[:, None] - tl.load(decay + base + at)[None, :])
        weights = tl.where(rows[:, None] >= at[None, :], weights, 0.0)
        x_tile = tl.load(x + (base + at)[:, None] * P + channels[None, :])
        acc = tl.dot(weights.to(x_tile.dtype), x_tile, acc)
    x_own = tl.load(x + (base + rows)[:, None] * P + channels[None, :]).to(tl.float32)
    acc += x_own * tl.load(d + head)
    tl.store(out + (base + rows)[:, None] * P + channels[None, :], acc.to(out.dtype.element_ty))


@case("a state space's chunks scanned bf16")
def chunk_scan():
    H, T, C, P, S = 2, 128, 64, 64, 32
    cb, x, c = torch.randn(H, T // C, C, C).bfloat16(), torch.randn(H, T, P).bfloat16(), torch.randn(H, T, S).bfloat16()
    decay, state = -torch.rand(H, T // C, C).cumsum(-1) * 0.1, torch.randn(H, T // C, S, P).bfloat16()
    d = torch.randn(H)
    own = decay.double()
    weights = (cb.double() * torch.exp(own[..., :, None] - own[..., None, :])).tril()
    exact = weights @ x.double().unflatten(1, (-1, C))
    exact = exact + (c.double().unflatten(1, (-1, C)) @ state.double()) * own.exp()[..., None]
    exact = exact.flatten(1, 2) + x.double() * d.double()[:, None, None]
    arguments = {"cb": cb, "x": x, "decay": decay, "c": c, "state": state, "d": d}
    arguments |= {"out": poisoned(H, T, P, dtype=x.dtype), "T": T}
    constants = {"P": P, "S": S, "C": C, "BLOCK_K": 32}
    return Case(chunk_scan_kernel, (T // C, H), arguments, constants, {"out": exact}, 4, 2)


@triton.jit
def state_update_kernel(state, x, dt, dt_bias, a, b, c, d, z, out, D, S: tl.constexpr, BLOCK: tl.constexpr):
    batch = tl.program_id(1)
    rows, states = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, S)
    mask = rows < D
    at = (batch * D + rows)[:, None] * S + states[None, :]
    old = tl.load(state + at, mask=mask[:, None], other=0.0)
    value = tl.load(x + batch * D + rows, mask=mask, other=0.0).to(tl.float32)
    step = tl.load(dt + batch * D + rows, mask=mask, other=0.0).to(tl.float32) + tl.load(dt_bias + rows, mask=mask)
    step = tl.where(step <= 20.0, tl.log(1 + tl.exp(step)), step)
    rate = tl.load(a + rows[:, None] * S + states[None, :], mask=mask[:, None], other=0.0)
    b_row, c_row = tl.load(b + batch * S + states), tl.load(c + batch * S + states)
    new = old * tl.exp(rate * step[:, None]) + b_row[None, :] * (step * value)[:, None]
    tl.store(state + at, new, mask=mask[:, None])
    y = tl.sum(new * c_row[None, :], 1) + value * tl.load(d + rows, mask=mask, other=0.0)
    gate = tl.load(z + batch * D + rows, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + batch * D + rows, y * gate * tl.sigmoid(gate), mask=mask)


@case("a step of a selective state space f32")
def state_update():
    B, D, S = 2, 100, 16
    state, x, dt, z = torch.randn(B, D, S), *(torch.randn(B, D).half() for _ in range(3))
    dt_bias, a, d, b, c = torch.rand(D), -torch.rand(D, S), torch.randn(D), torch.randn(B, S), torch.randn(B, S)
    step = functional.softplus(dt.double() + dt_bias.double())
    new = (
        state.double() * torch.exp(a.double() * step[..., None]) + b.double()[:, None] * (step * x.double())[..., None]
    )
    y = (new * c.double()[:, None]).sum(-1) + x.double() * d.double()
    arguments = {"state": state, "x": x, "dt": dt, "dt_bias": dt_bias, "a": a, "b": b, "c": c, "d": d, "z": z}
    arguments |= {"out": poisoned(B, D), "D": D}
    expected = {"state": new, "out": y * functional.silu(z.double())}
    return Case(state_update_kernel, (2, B), arguments, {"S": S, "BLOCK": 64}, expected, 4, 1, 1e-4)


@triton.jit
def _linear_step(a, x, b, y):
    return a * b, b * x + y


@triton.jit
def recurrence_kernel(gate, x, out, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    steps, channels = tl.arange(0, BLOCK_T), tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    carried = tl.zeros([BLOCK_D], tl.float32)
    for start in range(0, T, BLOCK_T):
        at = (start + steps)[:, None] * D + channels[None, :]
        g, value = tl.load(gate + at).to(tl.float32), tl.load(x + at).to(tl.float32)
        decays, values = tl.associative_scan((g, value), 0, _linear_step)
        values += decays * carried[None, :]
        tl.store(out + at, values.to(out.dtype.element_ty))
        carried = tl.sum(tl.where(steps[:, None] == BLOCK_T - 1, values, 0.0), 0)


@case("a gated linear recurrence scanned by chunks bf16")
def recurrence():
    T, D = 128, 128
    gate, x = torch.rand(T, D).bfloat16(), torch.randn(T, D).bfloat16()
    carried, rows = torch.zeros(D).double(), []
    for t in range(T):
        carried = gate[t].double() * carried + x[t].double()
        rows.append(carried)
    arguments = {"gate": gate, "x": x, "out": poisoned(T, D, dtype=x.dtype), "T": T, "D": D}
    constants = {"BLOCK_T": 32, "BLOCK_D": 32}
    return Case(recurrence_kernel, (4,), arguments, constants, {"out": torch.stack(rows)}, 4, 1)


@triton.jit
def short_convolution_kernel(x, state, weight, bias, out, D, W: tl.constexpr, BLOCK: tl.constexpr):
    batch, channels = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = channels < D
    at = state + (batch * D + channels) * (W - 1)
    total = tl.load(bias + channels, mask=mask, other=0.0).to(tl.float32)
    for i in tl.static_range(W - 1):
        old = tl.load(at + i, mask=mask, other=0.0)
        total += old.to(tl.float32) * tl.load(weight + channels * W + i, mask=mask, other=0.0)
        if i > 0:
            tl.store(at + i - 1, old, mask=mask)
    new = tl.load(x + batch * D + channels, mask=mask, other=0.0)
    total += new.to(tl.float32) * tl.load(weight + channels * W + W - 1, mask=mask, other=0.0)
    tl.store(at + W - 2, new, mask=mask)
    tl.store(out + batch * D + channels, (total * tl.sigmoid(total)).to(out.dtype.element_ty), mask=mask)


@case("a step of a short convolution bf16")
def short_convolution():
    B, D, W = 3, 200, 4
    x, state, weight, bias = (torch.randn(*size).bfloat16() for size in ((B, D), (B, D, W - 1), (D, W), (D,)))
    window = torch.cat([state, x[..., None]], -1)
    total = (window.double() * weight.double()).sum(-1) + bias.double()
    arguments = {"x": x, "state": state, "weight": weight, "bias": bias, "out": poisoned(B, D, dtype=x.dtype), "D": D}
    expected = {"out": functional.silu(total), "state": window[..., 1:].double()}
    return Case(short_convolution_kernel, (B, 1), arguments, {"W": W, "BLOCK": 256}, expected, 4, 1)
