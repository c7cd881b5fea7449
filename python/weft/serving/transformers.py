# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Hugging Face's models generating over a cache in pages.

    cache = PagedCache(model.config, batch=4, tokens=1024)
    model.set_attn_implementation("weft_paged")
    model.generate(ids, past_key_values=cache)

Each step writes its keys and values into the pages and attends there; nothing grows, and nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.cache_utils import Cache, CacheLayerMixin

from weft.attention import append, decode
from weft.integrations.transformers import PatternMask, attention_mask, refuse
from weft.patterns import causal, window


class PagedLayer(CacheLayerMixin):
    """One layer's keys and values in pages [P, page, Hkv, D], and how many tokens each sequence has."""

    is_croppable = True

    def __init__(self, cache: PagedCache):
        super().__init__()
        self.cache = cache
        self.tokens = 0
        self.lengths: Any = None

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        """Pages for heads and sizes as the first tokens have them."""
        table, page = self.cache.table, self.cache.page
        self.cache.table = table = table.to(key_states.device)
        self.keys, self.values = (
            new.new_zeros(table.numel(), page, new.shape[1], new.shape[3]) for new in (key_states, value_states)
        )
        self.is_initialized = True

    def update(self, key_states: Any, value_states: Any, *args: Any, **more: Any) -> tuple[Any, Any]:
        """Write the step's keys and values [B, Hkv, N, D]. Gives them as they are: attention finds all in the pages."""
        batch, _, tokens, _ = key_states.shape
        if batch != len(self.cache.table) or self.tokens + tokens > self.cache.tokens:
            raise ValueError(
                f"expected at most {self.cache.tokens} tokens of {len(self.cache.table)} sequences, but got "
                f"{self.tokens + tokens} of {batch}"
            )
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.tokens += tokens
        self.lengths = torch.full((batch,), self.tokens, dtype=torch.int32, device=key_states.device)
        where = {"seqused_k": self.lengths, "block_table": self.cache.table}
        append(self.keys, self.values, key_states, value_states, **where)
        self.cache.latest = self
        return key_states, value_states

    def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
        """How many keys the next queries see, from the first."""
        return self.tokens + int(query_length), 0

    def get_seq_length(self) -> int:
        """How many tokens there are."""
        return self.tokens

    def get_max_length(self) -> int:
        """How many tokens there is room for."""
        return int(self.cache.tokens)

    def reset(self) -> None:
        """Forgets all tokens."""
        self.tokens = 0

    def crop(self, tokens_to_remove: int) -> None:
        """Forgets the last tokens, of a number that is not above 0, as guesses that a model refused are."""
        if tokens_to_remove > 0:
            raise ValueError(f"expected minus a number of tokens to remove, but got {tokens_to_remove}")
        self.tokens = max(0, self.tokens + tokens_to_remove)

    def reorder_cache(self, beam_idx: Any) -> None:
        """Sequence b goes on as beam_idx[b] did. The table stays, whose pages lie sequence by sequence: what moves is
        what they hold."""
        if self.tokens:
            self.keys, self.values = (self._of_sequences(x, beam_idx) for x in (self.keys, self.values))

    def _of_sequences(self, pages: Any, order: Any) -> Any:
        whole = pages.unflatten(0, self.cache.table.shape)
        return whole.index_select(0, order.to(pages.device)).flatten(0, 1)


class PagedCache(Cache):
    """Keys and values of ``batch`` sequences of at most ``tokens`` tokens, in pages of ``page``; for models whose
    attention is "weft_paged", which making one registers."""

    def __init__(self, config: Any, batch: int, tokens: int, page: int = 16):
        each = -(-tokens // page)
        self.page, self.tokens = page, tokens
        self.table = torch.arange(batch * each, dtype=torch.int32).reshape(batch, each)
        self.latest: Any = None
        layers = config.get_text_config(decoder=True).num_hidden_layers
        super().__init__(layers=[PagedLayer(self) for _ in range(layers)])
        AttentionInterface.register("weft_paged", self.attention)
        AttentionMaskInterface.register("weft_paged", attention_mask)

    def attention(
        self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None,
        dropout: float = 0.0, softcap: float | None = None, s_aux: Any = None, sliding_window: int | None = None,
        **more: Any,
    ) -> tuple[Any, None]:  # fmt: skip
        """A layer's attention, over its pages: query [B, H, N, D] to ([B, N, H, D], None)."""
        layer = self.layers[module.layer_idx]
        if layer is not self.latest:
            raise ValueError("expected past_key_values to be the PagedCache that was made last, but got another one")
        refuse(more, "position_bias", "sinks", "indices", "block_indices")
        _check_pages(layer, key, value)
        if not _is_causal(module, more.get("is_causal")):
            raise ValueError("expected attention in causal order, as decoding has it, but got is_causal=False")
        if dropout:
            raise ValueError(f"expected no dropout while generating, but got {dropout}")
        _check_mask(attention_mask)
        pattern = causal() if sliding_window is None else causal() & window(sliding_window - 1, None)
        cap: Callable[..., Any] | None = None
        if softcap is not None:
            cap = lambda s, b, h, n, m: softcap * torch.tanh(s / softcap)  # noqa: E731
        out = decode(
            query, layer.keys, layer.values, pattern, block_table=self.table, seqused_k=layer.lengths,
            scale=scaling, score_mod=cap, sink=None if s_aux is None else s_aux.float(),
        )  # fmt: skip
        return out.transpose(1, 2).contiguous(), None


def _is_causal(module: Any, given: bool | None) -> bool:
    return bool(getattr(module, "is_causal", True) if given is None else given)


def _check_pages(layer: PagedLayer, key: Any, value: Any) -> None:
    """Refuse layers that cache other than the keys and values that they attend to, such as latents."""
    both: Any = (("keys", layer.keys, key), ("values", layer.values, value))
    for name, pages, given in both:
        if pages.shape[2:] != (given.shape[1], given.shape[3]):
            raise ValueError(
                f"expected a layer that attends to the {name} that it caches, of {pages.shape[2]} heads of "
                f"{pages.shape[3]}, but got {given.shape[1]} heads of {given.shape[3]}"
            )


def _check_mask(given: Any) -> None:
    """Refuse masks of padded or packed sequences, which lengths do not say."""
    pattern = given.pattern if isinstance(given, PatternMask) else None
    text = "" if pattern is None else str(pattern.lower([], []))
    if (given is not None and pattern is None) or any(word in text for word in ("mask<", "document", "blocks")):
        raise ValueError("expected sequences without padding, of which causal order says who attends, but got a mask")
