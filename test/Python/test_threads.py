# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Many threads at once: compiling, each in its own context, and running. What they give is what one thread gives.

The thread sanitizer sees the same (preset tsan).
"""

import os
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import weft
from weft.attention import attend
from weft.cli.files import programs_of
from weft.programs import compiled
from weft.recent import Recent

ROOT = pathlib.Path(__file__).resolve().parents[2]
THREADS = 4

LOADING = """
import threading, weft.native
start, wrong = threading.Barrier(8), []
def load():
    start.wait()
    for name in ("_compiler", "_runtime", "_simulator"):
        if not any(callable(each) for key, each in vars(weft.native.load(name)).items() if key[0] != "_"):
            wrong.append(name)
threads = [threading.Thread(target=load) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


def together(work, items):
    """work(item) of all items, in threads that start at once."""
    start = threading.Barrier(THREADS)
    started = threading.local()

    def run(item):
        if not getattr(started, "yes", False):
            started.yes = True
            start.wait(60)
        return work(item)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, items))


def test_loading():
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", LOADING], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


FORKING = """
import os, sys, threading, time
import torch, weft
from weft.attention import attend

torch.set_num_threads(1)
q = torch.randn(1, 2, 24, 16)
at_work = True


def compile_many():
    number = 0
    while at_work:
        number += 1
        attend(q, q, q, weft.window(number, 1))


thread = threading.Thread(target=compile_many)
thread.start()
time.sleep(0.3)
codes = []
for number in range(5):
    child = os.fork()
    if not child:
        attend(q, q, q, weft.window(1000 + number, 2))
        os._exit(7)
    end = time.monotonic() + 20
    while not (found := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < end:
        time.sleep(0.05)
    codes.append(os.waitstatus_to_exitcode(found[1]) if found[0] else "hangs")
    if not found[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
        break
at_work = False
thread.join()
assert codes == [7] * 5, codes
"""


@pytest.mark.parametrize(
    "names", [("attention", "gau"), pytest.param(None, marks=pytest.mark.slow)], ids=["two", "every mechanism"]
)
def test_compiling(names):
    """Each program in every thread, past the caches: PTX and plans are the same bits."""
    traced = [
        each.declare() for each in programs_of(ROOT / "examples" / "mechanisms") if not names or each.__name__ in names
    ]
    assert traced

    def compile(program):
        ptx, info = compiled._compile(program, {"target": "sm_80", "differentiate": True})
        return ptx, info["programs"]

    results = together(compile, traced * THREADS)
    for i, program in enumerate(traced):
        assert all(results[j] == results[i] for j in range(i, len(results), len(traced))), program.name


def test_running(seed):
    """Attention with its gradients: some threads share a form, some make their own."""
    generator = torch.Generator().manual_seed(seed)
    inputs = [torch.randn(1, 1, 9, 16 * (1 + i % 2), generator=generator) for i in range(2 * THREADS)]

    def run(given):
        x = given.clone().requires_grad_()
        out = attend(x, x, x, weft.causal(), scale=0.5)
        (gradient,) = torch.autograd.grad(out.square().sum(), x)
        return out.detach(), gradient

    for one, other in zip(together(run, inputs), map(run, inputs), strict=True):
        assert all(map(torch.equal, one, other))


def test_recent():
    """What was used last is kept, however many threads ask."""
    table = Recent(3)
    for i in range(3):
        table.keep(i, i)
    assert table.get(0) == 0
    table.keep(3, 3)
    assert [table.get(i) for i in range(4)] == [0, None, 2, 3]

    def use(i):
        for j in range(1000):
            if table.get((i + j) % 7) is None:
                table.keep((i + j) % 7, j)
        return len(table)

    assert all(size <= 3 for size in together(use, range(2 * THREADS)))


def test_forks_while_a_thread_compiles():
    """The child has no such thread, which would never give back what it held."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "WEFT_CACHE": "0"}
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
