# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft``:

One sub-command a file, each with its own help. Exit code 0: done; 1: it failed, the reason is on stderr; 2: wrong
usage; 130: interrupted; 141: who read the output has gone.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import weft
from weft.cli import cache as cache_command
from weft.cli import compile as compile_command
from weft.cli import config as config_command
from weft.cli import doctor as doctor_command
from weft.cli import draw as draw_command
from weft.cli import explain as explain_command
from weft.cli import export as export_command
from weft.cli import inspect as inspect_command
from weft.cli import measure as measure_command
from weft.cli import plan as plan_command
from weft.cli import records as records_command
from weft.cli import run as run_command
from weft.cli import sim as sim_command
from weft.cli import tune as tune_command

COMMANDS = (
    cache_command,
    compile_command,
    config_command,
    doctor_command,
    draw_command,
    explain_command,
    export_command,
    inspect_command,
    measure_command,
    plan_command,
    records_command,
    run_command,
    sim_command,
    tune_command,
)


class _Once(argparse.Action):
    """Stores a value; a second one is an error, where argparse itself would drop the first without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        given = vars(namespace).setdefault("_given", set())
        if option and self.dest in given:
            parser.error(f"argument {option}: expected it once, but got it again with {values!r}")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """Its options may be given once, but for those that collect values (``action="append"``)."""

    def __init__(self, *arguments: Any, **keywords: Any):
        super().__init__(*arguments, **keywords)
        self.register("action", None, _Once)
        self.register("action", "store", _Once)


def parser() -> argparse.ArgumentParser:
    """The whole command line; each command module adds its own part with ``add``."""
    top = _Parser(prog="weft", description="A compiler for attention: Python programs and kernels to PTX libraries.")
    top.add_argument(
        "--version", action="version", version=f"weft {weft.__version__} ({doctor_command.distribution()})"
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the process's exit code."""
    arguments = parser().parse_args(argv)
    try:
        code = int(arguments.function(arguments) or 0)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # as `weft inspect LIBRARY | head`: nobody is left to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's own last flush
        return 141
    except KeyboardInterrupt:
        print(f"weft {arguments.command}: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        print(f"weft {arguments.command}: out of memory{f': {error}' if str(error) else ''}", file=sys.stderr)
        return 1
    except (weft.Error, ValueError, TypeError, OSError, ImportError) as error:
        print(f"weft {arguments.command}: {_words(error)}", file=sys.stderr)
        return 1


def _words(error: Exception) -> str:
    """What an error says, the system's without their numbers; a file's name may hold bytes that no text has."""
    words = str(error)
    if isinstance(error, OSError) and error.strerror:
        words = f"cannot use '{error.filename}': {error.strerror}" if error.filename else error.strerror
    return words.encode(errors="backslashreplace").decode()


if __name__ == "__main__":
    sys.exit(main())
