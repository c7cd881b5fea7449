# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""wgmma.mma_async: every type, both majors, every swizzle, A in registers or in shared memory, against float64."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, expect, kernel, wait
from operand_images import along_k, along_rows, encode


def positions(n: int) -> np.ndarray:
    """[thread, register] to row and column of D."""
    thread, register = np.meshgrid(np.arange(128), np.arange(n // 2), indexing="ij")
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (register // 2 % 2)
    return np.stack([row, 8 * (register // 4) + 2 * (thread % 4) + register % 2])


def product(name: str, other: str, n: int, result: str, *, a_major="k", b_major="k", span=128, registers=False, seed=0):
    """Two steps, D = A0 B0 - A1 B1 (integers: plus); compares them with float64."""
    random = np.random.default_rng(n + span)
    size = {"f16": 2, "bf16": 2, "tf32": 4}.get(name, 1)
    k = 32 // size
    integer = result == "s32"
    a, a_bits = encode(name, random.integers(0, 8, (64, 2 * k)))
    b, b_bits = encode(other, random.integers(0, 8, (n, 2 * k)))
    a_image = (along_k if a_major == "k" else along_rows)(a_bits.reshape(64, 64), span)
    b_image = (along_k if b_major == "k" else along_rows)(b_bits.reshape(n, 64), span)
    base = -(-a_image.data.size // 1024) * 1024
    memory = np.zeros(base + b_image.data.size, np.uint8)
    memory[: a_image.data.size], memory[base:] = a_image.data, b_image.data
    memory = np.concatenate([memory, np.zeros(-memory.size % 16, np.uint8)])

    per = {"f16": 4}.get(result, 2)
    d = "{" + ", ".join(f"%c{i}" for i in range(n // per)) + "}"
    transposed = f", {int(a_major != 'k')}" * (not registers) + f", {int(b_major != 'k')}" if size == 2 else ""
    load, steps = "", ""
    if registers:
        # Words of the fragment: rows and rows + 8 of the first 16 bytes, and of the next.
        load = "shr.u32 %r10, %r0, 5; shl.b32 %r10, %r10, 4; and.b32 %r11, %r0, 31; shr.u32 %r12, %r11, 2; add.u32 %r10, %r10, %r12; and.b32 %r11, %r11, 3; shl.b32 %r11, %r11, 2; shl.b32 %r10, %r10, 6; add.u32 %r10, %r10, %r11; cvt.u64.u32 %d5, %r10; ld.param.u64 %d6, [z]; add.s64 %d5, %d6, %d5;\n"
        for i in range(8):
            at = (i % 2) * 8 * 64 + (i // 2) * 16
            load += f"ld.global.u32 %a{i}, [%d5+{at}];\n"
    for step in range(2):
        left = (
            "{" + ", ".join(f"%a{4 * step + i}" for i in range(4)) + "}"
            if registers
            else f"{a_image.descriptor(0, step)}"
        )
        signs = "" if integer else f", 1, {-1 if step else 1}{transposed}"
        kind = f"m64n{n}k{k}.{result}.{name}.{other}"
        steps += f"setp.eq.u32 %p3, 1, {step};\nwgmma.mma_async.sync.aligned.{kind} {d}, {left}, {b_image.descriptor(base, step)}, %p3{signs};\n"
    stores = "".join(f"st.global.u32 [%d3+{4 * i}], %c{i};\n" for i in range(n // per))
    body = f"""ld.param.u64 %d3, [y]; mul.wide.u32 %d4, %r0, {4 * n // per}; add.s64 %d3, %d3, %d4;
{INIT}{expect(memory.size)}
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], {memory.size}, [%r2];
{wait()}{load}wgmma.fence.sync.aligned;
{steps}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}"""
    y = np.full((128, n // per), 0xFFFFFFFF, np.uint32)
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=memory.size)
    report = simulator.launch(text, "k", 1, 128, [memory, y, np.ascontiguousarray(a_bits.reshape(64, 64))], seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    values = {"f16": np.float16, "s32": np.int32}.get(result, np.float32)
    found = np.zeros((64, n))
    found[tuple(positions(n))] = y.view(values).reshape(128, n // 2)
    sign = 1 if integer else -1
    np.testing.assert_array_equal(found, a[:, :k] @ b[:, :k].T + sign * (a[:, k:] @ b[:, k:].T))
    assert report.counters["wgmma"] == 2 and report.counters["mma_macs"] == 2 * 64 * n * k
    assert report.counters["wgmma_shared_bytes"] == 2 * (n * 32 + (0 if registers else 64 * 32))


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "result"),
    [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"), ("s8", "s8", "s32"), ("u8", "s8", "s32"),
     ("e4m3", "e4m3", "f32"), ("e5m2", "e4m3", "f32"), ("e4m3", "e5m2", "f16")],
)  # fmt: skip
def test_types(a, b, result, registers):
    product(a, b, 32, result, registers=registers)


@pytest.mark.parametrize("span", [0, 32, 64, 128])
@pytest.mark.parametrize(("a_major", "b_major"), [("k", "k"), ("m", "k"), ("k", "n"), ("m", "n")])
def test_majors_and_swizzles(a_major, b_major, span):
    product("bf16", "bf16", 64, "f32", a_major=a_major, b_major=b_major, span=span, seed=span)


@pytest.mark.parametrize("n", [8, 24, 128, 176, 256])
@pytest.mark.parametrize("registers", [False, True])
def test_widths(n, registers):
    product("f16", "f16", n, "f32", b_major="n", span=128 if n % 64 == 0 else 0, registers=registers, seed=n)
