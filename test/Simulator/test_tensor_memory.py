# Part of Weft. SPDX-License-Identifier: Apache-2.0

"""Tensor memory: allocations, and where tcgen05.ld and .st find each register of each thread, packed or not."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import line_of
from tensor_kernels import INIT, LOADED, MEET, STORED, alloc, dealloc, kernel, load, store, vector

#: Per shape: registers of .x1, columns of .x1.
SHAPES = {"32x32b": (1, 1), "16x32bx2": (1, 1), "16x64b": (1, 2), "16x128b": (2, 4), "16x256b": (4, 8)}
CASES = [(shape, x) for shape, (each, _) in SHAPES.items() for x in (1, 2, 8, 32, 128) if each * x <= 128]
SPLIT = 160
"""Columns between the halves of 16x32bx2."""


def place(shape: str, lane: int, register: int) -> tuple[int, int]:
    """Row and column of a thread's register (PTX ISA 9.7.16.2.3.1, figures)."""
    if shape == "32x32b":
        return lane, register
    if shape == "16x32bx2":
        return lane % 16, register + lane // 16 * SPLIT
    if shape == "16x64b":
        return lane // 4 + 8 * (lane % 2), 2 * register + lane // 2 % 2
    if shape == "16x128b":
        return lane // 4 + 8 * (register % 2), register // 2 * 4 + lane % 4
    return lane // 4 + 8 * (register // 2 % 2), register // 4 * 8 + lane % 4 * 2 + register % 2


def columns_of(shape: str, x: int, packed: bool) -> int:
    return SHAPES[shape][1] * x * (1 + packed)


def fill_all(name: str = "z") -> str:
    """Each thread stores the 512 columns of its lane from a parameter."""
    text = f"ld.param.u64 %d3, [{name}]; mul.wide.u32 %d4, %r0, 2048; add.s64 %d3, %d3, %d4;\n"
    for at in range(0, 512, 128):
        text += "".join(f"ld.global.u32 %v{i}, [%d3+{4 * (at + i)}];\n" for i in range(128))
        text += store(128, address=f"%t1+{at}") + STORED
    return text


def read_all(name: str = "y") -> str:
    text = f"ld.param.u64 %d3, [{name}]; mul.wide.u32 %d4, %r0, 2048; add.s64 %d3, %d3, %d4;\n"
    for at in range(0, 512, 128):
        text += load(128, address=f"%t1+{at}") + LOADED
        text += "".join(f"st.global.u32 [%d3+{4 * (at + i)}], %v{i};\n" for i in range(128))
    return text


def run(body: str, args, seed=0):
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z")
    report = simulator.launch(text, "k", 1, 128, args, seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert not report.advisories, [str(finding) for finding in report.advisories]
    return report


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("shape", "x"), CASES)
@pytest.mark.parametrize("high", [0, 16])
def test_loads(shape, x, packed, high):
    if (columns_of(shape, x, packed) > (SPLIT if shape == "16x32bx2" else 512)) or (high and shape == "32x32b"):
        pytest.skip("beyond tensor memory")
    count = SHAPES[shape][0] * x
    tail = f", {SPLIT}" if shape == "16x32bx2" else ""
    body = INIT + alloc(512) + fill_all() + MEET + f"add.u32 %t4, %t1, {high << 16};\n"
    body += load(x, shape=shape, address="%t4", registers=count, tail=tail, pack=".pack::16b" if packed else "")
    # Registers may be used before the wait.
    body += f"mul.wide.u32 %d4, %r0, {4 * count}; add.s64 %d3, %d0, %d4;\n"
    body += "".join(f"st.global.u32 [%d3+{4 * i}], %v{i};\n" for i in range(count)) + LOADED + dealloc(512)
    cells = np.random.default_rng(x).integers(0, 2**32, (128, 512), np.uint32)
    found = np.zeros((128, count), np.uint32)
    report = run(body, [found, np.zeros(1, np.uint32), cells], seed=high)
    expected = np.zeros_like(found)
    for thread in range(128):
        for register in range(count):
            row, column = place(shape, thread % 32, register)
            row += thread // 32 * 32 + high
            if not packed:
                expected[thread, register] = cells[row, column]
                continue
            column = column % SPLIT * 2 + column // SPLIT * SPLIT if shape == "16x32bx2" else 2 * column
            expected[thread, register] = cells[row, column] & 0xFFFF | cells[row, column + 1] << 16
    np.testing.assert_array_equal(found, expected)
    assert report.counters["tensor_bytes_read"] == 128 * count * 4
    assert report.counters["tensor_bytes_written"] == 128 * 512 * 4


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("shape", "x"), [case for case in CASES if case[1] in (1, 8, 32)])
@pytest.mark.parametrize("seed", [0, 5])
def test_stores(shape, x, packed, seed):
    count = SHAPES[shape][0] * x
    split = f", {SPLIT}" if shape == "16x32bx2" else ""
    body = INIT + alloc(512) + fill_all() + f"mul.wide.u32 %d4, %r0, {4 * count}; add.s64 %d3, %d0, %d4;\n"
    body += "".join(f"ld.global.u32 %v{i}, [%d3+{4 * i}];\n" for i in range(count))
    body += store(x, shape=shape, registers=count, split=split, pack=".unpack::16b" if packed else "") + STORED
    body += read_all() + dealloc(512)
    random = np.random.default_rng(x)
    values, cells = random.integers(0, 2**32, (128, count), np.uint32), random.integers(0, 2**32, (128, 512), np.uint32)
    found = np.zeros((128, 512), np.uint32)
    run(body, [values, found, cells], seed)
    for thread in range(128):
        for register in range(count):
            row, column = place(shape, thread % 32, register)
            row += thread // 32 * 32
            if not packed:
                cells[row, column] = values[thread, register]
                continue
            column = column % SPLIT * 2 + column // SPLIT * SPLIT if shape == "16x32bx2" else 2 * column
            cells[row, column : column + 2] = values[thread, register] & 0xFFFF, values[thread, register] >> 16
    np.testing.assert_array_equal(found, cells)


def test_an_allocation_waits_until_another_is_given_back():
    """Warps 0 and 1 allocate all columns, one after the other."""
    body = f"""{INIT}setp.lt.u32 %q1, %r0, 64; @!%q1 bra E;
    shr.u32 %r10, %r0, 5; shl.b32 %r10, %r10, 2; add.u32 %r10, %r1, %r10;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r10], 512;
    ld.shared.b32 %t0, [%r10]; shl.b32 %t1, %r0, 16; and.b32 %t1, %t1, 0x200000; add.u32 %t1, %t0, %t1;
    mov.b32 %v0, %r0; {store(1)} {STORED} {load(1, first=1)} {LOADED}
    mul.wide.u32 %d4, %r0, 4; add.s64 %d3, %d0, %d4; st.global.u32 [%d3], %v1;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t0, 512;
E:"""
    for seed in (0, 1, 2):
        found = np.zeros(128, np.uint32)
        run(body, [found, found, found], seed)
        np.testing.assert_array_equal(found[:64], np.arange(64))


def test_seeds_choose_where_allocations_lie():
    body = INIT + alloc(64) + "@%p0 st.global.u32 [%d0], %t0;\n" + dealloc(64)
    places = set()
    for seed in range(12):
        found = np.zeros(1, np.uint32)
        run(body, [found, found, found], seed)
        assert found[0] % 64 == 0 and found[0] < 512
        places.add(int(found[0]))
        assert seed or found[0] == 0
    assert len(places) > 2


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100", "sm_120a"])
def test_targets_without_tensor_memory_refuse_it(target):
    text = kernel(INIT + alloc(32) + dealloc(32)).replace("sm_100a", target)
    with pytest.raises(Exception, match=rf"line {line_of(text, 'tcgen05.alloc')}.*tcgen05.alloc.*'{target}'"):
        simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)])


@pytest.mark.parametrize("target", ["sm_100f", "sm_103a", "sm_110a"])
def test_targets_of_its_family_run_it(target):
    text = kernel(INIT + alloc(32) + dealloc(32)).replace("sm_100a", target)
    assert not simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)]).findings


def test_wgmma_is_of_another_target():
    text = kernel("wgmma.fence.sync.aligned;")
    with pytest.raises(Exception, match=r"wgmma\.fence.*'sm_100a'"):
        simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)])


A_B_I = "[%t0], %d5, %d6, %t3"
REFUSED = {
    "mma.ws.sp.cta_group::1.kind::f16": "[%t0], %d5, %d6, [%t4], %t3, %p3",
    "mma.sp.cta_group::1.kind::f16": "[%t0], %d5, %d6, [%t4], %t3, %p3",
    "mma.cta_group::1.kind::f16.ashift": "[%t0], [%t4], %d6, %t3, %p3",
    "mma.sp.cta_group::1.kind::mxf4.block_scale": "[%t0], %d5, %d6, [%t6], %t3, [%t4], [%t5], %p3",
    "cp.cta_group::1.4x256b": "[%t0], %d5",
    "cp.cta_group::2.4x256b": "[%t0], %d5",
    "cp.cta_group::1.128x256b.b8x16.b4x16_p64": "[%t0], %d5",
    "shift.cta_group::1.down": "[%t0]",
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_computed_is_refused(form):
    text = kernel(f"tcgen05.{form} {REFUSED[form]}; // HERE")
    with pytest.raises(Exception, match=rf"line {line_of(text, 'HERE')}.*tcgen05.*not supported by the simulator"):
        simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)])


def test_vectors_have_their_registers():
    with pytest.raises(Exception, match="expected 8 registers, but got 7"):
        simulator.launch(
            kernel(f"tcgen05.ld.sync.aligned.16x128b.x4.b32 {vector(7)}, [%t0];"), "k", 1, 128, [np.zeros(1, np.uint32)]
        )


#: What ptxas refuses of operands, and what is expected instead.
OPERANDS = {
    "mma.cta_group::1.kind::f16 [%d0], %d5, %d6, %t3, %p3": "32-bit register as address in tensor memory",
    "mma.cta_group::1.kind::f16 [64], %d5, %d6, %t3, %p3": "32-bit register as address in tensor memory",
    "mma.cta_group::1.kind::f16 [%t0], %t5, %d6, %t3, %p3": "expected",
    "mma.cta_group::1.kind::f16 [%t0], %d5, %d6, %t3, %p3, 16": "from 0 to 15",
    "mma.cta_group::1.kind::f16 [%t0], %d5, %d6, %t3, %p3, %t4": "from 0 to 15",
    "mma.cta_group::1.kind::f8f6f4 [%t0], %d5, %d6, %t3, %p3, 2": "no scale-input-d",
    "mma.cta_group::2.kind::f16 [%t0], %d5, %d6, %t3, {%t4, %t5, %t6, %t7}, %p3": "expected 8 registers",
    "mma.cta_group::1.kind::f16 [%t0], %d5, %d6, %t3, {1, 2, 3, 4}, %p3": "expected a register",
    "ld.sync.aligned.32x32b.x1.b32 %v0, [%t0]": "a vector of 1 registers",
    "ld.sync.aligned.32x32b.x1.b32 {%v0}, [%d1]": "32-bit register as address in tensor memory",
    "ld.sync.aligned.32x32b.x1.b32 {_}, [%t0]": "expected a register",
    "ld.sync.aligned.16x32bx2.x1.b32 {%v0}, [%t0], %t2": "a number of columns",
    "st.sync.aligned.32x32b.x1.b32 [%t0], {5}": "expected a register",
    "ld.red.sync.aligned.32x32b.x2.max.f32 {%v0, %v1}, %v2, [%t0]": "not supported",
    "mma.cta_group::1.kind::mxf4nvf4.block_scale [%t0], %d5, %d6, %t3, [%t4], [%t5], %p3": "another scale vector",
    "mma.cta_group::1.kind::mxf4.block_scale.scale_vec::4X [%t0], %d5, %d6, %t3, [%t4], [%t5], %p3": "another scale",
    "mma.cta_group::1.kind::mxf8f6f4.block_scale [%t0], %d5, %d6, %t3, %t4, %t5, %p3": "expected an address",
    "cp.cta_group::1.64x128b [%t0], %d5": "other warps",
    "cp.cta_group::1.128x128b.warpx4 [%t0], %d5": "other warps",
    "alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r9], 48": "a power of two from 32 to 512",
    "dealloc.cta_group::1.sync.aligned.b32 %t0, 48": "a power of two from 32 to 512",
    "commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r2], 3": "16-bit register",
    "ld.sync.aligned.16x256b.x64.b32 {%v0}, [%t0]": "at most 128 registers",
}


@pytest.mark.parametrize("text", OPERANDS)
def test_operands_that_are_refused(text):
    text, expected = kernel(f"tcgen05.{text}; // HERE"), OPERANDS[text]
    with pytest.raises(Exception, match=rf"line {line_of(text, 'HERE')}.*{expected}"):
        simulator.launch(text, "k", 1, 128, [np.zeros(1, np.uint32)])


@pytest.mark.parametrize(
    "text",
    [
        "mma.cta_group::1.kind::f16 [%t0], %d5, %d6, %t3, 1",
        "mma.cta_group::1.kind::f16 [%t0+16], 5, 6, 7, !%p3, 15",
        "mma.cta_group::1.kind::i8.collector::a::lastuse [%t0], [%t4], %d6, %t3, %p3",
        "commit.cta_group::1.mbarrier::arrive::one.b64 [%d5]",
    ],
)
def test_operands_that_are_taken(text):
    never = f"setp.ne.u32 %p4, %r0, %r0;\n@%p4 tcgen05.{text};"
    report = simulator.launch(kernel(never), "k", 1, 128, [np.zeros(1, np.uint32)], checks="races")
    assert not report.findings, [str(finding) for finding in report.findings]
