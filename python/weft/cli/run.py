# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft run``: a kernel or a program of a PTX library, on a GPU or on the simulator."""

from __future__ import annotations

import argparse
import json
import pathlib
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from weft.cli import arguments as argument_forms
from weft.cli.arguments import Argument
from weft.cli.shapes import triple
from weft.runtime.elements import OF_IR, array_type, same_bytes


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "run",
        help="run a kernel or a program of a PTX library",
        description="Launches one kernel of a library and says what became of its buffers; or runs one of its programs "
        "and says what came out.\n\n"
        "Arguments, in the order of the kernel's or of the program's inputs:"
        + str(argument_forms.__doc__).partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("library", metavar="DIR")
    part.add_argument("--kernel", metavar="NAME", help="the kernel, when the library has several")
    part.add_argument("--program", metavar="NAME", help="the program, in the place of a kernel")
    part.add_argument(
        "--grid", type=triple, metavar="X[,Y[,Z]]", help="programs of a kernel (default: the library's own expression)"
    )
    part.add_argument("--arg", action="append", default=[], metavar="A", help="an argument; repeat for each")
    part.add_argument(
        "--out", action="append", default=[], metavar="NAME=FILE.npy", help="write an output of a program; repeat"
    )
    part.add_argument("--device", metavar="D", help="cuda:N or simulator (default: cuda:0 where there is one)")
    part.add_argument("--seed", type=int, default=None, help="for random arguments (default: fresh, printed)")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Run once and print a line for each buffer."""
    import weft

    library = weft.load(arguments.library)
    program = _program(library, arguments)
    name = arguments.kernel or (None if program else _only(library))
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    if seed < 0:
        raise ValueError(f"expected --seed to be at least 0, but got {seed}")
    given = argument_forms.parse_arguments(arguments.arg, seed)
    report: dict[str, Any] = {"device": arguments.device or weft.device(), "seed": seed}
    if program is not None:
        report = {"program": program.name} | report | _run_program(program, given, arguments)
    else:
        report = {"kernel": name} | report | _launch(library, str(name), given, arguments)
    if arguments.json:
        print(json.dumps(report))
    else:
        _print(report)
    return 0


def _program(library: Any, arguments: argparse.Namespace) -> Any:
    """The program that is asked for: by name, or because a library has one and is asked for no kernel; or None."""
    if arguments.program and arguments.kernel:
        raise ValueError("expected either --kernel or --program, but got both")
    if arguments.program:
        if arguments.program not in library.programs:
            known = ", ".join(library.programs) or "none"
            raise ValueError(f"expected a program of {library.path}, but got '{arguments.program}'; it has {known}")
        if arguments.grid:
            raise ValueError("expected no --grid with --program, whose plan says it")
        return library.programs[arguments.program]
    if arguments.out:
        raise ValueError("expected --program with --out; a kernel's buffer is written by --arg 'f32[8]=nan:FILE.npy'")
    return None


def _only(library: Any) -> str:
    names, programs = list(library.kernels), list(library.programs)
    if programs:
        raise ValueError(f"expected --program, or --kernel: {library.path} has the programs {', '.join(programs)}")
    if len(names) != 1:
        raise ValueError(f"expected --kernel: {library.path} has {', '.join(names) or 'no kernels'}")
    return str(names[0])


# ---- A kernel


def _launch(library: Any, name: str, given: Sequence[Argument], arguments: argparse.Namespace) -> dict[str, Any]:
    if name not in library.kernels:
        raise ValueError(f"expected a kernel of {library.path}, but got '{name}'; it has {', '.join(library.kernels)}")
    wanted: Mapping[str, str] = library.kernels[name].arguments
    _count(name, [f"{each}: {kind}" for each, kind in wanted.items()], given)
    values = [_value(argument, each, kind) for argument, (each, kind) in zip(given, wanted.items(), strict=True)]
    before = {i: a.value.tobytes() for i, a in enumerate(given) if a.is_buffer}
    started = time.perf_counter()
    library.launch(name, arguments.grid, *values, device=arguments.device)
    seconds = time.perf_counter() - started
    names = list(wanted)
    buffers = [{"argument": names[i], "changed": given[i].value.tobytes() != old} for i, old in before.items()]
    written = argument_forms.write_outputs(given)
    return {"seconds": seconds, "buffers": buffers, "written": [str(path) for path in written]}


def _count(name: str, wanted: Sequence[str], given: Sequence[Argument]) -> None:
    if len(given) != len(wanted):
        listed = ", ".join(wanted)
        raise ValueError(f"'{name}': expected {len(wanted)} --arg, one for each of {listed}, but got {len(given)}")


def _value(argument: Argument, name: str, wanted: str) -> Any:
    """What a kernel is launched with. ValueError where the type is another than the kernel's."""
    pointer, kind = wanted.startswith("*"), wanted.lstrip("*")
    if pointer != argument.is_buffer:
        expected, example = ("a buffer", f"{kind}[1024]=zeros") if pointer else ("a number", f"{kind}=1")
        raise ValueError(f"expected {expected}, {wanted}, for '{name}', such as {example}, but got '{argument.text}'")
    if pointer:
        _check_elements(argument, name, kind)
        return argument.value
    number = argument.number
    if isinstance(number, float) and kind[0] in "iu":
        raise ValueError(f"expected a number of type {kind} for '{name}', but got '{argument.text}'")
    return float(number) if kind[0] in "fb" else int(number)


def _check_elements(argument: Argument, name: str, kind: str) -> None:
    """A spelled type is the wanted one; what a file holds has its bytes."""
    try:
        found = OF_IR.get(argument.type or "", argument.type) or array_type(argument.value.dtype)
    except TypeError:
        found = str(argument.value.dtype)
    fits = found == kind if "bf16" in (argument.type, found) else same_bytes(found, kind)
    if not fits or (argument.type in ("u16", "i16") and kind[0] in "fb"):
        raise ValueError(f"expected elements of {kind} for '{name}', but got {found} in '{argument.text}'")


# ---- A program


def _run_program(program: Any, given: Sequence[Argument], arguments: argparse.Namespace) -> dict[str, Any]:
    spelled = [f"{each['name']}: {each['type']}[{', '.join(each['dims'])}]" for each in program.inputs]
    _count(program.name, spelled, given)
    for argument, each in zip(given, program.inputs, strict=True):
        if not argument.is_buffer:
            raise ValueError(f"expected a buffer for '{each['name']}', but got '{argument.text}'")
        _check_elements(argument, each["name"], each["type"])
    targets = _outputs(program, arguments.out)
    started = time.perf_counter()
    results = program.run([argument.value for argument in given], device=arguments.device)
    seconds = time.perf_counter() - started
    named = {each["name"]: result for each, result in zip(program.outputs, results, strict=True)}
    written = [argument_forms.write(path, named[name]) for name, path in targets.items()]
    written += argument_forms.write_outputs(given)
    outputs = [_facts(each, named[each["name"]]) for each in program.outputs]
    return {"seconds": seconds, "outputs": outputs, "written": [str(path) for path in written]}


def _outputs(program: Any, texts: Sequence[str]) -> dict[str, pathlib.Path]:
    """Where outputs are written."""
    found = {}
    known = [each["name"] for each in program.outputs]
    for text in texts:
        name, _, file = text.partition("=")
        if name not in known or not file:
            raise ValueError(f"expected --out NAME=FILE.npy with an output among {', '.join(known)}, but got '{text}'")
        found[name] = argument_forms.output_file(file, text)
    return found


def _facts(described: Mapping[str, Any], array: Any) -> dict[str, Any]:
    """An output's name, type, shape and range; NaN and infinities are counted."""
    import numpy as np

    values = (array.astype(np.uint32) << 16).view(np.float32) if described["type"] == "bf16" else array
    finite = values[np.isfinite(values)]
    return {
        "output": described["name"],
        "type": described["type"],
        "shape": list(array.shape),
        "least": float(finite.min()) if finite.size else None,
        "most": float(finite.max()) if finite.size else None,
        "not_finite": int(values.size - finite.size),
    }


def _print(report: Mapping[str, Any]) -> None:
    what = report.get("program") or report["kernel"]
    print(f"ran '{what}' on {report['device']} in {report['seconds']:.3f} s (seed {report['seed']})")
    for buffer in report.get("buffers", ()):
        print(f"  {buffer['argument']}: {'changed' if buffer['changed'] else 'as it was'}")
    for each in report.get("outputs", ()):
        text = f"  {each['output']}: {each['type']} {each['shape']}"
        if each["least"] is not None:
            text += f", {each['least']:.6g} to {each['most']:.6g}"
        print(text + (f", {each['not_finite']} not finite" if each["not_finite"] else ""))
    for path in report["written"]:
        print(f"  wrote {path}")
