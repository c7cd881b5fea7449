# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft``:

One sub-command a file, each with its own help. Exit code 0: done; 1: it failed, the reason is on stderr; 2: wrong
usage.
"""

from __future__ import annotations

import argparse
import sys

from weft.cli import compile as compile_command
from weft.cli import draw as draw_command
from weft.cli import explain as explain_command
from weft.cli import inspect as inspect_command
from weft.cli import run as run_command
from weft.cli import sim as sim_command
from weft.cli import tune as tune_command

COMMANDS = (
    compile_command,
    draw_command,
    explain_command,
    inspect_command,
    run_command,
    sim_command,
    tune_command,
)


def parser() -> argparse.ArgumentParser:
    """The whole command line; each command module adds its own part with ``add``."""
    top = argparse.ArgumentParser(
        prog="weft", description="A compiler for attention: Python programs and kernels to PTX libraries."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the process's exit code."""
    import weft

    arguments = parser().parse_args(argv)
    try:
        return int(arguments.function(arguments) or 0)
    except (weft.Error, ValueError, OSError) as error:
        print(f"weft {arguments.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
