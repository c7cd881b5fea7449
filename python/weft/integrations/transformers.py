# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft as an attention of Hugging Face's transformers: ``register()``, then ``attn_implementation="weft"``.

A model makes its mask once a forward pass, by the mask interface, and hands it to every layer's attention: see
transformers_masks.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers

from weft.attention.attend import attend
from weft.compiler import places
from weft.integrations.transformers_masks import PatternMask, attention_mask, habits
from weft.patterns import Pattern, causal, full, window

__all__ = ["PatternMask", "attention", "attention_mask", "refuse", "register"]


def register(name: str = "weft") -> None:
    """Make ``attn_implementation=name`` of transformers' models attention by Weft, masks included."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"expected a name to register, but got {places.described(name)}")
    transformers.AttentionInterface.register(name, attention)
    transformers.AttentionMaskInterface.register(name, attention_mask)


def attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    sliding_window: int | None = None,
    is_causal: bool | None = None,
    position_bias: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    block_indices: torch.Tensor | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """A layer's attention, as transformers' attention interface calls it: query [B, H, N, D], key and value
    [B, Hkv, M, D] to ([B, N, H, D], None).

    ``softcap`` caps the scores by tanh, ``s_aux`` [H] are sinks, ``position_bias`` [B, H, N, M] is added to the scores.
    ``sinks`` [B, H, N, 1] are sinks of each query. ``indices`` [B, N, K] are the keys that a query chose, or
    ``block_indices`` [B, G, N, K] blocks of keys, for the heads of each of G groups; below 0 is none.
    ``dropout`` draws a seed from torch's generator. The weights themselves (output_attentions), head masks and paged
    caches are refused.
    """
    refuse(more)
    pattern, bias = _allowed(module, query, key, attention_mask, is_causal, sliding_window)
    if indices is not None:
        bias = _where(_chosen(indices[:, None], key.shape[2]), bias)
    if block_indices is not None:
        bias = _where(_of_blocks(module, block_indices, query.shape[1], key.shape[2]), bias)
    if position_bias is not None:
        bias = _added(position_bias[..., : key.shape[2]].to(query.dtype), bias)
    cap = None if softcap is None else (lambda s, b, h, n, m: softcap * torch.tanh(s / softcap))
    sink = None if s_aux is None else s_aux.to(query.dtype)
    seed = torch.randint(-(2**31), 2**31 - 1, (2,), device=query.device).int() if dropout else None
    dropped = {"dropout_p": dropout, "dropout_seed": seed}
    given = {"score_mod": cap, "bias": bias, "sink": sink, "scale": scaling, **dropped}
    if sinks is None:
        out = attend(query, key, value, pattern, **given)
    else:  # the normaliser has exp(sink) more: the weights' sum is that of a logistic function
        out, lse = attend(query, key, value, pattern, **given, return_lse=True)
        out = out * torch.sigmoid(lse[..., None] - sinks).to(out.dtype)
    return out.transpose(1, 2).contiguous(), None


def _chosen(numbers: torch.Tensor, count: int) -> torch.Tensor:
    """[..., count] of bool, true at the numbers [..., K]; those below 0 are none."""
    told = torch.where(numbers < 0, count, numbers).long()
    none = torch.zeros(*told.shape[:-1], count + 1, dtype=torch.bool, device=told.device)
    return none.scatter(-1, told, True)[..., :count]


def _of_blocks(module: torch.nn.Module, blocks: torch.Tensor, heads: int, keys: int) -> torch.Tensor:
    """The pairs [B, H, N, M] whose key is in a block that the query's group chose, of bool."""
    size = getattr(getattr(module, "indexer", None), "block_size", None)
    if not isinstance(size, int) or heads % blocks.shape[1]:
        raise places.error(
            f"expected 'block_indices' of groups that divide {heads} heads, and the layer's 'indexer.block_size', "
            f"but got {list(blocks.shape)} and {size}"
        )
    chosen = _chosen(blocks, -(-keys // size)).repeat_interleave(size, -1)[..., :keys]
    return chosen.repeat_interleave(heads // blocks.shape[1], 1)


def _where(chosen: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """What is added to the scores, or of bool who attends, where a pair is chosen."""
    if bias is None:
        return chosen
    return chosen & bias if bias.dtype == torch.bool else _added(bias, chosen)


def _added(numbers: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Numbers that are added to the scores, beside another bias, or where one of bool is true."""
    if bias is None:
        return numbers
    return numbers.masked_fill(~bias, -torch.inf) if bias.dtype == torch.bool else numbers + bias


def refuse(more: dict[str, Any], *others: str) -> None:
    """Refuse what an attention is handed beside its arguments and that would change its result, ``others`` too."""
    for name in ("head_mask", "output_attentions", "cache", "layer_head_mask", *others):
        given = more.get(name)
        if given is not None and given is not False:
            raise places.error(
                f"expected attention without '{name}', but got {places.described(given)}",
                "load the model with attn_implementation='eager' for it",
            )


def _allowed(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    given: Any,
    is_causal: bool | None,
    left: int | None,
) -> tuple[Pattern | None, torch.Tensor | None]:
    """Which pairs attend: a pattern, or a bias [B, H, N, M] of bool or of numbers that are added to the scores."""
    if isinstance(given, PatternMask):
        fits = given.shape[2:] == (query.shape[2], key.shape[2])
        if given.pattern == full() or (fits and given.pattern is not None):
            return given.pattern, None
        given = given.numbers()
    if isinstance(given, torch.Tensor) and given.ndim == 4:
        own = given[..., : key.shape[2]]
        return None, own if own.dtype == torch.bool else own.to(query.dtype)
    if given is not None:
        what = f"{list(given.shape)}" if isinstance(given, torch.Tensor) else places.described(given)
        raise places.error(
            f"expected a mask [B, H, N, M], or one that 'weft' makes, but got {what}",
            "weft.integrations.transformers.register()",
        )
    if habits(type(module).__module__) == "sums":
        return None, None
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", True))
    if not is_causal and left is None:
        return None, None
    if not is_causal or (query.shape[2] not in (1, key.shape[2])):
        raise places.error(
            f"expected a mask for {query.shape[2]} queries and {key.shape[2]} keys with is_causal={is_causal} and "
            f"sliding_window={left}, but got None, which does not say which pairs attend"
        )
    return (causal() if left is None else causal() & window(left - 1, None)), None
