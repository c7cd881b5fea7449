# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a call of a compiled program costs from Python beside the kernels themselves, and beside torch's own attention.

    .venv/bin/python benchmarks/call_overhead.py

The simulator's own time is taken off by leaving out the last step of a call, which queues the launches: arguments are
checked, forms found and results made as ever. What queueing itself costs is measured on the driver of the tests that
stands in for a GPU's and whose launches do nothing; Triton, which cannot launch without a GPU, is measured up to where
it calls its own driver.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from types import FunctionType, SimpleNamespace
from typing import Any
from unittest import mock

import torch
import weft
import weft.language as wl
from weft.attention import attend
from weft.compiler import kernel
from weft.runtime import open_device, operators, program

ROOT = pathlib.Path(__file__).resolve().parents[1]
STAND_IN = ROOT / "build/release/test/Unit/Runtime/libWeftFakeCuda.so"
STREAM = 0x1230


@weft.program
def causal(q: Any, k: Any, v: Any) -> Any:
    return weft.softmax(q, k, weft.causal()) @ v


@weft.jit
def attend_eighteen(
    q, k, v, out, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, n, heads, scale,
    BLOCK: wl.constexpr, CAUSAL: wl.constexpr,
):  # fmt: skip
    """A kernel of as many arguments as attention has. (Kernels of this name do nothing on the stand-in driver.)"""
    i = wl.arange(0, BLOCK)
    wl.store(out + i, wl.load(q + i, mask=i < n) * scale, mask=i < n)


@weft.program
def attend_in_c(q: Any, k: Any, v: Any) -> Any:
    return weft.softmax(q, k, weft.causal()) @ v


class Launched:
    """A module of which the launches are left out."""

    def launch(self, *arguments: Any) -> None:
        """Nothing."""


def best(call: Callable[[], Any], calls: int, rounds: int) -> float:
    """Microseconds a call, the best of several rounds."""
    for _ in range(10):
        call()
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - started) / calls)
    return 1e6 * min(found)


@contextlib.contextmanager
def without_launches() -> Iterator[None]:
    """While it lasts, programs do all but their launches."""
    on = program.Program._on
    found = []

    def silent(self: Any, device: Any) -> Any:
        native = on(self, device)
        native.launches = False
        found.append(native)
        return native

    modules = mock.patch.object(kernel.Kernel, "module", lambda self, device: Launched())
    program.forget_operators()  # each finds its program anew, by `_on`
    with mock.patch.object(program.Program, "_on", silent), modules:
        yield
    for native in found:
        native.launches = True


def on_stand_in(arrays: int) -> Any:
    """In the place of a kernel's module, one of the stand-in driver: the first arguments of a launch are said to be on
    the GPU, by objects whose attributes are as torch's tensors have them."""
    device, made = open_device("cuda:0"), {}
    torch._C._cuda_getCurrentRawStream = {0: STREAM}.__getitem__  # type: ignore[attr-defined]
    names = {"is_cuda": True, "is_cpu": False, "get_device": (0).__int__, "element_size": (4).__int__}
    tensors = tuple(SimpleNamespace(data_ptr=(4096 * (i + 1)).__int__, **names) for i in range(arrays))
    module = kernel.Kernel.module

    class Queued:
        def __init__(self, native: Any) -> None:
            self._launch = native.launch

        def launch(self, grid: Any, block: Any, values: Any, *rest: Any) -> None:
            self._launch(grid, block, tensors + values[arrays:], *rest)

    def of(self: Any, _: Any) -> Queued:
        if id(self) not in made:
            made[id(self)] = Queued(module(self, device))
        return made[id(self)]

    return mock.patch.object(kernel.Kernel, "module", of)


def operator_of(name: str) -> Any:
    """The operator of a program that has run, without gradients."""
    return next(
        each.forward for each in operators._made.values() if re.fullmatch(f"{name}_[0-9a-f]+_inference", each.called)
    )


def triton_launch(sizes: tuple[int, ...]) -> Callable[[], Any]:
    """A cached launch of the same kernel by Triton, to where it calls its driver's launcher. ImportError without it."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    class Driver:
        """What JITFunction.run asks of a driver."""

        utils = SimpleNamespace(
            load_binary=lambda *_: (1, 1, 32, 0, 1024),
            get_device_properties=lambda _: {"max_shared_mem": 1 << 17, "multiprocessor_count": 108},
        )

        def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
            return lambda *arguments: None

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return STREAM

        def get_current_target(self) -> Any:
            return GPUTarget("cuda", 80, 32)

    driver.set_active(Driver())
    ours = attend_eighteen.fn
    function = FunctionType(ours.__code__, {"wl": tl, "__name__": __name__}, ours.__name__)
    function.__annotations__ = ours.__annotations__
    theirs = triton.jit(function)
    q, k, v, out = (torch.empty(1, 1, 16, 16) for _ in range(4))
    return lambda: theirs[(1,)](q, k, v, out, *sizes, 0.5, BLOCK=64, CAUSAL=True)


def in_c(sizes: tuple[int, ...]) -> tuple[float, float]:
    """Microseconds to choose a plan, and to choose, bind and queue it, by run_in_c.c. OSError where it cannot run."""
    compiler = shutil.which("cc")
    if compiler is None or not STAND_IN.exists():
        raise OSError(f"needs cc and {STAND_IN.name}, which make build makes")
    native = ROOT / "python/weft/_native"
    with tempfile.TemporaryDirectory() as folder:
        library, program = f"{folder}/library", f"{folder}/run_in_c"
        attend_in_c.compile("sm_80", ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv"), library)
        flags = ["-O2", "-std=c11", "-D_POSIX_C_SOURCE=200809L", f"-I{ROOT / 'runtime/CAPI'}"]
        linked = [str(native / "libweft.so"), f"-Wl,-rpath,{native}"]
        subprocess.run([compiler, *flags, ROOT / "benchmarks/run_in_c.c", "-o", program, *linked], check=True)
        command = [program, library, "attend_in_c", *map(str, sizes)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    choose, run = (float(word) / 1000 for word in done.stdout.split())
    return choose, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="calls of a round")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    os.environ["WEFT_DEVICE"] = "simulator"
    os.environ["WEFT_LIBCUDA"] = str(STAND_IN)
    q, k, v = (torch.randn(1, 1, 16, 16) for _ in range(3))
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    pattern = weft.causal()
    compiled = torch.compile(lambda q, k, v: causal(q, k, v), fullgraph=True, backend="eager")
    inductor = torch.compile(lambda q, k, v: causal(q, k, v), fullgraph=True)
    empty = torch.compile(lambda q: q, fullgraph=True, backend="eager")
    sum_of_three = torch.compile(lambda q, k, v: q + k + v, fullgraph=True)
    eager_sum = torch.compile(lambda q, k, v: q + k + v, fullgraph=True, backend="eager")
    their_graph = torch.compile(lambda q, k, v: theirs(q, k, v, is_causal=True), fullgraph=True)
    out, sizes = torch.empty(1, 1, 16, 16), (256, 256, 16) * 3 + (16, 1)
    theirs = torch.nn.functional.scaled_dot_product_attention
    inductor(q, k, v)  # which makes its operator
    operator = functools.partial(operator_of("causal"), q, k, v)
    rows = {
        "torch's scaled_dot_product_attention": lambda: theirs(q, k, v, is_causal=True),
        "a program": lambda: causal(q, k, v),
        "a program, tensors that require gradients": lambda: causal(*leaves),
        "weft.attention.attend": lambda: attend(q, k, v, pattern),
        "a program's operator by itself": operator,
        "a program, in a compiled function": lambda: compiled(q, k, v),
        "a compiled function that does nothing": lambda: empty(q),
        "a sum of three, in a compiled function": lambda: eager_sum(q, k, v),
        "a program, in a function of inductor's": lambda: inductor(q, k, v),
        "torch's attention, in a function of inductor's": lambda: their_graph(q, k, v),
        "a sum of three, in a function of inductor's": lambda: sum_of_three(q, k, v),
        "a kernel of 18 arguments": lambda: attend_eighteen[(1,)](q, k, v, out, *sizes, 0.5, BLOCK=64, CAUSAL=True),
    }
    print("float32, B 1, H 1, N 16, D 16; microseconds a call, the simulator's own time taken off")
    for name, call in rows.items():
        with without_launches():
            call()
            show(name, best(call, options.calls, options.rounds))
    launched = "a kernel of 18 arguments, launched on the stand-in driver"
    if STAND_IN.exists():
        again = weft.jit(attend_eighteen.fn)
        with on_stand_in(arrays=4):
            call = lambda: again[(1,)](q, k, v, out, *sizes, 0.5, BLOCK=64, CAUSAL=True)  # noqa: E731
            show(launched, best(call, options.calls, options.rounds))
    else:
        show(launched, "make build makes it")
    try:
        call = triton_launch(sizes)
        show("Triton's, without the call of its driver's launcher", best(call, options.calls, options.rounds))
    except ImportError:
        show("Triton's", "it is not installed")
    try:
        choose, run = in_c((1, 1, 16, 16))
        show("in C, on the stand-in driver: a plan chosen", choose)
        show("in C, on the stand-in driver: chosen, bound and queued", run)
    except OSError as error:
        show("in C", str(error))


def show(name: str, found: float | str) -> None:
    """One row."""
    print(f"{name:60}", f"{found:8.2f}" if isinstance(found, float) else f"not measured: {found}")


if __name__ == "__main__":
    main()
