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
import warnings
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .. import native
from ..errors import Error
from ..recent import Recent
from ..runtime.addressed import simulated_module
from ..runtime.extents import share_memory
from ..targets import target_named
from . import cache, direct
from .ast_source import ASTSource, source_of
from .diagnostics import CompilationError, from_native
from .fingerprint import compiler_fingerprint
from .keys import spelled
from .lower import Options, lower, native_context
from .parameters import Parameter
from .ptxas import Resources, assemble
from .reads import key_of
from .signature import Argument, Signature, short_name, type_named
from .specialise import CONSTANT, held
from .texts import Texts

if TYPE_CHECKING:
    from .jit import JITFunction

STAGES = ("tile", "warp", "pipelined", "llvm")
_FORMAT = 4  # of a cache entry
_lowered: Recent[str, Kernel] = Recent(512)  # those of which only what the front end makes can be compared


@dataclass
class Kernel:
    """A kernel compiled for one target and one set of argument types and constants.

    ``ptx`` is the PTX text, ``info`` what the compiler reports (entry, shared_bytes, arguments, times_ms), ``ir`` the
    MLIR text by stage:
    "python" (as the front end made it), "tile", "warp", "pipelined", "llvm". ``simulated``: whether it is for the
    simulator alone. ``cooperative``: whether all programs of a launch must run at once.
    """

    function: JITFunction
    signature: Signature
    options: Options
    target: str
    ptx: str
    info: dict[str, Any]
    cached: bool = False
    simulated: bool = False
    cooperative: bool = False
    _modules: dict[int, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The name of the PTX entry."""
        return str(self.info["kernels"][0]["entry"])

    @property
    def num_warps(self) -> int:
        """Warps of a launched block: those that were asked for, and those that only copy."""
        return int(self.info["kernels"][0]["num_warps"])

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory a program needs."""
        return int(self.info["kernels"][0]["shared_bytes"])

    @functools.cached_property
    def cluster(self) -> int:
        """How many programs share copies: the grid's first extent must be a multiple of it. 1 where none do."""
        return int(self.info["kernels"][0].get("cluster", 1))

    def check_grid(self, grid: Sequence[int]) -> None:
        """ValueError where clusters do not divide a grid."""
        if grid[0] % self.cluster:
            raise ValueError(
                f"'{self.name}': expected a grid whose first extent is a multiple of {self.cluster}, the programs of a "
                f"cluster, but got {tuple(grid)}; launch without 'cluster', or with programs that have nothing to do"
            )

    @functools.cached_property
    def apart(self) -> tuple[tuple[int, int], ...]:
        """Pairs of run-time arguments, by number, that must be arrays that share no memory: on others this kernel's
        threads would not wait for each other where they must. Launches see to it."""
        return tuple((first, second) for first, second in self.info["kernels"][0].get("apart", ()))

    @functools.cached_property
    def in_place(self) -> Kernel:
        """This kernel for arrays that may share memory. Compiled where ``apart`` asks for it."""
        if not self.apart:
            return self
        made = self.function.compile_for(replace(self.signature, apart=False), self.target, *astuple(self.options))
        return replace(made, simulated=self.simulated, cooperative=self.cooperative)

    def fitting(self, arguments: Sequence[Any]) -> Kernel:
        """This kernel, or the one for arrays that share memory where these run-time arguments do."""
        return self.in_place if self.apart and share_memory(arguments, self.apart) else self

    @functools.cached_property
    def asm(self) -> Texts:
        """The kernel's texts by stage, under Triton's names as well, each made when it is asked for."""
        return Texts(self)

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

    @functools.cached_property
    def metadata(self) -> Any:
        """What is known of a launch, under Triton's names; a named tuple."""
        machine = target_named(self.target)
        facts = {
            "name": self.name,
            "target": _Target("cpu" if self.simulated else "cuda", machine.capability, machine.warp_size),
            "shared": self.shared_bytes,
            "num_warps": self.num_warps,
            "num_stages": self.options.num_stages,
            "num_ctas": 1,
            "warp_size": machine.warp_size,
            "debug": self.options.debug,
            "enable_fp_fusion": self.options.enable_fp_fusion,
            "launch_cooperative_grid": self.cooperative,
            "launch_pdl": False,
            "global_scratch_size": 0,
            "hash": self.hash,
        }
        return namedtuple("KernelMetadata", sorted(facts))(**facts)

    @property
    def packed_metadata(self) -> Any:
        """What ``run`` is given of the metadata: all of it."""
        return self.metadata

    @functools.cached_property
    def src(self) -> ASTSource:
        """The kernel with the types and constants that it was compiled for."""
        return source_of(self.function, self.signature)

    @functools.cached_property
    def hash(self) -> str:
        """A digest of the compiled code and of its target."""
        return hashlib.sha256(f"{self.target}\n{self.ptx}".encode()).hexdigest()

    @property
    def n_regs(self) -> int:
        """Registers of a thread, which ptxas knows."""
        return self._resources.registers

    @property
    def n_spills(self) -> int:
        """Words that a thread spills and loads again, which ptxas knows."""
        return self._resources.spilled_bytes // 4

    @functools.cached_property
    def _resources(self) -> Resources:
        if self.simulated:
            raise _NoResources(
                f"expected a kernel for a GPU, which has registers, but '{self.name}' was compiled for the simulator"
            )
        found = assemble(self.ptx, self.target, self.name)
        if found is None:
            raise _NoResources(f"expected ptxas to say the registers of '{self.name}', but found none")
        return found

    def _init_handles(self) -> None:
        """Nothing: what is known of a kernel is known without a device. (Triton's scripts call it.)"""

    def __getitem__(self, grid: Any) -> Callable[..., Kernel | None]:
        """A launch of the function with this kernel's options, as Triton's scripts launch what a warm-up gave: with
        an argument for each parameter, or for each that is no constant."""
        taken = {parameter.name for parameter in self.function.params}
        options = {**asdict(self.options), "launch_cooperative_grid": self.cooperative}
        own = {name: value for name, value in options.items() if name not in taken}
        return functools.partial(self._launch, grid, own)

    def _launch(self, grid: Any, options: dict[str, Any], /, *args: Any, **kwargs: Any) -> Kernel | None:
        params = self.function.params
        varying = [parameter.name for parameter in params if not parameter.is_constexpr]
        if not kwargs and len(args) == len(varying) < len(params):
            constants = {p.name: self.signature.constants[p.name] for p in params if p.is_constexpr}
            return self.function.run(grid=grid, **dict(zip(varying, args, strict=True)), **constants, **options)
        return self.function.run(*args, grid=grid, **kwargs, **options)

    def launch_metadata(self, grid: Any, stream: Any, *args: Any) -> Any:
        """What hooks of ``run`` are told of a launch: name, grid, warps and stream."""
        return {"name": self.name, "grid": tuple(grid), "num_warps": self.options.num_warps, "stream": stream}

    def run(
        self,
        grid_0: int,
        grid_1: int,
        grid_2: int,
        stream: Any,
        function: Any,
        metadata: Any,
        launch_metadata: Any,
        launch_enter_hook: Any,
        launch_exit_hook: Any,
        *args: Any,
    ) -> None:
        """Launch this kernel as it is, by what Triton hands its launchers: an argument for each parameter, or for each
        that is no constant. Hooks of ``triton.knobs`` are called with every launch; others that are given, with
        ``launch_metadata``."""
        for hook in _foreign(launch_enter_hook):
            hook(launch_metadata)
        direct.launch(self, (grid_0, grid_1, grid_2), args)
        for hook in _foreign(launch_exit_hook):
            hook(launch_metadata)

    def module(self, device: Any) -> Any:
        """The runtime module of this kernel on a device (weft.runtime.Module), made on first use."""
        module = self._modules.get(id(device))
        if module is None:
            made = native.load("_runtime").Module(self.ptx, self.name, self.shared_bytes, device, self.types)
            module = self._modules[id(device)] = simulated_module(made, device, self.types)
        return module


_Target = namedtuple("_Target", ("backend", "arch", "warp_size"))


def _foreign(hook: Any) -> list[Any]:
    """The hook that is not one of ``triton.knobs``, which every launch calls."""
    return [] if hook is None or getattr(hook, "__weft_hooks__", False) else [hook]


class _NoResources(Error, AttributeError):
    """What is known of ptxas alone is missing: ``hasattr`` says so."""


def cache_key(function: JITFunction, signature: Signature, options: Options, target: str) -> str | None:
    """The name of the cache entry: source with all it reads, where it stands (PTX names its lines), argument types,
    constants, options, target and compiler. None where something that is read cannot be compared by value.
    """
    read = key_of(function, *signature.constants.items())
    if read is None:
        return None
    arguments = [
        [name, short_name(a.type), a.type.is_const(), a.divisibility] for name, a in signature.arguments.items()
    ]
    more = [arguments, signature.apart, asdict(options), target, compiler_fingerprint()]
    return cache.key([_FORMAT, spelled(read), *more])


def build(function: JITFunction, signature: Signature, options: Options, target: str) -> Kernel:
    """The kernel, from the cache or compiled. Raises CompilationError.

    Where what the source reads cannot be compared by value, the front end runs, and the cache knows what it made.
    """
    dumps = _wanted_dumps()
    name = cache_key(function, signature, options, target)
    started = time.perf_counter()
    warned: list[str] = []
    if name is None:
        module = lower(function, signature, options, target, warned)
        name = cache.key([_FORMAT, "lowered", module.text(locations=True), target, compiler_fingerprint()])
        found = _lowered.get(name)
        if found is None:
            made = _build(function, signature, options, target, name, dumps, started, warned, module)
            found = _lowered.keep(name, made)
    else:
        found = _build(function, signature, options, target, name, dumps, started, warned)
    for text in dict.fromkeys(warned):
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return found


def _build(
    function: JITFunction,
    signature: Signature,
    options: Options,
    target: str,
    name: str,
    dumps: list[str],
    started: float,
    warned: list[str],
    module: Any = None,
) -> Kernel:
    """The kernel of that name in the cache, or compiled, from its module where there is one already; adds to ``warned``
    what was said of it.
    """
    entry = None if dumps else cache.read(name)
    if entry is not None:
        warned += entry["warnings"]
        return Kernel(function, signature, options, target, entry["ptx"], entry["info"], cached=True)
    module = module or lower(function, signature, options, target, warned)
    lowered = time.perf_counter()
    python = module.text() if dumps else ""
    ptx, info = _to_ptx(module, target, [stage for stage in STAGES if stage in dumps])
    times = info.setdefault("times_ms", {})
    times["python"], times["total"] = 1e3 * (lowered - started), 1e3 * (time.perf_counter() - started)
    if dumps:
        _dump(function.__name__, dumps, {"python": python, **info.pop("ir", {}), "ptx": ptx})
    cache.write(name, {"ptx": ptx, "info": info, "warnings": warned})
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


def signature_of(parameters: Sequence[Parameter], tokens: tuple[tuple[Any, ...], ...]) -> Signature:
    """The signature that the tokens of a call's arguments, or of their parts, stand for."""
    arguments: dict[str, Argument] = {}
    constants: dict[str, Any] = {}
    for parameter, token in zip(parameters, tokens, strict=True):
        if token[0] is CONSTANT:
            constants[parameter.name] = held(token)
        else:
            arguments[parameter.name] = Argument(type_named(token[0]), token[1])
    return Signature(arguments, constants, apart=True)
