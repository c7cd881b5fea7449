# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``@weft.jit``: a Python function as a tile kernel, compiled when it is called and for what it is called with."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from .. import locks
from ..language.types import dtype
from ..recent import Recent
from ..runtime import exchange
from ..runtime.addressed import is_bare
from ..runtime.descriptors import leaves
from ..runtime.devices import device_for
from ..runtime.plain import observed, recording
from ..targets import default_target
from . import composites, cooperative, launches, parameters, scope
from .code import Names
from .described import DescribedLaunches
from .diagnostics import CompilationError
from .kernel import Kernel, build, signature_of
from .keys import Place, spelled
from .known import Launch, Launches
from .launchable import Launchable
from .lower import Options
from .reads import Reads, Unknown, key_of
from .signature import Signature, for_function, parse
from .source import Source, file_lines, listed, read
from .specialise import CONSTANT, compared, refused, token
from .targets import target_of

_lock = locks.lock("kernels")
_OPTIONS = ("num_warps", "num_stages", "debug", "enable_fp_fusion", "cluster", "persistent")
# Triton's advice on schedules, for other vendors' machines too, and where its libdevice lies: without effect here, for
# values that change no result.
_ADVICE = (
    *("num_ctas", "maxnreg", "ir_override", "launch_pdl", "extern_libs", "arch", "ptx_version", "ptx_options"),
    *("sched4reg", "clc", "min_shared_mem", "instrumentation_mode", "enable_reflect_ftz", "sanitize_overflow"),
    *("waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint"),
)


class JITFunction(Launchable):
    """A kernel, or a function that kernels call. ``kernel[grid](*args, BLOCK=64, num_warps=4, num_stages=3)`` launches
    it.

    ``grid`` is a tuple of up to three integers, or a function of the arguments by name that gives one. Arrays are
    NumPy's or torch's; they are used in place. With ``cluster=2`` (4, 8) programs that are neighbours along the grid's
    first axis share what their loops copy, where the target has clusters; its first extent is a multiple of that. With
    ``persistent=True`` one block on each multiprocessor goes over the programs, where the target has warps that copy.
    """

    __weft_jit__ = True

    def __init__(
        self,
        fn: Callable[..., Any],
        do_not_specialize: Iterable[int | str] = (),
        do_not_specialize_on_alignment: Iterable[int | str] = (),
        debug: bool = False,
        noinline: bool | None = None,
        version: Any = None,
        repr: Any = None,
        launch_metadata: Any = None,
    ):
        if not isinstance(fn, types.FunctionType):
            raise TypeError(f"expected a function to decorate with @weft.jit, but got {fn!r}")
        self.fn = fn
        self.debug = debug
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment
        self.noinline, self.version, self.launch_metadata = noinline, version, launch_metadata
        self.repr = repr or (lambda specialization: fn.__name__)
        self._lines = file_lines(fn)
        self.signature = inspect.signature(fn)
        self.params = parameters.of(fn, self.signature, do_not_specialize, do_not_specialize_on_alignment)
        self.arg_names = [parameter.name for parameter in self.params]
        self._index = {p.name: i for i, p in enumerate(self.params)}
        self._kernels: Recent[Any, tuple[Kernel, tuple[int, ...]]] = Recent(512)
        self._read: tuple[Reads, Hashable] | None = None
        self._launches = Launches(self.params)
        self._described = DescribedLaunches()
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.__name__ = fn.__name__
        functools.update_wrapper(self, fn)
        self.__globals__ = fn.__globals__

    def __repr__(self) -> str:
        return f"<@weft.jit {self.fn.__qualname__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise CompilationError(
            f"expected a grid: '{self.__name__}' is a kernel",
            remedy=f"launch it with {self.__name__}[grid](...), or call it from another kernel",
        )

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call ``hook(*args, **kwargs)`` with a launch's arguments before each launch of this kernel."""
        self.pre_run_hooks.append(hook)

    # ---- Source, and what it reads

    @functools.cached_property
    def source(self) -> Source:
        """The function's source, as it was when the function was defined."""
        return read(self.fn, self._lines)

    def get_capture_scope(self) -> dict[str, Any]:
        """The names that the kernel's code finds outside of it: globals, and of enclosing functions."""
        names = zip(self.fn.__code__.co_freevars, self.fn.__closure__ or (), strict=True)
        return self.__globals__ | {name: cell.cell_contents for name, cell in names}

    def _unsafe_update_src(self, src: str) -> None:
        """Become the kernel of this name that a text defines, with the same globals: how Triton's libraries make
        kernels of text. ValueError where it defines none."""
        made: dict[str, Any] = {}
        exec(compile(src, listed(src), "exec"), self.__globals__, made)
        if not isinstance(made.get(self.__name__), types.FunctionType):
            raise ValueError(f"expected a text that defines '{self.__name__}', but got {src[:60]!r}")
        made[self.__name__].__module__ = self.__module__
        for cached in ("src", "raw_src", "starting_line_number", "source", "names"):
            self.__dict__.pop(cached, None)
        kept = list(inspect.signature(JITFunction.__init__).parameters)[2:]
        self.__init__(made[self.__name__], **{name: getattr(self, name) for name in kept})  # type: ignore[misc]
        _ = self.source  # read now: libraries say afterwards of the code that it stands where the text came from

    @functools.cached_property
    def src(self) -> str:
        """The source from ``def`` on, without decorators."""
        source = self.source
        return "\n".join(source.lines[source.tree.lineno - 1 :]) + "\n"

    @functools.cached_property
    def raw_src(self) -> list[str]:
        """The source's lines as its file has them, decorators included, each with its end."""
        indent = " " * self.source.indent
        return [f"{indent if line else ''}{line}\n" for line in self.source.lines]

    @functools.cached_property
    def starting_line_number(self) -> int:
        """The line of its file at which ``raw_src`` begins."""
        return self.source.first_line

    @functools.cached_property
    def names(self) -> Names:
        """The names in the source that are no variables of the function."""
        return scope.names(self.source.tree, self.fn.__code__.co_varnames)

    def __weft_reads__(self, reads: Reads) -> Hashable:
        """This function by value: its source, where it stands, and what it reads."""
        source = self.source
        place = Place(source.file, source.first_line, source.indent)
        parameters = tuple((p.name, p.is_constexpr, str(p.type), p.divisibility, p.is_const) for p in self.params)
        return (source.text, place, parameters, *reads.function(self.fn, self.names, python=False))

    def reads(self) -> Hashable | None:
        """All that the compiler reads for this function now, by value: helpers, constants, attributes. None where
        something of it cannot be compared."""
        with _lock:
            if self._read is None or not self._read[0].unchanged():
                reads = Reads()
                try:
                    self._read = (reads, reads.key(self))
                except Unknown:
                    self._read = None
                self._launches.renew(self._read and self._read[0])
                self._described.renew()
            return self._read and self._read[1]

    @property
    def cache_key(self) -> str:
        """A digest of the source and of everything of it that the compiler reads, wherever it stands."""
        found = self.reads()
        text = self.source.text if found is None else spelled(found, places=False)
        return hashlib.sha256(json.dumps(text).encode()).hexdigest()

    # ---- Compiling

    def compile(
        self,
        signature: str | None = None,
        constants: Mapping[str, Any] | None = None,
        target: str | None = None,
        num_warps: int = 4,
        num_stages: int = 3,
        debug: bool = False,
        enable_fp_fusion: bool = True,
        cluster: int = 1,
        persistent: bool = False,
    ) -> Kernel:
        """The kernel for the argument types that ``signature`` spells ("x:*fp16:16, n:i32, BLOCK=128") or that
        annotations name. Needs no device.

        Raises CompilationError at the kernel's own line.
        """
        wanted = for_function(self, parse(signature) if signature else None, constants or {})
        wanted = dataclasses.replace(wanted, apart=True)  # launches of the kernel see to it
        return self.compile_for(
            wanted, target or default_target(), num_warps, num_stages, debug, enable_fp_fusion, cluster, persistent
        )

    def compile_for(
        self,
        signature: Signature,
        target: str,
        num_warps: int = 4,
        num_stages: int = 3,
        debug: bool = False,
        enable_fp_fusion: bool = True,
        cluster: int = 1,
        persistent: bool = False,
    ) -> Kernel:
        """The kernel for a whole signature: of what ``compile`` found, or one like it."""
        options = _options(num_warps, num_stages, debug or self.debug, enable_fp_fusion, cluster, persistent)
        with _lock:
            return build(self, signature, options, target)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Kernel:
        """Compile as a call with these arguments would, without a launch. A dtype stands for an aligned array of it."""
        options = self._pop_options(kwargs)
        values = self._values(args, kwargs)
        kernel, runtime = self._kernel(values, options, target_of(device_for(tuple(leaves(values)))))
        if not kernel.apart:
            return kernel
        _, parts = composites.spread(self.params, values)
        passed = [parts[i] for i in runtime]
        return kernel if any(isinstance(each, dtype) for each in passed) else kernel.fitting(passed)

    def _kernel(self, values: list[Any], options: tuple[Any, ...], target: str) -> tuple[Kernel, tuple[int, ...]]:
        """The kernel for these arguments, and which of them, or of their parts, it is launched with."""
        params, parts = composites.spread(self.params, values)
        tokens = tuple(map(token, params, parts))
        more = compared(tokens)
        read = key_of(self, *more) if more else self.reads()
        if read is None and more and (error := refused(params, tokens)):
            raise error
        names = None if params is self.params else tuple(p.name for p in params)
        key = (read, tokens, names, options, target)
        found = self._kernels.get(key) if read is not None else None
        if found is None:
            with _lock:
                kernel = build(self, signature_of(params, tokens), _options(*options[:-1]), target)
            if options[-1]:
                kernel = dataclasses.replace(kernel, cooperative=True)
            runtime = tuple(i for i, t in enumerate(tokens) if t[0] is not CONSTANT)
            found = (kernel, runtime)
            if read is not None:
                self._kernels.keep(key, found)
        return found

    # ---- Launching

    def __getitem__(self, grid: Any) -> Callable[..., Kernel | None]:
        return functools.partial(self._call, grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Kernel | None:
        """Launch: what ``kernel[grid](...)`` does. Gives the compiled kernel, or None for an empty grid. With
        ``warmup`` the kernel is compiled and not launched."""
        return self.warmup(*args, **kwargs) if warmup else self._call(grid, *args, **kwargs)

    def _call(self, grid: Any, /, *args: Any, **kwargs: Any) -> Kernel | None:
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        found = None  # where torch's operations are followed, tensors may be more than their memory
        if not observed():
            found = self._launches.find(args, kwargs) or self._described.find(args, kwargs)
        if found is not None and found[0].debug == self.debug:
            launch, values = found
        else:
            launch, values = self._launch(args, kwargs)
        if callable(grid):
            grid = grid(self._named(args, kwargs))
        extent = (grid,) if isinstance(grid, int) else tuple(grid)
        if 0 in extent:
            return None
        kernel: Kernel = launch.kernel
        if kernel.apart and (fitting := kernel.fitting(values)) is not kernel:
            kernel = fitting
            launch = launch._replace(kernel=kernel, module=kernel.module(device_for(values)))
        if kernel.cluster > 1:
            kernel.check_grid(extent)
        if kernel.cooperative:
            cooperative.check(kernel, launch.module, device_for(values), extent)
        if launches.are_watched():
            launches.pass_on(launches.Passing(kernel, launch.module, extent, values))
        else:
            launch.module.launch(extent, launch.threads, values)
        return kernel

    def _launch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Launch, tuple[Any, ...]]:
        """What a call becomes, found the long way, and known again after it."""
        if recorder := recording():
            raise TypeError(
                f"'{self.__name__}': expected a launch outside of {recorder}, which does not see what kernels compute: "
                "make it an operator of torch's, by torch.library.custom_op"
            )
        rest = dict(kwargs)
        options = self._pop_options(rest)
        values = self._values(args, rest)
        others, bare = any(map(exchange.is_foreign, values)), any(map(is_bare, values))
        if others:
            values = [array for _, array in exchange.adopted(zip(self.arg_names, values, strict=True))[0]]
        params, parts = composites.spread(self.params, values)
        device = device_for(tuple(parts))
        if params is not self.params:
            self.reads()  # which descriptors' constants are told apart from, too
        read = self._read  # before: what the kernel is made from must be that, still, after it
        kernel, runtime = self._kernel(values, options, target_of(device))
        launch = Launch(kernel, kernel.module(device), 32 * kernel.num_warps, self.debug)
        if not (others or bare) and read is not None and read is self._read:
            if params is not self.params:
                self._described.keep(read[0], args, kwargs, params, parts, runtime, launch)
            elif not compared(tuple(map(token, self.params, values))):
                self._launches.keep(read[0], args, kwargs, runtime, launch)
        return launch, tuple([each.data_ptr() if is_bare(each) else each for each in (parts[i] for i in runtime)])

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """A call's arguments by name, with the warps and stages, for a grid that depends on them."""
        rest = dict(kwargs)
        warps, stages, *_ = self._pop_options(rest)
        values = self._values(args, rest)
        named = {p.name: value for p, value in zip(self.params, values, strict=True)}
        return {**named, "num_warps": warps, "num_stages": stages}

    def _pop_options(self, kwargs: dict[str, Any]) -> tuple[Any, ...]:
        index = self._index
        warps = kwargs.pop("num_warps", 4) if "num_warps" not in index else 4
        stages = kwargs.pop("num_stages", 3) if "num_stages" not in index else 3
        debug = kwargs.pop("debug", self.debug) if "debug" not in index else self.debug
        fuses = kwargs.pop("enable_fp_fusion", True) if "enable_fp_fusion" not in index else True
        cluster = kwargs.pop("cluster", 1) if "cluster" not in index else 1
        persistent = kwargs.pop("persistent", False) if "persistent" not in index else False
        together = kwargs.pop("launch_cooperative_grid", False) if "launch_cooperative_grid" not in index else False
        for name in _ADVICE if kwargs.keys() & _ADVICE else ():
            given = kwargs.pop(name, None) if name not in index else None
            if name == "extern_libs" and given and set(dict(given)) != {"libdevice"}:
                raise ValueError(
                    f"expected 'extern_libs' to name 'libdevice' alone, whose functions need none, but got {given!r}"
                )
        if together and persistent:
            raise ValueError(
                "expected no 'persistent' of a cooperative launch, whose programs are all on the machine at once"
            )
        return (warps, stages, debug, fuses, cluster, persistent, bool(together))

    def _values(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in the order of the parameters. TypeError, with the signature, when they do not fit."""
        values = list(args)
        if len(values) > len(self.params):
            raise TypeError(
                f"'{self.__name__}': expected at most {len(self.params)} arguments, but got "
                f"{len(values)}; it takes {self._spelling()}"
            )
        used = 0
        for parameter in self.params[len(values) :]:
            if parameter.name in kwargs:
                values.append(kwargs[parameter.name])
                used += 1
            elif parameter.has_default:
                values.append(parameter.default)
            else:
                raise TypeError(
                    f"'{self.__name__}': expected an argument for '{parameter.name}', but got none; "
                    f"it takes {self._spelling()}"
                )
        if used != len(kwargs):
            extra = next(name for name in kwargs if name not in self._index or self._index[name] < len(args))
            why = "given twice" if extra in self._index else "none of its parameters or options"
            raise TypeError(
                f"'{self.__name__}': '{extra}' is {why}; it takes {self._spelling()} and {', '.join(_OPTIONS)}"
            )
        return values

    def _spelling(self) -> str:
        return ", ".join(self.arg_names)


def _options(
    num_warps: Any, num_stages: Any, debug: Any, enable_fp_fusion: Any, cluster: Any, persistent: Any
) -> Options:
    if not isinstance(num_warps, int) or num_warps not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"expected num_warps to be a power of two from 1 to 32, but got {num_warps!r}")
    if not isinstance(num_stages, int) or not 0 <= num_stages <= 16:
        raise ValueError(f"expected num_stages from 0 to 16, but got {num_stages!r}")
    if not isinstance(cluster, int) or cluster not in (1, 2, 4, 8):
        raise ValueError(f"expected cluster to be 1, 2, 4 or 8 programs, but got {cluster!r}")
    if persistent and cluster > 1:
        raise ValueError(f"expected a kernel to be persistent or to have clusters, but got a cluster of {cluster}")
    stages = max(num_stages, 1)  # none in flight, as Triton's kernels say it, is one at a time
    return Options(num_warps, stages, bool(debug), bool(enable_fp_fusion), int(cluster), bool(persistent))


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    do_not_specialize: Iterable[int | str] | None = None,
    do_not_specialize_on_alignment: Iterable[int | str] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
    version: Any = None,
    repr: Any = None,
    launch_metadata: Any = None,
) -> Any:
    """Decorate a function as a kernel, or as a function that kernels call: it is compiled, not run, when it is called.

    ``do_not_specialize`` names (or numbers) parameters whose values must not select a kernel of their own: otherwise an
    integer that is 1 becomes a constant,
    and divisibility by 16 is used. ``debug`` makes wl.device_assert trap. Triton's ``noinline``, ``version``, ``repr``
    and ``launch_metadata`` are accepted and have no effect: helpers are always inlined.
    """

    def decorate(function: Callable[..., Any]) -> JITFunction:
        return JITFunction(function, do_not_specialize or (), do_not_specialize_on_alignment or (), bool(debug))

    return decorate if fn is None else decorate(fn)
