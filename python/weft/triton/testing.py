# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.testing``: timing, comparison, and benchmarks over a range of sizes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import Any

from weft.compiler.targets import target_of
from weft.kernels.bench import do_bench
from weft.runtime.devices import open_device
from weft.targets import Gpu, target_named

from .reports import Benchmark, Mark, assert_close, perf_report

do_bench_cudagraph = do_bench
do_bench_proton = do_bench
do_bench_cudagraph_proton = do_bench

# The types of a product's factors, by the names of torch's and the language's types.
_FACTORS = {
    **dict.fromkeys(("float32", "fp32", "int32"), "tf32"),
    **dict.fromkeys(("float16", "fp16", "bfloat16", "bf16", "int16"), "f16"),
    **dict.fromkeys(("int8", "fp8e4nv", "fp8e4b15", "fp8e5", "float8_e4m3fn", "float8_e5m2"), "s8"),
}


def _gpu(device: int | None) -> Gpu:
    """What is known of the device of a number, or of the first: of the first GPU of its target."""
    target = target_of(open_device(f"cuda:{device}" if device else None))
    return next(iter(target_named(target).gpus.values()))


def get_dram_gbps(device: int | None = None) -> float:
    """GB/s of the device's memory, by its data sheet."""
    return _gpu(device).memory_bandwidth


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of matrix instructions of a type at a clock in kHz."""
    factors, gpu = _FACTORS.get(str(dtype).rpartition(".")[2]), _gpu(device)
    if factors not in gpu.matrix:
        raise ValueError(f"expected a type that matrix instructions of {gpu.name} take, but got {dtype}")
    return gpu.matrix[factors] / 1e3 * (clock_rate / 1e6) / gpu.clock


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """TFLOP/s of arithmetic without matrix instructions at a clock in kHz: float32, and twice that for 16 bits."""
    factors, gpu = _FACTORS.get(str(dtype).rpartition(".")[2]), _gpu(device)
    if factors not in ("tf32", "f16") or "int" in str(dtype):
        raise ValueError(f"expected float32 or a float of 16 bits, but got {dtype}")
    return gpu.float32 / 1e3 * (clock_rate / 1e6) / gpu.clock * (2 if factors == "f16" else 1)


def nvsmi(attrs: Iterable[str]) -> list[int]:
    """What nvidia-smi says of the first GPU: ``nvsmi(["clocks.max.sm"])``."""
    query = ["nvidia-smi", "-i", "0", f"--query-gpu={','.join(attrs)}", "--format=csv,noheader,nounits"]
    return [int(each) for each in subprocess.run(query, check=True, capture_output=True, text=True).stdout.split(",")]


__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
]
