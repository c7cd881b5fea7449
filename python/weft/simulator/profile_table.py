# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A profile as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from weft.tables import console_class, table_class

if TYPE_CHECKING:
    from weft.simulator.profile import Line, Profile
    from weft.targets import Gpu


def render(profile: Profile, gpu: str | Gpu | None, rows: int) -> str:
    """The costliest source lines, the whole, and what a GPU needs at least."""
    console = console_class()(file=io.StringIO(), width=150, highlight=False)
    lines = profile.by_source()
    total = profile.total()
    table = table_class()(title=f"kernel '{profile.kernel}'", title_justify="left")
    for heading in ("source line", "mostly"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        "warp instr.",
        "%",
        "lanes on",
        "sectors",
        "minimum",
        "wavefronts",
        "conflicts",
        "MMA",
        "waits",
        "diverg.",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in lines[:rows]:
        mostly = next(iter(row.by_kind), "")
        table.add_row(_tail(row.place, 34), mostly, *_cells(row.total, total.warp_instructions))
    if len(lines) > rows:
        table.add_row(f"and {len(lines) - rows} more", "")
    table.add_section()
    table.add_row("all", next(iter(profile.by_kind()), ""), *_cells(total, total.warp_instructions))
    console.print(table)

    roofline = profile.roofline(gpu)
    bounds = table_class()(title=f"least time on {roofline.gpu.name}", title_justify="left")
    bounds.add_column("resource")
    bounds.add_column("time", justify="right")
    for bound in roofline.bounds:
        bounds.add_row(bound.resource, duration(bound.seconds))
    console.print(bounds)
    intensity = f"{roofline.intensity:.2f} operations a byte" if roofline.bytes else "no global memory traffic"
    console.print(
        f"{roofline.operations:,} operations, {roofline.bytes:,} bytes: {intensity}; bound by {roofline.limit.resource}"
    )
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def duration(seconds: float) -> str:
    """With a unit that fits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _cells(line: Line, all_instructions: int) -> list[str]:
    lanes = line.thread_instructions / line.warp_instructions if line.warp_instructions else 0
    counts = [
        line.global_sectors_read + line.global_sectors_written,
        line.global_sectors_ideal,
        line.shared_wavefronts,
        line.shared_wavefronts - line.shared_wavefronts_ideal,
        line.mma_macs,
        line.barrier_waits,
        line.divergent_branches,
    ]
    share = 100 * line.warp_instructions / max(all_instructions, 1)
    return [f"{line.warp_instructions:,}", f"{share:.1f}", f"{lanes:.1f}"] + [f"{n:,}" if n else "" for n in counts]


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]
