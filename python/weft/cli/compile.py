# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft compile``: kernels and programs of a Python file to a PTX library."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from typing import Any

from weft.cli.choices import described, target_names
from weft.cli.files import load_file, parted, programs_of, select

DESCRIPTION = """\
Compiles a program or a tile kernel of FILE.py to a PTX library: a directory that runs with neither Python nor the
compiler. Of a program, both forward and backward are compiled, with a plan for each bucket of sizes that 'weft tune'
has chosen schedules for. Argument types come from annotations or from --signature, for a program in the form

    q:fp16[B,4*Hkv,N,64]:16, k:fp16[B,Hkv,N,64]:16, w=64

where sizes are integers, symbols or multiples of a symbol, :16 promises that the address and all strides are multiples
of 16 bytes, and NAME=VALUE fixes an argument; for a kernel in the form

    x:*fp16:16, n:i32, BLOCK=128

where *fp16 is a pointer to float16, :16 promises a multiple of 16 (bytes, for a pointer), and NAME=VALUE fixes a
constexpr. A kernel under weft.autotune takes the configurations that its calls chose, as the cache has
them: launches take that of the key's arguments.

Of a directory, every program of its Python files is compiled, for every target, into one library; annotations declare
their inputs. Progress goes to stderr."""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "compile",
        help="compile a Python file's program or kernel to a PTX library",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument(
        "file", metavar="FILE.py[:NAME]|DIR", help="a file, and what in it when it has several; or a folder of files"
    )
    part.add_argument("-o", "--out", required=True, metavar="DIR", help="where the library is written")
    part.add_argument("--target", metavar="T[,T...]", help=f"one or several of {described(target_names())}")
    part.add_argument("--signature", metavar="S", help="argument types and constants")
    part.add_argument("--num-warps", type=int, metavar="N", help="warps of a kernel (default: 4)")
    part.add_argument("--num-stages", type=int, metavar="N", help="loads in flight in a loop (default: 3)")
    part.add_argument(
        "--cluster", type=int, metavar="N", help="neighbouring programs of a kernel that share copies (default: 1)"
    )
    part.add_argument(
        "--persistent", action="store_true", help="one block on each multiprocessor goes over a kernel's programs"
    )
    part.add_argument(
        "--grid", metavar="X[;Y[;Z]]", help="a kernel's grid, of arguments and constants: 'cdiv(n, BLOCK)'"
    )
    part.add_argument("--forward-only", action="store_true", help="compile no backward of a program")
    part.add_argument(
        "--tangents", action="store_true", help="compile a program's forward mode, and its second derivatives, too"
    )
    part.add_argument(
        "--cubin",
        nargs="?",
        const=True,
        default=False,
        metavar="T[,T...]",
        help="put machine code by ptxas beside the PTX, for the targets themselves or for those named; "
        "GPUs that it fits load it and need not compile the PTX",
    )
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


#: options that say something of kernels alone, and of programs alone, by their names in the command line
_OF_KERNELS = ("num_warps", "num_stages", "cluster", "persistent", "grid")
_OF_PROGRAMS = ("forward_only", "tangents")


def _refuse_foreign(arguments: argparse.Namespace, names: tuple[str, ...], what: str, program: bool) -> None:
    """Refuse options that are of kernels where a program is compiled, or the other way round."""
    for name in names:
        if getattr(arguments, name) not in (None, False):
            own, other = ("a program", "kernels") if program else ("a kernel", "programs")
            raise ValueError(f"expected no --{name.replace('_', '-')}, which is of {other}: {what} is {own}")


def run(arguments: argparse.Namespace) -> int:
    """Compile and write; prints what was written."""
    import weft
    from weft.targets import default_target

    arguments.target = arguments.target or default_target()
    if pathlib.Path(arguments.file).is_dir():
        return _run_folder(arguments)
    path, name = parted(arguments.file)
    module = load_file(path)
    # a file's one program is what it is about; kernels beside it are its helpers
    what, kind = select(
        module, str(path), name, ("__weft_program__", "__weft_kernel__", "__weft_jit__"), "program or kernel"
    )
    of_program = kind == "__weft_program__"
    _refuse_foreign(arguments, _OF_KERNELS if of_program else _OF_PROGRAMS, f"'{what.__name__}'", of_program)
    started = time.perf_counter()
    if of_program:
        made = what.compile(
            arguments.target,
            arguments.signature,
            arguments.out,
            differentiate=not arguments.forward_only,
            cubin=arguments.cubin,
            tangents=arguments.tangents,
        )
    else:
        weft.compile(
            what,
            target=arguments.target,
            signature=arguments.signature,
            out=arguments.out,
            num_warps=4 if arguments.num_warps is None else arguments.num_warps,
            num_stages=3 if arguments.num_stages is None else arguments.num_stages,
            cluster=1 if arguments.cluster is None else arguments.cluster,
            persistent=arguments.persistent,
            cubin=arguments.cubin,
            grid=arguments.grid.split(";") if arguments.grid else None,
        )
        made = None
    seconds = time.perf_counter() - started
    plans = [plan for each in made.programs.values() for plan in each.variants] if made else []
    buckets = len({json.dumps(plan["guards"]) for plan in plans if plan.get("guards")})
    if arguments.json:
        key = "program" if of_program else "kernel"
        print(json.dumps({key: what.__name__, "library": arguments.out, "seconds": seconds}))
    else:
        tuned = f", tuned for {buckets} bucket{'s' if buckets != 1 else ''} of sizes" if buckets else ""
        print(f"compiled '{what.__name__}' for {arguments.target} into {arguments.out} in {seconds:.2f} s{tuned}")
    return 0


def _run_folder(arguments: argparse.Namespace) -> int:
    """Compile all programs of a folder into one library."""
    from weft.programs.libraries import Step, compile_programs

    _refuse_foreign(arguments, _OF_KERNELS, "what a directory compiles", True)
    if arguments.signature:
        raise ValueError(
            f"expected no --signature with a directory: annotations in {arguments.file} declare the inputs"
        )

    def show(step: Step) -> None:
        print(
            f"[{step.number}/{step.count}] {step.program} for {step.target}, {step.seconds:.2f} s",
            file=sys.stderr,
            flush=True,
        )

    started = time.perf_counter()
    programs = programs_of(pathlib.Path(arguments.file))
    library = compile_programs(
        programs,
        arguments.target,
        arguments.out,
        differentiate=not arguments.forward_only,
        cubin=arguments.cubin,
        tangents=arguments.tangents,
        progress=show,
    )
    seconds = time.perf_counter() - started
    names = [program.__name__ for program in programs]
    if arguments.json:
        report = {"programs": names, "library": arguments.out, "kernels": len(library.kernels), "seconds": seconds}
        print(json.dumps(report))
    else:
        print(
            f"compiled {', '.join(names)} for {arguments.target} into {arguments.out} in {seconds:.2f} s: "
            f"{len(library.programs)} programs of {len(library.kernels)} kernels"
        )
    return 0
