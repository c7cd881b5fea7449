# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel and its edit stand on one line each
"""Planted bugs in what blocks of a cluster do to each other, each reported as what it is, beside a corrected twin."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import weft.simulator as simulator
from cluster_kernels import ARRIVE, AWAIT, INIT, SYNC, kernel
from hopper_kernels import expect, wait
from snippets import line_of


@dataclasses.dataclass(frozen=True)
class Plant:
    """A faulty text, the mark that its reported line holds, and the edit that mends it."""

    name: str
    kind: str
    body: str
    edit: tuple[str, str]
    seeds: tuple[int, ...] = (0, 1, 5)
    also: tuple[str, ...] = ()
    says: str = ""


BUG = "// BUG"
OWN = "st.shared.u32 [%r19], %r17;\n"
READ = f"ld.shared::cluster.u32 %r21, [%r20]; {BUG}\nst.global.u32 [%d9], %r21;\n"
MULTICAST = "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d0], 256, [%r2], %h1;"
SEND = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], %r17, [%r13];"
COPY = "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12+512], [%r1], 256, [%r13];"
FENCE = "fence.proxy.async.shared::cta;\n"
REMOTE = "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r13];"

PLANTS = [
    # Order of accesses by different blocks.
    Plant("read before the cluster's barrier", "shared-race", OWN + "BARRIER" + READ + SYNC, ("BARRIER", SYNC), also=("uninitialised",)),
    Plant("barrier of the block only", "shared-race", SYNC + OWN + "bar.sync 0;\n" + READ + SYNC, ("bar.sync 0;", SYNC), also=("uninitialised",)),
    Plant("relaxed arrival", "shared-race", SYNC + OWN + "barrier.cluster.arrive.relaxed.aligned;\n" + AWAIT + READ + SYNC, (".relaxed", ".release")),
    Plant("fence of the block before a relaxed arrival", "shared-race", SYNC + OWN + "fence.acq_rel.cta;\nbarrier.cluster.arrive.relaxed.aligned;\n" + AWAIT + READ + SYNC, ("acq_rel.cta", "acq_rel.cluster")),
    Plant("write after the arrival", "shared-race", SYNC + "EARLY" + ARRIVE + "LATE" + AWAIT + READ + SYNC, ("EARLY", OWN), also=("uninitialised",)),
    Plant("written while the peer reads", "shared-race", OWN + SYNC + "ld.shared::cluster.u32 %r21, [%r20];\nBETWEEN" + f"st.shared.u32 [%r19], %r0; {BUG}\n" + SYNC, ("BETWEEN", SYNC)),
    Plant("both blocks write a word", "shared-race", SYNC + f"mapa.shared::cluster.u32 %r21, s, 0; WHO st.shared::cluster.u32 [%r21], %r17; {BUG}\n" + SYNC, ("WHO", "setp.eq.u32 %p4, %r17, 64; @%p4")),
    Plant("written by the peer and read", "shared-race", SYNC + "st.shared::cluster.u32 [%r20], %r17;\nBETWEEN" + f"ld.shared.u32 %r21, [%r19]; {BUG}\nst.global.u32 [%d9], %r21;\n" + SYNC, ("BETWEEN", SYNC), also=("uninitialised",)),
    Plant("flag with the scope of a block", "shared-race",
          f"@%p0 st.shared.u32 [%r1], 0; @%p0 st.shared.u32 [%r1+4], 0;\n{SYNC}@!%p0 bra E; @!%p5 bra R;\nst.shared::cluster.u32 [%r12+4], 77; st.release.SCOPE.shared::cluster.u32 [%r12], 1; bra E;\n"
          f"R: ld.acquire.cluster.shared.u32 %r21, [%r1]; setp.ne.u32 %p2, %r21, 1; @%p2 bra R;\nld.shared.u32 %r22, [%r1+4]; {BUG}\nst.global.u32 [%d0], %r22;\nE: {SYNC}", ("SCOPE", "cluster")),
    Plant("atomic beside plain writes", "shared-race", f"@%p0 st.shared.u32 [%r1], 0;\n{SYNC}red.relaxed.cluster.shared::cluster.add.u32 [%r12], 1;\nBETWEEN@%p0 st.shared.u32 [%r1], 5; {BUG}\n" + SYNC, ("BETWEEN", SYNC)),
    # Blocks that have not begun, or that have ended.
    Plant("peer that may not have begun", "shared-race", f"BARRIER@%p0 st.shared::cluster.u32 [%r12], 1; {BUG}\n" + SYNC, ("BARRIER", SYNC), says="may not have begun"),
    Plant("peer that may have ended", "shared-race", OWN + SYNC + "ld.shared::cluster.u32 %r21, [%r20]; st.global.u32 [%d9], %r21;\nLAST\n", ("LAST", SYNC), says="dsmem-after-exit"),
    Plant("arrival at a block that may have ended", "shared-race", INIT + REMOTE + "\nWAIT\n", ("WAIT", wait()), says="dsmem-after-exit"),
    Plant("block that ends before a multicast to it", "exit-with-async", INIT + "mov.u16 %h1, 3;\n" + expect(256) + "@!%p5 bra E;\n" + MULTICAST + "\nE:\nWAIT\n" + SYNC, ("WAIT", wait()), seeds=(0,)),
    Plant("block that ends while its bytes are sent", "exit-with-async", OWN + FENCE + INIT + expect(256) + "@!%p5 bra N;\n" + COPY + "\nbra E;\nN:\n" + wait() + "E:\nLAST", ("LAST", SYNC), seeds=(0,), says="may still read"),
    # Addresses and masks that the cluster does not have.
    Plant("rank out of the cluster", "out-of-bounds", SYNC + f"mapa.shared::cluster.u32 %r21, s, RANK; st.shared::cluster.u32 [%r21], 1; {BUG}\n" + SYNC, ("RANK", "%r10")),
    Plant("arrival at a rank out of the cluster", "out-of-bounds", INIT + f"mapa.shared::cluster.u32 %r21, full, RANK; @%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r21]; {BUG}\n" + SYNC, ("RANK", "%r10")),
    Plant("bytes sent to a rank out of the cluster", "out-of-bounds", INIT + expect(256) + f"mov.u32 %r22, RANK; mapa.shared::cluster.u32 %r20, s, %r22; add.u32 %r20, %r20, %r18; mapa.shared::cluster.u32 %r13, full, %r22; {SEND} {BUG}\nWAIT\n" + SYNC, ("RANK", "%r11"), seeds=(0,)),
    Plant("copy to a rank out of the cluster", "out-of-bounds", OWN + "bar.sync 0;\n" + FENCE + INIT + expect(256) + f"mov.u32 %r22, RANK; mapa.shared::cluster.u32 %r12, s, %r22; mapa.shared::cluster.u32 %r13, full, %r22; {COPY} {BUG}\nWAIT\n" + SYNC, ("RANK", "%r11"), seeds=(0,)),
    Plant("offset out of the peer's memory", "out-of-bounds", SYNC + f"@%p0 st.shared::cluster.u32 [%r12+4096], 1; {BUG}\n" + SYNC, ("+4096", "")),
    Plant("address of a peer with .shared::cta", "out-of-bounds", SYNC + f"@%p0 st.shared::cta.u32 [%r12], 1; {BUG}\n" + SYNC, ("shared::cta.u32 [%r12]", "shared::cluster.u32 [%r12]")),
    Plant("mask out of the cluster", "out-of-bounds", INIT + "mov.u16 %h1, MASK;\n" + expect(256) + "@!%p5 bra E;\n" + MULTICAST + f" {BUG}\nE:\n" + "WAIT\n" + SYNC, ("MASK", "3"), seeds=(0,)),
    Plant("empty mask", "out-of-bounds", INIT + "mov.u16 %h1, NONE;\n" + expect(256) + "@!%p5 bra E;\n" + MULTICAST + f" {BUG}\nE:\n" + "WAIT\n" + SYNC, ("NONE", "3"), seeds=(0,)),
    Plant("st.async to a byte of no word", "misaligned", INIT + expect(256) + "AT " + SEND + f" {BUG}\nWAIT\n" + SYNC, ("AT", ""), seeds=(0,)),
    # mbarriers of other blocks.
    Plant("wait at the peer's mbarrier", "mbarrier-misuse", INIT + f"@%p0 mbarrier.arrive.shared::cta.b64 _, [%r2];\nW: mbarrier.try_wait.parity.shared::cta.b64 %p1, [WHOSE], 0; {BUG}\n@!%p1 bra W;\n" + SYNC, ("WHOSE", "%r2"), also=("out-of-bounds",)),
    Plant("mbarrier not yet initialised for the peer", "shared-race", SYNC + "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\nBETWEEN" + f"{REMOTE}\n" + "WAIT" + SYNC, ("BETWEEN", SYNC), seeds=(0,), also=("mbarrier-misuse", "missing-proxy-fence", "uninitialised")),
    Plant("initialised behind a relaxed arrival", "missing-proxy-fence", "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\nMBARRIER" + "barrier.cluster.arrive.relaxed.aligned;\n" + AWAIT + f"{REMOTE} {BUG}\n" + wait() + SYNC, ("MBARRIER", "@%p0 fence.mbarrier_init.release.cluster;\n"), also=("shared-race",)),
    Plant("one arrival too many", "mbarrier-misuse", INIT + REMOTE + "\nTWICE\n" + wait() + SYNC, ("TWICE", ""), seeds=(0,), also=("deadlock",)),
    Plant("mbarrier of another block than the bytes", "mbarrier-misuse", INIT + expect(256) + f"{SEND.replace('[%r13]', '[WHERE]')} {BUG}\nWAIT\n" + SYNC, ("WHERE", "%r13"), seeds=(0,)),
    # Transactions that do not add up across blocks.
    Plant("peer that does not expect a multicast", "exit-with-async", INIT + "mov.u16 %h1, 3;\nPEER" + "@!%p5 bra E;\n" + MULTICAST + "\nE:\n" + wait() + SYNC, ("PEER", expect(256)), seeds=(0,), also=("mbarrier-misuse",)),
    Plant("peer that expects half of a multicast", "mbarrier-misuse", INIT + "mov.u16 %h1, 3; selp.u32 %r21, 256, BYTES, %p5;\n" + expect(256).replace("256", "%r21") + "@!%p5 bra E;\n" + MULTICAST + "\nE:\n" + wait() + SYNC, ("BYTES", "256"), also=("deadlock", "exit-with-async", "shared-race")),
    Plant("multicast without the block itself", "deadlock", INIT + "mov.u16 %h1, OTHERS;\n" + expect(256) + "@!%p5 bra E;\n" + MULTICAST + "\nE:\n" + wait() + SYNC, ("OTHERS", "3"), also=("mbarrier-misuse",)),
    Plant("sent more than is expected", "mbarrier-misuse", INIT + expect(256).replace("256", "COUNT") + SEND + "\n" + wait() + SYNC, ("COUNT", "256"), also=("deadlock", "exit-with-async", "shared-race", "async-unwaited")),
    # What is on its way to another block, or from one.
    Plant("sent bytes read without a wait", "async-unwaited", INIT + expect(256) + SEND + "\nWAIT" + f"ld.shared.u32 %r21, [%r19]; {BUG}\nst.global.u32 [%d9], %r21;\nEND" + SYNC, ("WAIT", wait()), also=("shared-race", "uninitialised")),
    Plant("multicast into memory that the peer reads", "shared-race", OWN + INIT + "mov.u16 %h1, 3;\n" + expect(256) + "ld.shared.u32 %r21, [%r19];\nBETWEEN@!%p5 bra E;\n" + MULTICAST + f" {BUG}\nE:\n" + wait() + SYNC, ("BETWEEN", SYNC), also=("async-unwaited",)),
    Plant("multicast into memory that was written", "shared-race", OWN + INIT + "mov.u16 %h1, 3;\n" + expect(256) + "st.shared.u32 [%r19], %r0;\nBETWEEN@!%p5 bra E;\n" + MULTICAST + f" {BUG}\nE:\n" + wait() + SYNC, ("BETWEEN", SYNC), also=("async-overwrite",)),
    Plant("source of a copy to the peer written", "async-overwrite", OWN + FENCE + INIT + expect(256) + COPY + f"\nBETWEEN\nst.shared.u32 [%r19], 3; {BUG}\nEND" + SYNC, ("BETWEEN", wait() + SYNC), seeds=(0,), also=("shared-race", "exit-with-async")),
    Plant("copy to the peer without a fence", "missing-proxy-fence", OWN + "PROXY" + INIT + expect(256) + COPY + f" {BUG}\n" + wait() + SYNC, ("PROXY", FENCE)),
    Plant("what the peer stored, stored in bulk", "missing-proxy-fence", SYNC + "st.shared::cluster.u32 [%r20], %r17;\nPROXY" + SYNC
          + f"@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d9], [%r1], 256; {BUG}\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;\n" + SYNC, ("PROXY", "fence.proxy.async;\n")),
    # barrier.cluster itself.
    Plant("arrives twice", "barrier-mismatch", ARRIVE + f"BETWEENbarrier.cluster.arrive.release.aligned; {BUG}\n" + AWAIT, ("BETWEEN", AWAIT)),
    Plant("waits without arriving", "barrier-mismatch", f"FIRSTbarrier.cluster.wait.acquire.aligned; {BUG}\n", ("FIRST", ARRIVE)),
    Plant("one block does not arrive", "deadlock", INIT + "SKIP\n" + SYNC + "and.pred %p4, %p0, %p5;\n" + REMOTE.replace("%p0", "%p4") + "\nE: @%p5 bra F;\n" + wait() + "F:\n" + SYNC, ("SKIP", ""), also=("mbarrier-misuse",)),
    Plant("half of a warp arrives", "divergent-aligned", f"and.b32 %r21, %r0, 16; setp.eq.u32 %p4, %r21, 0;\n@!%p4 bra R;\nbarrier.cluster.arrive.release.aligned; {BUG}\nR:\n" + AWAIT, ("%r0, 16", "%r0, 64"), seeds=(0,)),
]  # fmt: skip

# What stands for a word in the faulty text, and in a twin whose edit is of something else.
FAULTY = {
    "LATE": OWN, "WHO": "", "SCOPE": "cta", "RANK": "2", "MASK": "4", "OTHERS": "2", "SKIP": "@!%p5 bra E;", "NONE": "0", "AT": "add.u32 %r20, %r20, 2;", "WHOSE": "%r13", "WHERE": "%r2",
    "TWICE": REMOTE, "PEER": "setp.eq.u32 %p4, %r10, 0;\n" + expect(256).replace("@%p0", "and.pred %p4, %p4, %p0;\n@%p4") + "@%p0 bra N; N: @%p4 bra M;\n@%p0 mbarrier.arrive.shared::cta.b64 _, [%r2];\nM:\n",
    "BYTES": "128", "COUNT": "128",
    **dict.fromkeys(("BARRIER", "EARLY", "BETWEEN", "LAST", "WAIT", "MBARRIER", "PROXY", "FIRST"), ""), "END": wait(label="L"),
}  # fmt: skip
TWIN = {**FAULTY, "LATE": "", "LAST": wait() + SYNC, "WAIT": wait(), "END": ""}


def text_of(plant: Plant, *, mended: bool) -> str:
    body = plant.body
    assert plant.edit[0] in body, plant.name
    if mended:
        body = body.replace(*plant.edit, 1)
    words = TWIN if mended else FAULTY
    for word in sorted(words, key=len, reverse=True):
        body = body.replace(word, words[word])
    return kernel(body)


def run(text: str, seed: int) -> simulator.Report:
    return simulator.launch(text, "k", 2, 64, [np.zeros(256, np.uint32)], seed=seed)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = text_of(plant, mended=False)
    for seed in plant.seeds:
        report = run(text, seed)
        found = [finding for finding in report.findings if finding.kind == plant.kind]
        assert found, f"expected {plant.kind}, but got {[str(f) for f in report.findings]}"
        assert BUG not in text or line_of(text, BUG) in {finding.line for finding in found}, [str(f) for f in found]
        assert {finding.kind for finding in report.findings} - set(plant.also) == {plant.kind}, [
            str(finding) for finding in report.findings
        ]
        assert any(plant.says in str(finding) for finding in found), [str(f) for f in found]
    for seed in (0, 1, 5):
        clean = run(text_of(plant, mended=True), seed)
        assert not clean.findings, [str(finding) for finding in clean.findings]


def test_plants_have_names_of_their_own():
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 30
