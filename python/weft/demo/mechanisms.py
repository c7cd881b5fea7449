# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The papers' mechanisms in the demo: each example's program and its generated backward, held against its formula, and
counted launch by launch on the simulator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import weft
from weft.demo.cases import example
from weft.demo.tables import Grid
from weft.programs.running import form_of
from weft.programs.simulated import Launched, run_plan
from weft.simulator.profile import Roofline
from weft.targets import gpus
from weft.testing import Demonstration, drawn
from weft.testing.accuracy import Accuracy

#: the examples, by the mechanism's name, and which of their demonstrations the demo runs
EXAMPLES = {
    "SEMA": ("06_sema", ("SEMA on a sequence", "SEMA on a grid")),
    "SFA": ("07_sfa", ("SFA, 50% of the tokens like the one before",)),
    "SAS": ("08_sas", ("SAS, 12 heads made of 4",)),
    "GAU": ("09_gau", ("GAU", "convolution-equipped GAU")),
}


@dataclass(frozen=True)
class Counted:
    """A launch of a program: what it executed, and the least time for it on a GPU."""

    mechanism: str
    part: str  # "forward" or "backward"
    launched: Launched
    roofline: Roofline


@dataclass(frozen=True)
class Mechanism:
    """A mechanism judged and counted."""

    name: str  #: of ``EXAMPLES``
    title: str
    judged: dict[str, Accuracy]
    seconds: float  #: compiled, run and judged, on fresh inputs
    launches: tuple[Counted, ...]
    failures: tuple[str, ...] = ()

    def of(self, part: str) -> list[Counted]:
        """The launches of the forward or of the backward."""
        return [each for each in self.launches if each.part == part]


def demonstrations() -> Iterator[tuple[str, Demonstration]]:
    """Those of ``EXAMPLES``, each with its mechanism's name."""
    for name, (module, titles) in EXAMPLES.items():
        known = {each.title: each for each in example(module).demonstrations()}
        yield from ((name, known[title]) for title in titles)


def run_mechanism(name: str, each: Demonstration, gpu: str | None = None) -> Mechanism:
    """Judge a program and its backward in float16, then count one run of both."""
    started = time.perf_counter()
    judged: dict[str, Accuracy] = {}
    wrong: tuple[str, ...] = ()
    try:
        judged = each.judged(torch.float16)
    except AssertionError as error:
        wrong = (f"{each.title}: {error}",)
    seconds = time.perf_counter() - started
    return Mechanism(name, each.title, judged, seconds, tuple(_counted(each, gpu)), wrong)


def _counted(each: Demonstration, gpu: str | None) -> Iterator[Counted]:
    def whole(*tensors: Any) -> Any:
        return each.program(*tensors)

    program = weft.program(whole)
    call = program.bind(tuple(drawn(each.inputs, torch.float16).values()), {})
    traced = program.trace(call)
    form = form_of(traced, call.arrays, True)
    inputs = [x.numpy() for x in (*call.arrays, *traced.captured)]
    forward = run_plan(form.ptx, form.info, f"{traced.name}.forward", inputs)
    outputs = list(forward.outputs.values())
    gradients = [outputs[0] * 0 + 1]
    saved = [*inputs, *(outputs[number] for number in form.saved_outputs)]
    backward = run_plan(form.ptx, form.info, f"{traced.name}.backward", [*saved, *gradients])
    for part, run in (("forward", forward), ("backward", backward)):
        for launched in run.launches:
            yield Counted(each.title, part, launched, launched.report.profile.roofline(gpu))


def mechanism_table(mechanisms: Sequence[Mechanism]) -> Grid:
    """A row for each mechanism's forward, and one for its backward."""
    rows = []
    for each in mechanisms:
        for part in ("forward", "backward"):
            errors = {n: found for n, found in each.judged.items() if n.startswith("d_") == (part == "backward")}
            if not errors:
                continue
            name, worst = max(errors.items(), key=lambda item: item[1].closeness)
            launches = each.of(part)
            instructions = sum(one.launched.report.counters["warp_instructions"] for one in launches)
            bound = sum(one.roofline.limit.seconds for one in launches)
            rows.append(
                (
                    each.title if part == "forward" else "",
                    part,
                    name,
                    f"{worst.worst:.1e}",
                    f"{worst.worst_plain:.1e}",
                    f"{100 * worst.closeness:.0f} %",
                    str(len(launches)),
                    f"{instructions:,}",
                    f"{1e6 * bound:.2f}",
                    f"{each.seconds:.1f}" if part == "forward" else "",
                )
            )
    title = "The papers' mechanisms in float16: programs of a few lines, their backward generated"
    least = f"least µs, {next(iter(gpus()))}"
    columns = ("mechanism", "part", "nearest to its limit", "error", "plain PyTorch's", "of limit")
    counts = ("launches", "warp instructions", least, "compile and check s")
    return Grid(title, (*columns, *counts), rows, left=3)
