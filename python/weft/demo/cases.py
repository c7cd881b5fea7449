# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the demo runs: each case has one kernel of examples/, its argument types, and a way to run and judge it."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from weft.testing import accuracy, plain_attention, reference_attention

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


@dataclass(frozen=True)
class Judgement:
    """Errors of a result and of plain PyTorch operations in the same dtype against float64, and what is wrong, if
    anything."""

    error: float
    plain_error: float
    #: of the call alone: compiling what was not compiled yet, and running
    seconds: float
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One row of the demo's table."""

    name: str
    kernel: Any
    signature: str
    warps: int
    judge: Callable[[], Judgement]
    #: whether Triton compiles the same source for the table beside it
    beside_triton: bool = False


@functools.cache
def example(name: str) -> ModuleType:
    """The module of examples/NAME.py."""
    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"weft_example_{name}", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"expected the examples beside the package, but there is no {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EXAMPLES))  # examples import examples/mechanisms
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


def all_cases() -> Iterator[Case]:
    """The demo's rows, in order."""
    yield _vector_add()
    yield _softmax()
    for dtype, precision in ((torch.float16, "tf32"), (torch.bfloat16, "tf32"), (torch.float32, "ieee")):
        yield _matmul(dtype, precision)
    for D in (64, 128):
        for dtype in (torch.float16, torch.bfloat16):
            for causal in (False, True):
                yield flash_case(dtype, D, causal, (1, 1, 256), beside_triton=dtype == torch.float16)
    yield flash_case(torch.float16, 64, True, (1, 4, 1024))


def _short(dtype: torch.dtype) -> str:
    return {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}[dtype]


def _largest(out: torch.Tensor, exact: torch.Tensor) -> float:
    return float((out.double() - exact).abs().max())


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


def _compare(out: torch.Tensor, plain: torch.Tensor, exact: torch.Tensor, seconds: float) -> Judgement:
    error, plain_error = _largest(out, exact), _largest(plain, exact)
    return Judgement(error, plain_error, seconds, _above("error", error, 2 * plain_error + 1e-5))


def _above(what: str, value: float, limit: float) -> tuple[str, ...]:
    return (
        ()
        if value <= limit
        else (f"expected a{'n' if what == 'error' else ''} {what} of at most {limit:.2g}, but got {value:.2g}",)
    )


def _vector_add() -> Case:
    kernel = example("01_vector_add").vector_add

    def judge() -> Judgement:
        x, y = torch.randn(2, 98432)
        z = torch.full_like(x, torch.nan)
        _, seconds = _timed(lambda: kernel[(97,)](x, y, z, x.numel(), BLOCK=1024))
        return _compare(z, x + y, x.double() + y.double(), seconds)

    return Case("vector add 98432, fp32", kernel, "x:*fp32:16, y:*fp32:16, z:*fp32:16, n:i32, BLOCK=1024", 4, judge)


def _softmax() -> Case:
    module = example("02_softmax")

    def judge() -> Judgement:
        x = torch.randn(64, 1000)
        out, seconds = _timed(lambda: torch.from_numpy(module.softmax(x.numpy())))
        return _compare(out, torch.softmax(x, 1), torch.softmax(x.double(), 1), seconds)

    signature = "x:*fp32:16, y:*fp32:16, stride_x:i32, stride_y:i32, columns:i32, BLOCK=1024"
    return Case("softmax 64×1000, fp32", module.row_softmax, signature, 4, judge)


def _matmul(dtype: torch.dtype, precision: str) -> Case:
    module = example("03_matmul")

    def judge() -> Judgement:
        a, b = torch.randn(256, 256).to(dtype), torch.randn(256, 256).to(dtype)
        exact = a.double() @ b.double()
        out, seconds = _timed(lambda: module.matmul(a, b, precision=precision))
        # The largest error of a sum depends on its order; the example's own bound on the relative one does not.
        relative = float((out.double() - exact).norm() / exact.norm())
        failures = _above("relative error", relative, module.BOUNDS[dtype, precision])
        return Judgement(_largest(out, exact), _largest(a @ b, exact), seconds, failures)

    name = _short(dtype)
    signature = (
        f"a:*{name}:16, b:*{name}:16, c:*{name}:16, M:i32:16, N:i32:16, K:i32:16, "
        "stride_am:i32:16, stride_ak=1, stride_bk:i32:16, stride_bn=1, stride_cm:i32:16, stride_cn=1, "
        f"BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, PRECISION='{precision}'"
    )
    return Case(f"matmul 256×256×256, {name}", module.matmul_kernel, signature, 4, judge)


def flash_case(
    dtype: torch.dtype, D: int, causal: bool, size: tuple[int, int, int], beside_triton: bool = False
) -> Case:
    """Flash attention on (B, H, N): as many keys as queries."""
    module = example("04_flash_attention")
    B, H, N = size

    def judge() -> Judgement:
        q, k, v = (torch.randn(B, H, N, D).to(dtype) for _ in range(3))
        (out, lse), seconds = _timed(lambda: module.flash_attention(q, k, v, causal=causal))
        ref, ref_lse = reference_attention(q, k, v, causal=causal)
        result = accuracy(out, ref, plain_attention(q, k, v, causal=causal))
        failures = result.failures
        if not torch.allclose(lse.double(), ref_lse, rtol=1e-5, atol=1e-5):
            failures += ("the LSE differs from the reference's",)
        return Judgement(result.worst, result.worst_plain, seconds, failures)

    name = _short(dtype)
    pointers = ", ".join(f"{operand}:*{name}:16" for operand in ("q", "k", "v", "out"))
    names = ("qb", "qh", "qn", "kb", "kh", "km", "vb", "vh", "vm", "ob", "oh", "on")
    strides = ", ".join(f"stride_{operand}:i32:16" for operand in names)
    signature = (
        f"{pointers}, lse:*fp32:16, scale_log2:fp32, {strides}, heads:i32, N:i32, M:i32, "
        f"D={D}, CAUSAL={causal}, BLOCK_M=128, BLOCK_N=64"
    )
    title = f"flash attention {B}×{H}×{N}×{D} {'causal' if causal else 'full'}, {name}"
    return Case(title, module.flash_attention_kernel, signature, D // 16, judge, beside_triton)
