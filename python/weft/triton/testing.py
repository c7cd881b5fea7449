# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.testing``: timing, comparison, and benchmarks over a range of sizes."""

from weft.kernels.bench import do_bench

from .reports import Benchmark, Mark, assert_close, perf_report

do_bench_cudagraph = do_bench
do_bench_proton = do_bench
do_bench_cudagraph_proton = do_bench

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "perf_report",
]
