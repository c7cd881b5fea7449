# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.distributed.plan: what a call would send and compute on many ranks, without any: bytes, steps and time.

Bytes and steps are those of the route that a call takes. Time is a roofline: a rank's step takes as long as the longer
of its computing and of the transfers that are under way meanwhile, and a step of all ranks as long as the longest.
"""

from __future__ import annotations

import functools
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..patterns import Pattern
from ..tables import console_class, table_class
from ..targets import Gpu, gpu_named
from .layouts import Layout, layout
from .needs import EMPTY, PARTIAL, classes
from .routes import ROTATIONS, arrivals, counted

BYTES = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}
_MATRIX = {"fp32": "tf32", "tf32": "tf32", "fp16": "f16", "bf16": "bf16"}
#: blocks a side that pairs are counted by, at most: a partial block is taken for half of a full one
_FINE = 4096
#: bytes a second of a link in one direction, and seconds until a message begins to arrive
_LINK, _LATENCY = 50e9, 10e-6


@dataclass(frozen=True, eq=False)
class Plan:
    """What each rank does at each step: float64 [steps + 1, ranks]. At step 0 a rank computes with its own keys while
    the transfers of step 1 are under way."""

    pattern: Pattern | None
    length: int
    layout: Layout
    rotate: str
    gpu: Gpu
    classes: Any
    """of runs of queries and keys: 0 empty, 1 partial, 2 full"""
    sent: Any
    """bytes that a rank sends while it computes a step"""
    received: Any
    computing: Any
    """seconds"""
    link: float

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return self.layout.ranks

    @property
    def steps(self) -> int:
        """How many times keys and values are sent on."""
        return len(self.computing) - 1

    @functools.cached_property
    def sending(self) -> Any:
        """Seconds of the transfers while each step is computed."""
        most = np.maximum(self.sent, self.received)
        return np.where(most > 0, most / self.link + _LATENCY, 0.0)

    @functools.cached_property
    def seconds(self) -> Any:
        """Of each rank, were no other in its way, [ranks]."""
        return np.maximum(self.computing, self.sending).sum(axis=0)

    @property
    def total(self) -> float:
        """Seconds until the last rank is done, where each step waits for the slowest."""
        return float(np.maximum(self.computing, self.sending).max(axis=1).sum())

    @property
    def balance(self) -> float:
        """The mean of what ranks compute over the most."""
        work = self.computing.sum(axis=0)
        return float(work.mean() / work.max()) if work.max() > 0 else 1.0

    def figures(self) -> dict[str, Any]:
        """The plan in numbers: of ranks, the most; bytes and seconds."""
        return {
            "ranks": self.ranks,
            "steps": self.steps,
            "sent": int(self.sent.sum(axis=0).max()),
            "received": int(self.received.sum(axis=0).max()),
            "computing": float(self.computing.sum(axis=0).max()),
            "sending": float(self.sending.sum(axis=0).max()),
            "seconds": self.total,
            "balance": self.balance,
        }

    def draw(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """A picture, .svg or .png: which runs meet, and the seconds of each rank at each step."""
        from .pictures import draw

        draw(self, path, title)

    def __str__(self) -> str:
        made = table_class()(title=f"{self.length} tokens on {self.ranks} ranks, {self.rotate}")
        for name in ("", "least", "mean", "most"):
            made.add_column(name, justify="left" if not name else "right")
        rows = {
            "MB sent by a rank": self.sent.sum(axis=0) / 1e6,
            "MB received": self.received.sum(axis=0) / 1e6,
            "ms computing": self.computing.sum(axis=0) * 1e3,
            "ms sending": self.sending.sum(axis=0) * 1e3,
            "ms of a rank": self.seconds * 1e3,
        }
        for name, values in rows.items():
            made.add_row(name, *(f"{number:.3f}" for number in (values.min(), values.mean(), values.max())))
        text = io.StringIO()
        console_class()(file=text, width=78).print(made)
        return f"{text.getvalue()}{self.steps} steps, {self.total * 1e3:.3f} ms in all, balance {self.balance:.0%}"


def plan(
    pattern: Pattern | None,
    length: int,
    ranks: int,
    *,
    heads: int,
    head_dim: int,
    kv_heads: int | None = None,
    batch: int = 1,
    dtype: str = "bf16",
    rotate: str = "ring",
    layout: str | Layout = "consecutive",
    gpu: str | None = None,
    link: float = _LINK,
    backward: bool = False,
) -> Plan:
    """What weft.distributed.attend would do for a sequence of ``length`` tokens on ``ranks`` ranks.

    ``heads``, ``kv_heads``, ``head_dim``, ``batch``, ``dtype``    of queries, keys and values
    ``rotate``, ``layout``    as in attend; "counted" too
    ``gpu``       what computes ("h100", ...); ``link`` bytes a second between two ranks, in one direction
    ``backward``  the backward instead of the forward
    """
    if pattern is not None and not isinstance(pattern, Pattern):
        raise TypeError(f"expected a pattern, but got '{type(pattern).__name__}'")
    if rotate not in ROTATIONS:
        raise ValueError(f"expected 'rotate' among {', '.join(ROTATIONS)}, but got {rotate!r}")
    if dtype not in BYTES:
        raise ValueError(f"expected 'dtype' among {', '.join(BYTES)}, but got {dtype!r}")
    for name, number in (
        ("length", length),
        ("ranks", ranks),
        ("heads", heads),
        ("head_dim", head_dim),
        ("batch", batch),
    ):
        if number < 1:
            raise ValueError(f"expected '{name}' to be at least 1, but got {number}")
    groups = heads if kv_heads is None else kv_heads
    if groups < 1 or heads % groups:
        raise ValueError(f"expected 'kv_heads' to divide {heads} heads, but got {groups}")
    if not link > 0:
        raise ValueError(f"expected 'link' to be more than 0 bytes a second, but got {link}")
    held = _layout(layout, ranks, pattern, length)
    if length % held.count:
        raise ValueError(f"expected a length that {held.count} runs divide, but got {length}")
    found = classes(pattern, length, length, held.count)
    one = 2 * batch * groups * head_dim * (length // held.count)  # elements of a run's keys and values
    needed = np.stack([(found[list(runs)] != EMPTY).any(axis=0) for runs in held.runs])
    arrived = arrivals(needed, held.owners, rotate)
    sent, received = counted(needed, held.owners, rotate)
    sent, received = sent * one * BYTES[dtype], received * one * BYTES[dtype]
    if backward:
        sent, received = _returned(arrived, held.owners, sent, received, one * 4)
    device = gpu_named(gpu)
    rates = _Rates(device.matrix.get(_MATRIX[dtype], device.matrix["f16"]) * 1e9, device.memory_bandwidth * 1e9)
    work = _pairs(pattern, length, held, found) * (4 * batch * heads * head_dim * (2.5 if backward else 1.0))
    computing = np.zeros_like(sent)
    seconds = np.maximum(work / rates.flops, one * BYTES[dtype] / rates.memory)
    for rank in range(ranks):
        there = arrived[rank] >= 0
        computing[:, rank] = np.bincount(arrived[rank, there], seconds[rank, there], len(computing))
    return Plan(pattern, length, held, rotate, device, found, sent, received, computing, float(link))


@dataclass(frozen=True)
class _Rates:
    flops: float
    memory: float


def _layout(given: str | Layout, ranks: int, pattern: Pattern | None, length: int) -> Layout:
    if isinstance(given, Layout):
        if given.ranks != ranks:
            raise ValueError(f"expected a layout of {ranks} ranks, but got one of {given.ranks}")
        return given
    return layout(given, ranks, pattern, length)


def _pairs(pattern: Pattern | None, length: int, held: Layout, found: Any) -> Any:
    """How many pairs of a rank's queries and a run's keys attend, about; [ranks, runs]."""
    finer = 1
    while 2 * finer * held.count <= _FINE and length % (2 * finer * held.count) == 0:
        finer *= 2
    fine = classes(pattern, length, length, held.count * finer) if finer > 1 else found
    weight = np.array([0.0, 0.5, 1.0])[fine] * (length // (held.count * finer)) ** 2
    blocks = weight.reshape(held.count, finer, held.count, finer).sum(axis=(1, 3))
    blocks = np.where((blocks == 0) & (found >= PARTIAL), 1.0, blocks)
    return np.stack([blocks[list(runs)].sum(axis=0) for runs in held.runs])


def _returned(arrived: Any, owners: Any, sent: Any, received: Any, size: int) -> tuple[Any, Any]:
    """With gradients on their way back, which go while the next step is computed."""
    steps = np.zeros((1, sent.shape[1]))
    sent, received = np.concatenate([sent, steps]), np.concatenate([received, steps])
    rank, run = np.nonzero(arrived > 0)
    step = arrived[rank, run]
    np.add.at(sent, (step + 1, rank), size)
    np.add.at(received, (step + 1, owners[run]), size)
    return sent, received
