# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A profile as a picture: where instructions go, what memory costs beside its minimum, and what bounds the time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from weft.errors import Error
from weft.folders import new_file
from weft.simulator.profile_table import duration

if TYPE_CHECKING:
    from weft.simulator.profile import Profile, SourceLine
    from weft.targets import Gpu

# One colour a family, told apart by people who see no red and green too (Okabe and Ito's palette, softened).
FAMILIES = {
    "arithmetic": (
        "#7aa6c2",
        ("integer", "float", "half", "double", "convert", "special", "compare", "predicate", "move"),
    ),
    "matrix": ("#1f5f8b", ("matrix", "matrix_load")),
    "global memory": ("#e0a458", ("global_load", "global_store", "async_copy", "atomic")),
    "shared memory": ("#8fb996", ("shared_load", "shared_store")),
    "synchronisation": ("#b5718b", ("barrier", "fence", "vote", "shuffle")),
    "control and the rest": ("#c8ccd0", ()),
}
INK, FAINT = "#2b3036", "#8a9199"


def draw(profile: Profile, path: str | os.PathLike[str], gpu: str | Gpu | None, rows: int) -> None:
    """Write the picture. Raises Error where matplotlib is missing or the file's ending is none of its formats."""
    try:
        import matplotlib
    except ImportError as error:
        raise Error("a profile is drawn by matplotlib, which is not installed: pip install matplotlib") from error
    from matplotlib.figure import Figure

    lines = profile.by_source()[:rows]
    height = max(3.4, 0.27 * len(lines) + 1.6)
    settings: Any = {
        "font.size": 8.5,
        "font.family": "sans-serif",
        "svg.hashsalt": "weft",
        "svg.fonttype": "none",
        **dict.fromkeys(("text.color", "axes.labelcolor", "ytick.color"), INK),
        **dict.fromkeys(("axes.edgecolor", "xtick.color"), FAINT),
    }
    with matplotlib.rc_context(settings):
        figure: Any = Figure(figsize=(12, height + 2.9), layout="constrained")
        above, below = figure.subfigures(2, 1, height_ratios=[height, 2.5])
        bars, sectors, wavefronts = above.subplots(1, 3, width_ratios=[2.2, 1, 1], sharey=True)
        _instructions(bars, sectors, wavefronts, lines)
        _roofline(below.subplots(1, 1), profile, gpu)
        total = profile.total()
        figure.suptitle(
            f"{profile.kernel}    {total.warp_instructions:,} warp instructions, "
            f"{total.thread_instructions / max(total.warp_instructions, 1):.1f} lanes on, "
            f"{total.divergent_branches:,} divergent branches, {total.barrier_waits:,} waits at barriers",
            x=0.01, ha="left", fontsize=11, fontweight="bold",
        )  # fmt: skip
        try:
            with new_file(path) as file:
                figure.savefig(file, metadata={"Date": None} if str(path).endswith(".svg") else None)
        except ValueError as error:
            raise Error(f"expected a file that ends in .svg, .png or .pdf, but got '{os.fspath(path)}'") from error


def _instructions(bars: Any, sectors: Any, wavefronts: Any, lines: list[SourceLine]) -> None:
    """One row a source line, the costliest on top."""
    places = range(len(lines))
    left = [0] * len(lines)
    known = {kind for _, kinds in FAMILIES.values() for kind in kinds}
    for name, (colour, kinds) in FAMILIES.items():
        counts = [
            sum(n for kind, n in line.by_kind.items() if (kind in kinds if kinds else kind not in known))
            for line in lines
        ]
        if any(counts):
            bars.barh(places, counts, left=left, color=colour, label=name, height=0.72)
            left = [a + b for a, b in zip(left, counts, strict=True)]
    bars.set_yticks(places, [_short(line.place) for line in lines])
    bars.invert_yaxis()
    bars.set_title("warp instructions by source line", loc="left", fontsize=9)
    bars.legend(frameon=False, loc="lower right")
    ideal = [line.total.global_sectors_ideal for line in lines]
    taken = [line.total.global_sectors_read + line.total.global_sectors_written for line in lines]
    _excess(sectors, ideal, taken, "global sectors", FAMILIES["global memory"][0])
    ideal = [line.total.shared_wavefronts_ideal for line in lines]
    taken = [line.total.shared_wavefronts for line in lines]
    _excess(wavefronts, ideal, taken, "shared wavefronts", FAMILIES["shared memory"][0])
    for axes, counted in ((bars, "warp instructions"), (sectors, "sectors of 32 bytes"), (wavefronts, "wavefronts")):
        _plain(axes, counted)
    bars.set_ylabel("source line")


def _excess(axes: Any, ideal: list[int], taken: list[int], title: str, colour: str) -> None:
    """What must be, solid; what is more than that, hatched, with its factor."""
    rows = range(len(ideal))
    axes.barh(rows, ideal, color=colour, height=0.72, label="needed")
    more = [max(0, b - a) for a, b in zip(ideal, taken, strict=True)]
    worse = [row for row in rows if more[row]]
    axes.barh(
        worse, [more[row] for row in worse], left=[ideal[row] for row in worse],
        color="white", edgecolor="#c0504d", hatch="////", linewidth=0.6, height=0.72, label="in excess",
    )  # fmt: skip
    for row, (a, b) in enumerate(zip(ideal, taken, strict=True)):
        if b > a:
            axes.text(b, row, f" {b / max(a, 1):.1f}×", va="center", color="#c0504d")
    if any(taken):
        axes.legend(frameon=False, loc="lower right")
    axes.margins(x=0.15)
    axes.set_title(f"{title}, hatched: in excess", loc="left", fontsize=9)


def _roofline(axes: Any, profile: Profile, gpu: str | Gpu | None) -> None:
    """The time that each resource needs at least, the longest on top."""
    roofline = profile.roofline(gpu)
    bounds = roofline.bounds
    colours = [INK] + ["#b8c4ce"] * (len(bounds) - 1)
    axes.barh(range(len(bounds)), [bound.seconds for bound in bounds], color=colours, height=0.66)
    for row, bound in enumerate(bounds):
        axes.text(bound.seconds, row, f"  {duration(bound.seconds)}", va="center")
    axes.set_yticks(range(len(bounds)), [bound.resource for bound in bounds])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    intensity = f", {roofline.intensity:.2f} operations a byte" if roofline.bytes else ""
    axes.set_title(
        f"least time on {roofline.gpu.name}: bound by {roofline.limit.resource}{intensity}", loc="left", fontsize=9
    )
    _plain(axes, "time that the resource needs at least", "s")
    axes.set_ylabel("resource")


def _plain(axes: Any, counted: str, unit: str = "") -> None:
    axes.set_xlabel(counted)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(_locator())
    axes.xaxis.set_major_formatter(_formatter(unit))


def _locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4)


def _formatter(unit: str) -> Any:
    from matplotlib.ticker import EngFormatter

    return EngFormatter(unit=unit, sep=" " if unit else "")


def _short(place: str, width: int = 40) -> str:
    name = place.rsplit("/", 1)[-1]
    return name if len(name) <= width else "…" + name[1 - width :]
