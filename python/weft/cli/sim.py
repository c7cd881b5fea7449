# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft sim``: any PTX file on the simulator, with every check on."""

from __future__ import annotations

import argparse
import json
import pathlib
import secrets
import time
from typing import Any

from weft.cli import arguments as argument_forms
from weft.cli import output
from weft.cli.choices import described, gpu_names
from weft.cli.shapes import triple
from weft.folders import new_file


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "sim",
        help="run a PTX file on the simulator",
        description="Runs one entry of a PTX file on the simulator and reports what it found and counted.\n\n"
        "Arguments, in the order of the entry's parameters:" + str(argument_forms.__doc__).partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("file", metavar="FILE.ptx")
    part.add_argument("--entry", required=True, metavar="NAME", help="the .entry to run")
    part.add_argument("--grid", type=triple, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="blocks (default: 1)")
    part.add_argument("--block", type=triple, required=True, metavar="X[,Y[,Z]]", help="threads of a block")
    part.add_argument(
        "--cluster", type=triple, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="blocks of a cluster (default: 1)"
    )
    part.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory (default: 0)")
    part.add_argument("--arg", action="append", default=[], metavar="A", help="an argument; repeat for each")
    part.add_argument(
        "--checks", default="all", metavar="C", help="all, none, or kinds of findings by comma (default: all)"
    )
    part.add_argument(
        "--approximations",
        default="close",
        choices=("close", "loose"),
        help="loose: what ex2.approx and the like give is as far off as PTX allows (default: close)",
    )
    part.add_argument(
        "--seed", type=int, default=None, help="for random arguments and the order of warps (default: fresh, printed)"
    )
    part.add_argument(
        "--schedules", type=int, default=1, metavar="K", help="run K interleavings and compare (default: 1)"
    )
    part.add_argument(
        "--limit", type=int, default=0, metavar="N", help="end after N warp instructions as a deadlock (default: never)"
    )
    part.add_argument("--sample", type=int, default=0, metavar="N", help="run N of the grid's blocks (default: all)")
    part.add_argument(
        "--profile",
        nargs="?",
        const="-",
        metavar="FILE",
        help="what each source line cost and what bounds the time: a table, or a picture or JSON where FILE ends in "
        ".svg, .png, .pdf or .json",
    )
    part.add_argument(
        "--timeline",
        metavar="FILE",
        help="write the launch's time by the cost model as trace events for Perfetto: modelled, not timed",
    )
    part.add_argument("--gpu", metavar="NAME", help=f"whose time: {described(gpu_names())}")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Simulate; exit code 1 when there are findings."""
    import weft.simulator
    from weft.targets import gpu_named

    gpu_named(arguments.gpu)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    if seed < 0:
        raise ValueError(f"expected --seed to be at least 0, but got {seed}")
    parsed = argument_forms.parse_arguments(arguments.arg, seed)
    started = time.perf_counter()
    report = weft.simulator.launch(
        pathlib.Path(arguments.file),
        arguments.entry,
        arguments.grid,
        arguments.block,
        [argument.value for argument in parsed],
        shared=arguments.shared,
        cluster=arguments.cluster,
        checks=arguments.checks,
        approximations=arguments.approximations,
        seed=seed,
        schedules=arguments.schedules,
        limit=arguments.limit,
        sample=arguments.sample,
    )
    seconds = time.perf_counter() - started
    written = argument_forms.write_outputs(parsed)
    findings = [_as_dict(finding) for finding in report.findings]
    if arguments.profile not in (None, "-"):
        path = pathlib.Path(arguments.profile)
        if path.suffix == ".json":
            with new_file(path) as file:
                file.write_text(json.dumps(report.profile.as_dict(arguments.gpu), indent=1))
        else:
            report.profile.draw(path, arguments.gpu)
        written.append(path)
    if arguments.timeline:
        report.timeline(arguments.gpu).write(arguments.timeline)
        written.append(pathlib.Path(arguments.timeline))
    if arguments.json:
        result = {"seed": seed, "seconds": seconds, "findings": findings, "counters": report.counters}
        if arguments.profile:
            result["profile"] = report.profile.as_dict(arguments.gpu)
        result["advisories"] = [_as_dict(advisory) for advisory in report.advisories]
        print(json.dumps(result | {"written": [str(path) for path in written]}))
    else:
        _print_report(report, seed, seconds, written)
        if arguments.profile == "-":
            print(report.profile.table(arguments.gpu), end="")
    return 1 if findings else 0


def _as_dict(finding: Any) -> dict[str, Any]:
    names = ("kind", "message", "line", "source", "cta", "warp", "lane", "other")
    return {name: getattr(finding, name) for name in names}


def _print_report(report: Any, seed: int, seconds: float, written: list[pathlib.Path]) -> None:
    from weft.tables import table_class

    console = output.console()
    table = table_class()("counter", "value", title=f"simulated in {seconds:.2f} s, seed {seed}")
    for name, value in report.counters.items():
        for key, count in value.items() if isinstance(value, dict) else ((name, value),):
            table.add_row(key, f"{count:,}")
    console.print(table)
    for path in written:
        console.print(f"wrote {path}", highlight=False)
    for label, items in (("advisory", report.advisories), ("finding", report.findings)):
        for item in items:
            where = f"PTX line {item.line}" + (f", {item.source}" if item.source else "")
            console.print(f"{label}: {item.kind}: {item.message} ({where})", highlight=False, markup=False)
    if not report.findings:
        console.print("no findings")
    if report.output:
        console.print(report.output, end="", highlight=False, markup=False)
