# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Runs the sections' processes, and writes down for one that ended in the middle of a case what became of it."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from weft.first_gpu.cases import Options
from weft.first_gpu.rows import FAILED, Rows

#: called with how many cases have ended, how many there are (None before that is known), and the one that runs
Progress = Callable[[int, int | None, str], None]
_TIMES_LOST = 50  # processes of one section that may end in the middle of a case


def run_section(name: str, rows: Rows, options: Options, progress: Progress, *, patience: float = 600) -> str:
    """Run a section to its end; "", or why it has no rows or not all. A case has ``patience`` seconds."""
    for _ in range(_TIMES_LOST):
        before = len(rows.all())
        ended, last_words = _run_process(name, rows, options, progress, patience)
        if ended == 0:
            return ""
        begun = rows.begun()
        if begun is not None:
            rows.end(begun["begin"], FAILED, begun["ours"], _why(ended, last_words, patience))
        elif len(rows.all()) == before:
            return _why(ended, last_words, patience)
    return f"{_TIMES_LOST} processes ended in the middle of a case; the other cases were not run"


def _run_process(
    name: str, rows: Rows, options: Options, progress: Progress, patience: float
) -> tuple[int | None, str]:
    """One process: how it ended, None where it was ended for taking too long, and the end of what it said."""
    given = json.dumps(dataclasses.asdict(options))
    command = [sys.executable, "-m", "weft.first_gpu.worker", name, str(rows.path), given]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            ended = _wait(process, rows, progress, patience)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        return ended, said.read().decode(errors="replace").strip()


def _wait(process: subprocess.Popen[bytes], rows: Rows, progress: Progress, patience: float) -> int | None:
    size, changed = -1, time.monotonic()
    while True:
        try:
            return process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            now = rows.path.stat().st_size
            if now != size:
                size, changed = now, time.monotonic()
                begun = rows.begun()
                progress(len(rows.all()), rows.total, ", ".join(begun["begin"]) if begun else "")
            elif time.monotonic() - changed > patience:
                return None


def _why(ended: int | None, last_words: str, patience: float) -> str:
    if ended is None:
        return f"took more than {patience:.0f} s"
    name = signal.Signals(-ended).name if ended < 0 else f"exit status {ended}"
    words = " ".join(last_words.split("\n")[-3:])[-600:]
    return f"the process ended with {name}{': ' + words if words else ''}"
