# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""What tcgen05's descriptors, addresses and commits may not say: each is reported by what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from tensor_kernels import INIT, alloc, dealloc, kernel

K_MAJOR = tensor.descriptor(0, 16, 1024, 128)
PLAIN = tensor.instruction(128, 32, "f16", "f16")
BYTES = tensor.instruction(128, 32, "e4m3", "e4m3")
INTEGERS = tensor.instruction(128, 32, "s8", "s8", "s32")
#: Of e2m1 and e4m3 with scales.
FOURS = 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 1 << 23 | 1 << 27
EIGHTS = 32 >> 3 << 17 | 1 << 23 | 1 << 27


def reported(body: str, *, cluster: int = 1) -> list[simulator.Finding]:
    text = kernel(
        INIT
        + alloc(64)
        + "setp.ne.u32 %p3, 0, 0; add.u32 %t10, %t0, 40; add.u32 %t11, %t0, 44;\n"
        + body
        + dealloc(64),
        shared=32768,
    )
    return simulator.launch(
        text, "k", cluster, 128, [np.zeros(16, np.uint32)], cluster=cluster, checks="races"
    ).findings


FAULTS = {
    # Instruction descriptors.
    "reserved bit 6": ("f16", K_MAJOR, PLAIN | 1 << 6, "reserved bits are set"),
    "a shift of B": ("f16", K_MAJOR, PLAIN | 1 << 30, "reserved bits are set"),
    "saturation of floats": ("f16", K_MAJOR, PLAIN | 1 << 3, "saturates what this '.kind' cannot"),
    "negated integers": ("i8", K_MAJOR, INTEGERS | 1 << 13, "negates what this '.kind' cannot"),
    "sums of another kind": ("tf32", K_MAJOR, tensor.instruction(128, 32, "tf32", "tf32", "f16"), "types its '.kind' does not have"),
    "e4m3 in f16": ("f16", K_MAJOR, PLAIN | 5 << 10, "types its '.kind' does not have"),
    "40 integers": ("i8", K_MAJOR, tensor.instruction(128, 40, "s8", "s8", "s32"), "expected a multiple of 16 up to 256 as number of columns, but got 40"),
    "24 columns of bytes along N": ("f8f6f4", K_MAJOR, tensor.instruction(128, 24, "e4m3", "e4m3", turned=(False, True)), "expected a multiple of 16 up to 256"),
    "256 rows": ("f16", K_MAJOR, tensor.instruction(256, 32, "f16", "f16"), "expected 64 or 128 rows, but got 256"),
    "no columns": ("f16", K_MAJOR, tensor.instruction(128, 0, "f16", "f16"), "expected a multiple of 8 up to 256"),
    "f16 and bf16": ("f16", K_MAJOR, PLAIN | 1 << 10, "products of f16 and bf16, which the simulator does not compute"),
    "e2m1 along M": ("f8f6f4", K_MAJOR, tensor.instruction(128, 32, "e2m1", "e4m3", turned=(True, False)), "fewer than 8 bits that are contiguous along M or N, which the simulator does not compute"),
    # Descriptors of shared memory.
    "wgmma's": ("f16", K_MAJOR & ~(1 << 46), PLAIN, "expected a matrix descriptor of tcgen05"),
    "bits 53 to 60": ("f16", K_MAJOR | 1 << 53, PLAIN, "expected a matrix descriptor of tcgen05"),
    "swizzle mode 5": ("f16", K_MAJOR & ~(7 << 61) | 5 << 61, PLAIN, "expected a swizzle mode of 0, 1, 2, 4 or 6 in its matrix descriptor, but got 5"),
    "an absolute address": ("f16", K_MAJOR | 1 << 52, PLAIN, "absolute leading dimension, which sm_103a alone has"),
    "words along M": ("tf32", K_MAJOR, tensor.instruction(128, 32, "tf32", "tf32", turned=(True, False)), "has an operand of 32 bits that is contiguous along M or N, and its swizzle is not of 128 bytes by 32 bytes"),
    "halves in coarse lines": ("f16", K_MAJOR & ~(7 << 61) | 1 << 61, tensor.instruction(128, 32, "f16", "f16", turned=(True, True)), "has an operand of 16 bits that is contiguous along M or N, and its swizzle is of 128 bytes by 32 bytes"),
    "coarse lines along K": ("tf32", K_MAJOR & ~(7 << 61) | 1 << 61, tensor.instruction(128, 32, "tf32", "tf32"), "contiguous along K, and its swizzle is of 128 bytes by 32 bytes"),
    "a base offset": ("f16", K_MAJOR | 3 << 49, PLAIN, "base offsets other than 0, which the simulator does not compute"),
    # Scales.
    "reserved bit 24": ("mxf4.block_scale", K_MAJOR, FOURS | 1 << 24, "reserved bits are set"),
    "96 elements": ("mxf4.block_scale", K_MAJOR, FOURS | 1 << 31, "96 elements along K, which sm_103a alone has"),
    "numbers as scales of mxf4": ("mxf4.block_scale", K_MAJOR, FOURS & ~(1 << 23), "whose scales its '.kind' and scale vector do not have"),
    "e4m3 in mxf4": ("mxf4.block_scale", K_MAJOR, FOURS & ~(7 << 7), "types its '.kind' does not have"),
    "turned mxf4": ("mxf4.block_scale", K_MAJOR, FOURS | 1 << 15, "turns what this '.kind' cannot"),
    "an odd place": ("mxf4.block_scale", K_MAJOR, FOURS | 1 << 29, "expected multiples of 2 as places of scales, but got 1 and 0"),
    "256 rows with scales": ("mxf8f6f4.block_scale", K_MAJOR, EIGHTS + (1 << 27), "expected 128 rows and 8 to 256 columns, but got 256 and 32"),
    "24 columns of bytes along N with scales": ("mxf8f6f4.block_scale", K_MAJOR, EIGHTS & ~(63 << 17) | 24 >> 3 << 17 | 1 << 16, "expected a multiple of 16 as number of columns, but got 24"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_descriptors(name):
    kind, matrix, shape, expected = FAULTS[name]
    scales = ", [%t10], [%t11]" if "block_scale" in kind else ""
    findings = reported(tensor.multiply(kind, matrix, matrix, shape, masks=scales))
    assert len(findings) == 1 and expected in findings[0].message, [str(each) for each in findings]
    assert findings[0].kind == ("unsupported" if "does not compute" in expected else "tensor-operands")


def test_an_a_in_tensor_memory_of_fewer_bits():
    findings = reported(
        tensor.multiply("f8f6f4", "[%t0]", K_MAJOR, tensor.instruction(128, 32, "e2m1", "e4m3"), d="%t0")
    )
    assert [each.kind for each in findings] == [
        "unsupported"
    ] and "A in tensor memory of fewer than 8 bits" in findings[0].message


def test_scales_begin_at_lane_0():
    findings = reported(
        "add.u32 %t10, %t10, 0x200000;\n"
        + tensor.multiply("mxf8f6f4.block_scale", K_MAJOR, K_MAJOR, EIGHTS, masks=", [%t10], [%t11]")
    )
    assert "expected scales that begin at lane 0 of tensor memory, but got lanes 32 and 0" in findings[0].message


COMMITS = {
    "a byte between": ("%r20", "add.u32 %r20, %r3, 4;", "misaligned", "arrives at an mbarrier at byte"),
    "beyond shared memory": ("%r20", "mov.u32 %r20, 0x200000;", "out-of-bounds", "of which the block has"),
    "no mbarrier": ("%r20", "mov.u32 %r20, %r1;", "mbarrier-misuse", "arrives at an mbarrier that was not initialised"),
    "a block that is not there": ("%r20", "mov.u32 %r20, 0x5000000;", "out-of-bounds", "arrives in a block that a cluster of 1 blocks does not have"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMITS)
def test_commits(name):
    register, make, kind, expected = COMMITS[name]
    findings = reported(f"{make}\n{tensor.commit(register)}")
    assert findings[0].kind == kind and expected in findings[0].message, [str(each) for each in findings]


def test_commits_to_no_block_and_to_too_many():
    for mask in (0, 6):
        body = f"mov.u16 %h0, {mask};\n@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3], %h0;\n"
        findings = reported(body)
        assert f"expected a mask of some of the 1 blocks of the cluster, but got {mask:#x}" in findings[0].message


def test_generic_addresses():
    body = "cvt.u64.u32 %d5, %r3; cvta.shared.u64 %d5, %d5; PLACE\n@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d5];\n"
    assert not reported(body.replace("PLACE", "") + tensor.wait(0, "%r3", "V"))
    findings = reported(body.replace("PLACE", "mov.u64 %d5, %d0;"))
    assert "expected an address of shared memory, where mbarriers are" in findings[0].message
    text = kernel(
        "cvt.u64.u32 %d5, %r9; cvta.shared.u64 %d5, %d5;\n@%q0 tcgen05.alloc.cta_group::1.sync.aligned.b32 [%d5], 32;\nbar.sync 0; ld.shared.b32 %t0, [%r9];\n@%q0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t0, 32;"
    )
    assert not simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)]).findings


def test_more_arrivals_than_an_mbarrier_counts():
    """Of two commits the second arrives in a phase that nobody waits for, or comes too early for one that is over."""
    body = tensor.commit() + tensor.commit() + tensor.commit() + tensor.wait(0, "%r3", "V")
    text = kernel(INIT + body)
    found = {
        each.kind
        for seed in range(8)
        for each in simulator.launch(text, "k", 1, 32, [np.zeros(1, np.uint32)], seed=seed).findings
    }
    assert found <= {"mbarrier-misuse", "deadlock"} and "mbarrier-misuse" in found


def test_blocks_of_a_pair_that_allocate_differently():
    body = (
        "mov.u32 %r15, %cluster_ctarank; mov.b32 %r16, 64; setp.eq.u32 %p5, %r15, 1; @%p5 mov.b32 %r16, 32;\n"
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r9], %r16;\nld.shared.b32 %t0, [%r9];\n"
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %t0, %r16;"
    )
    findings = simulator.launch(kernel(body), "k", 2, 32, [np.zeros(1, np.uint32)], cluster=2).findings
    assert any("columns where the other block of its pair allocates" in each.message for each in findings)
