# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.distributed.attend: attention over sequences that ranks share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..patterns import Pattern
from .agreement import agreed, device_of, digest_of
from .job import Domain, Job
from .layouts import Layout, layout
from .meshes import attend_sharded, group_of, is_sharded
from .needs import classes
from .packed import packed_pattern, packed_score
from .parts import Scores
from .ring import Ring
from .routes import ROTATIONS


def attend(
    q: Any,
    k: Any,
    v: Any,
    pattern: Any = None,
    group: Any = None,
    *,
    rotate: str = "ring",
    layout: str | Layout = "consecutive",
    score_mod: Callable[..., Any] | None = None,
    sink: Any = None,
    scale: float | None = None,
    return_lse: bool = False,
    cu_seqlens: Any = None,
    precision: str | None = None,
) -> Any:
    """weft.attention.attend of a sequence that the P ranks of a ``group`` share: each gives its queries [B, H, N/P, D],
    its keys and values [B, Hkv, M/P, D], and gets its part [B, H, N/P, Dv] of the result, differentiable. All of the
    group's ranks call it together.

    ``pattern``     of the whole sequence, as are the indices of masks and score_mods, and the arrays in it
    ``group``       of torch.distributed, or a mesh of one axis; None is all ranks
    ``rotate``      "ring": keys and values go from neighbour to neighbour; "all-to-all": straight to who needs them;
                    "all-gather": what somebody needs goes to all. What the pattern leaves empty stays where it is
    ``layout``      which tokens each rank has: "consecutive" runs, "head-tail", or a weft.distributed.Layout
    ``score_mod``, ``sink``, ``scale``, ``precision``, ``return_lse``    as in weft.attention.attend
    ``cu_seqlens``  [S+1] int32, where each of S sequences packed into the whole starts; then B is 1, and patterns and
                    indices are those of each sequence

    Sharded tensors (DTensor) of which one axis of the mesh shards the sequence give one like the queries; the group is
    then that axis'. Several domains under one softmax: sequences of keys, values and patterns, one of each for each
    domain.

    Parts are merged in float64 in an order that does not depend on what arrives when. Gradients of what every rank has
    (the sink, tensors that score_mod reads) are this rank's share: add them up over ranks, as those of weights.
    """

    def of_parts(q: Any, k: Any, v: Any, group: Any) -> Any:
        def made() -> tuple[tuple[Job, list[Any]], str]:
            job, said = _job(q, k, v, pattern, group, rotate, layout, score_mod, sink, scale, cu_seqlens, precision)
            job.trace()
            tensors = [q, *(each for domain in job.domains for each in (domain.k, domain.v)), *job.captured()]
            # The backward, too, is made by all ranks together.
            differentiates = any(each is not None and each.requires_grad for each in (sink, *tensors))
            return (job, tensors), f"{said}, gradients {differentiates and torch.is_grad_enabled()}"

        job, tensors = agreed(group, made)
        out, lse = Ring.apply(job, sink, *tensors)
        return (out, lse) if return_lse else out

    if is_sharded(q):
        same = pattern is None or (isinstance(pattern, Pattern) and pattern.is_plain and not pattern.heads())
        return attend_sharded(of_parts, q, k, v, same and score_mod is None and sink is None, group)
    return of_parts(q, k, v, group_of(group))


def _job(
    q: Any,
    k: Any,
    v: Any,
    pattern: Any,
    group: Any,
    rotate: Any,
    where: Any,
    score_mod: Any,
    sink: Any,
    scale: Any,
    cu_seqlens: Any,
    precision: Any,
) -> tuple[Job, str]:
    """The call as a job, and what all ranks are to agree on."""
    if rotate not in ROTATIONS:
        raise ValueError(f"expected 'rotate' among {', '.join(ROTATIONS)}, but got {rotate!r}")
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    held = _layout(where, ranks)
    keys, values, patterns = _domains(k, v, pattern)
    _check(q, keys, values, sink, device_of(group))
    rows = q.shape[2] * ranks
    _divides("q", q, held)
    domains = []
    for key, value, own in zip(keys, values, patterns, strict=True):
        _divides("k", key, held)
        tokens = key.shape[2] * ranks
        modified = score_mod
        if cu_seqlens is not None:
            _check_starts(cu_seqlens, q, key, rows)
            own, modified = packed_pattern(own, cu_seqlens), packed_score(score_mod, cu_seqlens)
        found = classes(own, rows, tokens, held.count)
        domains.append(Domain(key, value, Scores(own, modified, scale, precision), found))
    job = Job(group, rank, held, rotate, q, tuple(domains))
    shapes = [_described(each) for each in (q, *keys, *values)]
    said = (
        f"q, k, v {', '.join(shapes)}, rotate={rotate!r}, layout {held.runs}, scale={scale}, sink "
        f"{None if sink is None else _described(sink)}, precision={precision!r}, patterns {patterns}, blocks "
        f"{[domain.digest for domain in domains]}, arrays {digest_of(patterns)}, starts "
        f"{None if cu_seqlens is None else cu_seqlens.tolist()}"
    )
    return job, said


def _layout(given: Any, ranks: int) -> Layout:
    if isinstance(given, str) and given in ("consecutive", "head-tail"):
        return layout(given, ranks)
    if not isinstance(given, Layout):
        raise ValueError(
            f"expected 'layout' to be 'consecutive', 'head-tail' or a weft.distributed.Layout, but got {given!r}"
        )
    if given.ranks != ranks:
        raise ValueError(f"expected a layout of {ranks} ranks, but got one of {given.ranks}")
    return given


def _domains(k: Any, v: Any, pattern: Any) -> tuple[list[Any], list[Any], list[Any]]:
    if not isinstance(k, (list, tuple)):
        k, v, pattern = [k], [v], [pattern]
    patterns = [None] * len(k) if pattern is None else pattern
    if not isinstance(v, (list, tuple)) or not isinstance(patterns, (list, tuple)) or not k:
        kinds = ", ".join(f"'{type(each).__name__}'" for each in (k, v, patterns))
        raise TypeError(
            f"expected sequences of keys, of values and of patterns, one of each for each domain, but got {kinds}"
        )
    if not len(k) == len(v) == len(patterns):
        raise ValueError(
            f"expected one sequence of values and one pattern for each of {len(k)} domains, but got {len(v)} and "
            f"{len(patterns)}"
        )
    for each in patterns:
        if each is not None and not isinstance(each, Pattern):
            raise TypeError(f"expected a pattern, but got '{type(each).__name__}'")
    return list(k), list(v), list(patterns)


def _described(x: Any) -> str:
    return f"{list(x.shape)} {str(x.dtype).removeprefix('torch.')}"


def _check(q: Any, keys: Sequence[Any], values: Sequence[Any], sink: Any, device: Any) -> None:
    for name, x in [("q", q), *(("k", each) for each in keys), *(("v", each) for each in values)]:
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"expected '{name}' to be a tensor of torch's, but got '{type(x).__name__}'")
        if x.dim() != 4:
            raise ValueError(f"expected '{name}' [B, H, N, D], but got {list(x.shape)}")
        if x.device.type != device.type or x.device != q.device:
            raise ValueError(
                f"expected '{name}' on the {device.type} that the group's ranks exchange, but got {x.device}"
            )
        if x.dtype != q.dtype or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            raise TypeError(f"expected '{name}' of the queries' floating-point type {q.dtype}, but got {x.dtype}")
    for k, v in zip(keys, values, strict=True):
        if k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3] or k.shape[1] == 0 or q.shape[1] % k.shape[1]:
            raise ValueError(
                f"expected 'k' [{q.shape[0]}, Hkv, M, {q.shape[3]}], Hkv a divisor of {q.shape[1]}, but got "
                f"{list(k.shape)}"
            )
        if v.shape[:3] != k.shape[:3] or v.shape[3] != values[0].shape[3]:
            raise ValueError(
                f"expected 'v' {[*k.shape[:3], values[0].shape[3]]}, as long as the keys, but got {list(v.shape)}"
            )
    if sink is not None:
        if not isinstance(sink, torch.Tensor) or list(sink.shape) != [q.shape[1]]:
            given = list(sink.shape) if isinstance(sink, torch.Tensor) else f"'{type(sink).__name__}'"
            raise ValueError(f"expected 'sink' [{q.shape[1]}], but got {given}")
        if sink.device != q.device:
            raise ValueError(f"expected 'sink' on the queries' device {q.device}, but got {sink.device}")


def _divides(name: str, x: Any, held: Layout) -> None:
    runs = len(held.runs[0])
    if x.shape[2] == 0 or x.shape[2] % runs:
        raise ValueError(f"expected '{name}' of a length that {runs} runs divide, but got {x.shape[2]}")


def _check_starts(cu_seqlens: Any, q: Any, k: Any, rows: int) -> None:
    if not isinstance(cu_seqlens, torch.Tensor) or cu_seqlens.dim() != 1 or cu_seqlens.dtype != torch.int32:
        given = f"{list(cu_seqlens.shape)} of {cu_seqlens.dtype}" if hasattr(cu_seqlens, "dtype") else repr(cu_seqlens)
        raise ValueError(f"expected 'cu_seqlens' [S+1] of int32, but got {given}")
    if q.shape[0] != 1 or k.shape[2] != q.shape[2]:
        raise ValueError(
            "expected as many keys as queries, and a batch of 1, with cu_seqlens, but got "
            f"{k.shape[2]} keys for {q.shape[2]} queries, and a batch of {q.shape[0]}"
        )
    starts = cu_seqlens.tolist()
    if not starts or starts[0] != 0 or starts[-1] != rows or starts != sorted(starts):
        raise ValueError(f"expected 'cu_seqlens' to rise from 0 to the whole's {rows} tokens, but got {starts}")
