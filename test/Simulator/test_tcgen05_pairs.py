# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""tcgen05 of two blocks of a cluster at once (.cta_group::2): products against float64, and planted bugs."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from hopper_kernels import expect
from operand_images import along_k, along_rows, encode
from tensor_kernels import AFTER, BEFORE, INIT, LOADED, STORED, kernel, load, store, wait

CLUSTER = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
MEET = BEFORE + CLUSTER + AFTER
ALLOC = "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32"
DEALLOC = "tcgen05.dealloc.cta_group::2.sync.aligned.b32"
BOTH = "@%p5 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h0;\n"


def start(count: int) -> str:
    """Each block brings its own part of x into its shared memory. %p5 is thread 0 of the even block, %r15 the rank."""
    return (
        f"mov.u32 %r15, %cluster_ctarank; setp.eq.u32 %p5, %r15, 0; and.pred %p5, %p5, %p0; mov.u16 %h0, 3;\n"
        f"mul.wide.u32 %d8, %r15, {count}; add.s64 %d0, %d0, %d8;\n{INIT}fence.mbarrier_init.release.cluster;\n{expect(count)}"
        f"@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], {count}, [%r2];\n{wait()}"
        f"@%q0 {ALLOC} [%r9], 256;\n{MEET}ld.shared.b32 %t0, [%r9];\n"
        "shr.u32 %t1, %r0, 5; and.b32 %t1, %t1, 3; shl.b32 %t1, %t1, 21; add.u32 %t1, %t0, %t1;\n"
    )


def finish(meet: str = MEET) -> str:
    return f"{meet}@%q0 {DEALLOC} %t0, 256;\n@%q0 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n"


def multiply(kind: str, a: int | str, b: int, instruction: int, adds="%p3", masks="") -> str:
    return tensor.multiply(kind, a, b, instruction, group=2, adds=adds, masks=masks).replace("@%p0", "@%p5")


def read_out(columns: int) -> str:
    text = f"ld.param.u64 %d3, [y]; mad.lo.u32 %r16, %r15, 128, %r0; mul.wide.u32 %d4, %r16, {4 * columns}; add.s64 %d3, %d3, %d4;\n"
    for at in range(0, columns, 8):
        text += (
            load(8, address=f"%t1+{at}")
            + LOADED
            + "".join(f"st.global.u32 [%d3+{4 * (at + i)}], %v{i};\n" for i in range(8))
        )
    return text


def product(kind: str, m: int, n: int, result="f32", *, majors="kk", span=128, in_tensor=False, disabled=False, seed=0):
    """D = A0 B0 + A1 B1 of both blocks."""
    random = np.random.default_rng(m + n)
    size = {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
    k = 32 // size
    a, a_bits = encode(kind, random.integers(0, 8, (m, 2 * k)))
    b, b_bits = encode(kind, random.integers(0, 8, (n, 2 * k)))
    lay = [along_k if major == "k" else along_rows for major in majors]
    halves = [
        (lay[0](x, span), lay[1](y, span))
        for x, y in zip(np.split(a_bits.reshape(m, 64), 2), np.split(b_bits.reshape(n, 64), 2), strict=True)
    ]
    base = -(-halves[0][0].data.size // 1024) * 1024
    count = base + -(-halves[0][1].data.size // 16) * 16
    memory = np.zeros((2, count), np.uint8)
    for part, (left, right) in zip(memory, halves, strict=True):
        part[: left.data.size], part[base : base + right.data.size] = left.data, right.data
    # Of 128 rows both halves of the lanes have a block's 64 rows of A.
    rows = a_bits.reshape(2, m // 2, 64)
    in_lanes = np.concatenate([rows, rows], 1) if m == 128 else rows
    body = start(count)
    if in_tensor:
        body += "ld.param.u64 %d7, [z]; mad.lo.u32 %r16, %r15, 128, %r0; mul.wide.u32 %d4, %r16, 64; add.s64 %d7, %d7, %d4; add.u32 %t4, %t1, 192; add.u32 %t8, %t0, 192; add.u32 %t9, %t0, 200;\n"
        body += (
            "".join(f"ld.global.u32 %v{i}, [%d7+{4 * i}];\n" for i in range(16))
            + store(16, address="%t4")
            + STORED
            + MEET
        )
    columns = n if m == 256 else n // 2
    if disabled:
        body += (
            "".join(f"mov.b32 %v{i}, 0;\n" for i in range(8))
            + "".join(store(8, address=f"%t1+{at}") for at in range(0, columns, 8))
            + STORED
            + MEET
        )
        body += "".join(f"mov.b32 %r{20 + i}, {0x11 << i};\n" for i in range(8))
    described = tensor.instruction(m, n, kind, kind, result, turned=(majors[0] != "k", majors[1] != "k"))
    name = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "s8": "i8"}.get(kind, "f8f6f4")
    left, right = halves[0]
    for step in range(2):
        at = f"[%t{8 + step}]" if in_tensor else left.descriptor(0, step, tensor.descriptor)
        masks = ", {" + ", ".join(f"%r{20 + i}" for i in range(8)) + "}" if disabled else ""
        body += f"setp.eq.u32 %p3, 1, {step};\n" + multiply(
            name, at, right.descriptor(base, step, tensor.descriptor), described, masks=masks
        )
    body += BOTH + wait(0, "%r3", "V") + AFTER + read_out(columns) + finish()
    y = np.full((2, 128, columns), 0xFFFFFFFF, np.uint32)
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=count)
    report = simulator.launch(text, "k", 2, 128, [memory, y, np.ascontiguousarray(in_lanes)], seed=seed, cluster=2)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert not [each for each in report.advisories if each.kind == "tensor-race"]
    found = {"f16": y.astype(np.uint16).view(np.float16), "s32": y.view(np.int32)}.get(result, y.view(np.float32))
    expected = (a @ b.T).reshape(2, m // 2, n)
    if m == 128:  # layout B: the upper lanes have the second half of the columns
        expected = np.concatenate(np.split(expected, 2, 2), 1)
    if disabled:
        for block in range(2):
            for lane in range(128):
                if (0x11 << (4 * block + lane // 32)) >> lane % 32 & 1:
                    expected[block, lane] = 0
    np.testing.assert_array_equal(found.astype(np.float64), expected)
    assert report.counters["tcgen05_mma"] == 2 and report.counters["mma_macs"] == 2 * m * n * k


@pytest.mark.parametrize("in_tensor", [False, True])
@pytest.mark.parametrize(("m", "n"), [(256, 64), (128, 64), (256, 32), (128, 128)])
def test_shapes(m, n, in_tensor):
    product("f16", m, n, in_tensor=in_tensor, seed=n)


@pytest.mark.parametrize(
    ("kind", "result"), [("bf16", "f32"), ("f16", "f16"), ("tf32", "f32"), ("e4m3", "f32"), ("s8", "s32")]
)
@pytest.mark.parametrize("m", [128, 256])
def test_types(kind, result, m):
    product(kind, m, 64, result)


@pytest.mark.parametrize("majors", ["kn", "mk", "mn"])
@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_majors(majors, span):
    product("bf16", 256, 128, majors=majors, span=span, seed=span)


@pytest.mark.parametrize("m", [128, 256])
def test_lanes_that_are_not_written(m):
    product("f16", m, 32, disabled=True)


def unless(mended: bool, text: str) -> str:
    return "" if mended else text


A, B = tensor.descriptor(0, 16, 1024, 128), tensor.descriptor(16384, 16, 1024, 128)
SHAPE = tensor.instruction(256, 32, "f16", "f16")
COUNT = 16384 + 2048
READY = start(COUNT) + "setp.ne.u32 %p3, 0, 0;\n"
DONE = BOTH + wait(0, "%r3", "V") + AFTER
OWN = "shl.b32 %r4, %r0, 2; add.u32 %r5, %r1, %r4;\n"
ONE = BOTH.replace("multicast::cluster.", "").replace("multicast::cluster.", "").replace(", %h0", "")
PLANTS = {
    "one block that allocates": ("deadlock", lambda m: f"mov.u32 %r15, %cluster_ctarank; setp.eq.u32 %p5, %r15, 0; and.pred %p6, %q0, {'%q0' if m else '%p5'};\n@%p6 {ALLOC} [%r9], 64;\n{CLUSTER}ld.shared.b32 %t0, [%r9];\n@%p6 {DEALLOC} %t0, 64;\n", ("tensor-allocation", "barrier-mismatch")),
    "commit to one of the blocks": ("deadlock", lambda m: READY + multiply("f16", A, B, SHAPE) + (BOTH if m else ONE) + wait(0, "%r3", "V") + AFTER + finish(), ("mbarrier-misuse", "tensor-allocation", "exit-with-async", "shared-race")),
    "shared memory of the peer written in flight": ("async-overwrite", lambda m: READY + OWN + multiply("f16", A, B, SHAPE) + unless(m, CLUSTER) + (DONE if m else "") + "setp.eq.u32 %p6, %r15, 1;\n@%p6 st.shared.u32 [%r5], 0;\n" + unless(m, DONE) + finish(), ()),
    "shared memory of the peer without a fence between proxies": ("missing-proxy-fence", lambda m: READY + OWN + "setp.eq.u32 %p6, %r15, 1;\n@%p6 st.shared.u32 [%r5], 0;\n" + ("fence.proxy.async.shared::cta;\n" if m else "") + CLUSTER + multiply("f16", A, B, SHAPE) + DONE + finish(), ()),
    "shared memory of the peer without a barrier": ("shared-race", lambda m: READY + OWN + "setp.eq.u32 %p6, %r15, 1;\n@%p6 st.shared.u32 [%r5], 0;\nfence.proxy.async.shared::cta;\n" + (CLUSTER if m else "") + multiply("f16", A, B, SHAPE) + DONE + finish(), ("async-overwrite", "missing-proxy-fence")),
    "tensor memory of the peer read in flight": ("tensor-race", lambda m: READY + multiply("f16", A, B, SHAPE) + unless(m, CLUSTER) + (DONE if m else "") + load(8) + LOADED + unless(m, DONE) + finish(), ()),
    "rows of one block": ("tensor-operands", lambda m: READY + multiply("f16", A, B, SHAPE if m else tensor.instruction(64, 32, "f16", "f16")) + (DONE if m else "") + finish(), ()),
    "columns of one block": ("tensor-operands", lambda m: READY + multiply("f16", A, B, SHAPE if m else tensor.instruction(256, 24, "f16", "f16")) + (DONE if m else "") + finish(), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found_and_its_twin_is_clean(name):
    kind, body, also = PLANTS[name]
    found: set[str] = set()
    for seed in (0, 1, 2, 3):
        report = simulator.launch(
            kernel(body(False), shared=COUNT), "k", 2, 128, [np.zeros(65536, np.uint8)], seed=seed, cluster=2
        )
        found |= {finding.kind for finding in report.findings}
    assert kind in found and not found - {kind, *also}, found
    for seed in (0, 1, 2, 3):
        clean = simulator.launch(
            kernel(body(True), shared=COUNT), "k", 2, 128, [np.zeros(65536, np.uint8)], seed=seed, cluster=2
        )
        assert not clean.findings, [str(finding) for finding in clean.findings]


def test_a_block_alone_is_no_pair():
    body = f"@%q0 {ALLOC} [%r9], 32;\n"
    report = simulator.launch(kernel(body), "k", 1, 32, [np.zeros(4, np.uint32)])
    assert report.findings[0].kind == "tensor-allocation"
    assert "expected a cluster of an even number of blocks" in report.findings[0].message
