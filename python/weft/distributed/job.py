# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One call on one rank: what it has, what is needed of it, and the way there."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .layouts import Layout
from .needs import EMPTY
from .parts import Scores, captured, trace
from .routes import Step, arrivals, route


@dataclass(frozen=True, eq=False)
class Domain:
    """Keys and values of this rank, with what makes their scores; ``classes`` [runs, runs] says which runs meet.
    ``spans`` of a run of queries and one of keys are the bounds of what attends, in the place of a pattern."""

    k: Any
    v: Any
    scores: Scores
    classes: Any
    spans: Callable[[int, int], Any] | None = None

    @property
    def digest(self) -> str:
        """What tells tables of classes apart, in short."""
        return hashlib.blake2b(np.ascontiguousarray(self.classes).tobytes(), digest_size=6).hexdigest()


@dataclass(frozen=True, eq=False)
class Job:
    """A call of a rank."""

    group: Any
    rank: int
    layout: Layout
    rotate: str
    q: Any
    domains: tuple[Domain, ...]

    @property
    def own(self) -> tuple[int, ...]:
        """The runs that this rank holds."""
        return self.layout.runs[self.rank]

    def meets(self, domain: Domain, row: int, key: int) -> bool:
        """Whether a run of queries has something to do with a run of keys."""
        return bool(domain.classes[row, key] != EMPTY)

    @functools.cached_property
    def needed(self) -> list[Any]:
        """Which runs of each domain's keys each rank needs, bool [ranks, runs]."""
        some = [domain.classes != EMPTY for domain in self.domains]
        return [np.stack([each[list(held)].any(axis=0) for held in self.layout.runs]) for each in some]

    def steps(self, number: int) -> tuple[Step, ...]:
        """How the keys and values of domain ``number`` travel: this rank's part."""
        return route(self.needed[number], self.layout.owners, self.rotate, self.rank)

    def arrivals(self, number: int) -> Any:
        """The step at which each rank computes with each run, [ranks, runs]; -1 where it has nothing to do with it."""
        return arrivals(self.needed[number], self.layout.owners, self.rotate)

    @functools.cached_property
    def places(self) -> dict[str, Any]:
        """Where runs of queries and of each domain's keys lie: int32 [runs, 4], of which each row's first two are the
        first token and how many the whole has. Rows are of 16 bytes, so that all are aligned alike."""
        lengths = {"q": self.q.shape[2], **{f"k{i}": domain.k.shape[2] for i, domain in enumerate(self.domains)}}
        found = {}
        for name, own in lengths.items():
            whole = own * self.layout.ranks
            table = np.zeros((self.layout.count, 4), np.int32)
            table[:, 0] = np.arange(self.layout.count) * (whole // self.layout.count)
            table[:, 1] = whole
            found[name] = torch.from_numpy(table).to(self.q.device)
        return found

    def place(self, number: int, row: int, run: int) -> list[Any]:
        """Where a run of queries and a run of the keys of domain ``number`` lie; of spans, the part's bounds too."""
        found = [self.places["q"][row, :2], self.places[f"k{number}"][run, :2]]
        spans = self.domains[number].spans
        return found if spans is None else [*found, spans(row, run)]

    def split(self, x: Any) -> list[Any]:
        """The runs of a tensor of this rank's, each in one piece of memory."""
        return [each.contiguous() for each in x.detach().chunk(len(self.own), 2)]

    def trace(self) -> None:
        """Traces the parts, so that what is wrong with a pattern or a score_mod is raised before anything is sent."""
        for number, domain in enumerate(self.domains):
            trace(self.arrays(number), domain.scores)

    def captured(self) -> list[Any]:
        """The tensors that score_mods read and that require gradients, none twice."""
        found: list[Any] = []
        for number, domain in enumerate(self.domains):
            if domain.scores.score_mod is not None:
                for _, each in captured(self.arrays(number), domain.scores):
                    if not any(each is other for other in found):
                        found.append(each)
        return found

    def arrays(self, number: int) -> list[Any]:
        """What a part of a domain is called with, of any place."""
        domain = self.domains[number]
        q, k, v = (self.split(each)[0] for each in (self.q, domain.k, domain.v))
        return [q, k, v, *self.place(number, self.own[0], self.own[0])]
