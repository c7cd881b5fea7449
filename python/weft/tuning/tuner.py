# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tuning one program for one bucket of sizes: each kernel's candidates are measured by themselves, the best of each are
run together once more, and what is right and fastest is kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from weft.compiler import ptxas
from weft.cycles.judge import judged
from weft.cycles.rates import rates_of
from weft.errors import Error
from weft.folders import scratch_folder
from weft.programs import choices
from weft.programs.buckets import Bucket, Symbols
from weft.programs.explain import some_sizes
from weft.simulator.cost import Estimate, estimate, figures_of, gpu_of
from weft.targets import Gpu, gpus

from . import records, search, store
from .cases import COUNTED, count_sizes
from .evaluate import SAMPLED, Job, compile_module, counted_policy
from .judging import DRAWS
from .pool import Inline, Processes, Submitted, plain
from .references import write_cases
from .result import Result, Row, why_lost
from .space import (
    Candidate,
    Kernel,
    Schedule,
    Tiled,
    candidates,
    is_backward,
    kernels,
    spelled,
    target_named,
    why_not,
)

#: what a candidate must be faster by than the default
_TELLING = 0.01


@dataclass(frozen=True)
class Subject:
    """A program as the tuner sees it: its IR, which names it, and whether its backward counts."""

    name: str
    text: str
    plain: str
    differentiate: bool = True


class Progress(Protocol):
    """Who is told how far a run is."""

    def begin(self, total: int, what: str) -> None:
        """``total`` steps of a kind, ``what``, are about to be taken."""

    def advance(self, what: str) -> None:
        """One step has been taken; ``what`` says which."""


class Silent:
    """Tells nobody."""

    def begin(self, total: int, what: str) -> None:
        """Nothing."""

    def advance(self, what: str) -> None:
        """Nothing."""


@dataclass
class Options:
    """How to tune. ``candidates`` gives schedules to try by place or role in the place of those generated; ``limit`` is
    how many are generated for a kernel, None all that there are; ``gpu`` names whose rates the cost model takes;
    ``judge`` ranks without a GPU: the cost "model", or "cycles", the loop model;
    ``compile`` replaces the compiler, and keeps all work in this process; ``time`` times a compiled candidate on a GPU;
    ``executor`` takes the place of processes here, whose workers find inputs in a folder made in ``folder``;
    ``records`` is a file of measurements that are taken over, and added to; ``seed`` is that of inputs that are made
    up, a fresh one where it is None."""

    candidates: Mapping[str, Sequence[Schedule]] | None = None
    limit: int | None = 16
    gpu: str | None = None
    judge: str = "model"
    jobs: int | None = None
    longest: int = COUNTED
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    compile: Callable[..., Any] | None = None
    time: Any = None
    executor: Any = None
    folder: str | None = None
    records: str | None = None
    seed: int | None = None
    progress: Progress = field(default_factory=Silent)


@dataclass
class _Trial:
    """A candidate of a kernel, and what became of it."""

    place: str
    schedules: dict[str, list[int]]
    counted: list[str]
    checked: list[str]
    candidate: Candidate
    default: bool
    record: dict[str, Any] | None = None
    reused: bool = False


def tune_subject(subject: Subject, target: str, sizes: Mapping[str, int], options: Options) -> Result:
    """Tune; see ``weft.tuning.tune``."""
    return _Run(subject, target, sizes, options).result()


def bundle_subject(subject: Subject, target: str, sizes: Mapping[str, int], options: Options) -> Bundled:
    """Compile the candidates and hand them to ``options.time``; see ``weft.tuning.bundles``."""
    return _Run(subject, target, sizes, options).bundle()


@dataclass(frozen=True)
class Bundled:
    """The sizes, the files of inputs and references by name, and the candidates left out, with the reason."""

    sizes: dict[str, int]
    cases: dict[str, bytes]
    left_out: list[tuple[str, str]]


class _Run:
    def __init__(self, subject: Subject, target: str, sizes: Mapping[str, int], options: Options) -> None:
        self.subject, self.target, self.options = subject, target_named(target), options
        self.started = time.perf_counter()
        self.seed = secrets.randbits(32) if options.seed is None else options.seed
        self.gpu = gpu_of(target, options.gpu)
        self.cycles = options.judge == "cycles" and options.time is None
        if self.cycles:
            _check_cycles(self.target.name, self.gpu)
        self.base = {"target": target, "differentiate": subject.differentiate}
        self.compile = options.compile or compile_module
        _, self.info = compile_module(subject.text, subject.name, self.base)
        self.kernels = kernels(self.info)
        inputs = next(each for each in self.info["programs"] if each["name"] == subject.name)["inputs"]
        self.symbols = Symbols.of(inputs)
        missing = [name for name in self.symbols.all() if name not in sizes]
        if missing:
            raise ValueError(
                f"expected the sizes {', '.join(missing)} of '{subject.name}'; on the command line, "
                f"--sizes {some_sizes(self.symbols.all())}"
            )
        if empty := [f"{name}={sizes[name]}" for name in self.symbols.all() if sizes[name] < 1]:
            raise ValueError(
                f"expected sizes of '{subject.name}' of at least 1, as nothing else takes time, "
                f"but got {', '.join(empty)}"
            )
        if not self.kernels:
            raise ValueError(f"expected a program with kernels that can be tiled, but '{subject.name}' has none")
        self.sizes = {name: int(sizes[name]) for name in self.symbols.all()}
        self.bucket = Bucket.of(self.symbols, self.sizes)
        self.measured = self.reused = 0
        self.known: dict[str, dict[str, Any]] = {}

    def result(self) -> Result:
        with self._prepared():
            trials = self._all_trials()
            rows, schedules = self._rank(trials)
            rows, schedules, seconds, default_seconds = self._together(rows, schedules)
        return Result(
            program=self.subject.name,
            target=self.target.name,
            device=self._device(),
            sizes=self.sizes,
            bucket=str(self.bucket),
            guards=self.bucket.manifest(),
            seed=self.seed,
            rows=tuple(rows),
            schedules=schedules,
            seconds=seconds,
            default_seconds=default_seconds,
            measured=self.measured,
            reused=self.reused,
            elapsed=time.perf_counter() - self.started,
            notes=tuple(self._notes()),
        )

    def bundle(self) -> Bundled:
        """Everything but measuring: ``options.time`` writes the candidates to a bundle."""
        with self._prepared():
            trials = self._all_trials()
            self._write_cases()
            files = {path.name: path.read_bytes() for path in sorted(pathlib.Path(self.cases).iterdir())}
        left = [trial for trial in trials if trial.record and trial.record["status"] != "failed"]
        return Bundled(
            self.sizes, files, [(spelled(each.candidate.schedule), (each.record or {})["reason"]) for each in left]
        )

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[None]:
        """While it lasts there are processes, and a folder for inputs and references."""
        with scratch_folder("weft-tuning-", self.options.folder) as folder:
            self.cases = str(folder)
            self.pool, self.written = self._pool(), 0
            try:
                yield
            finally:
                self.pool.close()

    def _all_trials(self) -> list[_Trial]:
        """Every candidate, measured."""
        trials = [trial for kernel in self.kernels for trial in self._trials(kernel)]
        self._measure(trials, "candidates")
        return trials + [trial for kernel in self.kernels for trial in self._sampled(kernel)]

    def _pool(self) -> Any:
        if self.options.compile:
            return Inline(self.options.compile)
        return (
            Submitted(self.options.executor, self.options.jobs)
            if self.options.executor
            else Processes(self.options.jobs)
        )

    # ---- Candidates

    def _trials(self, kernel: Kernel | Tiled) -> list[_Trial]:
        return [self._trial(kernel, each) for each in self._candidates(kernel)]

    def _trial(self, kernel: Kernel | Tiled, candidate: Candidate) -> _Trial:
        part = ".backward" if is_backward(kernel.place) else ""
        default = candidate.schedule == kernel.schedule
        schedules = {} if default else {kernel.place: list(candidate.schedule)}
        return _Trial(kernel.place, schedules, [part], [part], candidate, default)

    def _candidates(self, kernel: Kernel | Tiled) -> list[Candidate]:
        given = self.options.candidates
        if given is None:
            limit = self.options.limit
            if limit is None:
                limit = search.FIRST if search.is_large(kernel, self.target) else search.EXHAUSTIVE
            return candidates(kernel, self.target, limit, timed=self.options.time is not None)
        wanted = given.get(kernel.place, given.get(kernel.role, ()))
        # the default is always among them: the others are held against it
        schedules = dict.fromkeys([kernel.schedule, *wanted])
        default = [Candidate(kernel.schedule)]
        return default + [Candidate(each, why_not(each, kernel, self.target)) for each in list(schedules)[1:]]

    def _sampled(self, kernel: Kernel | Tiled) -> Iterator[_Trial]:
        """Of a space too large to go through, further candidates that earlier ones make likely, measured."""
        options = self.options
        if options.candidates is not None or options.limit is not None or not search.is_large(kernel, self.target):
            return
        sampler = search.Sampler(kernel, self.target, self.seed)
        found = self._trials(kernel)  # the first ones again, from the records
        while True:
            self._measure(found, "candidates")
            sampler.tell({each.candidate.schedule: self._row(each).seconds for each in found})
            found = [self._trial(kernel, Candidate(each)) for each in sampler.ask(self.pool.width)]
            if not found:
                return
            yield from found

    # ---- Measuring

    def _key(self, trial: _Trial) -> str:
        return store.measurement(
            {
                "program": choices.program_hash(self.subject.plain),
                "differentiate": self.subject.differentiate,
                "target": self.target.name,
                "schedules": trial.schedules,
                "functions": trial.counted,
                "sizes": self.sizes,
                "counted": self._counted(),
                "device": self.options.time.name if self.options.time else "simulator",
                **({"judge": f"cycles {self.gpu.name}"} if self.cycles else {}),
            }
        )

    def _counted(self) -> dict[str, int]:
        """The sizes that counters or times are taken at."""
        if self.options.inputs or self.options.time:
            return self.sizes
        return count_sizes(self.symbols, self.sizes, self.options.longest)

    def _measure(self, trials: Sequence[_Trial], what: str) -> None:
        """Fill in the trials' records: from the store, or by measuring, each stored as soon as it is there."""
        waiting: dict[str, list[_Trial]] = {}  # those alike (a default is that of several kernels) wait for one
        for trial in trials:
            if trial.candidate.dropped:
                trial.record = {"status": "dropped", "reason": trial.candidate.dropped, "launches": []}
                continue
            key = self._key(trial)
            trial.record = self.known.get(key) or (store.read(key) if self.options.compile is None else None)
            trial.reused = trial.record is not None
            if not trial.reused:
                waiting.setdefault(key, []).append(trial)
            elif key not in self.known:
                self.reused += what == "candidates"
                self.known[key] = dict(trial.record or {})
        self.options.progress.begin(len(waiting), what)
        if not waiting:
            return
        self._write_cases()
        for key, record in self._run({key: self._job(trials[0]) for key, trials in waiting.items()}):
            alike = waiting[key]
            job = self._job(alike[0])
            if self.options.time and "ptx" in record:
                record = self.options.time.measure(record, job)
            was_known = record.pop("known", False)
            self.known[key] = plain(record)
            for trial in alike:
                trial.record, trial.reused = self.known[key], was_known
            self.measured += what == "candidates" and not was_known
            self.reused += what == "candidates" and was_known
            # A candidate that failed for a reason outside of itself is tried again the next time.
            if record["status"] != "failed" and self.options.compile is None:
                store.write(key, self.known[key])
                if not was_known:
                    self._keep(job, record)
            self.options.progress.advance(f"{alike[0].place} {spelled(alike[0].candidate.schedule)}")

    def _run(self, jobs: Mapping[str, Job]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The records of jobs, as they are done. Most results are judged by one draw of inputs; the further ones are
        written once a candidate asks for them, which is run again then."""
        keys, unsure = list(jobs), {}
        for number, record in self.pool.run(list(jobs.values())):
            if record["status"] == "unsure":
                unsure[keys[number]] = jobs[keys[number]]
            else:
                yield keys[number], record
        if unsure:
            self._write_cases(further=True)
            yield from self._run(unsure)

    def _keep(self, job: Job, record: Mapping[str, Any]) -> None:
        """Add a measurement to the records, which outlive this build of the compiler."""
        if not job.recorded or "code" not in record:
            return
        kept = records.measured(
            {**job.key, "ptx": record["code"]},
            record,
            program=choices.program_hash(self.subject.plain),
            name=self.subject.name,
            tuned_for=self.sizes,
            schedules=job.schedules,
        )
        records.append(job.recorded, [kept])

    def _job(self, trial: _Trial) -> Job:
        judge, key = ("cycles", _key_of(self.gpu)) if self.cycles else ("model", "")
        return Job(
            judge=judge,
            gpu=key,
            text=self.subject.text,
            name=self.subject.name,
            target=self.target.name,
            differentiate=self.subject.differentiate and trial.checked != [""],
            schedules=trial.schedules,
            checked=trial.checked,
            counted=trial.counted,
            sizes=self.sizes,
            cases=self.cases,
            simulate=self.options.time is None,
            recorded=self.options.records or store.records_file(),
            key={
                "target": self.target.name,
                "device": self.options.time.name if self.options.time else "simulator",
                "policy": self.options.time.policy if self.options.time else counted_policy(judge, key),
                "functions": [self.subject.name + part for part in trial.counted],
                "sizes": self._counted(),
            },
        )

    def _write_cases(self, further: bool = False) -> None:
        """Write the inputs and references that results are judged by: the first draw, and the others ``further``, or
        at once where those who judge have no compiler."""
        wanted = DRAWS if further or self.options.time is not None else 1
        if self.written < wanted:
            subject, options = self.subject, self.options
            write_cases(
                compile_module, subject.text, subject.name, self.base, self.sizes, options.inputs, options.longest,
                self.seed, self.cases, options.time is not None, range(self.written, wanted),
            )  # fmt: skip
            self.written = wanted

    # ---- Ranking

    def _row(self, trial: _Trial) -> Row:
        record = trial.record or {"status": "failed", "reason": "not measured"}
        launches = tuple(figures_of(each) for each in record.get("launches", ()))
        say = judged if self.cycles else estimate
        estimates = tuple(say(each, self.target, self.gpu) for each in launches)
        seconds = record.get("seconds", _sum(estimates)) if record["status"] == "right" else None
        status = {"right": "lost", "failed": "refused"}.get(record["status"], record["status"])
        return Row(
            place=trial.place,
            schedule=trial.candidate.schedule,
            status=status,
            reason=record.get("reason", ""),
            seconds=seconds,
            default=trial.default,
            reused=trial.reused,
            code=record.get("code", ""),
            launches=launches,
            estimates=estimates,
        )

    def _rank(self, trials: Iterable[_Trial]) -> tuple[list[Row], dict[str, Schedule]]:
        """Rows in the candidates' order, and the winners that are not the default."""
        rows: list[Row] = []
        schedules: dict[str, Schedule] = {}
        by_place: dict[str, list[Row]] = {}
        for trial in trials:
            by_place.setdefault(trial.place, []).append(self._row(trial))
        for place, found in by_place.items():
            found = _alike(found)
            default = next(row for row in found if row.default)
            if default.seconds is None:
                raise ValueError(f"the default schedule {spelled(default.schedule)} of {place}: {default.reason}")
            # the default stays where nothing is faster by more than the model can tell
            winner = min(found, key=lambda row: (row.seconds if row.seconds is not None else np.inf, row.reason != ""))
            if winner.seconds is not None and winner.seconds > (1 - _TELLING) * default.seconds:
                winner = default
            if not winner.default:
                schedules[place] = winner.schedule
            for row in found:
                if row is winner:
                    rows.append(dataclasses.replace(row, status="chosen"))
                elif row.status == "lost" and not row.reason:
                    rows.append(dataclasses.replace(row, reason=why_lost(row, winner)))
                else:
                    rows.append(row)
        return rows, schedules

    def _together(
        self, rows: Sequence[Row], schedules: Mapping[str, Schedule]
    ) -> tuple[list[Row], dict[str, Schedule], float, float]:
        """The winners in one program, run whole: (the rows with those of it, what is chosen, its seconds, the
        default's). Where all of them are wrong together, or no faster, each is added to those before it, by what it
        gained alone, and stays where the whole is faster with it."""
        default, *tried = self._whole({}, *([schedules] if schedules else []))
        if default.seconds is None:
            raise ValueError(f"the default schedules of '{self.subject.name}': {default.reason}")
        if not tried:
            return list(rows), {}, default.seconds, default.seconds
        best, kept = default, dict[str, Schedule]()
        if _faster(tried[0], default):
            best, kept = tried[0], dict(schedules)
        elif len(schedules) > 1:
            for place in _by_gain(rows, schedules):
                one = kept | {place: schedules[place]}
                (row,) = self._whole(one)
                if _faster(row, best, 1 - _TELLING):
                    best, kept = row, one
            if best is not default:
                tried.append(best)
        whole = [dataclasses.replace(best, status="chosen")]
        for row in (default, *tried):
            if row is not best:
                lost = row.status == "lost" and not row.reason
                whole.append(dataclasses.replace(row, reason=why_lost(row, best)) if lost else row)
        assert best.seconds is not None
        return [*_withdrawn(rows, kept), *whole], kept, best.seconds, default.seconds

    def _whole(self, *choices: Mapping[str, Schedule]) -> list[Row]:
        """The rows of all of the program's functions, by each of these schedules."""
        parts = ["", ".forward", ".backward"] if self._differentiated() else [""]
        counted = [part for part in parts if part != ".forward"]
        trials = [
            _Trial("together", {p: list(s) for p, s in each.items()}, counted, parts, Candidate((0, 0, 0, 0)), not each)
            for each in choices
        ]
        self._measure(trials, "the choice")
        return [dataclasses.replace(self._row(each), schedule=()) for each in trials]

    def _differentiated(self) -> bool:
        return any(each["name"] == f"{self.subject.name}.backward" for each in self.info["programs"])

    # ---- What is said beside

    def _device(self) -> str:
        return (
            self.options.time.name
            if self.options.time
            else f"{self.gpu.name}, by the {'loop' if self.cycles else 'cost'} model"
        )

    def _notes(self) -> Iterable[str]:
        if self.options.time:
            return
        yield f"Counted on at most {SAMPLED} blocks of each launch that no other waits for, times those of the grid."
        counted = self._counted()
        if counted != self.sizes:
            spelt = ", ".join(f"{name} = {size}" for name, size in counted.items())
            yield f"Counted on the simulator with {spelt}."


def _key_of(gpu: Gpu) -> str:
    """The short name of a GPU."""
    return next(key for key, each in gpus().items() if each == gpu)


def _check_cycles(target: str, gpu: Gpu) -> None:
    """Raise ValueError or Error where the loop model cannot judge."""
    if gpu.target != target:
        raise ValueError(
            f"expected a GPU of {target} for the loop model, which reads its machine code, but got {gpu.name}"
        )
    rates_of(gpu)
    missing = [tool for tool in ("ptxas", "nvdisasm") if ptxas.find_tool(tool) is None]
    if missing:
        raise Error(f"expected {' and '.join(missing)} for judge='cycles', but found none; judge='model' needs neither")


def _faster(row: Row, than: Row, share: float = 1.0) -> bool:
    """Whether a row is right, and takes less than a share of another's time."""
    return row.seconds is not None and than.seconds is not None and row.seconds < share * than.seconds


def _by_gain(rows: Sequence[Row], schedules: Mapping[str, Schedule]) -> list[str]:
    """The places of winners, by the seconds that each gains alone, the most first."""
    default = {row.place: row.seconds or 0.0 for row in rows if row.default}
    chosen = {row.place: row.seconds or 0.0 for row in rows if row.status == "chosen"}
    return sorted(schedules, key=lambda place: chosen[place] - default[place])


def _withdrawn(rows: Sequence[Row], kept: Mapping[str, Schedule]) -> Iterator[Row]:
    """The rows, where winners that the whole is no faster with give way to the default."""
    for row in rows:
        stays = row.place in kept or row.status != "chosen" or row.default
        other = any(each.place == row.place and each.status == "chosen" and not each.default for each in rows)
        if not stays:
            yield dataclasses.replace(row, status="lost", reason="as a whole it is wrong, or no faster")
        elif row.default and row.place not in kept and other:
            yield dataclasses.replace(row, status="chosen", reason="")
        else:
            yield row


def _alike(rows: Sequence[Row]) -> list[Row]:
    """The rows, where those of the same code have one time: the default's, or that of the first."""
    first: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: not row.default):
        if row.status == "lost" and row.code:
            first.setdefault(row.code, row)
    return [
        row
        if first.get(row.code, row) is row
        else dataclasses.replace(
            row, reason=f"the same code as {spelled(first[row.code].schedule)}", seconds=first[row.code].seconds
        )
        for row in rows
    ]


def _sum(estimates: Iterable[Estimate]) -> float:
    return sum(each.seconds for each in estimates)
