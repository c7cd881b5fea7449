# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linear recurrences by their definitions: a loop over the tokens, and the dense matrix.

q [B, H, N, D], k, v and the numbers of tokens with as many heads or a divisor; computed in float32 at least, results
rounded once.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from weft.testing.attention import wide


def recurrence(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor | None = None,
    beta: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    initial_state: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """o_n = scale · S_nᵀ q_n, token by token, and the state after the last token of each sequence.

    S_n = a_n S_{n-1} + k_n v_nᵀ with a_n = exp(log_decay_n); with ``beta``
    a_n (I - β_n k_n k_nᵀ) S_{n-1} + β_n k_n v_nᵀ.
    """
    heads = q.shape[1]
    wq, wk, wv = (wide(x).repeat_interleave(heads // x.shape[1], 1) for x in (q, k, v))
    scale = q.shape[3] ** -0.5 if scale is None else scale
    decays = (
        None if log_decay is None else wide(log_decay).repeat_interleave(heads // log_decay.shape[1], 1).to(wq.dtype)
    )
    betas = None if beta is None else wide(beta).repeat_interleave(heads // beta.shape[1], 1).to(wq.dtype)
    bounds = [0, q.shape[2]] if cu_seqlens is None else cu_seqlens.tolist()
    outs, states = [], []
    for sequence, (first, past) in enumerate(pairwise(bounds)):
        state = torch.zeros(q.shape[0], heads, q.shape[3], v.shape[3], dtype=wq.dtype)
        if initial_state is not None:
            state = (
                initial_state.to(wq.dtype)
                if cu_seqlens is None
                else initial_state[sequence : sequence + 1].to(wq.dtype)
            )
        for n in range(first, past):
            if decays is not None:
                factor = decays[:, :, n].exp()
                state = state * (factor[..., None] if factor.dim() == 3 else factor[..., None, None])
            value = wv[:, :, n]
            if betas is not None:
                value = betas[:, :, n, None] * (value - torch.einsum("bhd,bhdv->bhv", wk[:, :, n], state))
            state = state + torch.einsum("bhd,bhv->bhdv", wk[:, :, n], value)
            outs.append(scale * torch.einsum("bhd,bhdv->bhv", wq[:, :, n], state))
        states.append(state)
    out = torch.stack(outs, 2) if outs else torch.zeros_like(wv)
    return out.to(q.dtype), torch.cat(states)


def linear_attention_matrix(
    q: torch.Tensor,
    k: torch.Tensor,
    log_decay: torch.Tensor | None = None,
    *,
    scale: float | None = None,
    strict: bool = False,
) -> torch.Tensor:
    """A [B, H, N, N]: A[n, m] = scale · Σ_d q_nd k_md exp(Σ_{i=m+1..n} log_decay_id) for m <= n; m < n where
    ``strict``."""
    heads, tokens = q.shape[1], q.shape[2]
    wq, wk = (wide(x).repeat_interleave(heads // x.shape[1], 1) for x in (q, k))
    scale = q.shape[3] ** -0.5 if scale is None else scale
    order = torch.ones(tokens, tokens, dtype=torch.bool).tril(-1 if strict else 0)
    if log_decay is None or log_decay.dim() == 3:
        products = scale * (wq @ wk.mT)
        if log_decay is not None:
            products = products * _between(wide(log_decay), order).repeat_interleave(heads // log_decay.shape[1], 1)
        return products.masked_fill(~order, 0)
    factors = _between(wide(log_decay).movedim(3, 2), order).repeat_interleave(heads // log_decay.shape[1], 1)
    return scale * torch.einsum("bhnd,bhmd,bhdnm->bhnm", wq, wk, factors)


def _between(decays: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """[..., N, N]: exp of the decays after m up to n; 0 where the order has no such pair."""
    return _sums(decays, order).masked_fill(~order, -torch.inf).exp()


def _sums(decays: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """[..., N, N]: the decays after m up to n."""
    return (decays[..., :, None] * torch.ones_like(order).tril(-1)).cumsum(-2)


def delta_rule_matrix(
    q: torch.Tensor,
    k: torch.Tensor,
    beta: torch.Tensor,
    log_decay: torch.Tensor | None = None,
    *,
    scale: float | None = None,
) -> torch.Tensor:
    """A [B, H, N, N] of the delta rule: that of linear attention times diag(β) (I + L diag(β))⁻¹."""
    heads = q.shape[1]
    keys = k.repeat_interleave(heads // k.shape[1], 1)
    betas = wide(beta).repeat_interleave(heads // beta.shape[1], 1)
    before = linear_attention_matrix(keys, keys, log_decay, scale=1.0, strict=True)
    system = torch.eye(q.shape[2], dtype=before.dtype) + before * betas[..., None, :]
    written = betas[..., :, None] * torch.linalg.inv(system)
    return linear_attention_matrix(q, k, log_decay, scale=scale) @ written


def chunked(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor | None = None,
    beta: torch.Tensor | None = None,
    *,
    initial_state: torch.Tensor | None = None,
    chunk: int = 64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same recurrence by chunks, as kernels have it, in plain operations: decays and the inverses of the delta rule
    are made in float32, all that enters a product is rounded to the type of the values. Gives the final state too."""

    def narrow(x: torch.Tensor) -> torch.Tensor:
        return x.to(v.dtype)

    heads = q.shape[1]
    q, k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (q, k, v))
    if log_decay is not None:
        log_decay = log_decay.repeat_interleave(heads // log_decay.shape[1], 1)
    state = torch.zeros(q.shape[0], heads, q.shape[3], v.shape[3], dtype=wide(q).dtype)
    if initial_state is not None:
        state = initial_state
    outs = []
    for first in range(0, q.shape[2], chunk):
        tokens = slice(first, first + chunk)
        cq, ck, written = q[:, :, tokens], k[:, :, tokens], v[:, :, tokens]
        start = end = last = torch.ones((), dtype=wide(q).dtype)
        own = None if log_decay is None else wide(log_decay[:, :, tokens])
        if own is not None:
            columns = own if own.dim() == 4 else own[..., None]
            sums = columns.cumsum(2)
            start, end, last = sums.exp(), (sums[:, :, -1:] - sums).exp(), sums[:, :, -1].exp()[..., None]
        if beta is not None:
            betas = wide(beta[:, :, tokens])
            before = linear_attention_matrix(ck, ck, own, scale=1.0, strict=True)
            inverse = torch.linalg.inv(torch.eye(before.shape[2], dtype=before.dtype) + before * betas[..., None, :])
            found = wide(written) - wide(narrow(wide(ck) * start) @ narrow(state))
            written = narrow(betas[..., None] * wide(narrow(inverse) @ narrow(found)))
        weights = _decayed_weights(cq, ck, own)
        outs.append(
            (wide(narrow(wide(cq) * start) @ narrow(state)) + wide(narrow(weights) @ written)) * q.shape[3] ** -0.5
        )
        state = last * state + wide(narrow(wide(ck) * end).mT @ written)
    return narrow(torch.cat(outs, 2)), state


def _decayed_weights(q: torch.Tensor, k: torch.Tensor, log_decay: torch.Tensor | None) -> torch.Tensor:
    """The unscaled matrix of one chunk; with decays by channel, of queries and keys that are rounded with half of the
    decays between them each."""
    if log_decay is None or log_decay.dim() == 3 or q.dtype == torch.float64:
        return linear_attention_matrix(q, k, log_decay, scale=1.0)
    order = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
    factors = (0.5 * _sums(log_decay.movedim(3, 2), order)).exp()
    queries = (wide(q).movedim(3, 2)[..., :, None] * factors).to(q.dtype)
    keys = (wide(k).movedim(3, 2)[..., None, :] * factors).to(k.dtype)
    return (wide(queries) * wide(keys)).sum(2).masked_fill(~order, 0)
