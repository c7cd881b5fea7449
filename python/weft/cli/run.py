# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft run``: a kernel of a PTX library, on a GPU or on the simulator."""

from __future__ import annotations

import argparse
import json
import secrets
import time
from typing import Any

from weft.cli import arguments as argument_forms
from weft.cli.shapes import triple


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "run",
        help="run a kernel of a PTX library",
        description="Launches one kernel of a library and says what became of its buffers.\n\n"
        "Arguments, in the kernel's order:" + str(argument_forms.__doc__).partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("library", metavar="DIR")
    part.add_argument("--kernel", metavar="NAME", help="the kernel, when the library has several")
    part.add_argument(
        "--grid", type=triple, metavar="X[,Y[,Z]]", help="programs (default: the library's own expression)"
    )
    part.add_argument("--arg", action="append", default=[], metavar="A", help="an argument; repeat for each")
    part.add_argument("--device", metavar="D", help="cuda:N or simulator (default: cuda:0 where there is one)")
    part.add_argument("--seed", type=int, default=None, help="for random arguments (default: fresh, printed)")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Launch once and print a line for each buffer."""
    import numpy as np

    import weft

    library = weft.load(arguments.library)
    name = arguments.kernel or _only(library)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    parsed = argument_forms.parse_arguments(arguments.arg, seed)
    before = {i: a.value.tobytes() for i, a in enumerate(parsed) if isinstance(a.value, np.ndarray)}
    started = time.perf_counter()
    library.launch(name, arguments.grid, *(argument.value for argument in parsed), device=arguments.device)
    seconds = time.perf_counter() - started
    written = argument_forms.write_outputs(parsed)
    names = list(library.kernels[name].arguments)
    buffers = [{"argument": names[i], "changed": parsed[i].value.tobytes() != old} for i, old in before.items()]
    device = arguments.device or weft.device()
    if arguments.json:
        report = {"kernel": name, "device": device, "seconds": seconds, "seed": seed, "buffers": buffers}
        print(json.dumps(report | {"written": [str(path) for path in written]}))
        return 0
    print(f"ran '{name}' on {device} in {seconds:.3f} s (seed {seed})")
    for buffer in buffers:
        print(f"  {buffer['argument']}: {'changed' if buffer['changed'] else 'as it was'}")
    for path in written:
        print(f"  wrote {path}")
    return 0


def _only(library: Any) -> str:
    names = list(library.kernels)
    if len(names) != 1:
        raise ValueError(f"expected --kernel: {library.path} has {', '.join(names) or 'no kernels'}")
    return str(names[0])
