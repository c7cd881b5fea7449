# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft explain``: what a program becomes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.cli import arguments as argument_forms
from weft.cli.choices import described, gpu_names, target_names
from weft.cli.files import load_file, parted, select
from weft.cli.shapes import sizes_of, triple

if TYPE_CHECKING:
    from weft.explaining.way import Way
    from weft.programs.trace import Traced

DESCRIPTION = """\
Compiles a program of FILE.py and prints what it became: the launches of its forward and of its backward, with grid,
warps, shared memory, and the bytes that they read and write at least, and the schedule of every attention's kernels,
which 'weft tune' may have chosen for these sizes. --cycles prints what the loop model says of each kernel's loops
instead, with ptxas and nvdisasm and without a GPU: cycles of an iteration, what bounds it, where warps wait. --why
prints which fast paths the compiler did not take, by source line, --decisions what it chose: layouts with their costs
and the next best, widths of accesses, places in shared memory; docs/Explain.md says what each means. All three are of a
kernel (@weft.jit) too. Input types come from the annotations or from --signature, as for 'weft compile'; --sizes says
what the symbols among the sizes are."""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "explain",
        help="what a program or a kernel becomes, and why",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument(
        "file", metavar="FILE.py[:NAME]", help="the file, and the program or kernel in it when it has several"
    )
    part.add_argument("--target", metavar="T", help=described(target_names()))
    part.add_argument("--signature", metavar="S", help="types of the inputs, and values of the other arguments")
    part.add_argument("--sizes", default="", metavar="B=1,N=1024", help="what the symbols among the sizes are")
    part.add_argument("--forward-only", action="store_true", help="leave the backward out")
    part.add_argument("--stage", metavar="S", help="print the IR after a stage instead: python, attn, launches, tile, "
                      "warp, pipelined, llvm or ptx")  # fmt: skip
    part.add_argument("--why", action="store_true", help="print the fast paths that were not taken, with reasons")
    part.add_argument("--decisions", action="store_true", help="print what the compiler chose: layouts, widths of "
                      "accesses, copies ahead, places in shared memory")  # fmt: skip
    part.add_argument("--cycles", action="store_true", help="print the loop model's cycles of the kernels' loops")
    part.add_argument(
        "--html",
        metavar="FILE",
        help="write one page with all forms side by side, source to machine code, linked line by line; with --sizes, "
        "what the simulator counts too",
    )
    part.add_argument(
        "--gpu",
        metavar="NAME",
        help=f"whose time the page's bounds and the loop model's cycles are: {described(gpu_names())}",
    )
    part.add_argument("--grid", type=triple, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="of a kernel on the page")
    part.add_argument("--arg", action="append", default=[], metavar="A", help="its arguments, as 'weft run' has them")
    part.add_argument("--num-warps", type=int, default=4, metavar="N", help="of a kernel (default: 4)")
    part.add_argument("--num-stages", type=int, default=3, metavar="N", help="of a kernel (default: 3)")
    part.add_argument("--cluster", type=int, default=1, metavar="N", help="of a kernel (default: 1)")
    part.add_argument("--persistent", action="store_true", help="of a kernel")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile and print."""
    from weft.targets import default_target

    arguments.target = arguments.target or default_target()
    path, name = parted(arguments.file)
    any_kind = arguments.why or arguments.decisions or arguments.html or arguments.cycles
    kinds = ("__weft_program__", "__weft_jit__") if any_kind else ("__weft_program__",)
    what, kind = select(load_file(path), str(path), name, kinds, "program or kernel" if any_kind else "program")
    _refuse_others(kind, arguments)
    if arguments.html:
        return _page(what, kind, arguments)
    if arguments.cycles:
        return _cycles(what, kind, arguments)
    if arguments.decisions:
        return _decisions(what, kind, arguments)
    if arguments.why:
        return _why(what, kind, arguments)
    return _launches(what, arguments)


#: options that only kernels have, with what they are where nothing is said; and programs
_OF_KERNELS = {"grid": (1, 1, 1), "arg": [], "num_warps": 4, "num_stages": 3, "cluster": 1, "persistent": False}
_OF_PROGRAMS = {"sizes": "", "forward_only": False, "stage": None}


def _refuse_others(kind: str, arguments: argparse.Namespace) -> None:
    """ValueError for an option that what was named would pass over."""
    is_kernel = kind == "__weft_jit__"
    for name, default in (_OF_PROGRAMS if is_kernel else _OF_KERNELS).items():
        if getattr(arguments, name) != default:
            other, this = ("program", "kernel") if is_kernel else ("kernel", "program")
            raise ValueError(f"expected '--{name.replace('_', '-')}' with a {other} alone, but got it with a {this}")


def _launches(program: Any, arguments: argparse.Namespace) -> int:
    """The launches of a program, or its IR after a stage."""
    from weft.programs import choices
    from weft.programs.compiled import compiled, stages
    from weft.programs.explain import explain

    traced = program.declare(arguments.signature)
    differentiate = not arguments.forward_only
    if arguments.stage:
        whole = arguments.stage == "python"
        print(traced.plain if whole else stages(traced, arguments.stage, arguments.target, differentiate))
        return 0
    sizes = _sizes(traced, arguments)
    schedules = choices.chosen(traced.plain, arguments.target, sizes)
    found = explain(compiled(traced, arguments.target, differentiate, schedules), sizes)
    print(json.dumps(found.as_dict(), indent=2) if arguments.json else found)
    return 0


def _sizes(traced: Traced, arguments: argparse.Namespace) -> dict[str, int]:
    """The sizes of the command line, all of which the program has."""
    from weft.programs.buckets import Symbols

    sizes = sizes_of(arguments.sizes)
    Symbols.of([{"dims": each.dims} for each in traced.inputs]).check(traced.name, sizes)
    return sizes


def _way(
    what: Any, kind: str, arguments: argparse.Namespace, stages: Sequence[str] = (), decisions: bool = False
) -> Way:
    """What was named, compiled with all that the compiler says of it."""
    from weft.compiler.lower import Options
    from weft.explaining.way import of_kernel, of_program
    from weft.programs import choices

    if kind == "__weft_jit__":
        options = Options(
            arguments.num_warps, arguments.num_stages, cluster=arguments.cluster, persistent=arguments.persistent
        )
        return of_kernel(what, arguments.signature, arguments.target, options, stages, decisions)
    traced = what.declare(arguments.signature)
    schedules = choices.chosen(traced.plain, arguments.target, _sizes(traced, arguments))
    return of_program(traced, arguments.target, not arguments.forward_only, schedules, stages, decisions)


def _page(what: Any, kind: str, arguments: argparse.Namespace) -> int:
    """The page of all forms."""
    from weft.explaining.counted import Counted, count, count_kernel
    from weft.explaining.page import STAGES, write
    from weft.simulator.cost import gpu_of

    gpu = gpu_of(arguments.target, arguments.gpu)
    way = _way(what, kind, arguments, STAGES)
    counted: list[Counted] = []
    said = "There are no counters: --sizes says what the symbols among a program's sizes are."
    if kind == "__weft_jit__":
        said = "There are no counters: they take the kernel's arguments, --arg, and --grid."
        if arguments.arg:
            values = [each.value for each in argument_forms.parse_arguments(arguments.arg, seed=0)]
            counted = count_kernel(way.ptx, way.info, arguments.grid, values, gpu)
    elif arguments.sizes:
        counted = count(way.ptx, way.info, sizes_of(arguments.sizes), gpu, seed=0)
    write(arguments.html, way, counted, gpu, said)
    print(f"wrote {arguments.html}")
    return 0


def _cycles(what: Any, kind: str, arguments: argparse.Namespace) -> int:
    """The loop model's word on the kernels' loops."""
    from weft.explaining.cycles import as_dicts, cycles, text
    from weft.simulator.cost import gpu_of

    found = cycles(_way(what, kind, arguments), gpu_of(arguments.target, arguments.gpu))
    print(json.dumps(as_dicts(found), indent=2) if arguments.json else text(found))
    return 0


def _why(what: Any, kind: str, arguments: argparse.Namespace) -> int:
    """The fast paths that were not taken."""
    from weft.explaining.why import remarks, table

    found = remarks(_way(what, kind, arguments).info)
    print(json.dumps([each.as_dict() for each in found], indent=2) if arguments.json else table(found))
    return 0


def _decisions(what: Any, kind: str, arguments: argparse.Namespace) -> int:
    """What the compiler chose."""
    from weft.explaining.why import remarks, table

    found = remarks(_way(what, kind, arguments, decisions=True).info, "decisions")
    text = json.dumps([each.as_dict() for each in found], indent=2) if arguments.json else table(found, "no tensors")
    print(text)
    return 0
