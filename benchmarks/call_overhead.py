# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a call of a compiled program costs from Python beside the kernels themselves, and beside torch's own attention.

    .venv/bin/python benchmarks/call_overhead.py

The simulator's own time is taken off by running the same calls once more without their last step, which queues the
launches: arguments are checked, forms found and results made as ever.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import weft
import weft.language as wl
from weft.attention import attend
from weft.compiler import kernel
from weft.runtime import program


@weft.program
def causal(q: Any, k: Any, v: Any) -> Any:
    return weft.softmax(q, k, weft.causal()) @ v


@weft.jit
def eighteen(
    q, k, v, out, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, n, heads, scale,
    BLOCK: wl.constexpr, CAUSAL: wl.constexpr,
):  # fmt: skip
    """A kernel of as many arguments as attention has."""
    i = wl.arange(0, BLOCK)
    wl.store(out + i, wl.load(q + i, mask=i < n) * scale, mask=i < n)


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
    with mock.patch.object(program.Program, "_on", silent), modules:
        yield
    for native in found:
        native.launches = True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100, help="calls of a round")
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    q, k, v = (torch.randn(1, 1, 16, 16) for _ in range(3))
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    pattern = weft.causal()
    compiled = torch.compile(lambda q, k, v: causal(q, k, v), fullgraph=True, backend="eager")
    empty = torch.compile(lambda q: q, fullgraph=True, backend="eager")
    out, sizes = torch.empty(1, 1, 16, 16), (256, 256, 16) * 3 + (16, 1)
    theirs = torch.nn.functional.scaled_dot_product_attention
    rows = {
        "torch's scaled_dot_product_attention": lambda: theirs(q, k, v, is_causal=True),
        "a program": lambda: causal(q, k, v),
        "a program, tensors that require gradients": lambda: causal(*leaves),
        "weft.attention.attend": lambda: attend(q, k, v, pattern),
        "a program, in a compiled function": lambda: compiled(q, k, v),
        "a compiled function that does nothing": lambda: empty(q),
        "a kernel of 18 arguments": lambda: eighteen[(1,)](q, k, v, out, *sizes, 0.5, BLOCK=64, CAUSAL=True),
    }
    print("float32, B 1, H 1, N 16, D 16; microseconds a call, the simulator's own time taken off")
    for name, call in rows.items():
        with without_launches():
            call()
            print(f"{name:45} {best(call, options.calls, options.rounds):8.1f}")


if __name__ == "__main__":
    main()
