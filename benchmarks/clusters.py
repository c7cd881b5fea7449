# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What programs of a cluster save by sharing copies, counted on the simulator for sm_90a: bytes that come out of the L2
cache into shared memory for each cycle that the matrix units work, at their own rate, beside instructions, registers
and spills.

    python benchmarks/clusters.py [--json]
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass

import numpy as np
import torch
import weft
import weft.language as wl
import weft.simulator
from weft.compiler.ptxas import assemble
from weft.programs.compiled import compiled
from weft.testing.plans import run_plan

TARGET = "sm_90a"
MACS_A_CYCLE = 2048  # of a multiprocessor of an H100, 16-bit: targets/Targets.cpp


@weft.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, GROUP: wl.constexpr,
):  # fmt: skip
    """Groups of rows on a grid of one axis, as Triton's tutorials have it."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = wl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    columns = wl.cdiv(N, BN)
    first = wl.program_id(0) // (GROUP * columns) * GROUP
    size = min(wl.cdiv(M, BM) - first, GROUP)
    m = (first + wl.program_id(0) % (GROUP * columns) % size) * BM
    n = wl.program_id(0) % (GROUP * columns) // size * BN
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(wl.float16))


def attend(q, k, v):
    return weft.softmax(q, k) @ v


@dataclass(frozen=True)
class Row:
    """A kernel at a number of programs in a cluster."""

    kernel: str
    cluster: int
    bytes_a_cycle: float
    instructions: int
    """of warps"""
    registers: int | None
    spilled: int | None


def row(kernel: str, cluster: int, ptx: str, entry: str, counters: dict[str, int]) -> Row:
    found = assemble(ptx, TARGET, entry)
    busy = counters["mma_macs"] / MACS_A_CYCLE
    registers, spilled = (found.registers, found.spilled_bytes) if found else (None, None)
    return Row(kernel, cluster, counters["bulk_bytes_read"] / busy, counters["warp_instructions"], registers, spilled)


def of_matmul(columns: int, cluster: int) -> Row:
    """1,024 × 1,024 × 512, tiles of 128 rows on 8 warps, as many stages as shared memory holds, up to 4."""
    M, N, K = 1024, 1024, 512
    signature = f"a_ptr:*fp16:16, b_ptr:*fp16:16, c_ptr:*fp16:16, M:i32:16, N:i32:16, K:i32:16, BN={columns}, BM=128"
    stages = 4 if columns == 128 else 3
    made = matmul.compile(
        f"{signature}, BK=64, GROUP=8", target=TARGET, num_warps=8, num_stages=stages, cluster=cluster
    )
    arrays = [np.zeros(shape, np.float16) for shape in ((M, K), (N, K), (M, N))]
    sizes = [np.int32(size) for size in (M, N, K)]
    report = weft.simulator.launch(
        made.ptx, made.name, M // 128 * (N // columns), 32 * made.num_warps, [*arrays, *sizes],
        shared=made.shared_bytes, checks="none",
    )  # fmt: skip
    return row(f"matmul 128 × {columns} × 64", cluster, made.ptx, made.name, report.counters)


def of_attention(size: int, schedule: list[int], cluster: int) -> Row:
    """Full attention of 1,024 queries and keys."""
    q = torch.zeros(1, 1, 1024, size).half()
    traced = weft.program(attend).trace(weft.program(attend).bind((q, q, q), {}))
    form = compiled(traced, TARGET, False, {"0.forward": [*schedule, 0, cluster]})
    (launched,) = run_plan(form.ptx, form.info, traced.name, [q.numpy()] * 3, checks="none").launches
    tile = " × ".join(map(str, schedule[:2]))
    return row(f"attention D {size}, {tile}", cluster, form.ptx, launched.kernel, launched.report.counters)


def rows() -> list[Row]:
    clusters = (1, 2, 4)
    found = [of_matmul(columns, cluster) for columns in (128, 256) for cluster in clusters]
    schedules = {64: ([64, 128, 4, 2], [128, 128, 8, 2]), 128: ([128, 128, 8, 2],), 256: ([128, 64, 8, 2],)}
    found += [
        of_attention(size, schedule, cluster)
        for size, listed in schedules.items()
        for schedule in listed
        for cluster in clusters
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="as JSON")
    given = parser.parse_args()
    found = rows()
    if given.json:
        print(json.dumps([asdict(each) for each in found]))
        return
    alone = {each.kernel: each.instructions for each in found if each.cluster == 1}
    print(f"{'kernel':32} {'cluster':>7} {'L2 bytes a cycle':>16} {'instructions':>12} {'registers':>9} {'spilled':>7}")
    for each in found:
        ratio = each.instructions / alone[each.kernel]
        print(
            f"{each.kernel:32} {each.cluster:7} {each.bytes_a_cycle:16.1f} {ratio:12.3f} "
            f"{'-' if each.registers is None else each.registers:>9} {'-' if each.spilled is None else each.spilled:>7}"
        )


if __name__ == "__main__":
    main()
