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
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    checks = list(_checks())
    if arguments.json:
        print(json.dumps([asdict(each) for each in checks], indent=2))
    else:
        width = max(len(each.name) for each in checks)
        for each in checks:
            print(f"{'ok ' if each.ok else 'BAD'}  {each.name:{width}}  {each.found}")
    return 0 if all(each.ok for each in checks) else 1


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
