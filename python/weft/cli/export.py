# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft export``: a PTX library in the form in which others load kernels."""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import shutil
from typing import TYPE_CHECKING, Any

from weft.folders import new_folder

if TYPE_CHECKING:
    from weft.runtime.library import Library

DESCRIPTION = """\
Writes the library LIB as a folder DIR that Hugging Face's kernels loads, offline too:

    kernels.get_local_kernel(pathlib.Path("DIR"))

or, once it is on their hub, get_kernel. Each program of the library is a function of torch tensors there, with
gradients where it was compiled with its backward. The folder has the library itself and no compiled Python code; who
loads it has weft installed, or weft-attention-runtime, which is enough."""

# Of folders of one framework for every machine: the name that kernels chooses by, and the backend in the metadata.
_VARIANTS = {"torch-cpu": "cpu", "torch-cuda": "cuda"}
_NAME = re.compile(r"[a-z][a-z0-9-]*[a-z0-9]")

_MODULE = '''\
"""{title}

{functions}
"""

import functools
import pathlib

import weft

_library = weft.load(pathlib.Path(__file__).parent / "library")

{definitions}

__all__ = {names!r}
'''


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "export",
        help="write a PTX library as a folder of Hugging Face's kernels",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("--hf-kernel", action="store_true", required=True, help="the form of Hugging Face's kernels")
    part.add_argument("library", metavar="LIB", help="a library, as weft compile writes it")
    part.add_argument("folder", metavar="DIR", help="the folder to write, which is not there yet")
    part.add_argument("--name", metavar="NAME", help="the kernel's name: a-z, 0-9 and dashes (default: DIR's own)")
    part.add_argument("--version", type=int, default=1, metavar="N", help="the kernel's version (default: 1)")
    part.add_argument(
        "--license", default="Apache-2.0", metavar="ID", help="the programs' SPDX identifier (default: Apache-2.0)"
    )
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the folder; prints what is in it."""
    import weft

    folder = pathlib.Path(arguments.folder)
    name = kernel_name(arguments.name or folder.absolute().name, given=arguments.name is not None)
    if arguments.version < 1:
        raise ValueError(f"expected --version of at least 1, but got {arguments.version}")
    library = weft.load(arguments.library)
    programs = functions_of(library)
    with new_folder(folder) as partial:
        for variant, backend in _VARIANTS.items():
            place = partial / "build" / variant
            place.mkdir(parents=True)
            shutil.copytree(arguments.library, place / "library")
            (place / "__init__.py").write_text(module(name, programs))
            metadata = {
                "id": f"_{name.replace('-', '_')}_weft_{backend}_{arguments.version}",
                "name": name,
                "version": arguments.version,
                "license": arguments.license,
                "python-depends": [],
                "backend": {"type": backend},
            }
            (place / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
    made = ", ".join(programs)
    print(f"exported {made} of {arguments.library} into {folder}: kernel '{name}', for {' and '.join(_VARIANTS)}")
    return 0


def kernel_name(name: str, given: bool) -> str:
    """The name of a kernel as Hugging Face's kernels allows it. ValueError where it does not."""
    if not _NAME.fullmatch(name):
        remedy = "" if given else ": name it by --name"
        raise ValueError(f"expected a name of a-z, 0-9 and dashes, from a letter on, but got '{name}'{remedy}")
    return name


def functions_of(library: Library) -> dict[str, bool]:
    """The library's programs, and whether each has a backward. ValueError where there is none."""
    names = [name for name in library.programs if not name.endswith((".forward", ".backward", ".tangent"))]
    if not names:
        raise ValueError(f"expected programs in {library.path}, but got kernels alone: kernels have no tensors to take")
    return {name: f"{name}.backward" in library.programs for name in names}


def module(name: str, programs: dict[str, bool]) -> str:
    """The text of the Python module that holds the programs as functions."""
    said = {True: "with gradients", False: "without gradients"}
    return _MODULE.format(
        title=f"{name}: programs of a library of Weft, on torch tensors.",
        functions="\n".join(f"{each}    {said[backward]}" for each, backward in programs.items()),
        definitions="\n".join(
            f"{each} = _library.differentiable({each!r})"
            if backward
            else f"{each} = functools.partial(_library.run, {each!r})"
            for each, backward in programs.items()
        ),
        names=list(programs),
    )
