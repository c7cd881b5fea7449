# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Clusters: special registers, distributed shared memory, barrier.cluster, remote mbarriers, st.async, red.async and
multicast, against NumPy, in order and interleaved."""

from __future__ import annotations

import cluster_kernels as cluster
import hopper_kernels as hopper
import numpy as np
import pytest
import weft.simulator as simulator
from cluster_kernels import INIT, SYNC, kernel
from hopper_kernels import expect, wait

SEEDS = (0, 1, 5, 9)


def run(text, x, *, grid=2, block=64, args=(), seed=0, **options) -> simulator.Report:
    report = simulator.launch(text, "k", grid, block, [*args, x], seed=seed, **options)
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


def test_special_registers_of_a_grid_of_clusters():
    names = [
        f"%{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid") for axis in "xyz"
    ]
    names += ["%cluster_ctarank", "%cluster_nctarank"]
    grid, shape = (4, 6, 2), (2, 3, 1)
    body = """mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ctaid.y; mov.u32 %r22, %ctaid.z;
mad.lo.u32 %r23, %r22, 6, %r21; mad.lo.u32 %r23, %r23, 4, %r20; mul.wide.u32 %d2, %r23, 56; add.s64 %d3, %d0, %d2;
"""
    body += "".join(f"mov.u32 %r24, {name}; st.global.u32 [%d3+{4 * i}], %r24;\n" for i, name in enumerate(names))
    x = np.zeros((2, 6, 4, 14), np.uint32)
    run(hopper.kernel(body), x, grid=grid, block=1, cluster=shape)
    for z, y, column in np.ndindex(2, 6, 4):
        at, inside = (column // 2, y // 3, z), (column % 2, y % 3, 0)
        expected = [*inside, *shape, *at, 2, 2, 2, inside[0] + 2 * inside[1], 6]
        assert x[z, y, column].tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", ["shared::cluster", "generic"])
def test_distributed_shared_memory_is_read_and_written(seed, form):
    ld, st, at = ("ld.shared::cluster", "st.shared::cluster", "%r20") if form != "generic" else ("ld", "st", "%d10")
    body = "cvta.shared.u64 %d10, s; mapa.u64 %d10, %d10, %r11; cvt.u64.u32 %d11, %r18; add.s64 %d10, %d10, %d11;\n"
    body += f"""mad.lo.u32 %r21, %r17, 3, 1; st.shared.u32 [%r19], %r21;
{SYNC}{ld}.u32 %r22, [{at}]; {SYNC}
{st}.u32 [{at}], %r22;
{SYNC}ld.shared.u32 %r23, [%r19]; sub.u32 %r23, %r23, %r21; st.global.u32 [%d9], %r22; st.global.u32 [%d9+512], %r23;
{SYNC}"""
    x = np.zeros(256, np.uint32)
    report = run(kernel(body, parameters=".param .u64 x"), x, seed=seed)
    values = 3 * np.arange(128) + 1
    assert (x[:128] == np.roll(values, 64)).all() and (x[128:] == 0).all()
    assert report.counters["cluster_bytes_read"] == report.counters["cluster_bytes_written"] == 512
    assert report.counters["cluster_barriers"] == 16


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics_of_the_cluster_on_one_word(seed):
    body = f"""@%p0 st.shared.u32 [%r1], 0;
{SYNC}mapa.shared::cluster.u32 %r21, s, 0; atom.add.relaxed.cluster.shared::cluster.u32 %r22, [%r21], 1;
{SYNC}@%p5 ld.shared.u32 %r23, [%r1]; @%p5 st.global.u32 [%d9], %r23;"""
    x = np.zeros(256, np.uint32)
    run(kernel(body), x, grid=4, seed=seed)
    assert (x.reshape(2, 2, 64)[:, 0] == 128).all() and (x.reshape(2, 2, 64)[:, 1] == 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_flag_in_the_shared_memory_of_the_peer(seed):
    body = f"""@%p0 st.shared.u32 [%r1], 0; @%p0 st.shared.u32 [%r1+4], 0;
{SYNC}@!%p0 bra E; @!%p5 bra R;
st.shared::cluster.u32 [%r12+4], 77; st.release.cluster.shared::cluster.u32 [%r12], 1; bra E;
R: ld.acquire.cluster.shared::cta.u32 %r21, [%r1]; setp.ne.u32 %p2, %r21, 1; @%p2 bra R;
ld.shared.u32 %r22, [%r1+4]; st.global.u32 [%d0], %r22;
E: {SYNC}"""
    x = np.zeros(4, np.uint32)
    run(kernel(body), x, seed=seed)
    assert x[0] == 77


@pytest.mark.parametrize("seed", SEEDS)
def test_remote_arrivals_end_a_phase(seed):
    """Each thread of both blocks writes to block 0 and arrives there; block 0 adds up."""
    body = f"""@%p0 mbarrier.init.shared::cta.b64 [%r2], 128; @%p0 fence.mbarrier_init.release.cluster;
{SYNC}mapa.shared::cluster.u32 %r21, s, 0; mapa.shared::cluster.u32 %r22, full, 0; shl.b32 %r23, %r17, 2; add.u32 %r23, %r21, %r23;
st.shared::cluster.u32 [%r23], %r17; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r22];
@!%p5 bra E;
W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra W;
ld.shared.u32 %r24, [%r19]; ld.shared.u32 %r25, [%r19+256]; add.u32 %r24, %r24, %r25; st.global.u32 [%d9], %r24;
E:"""
    x = np.zeros(128, np.uint32)
    report = run(kernel(body), x, seed=seed)
    assert (x[:64] == 2 * np.arange(64) + 64).all()
    assert report.counters["cluster_arrivals"] == 64


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("vector", "type"), [("", "b32"), (".v2", "b32"), (".v4", "u32"), ("", "b64"), (".v2", "f64")])
def test_st_async(seed, vector, type):
    count, wide = int(vector[2:] or 1), type.endswith("64")
    bytes_ = count * (8 if wide else 4)
    values = [f"%d{11 + i}" if wide else f"%r{24 + i}" for i in range(count)]
    make = "".join(
        f"mad.lo.u32 %r24, %r17, {count}, {i}; cvt.u64.u32 %d{11 + i}, %r24;"
        if wide
        else f"mad.lo.u32 %r{24 + i}, %r17, {count}, {i};"
        for i in range(count)
    )
    operand = values[0] if count == 1 else "{" + ", ".join(values) + "}"
    words = 64 * bytes_ // 4
    body = (
        INIT + expect(64 * bytes_) + make
        + f"\nmul.lo.u32 %r21, %r0, {bytes_}; add.u32 %r21, %r12, %r21;\n"
        + f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector}.{type} [%r21], {operand}, [%r13];\n"
        + wait() + f"mul.wide.u32 %d16, %r15, {4 * words}; add.s64 %d17, %d0, %d16;\n" + hopper.copy_out(4 * words, 64, "%d17") + SYNC
    )  # fmt: skip
    x = np.zeros(2 * words, np.uint32)
    report = run(kernel(body, shared=2048), x, seed=seed)
    got = x.view(np.uint64) if wide else x
    assert (got == np.roll(np.arange(128 * count), 64 * count)).all()
    assert report.counters["cluster_bytes_copied"] == 128 * bytes_


RED = [("add", "u32", np.sum), ("max", "s32", np.max), ("min", "u32", np.min), ("or", "b32", np.bitwise_or.reduce), ("xor", "b32", np.bitwise_xor.reduce)]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("operation", "type", "reference"), RED)
def test_red_async(seed, operation, type, reference):
    body = (
        f"@%p0 st.shared.u32 [%r1], 40;\n{INIT}" + expect(256)
        + f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation}.{type} [%r12], %r17, [%r13];\n"
        + wait() + f"@%p0 ld.shared.u32 %r21, [%r1]; @%p0 st.global.u32 [%d9], %r21;\n{SYNC}"
    )  # fmt: skip
    x = np.zeros(128, np.uint32)
    run(kernel(body), x, seed=seed)
    for block in range(2):
        assert x[64 * block] == reference(np.append(np.arange(64) + 64 * (1 - block), 40))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bulk_copy_to_the_shared_memory_of_the_peer(seed):
    body = (
        f"mad.lo.u32 %r21, %r17, 5, 2; st.shared.u32 [%r19], %r21; fence.proxy.async.shared::cta;\n{INIT}" + expect(256)
        + "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12+512], [%r1], 256, [%r13];\n"
        + wait() + f"ld.shared.u32 %r22, [%r19+512]; st.global.u32 [%d9], %r22;\n{SYNC}st.shared.u32 [%r19], %r22;\n"
    )  # fmt: skip
    x = np.zeros(128, np.uint32)
    report = run(kernel(body), x, seed=seed)
    assert (x == np.roll(5 * np.arange(128) + 2, 64)).all()
    assert report.counters["cluster_bytes_copied"] == 512


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_multicast_brings_the_same_bytes_to_all(seed, ranks):
    """Each block loads its part for all blocks, by a copy without and one with a tensor map."""
    part = 256
    body = f"mov.u16 %h1, {(1 << ranks) - 1}; mov.u32 %r10, %cluster_ctarank; mul.lo.u32 %r20, %r10, {part}; add.u32 %r21, %r1, %r20;\n"
    body += "cvt.u64.u32 %d2, %r20; add.s64 %d3, %d0, %d2; mul.lo.u32 %r22, %r10, 4; ld.param.u64 %d4, [y];\n"
    body += INIT + expect(2 * part * ranks)
    body += f"@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r21], [%d3], {part}, [%r2], %h1;\n"
    body += "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r21+2048], [%d1, {0, %r22}], [%r2], %h1;\n"
    body += wait() + "mov.u32 %r23, %ctaid.x; mul.wide.u32 %d5, %r23, 4096; add.s64 %d5, %d4, %d5;\n"
    body += hopper.copy_out(part * ranks, 64, "%d5") + "add.u32 %r1, %r1, 2048; add.s64 %d5, %d5, 2048;\n"
    body += hopper.copy_out(part * ranks, 64, "%d5") + SYNC
    text = hopper.kernel(hopper.MAPPED + body, parameters=hopper.MAP + ", .param .u64 y", shared=4096)
    x = np.random.default_rng(seed).integers(0, 2**32, (4 * ranks, 16), np.uint32)
    y = np.zeros((2 * ranks, 2, 512), np.uint32)
    mapped = simulator.tensor_map(x, (4, 16), swizzle=None)
    report = simulator.launch(text, "k", 2 * ranks, 64, [mapped, x, y], cluster=ranks, seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert (y[:, :, : 64 * ranks] == x.reshape(-1)).all()
    assert report.counters["multicast_copies"] == 4 * ranks
    assert report.counters["multicast_bytes"] == 4 * part * ranks**2
    assert report.counters["cluster_bytes_copied"] == 4 * part * ranks * (ranks - 1)


#: A ring of two stages that both blocks fill for each other: each waits until the consumers of both have let go of it.
RING = f"""
@%p0 mbarrier.init.shared::cta.b64 [%r2], 1; @%p0 mbarrier.init.shared::cta.b64 [%r2+8], 1;
@%p0 mbarrier.init.shared::cta.b64 [%r2+16], 2; @%p0 mbarrier.init.shared::cta.b64 [%r2+24], 2;
@%p0 fence.mbarrier_init.release.cluster;
{SYNC}
mov.u16 %h1, 3; mov.u32 %r21, 0; mov.u32 %r30, 0; setp.ge.u32 %p4, %r0, 32; shl.b32 %r31, %r10, 7; add.u32 %r32, %r1, %r31;
@%p4 bra C;
P: and.b32 %r22, %r21, 1; shr.u32 %r23, %r21, 1; not.b32 %r24, %r23; and.b32 %r24, %r24, 1; shl.b32 %r25, %r22, 3; add.u32 %r26, %r2, %r25;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r26+16], %r24; @!%p1 bra EMPTY;
@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r26], 256;
shl.b32 %r27, %r22, 8; add.u32 %r28, %r32, %r27; shl.b32 %r29, %r21, 8; add.u32 %r29, %r29, %r31; cvt.u64.u32 %d2, %r29; add.s64 %d2, %d0, %d2;
@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r28], [%d2], 128, [%r26], %h1;
add.u32 %r21, %r21, 1; setp.lt.u32 %p2, %r21, 6; @%p2 bra P;
bra E;
C: and.b32 %r22, %r21, 1; shr.u32 %r23, %r21, 1; and.b32 %r24, %r23, 1; shl.b32 %r25, %r22, 3; add.u32 %r26, %r2, %r25;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r26], %r24; @!%p1 bra FULL;
shl.b32 %r27, %r22, 8; add.u32 %r28, %r1, %r27; shl.b32 %r29, %r0, 2; add.u32 %r28, %r28, %r29; ld.shared.u32 %r33, [%r28+-128]; add.u32 %r30, %r30, %r33; ld.shared.u32 %r33, [%r28]; add.u32 %r30, %r30, %r33;
bar.warp.sync -1;
setp.eq.u32 %p3, %r0, 32; add.u32 %r34, %r26, 16; mapa.shared::cluster.u32 %r35, %r34, %r11;
@%p3 mbarrier.arrive.shared::cta.b64 _, [%r34];
@%p3 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r35];
add.u32 %r21, %r21, 1; setp.lt.u32 %p2, %r21, 6; @%p2 bra C;
st.global.u32 [%d9+4096], %r30;
E: {SYNC}"""


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 8, 13])
def test_a_ring_that_two_blocks_fill_for_each_other(seed):
    text = kernel(RING).replace(".shared .align 8 .b64 full;", ".shared .align 8 .b8 full[32];")
    x = np.zeros(2048, np.uint32)
    x[:384] = np.random.default_rng(seed).integers(0, 1000, 384)
    report = run(text, x, seed=seed)
    sums = x[:384].reshape(6, 2, 32).sum((0, 1))
    assert (x[1024 + 32 : 1024 + 64] == sums).all() and (x[1024 + 96 : 1024 + 128] == sums).all()
    assert report.counters["multicast_bytes"] == 6 * 2 * 2 * 128
    assert report.counters["ring_waits"] >= 2 * 6


def test_launches_of_clusters_that_are_refused():
    x = np.zeros(64, np.uint32)
    plain, required = hopper.kernel(""), hopper.kernel("", attributes=".reqnctapercluster 2")
    for text, options, message in (
        (plain, {"cluster": 3, "grid": 4}, "whole clusters of 3 x 1 x 1 blocks, but got 4 x 1 x 1"),
        (plain, {"cluster": 32, "grid": 32}, "a cluster of 1 to 16 blocks"),
        (required, {"cluster": 4, "grid": 4}, "requires clusters of 2 x 1 x 1 blocks, but got 4 x 1 x 1"),
        (required, {"grid": 3}, "whole clusters"),
        (hopper.kernel("", attributes=".maxclusterrank 2"), {"cluster": 4, "grid": 4}, "at most 2 blocks"),
    ):
        options = {"grid": 2, **options}
        with pytest.raises(simulator.SimulatorError, match=message):
            simulator.launch(text, "k", options.pop("grid"), 32, [x], **options)


def test_mapa_of_ranks_beyond_the_cluster_that_nobody_uses():
    """Every lane maps its own number, as CuTe's schedulers do, and the first ones use what they got."""
    body = "mapa.shared::cluster.u32 %r21, s, %r0; setp.lt.u32 %p4, %r0, 2;\n" + SYNC
    body += "@%p4 red.relaxed.cluster.shared::cluster.add.u32 [%r21], 1;\n" + SYNC
    body += "ld.shared.u32 %r22, [%r1]; @%p0 st.global.u32 [%d9], %r22;"
    out = np.zeros(128, np.uint32)
    report = simulator.launch(kernel("@%p0 st.shared.u32 [%r1], 0;\n" + body), "k", 2, 64, [out])
    assert not report.findings, [str(finding) for finding in report.findings]
    assert out[0] == out[64] == 2


def test_mapa_of_the_block_itself():
    body = "mapa.shared::cluster.u32 %r21, s, %r10; st.shared::cluster.u32 [%r21], 9; ld.shared.u32 %r22, [%r1];\n"
    body += (
        "getctarank.shared::cluster.u32 %r23, %r12; mad.lo.u32 %r22, %r22, 10, %r23; @%p0 st.global.u32 [%d9], %r22;"
    )
    x = np.zeros(2, np.uint32)
    run(kernel(body), x, block=1)
    assert x.tolist() == [91, 90]


def test_clusters_of_a_grid_run_on_several_threads():
    body = f"st.shared.u32 [%r19], %r17;\n{SYNC}ld.shared::cluster.u32 %r21, [%r20]; st.global.u32 [%d9], %r21;\n{SYNC}"
    for threads in (1, 2):
        x = np.zeros(64 * 40, np.uint32)
        run(kernel(body), x, grid=40, threads=threads)
        assert (x.reshape(20, 2, 64)[:, ::-1].reshape(-1) == np.arange(64 * 40)).all()


def test_the_helpers_have_a_cluster_of_their_own():
    assert cluster.PEER in kernel("")
