# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The demo's page: one HTML file that needs no other, with the tables, patterns drawn, and the launches' roofline."""

from __future__ import annotations

import io
import os
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import jinja2

import weft
from weft.demo.mechanisms import EXAMPLES, Mechanism
from weft.demo.tables import Grid
from weft.folders import new_file
from weft.targets import gpu_named

_COLOURS = ("#1f5f8b", "#e0a458", "#8fb996", "#b5718b")


def write(path: str | os.PathLike[str], verdict: str, grids: Sequence[Grid], mechanisms: Sequence[Mechanism]) -> None:
    """Write the page; it is whole or not there."""
    template = pathlib.Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    page = environment.from_string(template).render(
        verdict=verdict,
        device=weft.device(),
        grids=grids,
        patterns=list(_patterns()),
        roofline=_roofline(mechanisms),
    )
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_file(target) as file:
        file.write_text(page, encoding="utf-8")


def _patterns() -> Iterator[tuple[str, str]]:
    """Patterns as a program spells them, and their pictures as SVG."""
    drawn = {
        "weft.causal()": weft.causal(),
        "weft.window(8, 0)": weft.window(8, 0),
        "weft.block_window((4, 4), grid=(8, 8))": weft.block_window((4, 4), grid=(8, 8)),
        "weft.dilated(4, 5)": weft.dilated(4, 5),
        "weft.prefix(12) | weft.causal()": weft.prefix(12) | weft.causal(),
        "weft.global_tokens(4) | weft.window(4, 4)": weft.global_tokens(4) | weft.window(4, 4),
        "weft.neighbourhood((8, 8), 5)": weft.neighbourhood((8, 8), 5),
        "weft.random_blocks(7, 2, 8) & weft.causal()": weft.random_blocks(7, 2, 8) & weft.causal(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, pattern in drawn.items():
            picture = pathlib.Path(folder) / "pattern.svg"
            weft.draw(pattern, picture, 64)
            yield name, picture.read_text(encoding="utf-8")


def _roofline(mechanisms: Sequence[Mechanism], gpu: str | None = None) -> str:
    """Every launch by its operations a byte and the rate that its least time allows, under the GPU's own limits."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    described = gpu_named(gpu)
    settings: Any = {"font.size": 9, "svg.hashsalt": "weft", "svg.fonttype": "none"}
    with rc_context(settings):
        figure: Any = Figure(figsize=(9, 4.6), layout="constrained")
        axes = figure.subplots(1, 1)
        intensities = [2.0**power for power in range(-4, 11)]
        for name, peak in (("float32", described.float32), ("f16 matrix units", described.matrix["f16"])):
            limit = [min(peak, each * described.memory_bandwidth) for each in intensities]
            axes.plot(intensities, limit, color="#8a9199", linewidth=1)
            axes.annotate(name, (intensities[-1], peak), ha="right", va="bottom", color="#8a9199")
        for name, colour in zip(EXAMPLES, _COLOURS, strict=True):
            for part, marker in (("forward", "o"), ("backward", "^")):
                launches = [
                    each
                    for mechanism in mechanisms
                    if mechanism.name == name
                    for each in mechanism.of(part)
                    if each.roofline.operations and each.roofline.bytes
                ]
                axes.scatter(
                    [each.roofline.intensity for each in launches],
                    [each.roofline.operations / each.roofline.limit.seconds / 1e9 for each in launches],
                    color=colour, marker=marker, s=28, alpha=0.85, label=f"{name}, {part}",
                )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="GFLOP/s that the least time allows")
        axes.set_title(f"{described.name}: launches of the demo's small cases, counted on the simulator", loc="left")
        axes.legend(frameon=False, fontsize=8, ncols=2)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
