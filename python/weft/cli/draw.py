# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft draw``: a pattern or a mixer as a picture."""

from __future__ import annotations

import argparse
import linecache
import pathlib
from typing import Any

from weft.cli.files import load_file

DESCRIPTION = """\
Draws a pattern: which pairs of a query and a key attend, and which blocks of them are empty, partial or full. WHAT is a
Python expression over the names of weft, or FILE.py:NAME for a pattern or a mixer that a file defines.

    weft draw "causal() & window(64, 0)" -n 512 --block 64 -o pattern.svg"""


_EXPRESSION = "<WHAT>"


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "draw",
        help="draw a pattern or a mixer as SVG or PNG",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("what", metavar="WHAT", help="an expression, or FILE.py:NAME")
    part.add_argument("-o", "--out", required=True, metavar="FILE", help="where to, .svg or .png")
    part.add_argument("-n", type=int, metavar="N", help="queries")
    part.add_argument("-m", type=int, metavar="M", help="keys (default: as many as queries)")
    part.add_argument("--block", metavar="BN[,BM]", help="sizes of the blocks, queries and keys")
    part.add_argument("--title", help="what stands above an SVG (default: WHAT)")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Draw, and say where."""
    import weft

    for name, size in (("-n", arguments.n), ("-m", arguments.m)):
        if size is not None and size < 1:
            raise ValueError(f"expected {name} to be at least 1, but got {size}")
    what = _named(arguments.what) if ".py:" in arguments.what else evaluated(arguments.what)
    options: dict[str, Any] = {"title": arguments.title or arguments.what, "n": arguments.n, "m": arguments.m}
    if arguments.block:
        sides = [int(side) if side.strip().isdigit() else 0 for side in arguments.block.split(",")]
        if len(sides) > 2 or min(sides) < 1:
            raise ValueError(f"expected --block to be one or two positive sizes, BN[,BM], but got '{arguments.block}'")
        options["block"] = sides[0] if len(sides) == 1 else (sides[0], sides[1])
    weft.draw(what, arguments.out, **{name: value for name, value in options.items() if value is not None})
    print(f"drew {arguments.what} into {arguments.out}")
    return 0


def _named(text: str) -> Any:
    path, _, name = text.rpartition(":")
    module = load_file(pathlib.Path(path))
    if not hasattr(module, name):
        raise ValueError(f"expected a name of {path}, but got '{name}'")
    return getattr(module, name)


def evaluated(text: str) -> Any:
    """What an expression over weft's names gives."""
    import weft

    names = {name: getattr(weft, name) for name in weft.__all__}
    linecache.cache[_EXPRESSION] = (len(text), None, [text], _EXPRESSION)  # for errors that show where
    try:
        return eval(compile(text, _EXPRESSION, "eval"), {"weft": weft, **names})
    except weft.Error:
        raise
    except Exception as error:  # whatever the expression does
        why = error.msg if isinstance(error, SyntaxError) else error
        raise ValueError(f"expected an expression over weft's names, but got '{text}': {why}") from error
