# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.attend: softmax attention over one pattern, in one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.attention.dropout import kept, probability
from weft.attention.scales import of_outputs, of_scores
from weft.compiler import places
from weft.language.types import float32
from weft.patterns import Pattern, mask
from weft.programs import graph, static
from weft.programs.eager import operation
from weft.programs.graph import TensorType, agreeing
from weft.programs.mixers import (
    attention,
    fast_attribute,
    packs,
    result_type,
    segments,
    splits_attribute,
    widened,
)
from weft.programs.patterns import Domain, without_tables_of_tokens
from weft.programs.sizes import group, unify
from weft.programs.tensors import Tensor, described, four_axes

PRECISIONS = (None, "f32", "tf32")


@operation
def attend(
    q: Any,
    k: Any,
    v: Any,
    pattern: Any = None,
    *,
    score_mod: Callable[..., Any] | None = None,
    bias: Any = None,
    sink: Any = None,
    scale: float | None = None,
    return_lse: bool = False,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    precision: str | None = None,
    deterministic: bool = True,
    dropout_p: float = 0.0,
    dropout_seed: Any = None,
    splits: int | None = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
) -> Any:
    """Softmax attention of q [B, H, N, D] over k [B, Hkv, M, D] and v [B, Hkv, M, Dv]; gives [B, H, N, Dv].

    ``pattern``       which pairs attend (weft.causal(), ...); None is every pair
    ``score_mod``     score_mod(score, b, h, n, m), of scale · q·k
    ``bias``          [B, H, N, M] or the last axes of it, 1 where it repeats; added after score_mod. One of bool says
                      which pairs attend, as torch's attn_mask does: those of the pattern where it is true
    ``sink``          [H], a logit in the normaliser without a value
    ``return_lse``    (out, lse): lse [B, H, N] float32, the natural log of the normaliser; differentiable
    ``cu_seqlens_*``  [S+1] int32, where each of S sequences packed into N and M starts; then B is 1
    ``precision``     "tf32" multiplies float32 operands so; otherwise they keep float32's accuracy
    ``deterministic`` False allows gradients whose last bits differ from run to run, where that takes less: the queries'
                      are then added up in memory. Under torch.use_deterministic_algorithms(True) it changes nothing.
    ``dropout_p``     each weight is 0 with this probability, and the others are divided by 1 - dropout_p; the
                      log-sum-exp is that of all weights. It takes two attentions
    ``dropout_seed``  [2] int32: with a weight's place it decides whether the weight stays, in the backward too
    ``splits``        divides each sequence's keys among programs, for few queries, as weft.softmax does: into so many
                      runs, or for 0 into as many as its own length asks for, whatever else is in the batch. It is of
                      the forward; gradients are as without
    ``*_descale``     [B, Hkv] float32: what the numbers of q, of each key head's group, of k and of v are multiplied by

    q, k and v may be of float8_e4m3fn or float8_e5m2, all three of one: products with keys have instructions for them
    where the target does, weights are rounded to float16 and not to 8 bits, and the result is bfloat16. They have no
    gradients.
    """
    _check(q, k, v, bias, precision)
    return_lse = static.truth("return_lse", return_lse)
    lengths = _lengths(q, cu_seqlens_q, cu_seqlens_k)
    for each, tokens in zip(lengths, (q.sizes[2], k.sizes[2]), strict=False):
        packs(each, tokens)
    if bias is not None and bias.dtype.is_bool():  # who attends, as torch's attn_mask says it
        pattern, bias = _where(bias, pattern), None
    ratio = _check_descales(q, k, v, {"q_descale": q_descale, "k_descale": k_descale, "v_descale": v_descale})
    of_score = [each for each in (q_descale, k_descale) if each is not None]
    if of_score:
        scale = 1 / math.sqrt(int(q.sizes[3])) if scale is None else static.real("scale", scale)
        score_mod, scale = of_scores(of_score, ratio, score_mod, scale), 1.0
    element = result_type(q.dtype)
    share = probability(dropout_p)
    if share:
        if lengths:
            raise places.error(
                f"expected no dropout of packed sequences, whose pairs would share numbers, but got dropout_p={share}"
            )
        pattern = kept(pattern, dropout_seed, share)
    whole = SoftmaxAttention(score_mod, bias, sink, scale, precision, deterministic, lengths, splits)
    out, lse = whole.of(q, k, v, pattern, element if v_descale is None and not share else float32)
    if share:
        out = out * (1 / (1 - share))
    if v_descale is not None:
        out = of_outputs(out, v_descale, ratio, element)
    elif share:
        out = out.to(element)
    return (out, lse) if return_lse else out


# How torch's and FlashAttention's functions call what is said otherwise here; errors of unknown arguments tell.
attend.__weft_spelled__ = {  # type: ignore[attr-defined]
    "is_causal": "pattern=weft.causal(), whose last query is at the last key,",
    "causal": "pattern=weft.causal()",
    "attn_mask": "bias, of numbers or of bool,",
    "attn_bias": "bias",
    "block_mask": "pattern, or an argument of weft.flex_attention,",
    "window_size": "pattern=weft.window(left, right), None for no bound,",
    "softmax_scale": "scale",
    "softcap": "score_mod, as lambda s, b, h, n, m: cap * weft.tanh(s / cap),",
    "alibi_slopes": "score_mod, as lambda s, b, h, n, m: s - slopes[h] * (n - m),",
    "enable_gqa": "what heads of k and v that divide q's say",
    "return_attn_probs": "return_lse",
}


@dataclass(frozen=True)
class SoftmaxAttention:
    """What makes scores and weights, apart from the pattern; ``lengths`` are the starts of packed sequences."""

    score_mod: Any
    bias: Any
    sink: Any
    scale: Any
    precision: str | None
    deterministic: bool
    lengths: Sequence[Tensor] = ()
    splits: int | None = None

    def of(
        self, q: Tensor, k: Tensor, v: Tensor, pattern: Any, element: Any, count: Any = None
    ) -> tuple[Tensor, Tensor]:
        """The attention, in elements of type ``element``, and its LSE; over the first ``count`` keys where that is
        given."""
        given, lowered = attention(q, [Domain(k, pattern, count)], self.scale, self.sink, self.score_mod, self.bias)
        if self.lengths:
            without_tables_of_tokens(lowered.texts)
        with agreeing("expected values as long as the keys"):
            for axis in (0, 1, 2):
                unify(k.sizes[axis], v.sizes[axis])
            int(v.sizes[3])
        sinks = [] if self.sink is None else [self.sink]
        attributes = dict(given.attributes)
        attributes["operandSegmentSizes"] = segments(
            1, 1, 1, given.counts, len(sinks), len(self.lengths), len(lowered.operands)
        )
        if self.precision == "tf32":
            attributes["precision"] = "#attn<precision tf32>"
        attributes.update(fast_attribute(self.deterministic))
        attributes.update(splits_attribute(self.splits))
        counts = given.operands[2 : 2 + given.counts]
        operands = [
            *(Tensor(each) for each in given.operands[:2]),
            *(widened(v), *(Tensor(each) for each in counts), *sinks, *self.lengths, *lowered.operands),
        ]
        results = [TensorType((*q.sizes[:3], v.sizes[3]), element), TensorType(q.sizes[:3], float32)]
        made = graph.tracing().add("attn.attend", [t.value for t in operands], results, attributes, given.regions)
        out, lse = (Tensor(value) for value in made.results)
        return out, lse


def _check(q: Any, k: Any, v: Any, bias: Any, precision: Any) -> None:
    four_axes(q, "queries")
    four_axes(k, "keys")
    four_axes(v, "values")
    if not q.dtype.is_fp8():
        static.floating("queries", q)  # else values would be asked to be of a type that queries may not have
    if v.dtype != q.dtype:
        raise places.error(f"expected values of the queries' type {q.dtype}, but got {v.dtype}", "use .to(dtype)")
    if precision not in PRECISIONS:
        raise places.error(f"expected precision='f32' or 'tf32', but got {precision!r}")
    if bias is None:
        return
    if not isinstance(bias, Tensor) or not 1 <= bias.ndim <= 4:
        raise places.error(f"expected 'bias' [B, H, N, M] or the last axes of it, but got {described(bias)}")
    if not bias.dtype.is_floating() and not bias.dtype.is_bool():
        raise places.error(
            "expected 'bias' of fp16, bf16 or fp32, which is added, or of bool, which says who attends, but got "
            f"{bias.dtype}",
            "use .bool() for a mask, .to(q.dtype) for numbers",
        )
    extents = (*q.sizes[:3], k.sizes[2])[4 - bias.ndim :]
    if any(x.value not in (None, 1, y.value) and y.value is not None for x, y in zip(bias.sizes, extents, strict=True)):
        wanted = ", ".join(str(size.value) for size in extents)
        raise places.error(f"expected 'bias' [{wanted}], or 1 where it repeats, but got {described(bias)}")


def _check_descales(q: Tensor, k: Tensor, v: Tensor, descales: dict[str, Any]) -> int:
    """How many query heads share a key head, where there are factors of 8-bit floats."""
    for (name, each), what in zip(descales.items(), (q, k, v), strict=True):
        if each is None:
            continue
        if not isinstance(each, Tensor) or each.ndim != 2 or each.dtype.name != "fp32":
            raise places.error(f"expected '{name}' [B, Hkv] of float32, but got {described(each)}")
        if not what.dtype.is_fp8():
            raise places.error(f"expected '{name}' with 8-bit floats, but got {what.dtype}")
        with agreeing(f"expected '{name}' [B, Hkv], for each sequence and key head"):
            unify(k.sizes[0], each.sizes[0])
            unify(k.sizes[1], each.sizes[1])
    with agreeing("expected the key heads to divide the query heads"):
        return group(q.sizes[1], k.sizes[1])


def _where(truths: Tensor, pattern: Any) -> Any:
    """The pairs of a pattern, or of None, for which a tensor [B, H, N, M], or of the last axes, is true."""
    said = mask(lambda *place: truths[place[4 - truths.ndim :]])
    if pattern is None:
        return said
    return pattern & said if isinstance(pattern, Pattern) else pattern  # which is refused where it is used


def _lengths(q: Tensor, cu_q: Any, cu_k: Any) -> list[Tensor]:
    """The starts of packed sequences, none or two tensors."""
    if cu_q is None and cu_k is None:
        return []
    for name, each in (("cu_seqlens_q", cu_q), ("cu_seqlens_k", cu_k)):
        if not isinstance(each, Tensor) or each.ndim != 1 or each.dtype.name != "int32":
            raise places.error(f"expected '{name}' [S+1] of int32 with the other one, but got {described(each)}")
    with agreeing("expected 'cu_seqlens_q' and 'cu_seqlens_k' [S+1] of as many sequences"):
        if int(q.sizes[0]) != 1:
            raise places.error(f"expected packed sequences in a batch of 1, but got a batch of {q.sizes[0]!r}")
        unify(cu_q.sizes[0], cu_k.sizes[0])
    return [cu_q, cu_k]
