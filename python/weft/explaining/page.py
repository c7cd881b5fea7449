# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One HTML page of what a program or a kernel became: all its forms side by side, linked line by line."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.compiler.ptxas import listing
from weft.errors import Error
from weft.explaining import counted as counting
from weft.explaining import lines as reading
from weft.explaining.lines import Line, Place
from weft.explaining.patterns import Picture, pictures
from weft.explaining.way import Way
from weft.explaining.why import Remark, remarks
from weft.folders import new_file
from weft.simulator.profile_table import duration
from weft.targets import Gpu

#: what is asked of the compiler: the stages that columns show
STAGES = ("attn", "tile", "pipelined")
_TITLES = {
    "attn": "attn: whole tensors, with schedules",
    "tile": "tile: what a program of a grid computes",
    "pipelined": "warp: layouts, shared memory, copies",
}


@dataclass(frozen=True)
class Row:
    """A line of a column: its number and text, the group that it is linked with, and its share of the instructions."""

    number: int
    text: str
    group: int | None
    share: str = ""


@dataclass(frozen=True)
class Column:
    """One form of the program; ``note`` stands in place of lines where there are none."""

    name: str
    title: str
    rows: Sequence[Row]
    note: str = ""


def write(path: str | os.PathLike[str], way: Way, counted: Sequence[counting.Counted], gpu: Gpu, said: str) -> None:
    """Write the page; it is whole or not there. ``said`` is why there are no counters, where there are none. Raises
    Error where jinja2 is missing."""
    text = render(way, counted, gpu, said)
    with new_file(path) as file:
        file.write_text(text, encoding="utf-8")


def render(way: Way, counted: Sequence[counting.Counted], gpu: Gpu, said: str) -> str:
    """The page as text."""
    try:
        import jinja2
    except ImportError as error:
        raise Error("a page is written by jinja2, which is not installed: pip install jinja2") from error
    template = pathlib.Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["duration"] = duration
    columns, groups = _columns(way, counting.instructions_of(list(counted)))
    return environment.from_string(template).render(
        way=way,
        columns=columns,
        remarks=[(each, _group(each, groups)) for each in remarks(way.info)],
        schedules=_schedules(way.info),
        kernels=way.info["kernels"],
        counted=counted,
        said=said,
        gpu=gpu,
        pictures=list(_pictures(way)),
        bars=[_bars(each, gpu) for each in counted],
    )


def _columns(way: Way, instructions: Mapping[Place, int]) -> tuple[list[Column], dict[Place, int]]:
    """All forms, and the numbers of the places that link them."""
    found: list[tuple[str, str, list[Line], str]] = []
    for stage in STAGES:
        if way.ir.get(stage):
            found.append((stage if stage != "pipelined" else "warp", _TITLES[stage], reading.of_ir(way.ir[stage]), ""))
    found.append(("PTX", f"PTX for {way.target}", reading.of_ptx(way.ptx), ""))
    code = listing(way.ptx, way.target)
    absent = "There is no SASS: it takes ptxas and nvdisasm, on PATH, in CUDA_HOME or in an installed Triton."
    found.append(("SASS", "SASS: machine code", reading.of_machine_code(code or ""), "" if code else absent))
    places = {line.place for _, _, each, _ in found for line in each if line.place}
    source = list(_source(places))
    groups = {place: i for i, place in enumerate(sorted({line.place for line in source if line.place}))}
    whole = sum(instructions.values())

    def row(line: Line, counts: bool = False) -> Row:
        count = instructions.get(line.place, 0) if counts and line.place else 0
        share = f"{100 * count / whole:.1f} %" if count else ""
        return Row(line.number, line.text, groups.get(line.place) if line.place else None, share)

    columns = [Column("source", "source", [row(line, counts=True) for line in source])]
    columns += [Column(name, title, [row(line) for line in each], note) for name, title, each, note in found]
    return columns, groups


def _source(places: Iterable[Place]) -> Iterator[Line]:
    """The source files that lines come from, each under its name."""
    files: dict[str, set[int]] = {}
    for place in places:
        files.setdefault(place.file, set()).add(place.line)
    for file, named in sorted(files.items()):
        path = pathlib.Path(file)
        if path.is_file():
            if len(files) > 1:
                yield Line(0, f"# {path.name}", None)
            yield from reading.of_source(file, path.read_text(encoding="utf-8", errors="replace"), named)


def _group(remark: Remark, groups: Mapping[Place, int]) -> int | None:
    return groups.get(Place(remark.file, remark.line))


def _schedules(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Attentions' kernels, and rows, columns, warps and stages of each."""
    return [
        (f"attention {each['attend']}, {each['role'].replace('.', ', ')}", " × ".join(map(str, each["schedule"])))
        for each in info.get("schedules", [])
    ]


def _pictures(way: Way) -> Iterator[Picture]:
    if way.traced:
        rows = {
            each["attend"]: each["schedule"][:2] for each in way.info.get("schedules", []) if each["role"] == "forward"
        }
        yield from pictures(way.traced.plain, next(iter(rows.values()), (64, 64)))


def _bars(each: counting.Counted, gpu: Gpu) -> list[tuple[str, float, float]]:
    """What each resource needs at least for the whole grid: its name, seconds, and percent of the longest."""
    bounds = each.launched.report.profile.roofline(gpu, each.launched.scale).bounds
    longest = max(bound.seconds for bound in bounds) or 1.0
    return [(bound.resource, bound.seconds, 100 * bound.seconds / longest) for bound in bounds]
