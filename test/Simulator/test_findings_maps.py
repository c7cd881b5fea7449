# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel and its edit stand on one line each
"""Tensor maps that a kernel makes, and global memory that threads write and bulk copies read: right with their fences,
and planted bugs without, each beside a corrected twin."""

from __future__ import annotations

import dataclasses

import hopper_kernels as hopper
import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, bulk_load, expect, kernel, tensor_load, wait
from snippets import line_of

BUG = "// BUG"


def replace(field: str, *values: object, where: str = "shared::cta", at: str = "%r1") -> str:
    bits = 64 if field in ("global_address", "global_stride") else 32
    return f"@%p0 tensormap.replace.tile.{field}.{where}.b1024.b{bits} [{at}], {', '.join(map(str, values))};\n"


#: A map of 32 x 16 words at x, boxes of 4 x 16, made in shared memory and copied to y by the first warp.
ZERO = "setp.lt.u32 %p4, %r0, 32; shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4; mov.u32 %r6, 0;\n@%p4 st.shared.u32 [%r5], %r6;\nbar.sync 0;\n"
FIELDS = (
    "mov.b64 %d5, 64;\n" + replace("global_address", "%d0") + replace("rank", 1) + replace("box_dim", 0, 16) + replace("box_dim", 1, 4)
    + replace("global_dim", 0, 16) + replace("global_dim", 1, 32) + replace("global_stride", 0, "%d5") + replace("element_stride", 0, 1)
    + replace("element_stride", 1, 1) + replace("elemtype", 2) + replace("interleave_layout", 0) + replace("swizzle_mode", 0) + replace("fill_mode", 0)
)  # fmt: skip
COPY = "bar.sync 0;\n@%p4 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d1], [%r1], 128;\n"
STORE = "bar.sync 0;\n@%p4 ld.shared.u32 %r8, [%r5]; cvt.u64.u32 %d6, %r4; add.s64 %d6, %d1, %d6; @%p4 st.global.u32 [%d6], %r8;\nbar.sync 0;\n"
ACQUIRE = "@%p4 fence.proxy.tensormap::generic.acquire.gpu [%d1], 128;\n"
RELEASE = "@%p4 fence.proxy.tensormap::generic.release.gpu;\n"
LOAD = "bar.sync 0;\n" + INIT + expect(256) + tensor_load((5, 0), 256).strip() + f" {BUG}\n" + wait()
POINTERS = "ld.param.u64 %d1, [y]; ld.param.u64 %d3, [z];\n"


def text_of(body: str) -> str:
    return kernel(POINTERS + body, parameters=".param .u64 x, .param .u64 y, .param .u64 z")


def run(text: str, seed: int, grid: int = 1) -> tuple[np.ndarray, np.ndarray, simulator.Report]:
    x, z = np.arange(512, dtype=np.uint32), np.zeros(64, np.uint32)
    report = simulator.launch(text, "k", grid, 64, [x, np.zeros(64, np.uint32), z], seed=seed, limit=100000)
    return x, z, report


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize("copied", [COPY, STORE + RELEASE], ids=["cp_fenceproxy", "release"])
def test_a_map_that_the_kernel_makes(seed, copied):
    x, z, report = run(text_of(ZERO + FIELDS + copied + ACQUIRE + LOAD + hopper.copy_out(256, 64, "%d3")), seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert (z == x[80:144]).all()


@pytest.mark.parametrize("rows", [6, 7, 8])
def test_a_box_in_arrays_that_lie_side_by_side(rows):
    """Pieces of 16 bytes, each of which is in one of them, follow one another in memory across their border."""
    body = ZERO + FIELDS + COPY + ACQUIRE + LOAD + hopper.copy_out(256, 64, "%d3")
    body = body.replace("swizzle_mode.shared::cta.b1024.b32 [%r1], 0", "swizzle_mode.shared::cta.b1024.b32 [%r1], 2")
    whole, z = np.arange(512, dtype=np.uint32), np.zeros(64, np.uint32)
    args = [np.uint64(whole.ctypes.data), np.zeros(64, np.uint32), z]
    parts = [whole[: 16 * rows], whole[16 * rows :]]
    report = simulator.launch(text_of(body), "k", 1, 64, args, memory=parts, limit=100000)
    assert not report.findings, [str(finding) for finding in report.findings]
    np.testing.assert_array_equal(z.view(np.uint8), hopper.swizzle(whole[80:144].view(np.uint8), 64))
    touched = sum(each.read for each in report.profile.touched)
    assert touched >= 8


@pytest.mark.parametrize("border", [4, 100, 252])
@pytest.mark.parametrize("seed", [0, 3])
def test_copies_across_arrays_that_lie_side_by_side(border, seed):
    """Loads, stores and reductions of bytes that two arrays share, at any border between words."""
    x, y, z = np.arange(1, 65, dtype=np.uint32), np.zeros(64, np.uint32), np.full(64, 7, np.uint32)
    body = "ld.param.u64 %d1, [y]; ld.param.u64 %d3, [z];\n" + INIT + expect(256) + bulk_load(256) + wait()
    body += "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 256;\n"
    body += "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d3], [%r1], 256;\n"
    body += "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;"
    parts = [part for each in (x, y, z) for part in (each[: border // 4], each[border // 4 :])]
    args = [np.uint64(each.ctypes.data) for each in (x, y, z)]
    if any(int(each) % 16 for each in args):
        pytest.skip("NumPy put an array at no multiple of 16")
    report = simulator.launch(text_of(body), "k", 1, 64, args, memory=parts, seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, x + 7)
    assert report.counters["bulk_bytes_read"] == 256 and report.counters["bulk_bytes_written"] == 512
    shorter = [*parts[:3], parts[3][:-1], *parts[4:]]  # one word of y is in no array
    report = simulator.launch(text_of(body), "k", 1, 64, args, memory=shorter, seed=seed)
    assert [found.kind for found in report.findings] == ["out-of-bounds"], list(map(str, report.findings))


@pytest.mark.parametrize("seed", range(4))
def test_a_map_replaced_while_a_load_is_on_its_way(seed):
    """It was read when the load was issued: CUTLASS's grouped products rest on that."""
    load = "bar.sync 0;\n" + INIT + expect(256) + tensor_load((5, 0), 256, to="%r1+256") + "REPLACED" + wait()
    body = ZERO + FIELDS + COPY + ACQUIRE + load + "add.u32 %r1, %r1, 256;\n" + hopper.copy_out(256, 64, "%d3")
    again = "bar.sync 0;\n" + FIELDS.replace("%d0", "%d3") + COPY
    x, z, report = run(text_of(body.replace("REPLACED", again)), seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert (z == x[80:144]).all()


@dataclasses.dataclass(frozen=True)
class Plant:
    name: str
    kind: str
    body: str
    edit: tuple[str, str]
    also: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 5)
    grid: int = 1


WRITE = "mul.wide.u32 %d6, %r0, 4; add.s64 %d6, %d0, %d6; st.global.u32 [%d6], %r0;\n"
PARTS = "mov.u32 %r9, %ctaid.x; setp.eq.u32 %p5, %r9, 1;\n"
FLAG = "@%p5 bra R;\nPROXYbar.sync 0;\n@%p0 st.release.gpu.global.u32 [%d1], 1; bra E;\nR: ld.acquire.gpu.global.u32 %r8, [%d1]; setp.ne.u32 %p2, %r8, 1; @%p2 bra R;\nREADER"

PLANTS = [
    Plant("map without an acquire", "missing-proxy-fence", ZERO + FIELDS + COPY + "ACQUIRE" + LOAD, ("ACQUIRE", ACQUIRE)),
    Plant("map acquired before it is made", "missing-proxy-fence", "setp.lt.u32 %p4, %r0, 32;\n" + ACQUIRE + ZERO + FIELDS + COPY + "ACQUIRE" + LOAD, ("ACQUIRE", ACQUIRE)),
    Plant("map stored without a release", "missing-proxy-fence", ZERO + FIELDS + STORE + "RELEASE" + ACQUIRE + LOAD, ("RELEASE", RELEASE)),
    Plant("map changed after its acquire", "missing-proxy-fence", ZERO + FIELDS + COPY + ACQUIRE + "bar.sync 0;\n" + replace("fill_mode", 1, where="global", at="%d1") + "AGAIN" + LOAD,
          ("AGAIN", "bar.sync 0;\n" + RELEASE + ACQUIRE)),
    Plant("map acquired by another thread that nothing orders", "missing-proxy-fence", ZERO + FIELDS + COPY + INIT + "setp.ge.u32 %p5, %r0, 32; bar.sync 0;\n@WHO " + ACQUIRE.removeprefix("@%p4 ") + LOAD.removeprefix("bar.sync 0;\n" + INIT), ("WHO", "%p4")),
    Plant("map of another rank than the copy", "out-of-bounds", ZERO + FIELDS + replace("rank", "RANK") + COPY + ACQUIRE + LOAD, ("RANK", "1"), also=("deadlock", "mbarrier-misuse")),
    Plant("box that no driver takes", "out-of-bounds", ZERO + FIELDS + replace("box_dim", 0, "SIZE") + COPY + ACQUIRE + LOAD, ("SIZE", "16"), also=("deadlock", "mbarrier-misuse")),
    Plant("stride of no 16 bytes", "out-of-bounds", ZERO + FIELDS + "mov.b64 %d5, STRIDE;\n" + replace("global_stride", 0, "%d5") + COPY + ACQUIRE + LOAD, ("STRIDE", "64"), also=("deadlock", "mbarrier-misuse")),
    Plant("dimension that no map has", "out-of-bounds", ZERO + FIELDS + replace("box_dim", "NUMBER", 4).strip() + "\n" + COPY + ACQUIRE + LOAD.replace(BUG, ""), ("NUMBER", "1")),
    Plant("type that there is not", "out-of-bounds", ZERO + FIELDS + replace("elemtype", "TYPE") + COPY + ACQUIRE + LOAD.replace(BUG, ""), ("TYPE", "2")),
    Plant("map made of bytes that are none", "out-of-bounds", "ZEROED" + FIELDS + COPY + ACQUIRE + LOAD.replace(BUG, ""), ("ZEROED", ZERO), also=("deadlock", "mbarrier-misuse", "uninitialised", "missing-proxy-fence")),
    Plant("map at 64 bytes", "misaligned", ZERO + FIELDS + replace("rank", 1, at="%r1+PLACE") + COPY + ACQUIRE + LOAD.replace(BUG, ""), ("+PLACE", "")),
    # Global memory that threads write and copies read.
    Plant("bulk load of what threads wrote", "missing-proxy-fence", WRITE + "PROXYbar.sync 0;\n" + INIT + expect(256) + bulk_load(256).strip() + f" {BUG}\n" + wait(), ("PROXY", "fence.proxy.async.global;\n")),
    Plant("fence of shared memory where global memory was written", "missing-proxy-fence", WRITE + "fence.proxy.async.shared::cta;\nbar.sync 0;\n" + INIT + expect(256) + bulk_load(256).strip() + f" {BUG}\n" + wait(), ("async.shared::cta", "async")),
    Plant("bulk load of what another block wrote", "missing-proxy-fence", PARTS + "@%p5 bra S;\n" + WRITE + "S:\n" + FLAG + INIT + expect(256) + bulk_load(256).strip() + f" {BUG}\n" + wait() + "E:\n", ("PROXY", "fence.proxy.async;\n"), grid=2),
    Plant("bulk load of what another block wrote, fenced by the reader", "missing-proxy-fence", PARTS + "@%p5 bra S;\n" + WRITE + "S:\n" + FLAG + INIT + expect(256) + bulk_load(256).strip() + f" {BUG}\n" + wait() + "E:\n", ("READER", "fence.proxy.async.global;\n"), grid=2),
    # mbarriers.
    Plant("parity two phases behind", "mbarrier-misuse", INIT + "setp.ge.u32 %p6, %r0, 32; @%p6 bra Q;\n" + "ARRIVE" + wait(0, label="A") + "ARRIVEFIRST" + "ARRIVE" + f"B: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 1; {BUG}\n@!%p1 bra B;\n", ("FIRST", wait(1, label="C") + "bra Q;\n"), seeds=(0,), also=("deadlock",)),
    Plant("plain store over an mbarrier", "mbarrier-misuse", INIT + f"bar.sync 0;\n@%p0 st.shared.u64 [%r2+OVER], %d3;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r2]; {BUG}\n", ("+OVER", "+8"), seeds=(0,)),
]  # fmt: skip

FAULTY = {
    "WHO": "%p5", "RANK": "2", "SIZE": "512", "STRIDE": "40", "NUMBER": "5", "TYPE": "13", "PLACE": "64", "OVER": "0", "ARRIVE": "@%p0 mbarrier.arrive.shared::cta.b64 _, [%r2];\n",
    **dict.fromkeys(("ACQUIRE", "RELEASE", "AGAIN", "ZEROED", "PROXY", "READER", "FIRST"), ""),
}  # fmt: skip


def planted(plant: Plant, *, mended: bool) -> str:
    assert plant.edit[0] in plant.body, plant.name
    body = plant.body.replace(*plant.edit, 1) if mended else plant.body
    for word in sorted(FAULTY, key=len, reverse=True):
        body = body.replace(word, FAULTY[word])
    return text_of(body + "Q:")


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = planted(plant, mended=False)
    for seed in plant.seeds:
        report = run(text, seed, plant.grid)[2]
        found = [finding for finding in report.findings if finding.kind == plant.kind]
        assert found, f"expected {plant.kind}, but got {[str(f) for f in report.findings]}"
        assert BUG not in text or line_of(text, BUG) in {finding.line for finding in found}, [str(f) for f in found]
        assert {finding.kind for finding in report.findings} - set(plant.also) == {plant.kind}, [
            str(finding) for finding in report.findings
        ]
    for seed in (0, 1, 5):
        clean = run(planted(plant, mended=True), seed, plant.grid)[2]
        assert not clean.findings, [str(finding) for finding in clean.findings]


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_wait_for_the_phase_after_those_of_another_warp(seed):
    """Warps that take turns at a ring, as those of CUTLASS's ping-pong kernels do, leave phases to each other."""
    arrive = "@{p} mbarrier.arrive.shared::cta.b64 _, [%r2];\n"
    first = arrive.format(p="%p0") + wait(0, label="A") + "bar.sync 1, 64;\nbar.sync 2, 64;\n" + wait(1, label="B")
    second = "bar.sync 1, 64;\n" + arrive.format(p="%p4") + wait(1, label="C") + arrive.format(p="%p4")
    second += wait(0, label="D") + "bar.sync 2, 64;\n" + arrive.format(p="%p4") + wait(1, label="F")
    body = (
        "setp.eq.u32 %p4, %r0, 32; setp.ge.u32 %p6, %r0, 32; @%p6 bra S;\n" + first + "bra E;\nS:\n" + second + "E:\n"
    )
    report = run(text_of(INIT + body), seed, 1)[2]
    assert not report.findings, [str(finding) for finding in report.findings]
