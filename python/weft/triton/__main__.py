# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Run a script for Triton as it is: ``python -m weft.triton script.py [arguments]``, or ``-m module [arguments]``."""

import runpy
import sys
from pathlib import Path

from .replace import replace

_USAGE = "usage: python -m weft.triton [-m] SCRIPT [ARGUMENTS]"


def main(arguments: list[str]) -> None:
    """Run what the arguments name, with ``triton`` replaced."""
    module = arguments[:1] == ["-m"]
    rest = arguments[1:] if module else arguments
    if not rest or rest[0] in ("-h", "--help"):
        sys.exit(_USAGE if not rest else print(_USAGE))
    replace()
    sys.argv = rest
    if module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0:1] = [str(Path(rest[0]).parent.resolve())]
        runpy.run_path(rest[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
