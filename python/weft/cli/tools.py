# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft-opt``, ``weft-lsp-server`` and ``weft-reduce``: the compiler's tools on MLIR text, run from its library.

The process becomes the tool: its arguments, streams and exit code are the tool's own.
"""

from __future__ import annotations

import signal
import sys

from weft.native import load


def opt() -> int:
    """Runs passes on MLIR text."""
    return _become("weft-opt")


def lsp_server() -> int:
    """Answers what an editor asks about MLIR text, on the standard streams."""
    return _become("weft-lsp-server")


def reduce() -> int:
    """Makes a module of MLIR text smaller while a test finds it interesting."""
    return _become("weft-reduce")


def _become(name: str) -> int:
    try:
        compiler = load("_compiler")
    except ImportError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    # Python would hold an interrupt back until the tool is done.
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    return int(compiler.tool_main(name, [name, *sys.argv[1:]]))


if __name__ == "__main__":
    known = {"weft-opt": opt, "weft-lsp-server": lsp_server, "weft-reduce": reduce}
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        sys.exit(f"expected the name of a tool, {', '.join(known)}")
    sys.exit(known[sys.argv.pop(1)]())
