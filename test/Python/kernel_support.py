# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the tests of tile kernels share: kernels run on the simulator, under several interleavings."""

import numpy as np
import weft.simulator


def compiled(kernel, *args, **options):
    """The kernel as a call with these arguments would compile it, and those that it is launched with."""
    made = kernel.warmup(*args, **options)
    values = dict(zip(kernel.fn.__code__.co_varnames, args, strict=False)) | options
    numbers = {"int32": np.int32, "int64": np.int64, "fp32": np.float32}
    launched = []
    for name, argument in made.signature.arguments.items():
        value = values[name]
        launched.append(value if isinstance(value, np.ndarray) else numbers[str(argument.type)](value))
    return made, launched


def simulate(kernel, grid, *args, num_warps=4, seed=0, ptx=None, limit=0, **options):
    """Runs a kernel on arrays, which change, or other PTX in its place; gives the report."""
    made, launched = compiled(kernel, *args, num_warps=num_warps, **options)
    threads = 32 * made.num_warps  # those that make copies for others are among them
    return weft.simulator.launch(
        ptx or made.ptx, made.name, grid, threads, launched, shared=made.shared_bytes, seed=seed, limit=limit
    )


def ptx_of(kernel, *args, num_warps=4, **options):
    """The PTX that `simulate` runs."""
    return compiled(kernel, *args, num_warps=num_warps, **options)[0].ptx


def instructions(ptx):
    """The instructions of PTX: lines without braces, comments and directives."""
    lines = (line.split("//")[0].strip(" \t{}") for line in ptx.splitlines())
    return [part.strip() for line in lines for part in line.split(";") if part.strip() and part.strip()[0] not in ".$"]
