# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft explain``: what a program becomes."""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

from weft.cli.choices import described, target_names
from weft.cli.files import load_file, select
from weft.cli.shapes import sizes_of

DESCRIPTION = """\
Compiles a program of FILE.py and prints what it became: the launches of its forward and of its backward, with grid,
warps, shared memory, and the bytes that they read and write at least, and the schedule of every attention's kernels,
which 'weft tune' may have chosen for these sizes. Input types come from the annotations or from
--signature, as for 'weft compile'; --sizes says what the symbols among the sizes are."""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "explain",
        help="print the launches that a program becomes",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("file", metavar="FILE.py[:NAME]", help="the file, and the program in it when it has several")
    part.add_argument("--target", metavar="T", help=described(target_names()))
    part.add_argument("--signature", metavar="S", help="types of the inputs, and values of the other arguments")
    part.add_argument("--sizes", default="", metavar="B=1,N=1024", help="what the symbols among the sizes are")
    part.add_argument("--forward-only", action="store_true", help="leave the backward out")
    part.add_argument("--stage", metavar="S", help="print the IR after a stage instead: python, attn, launches, tile, "
                      "warp, pipelined, llvm or ptx")  # fmt: skip
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile and print."""
    from weft.programs import choices
    from weft.programs.compiled import compiled, stages
    from weft.programs.explain import explain
    from weft.targets import default_target

    arguments.target = arguments.target or default_target()
    path, _, name = arguments.file.partition(":")
    program, _ = select(load_file(pathlib.Path(path)), path, name, ("__weft_program__",), "program")
    traced = program.declare(arguments.signature)
    differentiate = not arguments.forward_only
    if arguments.stage:
        whole = arguments.stage == "python"
        print(traced.plain if whole else stages(traced, arguments.stage, arguments.target, differentiate))
        return 0
    sizes = sizes_of(arguments.sizes)
    schedules = choices.chosen(traced.plain, arguments.target, sizes)
    found = explain(compiled(traced, arguments.target, differentiate, schedules), sizes)
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0
