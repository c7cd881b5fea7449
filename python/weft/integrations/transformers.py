# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft as an attention of Hugging Face's transformers: ``register()``, then ``attn_implementation="weft"``.

A model makes its mask once a forward pass, by the mask interface, and hands it to every layer's attention. The mask
here is a pattern of weft's: a mask function that is a pattern with formulas becomes it, any other is traced, and one
that cannot be traced is refused where it is used. None is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch.nn.attention.flex_attention import BlockMask
from transformers.masking_utils import causal_mask_function

from weft.attention.attend import attend
from weft.attention.block_masks import mask_pattern
from weft.compiler import places
from weft.patterns import Pattern, causal, full, mask, window
from weft.programs.torch_reads import AsTorch

# Patterns of which only the distance from the query to the key counts. Others without arrays and functions are of
# positions, which are the mask function's where the first key is at position 0.
_DISTANCES = frozenset(("full", "causal", "window", "and", "or", "not"))


def register(name: str = "weft") -> None:
    """Make ``attn_implementation=name`` of transformers' models attention by Weft, masks included."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"expected a name to register, but got {places.described(name)}")
    transformers.AttentionInterface.register(name, attention)
    transformers.AttentionMaskInterface.register(name, attention_mask)


class PatternMask(BlockMask):
    """A pattern in the place of a model's mask [B, 1, N, M]. It has no tables; transformers hands on BlockMasks that
    have four axes as they are."""

    def __init__(self, pattern: Pattern, shape: tuple[int, int, int, int]):
        self.pattern = pattern
        self._shape = shape
        self.seq_lengths = shape[2:]

    @property
    def shape(self) -> tuple[int, ...]:
        """[B, 1, N, M]."""
        return self._shape

    def to(self, device: Any) -> PatternMask:
        """Itself: what it reads is on the device of the model's inputs."""
        return self

    def contiguous(self) -> PatternMask:
        """Itself, where a generation asks it as it would a tensor."""
        return self

    def __repr__(self) -> str:
        return f"<mask {self.pattern!r} {list(self._shape)}>"

    __str__ = __repr__


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    **_: Any,
) -> PatternMask:
    """The mask of a model's layers, as transformers' mask interface asks for it.

    ``mask_function(b, h, q_idx, kv_idx)`` says which pairs attend, of positions in the whole sequence: query n is at
    n + q_offset, key m at m + kv_offset. ``attention_mask`` [B, positions] of bool is false where a token is padding.
    """
    found = _placed(mask_function, q_offset, kv_offset, kv_length - q_length)
    if attention_mask is not None:
        found = found & _padding(attention_mask[:, kv_offset : kv_offset + kv_length], kv_length)
    return PatternMask(found, (batch_size, 1, q_length, kv_length))


def _placed(function: Callable[..., Any], queries: Any, keys: int, longer: int) -> Pattern:
    """The pattern of a mask function for queries and keys that start at these positions, of ``longer`` more keys.

    Where the last query is at the last key, as in a cache that grows, a pattern of distances is the function's; one of
    positions needs keys from position 0 too. Elsewhere positions are computed from the offsets, which are tensors:
    each step of a generation has others, and one compiled form serves them all. They are copied: a static cache moves
    its own on in place before its layer's attention runs.
    """
    if isinstance(queries, int) and queries - keys == longer:
        found = mask_pattern(function, True)
        if queries == keys == 0 or (_spellings(found) <= _DISTANCES if keys else found.is_plain):
            return found
    n0, m0 = (None if isinstance(x, int) and x == 0 else torch.as_tensor(x).clone() for x in (queries, keys))

    def moved(b: Any, h: Any, n: Any, m: Any) -> Any:
        return function(b, h, n if n0 is None else n + n0, m if m0 is None else m + m0)

    return mask(AsTorch(moved))


def _spellings(pattern: Pattern) -> set[str]:
    return {pattern.spelling}.union(*map(_spellings, pattern.parts))


def _padding(seen: torch.Tensor, keys: int) -> Pattern:
    """The pairs whose key is no padding: ``seen`` [B, positions] of bool; those that it does not name are padding."""
    if seen.shape[1] == keys and bool(seen.all()):
        return full()
    seen = torch.nn.functional.pad(seen.bool(), (0, keys - seen.shape[1]))
    return mask(AsTorch(lambda b, h, n, m: seen[b, m]))


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
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """A layer's attention, as transformers' attention interface calls it: query [B, H, N, D], key and value
    [B, Hkv, M, D] to ([B, N, H, D], None).

    ``softcap`` caps the scores by tanh, ``s_aux`` [H] are sinks, ``position_bias`` [B, H, N, M] is added to the scores.
    ``dropout`` draws a seed from torch's generator. The weights themselves (output_attentions), head masks and paged
    caches are refused.
    """
    refuse(more)
    pattern, bias = _allowed(module, query, key, attention_mask, is_causal, sliding_window)
    if position_bias is not None:
        bias = _added(position_bias[..., : key.shape[2]].to(query.dtype), bias)
    cap = None if softcap is None else (lambda s, b, h, n, m: softcap * torch.tanh(s / softcap))
    sink = None if s_aux is None else s_aux.to(query.dtype)
    seed = torch.randint(-(2**31), 2**31 - 1, (2,), device=query.device).int() if dropout else None
    dropped = {"dropout_p": dropout, "dropout_seed": seed}
    out = attend(query, key, value, pattern, score_mod=cap, bias=bias, sink=sink, scale=scaling, **dropped)
    return out.transpose(1, 2).contiguous(), None


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
        return given.pattern, None
    if isinstance(given, torch.Tensor) and given.ndim == 4:
        own = given[..., : key.shape[2]]
        return None, own if own.dtype == torch.bool else own.to(query.dtype)
    if given is not None:
        what = f"{list(given.shape)}" if isinstance(given, torch.Tensor) else places.described(given)
        raise places.error(
            f"expected a mask [B, H, N, M], or one that 'weft' makes, but got {what}",
            "weft.integrations.transformers.register()",
        )
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
