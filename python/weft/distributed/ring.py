# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The softmax over all ranks, forward and backward, in torch's autograd.

Forward: keys and values travel; each part is computed when it is there, and merged in the order of steps and runs.
Backward: they travel again. A part's gradients are those of the whole softmax, whose output and log-sum-exp are saved;
those of keys and values go straight back to who has these, who adds them up in float32 by step, rank and run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..runtime.first_order import first_order
from .job import Domain, Job
from .parts import Merged, backward, captured, forward
from .traffic import Message, Post, travel


class _Buffers:
    """Keys and values of a run in one piece of memory, which travels."""

    def __init__(self, k: Any, v: Any) -> None:
        self.k, self.v = k.shape, v.shape
        self.sizes = [k.numel(), v.numel()]

    @staticmethod
    def packed(k: Any, v: Any) -> Any:
        return torch.cat([k.reshape(-1), v.reshape(-1)])

    def parts(self, buffer: Any) -> tuple[Any, Any]:
        k, v = buffer.split(self.sizes)
        return k.view(self.k), v.view(self.v)


def _buffers(job: Job, domain: Domain) -> tuple[_Buffers, dict[int, Any]]:
    keys, values = job.split(domain.k), job.split(domain.v)
    form = _Buffers(keys[0], values[0])
    return form, {run: form.packed(k, v) for run, k, v in zip(job.own, keys, values, strict=True)}


def _forward(job: Job, sink: Any) -> tuple[Any, Any]:
    queries = dict(zip(job.own, job.split(job.q), strict=True))
    merged = {row: Merged() for row in job.own}
    for number, domain in enumerate(job.domains):
        form, own = _buffers(job, domain)
        for _, runs, held in travel(job.steps(number), job.rank, own, job.group):
            for run in runs:
                k, v = form.parts(held[run])
                for row in job.own:
                    if job.meets(domain, row, run):
                        arrays = [queries[row], k, v, *job.place(number, row, run)]
                        merged[row].add(*forward(arrays, domain.scores))
    shape = [*queries[job.own[0]].shape[:3], job.domains[0].v.shape[3]]
    for each in merged.values():
        if each.lse is None:  # rows that meet no key
            each.add(job.q.new_zeros(shape), job.q.new_full(shape[:3], -torch.inf, dtype=torch.float32))
        if sink is not None:
            each.add_sink(sink.detach())
    out = torch.cat([merged[row].out for row in job.own], 2).to(job.q.dtype)
    return out, torch.cat([merged[row].lse for row in job.own], 2).float()


class _Returns:
    """Gradients of keys and values on their way to who has these."""

    def __init__(self, job: Job, number: int, form: _Buffers) -> None:
        self.job, self.arrivals = job, job.arrivals(number)
        self.owners = job.layout.owners
        self.sums = {run: torch.zeros(sum(form.sizes), device=job.q.device) for run in job.own}
        self.coming: list[tuple[int, Any]] = []
        self.post: Post | None = None

    def step(self, number: int, found: dict[int, Any]) -> None:
        """Add what the step before sent here; send what this rank has found at this step, and await that of others."""
        job, ranks = self.job, self.job.layout.ranks
        self.finish()
        if number == 0:
            for run, each in sorted(found.items()):
                self.sums[run] += each
            return
        senders = [(rank, run) for rank in range(ranks) for run in job.own if self.arrivals[rank, run] == number]
        tag = job.layout.count
        self.coming = [(run, torch.empty_like(self.sums[run])) for _, run in senders]
        messages = [
            Message(buffer, rank, tag + run, False)
            for (rank, run), (_, buffer) in zip(senders, self.coming, strict=True)
        ]
        messages += [Message(each, int(self.owners[run]), tag + run, True) for run, each in sorted(found.items())]
        self.post = Post(messages, job.group)

    def finish(self) -> None:
        """Wait for what is under way, and add it."""
        if self.post is None:
            return
        self.post.wait()
        for run, buffer in self.coming:
            self.sums[run] += buffer
        self.post, self.coming = None, []


class _Gradients:
    """Gradients as they are found: of queries and captured tensors here, of keys and values on their way."""

    def __init__(self, job: Job, saved: Sequence[Any], gradients: Sequence[Any], of: Sequence[Any]) -> None:
        self.job, self.of = job, of
        self.queries = dict(zip(job.own, job.split(job.q), strict=True))
        self.saved, self.given = (
            dict(zip(job.own, zip(*map(job.split, each), strict=True), strict=True)) for each in (saved, gradients)
        )
        self.q = {row: torch.zeros_like(each, dtype=torch.float32) for row, each in self.queries.items()}
        self.captured = [torch.zeros_like(each, dtype=torch.float32) for each in of]

    def domain(self, number: int) -> tuple[Any, Any]:
        """Go through a domain's keys; gives the gradients of this rank's keys and values."""
        job, domain = self.job, self.job.domains[number]
        form, own = _buffers(job, domain)
        names = captured(job.arrays(number), domain.scores) if self.of else []
        returns = _Returns(job, number, form)
        for step, runs, held in travel(job.steps(number), job.rank, own, job.group):
            found: dict[int, Any] = {}
            for run in runs:
                for row in job.own:
                    if job.meets(domain, row, run):
                        both = self._pair(number, row, run, form.parts(held[run]), names)
                        found[run] = found[run] + both if run in found else both
            returns.step(step, found)
        returns.finish()
        pieces = [form.parts(returns.sums[run]) for run in job.own]
        k, v = (torch.cat([piece[side] for piece in pieces], 2).to(job.q.dtype) for side in (0, 1))
        return k, v

    def _pair(self, number: int, row: int, run: int, keys: tuple[Any, Any], names: Sequence[Any]) -> Any:
        job = self.job
        arrays = [self.queries[row], *keys, *job.place(number, row, run)]
        found = backward(arrays, job.domains[number].scores, self.saved[row], self.given[row])
        self.q[row] += found["q"]
        for name, each in names:
            at = next(i for i, other in enumerate(self.of) if other is each)
            self.captured[at] += found[name]
        return _Buffers.packed(found["k"].float(), found["v"].float())


class Ring(torch.autograd.Function):
    """Ring.apply(job, sink, q, k, v, ..., captured tensors): the output and the log-sum-exp."""

    @staticmethod
    def forward(ctx: Any, job: Job, sink: Any, *tensors: Any) -> Any:
        """This rank's rows of both."""
        out, lse = _forward(job, sink)
        ctx.job = job
        ctx.save_for_backward(sink, out, lse, *tensors)
        return out, lse

    @staticmethod
    def backward(ctx: Any, of_out: Any, of_lse: Any) -> Any:
        """The gradients of this rank's tensors; of what all ranks have, its share."""
        kept = ctx.saved_tensors
        job: Job = ctx.job

        def compute() -> list[Any]:
            return _gradients(job, kept, of_out, of_lse)

        return (None, *first_order("weft.distributed.attend", compute, [*kept, of_out, of_lse]))


def _gradients(job: Job, kept: Sequence[Any], of_out: Any, of_lse: Any) -> list[Any]:
    """Of the sink, the queries, the keys and values of each domain, and captured tensors."""
    sink, out, lse, *tensors = kept
    count = 1 + 2 * len(job.domains)
    found = _Gradients(job, (out, lse), (of_out, of_lse), tensors[count:])
    both = [found.domain(number) for number in range(len(job.domains))]
    dq = torch.cat([found.q[row] for row in job.own], 2).to(job.q.dtype)
    dsink = None if sink is None else _sink_gradient(sink, out, lse, of_out, of_lse)
    others = [each.to(tensor.dtype) for each, tensor in zip(found.captured, tensors[count:], strict=True)]
    return [dsink, dq, *(each for pair in both for each in pair), *others]


def _sink_gradient(sink: Any, out: Any, lse: Any, of_out: Any, of_lse: Any) -> Any:
    """The sink's weight in each row times what the row's normaliser is worth."""
    worth = of_lse - (of_out.float() * out.float()).sum(-1)
    weight = torch.exp(sink.float()[None, :, None] - lse)
    return (weight * worth).sum((0, 2)).to(sink.dtype)
