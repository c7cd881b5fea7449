# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One kernel through both compilers: the same source, types, constants, warps and stages."""

from __future__ import annotations

import importlib
import multiprocessing
import pathlib
import re
import time
from dataclasses import dataclass
from typing import Any

import torch

#: what kernels are compiled for where nobody says
TARGET = "sm_80"
#: of Triton's PTX from Hopper on: it writes that of its own ptxas, which may be newer than the one that assembles both
PTX_VERSION = 90
KINDS = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.float8_e4m3fn: "fp8e4nv",
    torch.float8_e5m2: "fp8e5",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "i1",
}


@dataclass(frozen=True)
class Request:
    """What to compile, and for what: where the kernel is, its arguments' types in order, which of them are multiples of
    16."""

    module: str
    name: str
    types: dict[str, str]
    aligned: tuple[str, ...]
    constants: dict[str, Any]
    warps: int
    stages: int
    target: str = TARGET


@dataclass(frozen=True)
class Made:
    """PTX, its target, what a launch of it needs, and the processor seconds from Python to PTX."""

    ptx: str
    target: str
    entry: str
    shared_bytes: int
    warps: int
    seconds: float

    @property
    def architecture(self) -> str:
        """What the PTX says that it is for: Triton's for sm_120 is for sm_120a."""
        found = re.search(r"^\.target\s+(\w+)", self.ptx, re.M)
        return found[1] if found else self.target

    @property
    def parameters(self) -> int:
        """How many the entry is launched with: Triton adds scratch buffers of its own; maps that a launch makes are
        none."""
        found = re.search(rf"\.entry\s+{self.entry}\s*\((.*?)\)", self.ptx, re.S)
        maps = re.findall(rf"^// weft\.tensor_map 1 {self.entry} ", self.ptx, re.M)
        return len(re.findall(r"\.param", found[1])) - len(maps) if found else 0


def innermost(kernel: Any) -> Any:
    """The compiled function below what autotunes it or completes its arguments."""
    while not hasattr(kernel, "params"):
        kernel = kernel.fn
    return kernel


def request(
    kernel: Any, values: dict[str, Any], constants: dict[str, Any], warps: int, stages: int, target: str = TARGET
) -> Request:
    """What a launch with these arguments compiles: integers that are 1 become constants, in both."""
    types, aligned, fixed = {}, [], {}
    for parameter in innermost(kernel).params:
        name = parameter.name
        if name in constants:
            fixed[name] = plain(constants[name])
            continue
        value = values[name]
        if value is None or (type(value) is int and value == 1 and parameter.specialise):
            fixed[name] = value
        elif isinstance(value, torch.Tensor):
            types[name] = f"*{KINDS[value.dtype]}"
            aligned += [name] if parameter.specialise_alignment else []
        elif isinstance(value, bool):
            types[name] = "i1"
        elif isinstance(value, int):
            types[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            aligned += [name] if value % 16 == 0 and parameter.specialise_alignment else []
        else:
            types[name] = "fp32"
    function = innermost(kernel).fn
    return Request(function.__module__, function.__name__, types, tuple(aligned), fixed, warps, stages, target)


@dataclass(frozen=True)
class NamedType:
    """A type of the tile language among constants, on its way to another process."""

    name: str


def plain(value: Any) -> Any:
    """A constant as it goes to another process."""
    while type(value).__name__ == "constexpr":
        value = value.value
    return NamedType(str(value)) if type(value).__name__ in ("dtype", "Dtype") or "dtype" in str(type(value)) else value


def _kernel(wanted: Request) -> Any:
    return innermost(getattr(importlib.import_module(wanted.module), wanted.name))


def _constants(wanted: Request) -> dict[str, Any]:
    language = importlib.import_module("triton.language")
    types = {str(each): each for each in vars(language).values() if "dtype" in type(each).__name__}
    return {k: types[v.name] if isinstance(v, NamedType) else v for k, v in wanted.constants.items()}


def by_weft(wanted: Request) -> Made:
    """Weft's PTX. Raises weft.Error."""
    from weft.compiler.kernel import build
    from weft.compiler.lower import Options
    from weft.compiler.signature import Argument, Signature, type_named

    arguments = {
        name: Argument(type_named(kind), 16 if name in wanted.aligned else 1) for name, kind in wanted.types.items()
    }
    kernel = _kernel(wanted)
    started = time.process_time()
    made = build(
        kernel,
        Signature(arguments, _constants(wanted), apart=True),
        Options(wanted.warps, wanted.stages),
        wanted.target,
    )
    seconds = time.process_time() - started
    return Made(made.ptx, wanted.target, made.name, made.shared_bytes, made.num_warps, seconds)


def by_triton(wanted: Request) -> Made:
    """Triton's PTX. The time is that up to PTX: ptxas runs in a process of its own, whose time is not counted."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = _kernel(wanted)
    names = [parameter.name for parameter in kernel.params]
    started = time.process_time()
    source = ASTSource(
        kernel,
        {name: wanted.types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in _constants(wanted).items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in wanted.aligned},
    )
    capability = int(wanted.target[3:].rstrip("a"))
    options = {"num_warps": wanted.warps, "num_stages": wanted.stages}
    if capability >= 90:
        options["ptx_version"] = PTX_VERSION
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    seconds = time.process_time() - started
    facts = made.metadata
    return Made(made.asm["ptx"], wanted.target, facts.name, facts.shared, facts.num_warps, seconds)


class Peer:
    """A process in which ``triton`` is Triton, with its cache in a folder: this one has Weft in its place. It ends with
    this one."""

    def __init__(self, folder: pathlib.Path) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        context.Process(target=_serve, args=(other, str(folder)), daemon=True).start()

    def compile(self, wanted: Request) -> Made:
        """Triton's PTX. Raises RuntimeError with Triton's words."""
        self.pipe.send(wanted)
        found = self.pipe.recv()
        if isinstance(found, str):
            raise RuntimeError(found)
        return found


def _serve(pipe: Any, folder: str) -> None:
    """Compile what is asked for, everything anew, and once for nothing, so that no kernel pays for what a process does
    first."""
    import warnings

    warnings.simplefilter("ignore")
    from triton import knobs

    knobs.compilation.always_compile = True
    knobs.cache.dir = folder
    by_triton(warm())
    while True:
        try:
            wanted = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(by_triton(wanted))
        except Exception as error:
            pipe.send(f"{type(error).__name__}: {error}")


def warm() -> Request:
    """A small kernel to compile first."""
    types = {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}
    return Request("tile_kernels.rows", "add_kernel", types, (), {"BLOCK": 128}, 4, 3)
