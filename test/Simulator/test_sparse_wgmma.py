# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""wgmma.mma_async.sp: every type, A in registers or in shared memory, B along K and along N, against float64; and what
is wrong with one.
"""

from __future__ import annotations

import numpy as np
import pytest
import sparse_operands as operands
import weft.simulator as simulator
from hopper_kernels import INIT, expect, kernel, swizzle, wait
from operand_images import Image, along_k
from snippets import line_of
from test_wgmma import positions


def wide_along_k(rows: np.ndarray, span: int) -> Image:
    """A matrix of rows of 128 bytes, two steps of 64, K being contiguous."""
    count = len(rows)
    if span == 0:
        pieces = rows.reshape(count // 8, 8, 8, 16).transpose(0, 2, 1, 3)
        return Image(np.ascontiguousarray(pieces).reshape(-1), (0, 512), 128, 1024, 0)
    if span == 64:  # a pattern for each step
        data = np.concatenate([rows[:, :64].reshape(-1), rows[:, 64:].reshape(-1)])
        return Image(swizzle(data, 64), (0, count * 64), 16, 512, 64)
    return Image(swizzle(rows.reshape(-1), 128), (0, 64), 16, 1024, 128)


def wide_along_rows(rows: np.ndarray, span: int) -> Image:
    """The same of 16-bit elements, N being contiguous."""
    each = max(span, 16) // 2
    elements = np.ascontiguousarray(rows).view(np.uint16)
    elements = np.concatenate([elements, np.zeros((-len(elements) % each, elements.shape[1]), np.uint16)])
    pieces = elements.reshape(len(elements) // each, each, 2, 4, 8).transpose(2, 0, 3, 4, 1)
    data = np.ascontiguousarray(pieces).view(np.uint8).reshape(-1)
    near, far = 8 * max(span, 16), 32 * max(span, 16)
    leading, stride = (far, near) if span else (near, far)
    return Image(swizzle(data, span), (0, data.size // 2), leading, stride, span)


LOAD_A = "shr.u32 %r10, %r0, 5; shl.b32 %r10, %r10, 4; and.b32 %r11, %r0, 31; shr.u32 %r12, %r11, 2; add.u32 %r10, %r10, %r12; and.b32 %r11, %r11, 3; shl.b32 %r11, %r11, 2; shl.b32 %r10, %r10, 6; add.u32 %r10, %r10, %r11; cvt.u64.u32 %d5, %r10; ld.param.u64 %d6, [z]; add.s64 %d5, %d6, %d5;\n"


def text_of(
    kind: str, images: tuple[Image, Image], size: int, n: int, tail: str, *, registers=False, selector=0, per=2
) -> str:
    """Two steps of `kind`, D = A0 B0, then D += A1 B1: words of A at z, metadata at 8,192 bytes of it."""
    load = "mul.wide.u32 %d7, %r0, 4; ld.param.u64 %d8, [z]; add.s64 %d7, %d8, %d7; ld.global.u32 %r20, [%d7+8192]; ld.global.u32 %r21, [%d7+8704];\n"
    if registers:
        load += LOAD_A + "".join(f"ld.global.u32 %a{i}, [%d5+{(i % 2) * 8 * 64 + (i // 2) * 16}];\n" for i in range(8))
    d = "{" + ", ".join(f"%c{i}" for i in range(n // per)) + "}"
    base = -(-images[0].data.size // 1024) * 1024
    steps = ""
    for step in range(2):
        left = (
            "{" + ", ".join(f"%a{4 * step + i}" for i in range(4)) + "}"
            if registers
            else f"{images[0].descriptor(0, step)}"
        )
        steps += f"setp.eq.u32 %p3, 1, {step};\nwgmma.mma_async.sp.sync.aligned.{kind} {d}, {left}, {images[1].descriptor(base, step)}, %r{20 + step}, {selector}, %p3{tail};\n"
    stores = "".join(f"st.global.u32 [%d3+{4 * i}], %c{i};\n" for i in range(n // per))
    body = f"""ld.param.u64 %d3, [y]; mul.wide.u32 %d4, %r0, {4 * n // per}; add.s64 %d3, %d3, %d4;
{INIT}{expect(size)}
@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], {size}, [%r2];
{wait()}{load}wgmma.fence.sync.aligned;
{steps}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{stores}"""
    return kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=size)


def product(
    a: str, b: str, n: int, result: str, *, b_major="k", span=128, registers=False, selector=0, more="", seed=0
):
    random = np.random.default_rng(seed + n + span)
    k = 512 // operands.BITS[a]
    left = [operands.sparse(random, a, 64, k, ordered=bool(seed % 2)) for _ in range(2)]
    right, right_bytes = operands.encode(b, random.integers(0, 8, (n, 2 * k)))
    stored = np.concatenate([each.stored for each in left], 1)
    images = (
        along_k(stored, span),
        (wide_along_k if b_major == "k" else wide_along_rows)(right_bytes.reshape(n, 128), span),
    )
    base = -(-images[0].data.size // 1024) * 1024
    memory = np.zeros(-(-(base + images[1].data.size) // 16) * 16, np.uint8)
    memory[: images[0].data.size], memory[base : base + images[1].data.size] = images[0].data, images[1].data
    words = [
        np.concatenate([operands.metadata(random, a, each.indices[16 * w : 16 * w + 16], selector) for w in range(4)])
        for each in left
    ]
    z = np.concatenate(
        [stored.reshape(-1), np.zeros(8192 - stored.size, np.uint8), *(each.view(np.uint8) for each in words)]
    )
    per = {"f16": 4}.get(result, 2)
    tail = (
        ""
        if result == "s32"
        else ", 1, 1" + (f"{', 0' * (not registers)}, {int(b_major != 'k')}" if operands.BITS[a] == 16 else "")
    )
    text = text_of(
        f"m64n{n}k{k}{more}.{result}.{a}.{b}",
        images,
        memory.size,
        n,
        tail,
        registers=registers,
        selector=selector,
        per=per,
    )
    y = np.full((128, n // per), 0xFFFFFFFF, np.uint32)
    report = simulator.launch(text, "k", 1, 128, [memory, y, z], seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    found = np.zeros((64, n))
    found[tuple(positions(n))] = y.view({"f16": np.float16, "s32": np.int32}.get(result, np.float32)).reshape(
        128, n // 2
    )
    np.testing.assert_array_equal(found, left[0].whole @ right[:, :k].T + left[1].whole @ right[:, k:].T)
    assert report.counters["wgmma"] == 2 and report.counters["mma_macs"] == 64 * n * k
    assert report.counters["wgmma_shared_bytes"] == 2 * (n * 64 + (0 if registers else 64 * 32))


TYPES = [("f16", "f16", "f32", 2), ("f16", "f16", "f16", 2), ("bf16", "bf16", "f32", 2), ("tf32", "tf32", "f32", 2)]
TYPES += [(a, b, "s32", 1) for a in ("s8", "u8") for b in ("s8", "u8")]
TYPES += [(a, b, d, 1) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f16", "f32")]


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize(("a", "b", "result", "selectors"), TYPES)
def test_types(a, b, result, selectors, registers):
    for selector in range(selectors):
        product(a, b, 32, result, registers=registers, selector=selector, seed=selector)


@pytest.mark.parametrize("span", [0, 64, 128])
@pytest.mark.parametrize("b_major", ["k", "n"])
def test_majors_and_swizzles(b_major, span):
    product("bf16", "bf16", 64, "f32", b_major=b_major, span=span, seed=span)


@pytest.mark.parametrize("n", [8, 24, 128, 256])
@pytest.mark.parametrize("registers", [False, True])
def test_widths(n, registers):
    product("f16", "f16", n, "f32", b_major="n", span=128 if n % 64 == 0 else 0, registers=registers, seed=n)


def test_saturation():
    product("u8", "s8", 16, "s32", more=".satfinite")


IMAGE = (
    Image(np.zeros(64 * 128, np.uint8), (0, 32), 16, 1024, 128),
    Image(np.zeros(8 * 128, np.uint8), (0, 64), 16, 1024, 128),
)
SIZE = 64 * 128 + 8 * 128


def findings(text: str, words: int = 0x44444444):
    z = np.full(9216 // 4, words, np.uint32)
    return simulator.launch(text, "k", 1, 128, [np.zeros(SIZE, np.uint8), np.zeros((128, 4), np.uint32), z]).findings


@pytest.mark.parametrize(
    ("kind", "bad", "expected"),
    [
        ("m64n8k32.f32.f16.f16", 0x44440444, "two indices that differ"),
        ("m64n8k16.f32.tf32.tf32", 0x4444E484, "0b0100 or 0b1110"),
    ],
)
def test_metadata_that_are_none(kind, bad, expected):
    text = text_of(kind, IMAGE, SIZE, 8, ", 1, 1, 0, 0" if "f16" in kind else ", 1, 1")
    assert not findings(text)
    first, second = findings(text, bad)
    assert first.kind == second.kind == "sparse-metadata" and expected in first.message
    assert first.line == line_of(text, "wgmma.mma_async")


def test_metadata_may_be_written_at_once():
    """wgmma.fence and wait_group order accumulators and registers of A only; registers of A may not."""
    text = text_of("m64n8k32.f32.f16.f16", IMAGE, SIZE, 8, ", 1, 1, 0", registers=True)
    end = "wgmma.wait_group.sync.aligned 0;\n"
    assert not findings(text.replace(end, "mov.u32 %r20, 0; mov.u32 %r21, 0;\n" + end))
    assert not findings(
        text.replace("wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\nmov.u32 %r20, 0x88888888;\n")
    )
    (found,) = findings(text.replace(end, "mov.u32 %a3, 0;\n" + end))
    assert found.kind == "wgmma-accumulator" and "writes a register of A" in found.message


def test_in_flight():
    """The rules of the dense ones hold."""
    text = text_of("m64n8k32.f32.f16.f16", IMAGE, SIZE, 8, ", 1, 1, 0, 0")
    fence, end = "wgmma.fence.sync.aligned;\n", "wgmma.wait_group.sync.aligned 0;\n"
    assert not findings(text)
    assert {each.kind for each in findings(text.replace(end, ""))} == {"wgmma-accumulator"}
    assert {each.kind for each in findings(text.replace(fence, "mov.u32 %c0, 0;\n"))} == {"wgmma-accumulator"}
    overwrite = "@%p0 st.shared.u32 [%r1], %r0;\n"
    assert {each.kind for each in findings(text.replace(end, overwrite + end))} == {"async-overwrite"}


def test_a_swizzle_too_narrow_for_b():
    narrow = Image(IMAGE[1].data, (0, 64), 16, 256, 32)
    found = findings(text_of("m64n8k32.f32.f16.f16", (IMAGE[0], narrow), SIZE, 8, ", 1, 1, 0, 0"))
    assert found[0].kind == "wgmma-warpgroup"
    assert "swizzle of 64 or 128 bytes, or none, of a B that a sparse A meets" in found[0].message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((", %r20, 0,", ", %r20, 2,"), "expected a sparsity selector of 0 or 1, the two of four threads"),
        (("m64n8k32.f32.f16.f16", "m64n8k16.f32.f16.f16"), "expected"),
        (("m64n8k32.f32.f16.f16", "m64n8k64.f32.e4m3.e4m3"), "expected 8 operands of 'wgmma"),
        (("m64n8k32.f32.f16.f16", "m64n8k32.f32.f16.bf16"), "expected"),
        ((", 1, 1, 0, 0", ", 1, 1"), "expected"),
    ],
)
def test_refused(change, message):
    text = text_of("m64n8k32.f32.f16.f16", IMAGE, SIZE, 8, ", 1, 1, 0, 0")
    assert change[0] in text
    with pytest.raises(simulator.SimulatorError, match=message):
        findings(text.replace(*change))
