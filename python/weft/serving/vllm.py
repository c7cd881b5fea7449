# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft as a backend of vLLM's attention: `vllm serve MODEL --attention-backend CUSTOM`.

vLLM finds ``register`` by its entry point among "vllm.general_plugins". The classes have vLLM's methods without its
base classes, so that they load, and are tested, without vLLM.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from weft.attention import append
from weft.attention.decode import decode, over_cache
from weft.patterns import Pattern, causal, full, window
from weft.programs.elementwise import tanh
from weft.programs.program import program
from weft.serving import rows

#: caches of fewer bits, by vLLM's names
NARROW = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}

#: queries of a sequence up to which its keys are divided among programs
FEW = 16


def register() -> None:
    """Make weft.serving.vllm.Backend vLLM's custom backend of attention."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend  # type: ignore[import-not-found]

    register_backend(AttentionBackendEnum.CUSTOM, "weft.serving.vllm.Backend")


@dataclass
class Metadata:
    """What a step of vLLM says of its sequences: where their tokens start among the step's, how long they are with
    these, their pages, and where the tokens go."""

    query_start_loc: Any
    seq_lens: Any
    block_table: Any
    slot_mapping: Any
    max_query_len: int
    causal: bool


class Backend:
    """The backend's description, as vLLM asks it."""

    accept_output_buffer = True
    supported_dtypes = (torch.float16, torch.bfloat16)

    @staticmethod
    def get_name() -> str:
        """The name that vLLM prints."""
        return "WEFT"

    @staticmethod
    def get_impl_cls() -> type[Impl]:
        """What computes."""
        return Impl

    @staticmethod
    def get_metadata_cls() -> type[Metadata]:
        """What a step hands to it."""
        return Metadata

    @staticmethod
    def get_builder_cls() -> type[MetadataBuilder]:
        """What makes that of vLLM's own."""
        return MetadataBuilder

    @staticmethod
    def get_kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, *_: Any) -> Any:
        """Keys, then values, in pages."""
        return (2, num_blocks, block_size, num_kv_heads, head_size)

    @staticmethod
    def get_supported_head_sizes() -> list[int]:
        """Multiples of 8; these are what models have."""
        return [32, 64, 72, 80, 96, 112, 128, 160, 192, 256]

    @staticmethod
    def supports_sink() -> bool:
        """Logits in the normaliser without a value."""
        return True

    @classmethod
    def validate_configuration(cls, head_size: int, dtype: Any, kv_cache_dtype: Any, *_: Any, **more: Any) -> list[str]:
        """Why a configuration cannot be served; none where it can."""
        reasons = []
        if head_size % 8:
            reasons.append(f"expected a head size that 8 divides, but got {head_size}")
        if dtype not in cls.supported_dtypes:
            reasons.append(f"expected float16 or bfloat16, but got {dtype}")
        if kv_cache_dtype not in (None, "auto", dtype, *NARROW):
            reasons.append(f"expected a cache of the model's type or of 8-bit floats, but got {kv_cache_dtype}")
        if more.get("use_mla"):
            reasons.append("expected keys and values of their own, but got latent attention")
        return reasons


class MetadataBuilder:
    """Takes what it needs of vLLM's common metadata."""

    def __init__(self, kv_cache_spec: Any, layer_names: Any, vllm_config: Any, device: Any):
        self.device = device

    def build(self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False) -> Metadata:
        """The metadata of a step; nothing is read from the device."""
        common = common_attn_metadata
        return Metadata(
            common.query_start_loc, common.seq_lens, common.block_table_tensor, common.slot_mapping,
            int(common.max_query_len), bool(getattr(common, "causal", True)),
        )  # fmt: skip


@program
def _prefill(
    q: Any, k: Any, v: Any, table: Any, lengths: Any, sink: Any, scales: Any, *, pattern: Any, scale: Any, cap: Any
) -> Any:
    """Attention of many queries over pages."""
    return over_cache(
        q, k, v, pattern, block_table=table, seqused_k=lengths, score_mod=_capped(cap), sink=sink, scale=scale, **scales
    )


def _capped(cap: float | None) -> Any:
    if not cap:
        return None
    return lambda score, b, h, n, m: cap * tanh(score / cap)


class Impl:
    """One layer's attention."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: Any = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = "decoder",
        kv_sharing_target_layer_name: str | None = None,
        sinks: Any = None,
        **more: Any,
    ):
        if kv_cache_dtype != "auto" and kv_cache_dtype not in NARROW:
            raise NotImplementedError(
                f"expected a cache of the model's type or of 8-bit floats, but got kv_cache_dtype={kv_cache_dtype!r}"
            )
        if alibi_slopes is not None:
            raise NotImplementedError("expected no alibi_slopes, but got some")
        if attn_type != "decoder":
            raise NotImplementedError(f"expected attn_type='decoder', but got {attn_type!r}")
        self.scale, self.window, self.cap, self.sinks = scale, sliding_window, logits_soft_cap, sinks
        self.narrow = NARROW.get(kv_cache_dtype)
        self.shares = kv_sharing_target_layer_name is not None

    def forward(
        self,
        layer: Any,
        query: Any,
        key: Any,
        value: Any,
        kv_cache: Any,
        attn_metadata: Metadata | None,
        output: Any = None,
        output_scale: Any = None,
        output_block_scale: Any = None,
    ) -> Any:
        """Writes the step's keys and values [T, Hkv, D] into the cache, and attends of query [T, H, D]; fills and gives
        ``output`` [T, H, D] or [T, H·D]. Without metadata (vLLM's profiling run) it is 0."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("expected outputs that are not quantised, but got a scale")
        output = torch.empty_like(query) if output is None else output
        if attn_metadata is None:
            return output.zero_()
        said = attn_metadata
        keys, values = (kv_cache if self.narrow is None else kv_cache.view(self.narrow)).unbind(0)
        scales = self._scales(layer, keys.shape[2])
        tokens = said.slot_mapping.shape[0]
        if not self.shares:
            self._write(keys, values, key[:tokens], value[:tokens], said.slot_mapping, scales)
        starts = said.query_start_loc
        q = rows.padded(query[:tokens], starts, said.max_query_len)
        pattern = self._pattern(said.causal)
        if said.max_query_len <= FEW:
            out = decode(
                q, keys, values, pattern, block_table=said.block_table, seqused_k=said.seq_lens, scale=self.scale,
                sink=self.sinks, score_mod=_capped(self.cap), **scales,
            )  # fmt: skip
        else:
            given = (q, keys, values, said.block_table, said.seq_lens, self.sinks, scales)
            out = _prefill(*given, pattern=pattern, scale=self.scale, cap=self.cap)
        output[:tokens] = rows.packed(out, starts, tokens).reshape(output[:tokens].shape)
        return output

    def _pattern(self, is_causal: bool) -> Pattern:
        if self.window is not None:
            return window(self.window - 1, 0 if is_causal else self.window - 1)
        return causal() if is_causal else full()

    def _scales(self, layer: Any, heads: int) -> dict[str, Any]:
        """What a cache of 8-bit floats is multiplied by: vLLM has one number for a layer's keys and one for values."""
        if self.narrow is None:
            return {}
        return {name: getattr(layer, f"_{name}").float().expand(heads).contiguous() for name in ("k_scale", "v_scale")}

    def _write(self, keys: Any, values: Any, key: Any, value: Any, slots: Any, scales: dict[str, Any]) -> None:
        one = torch.zeros(1, dtype=torch.int32, device=key.device)  # positions are asked for by rotation alone
        new = (each.transpose(0, 1)[None] for each in (key, value))
        append(keys, values, *new, seqused_k=one, slot_mapping=slots, **scales)
