# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft compile``: kernels of a Python file to a PTX library."""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from typing import Any

from weft.cli.files import load_file

DESCRIPTION = """\
Compiles the tile kernels of FILE.py to a PTX library: a directory that runs with neither Python nor the compiler.
A kernel's argument types come from its annotations or from --signature, in the form

    x:*fp16:16, n:i32, BLOCK=128

where *fp16 is a pointer to float16, :16 promises a multiple of 16 (bytes, for a pointer), and NAME=VALUE fixes a
constexpr."""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "compile",
        help="compile a Python file's kernels to a PTX library",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("file", metavar="FILE.py[:NAME]", help="the file, and the kernel in it when it has several")
    part.add_argument("-o", "--out", required=True, metavar="DIR", help="where the library is written")
    part.add_argument("--target", default="sm_80", metavar="T[,T...]", help="sm_80, sm_90a, or both (default: sm_80)")
    part.add_argument("--signature", metavar="S", help="argument types and constants of the kernel")
    part.add_argument("--num-warps", type=int, default=4, metavar="N", help="warps a program runs on (default: 4)")
    part.add_argument("--num-stages", type=int, default=3, metavar="N", help="loads in flight in a loop (default: 3)")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile and write; prints what was written."""
    import weft

    path, _, name = arguments.file.partition(":")
    kernel = _select(load_file(pathlib.Path(path)), path, name)
    started = time.perf_counter()
    weft.compile(
        kernel,
        target=arguments.target,
        signature=arguments.signature,
        out=arguments.out,
        num_warps=arguments.num_warps,
        num_stages=arguments.num_stages,
    )
    seconds = time.perf_counter() - started
    if arguments.json:
        print(json.dumps({"kernel": kernel.__name__, "library": arguments.out, "seconds": seconds}))
    else:
        print(f"compiled '{kernel.__name__}' for {arguments.target} into {arguments.out} in {seconds:.2f} s")
    return 0


def _select(module: Any, path: str, name: str) -> Any:
    import weft

    kernels = {key: value for key, value in vars(module).items() if isinstance(value, weft.JITFunction)}
    if name:
        if name not in kernels:
            raise ValueError(f"expected a kernel of {path}, but got '{name}'; it has {_listing(kernels)}")
        return kernels[name]
    if len(kernels) != 1:
        raise ValueError(f"expected one kernel in {path}, but it has {_listing(kernels)}; name one as {path}:NAME")
    return next(iter(kernels.values()))


def _listing(kernels: dict[str, Any]) -> str:
    return ", ".join(f"'{key}'" for key in kernels) or "none"
