# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A compiled kernel: PTX, what is known about it, its IR at every stage; made by the compiler or taken from the
cache.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .. import native
from ..language.types import dtype
from . import cache
from .diagnostics import CompilationError, from_native
from .lower import Options, lower, native_context
from .signature import Argument, Signature, short_name

if TYPE_CHECKING:
    from .jit import JITFunction

STAGES = ("tile", "warp", "pipelined", "llvm")
_FORMAT = 1  # of a cache entry


@dataclass
class Kernel:
    """A kernel compiled for one target and one set of argument types and constants.

    ``ptx`` is the PTX text, ``info`` what the compiler reports (entry, shared_bytes, arguments, times_ms), ``ir`` the
    MLIR text by stage:
    "python" (as the front end made it), "tile", "warp", "pipelined", "llvm".
    """

    function: JITFunction
    signature: Signature
    options: Options
    target: str
    ptx: str
    info: dict[str, Any]
    cached: bool = False
    _modules: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the PTX entry."""
        return str(self.info["kernels"][0]["entry"])

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory a program needs."""
        return int(self.info["kernels"][0]["shared_bytes"])

    @property
    def types(self) -> list[str]:
        """The types of the run-time arguments, in order, as signatures spell them."""
        return [short_name(argument.type) for argument in self.signature.arguments.values()]

    @functools.cached_property
    def ir(self) -> dict[str, str]:
        """The IR at every stage. Computed when asked for, by compiling once more."""
        module = lower(self.function, self.signature, self.options, self.target)
        python = module.text()
        _, info = _to_ptx(module, self.target, list(STAGES))
        return {"python": python, **info.get("ir", {})}

    def module(self, device: Any) -> Any:
        """The runtime module of this kernel on a device (weft.runtime.Module), made on first use."""
        module = self._modules.get(id(device))
        if module is None:
            from ..runtime import Module

            module = self._modules[id(device)] = Module(self.ptx, self.name, self.shared_bytes, device, self.types)
        return module


@functools.cache
def _compiler_fingerprint() -> str:
    """What changes when the compiler does: its version, and a digest of its library and of the front end's sources.

    Of contents: sizes and times may be those of another build, where an installer has set them.
    """
    compiler = native.load("_compiler")
    binding = pathlib.Path(str(compiler.__file__))
    package = pathlib.Path(__file__).parents[1]
    sources = [file for part in ("compiler", "language") for file in sorted((package / part).glob("*.py"))]
    digest = hashlib.sha256()
    for file in (binding, binding.parent / "libweft-compiler.so", *sources):
        if file.exists():  # a binding may hold the compiler in itself
            contents = file.read_bytes()
            digest.update(f"{file.name} {len(contents)}\n".encode())
            digest.update(contents)
    return f"{compiler.version()} {digest.hexdigest()}"


def _constant_key(value: Any) -> Any:
    if getattr(value, "__weft_jit__", False):
        return ["function", value.cache_key, value.places]
    if isinstance(value, dtype):
        return ["type", str(value)]
    if isinstance(value, (tuple, list)):
        return [_constant_key(v) for v in value]
    return [type(value).__name__, repr(value)]


def cache_key(function: JITFunction, signature: Signature, options: Options, target: str) -> str:
    """The name of the cache entry: source with all it reads, where it stands (PTX names its lines), argument types,
    constants, options, target and compiler.
    """
    arguments = [[name, short_name(a.type), a.divisibility] for name, a in signature.arguments.items()]
    constants = [[name, _constant_key(value)] for name, value in signature.constants.items()]
    source = [function.cache_key, function.places]
    return cache.key([_FORMAT, source, arguments, constants, asdict(options), target, _compiler_fingerprint()])


def build(function: JITFunction, signature: Signature, options: Options, target: str) -> Kernel:
    """The kernel, from the cache or compiled. Raises CompilationError."""
    dumps = _wanted_dumps()
    name = cache_key(function, signature, options, target)
    entry = None if dumps else cache.read(name)
    if entry is not None:
        return Kernel(function, signature, options, target, entry["ptx"], entry["info"], cached=True)
    started = time.perf_counter()
    module = lower(function, signature, options, target)
    lowered = time.perf_counter()
    python = module.text() if dumps else ""
    ptx, info = _to_ptx(module, target, [stage for stage in STAGES if stage in dumps])
    times = info.setdefault("times_ms", {})
    times["python"], times["total"] = 1e3 * (lowered - started), 1e3 * (time.perf_counter() - started)
    if dumps:
        _dump(function.__name__, dumps, {"python": python, **info.pop("ir", {}), "ptx": ptx})
    cache.write(name, {"ptx": ptx, "info": info})
    return Kernel(function, signature, options, target, ptx, info)


def _to_ptx(module: Any, target: str, dump: list[str]) -> tuple[str, dict[str, Any]]:
    ptx, info, error = module.compile(json.dumps({"target": target, "dump": dump}))
    if error is not None:
        raise from_native(error, native_context().context.take_diagnostics())
    return ptx, json.loads(info)


def _wanted_dumps() -> list[str]:
    """The stages that WEFT_DUMP asks for: names separated by commas, or "all"."""
    wanted = [part.strip() for part in os.environ.get("WEFT_DUMP", "").split(",") if part.strip()]
    known = ("python", *STAGES, "ptx")
    for part in wanted:
        if part != "all" and part not in known:
            raise CompilationError(
                f"expected WEFT_DUMP to name stages, but got '{part}'", remedy=f"it takes {', '.join(known)} or all"
            )
    return list(known) if "all" in wanted else wanted


def _dump(name: str, wanted: list[str], texts: dict[str, str]) -> None:
    """Write stages to WEFT_DUMP_DIR, a file each, or to standard error."""
    folder = os.environ.get("WEFT_DUMP_DIR")
    for stage in wanted:
        text = texts.get(stage, "")
        if folder:
            path = pathlib.Path(folder)
            path.mkdir(parents=True, exist_ok=True)
            (path / f"{name}.{stage}.{'ptx' if stage == 'ptx' else 'mlir'}").write_text(text)
        else:
            print(f"// ---- {name}: {stage}\n{text}", file=sys.stderr)


def signature_of(function: JITFunction, tokens: tuple[tuple[Any, ...], ...]) -> Signature:
    """The signature that the tokens of a call's arguments stand for."""
    from .signature import type_named
    from .specialise import CONSTANT

    arguments: dict[str, Argument] = {}
    constants: dict[str, Any] = {}
    for parameter, (kind, *rest) in zip(function.params, tokens, strict=True):
        if kind is CONSTANT:
            constants[parameter.name] = rest[0]
        else:
            arguments[parameter.name] = Argument(type_named(kind), rest[0])
    return Signature(arguments, constants)
