# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linear attention: states carried from chunk to chunk, scans, the delta rule."""

import torch
import triton
import triton.language as tl

from . import Case, case, poisoned


@triton.jit
def chunked_kernel(q, k, v, gate, out, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BLOCK_V: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    rows, keys = tl.arange(0, C), tl.arange(0, K)
    values = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    state = tl.zeros([K, BLOCK_V], tl.float32)
    for start in range(0, T, C):
        at = head * T + start + rows
        q_tile = tl.load(q + at[:, None] * K + keys[None, :])
        k_tile = tl.load(k + at[:, None] * K + keys[None, :])
        v_tile = tl.load(v + at[:, None] * V + values[None, :])
        decay = tl.cumsum(tl.load(gate + at), 0)
        last = tl.sum(tl.load(gate + at), 0)
        scores = tl.dot(q_tile, tl.trans(k_tile)) * tl.exp(
            tl.where(rows[:, None] >= rows[None, :], decay[:, None] - decay[None, :], -float("inf"))
        )
        o = tl.dot(scores.to(v.dtype.element_ty), v_tile)
        o += tl.dot(q_tile, state.to(q.dtype.element_ty)) * tl.exp(decay)[:, None]
        weighted = (v_tile * tl.exp(last - decay)[:, None]).to(v.dtype.element_ty)
        state = state * tl.exp(last) + tl.dot(tl.trans(k_tile), weighted)
        tl.store(out + at[:, None] * V + values[None, :], o.to(out.dtype.element_ty))


def recurrence(q, k, v, decay, beta=None):
    """o_t = q_t S_t, S_t = decay_t S_{t-1} + k_t v_t; with beta the delta rule."""
    q, k, v, decay = (x.double() for x in (q, k, v, decay))
    H, T, K = q.shape
    state, out = torch.zeros(H, K, v.shape[-1]).double(), []
    for t in range(T):
        state = state * decay[:, t, None, None]
        value = v[:, t]
        if beta is not None:
            value = beta.double()[:, t, None] * (value - torch.einsum("hkv,hk->hv", state, k[:, t]))
        state = state + k[:, t, :, None] * value[:, None, :]
        out.append(torch.einsum("hkv,hk->hv", state, q[:, t]))
    return torch.stack(out, 1), state


@case("linear attention by chunks bf16")
def chunked():
    H, T, K, V = 2, 192, 64, 64
    q, k, v = (torch.randn(H, T, D).bfloat16() * D**-0.25 for D in (K, K, V))
    gate = torch.nn.functional.logsigmoid(torch.randn(H, T))
    arguments = {"q": q, "k": k, "v": v, "gate": gate, "out": poisoned(H, T, V, dtype=q.dtype), "T": T}
    constants = {"C": 64, "K": K, "V": V, "BLOCK_V": 64}
    expected = {"out": recurrence(q, k, v, gate.double().exp())[0]}
    return Case(chunked_kernel, (1, H), arguments, constants, expected, 4, 2, 2e-2)


@triton.jit
def states_kernel(k, v, states, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr):
    keys, values, rows = tl.program_id(0) * BK + tl.arange(0, BK), tl.arange(0, V), tl.arange(0, C)
    state = tl.zeros([BK, V], tl.float32)
    for chunk in range(0, tl.cdiv(T, C)):
        tl.store(states + chunk * K * V + keys[:, None] * V + values[None, :], state.to(states.dtype.element_ty))
        at = chunk * C + rows
        k_tile = tl.load(k + at[None, :] * K + keys[:, None], mask=at[None, :] < T, other=0.0)
        v_tile = tl.load(v + at[:, None] * V + values[None, :], mask=at[:, None] < T, other=0.0)
        state += tl.dot(k_tile, v_tile)


@case("states of chunks f16")
def states():
    T, K, V, C = 250, 128, 64, 64
    k, v = torch.randn(T, K).half(), torch.randn(T, V).half()
    exact = torch.zeros(4, K, V).double()
    for chunk in range(1, 4):
        exact[chunk] = k[: chunk * C].double().T @ v[: chunk * C].double()
    arguments = {"k": k, "v": v, "states": poisoned(4, K, V), "T": T}
    return Case(states_kernel, (2,), arguments, {"C": C, "K": K, "V": V, "BK": 64}, {"states": exact}, 4, 3)


@triton.jit
def delta_rule_kernel(q, k, v, beta, out, T, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr):
    head = tl.program_id(1)
    keys, values = tl.arange(0, K), tl.program_id(0) * BV + tl.arange(0, BV)
    state = tl.zeros([BV, K], tl.float32)
    for t in range(0, T):
        at = head * T + t
        k_row = tl.load(k + at * K + keys).to(tl.float32)
        q_row = tl.load(q + at * K + keys).to(tl.float32)
        v_row = tl.load(v + at * V + values).to(tl.float32)
        v_row = (v_row - tl.sum(state * k_row[None, :], 1)) * tl.load(beta + at)
        state += k_row[None, :] * v_row[:, None]
        tl.store(out + at * V + values, tl.sum(state * q_row[None, :], 1))


@case("delta rule, a token a step f32")
def delta_rule():
    H, T, K, V = 2, 40, 64, 32
    q, v = torch.randn(H, T, K), torch.randn(H, T, V)
    k, beta = torch.nn.functional.normalize(torch.randn(H, T, K), dim=-1), torch.rand(H, T)
    arguments = {"q": q, "k": k, "v": v, "beta": beta, "out": poisoned(H, T, V), "T": T}
    expected = {"out": recurrence(q, k, v, torch.ones(H, T), beta)[0]}
    return Case(delta_rule_kernel, (4, H), arguments, {"K": K, "V": V, "BV": 8}, expected, 1, 3, 1e-4)


@triton.jit
def combine(a, b, c, d):
    return c * a, c * b + d


@triton.jit
def selective_scan_kernel(gate, x, out, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    rows = tl.arange(0, BLOCK_T)
    state = tl.zeros([BLOCK_D], tl.float32)
    for start in range(0, T, BLOCK_T):
        at = (start + rows)[:, None] * D + columns[None, :]
        a = tl.load(gate + at)
        b = tl.load(x + at)
        decays, sums = tl.associative_scan((a, b), 0, combine)
        y = sums + decays * state[None, :]
        tl.store(out + at, y)
        state = tl.sum(tl.where(rows[:, None] == BLOCK_T - 1, y, 0.0), 0)


@case("selective scan f32")
def selective_scan():
    T, D = 128, 64
    gate, x = torch.rand(T, D), torch.randn(T, D)
    state, exact = torch.zeros(D).double(), []
    for t in range(T):
        state = state * gate[t].double() + x[t].double()
        exact.append(state)
    arguments = {"gate": gate, "x": x, "out": poisoned(T, D), "T": T, "D": D}
    constants = {"BLOCK_T": 32, "BLOCK_D": 32}
    return Case(selective_scan_kernel, (2,), arguments, constants, {"out": torch.stack(exact)}, 4, 3)


@triton.jit
def cumulative_kernel(x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = rows[:, None] * columns + tl.arange(0, BLOCK)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1, reverse=REVERSE))


@case("cumulative sums of rows f32", False)
@case("cumulative sums of rows from the end f32", True)
def cumulative(reverse):
    x = torch.randn(8, 256)
    exact = x.double().flip(1).cumsum(1).flip(1) if reverse else x.double().cumsum(1)
    arguments = {"x": x, "out": poisoned(8, 256), "columns": 256}
    return Case(cumulative_kernel, (2,), arguments, {"ROWS": 4, "BLOCK": 256, "REVERSE": reverse}, {"out": exact})


@triton.jit
def passing_kernel(states, decay, before, chunks, stride_states, stride_before, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    of_chunk, entering = states + at, before + at
    state = tl.zeros([BLOCK], tl.float32)
    for chunk in range(chunks):
        tl.store(entering, state)
        state = state * tl.load(decay + chunk) + tl.load(of_chunk)
        of_chunk += stride_states
        entering += stride_before


@case("states passed from chunk to chunk f32")
def passing():
    CHUNKS, N, BLOCK = 9, 320, 64
    states, decay = torch.randn(CHUNKS, N), torch.rand(CHUNKS)
    state, entering = torch.zeros(N, dtype=torch.float64), []
    for own, kept in zip(states.double(), decay.double(), strict=True):
        entering.append(state)
        state = state * kept + own
    arguments = {"states": states, "decay": decay, "before": poisoned(CHUNKS, N), "chunks": CHUNKS}
    arguments |= {"stride_states": N, "stride_before": N}
    return Case(
        passing_kernel, (N // BLOCK,), arguments, {"BLOCK": BLOCK}, {"before": torch.stack(entering)}, 4, 2, 1e-5
    )


@triton.jit
def taps_kernel(x, taps, out, tokens, stride, C: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    channels = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = channels < C
    first = tl.load(taps + channels, mask=inside, other=0.0)
    second = tl.load(taps + C + channels, mask=inside, other=0.0)
    third = tl.load(taps + 2 * C + channels, mask=inside, other=0.0)
    begin = tl.program_id(0) * BLOCK_T
    row, to = x + begin * stride + channels, out + begin * stride + channels
    before = tl.load(row - stride, mask=inside & (begin >= 1), other=0.0)
    earlier = tl.load(row - 2 * stride, mask=inside & (begin >= 2), other=0.0)
    for i in range(BLOCK_T):
        here = inside & (begin + i < tokens)
        value = tl.load(row + i * stride, mask=here, other=0.0)
        tl.store(to + i * stride, first * earlier + second * before + third * value, mask=here)
        earlier, before = before, value


@case("convolution of tokens, 96 channels of 128, f32")
def taps_over_tokens():
    T, C = 30, 96
    x, taps = torch.randn(T, C), torch.randn(3, C)
    padded = torch.cat([torch.zeros(2, C), x]).double()
    exact = sum(padded[i : i + T] * taps[i].double() for i in range(3))
    arguments = {"x": x, "taps": taps, "out": poisoned(T, C), "tokens": T, "stride": C}
    return Case(taps_kernel, (4, 1), arguments, {"C": C, "BLOCK_T": 8, "BLOCK_C": 128}, {"out": exact}, 4, 2, 1e-5)


@triton.jit
def widened_chunk_kernel(q, k, v, decay, out, T: tl.constexpr, D: tl.constexpr):
    rows, columns = tl.arange(0, T), tl.arange(0, D)
    at = tl.program_id(0) * T * D + rows[:, None] * D + columns[None, :]
    queries, keys = tl.load(q + at).to(tl.float32), tl.load(k + at).to(tl.float32)
    values = tl.load(v + at).to(tl.float32)
    gates = tl.load(decay + tl.program_id(0))
    scores = tl.dot(queries, tl.trans(keys))
    away = rows[:, None] - rows[None, :]
    scores = tl.where(away >= 0, scores * tl.exp(gates * away.to(tl.float32)), 0.0)
    state = tl.dot(tl.trans(keys), values)
    tl.store(out + at, tl.dot(scores, values))
    tl.store(
        out + tl.num_programs(0) * T * D + tl.program_id(0) * D * D + columns[:, None] * D + columns[None, :], state
    )


@case("chunks of a decaying sum, all of it float32, bf16")
def widened_chunk():
    H, T, D = 3, 64, 64
    q, k, v = (torch.randn(H, T, D).bfloat16() for _ in range(3))
    decay = -torch.rand(H)
    away = torch.arange(T).double()[:, None] - torch.arange(T)
    weights = torch.exp(decay.double()[:, None, None] * away).masked_fill(away < 0, 0.0)
    exact = (q.double() @ k.double().mT * weights) @ v.double()
    state = k.double().mT @ v.double()
    arguments = {"q": q, "k": k, "v": v, "decay": decay, "out": poisoned(H * T * D + H * D * D)}
    expected = {"out": torch.cat([exact.flatten(), state.flatten()])}
    return Case(widened_chunk_kernel, (H,), arguments, {"T": T, "D": D}, expected, 4, 2, 2e-3)
