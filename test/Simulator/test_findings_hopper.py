# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel and its edit stand on one line each
"""Planted bugs in what engines do on sm_90a, each reported as what it is at its line, beside a corrected twin."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, MAP, MAPPED, bulk_load, descriptor, expect, kernel, tensor_load, wait
from snippets import line_of


@dataclasses.dataclass(frozen=True)
class Plant:
    """A faulty text, the mark that its reported line holds, and the edit that mends it."""

    name: str
    kind: str
    body: str
    edit: tuple[str, str]
    block: int = 128
    seeds: tuple[int, ...] = (0,)
    """Of the faulty text: some faults show in some orders only."""
    also: tuple[str, ...] = ()
    maps: bool = False
    shared: int = 8192
    attributes: str = ".maxntid 512 .minnctapersm 1"


BUG = "// BUG"
OWN = "shl.b32 %r4, %r0, 4; add.u32 %r5, %r1, %r4; st.shared.v4.u32 [%r5], {%r0, %r0, %r0, %r0};\n"
FENCE = "fence.proxy.async.shared::cta;\n"
STORE = (
    f"@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r1], 2048; {BUG}\n@%p0 cp.async.bulk.commit_group;\n"
)
DONE = "@%p0 cp.async.bulk.wait_group 0;\n"
READ = "@%p0 cp.async.bulk.wait_group.read 0;\n"
LOAD = INIT + expect(8192) + bulk_load(8192) + wait()
A, B = descriptor(0, 16, 1024, 128), descriptor(4096, 16, 1024, 128)
D = "{" + ", ".join(f"%f{i}" for i in range(4)) + "}"
ZERO = "".join(f"mov.f32 %f{i}, 0f00000000;\n" for i in range(4))


def multiply(b: int | str = B, scale: str = "%p3", d: str = D, a: int | str = A) -> str:
    return f"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {d}, {a}, {b}, {scale}, 1, 1, 0, 0;"


ADDS = "setp.eq.u32 %p3, 1, 1;\n"
FENCED, COMMIT, WAIT = (
    "wgmma.fence.sync.aligned;\n",
    "wgmma.commit_group.sync.aligned;\n",
    "wgmma.wait_group.sync.aligned 0;\n",
)
READY = "LOADED\n" + ZERO + ADDS
GROUP = FENCED + multiply() + "\n" + COMMIT
# A wgmma is of four warps at once: thread 77 tells a fifth that it is over, as CUTLASS's pipelines do in clusters.
ONE_SAYS = (
    "@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;\nbar.sync 0;\nsetp.ge.u32 %p4, %r0, 128;\n@%p4 bra P;\n"
    + GROUP + "AWAIT\nsetp.eq.u32 %p5, %r0, 77;\n@%p5 mbarrier.arrive.shared::cta.b64 _, [%r3];\n" + WAIT + "bra E;\n"
    + "P: " + wait(0, "%r3", "L") + "setp.eq.u32 %p5, %r0, 128;\n"
)  # fmt: skip
# All threads load A, as kernels of mixed types do; the product that needs it is over when one of them says so.
FROM_REGISTERS = (
    "".join(f"ld.shared.u32 %a{i}, [%r1];\n" for i in range(4)) + FENCED
    + multiply(a="{%a0, %a1, %a2, %a3}").replace(", 0, 0;", ", 0;") + "\n" + COMMIT
)  # fmt: skip

PLANTS = [
    # The asynchronous proxy.
    Plant("bulk store without a fence", "missing-proxy-fence", OWN + "PROXY" + "bar.sync 0;\n" + STORE + DONE, ("PROXY", FENCE)),
    Plant("fence before the writes", "missing-proxy-fence", "FIRST" + OWN + "SECOND" + "bar.sync 0;\n" + STORE + DONE, ("SECOND", FENCE)),
    Plant("fence by one thread before the barrier", "missing-proxy-fence", OWN + "ONE" + FENCE + "bar.sync 0;\n" + STORE + DONE, ("ONE", "")),
    Plant("wgmma on what threads wrote", "missing-proxy-fence",
          "shl.b32 %r4, %r0, 6; add.u32 %r5, %r1, %r4;\n" + "".join(f"st.shared.v4.u32 [%r5+{16 * i}], {{0, 0, 0, 0}};\n" for i in range(4))
          + "PROXY" + "bar.sync 0;\n" + ZERO + ADDS + FENCED + multiply() + f" {BUG}\n" + COMMIT + WAIT, ("PROXY", FENCE)),
    Plant("wgmma on cp.async", "missing-proxy-fence",
          "shl.b32 %r4, %r0, 6; add.u32 %r5, %r1, %r4; cvt.u64.u32 %d2, %r4; add.s64 %d2, %d0, %d2;\n"
          + "".join(f"cp.async.cg.shared.global [%r5+{16 * i}], [%d2+{16 * i}], 16;\n" for i in range(4))
          + "cp.async.wait_all;\n" + "PROXY" + "bar.sync 0;\n" + ZERO + ADDS + FENCED + multiply() + f" {BUG}\n" + COMMIT + WAIT, ("PROXY", FENCE)),
    # Copies that are read too early.
    Plant("load read without a wait", "async-unwaited", INIT + expect(512) + bulk_load(512) + "WAIT\nshl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\n"
          f"ld.shared.u32 %r6, [%r5]; {BUG}\nbar.sync 0;", ("WAIT", wait()), seeds=(0, 1, 2, 3), also=("exit-with-async", "shared-race")),
    Plant("mbarrier asked only once", "async-unwaited", INIT + expect(512) + bulk_load(512) + "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\nAGAIN\n"
          f"shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\nld.shared.u32 %r6, [%r5]; {BUG}\nbar.sync 0;\n" + wait(label="L"), ("AGAIN", "@!%p1 bra W;"), seeds=(2, 4, 5, 8), also=("shared-race",)),
    Plant("only one warp waits", "async-unwaited", INIT + expect(512) + bulk_load(512)
          + "setp.ge.u32 %p4, %r0, 32;\nSKIP" + wait() + "E:\nshl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\n"
          f"ld.shared.u32 %r6, [%r5]; {BUG}\nbar.sync 0;\n" + wait(label="L"), ("SKIP", ""), seeds=(0, 1, 2, 3), also=("shared-race",)),
    Plant("waits for another mbarrier", "async-unwaited", INIT + "@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;\nbar.sync 0;\n"
          + expect(512) + bulk_load(512) + expect(512, "%r3") + bulk_load(512, to="%r1+512", barrier="%r3") + "WAIT\n" + wait(barrier="%r3", label="O")
          + f"shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\nld.shared.u32 %r6, [%r5]; {BUG}\nbar.sync 0;\n" + wait(label="L"), ("WAIT", wait()), seeds=(0, 1, 2, 3)),
    Plant("wgmma before the load has come", "async-unwaited", INIT + expect(8192) + bulk_load(8192) + "WAIT\n" + ZERO + ADDS
          + FENCED + multiply() + f" {BUG}\n" + COMMIT + WAIT + wait(label="L"), ("WAIT", wait()), seeds=(0, 1, 2, 3), also=("shared-race", "async-overwrite")),
    Plant("store of what a load may write", "async-unwaited", INIT + expect(2048) + bulk_load(2048) + "WAIT\n" + STORE + DONE + wait(label="L"), ("WAIT", wait()), seeds=(0, 1, 2, 3), also=("async-overwrite",)),
    Plant("no barrier behind the init of an mbarrier", "shared-race", "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\nBEGUN" + expect(512) + bulk_load(512)
          + wait().replace(";\n", f"; {BUG}\n", 1) + "bar.sync 0;\n", ("BEGUN", "bar.sync 0;\n"), seeds=(0, 2, 4, 6), also=("mbarrier-misuse", "deadlock")),
    # Memory that is used while engines work on it.
    Plant("destination written", "async-overwrite", INIT + expect(2048) + bulk_load(2048) + "WAIT\n" + f"@%p0 st.shared.u32 [%r1], 3; {BUG}\n" + wait(label="L"),
          ("WAIT", wait())),
    Plant("source of a store written", "async-overwrite", OWN + FENCE + "bar.sync 0;\n" + STORE.replace(BUG, "") + f"READ\n@%p0 st.shared.u32 [%r1], 3; {BUG}\n" + DONE,
          ("READ", READ)),
    Plant("read of another group", "async-overwrite", OWN + FENCE + "bar.sync 0;\n" + STORE.replace(BUG, "") + READ.replace("0;", "1;")
          + f"@%p0 st.shared.u32 [%r1], 3; {BUG}\n" + DONE, ("read 1;", "read 0;")),
    Plant("operand of a wgmma written", "async-overwrite", READY + GROUP + f"AWAIT\nbar.sync 0;\n@%p0 st.shared.u32 [%r1], 3; {BUG}\n" + WAIT, ("AWAIT", WAIT), also=("shared-race",)),
    Plant("load into the operand of a wgmma", "async-overwrite", READY + GROUP + "AWAIT\nbar.sync 0;\n" + expect(512)
          + bulk_load(512).strip() + f" {BUG}\n" + wait(1, label="L") + WAIT, ("AWAIT", WAIT)),
    Plant("operand written once one thread of four warps has said so", "async-overwrite", READY + ONE_SAYS + f"@%p5 st.shared.u32 [%r1], 3; {BUG}\nE:", ("AWAIT", WAIT), block=160, also=("shared-race",)),
    Plant("A loaded from what a thread of another warp gives away", "shared-race", READY + ONE_SAYS.replace(GROUP, FROM_REGISTERS) + f"@%p5 st.shared.u32 [%r1], 3; {BUG}\nE:", ("AWAIT", WAIT), block=160, also=("async-overwrite",)),
    # Leaving while they do.
    Plant("store that nobody awaits", "exit-with-async", OWN + FENCE + "bar.sync 0;\n" + STORE.replace(BUG, "") + "READ", ("READ", READ)),
    Plant("load that nobody awaits", "exit-with-async", INIT + expect(512) + bulk_load(512) + "WAIT", ("WAIT", wait())),
    # Transactions.
    Plant("arrival after the copy without its bytes", "mbarrier-misuse", INIT + bulk_load(512) + f"@%p0 ARRIVE [%r2]COUNT; {BUG}\n" + wait(),
          ("ARRIVE [%r2]COUNT", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512"), also=("exit-with-async",)),
    Plant("fewer bytes than are copied", "mbarrier-misuse", INIT + expect(512) + bulk_load(512) + bulk_load(512, to="%r1+512").strip() + f" {BUG}\n" + wait(), ("], 512;\n", "], 1024;\n")),
    Plant("more bytes than are copied", "mbarrier-misuse", INIT + expect(1024) + bulk_load(512) + wait().replace("\n", f" {BUG}\n", 1), ("], 1024", "], 512"), also=("deadlock",)),
    Plant("too many bytes", "mbarrier-misuse", INIT + f"@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 1048576; {BUG}\n", ("1048576", "1048575")),
    Plant("copy on what is no mbarrier", "mbarrier-misuse", "START\n" + "bar.sync 0;\n" + f"{bulk_load(512).strip()} {BUG}\n" + "bar.sync 0;\nEND",
          ("START", INIT + expect(512)), also=("exit-with-async",)),
    # Accumulators.
    Plant("accumulator read before the wait", "wgmma-accumulator", READY + GROUP + f"AWAIT\nadd.f32 %f9, %f0, %f1; {BUG}\n" + WAIT, ("AWAIT", WAIT)),
    Plant("accumulator written before the wait", "wgmma-accumulator", READY + GROUP + f"AWAIT\nmov.f32 %f1, 0f00000000; {BUG}\n" + WAIT, ("AWAIT", WAIT)),
    Plant("wait that leaves the group", "wgmma-accumulator", READY + GROUP + "wgmma.wait_group.sync.aligned 1;\n" + f"add.f32 %f9, %f0, %f1; {BUG}\n" + WAIT, ("aligned 1;", "aligned 0;")),
    Plant("no fence after the accumulators were set", "wgmma-accumulator", READY + "FENCE\n" + multiply() + f" {BUG}\n" + COMMIT + WAIT, ("FENCE", FENCED)),
    Plant("accumulator scaled between two without a fence", "wgmma-accumulator", READY + GROUP + WAIT + "mul.f32 %f0, %f0, %f0;\nFENCE\n" + multiply() + f" {BUG}\n" + COMMIT + WAIT, ("FENCE", FENCED)),
    Plant("accumulators lost at the end", "wgmma-accumulator", READY + GROUP + "AWAIT", ("AWAIT", WAIT)),
    Plant("wgmma that is not committed", "wgmma-accumulator", READY + FENCED + multiply() + "\nCOMMIT\n" + WAIT + f"add.f32 %f9, %f0, %f1; {BUG}\n", ("COMMIT", COMMIT)),
    Plant("A register written in flight", "wgmma-accumulator", READY + "mov.b32 %a0, 0; mov.b32 %a1, 0; mov.b32 %a2, 0; mov.b32 %a3, 0;\n" + FENCED
          + multiply(a="{%a0, %a1, %a2, %a3}").replace(", 0, 0;", ", 0;") + "\n" + COMMIT + f"AWAIT\nmov.b32 %a1, 5; {BUG}\n" + WAIT, ("AWAIT", WAIT)),
    Plant("accumulators shifted by two", "wgmma-accumulator", READY + "mov.f32 %f4, %f0; mov.f32 %f5, %f0;\n" + GROUP + "AWAIT\n" + multiply(d="{%f2, %f3, %f4, %f5}") + f" {BUG}\n" + COMMIT + WAIT, ("AWAIT", WAIT)),
    # Warpgroups.
    Plant("three warps", "wgmma-warpgroup", READY + "setp.ge.u32 %p4, %r0, 96;\nLEAVE\n" + FENCED + multiply() + "\n" + COMMIT + WAIT, ("LEAVE", "")),
    Plant("block of three warps", "wgmma-warpgroup", READY + "LESS\n" + FENCED + multiply() + f" {BUG}\n" + COMMIT + WAIT + "E:", ("LESS", "bra E;"), block=96),
    Plant("descriptor by lane", "wgmma-warpgroup", READY + f"mov.b64 %d5, {B}; setp.eq.u32 %p4, %r0, 5; LANE\n" + FENCED + multiply("%d5") + f" {BUG}\n" + COMMIT + WAIT, ("LANE", "")),
    Plant("descriptor by warp", "wgmma-warpgroup", READY + f"mov.b64 %d5, {B}; setp.ge.u32 %p4, %r0, 64; LANE\n" + FENCED + multiply("%d5") + f" {BUG}\n" + COMMIT + WAIT, ("LANE", "")),
    Plant("scale-d by warp", "wgmma-warpgroup", READY + "setp.ge.u32 %p4, %r0, 64;\nSCALE\n" + FENCED + multiply() + f" {BUG}\n" + COMMIT + WAIT, ("SCALE", "")),
    Plant("base offset", "wgmma-warpgroup", READY + FENCED + multiply(B | 1 << 49) + f" {BUG}\n" + COMMIT + WAIT, (str(B | 1 << 49), str(B))),
    # Registers.
    Plant("fewer registers by inc", "register-limit", f"setmaxnreg.inc.sync.aligned.u32 240;\nsetmaxnreg.inc.sync.aligned.u32 40; {BUG}", ("inc.sync.aligned.u32 40", "dec.sync.aligned.u32 40"), attributes=".maxntid 128 .minnctapersm 1"),
    Plant("more registers by dec", "register-limit", f"setmaxnreg.dec.sync.aligned.u32 40;\nsetmaxnreg.WAY.sync.aligned.u32 48; {BUG}", ("WAY", "inc")),
    Plant("setmaxnreg that ptxas ignores", "register-limit", f"setmaxnreg.dec.sync.aligned.u32 40; {BUG}", ("setmaxnreg.dec.sync.aligned.u32 40;", ""), attributes=""),
    Plant("setmaxnreg of a block of any size", "register-limit", f"setmaxnreg.dec.sync.aligned.u32 40; {BUG}", ("setmaxnreg.dec.sync.aligned.u32 40;", ""), attributes=".minnctapersm 1"),
    Plant("more registers than there are", "deadlock", f"setmaxnreg.dec.sync.aligned.u32 FEW;\nbar.sync 0;\nsetp.ge.u32 %p4, %r0, 128;\n@%p4 bra M;\nsetmaxnreg.inc.sync.aligned.u32 240; {BUG}\nM:",
          ("FEW", "24"), block=512),
    # Bounds.
    Plant("copy past shared memory", "out-of-bounds", INIT + expect(512) + f"{bulk_load(512, to='%r1+8064').strip()} {BUG}\nWAIT", ("8064", "1024")),
    Plant("copy past the buffer", "out-of-bounds", INIT + expect(512) + f"{bulk_load(512, source='%d0+16000').strip()} {BUG}\nWAIT", ("16000", "1024"), also=("exit-with-async",)),
    Plant("size of no 16 bytes", "misaligned", INIT + expect(512) + "mov.u32 %r30, 504;\n" + f"{bulk_load('%r30').strip()} {BUG}\nWAIT", ("504", "512"), also=("exit-with-async",)),
    Plant("box that begins at no 16 bytes of a line", "misaligned", MAPPED + INIT + expect(1024) + f"{tensor_load((0, 4), 1024).strip()} {BUG}\nWAIT", (tensor_load((0, 4), 1024).strip(), tensor_load((4, 8), 1024).strip()), maps=True),
    Plant("box at a place of no 128 bytes", "misaligned", MAPPED + INIT + expect(1024) + f"{tensor_load((0, 0), 1024, to='%r1+64').strip()} {BUG}\nWAIT", ("%r1+64", "%r1+128"), maps=True),
    Plant("map of another rank", "out-of-bounds", MAPPED + INIT + expect(1024) + f"{tensor_load((0, 0, 0), 1024).strip()} {BUG}\nWAIT", (tensor_load((0, 0, 0), 1024).strip(), tensor_load((0, 0), 1024).strip()), maps=True),
    Plant("wgmma past shared memory", "out-of-bounds", READY + FENCED + multiply(descriptor(0x3F000, 16, 1024, 128)) + f" {BUG}\n" + COMMIT + WAIT, (str(descriptor(0x3F000, 16, 1024, 128)), str(B))),
]  # fmt: skip

# What stands for a word in the faulty text, and in a twin whose edit is of something else.
FAULTY = {
    "LOADED": LOAD, "FIRST": FENCE, "ONE": "@%p0 ", "SKIP": "@%p4 bra E;\n", "ARRIVE [%r2]COUNT": "mbarrier.arrive.shared::cta.b64 _, [%r2]", "LEAVE": "@%p4 bra Q;",
    "LANE": "@%p4 add.s64 %d5, %d5, 2;", "SCALE": "@%p4 setp.eq.u32 %p3, 0, 1;", "WAY": "dec", "FEW": "120",
    **dict.fromkeys(("PROXY", "AGAIN", "SECOND", "WAIT", "READ", "AWAIT", "COMMIT", "FENCE", "START", "END", "LESS", "BEGUN"), ""),
}  # fmt: skip
TWIN = {**FAULTY, "WAIT": wait(), "END": wait()}


def text_of(plant: Plant, *, mended: bool) -> str:
    body = plant.body
    assert plant.edit[0] in body, plant.name
    if mended:
        body = body.replace(*plant.edit, 1)
    words = TWIN if mended else FAULTY
    for word in sorted(words, key=len, reverse=True):
        body = body.replace(word, words[word])
    body += "\nQ:" if "three warps" in plant.name else ""
    parameters = MAP if plant.maps else ".param .u64 x"
    return kernel(body, parameters=parameters, shared=plant.shared, attributes=plant.attributes)


def run(plant: Plant, text: str, seed: int) -> simulator.Report:
    mapped = [simulator.tensor_map(np.zeros((64, 64), np.uint16), (16, 32), "64B")] if plant.maps else []
    return simulator.launch(text, "k", 1, plant.block, [*mapped, np.zeros(4096, np.uint32)], seed=seed)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = text_of(plant, mended=False)
    for seed in plant.seeds:
        report = run(plant, text, seed)
        found = [finding for finding in report.findings if finding.kind == plant.kind]
        assert found, f"expected {plant.kind}, but got {[str(f) for f in report.findings]}"
        assert BUG not in text or line_of(text, BUG) in {finding.line for finding in found}, [str(f) for f in found]
        assert {finding.kind for finding in report.findings} - set(plant.also) == {plant.kind}, [
            str(finding) for finding in report.findings
        ]
    for seed in (0, 1, 5):
        clean = run(plant, text_of(plant, mended=True), seed)
        assert not clean.findings, [str(finding) for finding in clean.findings]


def test_plants_have_names_of_their_own():
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 40
