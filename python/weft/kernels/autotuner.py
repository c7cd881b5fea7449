# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``@weft.autotune``: configurations of a kernel tried on a call's own arguments, compared with each other, timed on a
GPU or ranked by the cost model without one; the best is kept, in the process and on disk.
"""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from weft.compiler import cache
from weft.compiler.fingerprint import compiler_fingerprint
from weft.compiler.places import described
from weft.compiler.targets import target_of
from weft.errors import Error
from weft.runtime.descriptors import leaves
from weft.runtime.devices import device_for

from .agreement import largest_group
from .arrays import Snapshot, storage
from .bench import do_bench as measure
from .config import Config
from .heuristics import Settled, Wrapper

_FORMAT = 1  # of a choice on disk
_QUANTILES = (0.5, 0.2, 0.8)


class Autotuner(Wrapper):
    """A kernel with configurations to choose from.

    ``best_config`` is that of the last call, ``cache`` the choice by key, ``configs_timings`` the milliseconds of the
    last trial by configuration, ``rejected`` why those not in it lost, ``nargs`` the positional arguments of the last
    call by name. Classes that choose by a rule of their own define ``run``, and ask ``prune_configs`` and ``_bench``,
    for which they set ``nargs`` first; these are Triton's names.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str] | None,
        reset_to_zero: Iterable[str] | None,
        restore_value: Iterable[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = True,
    ):
        super().__init__(fn)
        self.arg_names = list(arg_names)
        self.configs = _items("configs", configs, Config) or [Config({})]
        self.keys = _items("key", key, str)
        self.reset_to_zero = _items("reset_to_zero", reset_to_zero, str)
        self.restore_value = _items("restore_value", restore_value, str)
        self._check_names()
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._reset
        self.post_hook: Callable[..., Any] = post_hook or self._restore
        self._kept = Snapshot([])
        prune = dict(prune_configs_by or {})
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model = prune.get("perf_model")
        self.configs_top_k = prune.get("top_k", 1.0)
        self.num_warmups, self.num_reps = warmup, rep
        self.do_bench = do_bench
        self.cache_results = cache_results
        self.cache: dict[Hashable, Config] = {}
        self.best_config = self.configs[0]
        self.nargs: dict[str, Any] = {}
        self.configs_timings: dict[Config, float] = {}
        self.rejected: dict[Config, str] = {}
        self.bench_time = 0.0

    def _check_names(self) -> None:
        """Refuses names of arguments to put back that no parameter has. One in ``key`` is left out, as before Triton
        3.9: kernels name sizes there that their launchers know."""
        for what, names in (("reset_to_zero", self.reset_to_zero), ("restore_value", self.restore_value)):
            if wrong := self._no_parameters(what, names):
                raise ValueError(wrong)
        if wrong := self._no_parameters("key", self.keys):
            warnings.warn(f"{wrong}: left out", RuntimeWarning, stacklevel=4)
            self.keys = [name for name in self.keys if name in self.arg_names]

    def _no_parameters(self, what: str, names: Sequence[str]) -> str:
        """What is wrong with names that no parameter has; "" where there is none."""
        unknown = [name for name in names if name not in self.arg_names]
        expected = f"expected '{what}' to name parameters of '{self.__name__}' ({', '.join(self.arg_names)})"
        return f"{expected}, but got {', '.join(map(repr, unknown))}" if unknown else ""

    def _reset(self, values: Mapping[str, Any], reset_only: bool = False) -> None:
        """The pre_hook of those who give none."""
        for found in map(storage, (values.get(name) for name in self.reset_to_zero)):
            if found is not None:
                found.zero()
        self._kept = Snapshot([] if reset_only else [values.get(name) for name in self.restore_value])

    def _restore(self, values: Mapping[str, Any], exception: Exception | None) -> None:
        """The post_hook of those who give none."""
        self._kept.put_back()

    # ---- Calls

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the best configuration, found first where there is none yet for this key."""
        if kwargs.pop("warmup", False):
            return self.warmup(*args, **kwargs)
        self._bind(args, kwargs)
        config = self.best_config = self._chosen(args, kwargs)
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
        return self.fn.run(*args, **kwargs, **config.all_kwargs())

    def warmup(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Compile every configuration for a call with these arguments, without a launch; the kernels."""
        self._bind(args, kwargs)
        return [self.fn.warmup(*args, **kwargs, **config.all_kwargs()) for config in self.prune_configs(kwargs)]

    @functools.cached_property
    def _chosen_names(self) -> list[str]:
        return list(dict.fromkeys(name for config in self.configs for name in config.all_kwargs()))

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Keep a call's arguments by name. ValueError for one that the configurations give."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        for name in self._chosen_names:
            if name in kwargs or name in self.nargs:
                raise ValueError(
                    f"'{self.__name__}': expected '{name}' from the configurations alone, but the call gives it too; "
                    "leave it out, or launch the kernel without autotuning, as its attribute 'fn' has it"
                )

    def prune_configs(self, kwargs: Mapping[str, Any]) -> list[Config]:
        """The configurations that ``prune_configs_by`` leaves for a call with ``nargs`` and these arguments by name:
        those that ``early_config_prune`` gives, and of these the ``top_k`` whose ``perf_model`` is least."""
        found, model, named = self.configs, self.perf_model, self.nargs
        if self.early_config_prune is not None:
            found = list(self.early_config_prune(self.configs, dict(named), **kwargs))
            if not found:
                raise ValueError(f"expected 'early_config_prune' of '{self.__name__}' to leave a Config, but got none")
        if model is None:
            return found
        most = self.configs_top_k
        if isinstance(most, float) and most <= 1.0:
            most = max(1, int(len(found) * most))
        if isinstance(most, bool) or not isinstance(most, int):
            raise TypeError(f"expected 'top_k' to be an integer, or a part of at most 1.0, but got {most!r}")
        if len(found) <= most:
            return found
        return sorted(found, key=lambda config: model(**{**named, **kwargs, **config.all_kwargs()}))[:most]

    # ---- Choosing

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Config:
        if len(self.configs) == 1:
            return self.configs[0]
        values = {name: value for name, value in {**self.nargs, **kwargs}.items() if name in self.arg_names}
        key = (
            *(_plain(values[name]) for name in self.keys if name in values),
            *(str(value.dtype) for value in leaves([*values.values()]) if hasattr(value, "dtype")),
        )
        if key in self.cache:
            return self.cache[key]
        configs = self.prune_configs(kwargs)
        if len(configs) == 1 or os.environ.get("WEFT_AUTOTUNE") == "first":
            return configs[0]
        device = device_for(tuple(leaves([*values.values()])))
        entry = self._entry((*key, device.properties["model"], target_of(device)), configs)
        known = cache.read(entry) if self.cache_results else None
        if known is not None and known["choice"] < len(configs):
            self.configs_timings = {
                config: ms for config, ms in zip(configs, known["ms"], strict=True) if ms is not None
            }
            return self.cache.setdefault(key, configs[known["choice"]])
        chosen = self._tried(configs, args, kwargs, device.simulated)
        if self.cache_results:
            times = [self.configs_timings.get(config) for config in configs]
            cache.write(entry, {"choice": configs.index(chosen), "ms": times})
            self._record(
                {name: _plain(values[name]) for name in self.keys if name in values}, chosen, target_of(device)
            )
        return self.cache.setdefault(key, chosen)

    def _entry(self, key: Hashable, configs: Sequence[Config]) -> str:
        """The name of a choice on disk."""
        source, names = self.kernel.cache_key, list(map(str, configs))
        judge = (getattr(self.do_bench, "__module__", ""), getattr(self.do_bench, "__qualname__", ""))
        return cache.key([_FORMAT, "autotune", source, repr(key), names, judge, compiler_fingerprint()])

    # ---- Choices that libraries take

    def _records(self, target: str) -> str:
        """The name of the choices of all calls on a target, on disk."""
        source = self.kernel.cache_key
        return cache.key([_FORMAT, "autotuned", source, list(map(str, self.configs)), target])

    def _record(self, key: dict[str, Any], chosen: Config, target: str) -> None:
        if chosen not in self.configs:
            return
        name = self._records(target)
        records = (cache.read(name) or {"choices": []})["choices"]
        plain = {
            each: value if isinstance(value, (bool, int, float, str)) else repr(value) for each, value in key.items()
        }
        records = [record for record in records if record["key"] != plain]
        cache.write(name, {"choices": [*records, {"key": plain, "choice": self.configs.index(chosen)}]})

    def _own(self, constants: Mapping[str, Any], target: str) -> list[Settled]:
        """The configurations that were chosen for calls with these constants, by the integers among the other keys; the
        last is that of most of them, for all others."""
        if len(self.configs) == 1:
            return [({}, _given(self.configs[0]))]
        records = (cache.read(self._records(target)) or {"choices": []})["choices"]
        given = {name: constants[name] for name in self.keys if name in constants}
        fitting = [r for r in records if all(r["key"].get(name) == value for name, value in given.items())]
        if not fitting:
            raise ValueError(
                f"expected choices of '{self.__name__}' for {target} on disk, but found {len(records)} for other keys; "
                "call it once on the sizes that it is for"
            )
        chosen: dict[tuple[tuple[str, int], ...], int] = {}
        for record in fitting:
            integers = {n: int(v) for n, v in record["key"].items() if n not in given and isinstance(v, int)}
            if chosen.setdefault(tuple(integers.items()), record["choice"]) != record["choice"]:
                raise ValueError(self._several(fitting, target, given))
        usual = Counter(chosen.values()).most_common(1)[0][0]
        others = [(dict(key), choice) for key, choice in chosen.items() if choice != usual]
        return [(key, _given(self.configs[choice])) for key, choice in [*others, ({}, usual)]]

    def _several(self, records: Iterable[Mapping[str, Any]], target: str, given: Mapping[str, Any]) -> str:
        """That choices differ where no integer argument tells their calls apart."""
        listed = "; ".join(f"{r['key']}: {self.configs[r['choice']]}" for r in records)
        return (
            f"expected one choice of '{self.__name__}' for {target}, but found several: {listed}; fix "
            f"{' or '.join(name for name in self.keys if name not in given)} in the signature, NAME=VALUE"
        )

    def _tried(self, configs: Sequence[Config], args: tuple[Any, ...], kwargs: Any, simulated: bool) -> Config:
        """Every configuration tried on the arguments, whose memory is then as it was; the best of those that agree."""
        started = time.perf_counter()
        snapshot = Snapshot([*args, *kwargs.values()])
        self.configs_timings, self.rejected = {}, {}
        outputs: dict[Config, Any] = {}
        failures: list[Exception] = []
        for config in configs:
            try:
                trial = _Trial(self, config, args, kwargs, snapshot)
                self.configs_timings[config] = trial.milliseconds(simulated)[0]
                outputs[config] = trial.outputs
            except Error as error:
                self.rejected[config] = str(error).strip().partition("\n")[0]
                failures.append(error)
            finally:
                snapshot.put_back()
        if not outputs:
            raise failures[0]
        for config, reason in largest_group(outputs, snapshot.arrays).items():
            self.rejected[config] = reason
            del self.configs_timings[config]
            warnings.warn(f"'{self.__name__}' with {config} is not used: {reason}", RuntimeWarning, stacklevel=2)
        chosen = min(self.configs_timings, key=self.configs_timings.__getitem__)
        self.pre_hook({**self.nargs, **kwargs, **chosen.all_kwargs()}, reset_only=True)
        self.bench_time = time.perf_counter() - started
        return chosen

    def _bench(self, *args: Any, config: Config, **meta: Any) -> list[float]:
        """Milliseconds of one configuration on a call's arguments, whose memory is then as it was: the median and two
        other quantiles; infinite where the configuration cannot run."""
        snapshot = Snapshot([*args, *meta.values()])
        device = device_for(tuple(leaves([*args, *meta.values()])))
        try:
            return _Trial(self, config, args, meta, snapshot).milliseconds(device.simulated)
        except Error:
            return [float("inf")] * len(_QUANTILES)
        finally:
            snapshot.put_back()

    def timed(self, call: Callable[[], Any]) -> Any:
        """Milliseconds of a call: the median, and two other quantiles."""
        if self.do_bench is not None:
            return self.do_bench(call, quantiles=_QUANTILES)
        warmup, rep = self.num_warmups, self.num_reps
        return measure(call, 25 if warmup is None else warmup, 100 if rep is None else rep, quantiles=_QUANTILES)


def _given(config: Config) -> dict[str, Any]:
    """What a configuration gives a kernel that is compiled ahead."""
    return {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}


def _items(what: str, values: Any, kind: type) -> list[Any]:
    """The items of a list, all of one kind; none of None."""
    if values is None:
        return []
    if isinstance(values, (list, tuple, set, frozenset)) and all(isinstance(each, kind) for each in values):
        return list(values)
    named = "weft.Config" if kind is Config else "names of parameters"
    raise TypeError(f"expected a list of {named} for '{what}', but got {described(values)}")


class _Trial:
    """One configuration tried on a call's arguments. ``outputs`` is what its first run left in the arrays."""

    def __init__(self, tuner: Autotuner, config: Config, args: tuple[Any, ...], kwargs: Any, snapshot: Snapshot):
        self.tuner, self.config, self.args, self.snapshot = tuner, config, args, snapshot
        self.kwargs = {**kwargs, **config.all_kwargs()}
        self.values = {**tuner.nargs, **self.kwargs}
        self.outputs: list[Any] = []

    def milliseconds(self, simulated: bool) -> list[float]:
        """How long a run takes, by quantiles; on a simulated device the first one is counted, and no other made."""
        if simulated and self.tuner.do_bench is None:
            return [float(measure(self.run))] * len(_QUANTILES)
        self.run()
        self.snapshot.put_back()
        found = self.tuner.timed(self.run)
        return [*map(float, found)] if isinstance(found, (list, tuple)) else [float(found)] * len(_QUANTILES)

    def run(self) -> None:
        """One launch, between the hooks."""
        tuner = self.tuner
        if self.config.pre_hook is not None:
            self.config.pre_hook(self.values)
        tuner.pre_hook(self.values)
        failed: Exception | None = None
        try:
            tuner.fn.run(*self.args, **self.kwargs)
            self.outputs = self.outputs or self.snapshot.numbers()
        except Exception as error:
            failed = error
            raise
        finally:
            tuner.post_hook(self.values, exception=failed)


def _plain(value: Any) -> Hashable:
    """A value of a key, by which two calls are told apart."""
    if isinstance(value, (int, float, str, bool, type(None), tuple)):
        return value
    return str(value.dtype) if hasattr(value, "dtype") else repr(value)


def autotune(
    configs: Sequence[Config],
    key: Sequence[str] | None = None,
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Iterable[str] | None = None,
    restore_value: Iterable[str] | None = None,
    pre_hook: Callable[..., Any] | None = None,
    post_hook: Callable[..., Any] | None = None,
    warmup: int | None = None,
    rep: int | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = True,
) -> Callable[[Any], Autotuner]:
    """Decorate a kernel so that the best of ``configs`` is chosen when it is called:

        @weft.autotune([weft.Config({"BLOCK": 64}), weft.Config({"BLOCK": 256}, num_warps=8)], key=["n"])
        @weft.jit
        def kernel(x, n, BLOCK: wl.constexpr): ...

    key: parameters whose values, with the arrays' types, tell choices apart.
    prune_configs_by: "early_config_prune", a function of (configs, named_args, **kwargs) that gives those to try;
        "perf_model", a function of all arguments by name that gives a time, and "top_k", how many of the best it
        leaves: a number, or a part of at most 1.0.
    reset_to_zero, restore_value: parameters whose arrays are made 0 before each trial, or are what they were after it.
    pre_hook, post_hook: called before and after each trial with all arguments by name, and
        "reset_only" or "exception"; a pre_hook takes the place of reset_to_zero.
    warmup, rep: milliseconds of calls before, and of those that are measured.
    use_cuda_graph: accepted, without effect.
    do_bench: a function of (call, quantiles=) that times a call, in the place of weft.testing.do_bench.
    cache_results: whether choices are kept on disk, beside compiled kernels.

    Unlike in Triton the memory of all arrays is what it was before a trial and after the last, what each configuration
    leaves in it is compared, and one that disagrees with most others is not used, with a warning; one that does not
    compile is left out. Without a GPU each configuration runs once on the simulator and the cost model ranks them;
    WEFT_AUTOTUNE=first takes the first one instead, untried.
    """

    return lambda fn: Autotuner(
        fn,
        getattr(fn, "arg_names", ()),
        configs,
        key,
        reset_to_zero,
        restore_value,
        pre_hook,
        post_hook,
        prune_configs_by,
        warmup,
        rep,
        use_cuda_graph,
        do_bench,
        cache_results,
    )
