# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Evaluation of candidates by several processes at once, or by a function in this one."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from .evaluate import Job, evaluate

Record = dict[str, Any]


class Inline:
    """Evaluates in this process, one candidate at a time."""

    def __init__(self, compile: Callable[..., Any]) -> None:
        self._compile = compile

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Record]]:
        """Records with their jobs' numbers as they are done."""
        for number, job in enumerate(jobs):
            yield number, evaluate(job, self._compile)

    def close(self) -> None:
        """Nothing is held."""


class Processes:
    """As many processes as there are cores (or ``count``), each started when first needed. A candidate that kills its
    process, or takes longer than ``seconds``, is refused."""

    def __init__(self, count: int | None = None, seconds: float = 600) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self.seconds = seconds
        self._idle: queue.SimpleQueue[subprocess.Popen[str]] = queue.SimpleQueue()
        self._all: list[subprocess.Popen[str]] = []

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Record]]:
        """Records with their jobs' numbers as they are done."""
        with concurrent.futures.ThreadPoolExecutor(self.count) as threads:
            numbers = {threads.submit(self._evaluate, job): number for number, job in enumerate(jobs)}
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
        self._all.clear()
        self._idle = queue.SimpleQueue()

    def _evaluate(self, job: Job) -> Record:
        try:
            process = self._idle.get_nowait()
        except queue.Empty:
            process = self._start()
        # each process has one core
        line = json.dumps(asdict(replace(job, threads=1 if self.count > 1 else 0)))
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
        if answer:
            self._idle.put(process)
            record: Record = json.loads(answer)
            return record
        return {"status": "refused", "reason": self._death(process.wait(), late)}

    def _death(self, code: int, late: bool) -> str:
        if late:
            return f"it took longer than {self.seconds:.0f} s"
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the process that compiled and ran it died: {name}"

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
        return process


def plain(value: Mapping[str, Any]) -> Record:
    """A record as JSON has it, so that one that was stored and one that was not are alike."""
    loaded: Record = json.loads(json.dumps(value))
    return loaded
