# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft inspect``: what is inside a PTX library."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from weft.cli import output

if TYPE_CHECKING:
    from weft.compiler.ptxas import Figures


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "inspect",
        help="print what is inside a PTX library",
        description="Opens a library, which checks every part of it, and prints its programs with their plans, and its "
        "kernels with their variants; with the registers, spills and machine instructions that ptxas reports, where "
        "ptxas is found and they are known, or found out in a moment.",
    )
    part.add_argument("library", metavar="DIR")
    part.add_argument("--ptx", metavar="KERNEL[:VARIANT]", help="print the PTX of a kernel instead")
    asked = part.add_mutually_exclusive_group()
    asked.add_argument("--resources", action="store_true", help="ask ptxas about all kernels, which may take minutes")
    asked.add_argument("--quick", action="store_true", help="leave out what ptxas says")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the library as a table, as JSON, or the PTX of one kernel."""
    import weft

    library = weft.load(arguments.library)
    if arguments.ptx:
        name, _, variant = arguments.ptx.partition(":")
        if name not in library.kernels:
            raise ValueError(
                f"expected a kernel of {arguments.library}, but got '{name}'; it has {', '.join(library.kernels)}"
            )
        count = len(library.kernels[name].variants)
        if not (variant or "0").isdigit() or int(variant or 0) >= count:
            raise ValueError(f"expected a variant of '{name}' from 0 to {count - 1}, but got '{variant}'")
        ptx = library.kernels[name].ptx(int(variant or 0))
        print(json.dumps({"kernel": name, "variant": int(variant or 0), "ptx": ptx}) if arguments.json else ptx)
        return 0
    resources = {} if arguments.quick else _resources(library, arguments.resources)
    rows = [
        _row(kernel, index, resources, library.cubins)
        for kernel in library.kernels.values()
        for index in range(len(kernel.variants))
    ]
    if arguments.json:
        print(json.dumps({"library": library.path, "manifest": library.manifest, "variants": rows}, indent=2))
    else:
        _print(library, rows, arguments.quick)
    return 0


# Of PTX that ptxas has not seen, so many characters take it about two seconds.
_IN_A_MOMENT = 400_000


def _resources(library: Any, everything: bool) -> dict[tuple[str, str], dict[str, Figures]]:
    """What ptxas says of each part for each target, by entry: of all, or where it is known or takes a moment. Parts are
    assembled side by side, and what is found out is kept on disk."""
    from weft.compiler import ptxas

    if ptxas.find_tool("ptxas") is None:
        return {}
    texts = {
        (variant["ptx"], variant["target"]): kernel.ptx(index)
        for kernel in library.kernels.values()
        for index, variant in enumerate(kernel.variants)
    }
    found = {place: ptxas.known_entries(text, place[1]) for place, text in texts.items()}
    known = {place: figures for place, figures in found.items() if figures is not None}
    asked = {place: text for place, text in texts.items() if place not in known}
    if not asked or (not everything and sum(map(len, asked.values())) > _IN_A_MOMENT):
        return known
    with output.progress(len(asked), "ptxas") as done, ThreadPoolExecutor(os.cpu_count()) as pool:

        def assembled(place: tuple[str, str]) -> dict[str, Figures]:
            found = ptxas.entries(asked[place], place[1])
            done()
            return found

        return known | dict(zip(asked, pool.map(assembled, asked), strict=True))


def _row(
    kernel: Any,
    index: int,
    known: Mapping[tuple[str, str], Mapping[str, Figures]],
    cubins: Iterable[Mapping[str, Any]],
) -> dict[str, Any]:
    variant = kernel.variants[index]
    figures = known.get((variant["ptx"], variant["target"]), {}).get(variant["entry"])
    return {
        "kernel": kernel.name,
        "target": variant["target"],
        "entry": variant["entry"],
        "arguments": kernel.arguments,
        "constants": variant.get("constants", {}),
        "guards": variant.get("guards", []),
        "warps": variant["num_warps"],
        "shared_bytes": variant["shared_bytes"],
        "cubins": [each["target"] for each in cubins if each["ptx"] == variant["ptx"]],
        "registers": figures and figures.registers,
        "spill_bytes": figures and figures.spill_bytes,
        "instructions": figures and figures.instructions,
    }


def _print(library: Any, rows: list[dict[str, Any]], quick: bool) -> None:
    from weft.tables import table_class

    console = output.console()
    console.print(f"library {library.path}", highlight=False)
    for program in library.programs.values():
        _print_program(console, program)
    for kernel in library.kernels.values():
        variants = [row for row in rows if row["kernel"] == kernel.name]
        listed = (f"{name}: {_guarded(kind, name, variants[0]['guards'])}" for name, kind in kernel.arguments.items())
        console.print(f"\n{kernel.name}({', '.join(listed)})", highlight=False, markup=False)
        table = table_class()("target", "cubins", "constants")
        for name in ("warps", "shared", "registers", "spills", "instructions"):
            table.add_column(name, justify="right")
        for row in variants:
            constants = ", ".join(f"{name} = {value}" for name, value in row["constants"].items())
            numbers = [row[key] for key in ("warps", "shared_bytes", "registers", "spill_bytes", "instructions")]
            table.add_row(
                row["target"],
                ", ".join(row["cubins"]) or "-",
                constants,
                *("-" if n is None else f"{n:,}" for n in numbers),
            )
        console.print(table)
    console.print("shared memory and spills in bytes", highlight=False)
    if quick:
        console.print("registers, spills and instructions were not asked for: leave out --quick")
    elif unknown := sum(row["registers"] is None for row in rows):
        from weft.compiler import ptxas

        said = "ptxas was not found" if ptxas.find_tool("ptxas") is None else "--resources asks ptxas, and keeps them"
        console.print(f"registers, spills and instructions of {unknown} variants are unknown: {said}", highlight=False)


def _print_program(console: Any, program: Any) -> None:
    """What a program takes and gives, and the launches of each of its plans."""
    from weft.tables import table_class

    def spell(tensors: list[dict[str, Any]]) -> str:
        return ", ".join(f"{each['name']}: {each['type']}[{', '.join(each['dims'])}]" for each in tensors)

    console.print(
        f"\nprogram {program.name}({spell(program.inputs)}) -> ({spell(program.outputs)})",
        highlight=False,
        markup=False,
    )
    names = [each["name"] for each in (*program.inputs, *program.outputs)]
    table = table_class()("target", "sizes", "launch", "grid", "writes", "zeroed")
    for variant in program.variants:
        tensors = [*names, *(f"buffer {number}" for number in range(len(variant["buffers"])))]
        for index, launch in enumerate(variant["launches"]):
            writes, zeroed = (", ".join(tensors[number] for number in launch[key]) for key in ("writes", "zeroed"))
            target = variant["target"] if index == 0 else ""
            sizes = _dispatched(variant) if index == 0 else ""
            table.add_row(target, sizes, launch["kernel"], " x ".join(launch["grid"]), writes, zeroed)
    console.print(table)


def _dispatched(variant: dict[str, Any]) -> str:
    """The sizes that a plan is taken for: the first that fits is."""
    guards = variant.get("guards", [])
    bounds = []
    for guard in guards:
        low = f"{guard['at_least']} ≤ " if "at_least" in guard else ""
        high = f" < {guard['below']}" if "below" in guard else ""
        bounds.append(f"{low}{guard['size']}{high}")
    return ", ".join(bounds) or "all others"


def _guarded(kind: str, name: str, guards: list[dict[str, Any]]) -> str:
    divisors = [guard["divisible_by"] for guard in guards if guard["argument"] == name]
    return kind + "".join(f":{divisor}" for divisor in divisors)
