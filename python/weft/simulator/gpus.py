# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What GPUs can do at most: the numbers that lower bounds of a kernel's time are computed from.

Peaks are dense ones, without structured sparsity, at boost clock, as the vendor's data sheets give them.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU: rates in units of 1e9 a second, `matrix` by the type of the factors."""

    name: str
    target: str
    multiprocessors: int
    clock: float
    """GHz"""
    memory_bandwidth: float
    """GB/s of device memory"""
    float32: float
    """GFLOP/s, a fused multiply-add counting two"""
    float64: float
    matrix: dict[str, float]
    """GFLOP/s (or GOP/s) of matrix instructions"""
    source: str

    @property
    def schedulers(self) -> int:
        """Warp instructions issued a clock: four schedulers a multiprocessor."""
        return 4 * self.multiprocessors


_HOPPER = {
    "f16": 989_400.0,
    "bf16": 989_400.0,
    "tf32": 494_700.0,
    "f64": 66_900.0,
    "s8": 1_978_900.0,
    "e4m3": 1_978_900.0,
    "e5m2": 1_978_900.0,
}

GPUS = {
    "A100": Gpu(
        name="A100 SXM4 80 GB",
        target="sm_80",
        multiprocessors=108,
        clock=1.410,
        memory_bandwidth=2039.0,
        float32=19_500.0,
        float64=9_700.0,
        matrix={
            "f16": 312_000.0,
            "bf16": 312_000.0,
            "tf32": 156_000.0,
            "f64": 19_500.0,
            "s8": 624_000.0,
            "s4": 1_248_000.0,
            "b1": 4_992_000.0,
        },
        source="NVIDIA A100 Tensor Core GPU data sheet (2021) and Ampere architecture whitepaper, table 3",
    ),
    "H100": Gpu(
        name="H100 SXM5 80 GB",
        target="sm_90a",
        multiprocessors=132,
        clock=1.830,
        memory_bandwidth=3352.0,
        float32=66_900.0,
        float64=33_500.0,
        matrix=_HOPPER,
        source="NVIDIA H100 Tensor Core GPU architecture whitepaper (2023), tables 1 and 3",
    ),
    "H200": Gpu(
        name="H200 SXM 141 GB",
        target="sm_90a",
        multiprocessors=132,
        clock=1.830,
        memory_bandwidth=4800.0,
        float32=66_900.0,
        float64=33_500.0,
        matrix=_HOPPER,
        source="NVIDIA H200 Tensor Core GPU data sheet (2024); multiprocessors and clock as H100's",
    ),
}


def gpu_named(name: str) -> Gpu:
    """A GPU by its short name, in any case. Raises ValueError with those there are."""
    found = GPUS.get(name.upper())
    if found is None:
        raise ValueError(f"expected one of {', '.join(GPUS)}, but got '{name}'")
    return found
