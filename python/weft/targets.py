# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Targets and their GPUs, as the one table in targets/Targets.cpp describes them."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol, TypeVar

from weft import native


class _ForTarget(Protocol):
    @property
    def target(self) -> str: ...


T = TypeVar("T", bound=_ForTarget)


@dataclass(frozen=True)
class Gpu:
    """One GPU: what it can do at most, in units of 1e9 a second, `matrix` by the type of the factors.

    Peaks are dense ones, without structured sparsity, at boost clock, as the vendor's data sheets give them.
    """

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
    l2_bytes_per_clock: int
    """what the L2 cache gives to all multiprocessors"""
    l2_bytes: int
    """what it holds"""
    matrix: dict[str, float]
    """GFLOP/s (or GOP/s) of matrix instructions"""
    source: str

    @property
    def schedulers(self) -> int:
        """Warp instructions issued a clock."""
        return target_named(self.target).schedulers * self.multiprocessors


@dataclass(frozen=True)
class Target:
    """What bounds a kernel on a target; the fields are those of targets/Target.h."""

    name: str
    capability: int
    ptx_version: int
    warp_size: int
    max_warps: int
    registers_per_thread: int
    registers_per_processor: int
    register_granule: int
    shared_bytes_per_block: int
    shared_bytes_per_processor: int
    reserved_shared_bytes: int
    max_warps_per_processor: int
    max_blocks_per_processor: int
    schedulers: int
    special_lanes: int
    vector_bytes: int
    named_barriers: int
    box_axes: int
    """axes of a tensor, boxes of which one bulk copy brings; 0 where there is no such copy"""
    whole_float8_sums: bool
    """whether products of 8-bit floats are summed in f32, not in about 14 bits"""
    matrix_stores: bool
    """whether stmatrix exists"""
    rounds_tf32_to_even: bool
    """whether one instruction rounds to TF32, ties to even; elsewhere ties go away from zero"""
    most_cluster: int
    role_registers: int
    least_role_registers: int
    mma: tuple[Mapping[str, Any], ...]
    warpgroup_mma: tuple[Mapping[str, Any], ...]
    """matrix instructions of four warps: the largest shape of each family"""
    tensor_columns: int
    """of a multiprocessor's tensor memory, where their sums lie; 0 where these are in registers"""
    pipes: tuple[Mapping[str, Any], ...]
    """execution units for the loop model; empty where it does not know the target"""
    latencies: Mapping[str, float]
    gpus: Mapping[str, Gpu]
    """by the name that users give; the first stands for the target"""

    def rows_of_mma(self) -> int:
        """Rows of the smallest matrix instruction of 16-bit numbers: what a warp takes at least."""
        return min(int(each["shape"][0]) for each in self.mma if each["element"] == "f16")


def _target(described: Mapping[str, Any]) -> Target:
    gpus = {}
    for gpu in described["gpus"]:
        facts = {field.name: gpu[field.name] for field in dataclasses.fields(Gpu) if field.name != "target"}
        gpus[gpu["key"]] = Gpu(target=described["name"], **facts)
    return Target(
        **{
            **described,
            "mma": tuple(described["mma"]),
            "warpgroup_mma": tuple(described["warpgroup_mma"]),
            "pipes": tuple(described["pipes"]),
            "gpus": gpus,
        }
    )


@functools.cache
def targets() -> Mapping[str, Target]:
    """Every target by name; the first is the default."""
    return {each["name"]: _target(each) for each in json.loads(native.load("_simulator").targets())}


def target_named(name: str) -> Target:
    """The target of that name. Raises ValueError with those there are."""
    if name not in targets():
        raise ValueError(f"expected a target among {', '.join(targets())}, but got '{name}'")
    return targets()[name]


def occupancy(registers: int, warps: int, shared_bytes: int, target: Target, columns: int = 0) -> int:
    """How many blocks of so many warps a multiprocessor holds at once, by registers of a thread, shared memory, and
    columns of tensor memory."""
    by_warp = ceil(registers * target.warp_size / target.register_granule) * target.register_granule
    return min(
        target.max_blocks_per_processor,
        target.max_warps_per_processor // warps,
        target.registers_per_processor // (by_warp * warps),
        target.shared_bytes_per_processor // (shared_bytes + target.reserved_shared_bytes),
        *([target.tensor_columns // columns] if columns else []),
    )


def default_target() -> str:
    """The target that is compiled for where nothing says which: PTX for it runs on every device that is supported."""
    return next(iter(targets()))


def newest_first(compiled: Iterable[T]) -> list[T]:
    """What was compiled for targets (of a field ``target``), that of the newest devices first: of a library's variants
    the first that runs is taken."""
    known = targets()
    return sorted(compiled, key=lambda each: (-known[each.target].capability, each.target))


def target_for(capability: tuple[int, int], shared_bytes: int) -> str | None:
    """The target to compile for on a device of that compute capability and shared memory of a block: its own; else,
    of those whose PTX runs on it (names that end in a letter run on one capability alone), the one with the most shared
    memory that the device has, the newest of equals. None where no target's PTX runs on it."""
    number = 10 * capability[0] + capability[1]
    own = [each for each in targets().values() if each.capability == number]
    if own:
        return own[0].name
    runs = [each for each in targets().values() if each.capability < number and each.name[-1].isdigit()]
    fits = [each for each in runs if each.shared_bytes_per_block <= shared_bytes] or runs
    best = max(fits, key=lambda each: (each.shared_bytes_per_block, each.capability), default=None)
    return best.name if best else None


@functools.cache
def gpus() -> Mapping[str, Gpu]:
    """Every GPU by the name that users give."""
    return {key: gpu for target in targets().values() for key, gpu in target.gpus.items()}


def gpu_named(name: str | None = None) -> Gpu:
    """A GPU by its short name, in any case and with or without spaces; the default target's without one. Raises
    ValueError with those there are."""
    if name is None:
        return next(iter(gpus().values()))
    wanted = name.upper().replace(" ", "")
    for key, gpu in gpus().items():
        if key.upper().replace(" ", "") == wanted:
            return gpu
    raise ValueError(f"expected one of {', '.join(gpus())}, but got '{name}'")
