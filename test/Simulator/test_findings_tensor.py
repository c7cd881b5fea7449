# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- a kernel stands on one line
"""Planted bugs in what is done with tensor memory, each reported as what it is at its line, beside a corrected twin."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from hopper_kernels import expect
from snippets import line_of
from tensor_kernels import AFTER, BEFORE, INIT, LOADED, MEET, STORED, alloc, commit, dealloc, kernel, load, store, wait

BUG = "// BUG"


@dataclasses.dataclass(frozen=True)
class Plant:
    """A body that is faulty, or mended; the line that the finding names holds the mark, where any does."""

    name: str
    kind: str
    body: Callable[[bool], str]
    seeds: tuple[int, ...] = (0,)
    """Of the faulty text: some faults show in some orders only."""
    also: tuple[str, ...] = ()
    """Further kinds that the same fault is."""
    advised: bool = False


def marked(text: str) -> str:
    return f"{text.rstrip()} {BUG}\n"


A, B = tensor.descriptor(0, 16, 1024, 128), tensor.descriptor(16384, 16, 1024, 128)
SHAPE = tensor.instruction(128, 32, "f16", "f16")
SIZE = 16384 + 4096


def bring(count: int = SIZE) -> str:
    return f"{expect(count)}@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], {count}, [%r2];\n"


START = INIT + bring() + wait() + alloc(64) + "setp.ne.u32 %p3, 0, 0; setp.eq.u32 %p4, 0, 0;\n"


def multiply(*, a: int | str = A, b: int = B, shape: int = SHAPE, d: str = "%t0", adds: str = "%p3") -> str:
    return tensor.multiply("f16", a, b, shape, d=d, adds=adds)


def done(parity: int = 0, label: str = "V") -> str:
    """Committed, and awaited by all threads."""
    return commit() + wait(parity, "%r3", label) + AFTER


ALL = multiply() + done()
#: The same at the mbarrier that the operands came with, whose first phase is over.
NEXT = commit("%r2") + wait(1, "%r2", "U") + AFTER
FREE = dealloc(64)
FREED = "@%q0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 "
ALLOCATED = "@%q0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], "
#: %r5 is where the thread's 4 bytes of shared memory lie.
OWN = "shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\n"
PROXY = "fence.proxy.async.shared::cta;\n"
ZEROS = "".join(f"mov.b32 %v{i}, 0;\n" for i in range(32))
OUT = f"mul.wide.u32 %d4, %r0, 4; add.s64 %d3, %d0, %d4; st.global.u32 [%d3], %v0; {BUG}\n"
READ = load(8)
USED = "".join(f"add.u32 %v200, %v{i}, %v{i + 1};\n" for i in range(0, 8, 2))
WRITE = ZEROS + store(32)


COPIED = tensor.descriptor(0, 16, 128, 0)


def copy(shape: str = "32x128b.warpx4", to: str = "%t0+32", descriptor: int = COPIED) -> str:
    """tcgen05.cp of what begins shared memory, by thread 0."""
    address = f"add.u32 %t9, %t0, {to.split('+')[1]}; " if "+" in to else f"mov.b32 %t9, {to}; "
    return f"{address}mov.b64 %d9, {descriptor}; @%p0 tcgen05.cp.cta_group::1.{shape} [%t9], %d9;\n"


#: Of e4m3 with scales of 32 elements each.
SCALED = tensor.TYPES["e4m3"] << 7 | 32 >> 3 << 17 | 1 << 23 | 1 << 27


def scaled(a: str = "%t0+32", b: str = "%t0+36", shape: int = SCALED) -> str:
    scales = f"add.u32 %t10, %t0, {a.split('+')[1]}; add.u32 %t11, %t0, {b.split('+')[1]}; "
    return scales + tensor.multiply("mxf8f6f4.block_scale", A, B, shape, masks=", [%t10], [%t11]")


def unless(mended: bool, text: str, other: str = "") -> str:
    return other if mended else text


def operands(name: str, wrong: str, right: str) -> Plant:
    """A faulty tcgen05.mma, which is not issued."""
    return Plant(
        name,
        "tensor-operands",
        lambda mended: START + marked(right if mended else wrong) + (done() if mended else "") + FREE,
    )


PLANTS = [
    # Allocations.
    Plant("columns that are not given back", "tensor-allocation", lambda m: START + ALL + READ + LOADED + (FREE if m else "")),
    Plant("columns given back twice", "tensor-allocation", lambda m: START + MEET + f"{FREED}%t0, 64;\n" + unless(m, marked(f"{FREED}%t0, 64;"))),
    Plant("fewer columns given back", "tensor-allocation", lambda m: START + MEET + marked(f"{FREED}%t0, {64 if m else 32};")),
    Plant("allocation after the right is given up", "tensor-allocation", lambda m: unless(m, "@%q0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n")
          + marked(f"{ALLOCATED}32;") + "bar.sync 0;\n" + (f"ld.shared.b32 %t0, [%r9];\n{FREED}%t0, 32;" if m else "")),
    Plant("larger allocation after a smaller one", "tensor-allocation", lambda m: alloc(32) + "mov.b32 %t8, %t0;\nbar.sync 0;\n" + marked(f"{ALLOCATED}{32 if m else 64};")
          + f"bar.sync 0;\nld.shared.b32 %t0, [%r9];\n{FREED}%t0, {32 if m else 64};\n{FREED}%t8, 32;\n"),
    Plant("number of columns that is no power of two", "tensor-allocation", lambda m: f"mov.b32 %r10, {32 if m else 48};\n" + marked(f"{ALLOCATED}%r10;") + "bar.sync 0;\n"
          + (f"ld.shared.b32 %t0, [%r9];\n{FREED}%t0, 32;" if m else "")),
    Plant("more columns than there are", "deadlock", lambda m: alloc(512) + "mov.b32 %t8, %t0;\nbar.sync 0;\n" + unless(m, f"{ALLOCATED}512;\n") + f"bar.sync 0;\n{FREED}%t8, 512;\n", also=("tensor-allocation",)),
    Plant("load of columns that are not allocated", "tensor-allocation", lambda m: START + ALL + marked(load(8, address=f"%t1+{0 if m else 64}")) + LOADED + FREE),
    Plant("store beyond tensor memory", "tensor-allocation", lambda m: START + ZEROS + marked(store(32, address=f"%t1+{0 if m else 500}")) + STORED + FREE),
    Plant("product beyond its allocation", "tensor-allocation", lambda m: START + marked(multiply(d=f"%t0+{32 if m else 48}")) + (done() if m else "") + FREE),
    Plant("load after the columns are given back", "tensor-allocation", lambda m: START + ALL + unless(m, FREE) + marked(READ) + LOADED + (FREE if m else ""), also=("tensor-race",)),
    # Operands.
    Plant("lanes of another warp", "tensor-operands", lambda m: START + ALL + unless(m, "xor.b32 %t1, %t1, 0x200000;\n") + marked(READ) + LOADED + FREE),
    Plant("lanes between those of a shape", "tensor-operands", lambda m: START + ALL + unless(m, "add.u32 %t1, %t1, 0x80000;\n") + marked(load(8, shape="16x64b")) + LOADED + FREE),
    Plant("address that differs by lane", "tensor-operands", lambda m: START + ALL + "setp.eq.u32 %p5, %r0, 5;\n" + unless(m, "@%p5 add.u32 %t1, %t1, 1;\n") + marked(READ) + LOADED + FREE),
    operands("descriptor of wgmma", multiply(b=B ^ 1 << 46), multiply()),
    operands("swizzle mode that is none", multiply(b=B | 1 << 61), multiply()),
    operands("type that the kind does not have", multiply(shape=SHAPE | 2 << 7), multiply()),
    operands("sparse instruction descriptor", multiply(shape=SHAPE | 4), multiply()),
    operands("reserved bits of the instruction descriptor", multiply(shape=SHAPE | 1 << 29), multiply()),
    operands("rows that a block does not have", multiply(shape=SHAPE + (1 << 24)), multiply()),
    operands("columns that are no multiple of 8", multiply(shape=SHAPE & ~(63 << 17)), multiply()),
    operands("D that begins at lane 16", multiply(d="%t0+1048576"), multiply()),
    operands("A at other lanes than D", multiply(a="[%t0+1048608]", adds="%p3"), multiply()),
    Plant("operand beyond shared memory", "out-of-bounds", lambda m: START + marked(multiply(b=B if m else tensor.descriptor(0x3F000, 16, 1024, 128))) + (done() if m else "") + FREE),
    Plant("base offset, which is not computed", "unsupported", lambda m: START + marked(multiply(b=B if m else B | 1 << 49)) + (done() if m else "") + FREE),
    # Waits.
    Plant("product that is not committed", "tensor-race", lambda m: START + multiply() + (done() if m else "") + marked(READ) + LOADED + FREE, (0, 1, 2), ("exit-with-async",)),
    Plant("commit that is not awaited", "tensor-race", lambda m: START + multiply() + (done() if m else commit()) + marked(READ) + LOADED + FREE, (0, 1, 2), ("exit-with-async",)),
    Plant("commit before the product", "tensor-race", lambda m: START + unless(m, commit()) + multiply() + (done() if m else wait(0, "%r3", "V") + AFTER) + marked(READ) + LOADED + FREE, (0, 1, 2), ("exit-with-async",)),
    Plant("wait of one thread", "tensor-race", lambda m: START + multiply() + commit() + unless(m, "@!%p0 bra V2;\n") + wait(0, "%r3", "V") + "V2: " + AFTER + marked(READ) + LOADED + FREE, (0, 1, 2)),
    Plant("store that is not awaited before a load", "tensor-race", lambda m: START + WRITE + (STORED if m else "") + marked(READ) + LOADED + STORED + FREE, (0, 1)),
    Plant("store that is not awaited before a product", "tensor-race", lambda m: START + WRITE + (STORED if m else "") + MEET + marked(multiply(adds="%p4")) + done() + STORED + FREE, (0, 1)),
    Plant("load that is not awaited before a store", "tensor-race", lambda m: START + ALL + READ + (LOADED if m else "") + ZEROS + marked(store(32)) + STORED + LOADED + FREE),
    Plant("load that is not awaited before a product", "tensor-race", lambda m: START + ALL + READ + (LOADED if m else "") + MEET + marked(multiply()) + NEXT + LOADED + FREE),
    Plant("load that is not awaited before the end of its columns", "tensor-race", lambda m: START + ALL + READ + (LOADED if m else "") + MEET + marked(f"{FREED}%t0, 64;")),
    Plant("store that is never awaited", "exit-with-async", lambda m: START + WRITE + (STORED if m else "") + FREE, also=("tensor-race",)),
    Plant("store awaited as a load", "tensor-race", lambda m: START + WRITE + (STORED if m else LOADED) + marked(READ) + LOADED + STORED + FREE),
    # Order between threads.
    Plant("no barrier between a store and a product", "tensor-race", lambda m: START + WRITE + STORED + BEFORE + ("bar.sync 0;\n" if m else "") + AFTER + marked(multiply(adds="%p4")) + done() + FREE, (3, 4)),
    Plant("no barrier between loads and the next product", "tensor-race", lambda m: START + ALL + READ + LOADED + BEFORE + ("bar.sync 0;\n" if m else "") + AFTER + marked(multiply()) + NEXT + FREE, (1, 4, 5)),
    Plant("no barrier before columns are given back", "tensor-race", lambda m: START + ALL + READ + LOADED + (MEET if m else "") + marked(f"{FREED}%t0, 64;"), (1, 4, 5), ("tensor-allocation",)),
    Plant("product of another shape into one in flight", "tensor-race", lambda m: START + multiply() + (done() if m else "") + marked(multiply(shape=tensor.instruction(128, 16, "f16", "f16"))) + NEXT + FREE, (0, 1)),
    Plant("A of a product in flight", "tensor-race", lambda m: START + multiply() + (done() if m else "") + marked(multiply(a="[%t0]", d="%t0+32")) + NEXT + FREE, (0, 1)),
    Plant("product into the A of one in flight", "tensor-race", lambda m: START + WRITE + STORED + MEET + multiply(a="[%t0]", d="%t0+32") + (done() if m else "") + marked(multiply()) + NEXT + FREE, (0, 1), advised=True),
    Plant("no fence before a load", "tensor-race", lambda m: START + multiply() + commit() + wait(0, "%r3", "V") + (AFTER if m else "") + marked(READ) + LOADED + FREE, advised=True),
    Plant("no fence behind a store", "tensor-race", lambda m: START + WRITE + STORED + (BEFORE if m else "") + "bar.sync 0;\n" + AFTER + marked(multiply(adds="%p4")) + done() + FREE, advised=True),
    Plant("no fence before a product", "tensor-race", lambda m: START + WRITE + STORED + BEFORE + "bar.sync 0;\n" + (AFTER if m else "") + marked(multiply(adds="%p4")) + done() + FREE, advised=True),
    Plant("load that is read and not awaited before a product", "tensor-race", lambda m: START + ALL + READ + USED + (LOADED if m else "") + MEET + marked(multiply()) + NEXT + FREE, advised=True),
    Plant("load of which one register is not read before a product", "tensor-race", lambda m: START + ALL + READ + (LOADED if m else "") + USED.replace("%v7", "%v6") + MEET + marked(multiply()) + NEXT + FREE),
    # Shared memory.
    Plant("operand written in flight", "async-overwrite", lambda m: START + OWN + multiply() + (done() if m else "") + marked("st.shared.u32 [%r5], 1;") + (done() if not m else "") + FREE, (0,), ("shared-race",)),
    Plant("operand written after a product that is not awaited", "shared-race", lambda m: START + OWN + multiply() + (done() if m else commit()) + marked("@%p0 st.shared.u32 [%r5], 1;") + (wait(0, "%r3", "V") + AFTER if not m else "") + FREE, (2, 3, 6)),
    Plant("operand written without a fence between proxies", "missing-proxy-fence", lambda m: START + OWN + "st.shared.u32 [%r5], 0;\n" + (PROXY if m else "") + "bar.sync 0;\n" + marked(multiply()) + done() + FREE),
    Plant("operand written by threads that nothing orders", "shared-race", lambda m: START + OWN + f"st.shared.u32 [%r5], 0;\n{PROXY}" + ("bar.sync 0;\n" if m else "") + marked(multiply()) + done() + FREE, (0, 1, 2), ("async-overwrite", "missing-proxy-fence")),
    Plant("operand that a copy still brings", "async-unwaited", lambda m: START + bring() + (wait(1, "%r2", "X") if m else "") + marked(multiply()) + done() + unless(m, wait(1, "%r2", "X")) + FREE, (0, 1), ("async-overwrite",)),
    Plant("operand overwritten by a copy without a wait", "async-overwrite", lambda m: START + multiply() + (done() if m else "") + marked(bring()) + wait(1, "%r2", "X") + unless(m, done()) + FREE, (0,)),
    # Copies and scales.
    Plant("copy that is not awaited before a load", "tensor-race", lambda m: START + copy(to="%t0+0") + (done() if m else "") + marked(load(4)) + LOADED + (done() if not m else "") + FREE, (0, 1)),
    Plant("copy beyond its allocation", "tensor-allocation", lambda m: START + marked(copy(to=f"%t0+{32 if m else 64}")) + (done() if m else "") + FREE),
    Plant("copy to lane 32", "tensor-operands", lambda m: START + marked(copy(to=f"%t0+{0 if m else 0x200000}")) + (done() if m else "") + FREE),
    Plant("copy of what a thread wrote without a fence between proxies", "missing-proxy-fence", lambda m: START + "@%p0 st.shared.u32 [%r1], 0;\n" + (PROXY if m else "") + marked(copy()) + done() + FREE),
    Plant("what is copied written in flight", "async-overwrite", lambda m: START + copy() + (done() if m else "") + marked("@%p0 st.shared.u32 [%r1], 0;") + (done() if not m else "") + FREE, (0,)),
    Plant("copy into what a load still reads", "tensor-race", lambda m: START + ALL + READ + (LOADED if m else "") + MEET + marked(copy(to="%t0+0")) + NEXT + LOADED + FREE),
    Plant("copy over a copy in flight", "tensor-race", lambda m: START + copy() + (done() if m else "") + marked(copy()) + NEXT + FREE, (0, 1), advised=True),
    Plant("scales that nothing wrote", "uninitialised", lambda m: START + copy(to="%t0+32") + (copy(to="%t0+36") if m else "") + scaled() + done() + load(1) + LOADED + OUT + FREE),
    Plant("scales of one part of the lanes", "uninitialised", lambda m: START + copy(to="%t0+36") + ("" if not m else copy(to="%t0+32")) + unless(m, f"{MEET}setp.lt.u32 %p5, %r0, 32;\nmov.b32 %v0, 0;\n@%p5 tcgen05.st.sync.aligned.32x32b.x4.b32 [%t0+32], {{%v0, %v0, %v0, %v0}};\n{STORED}{MEET}") + scaled() + done() + load(1) + LOADED + OUT + FREE),
    Plant("scales beyond their allocation", "tensor-allocation", lambda m: START + copy(to="%t0+32") + copy(to="%t0+36") + marked(scaled(b=f"%t0+{36 if m else 64}")) + done() + FREE),
    Plant("place of scales that their number does not divide", "tensor-operands", lambda m: START + copy(to="%t0+32") + copy(to="%t0+36")
          + marked(tensor.multiply("mxf4.block_scale", A, B, 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 1 << 23 | 1 << 27 | (2 if m else 1) << 4, masks=", [%t9], [%t9]")) + done() + FREE),
    Plant("store of scales that is not awaited", "tensor-race", lambda m: START + copy(to="%t0+36") + "".join(f"mov.b32 %v{i}, 0;\n" for i in range(4)) + store(4, address="%t1+32") + (STORED if m else "") + MEET + marked(scaled()) + done() + STORED + FREE, (0, 1)),
    # Values, mbarriers, ends.
    Plant("columns that nothing wrote", "uninitialised", lambda m: START + (ALL if m else "") + load(1) + LOADED + OUT + FREE),
    Plant("accumulator that nothing wrote", "uninitialised", lambda m: START + multiply(adds="%p3" if m else "%p4") + done() + load(1) + LOADED + OUT + FREE),
    Plant("commit to what is no mbarrier", "mbarrier-misuse", lambda m: START + "mov.u32 %r20, %r3;\n" + unless(m, "mov.u32 %r20, %r1;\n") + multiply() + marked(commit("%r20")) + (wait(0, "%r3", "V") + AFTER if m else "") + FREE, also=("tensor-race", "exit-with-async")),
    Plant("mbarrier that ends before a commit arrives", "mbarrier-misuse", lambda m: START + multiply() + (done() + MEET if m else commit()) + marked("@%p0 mbarrier.inval.shared::cta.b64 [%r3];") + NEXT + FREE, (0, 1), advised=True),
    Plant("product in flight at the end", "exit-with-async", lambda m: START + multiply() + (done() if m else "") + FREE, also=("tensor-race",)),
    Plant("part of a warp", "divergent-aligned", lambda m: START + f"setp.lt.u32 %p5, %r0, {32 if m else 40};\n" + marked("@%p5 tcgen05.wait::ld.sync.aligned;") + FREE, also=("tensor-allocation",)),
]  # fmt: skip


def run(text: str, seed: int) -> simulator.Report:
    return simulator.launch(text, "k", 1, 128, [np.zeros(8192, np.uint32)], seed=seed)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = kernel(plant.body(False), shared=SIZE)
    for seed in plant.seeds:
        report = run(text, seed)
        said = [str(each) for each in (*report.findings, *report.advisories)]
        found = [each for each in (report.advisories if plant.advised else report.findings) if each.kind == plant.kind]
        assert found, f"expected {plant.kind} with seed {seed}, but got {said}"
        assert BUG not in text or line_of(text, BUG) in {each.line for each in found}, said
        others = {finding.kind for finding in report.findings} - set(plant.also)
        assert others == (set() if plant.advised else {plant.kind}), said
    for seed in (0, 1, 5, 6):
        clean = run(kernel(plant.body(True), shared=SIZE), seed)
        assert not clean.findings, [str(finding) for finding in clean.findings]
        assert not [each for each in clean.advisories if each.kind == "tensor-race"], [
            str(each) for each in clean.advisories
        ]


def test_plants_have_names_of_their_own():
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) >= 50
