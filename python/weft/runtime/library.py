# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""PTX libraries from Python: opening, asking, launching, writing. The format is described in docs/LibraryFormat.md."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from weft import native
from weft.runtime import exchange
from weft.runtime.devices import device_for, open_device
from weft.runtime.elements import array_type, same_bytes
from weft.runtime.plain import refuse, refused
from weft.runtime.program import Program, found_in, open_compiled

Grid = int | tuple[int, ...] | None


class LibraryKernel:
    """A kernel of a library. ``kernel[grid](*args)`` launches it, ``kernel[None](*args)`` on the library's own grid."""

    def __init__(self, library: Library, facts: dict[str, Any]) -> None:
        self._library = library
        self.name: str = facts["name"]
        #: names and types of the arguments, in order: {"x": "*fp16", "n": "i32"}
        self.arguments: dict[str, str] = {entry["name"]: entry["type"] for entry in facts["arguments"]}
        #: the compiled forms as the manifest has them, in order of preference
        self.variants: list[dict[str, Any]] = facts["variants"]

    def __getitem__(self, grid: Grid) -> Any:
        return lambda *args, **options: self._library.launch(self.name, grid, *args, **options)

    def ptx(self, variant: int = 0) -> str:
        """The PTX text of a variant."""
        return self._library.handle.ptx(self.name, variant)

    def __repr__(self) -> str:
        signature = ", ".join(f"{name}: {kind}" for name, kind in self.arguments.items())
        return f"<kernel {self.name}({signature}) for {', '.join(variant['target'] for variant in self.variants)}>"


class Library:
    """An opened PTX library: whole and checked when this returns.

    Raises ``weft.runtime.Error`` with status "not found" where there is none, and "corrupt", saying which file and why,
    for one that is torn, altered, foreign or of another schema.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._set(os.fspath(path), native.load("_runtime").Library(_encoded(path)))

    @classmethod
    def from_compiled(cls, info: Mapping[str, Any], ptx: str, target: str | None = None) -> Library:
        """A library in memory of what the compiler gave: ``info`` of its kernels and programs, and their PTX.

        It is checked as one on disk is.
        """
        made = cls.__new__(cls)
        made._set("<memory>", open_compiled(info, ptx, target))
        return made

    def __copy__(self) -> Library:
        return self  # nothing in it changes

    def __deepcopy__(self, memo: Any) -> Library:
        return self

    def __reduce__(self) -> Any:
        """Pickled by its path, which another process opens and checks; one in memory is refused."""
        if self.path == "<memory>":
            raise TypeError("expected a library on disk to pickle, but got one in memory: compile it with out=DIR")
        return Library, (str(pathlib.Path(self.path).absolute()),)

    def _set(self, path: str, handle: Any) -> None:
        self.path = path
        self.handle = handle
        #: manifest.json as Python objects
        self.manifest: dict[str, Any] = json.loads(handle.manifest)
        #: the kernels by name
        self.kernels: Mapping[str, LibraryKernel] = MappingProxyType(
            {facts["name"]: LibraryKernel(self, facts) for facts in self.manifest["kernels"]}
        )
        #: the machine code beside the PTX, as the manifest has it: "file", "target", "ptx", "ptx_sha256"
        self.cubins: list[dict[str, Any]] = self.manifest.get("cubins", [])
        #: the programs by name
        self.programs: Mapping[str, Program] = MappingProxyType(
            {facts["name"]: Program(handle, facts) for facts in self.manifest.get("programs", [])}
        )

    def program(self, name: str) -> Program:
        """A program by name. KeyError names those that there are."""
        return found_in(self.programs, name, self.path)

    def run(self, name: str, *inputs: Any, **named: Any) -> Any:
        """Run a program on arrays: ``library.run("sema", q, k, v)``; see ``Program``."""
        return self.program(name)(*inputs, **named)

    def differentiable(self, name: str) -> Any:
        """The program ``name`` as a function of torch tensors whose results have gradients, by its forward and
        backward in this library: ``f = library.differentiable("sema"); f(q, k, v, lepe).sum().backward()``. KeyError
        where the library was compiled without them."""
        from weft.runtime.autograd import differentiable  # loads PyTorch, which only gradients need

        return differentiable(self, name)

    def launch(
        self, name: str, grid: Grid, *args: Any, device: str | None = None, stream: int | None = None, **named: Any
    ) -> None:
        """Launch a kernel: its first variant that runs on the device and takes the arguments.

        ``grid`` is an int or up to three; None takes the library's own grid expression. Arguments go by position or by
        name: arrays and tensors for pointers (see weft.runtime), numbers for the rest. ``device`` is by default that of
        the first CUDA tensor, else weft.device(). Raises ``weft.runtime.Error``: "not found", "invalid argument",
        "wrong target", and on the simulator "finding".
        """
        if named:
            args = self._positional(name, args, named)
        if any(map(exchange.is_foreign, args)):
            known = self.kernels[name].arguments if name in self.kernels else ()
            labels = [*known, *map(str, range(len(known), len(args)))]
            args = tuple(array for _, array in exchange.adopted(zip(labels, args, strict=False))[0])
        self._check(name, args)
        on = open_device(device) if device else device_for(args)
        self.handle.launch(on, name, grid, args, stream)

    def _check(self, name: str, args: tuple[Any, ...]) -> None:
        """Refuse arrays of other elements than the kernel's, which would read and write past the end of them. (How many
        arguments there are, and numbers, are checked where they are packed.)"""
        kernel = self.kernels.get(name)
        given = [(each, *pair) for each, pair in zip(args, kernel.arguments.items() if kernel else (), strict=False)]
        refuse((argument, array) for array, argument, _ in given)
        for array, argument, kind in given:
            if not hasattr(array, "dtype") or getattr(array, "shape", ()) == ():
                continue
            if not kind.startswith("*"):
                raise refused(f"'{name}': expected a number, {kind}, for '{argument}', but got an array")
            try:
                found = array_type(array.dtype)
            except TypeError:
                found = str(array.dtype)
            if not same_bytes(found, kind[1:]):
                raise refused(f"'{name}': expected an array of {kind[1:]} for '{argument}', but got one of {found}")

    def _positional(self, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        if name not in self.kernels:
            self.handle.arguments(name)  # raises, naming the kernels that there are
        missing = list(self.kernels[name].arguments)[len(args) :]
        if sorted(missing) != sorted(named):
            expected = ", ".join(f"'{each}'" for each in missing) or "none"
            raise TypeError(
                f"'{name}': expected {expected} by name after {len(args)} arguments by position, but got "
                + ", ".join(f"'{each}'" for each in named)
            )
        return args + tuple(named[each] for each in missing)

    def __repr__(self) -> str:
        return f"<library '{self.path}': {', '.join([*self.programs, *self.kernels]) or 'no kernels'}>"


def _encoded(path: str | os.PathLike[str]) -> bytes:
    """A path as the system has it. ValueError for one that no file can have."""
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError(f"expected a path, but got {path!r}, which holds a null character")
    return encoded


def load(path: str | os.PathLike[str]) -> Library:
    """Open the PTX library in directory ``path``. See Library for what it raises."""
    return Library(path)


def write_library(
    path: str | os.PathLike[str],
    kernels: list[dict[str, Any]],
    files: Mapping[str, str | bytes],
    programs: list[dict[str, Any]] | None = None,
    cubins: list[dict[str, Any]] | None = None,
) -> None:
    """Write a library: ``kernels``, ``programs`` and ``cubins`` as the manifest has them, ``files`` the PTX and the
    machine code by file name.

    The directory ``path`` is at every moment what it was or whole. Raises ``weft.runtime.Error`` where the kernels do
    not make a manifest, or where something that is no library is at ``path``.
    """
    manifest = {"kernels": kernels}
    if programs:
        manifest["programs"] = programs
    if cubins:
        manifest["cubins"] = cubins
    native.load("_runtime").write_library(_encoded(path), json.dumps(manifest), dict(files))
