# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Evaluation of candidates by several processes at once, or by a function in this one."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from weft.errors import Error

from .evaluate import Job, evaluate

Record = dict[str, Any]


class Inline:
    """Evaluates in this process, one candidate at a time."""

    width = 1

    def __init__(self, compile: Callable[..., Any]) -> None:
        self._compile = compile

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Record]]:
        """Records with their jobs' numbers as they are done."""
        for number, job in enumerate(jobs):
            yield number, evaluate(job, self._compile)

    def close(self) -> None:
        """Nothing is held."""


class Processes:
    """As many processes as there are cores (or ``count``), each started when first needed, of so many ``threads`` (one,
    where they are several), and on a core of its own where they take all: two that were moved between cores took a
    sixth longer for the same candidates. A candidate that takes longer than ``seconds`` is refused, and one whose
    process dies: of a fault of its own in two processes, or killed from outside in four."""

    def __init__(self, count: int | None = None, seconds: float = 600, threads: int | None = None) -> None:
        cores = sorted(os.sched_getaffinity(0))
        self.count = count or len(cores)
        self.width, self.seconds = self.count, seconds
        self.threads = threads if threads is not None else 1 if self.count > 1 else 0
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []
        self._core: dict[int, int] = {}  # of a process, by its number
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for core in cores if self.count == len(cores) else []:
            self._free.put(core)

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Record]]:
        """Records with their jobs' numbers as they are done."""
        with concurrent.futures.ThreadPoolExecutor(self.count) as threads:
            numbers = {threads.submit(self.evaluate, job): number for number, job in enumerate(jobs)}
            try:
                for done in concurrent.futures.as_completed(numbers):
                    yield numbers[done], done.result()
            except BaseException:  # the user's interrupt too: what has not begun never begins
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise

    def close(self) -> None:
        """End the processes."""
        for process in self._all:
            process.kill()
            process.wait()
            self._release(process)
        self._all.clear()
        self._idle = queue.SimpleQueue()

    def evaluate(self, job: Job) -> Record:
        """The record of one job."""
        for attempt in itertools.count(1):
            record, code = self._attempt(job)
            if record is not None:
                return record
            if attempt == (4 if code == -signal.SIGKILL else 2):
                name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
                return {"status": "refused", "reason": f"the process that compiled and ran it died: {name}"}
        raise AssertionError("the loop ends by a return")

    def _attempt(self, job: Job) -> tuple[Record | None, int]:
        """A record, or the exit code of a process that died of the job."""
        try:
            process = self._idle.get_nowait()
        except queue.Empty:
            process = self._start()
        line = json.dumps(asdict(replace(job, threads=self.threads)))
        watch = threading.Timer(self.seconds, process.kill)
        watch.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
        finally:
            late = not watch.is_alive()
            watch.cancel()
        if answer.endswith("\n"):
            self._idle.put(process)
            record: Record = json.loads(answer)
            return record, 0
        code = process.wait()
        self._release(process)
        if late:
            return {"status": "refused", "reason": f"it took longer than {self.seconds:.0f} s"}, code
        return None, code

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join(each for each in sys.path if each)
        process = subprocess.Popen(
            [sys.executable, "-m", "weft.tuning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt of the user is this process' to handle
        )
        self._all.append(process)
        with contextlib.suppress(queue.Empty, OSError):  # none is free; the process has ended
            core = self._core[process.pid] = self._free.get_nowait()
            os.sched_setaffinity(process.pid, {core})
        return process

    def _release(self, process: subprocess.Popen[str]) -> None:
        if process.pid in self._core:
            self._free.put(self._core.pop(process.pid))


class Submitted:
    """Evaluates by an executor of the caller's: of ``concurrent.futures``, a Dask client's, submitit's, or whatever has
    ``submit`` and gives futures with ``done`` and ``result``. A job whose worker was lost is submitted again, up to
    three times. The executor stays the caller's to close. ``width`` candidates of a search are out at a time."""

    def __init__(self, executor: Any, width: int | None = None) -> None:
        self._executor, self.width = executor, width or 16

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Record]]:
        """Records with their jobs' numbers as they are done."""
        lost = dict.fromkeys(range(len(jobs)), 0)
        running = {number: self._executor.submit(judge, asdict(job), 0) for number, job in enumerate(jobs)}
        try:
            while running:
                ready = [number for number, future in running.items() if future.done()]
                for number in ready:
                    record = self._taken(running.pop(number), lost[number])
                    if record is None:
                        lost[number] += 1
                        running[number] = self._executor.submit(judge, asdict(jobs[number]), lost[number])
                    else:
                        yield number, record
                if not ready:
                    time.sleep(0.01)
        finally:
            for future in running.values():
                with contextlib.suppress(Exception):
                    future.cancel()

    @staticmethod
    def _taken(future: Any, lost: int) -> Record | None:
        """A future's record, or None where the job is to be submitted again."""
        try:
            record: Record = future.result()
        except concurrent.futures.BrokenExecutor as error:  # it takes no more jobs
            raise Error(f"the executor is broken: {error}; what was measured is kept, and a new run goes on") from error
        except Exception as error:  # of whatever library: its worker has gone
            if lost < 3:
                return None
            return {"status": "failed", "reason": f"no worker finished it: {type(error).__name__}: {error}"}
        return record

    def close(self) -> None:
        """Nothing is held."""


def judge(job: dict[str, Any], lost: int) -> Record:
    """The record of a job, both plain data, as workers of executors evaluate it: in a process beside theirs, which the
    candidate may crash, and which ends with theirs. ``lost`` counts the workers that it was lost with: to a cluster
    that knows a call by its arguments, as Dask does, the same call again is the one that failed."""
    return _beside().evaluate(Job(**job))


@functools.lru_cache(maxsize=1)
def _beside() -> Processes:
    return Processes(1, threads=1)


def plain(value: Mapping[str, Any]) -> Record:
    """A record as JSON has it, so that one that was stored and one that was not are alike."""
    loaded: Record = json.loads(json.dumps(value))
    return loaded
