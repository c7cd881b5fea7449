# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention of one run of queries over one run of keys, as a part of the softmax over the whole sequence: one program,
which reads from memory where the runs lie, so that every rank and every step has the same kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..attention.attend import SoftmaxAttention
from ..language.types import float32
from ..patterns import span
from ..programs import running
from ..programs.program import program


@dataclass(frozen=True)
class Scores:
    """What makes scores, apart from queries and keys, in indices of the whole."""

    pattern: Any
    score_mod: Callable[..., Any] | None
    scale: float | None
    precision: str | None

    def keywords(self, wide: bool) -> dict[str, Any]:
        """What a part is called with, beside arrays."""
        return {
            "pattern": self.pattern,
            "score_mod": self.score_mod,
            "scale": self.scale,
            "precision": self.precision,
            "wide": wide,
        }


@program
def part(
    q: Any,
    k: Any,
    v: Any,
    rows: Any,
    keys: Any,
    spans: Any = None,
    *,
    pattern: Any,
    score_mod: Any,
    scale: Any,
    precision: Any,
    wide: bool,
) -> Any:
    """The part's output and its log-sum-exp; ``wide``: in float32, to be merged. ``spans`` are the bounds of the part's
    own pattern, in its place."""

    def moved(score: Any, b: Any, h: Any, n: Any, m: Any) -> Any:
        return score_mod(score, b, h, n + rows[0], m + keys[0]) if score_mod is not None else score

    attention = SoftmaxAttention(None if score_mod is None else moved, None, None, scale, precision, True)
    section = None if pattern is None else pattern.section(rows, keys)
    if spans is not None:
        section = span(*spans)
    return attention.of(q, k, v, section, float32 if wide else q.dtype)


class Merged:
    """Outputs of parts as one softmax: what comes of them depends on their order alone. Kept in float64, as an error of
    the log-sum-exp is one of every probability that the backward makes with it; each is rounded once, at the end."""

    def __init__(self) -> None:
        self.out: Any = None
        self.lse: Any = None

    def add(self, out: Any, lse: Any) -> None:
        """A part's output [B, H, N, D] and log-sum-exp [B, H, N]; a row without keys has 0 and -inf."""
        out, lse = out.double(), lse.double()
        if self.lse is None:
            self.out, self.lse = out, lse
            return
        both = torch.logaddexp(self.lse, lse)
        known = both != -torch.inf  # else both are -inf, whose difference is NaN
        before, now = (torch.where(known, torch.exp(each - both), 0.0)[..., None] for each in (self.lse, lse))
        self.out, self.lse = self.out * before + out * now, both

    def add_sink(self, sink: Any) -> None:
        """A logit in the normaliser without a value."""
        self.add(torch.zeros_like(self.out), sink.double()[None, :, None].expand_as(self.lse))


def forward(arrays: Sequence[Any], scores: Scores) -> tuple[Any, Any]:
    """The part's output in float32, and its log-sum-exp."""
    with torch.no_grad():
        found: tuple[Any, Any] = part(*arrays, **scores.keywords(wide=True))
        return found


def trace(arrays: Sequence[Any], scores: Scores) -> None:
    """Traces what ``forward`` runs. Raises CompilationError, and whatever score_mod does."""
    part.trace(part.bind(tuple(arrays), scores.keywords(wide=True)))


def backward(arrays: Sequence[Any], scores: Scores, saved: Sequence[Any], gradients: Sequence[Any]) -> Any:
    """The gradients of a part's queries, keys and values, and of tensors that score_mod reads, by name. ``saved`` are
    the output and the log-sum-exp of the whole softmax, ``gradients`` those of them."""
    with torch.no_grad():
        call = part.bind(tuple(arrays), scores.keywords(wide=False))
        traced = part.trace(call)
        given = running.prepared(traced, [*call.arrays, *traced.captured])
        form = running.tuned(traced, given, True)
        kept = tuple(saved[number] for number in form.saved_outputs)
        return running.backward(running.Saved(form, tuple(given), kept), gradients)


def captured(arrays: Sequence[Any], scores: Scores) -> list[tuple[str, Any]]:
    """The tensors that score_mod reads and that require gradients, with their names among a part's gradients."""
    call = part.bind(tuple(arrays), scores.keywords(wide=False))
    traced = part.trace(call)
    names = [each.name for each in traced.inputs[len(call.arrays) :]]
    return [
        (name, each) for name, each in zip(names, traced.captured, strict=True) if getattr(each, "requires_grad", False)
    ]
