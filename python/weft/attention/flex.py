# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.flex_attention: attention as torch.nn.attention.flex_attention is called, with its score_mods and BlockMasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.attention.attend import attend
from weft.attention.block_masks import pattern
from weft.compiler import places
from weft.programs import static
from weft.programs.eager import whole
from weft.programs.torch_reads import AsTorch

# What torch's FlexKernelOptions holds: how its own kernels are scheduled. Weft's schedules are weft.tuning's.
_KERNEL_OPTIONS = frozenset(
    (
        *(
            "BACKEND",
            "PRESCALE_QK",
            "ROWS_GUARANTEED_SAFE",
            "BLOCKS_ARE_CONTIGUOUS",
            "WRITE_DQ",
            "FORCE_USE_FLEX_ATTENTION",
        ),
        *(
            "USE_TMA",
            "kpack",
            "matrix_instr_nonkdim",
            "waves_per_eu",
            "num_warps",
            "num_stages",
            "BLOCK_M",
            "BLOCK_N",
            "BLOCK_M1",
            "BLOCK_N1",
            "BLOCK_M2",
            "BLOCK_N2",
        ),
    )
)


@whole
def flex_attention(
    query: Any,
    key: Any,
    value: Any,
    score_mod: Callable[..., Any] | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Mapping[str, Any] | None = None,
    *,
    return_aux: Any = None,
) -> Any:
    """Attention of query [B, Hq, N, D] over key [B, Hkv, M, D] and value [B, Hkv, M, Dv]; gives [B, Hq, N, Dv]. As
    torch.nn.attention.flex_attention.flex_attention (torch 2.13), whose arguments it takes.

    ``score_mod``       score_mod(score, b, h, q_idx, kv_idx) of scale · q·k, float32; tensors that it reads, whatever
                        they are called, are read when the kernel runs, and get gradients
    ``block_mask``      a BlockMask, whose mask_mod is traced, and whose tables count; or a pattern of weft's
    ``scale``           1/sqrt(D) unless given
    ``enable_gqa``      allows Hq to be a multiple of Hkv
    ``return_lse``      (out, lse): lse [B, Hq, N] float32, the natural log of the normaliser; differentiable
    ``kernel_options``  how torch schedules its own kernels: known names are taken, and change nothing
    ``return_aux``      AuxRequest(lse=True): (out, AuxOutput); its max_scores are refused

    A row that attends to nothing is 0, and its lse -inf. A batch of 1 of key and value stands for all of query's.
    CompilationError, at the caller's line, for what cannot be: types other than float16, bfloat16 and float32, a score
    that is no scalar, functions of torch that scalars do not have, a BlockMask for other lengths.
    """
    _check(query, key, value, enable_gqa, kernel_options, return_lse, return_aux)
    key, value = _of_one_batch(query, key, value)
    said = pattern(block_mask, query, key.shape[2])
    mod = None if score_mod is None else AsTorch(score_mod)
    out, lse = attend(query, key, value, said, score_mod=mod, scale=scale, return_lse=True)
    if return_aux is not None:
        return out, _auxiliary(return_aux, lse)
    return (out, lse) if return_lse else out


def _check(query: Any, key: Any, value: Any, enable_gqa: bool, options: Any, return_lse: bool, return_aux: Any) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if len(getattr(x, "shape", ())) != 4:
            given = list(x.shape) if hasattr(x, "shape") else places.described(x)
            raise places.error(f"expected '{name}' [B, H, N, D], but got {given}")
    heads, groups = query.shape[1], key.shape[1]
    if not static.truth("enable_gqa", enable_gqa) and not heads == groups:
        raise places.error(
            f"expected as many heads of 'key' and 'value' as of 'query', {heads}, but got {groups}",
            "enable_gqa=True shares each head of 'key' among a group of 'query'",
        )
    if not isinstance(options, (Mapping, type(None))):
        raise places.error(
            f"expected 'kernel_options' to be a dict, but got {places.described(options)}", "leave it out"
        )
    unknown = sorted(map(str, set(options or ()) - _KERNEL_OPTIONS))
    if unknown:
        raise places.error(f"expected 'kernel_options' that torch has, but got {unknown[0]!r}", "leave it out")
    if static.truth("return_lse", return_lse) and return_aux is not None:
        raise places.error("expected one of 'return_lse' and 'return_aux', but got both", "leave out return_lse")
    if return_aux is not None and not (hasattr(return_aux, "lse") and hasattr(return_aux, "max_scores")):
        given = places.described(return_aux)
        raise places.error(f"expected 'return_aux' to be an AuxRequest, but got {given}", "AuxRequest(lse=True)")
    if getattr(return_aux, "max_scores", False):
        raise places.error(
            "expected 'return_aux' without max_scores, which no kernel keeps, but got max_scores=True",
            "AuxRequest(lse=True); the log-sum-exp is within log(M) of the largest score",
        )


def _of_one_batch(query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """Keys and values of a batch of 1 as views for every batch of the queries."""

    def everywhere(x: Any) -> Any:
        one = hasattr(x, "data_ptr") and x.shape[0] == 1 and query.shape[0] != 1
        return x.expand(query.shape[0], -1, -1, -1) if one else x

    return everywhere(key), everywhere(value)


def _auxiliary(request: Any, lse: Any) -> Any:
    """torch's AuxOutput, with what was asked for."""
    from torch.nn.attention.flex_attention import AuxOutput

    return AuxOutput(lse=lse if request.lse else None, max_scores=None)
