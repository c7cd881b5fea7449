# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft doctor``: what is here, what runs where, and why."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from weft.cli import driver
from weft.first_gpu.cases import Options
from weft.first_gpu.sections import SECTIONS


@dataclass(frozen=True)
class Check:
    """One line: a thing, its state, and what follows from it."""

    name: str
    found: str
    ok: bool = True
    """False where something that Weft needs is missing or broken; what is optional is always fine"""


def add(commands: Any) -> None:
    """Add the sub-command."""
    part = commands.add_parser(
        "doctor",
        help="what is installed, what runs where, and why",
        description="Looks at the package, the driver, the GPUs, ptxas, the cache and the packages that Weft works "
        "with. Exit code 1 where something that Weft needs is missing.",
    )
    part.add_argument("--json", action="store_true", help="print one JSON array")
    _add_gpu(part.add_argument_group("on a machine with a GPU"))
    part.set_defaults(function=run)


def _add_gpu(part: Any) -> None:
    sizes = Options()
    part.add_argument(
        "--gpu",
        action="store_true",
        help="run tests that need a GPU, the same kernels on GPU and simulator, and times beside others'; writes "
        "report.html and report.json. Run again, it goes on where it was left. Exit code 1 where there is no GPU, or "
        "something failed",
    )
    part.add_argument("--out", type=pathlib.Path, default=pathlib.Path("weft-gpu"), help="its folder (%(default)s)")
    part.add_argument("--sections", default=",".join(SECTIONS), help="of it, some of %(default)s")
    part.add_argument("--only", default="", help="of the corpus, kernels whose names have one of these words")
    for name, what in (("lengths", "tokens of a sequence"), ("heads", "sizes of heads")):
        default = ",".join(map(str, getattr(sizes, name)))
        part.add_argument(f"--{name}", default=default, help=f"{what} that are timed (%(default)s)")
    for name, what in (("tokens", "tokens of a batch"), ("width", "heads times their size"), ("rounds", "most runs")):
        part.add_argument(f"--{name}", type=int, default=getattr(sizes, name), help=f"{what} (%(default)s)")


#: options that say something of --gpu alone
_OF_GPU = ("out", "sections", "only", "lengths", "heads", "tokens", "width", "rounds")


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    given = vars(arguments).get("_given", set()) & {
        "out",
        "sections",
        "only",
        "lengths",
        "heads",
        "tokens",
        "width",
        "rounds",
    }
    if given and not arguments.gpu:
        raise ValueError(f"expected --gpu, which --{min(given)} is of")
    checks = list(_checks())
    if arguments.gpu:
        return _report(arguments, checks)
    if arguments.json:
        print(json.dumps([asdict(each) for each in checks], indent=2))
    else:
        width = max(len(each.name) for each in checks)
        for each in checks:
            print(f"{'ok ' if each.ok else 'BAD'}  {each.name:{width}}  {each.found}")
    return 0 if all(each.ok for each in checks) else 1


def _report(arguments: argparse.Namespace, checks: list[Check]) -> int:
    from weft.first_gpu import report

    options = Options(
        lengths=_numbers("--lengths", arguments.lengths),
        heads=_numbers("--heads", arguments.heads),
        only=tuple(_words(arguments.only)),
        **{name: _positive(f"--{name}", getattr(arguments, name)) for name in ("tokens", "width", "rounds")},
    )
    environment = {each.name: each.found for each in checks}
    return report.run(arguments.out, _words(arguments.sections), options, environment)


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _numbers(option: str, text: str) -> tuple[int, ...]:
    if not all(word.isdecimal() for word in _words(text)) or not _words(text):
        raise ValueError(f"expected {option} to be numbers like 1024,2048, but got '{text}'")
    return tuple(_positive(option, int(word)) for word in _words(text))


def _positive(option: str, number: int) -> int:
    if number < 1:
        raise ValueError(f"expected {option} of at least 1, but got {number}")
    return number


def _checks() -> Iterator[Check]:
    """Everything, in the order of what depends on what."""
    import weft

    yield Check("weft", f"{weft.__version__} ({distribution()}), {pathlib.Path(weft.__file__).parent}")
    yield Check("Python", f"{platform.python_version()} ({sys.executable}), {platform.platform()}")
    yield _tried("compiler", _compiler, optional=True)
    yield _tried("runtime", _runtime)
    yield _tried("driver", driver.driver)
    yield from _gpus()
    yield _tried("runs on", _device)
    yield _tried("ptxas", _ptxas)
    yield _tried("cache", _cache)
    for name, purpose in (
        ("numpy", "arrays"),
        ("torch", "tensors and gradients, weft.nn"),
        ("jax", "weft.jax: programs as functions of JAX"),
        ("triton", "a peer to compare with"),
        ("rich", "tables of weft inspect, sim and tune"),
        ("matplotlib", "pictures of profiles"),
    ):
        yield _package(name, purpose)


def _tried(name: str, look: Callable[[], str], optional: bool = False) -> Check:
    from weft.errors import Error

    try:
        return Check(name, look())
    except ImportError as error:
        return Check(name, str(error), ok=optional)
    except (Error, OSError, ValueError) as error:
        return Check(name, str(error), ok=False)


def distribution() -> str:
    """Which distribution the package was installed from. Both at once overwrite each other's files."""
    names = [each for each in ("weft-attention", "weft-attention-runtime") if _installed(each)]
    return " and ".join(names) or "a source tree"


def _installed(name: str) -> bool:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version(name))
    return False


def _gpus() -> Iterator[Check]:
    """A line for each GPU; one that says what is wrong where the runtime cannot tell."""
    try:
        yield from (Check(name, found) for name, found in driver.gpus())
    except (ImportError, RuntimeError, OSError) as error:
        yield Check("GPUs", str(error), ok=False)


def _compiler() -> str:
    from weft import native

    module = native.load("_compiler")
    targets = ", ".join(each["name"] for each in json.loads(module.targets()))
    return f"{module.version()}; targets {targets}"


def _runtime() -> str:
    from weft import native

    return str(pathlib.Path(str(native.load("_runtime").__file__)).parent)


def _device() -> str:
    import weft
    from weft.runtime.devices import open_device

    name = weft.device()
    if os.environ.get("WEFT_DEVICE"):
        why = f"WEFT_DEVICE={os.environ['WEFT_DEVICE']}"
    elif name == "simulator":
        why = "no GPU was found; the same PTX runs on the CPU, checked"
    else:
        why = "the first CUDA device; WEFT_DEVICE=simulator chooses the simulator"
    facts = open_device(name).properties
    shown = ", ".join(f"{key} {value}" for key, value in facts.items() if key not in ("name", "uuid"))
    return f"{name}: {why} ({shown})"


def _ptxas() -> str:
    from weft.compiler.ptxas import find_tool

    path = find_tool("ptxas")
    if path is None:
        return "none: the driver compiles PTX; registers and spills are not reported"
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")
    release = next((line for line in said if "release" in line), "").strip()
    return f"{path}: {release}"


def _cache() -> str:
    from weft.compiler import cache

    root = cache.directory()
    if root is None:
        return "off (WEFT_CACHE=0): every process compiles anew"
    usage = cache.usage()
    nearest = next(each for each in (root, *root.parents) if each.exists())
    if not os.access(nearest, os.W_OK):
        return f"{root}: cannot be written, so that every process compiles anew; WEFT_CACHE_DIR names another folder"
    return f"{root}: {usage.entries} entries, {usage.bytes / 1e6:.1f} of at most {usage.limit / 1e6:.0f} MB"


def _package(name: str, purpose: str) -> Check:
    if importlib.util.find_spec(name) is None:
        return Check(name, f"not installed ({purpose})", ok=name != "numpy")
    try:
        return Check(name, f"{importlib.metadata.version(name)} ({purpose})")
    except importlib.metadata.PackageNotFoundError:
        return Check(name, f"of unknown version ({purpose})")
