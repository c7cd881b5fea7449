# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft as torch's scaled_dot_product_attention: an entry of torch's registry of flash implementations (torch 2.13).

    import weft.integrations.sdpa                                # registers "weft", and changes nothing yet
    torch.nn.attention.activate_flash_attention_impl("weft")     # or weft.integrations.sdpa.activate()
    torch.nn.attention.restore_flash_attention_impl()            # or weft.integrations.sdpa.restore()

While it is active, what torch would compute by its flash attention, on a CPU or a GPU, is computed by Weft, forward and
backward. torch still chooses among its back ends (torch.nn.attention.sdpa_kernel), and what Weft does not take
(``objection``) goes to torch's own flash attention.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

from weft.attention.attend import attend
from weft.patterns import Pattern, causal, mask
from weft.programs import running
from weft.programs.calls import Call
from weft.programs.program import Program

NAME = "weft"
_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_CPU = "aten::_scaled_dot_product_flash_attention_for_cpu"
_CUDA = "aten::_scaled_dot_product_flash_attention"


def activate() -> None:
    """Compute torch's flash attention by Weft from now on, in the place of any other implementation."""
    activate_flash_attention_impl(NAME)


def restore() -> None:
    """Compute torch's flash attention by torch again. It changes nothing where Weft is not active."""
    if current_flash_attention_impl() == NAME:
        restore_flash_attention_impl()


def objection(query: Any, key: Any, value: Any, dropout_p: float = 0.0) -> str | None:
    """Why a call of scaled_dot_product_attention on [B, H, N, D] tensors goes to torch and not to Weft; None where it
    does not."""
    if dropout_p:
        return f"expected no dropout, but got dropout_p={dropout_p}"
    if query.dtype not in _TYPES:
        return f"expected float16, bfloat16 or float32, but got {str(query.dtype).removeprefix('torch.')}"
    if 0 in (*query.shape, *key.shape):
        return f"expected at least one number, but got {list(query.shape)} and {list(key.shape)}"
    for x in (query, value):
        if x.shape[-1] % 8:
            return f"expected a head size that 8 divides, but got {x.shape[-1]}"
    return None


# ---- The program -----------------------------------------------------------------------------------------------------


def _attention(q: Any, k: Any, v: Any, pattern: Pattern | None, bias: Any, scale: float | None) -> Any:
    return attend(q, k, v, pattern, bias=bias, scale=scale, return_lse=True)


_program = Program(_attention)


def _top_left(b: Any, h: Any, n: Any, m: Any) -> Any:
    return m <= n


def _pattern(is_causal: bool, queries: int, keys: int) -> Pattern | None:
    """torch's is_causal counts queries and keys from the first, weft.causal() from the last."""
    if not is_causal:
        return None
    return causal() if queries == keys else mask(_top_left)


def _call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool, bias: Any, scale: float | None) -> Call:
    call = _program.bind((q, k, v, _pattern(is_causal, q.shape[2], k.shape[2]), bias, scale), {})
    # torch computes the gradient of a mask by other means: here it has none
    facts = (
        dataclasses.replace(each, constant=name == "bias") for name, each in zip(call.names, call.facts, strict=True)
    )
    return dataclasses.replace(call, facts=tuple(facts))


def _forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, is_causal: bool, bias: Any, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output, with the strides of the queries, and the log-sum-exp [B, H, N]."""
    call = _call(q, k, v, is_causal, bias, scale)
    traced = _program.trace(call)
    arrays = running.prepared(traced, call.arrays)
    out, lse = running.run(running.tuned(traced, arrays, True), "", arrays)
    return _laid_out(out, torch.empty_like(q, memory_format=torch.preserve_format).stride()), lse


def _backward(
    grad_out: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    is_causal: bool,
    bias: Any,
    scale: float | None,
) -> tuple[torch.Tensor, ...]:
    """The gradients of queries, keys and values, given what the forward gave."""
    call = _call(q, k, v, is_causal, bias, scale)
    traced = _program.trace(call)
    arrays = running.prepared(traced, call.arrays)
    form = running.tuned(traced, arrays, True)
    results = (out.contiguous(), lse.contiguous())
    saved = running.Saved(form, tuple(arrays), tuple(results[number] for number in form.saved_outputs))
    found = running.backward(saved, [grad_out, None])
    return tuple(found[name] for name in ("q", "k", "v"))


def _laid_out(x: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """The tensor with these strides, which torch's compiler counts on: copied where it has others."""
    return (
        x if x.stride() == strides else torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(x)
    )


def _by_tokens(x: torch.Tensor) -> torch.Tensor:
    """[B, H, N, ...] laid out in memory as [B, N, H, ...]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


# ---- torch's operations ----------------------------------------------------------------------------------------------


@functools.cache
def _own(name: str, key: str) -> Callable[..., Any] | None:
    """torch's kernel of an operation, taken before another takes its place; None where torch was built without it."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
        return None
    kernel = torch.library.get_kernel(name, key)
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key))
    return lambda *args, **keywords: kernel.call_boxed(keys, *args, **keywords)


def _by_torch(name: str, key: str, wrong: str) -> Callable[..., Any]:
    own = _own(name, key)
    if own is None:
        raise RuntimeError(f"{wrong}, and torch has no kernel of {name} for {key}")
    return own


def forward_on_cpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_flash_attention_for_cpu: (output, log-sum-exp)."""
    if wrong := objection(query, key, value, dropout_p):
        own = _by_torch(_CPU, "CPU", wrong)
        return own(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)
    out, lse = _forward(query, key, value, is_causal, attn_mask, scale)
    return out, _by_tokens(lse)


def backward_on_cpu(
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_flash_attention_for_cpu_backward: the gradients of query, key and value."""
    if wrong := objection(query, key, value, dropout_p):
        own = _by_torch(f"{_CPU}_backward", "CPU", wrong)
        given = (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal)
        return own(*given, attn_mask=attn_mask, scale=scale)
    found = _backward(grad_out, query, key, value, out, logsumexp, is_causal, attn_mask, scale)
    return tuple(map(_by_tokens, found))


def forward_on_cuda(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_flash_attention: output, log-sum-exp, None, None, N, M, and what dropout would need."""
    wrong = objection(query, key, value, dropout_p)
    if return_debug_mask and not wrong:
        wrong = "expected return_debug_mask=False, but got True"
    if wrong:
        own = _by_torch(_CUDA, "CUDA", wrong)
        return own(query, key, value, dropout_p, is_causal, return_debug_mask, scale=scale)
    out, lse = _forward(query, key, value, is_causal, None, scale)
    device = query.device
    state = torch.zeros((2,), dtype=torch.uint64, device=device)
    offset = torch.zeros((), dtype=torch.uint64, device=device)
    none = torch.empty(0, dtype=query.dtype, device=device)
    return out, lse, None, None, query.shape[2], key.shape[2], state, offset, none


def backward_on_cuda(
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    logsumexp: torch.Tensor,
    cum_seq_q: torch.Tensor | None,
    cum_seq_k: torch.Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: torch.Tensor,
    philox_offset: torch.Tensor,
    *,
    scale: float | None = None,
) -> Any:
    """aten::_scaled_dot_product_flash_attention_backward: the gradients of query, key and value."""
    if wrong := objection(query, key, value, dropout_p):
        given = (grad_out, query, key, value, out, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal)
        own = _by_torch(f"{_CUDA}_backward", "CUDA", wrong)
        return own(*given, philox_seed, philox_offset, scale=scale)
    return _backward(grad_out, query, key, value, out, logsumexp, is_causal, None, scale)


# Which operation is which function, for which kind of device.
_OPERATIONS = (
    (_CPU, forward_on_cpu, "CPU"),
    (f"{_CPU}_backward", backward_on_cpu, "CPU"),
    (_CUDA, forward_on_cuda, "CUDA"),
    (f"{_CUDA}_backward", backward_on_cuda, "CUDA"),
)


@dataclasses.dataclass
class _Active:
    """Weft's kernels in torch's dispatcher, for as long as the registry keeps this."""

    library: torch.library.Library | None

    def remove(self) -> None:
        """Give torch its own kernels back."""
        if self.library is not None:
            self.library._destroy()
        self.library = None


def _register() -> _Active:
    for name, _, key in _OPERATIONS:
        _own(name, key)
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Warning only once for all operators")  # kernels are to be replaced here
        for name, function, key in _OPERATIONS:
            library.impl(name.removeprefix("aten::"), function, key)
    return _Active(library)


register_flash_attention_impl(NAME, register_fn=_register)
