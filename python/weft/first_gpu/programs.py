# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft's own programs and their backwards on the simulator and on the GPU: one plan, run by the runtime on both."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from weft import attention, patterns
from weft.compiler.targets import target_of
from weft.first_gpu.cases import Case, Wrong
from weft.first_gpu.mechanisms import flat, operands
from weft.programs import functions, mixers
from weft.programs.compiled import Compiled, compiled
from weft.programs.program import Program, program
from weft.runtime.devices import open_device

_LENGTH, _FACTOR = 96, 8
#: a program, its arguments and its static options
Made = tuple[Program, tuple[Any, ...], dict[str, Any]]
_EPSILON = {"fp16": 2.0**-10, "bf16": 2.0**-7, "fp32": 2.0**-16}


@program
def attend(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    """Softmax attention."""
    return attention.attend(q, k, v, patterns.causal() if causal else None, return_lse=True)


@program
def sliding(q: Any, k: Any, v: Any) -> Any:
    """Softmax attention to the 32 tokens before."""
    return attention.attend(q, k, v, patterns.window(32, 0))


@program
def sema(q: Any, k: Any, v: Any, lepe: Any) -> Any:
    """SEMA in windows of 32 tokens, as a program has it: lepe [K, H·D]."""
    q, k = functions.rope(q, k, window=32)
    local = mixers.softmax(q, k, patterns.block_window(32))
    return (local + mixers.mean() + mixers.toeplitz(lepe, centred=True)) @ v


def program_cases() -> Iterator[Case]:
    """Attention in each type, and each mechanism: forward and backward."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        kind = str(dtype).removeprefix("torch.")
        for head in (64, 128):
            yield _case(
                f"causal attention, {kind}, D {head}", attend, functools.partial(_heads, dtype, head), causal=True
            )
        yield _case(f"full attention, {kind}, D 64", attend, functools.partial(_heads, dtype, 64), causal=False)
        yield _case(f"window attention, {kind}, D 64", sliding, functools.partial(_heads, dtype, 64))
    yield _case("SEMA", sema, lambda: [*_heads(torch.float16, 64), torch.randn(3, 128).half()])
    for name in ("SFA", "SAS", "GAU"):
        made = functools.partial(_mechanism, name)
        yield Case(("Weft", name, "forward, backward"), functools.partial(compare_program, made))


def _heads(dtype: torch.dtype, head: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(head)
    return [torch.randn(1, 2, _LENGTH, head, generator=generator).to(dtype) for _ in range(3)]


def _case(title: str, of: Program, inputs: Callable[[], list[torch.Tensor]], **static: Any) -> Case:
    def make() -> Made:
        return of, tuple(inputs()), static

    return Case(("Weft", title, "forward, backward"), functools.partial(compare_program, make))


def _mechanism(name: str) -> Made:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        made = operands(name, batch=1, length=_LENGTH, width=128, dtype=torch.float16, where="cpu")
    return program(made.call), made.tensors, {}


def compare_program(make: Callable[[], Made]) -> dict[str, Any]:
    """Run both on one plan; Wrong where a result or a gradient differs by more than rounding explains."""
    of, arrays, static = make()
    target = target_of(open_device("cuda:0"))
    traced = of.trace(of.bind(arrays, static))
    form = compiled(traced, target, True)
    inputs = [_bits(array) for array in flat(arrays)]
    forward = _on_both(form, ".forward", inputs, target)
    results, saved = forward[0][: len(traced.outputs)], [forward[0][number] for number in form.saved_outputs]
    rng = np.random.default_rng(0)
    gradients = [_like(rng.standard_normal(x.shape).astype(np.float32), x) for x in results]
    backward = _on_both(form, ".backward", [*inputs, *saved, *gradients], target)
    program_inputs = form.library.program(traced.name + ".forward").inputs
    coarsest = max((_EPSILON.get(each["type"], 0.0) for each in program_inputs), default=2.0**-16)
    largest = 0.0
    for part, both in (("forward", forward), ("backward", backward)):
        outputs = form.library.program(f"{traced.name}.{part}").outputs
        for facts, simulated, real in zip(outputs, *both, strict=True):
            largest = max(largest, _agree(f"{part}, {facts['name']}", facts["type"], simulated, real, coarsest))
    return {
        "agreement": f"elements within {_FACTOR * coarsest:.1e} of the largest, norms within {coarsest:.1e}; {target}",
        "largest difference": largest,
        "not fixed by PTX": "order of matrix products' sums, ex2.approx",
    }


def _on_both(
    form: Compiled, part: str, inputs: list[np.ndarray], target: str
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The outputs on the simulator and on the GPU, of memory that was full of NaN."""
    of = form.library.program(form.traced.name + part)
    simulated = of.run([x.copy() for x in inputs], device=f"simulator:{target}", poison=True)
    return simulated, of.run(inputs, device="cuda:0", poison=True)


def _agree(name: str, kind: str, simulated: np.ndarray, real: np.ndarray, epsilon: float) -> float:
    if kind not in _EPSILON:
        if not np.array_equal(simulated, real):
            raise Wrong(f"{name}: expected the simulator's integers, but {np.sum(simulated != real)} differ")
        return 0.0
    ours, theirs = (_wide(x, kind) for x in (simulated, real))
    finite = np.isfinite(ours)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        raise Wrong(f"{name}: expected -inf, inf and NaN where the simulator has them, but they are elsewhere")
    difference, expected = np.abs(ours - theirs)[finite], np.abs(ours)[finite]
    worst, most = float(difference.max(initial=0.0)), float(expected.max(initial=0.0))
    relative = float(np.linalg.norm(difference)) / (float(np.linalg.norm(expected)) or 1.0)
    if not worst <= _FACTOR * epsilon * most or not relative <= epsilon:
        raise Wrong(
            f"{name}: expected at most {_FACTOR * epsilon * most:.2e} between simulator and GPU and {epsilon:.1e} in "
            f"norm, but got {worst:.2e} and {relative:.1e}"
        )
    return worst


def _bits(array: torch.Tensor) -> np.ndarray:
    plain = array.detach()
    found: np.ndarray = (plain.view(torch.uint16) if plain.dtype == torch.bfloat16 else plain).numpy()
    return found


def _like(gradient: np.ndarray, result: np.ndarray) -> np.ndarray:
    if result.dtype == np.uint16:
        return (gradient.view(np.uint32) >> 16).astype(np.uint16)
    return gradient.astype(result.dtype)


def _wide(array: np.ndarray, kind: str) -> np.ndarray:
    return ((array.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else array).astype(np.float64)
