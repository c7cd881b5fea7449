# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One description in a process of its own, which may crash or hang: what becomes of it is a verdict."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import linecache
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback

from . import judge, source
from .judge import Verdict

#: what a user never needs to know: ops and passes of the compiler, assertions, findings of the simulator
_INTERNAL = re.compile(
    r"'(?:attn|tile|warp|llvm|nvvm|arith|scf|cf|func|math|vector|gpu)\.\w+'|\bllvm\.|#(?:attn|tile|warp)\.|![a-z]+\."
    r"|[Aa]ssert|unrealized_conversion_cast|LLVM ERROR|pass(?:es)? failed|failed to legalize|no kernel of its own"
    r"|cannot make the library|<ptx>:"
)
_FINDING = re.compile(r"at fault|the simulator found|uninitialised|out-of-bounds|shared-race|global-race|misaligned")


def prepare():
    """Load, in the parent of all, what every child would load."""
    os.environ["WEFT_CACHE"] = "0"
    os.environ.setdefault("WEFT_VERIFY", "1")  # IR that no op allows is found where it arises
    import torch
    import weft
    from weft import native
    from weft.testing import poisoned

    torch.set_num_threads(1)
    for name in ("_compiler", "_runtime"):
        native.load(name)
    for name in weft.__all__:
        getattr(weft, name)
    importlib.import_module("weft.programs.autograd")
    with poisoned():  # torch loads its compiler at the first use
        pass


def compiled(description):
    """The program of a description's text."""
    import weft

    text = "import weft\n\n" + source.program(description)
    name = f"<program {description['seed']}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"weft": weft}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


def verdict(description):
    """What becomes of the description, in this process."""
    import weft
    from weft.testing import poisoned

    try:
        with poisoned(), contextlib.redirect_stdout(None):
            outcome = judge.judged(description, compiled(description))
        return Verdict("right" if outcome == "right" else "skipped", outcome if outcome != "right" else "")
    except judge.Invalid as error:
        return Verdict("skipped", f"no program: {error}")
    except judge.Wrong as error:
        return Verdict("wrong", str(error), excess=error.excess)
    except Exception as error:
        return Verdict(*classified(error, weft))


def classified(error, weft):
    message = getattr(error, "message", None) or str(error)
    frames = traceback.extract_tb(error.__traceback__)
    inside = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    text = f"{type(error).__name__}: {message}"
    if "fuzz_programs" in inside and not isinstance(error, weft.Error):
        return "harness", f"{text} ({inside})"
    if _FINDING.search(message):
        return "finding", text
    if not isinstance(error, (weft.Error, ValueError, TypeError, NotImplementedError)) or "expected" not in str(error):
        return "internal", f"{text} ({inside})"
    return ("internal" if _INTERNAL.search(str(error)) else "refused"), text


def isolated(description, *, cpu_seconds=150, wall_seconds=900):
    """What becomes of the description in a child process, with at most so much time."""
    reading, writing = os.pipe()
    log = tempfile.TemporaryFile()  # noqa: SIM115
    sys.stdout.flush()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(log.fileno(), 2)
            faulthandler.enable(file=log, all_threads=False)
            found = verdict(description)
            os.write(writing, json.dumps([found.kind, found.message[:4000], found.excess]).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        data, late = _read(reading, time.monotonic() + wall_seconds)
        if late:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Verdict("hang", f"no end within {cpu_seconds} s")
    if data:
        kind, message, excess = json.loads(data)
        return Verdict(kind, message, source.program(description), excess)
    log.seek(0)
    last = log.read().decode(errors="replace")[-1500:]
    cause = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
    return Verdict("crash", f"{cause}\n{last}", source.program(description))


def _read(pipe, end):
    """All that is written until the other side closes, and whether it was too late."""
    data = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return data, True
        part = os.read(pipe, 65536)
        if not part:
            return data, False
        data += part
