# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""tcgen05.mma: types, both majors, swizzles, A in shared or tensor memory, against float64."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from hopper_kernels import expect
from operand_images import Image, along_k, along_rows, encode
from tensor_kernels import AFTER, INIT, LOADED, MEET, STORED, alloc, commit, dealloc, kernel, load, store, wait

KINDS = {"f16": "f16", "bf16": "f16", "tf32": "tf32", "u8": "i8", "s8": "i8"}


def copy_in(count: int) -> str:
    """Thread 0 brings the memory of parameter x into shared memory; all wait for it."""
    return f"{INIT}{expect(count)}@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%d0], {count}, [%r2];\n{wait()}"


def lanes_of(m: int, lane: int = 0) -> np.ndarray:
    """The lanes of tensor memory that rows of D lie in (PTX ISA 9.7.16.10.5, layouts D and F)."""
    rows = np.arange(m)
    return rows if m == 128 else rows // 16 * 32 + rows % 16 + lane


def read_out(n: int) -> str:
    """Every thread stores the n columns of its lane to parameter y."""
    text = f"ld.param.u64 %d3, [y]; mul.wide.u32 %d4, %r0, {4 * n}; add.s64 %d3, %d3, %d4;\n"
    for first in range(0, n, 64):
        count = min(64, n - first)
        for at in range(0, count, 8):
            text += load(8, first=at, address=f"%t1+{first + at}")
        text += LOADED + "".join(f"st.global.u32 [%d3+{4 * (first + i)}], %v{i};\n" for i in range(count))
    return text


def a_in_tensor_memory(n: int) -> str:
    """Threads store the words of their lane of A, of parameter z, behind D."""
    text = f"ld.param.u64 %d7, [z]; mul.wide.u32 %d4, %r0, 64; add.s64 %d7, %d7, %d4;\nadd.u32 %t4, %t1, {n}; add.u32 %t5, %t0, {n}; add.u32 %t6, %t0, {n + 8};\n"
    text += "".join(f"ld.global.u32 %v{i}, [%d7+{4 * i}];\n" for i in range(16))
    return text + store(16, address="%t4") + STORED + MEET


def product(a_type: str, b_type: str, m: int, n: int, result: str = "f32", *, a_major="k", b_major="k", span=128, in_tensor=False, seed=0,
            negated=(False, False), lane=0, disabled=(0, 0, 0, 0), scale=0, columns=512):  # fmt: skip
    """D = A0 B0, then D = A1 B1 + D / 2^scale; compares all of D with float64."""
    random = np.random.default_rng(m + n + span)
    size = {"f16": 2, "bf16": 2, "tf32": 4}.get(a_type, 1)
    k = 32 // size
    a, a_bits = encode(a_type, random.integers(0, 8, (m, 2 * k)))
    b, b_bits = encode(b_type, random.integers(0, 8, (n, 2 * k)))
    turned = (words_along_rows, 129) if size == 4 else (along_rows, span)
    lay = {"k": (along_k, span), "m": turned, "n": turned}
    images = [
        lay[major][0](bits.reshape(-1, 64), lay[major][1]) for major, bits in ((a_major, a_bits), (b_major, b_bits))
    ]
    base = -(-images[0].data.size // 1024) * 1024
    memory = np.zeros(base + -(-images[1].data.size // 16) * 16, np.uint8)
    memory[: images[0].data.size], memory[base : base + images[1].data.size] = images[0].data, images[1].data
    in_lanes = np.zeros((128, 64), np.uint8)
    in_lanes[lanes_of(m, lane)] = a_bits.reshape(m, 64)
    described = tensor.instruction(
        m, n, a_type, b_type, result, negated=negated, turned=(a_major != "k", b_major != "k")
    )
    masks = ", {%r20, %r21, %r22, %r23}" if any(disabled) else ""
    masked = "".join(f"mov.b32 %r{20 + i}, {each};\n" for i, each in enumerate(disabled))
    steps = (
        f"add.u32 %t7, %t0, {lane << 16}; add.u32 %t8, %t5, {lane << 16}; add.u32 %t9, %t6, {lane << 16};\n"
        if in_tensor
        else f"add.u32 %t7, %t0, {lane << 16};\n"
    )
    for step in range(2):
        left = f"[%t{8 + step}]" if in_tensor else images[0].descriptor(0, step, tensor.descriptor)
        tail = f", {scale}" if scale and step else ""
        steps += f"setp.eq.u32 %p3, 1, {step};\n" + tensor.multiply(
            KINDS.get(a_type, "f8f6f4"),
            left,
            images[1].descriptor(base, step, tensor.descriptor),
            described,
            d="%t7",
            tail=tail,
            masks=masks,
        )
    # What D holds before: 2 in every column.
    bits = {"f16": 0x4000, "s32": 2}.get(result, 0x40000000)
    fill = (
        "".join(f"mov.b32 %v{i}, {bits};\n" for i in range(8))
        + "".join(store(8, address=f"%t1+{at}") for at in range(0, n, 8))
        + STORED
        + MEET
    )
    body = copy_in(memory.size) + alloc(columns) + fill + (a_in_tensor_memory(n) if in_tensor else "") + masked + steps
    body += commit() + wait(0, "%r3", "V") + AFTER + read_out(n) + dealloc(columns)
    y = np.full((128, n), 0xFFFFFFFF, np.uint32)
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=memory.size)
    report = simulator.launch(text, "k", 1, 128, [memory, y, in_lanes], seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert not report.advisories, [str(finding) for finding in report.advisories]
    found = {"f16": y.astype(np.uint16).view(np.float16), "s32": y.view(np.int32)}.get(
        result, y.view(np.float32)
    ).astype(np.float64)
    sign = (-1) ** (negated[0] != negated[1])
    expected = np.full((128, n), 2.0)
    expected[lanes_of(m, lane)] = sign * (a[:, :k] @ b[:, :k].T / 2**scale + a[:, k:] @ b[:, k:].T)
    off = np.array([disabled[row // 32] >> row % 32 & 1 for row in range(128)], bool)
    expected[off] = 2.0
    np.testing.assert_array_equal(found, expected)
    assert report.counters["tcgen05_mma"] == 2 and report.counters["mma_macs"] == 2 * m * n * k
    assert report.counters["tensor_bytes_read"] == 128 * n * 4


def test_the_smallest_matmul():
    product("f16", "f16", 128, 64)


@pytest.mark.parametrize("in_tensor", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "result"),
    [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32"), ("s8", "s8", "s32"), ("u8", "s8", "s32"),
     ("e4m3", "e4m3", "f32"), ("e5m2", "e4m3", "f32"), ("e4m3", "e5m2", "f16")],
)  # fmt: skip
def test_types(a, b, result, in_tensor):
    product(a, b, 128, 32, result, in_tensor=in_tensor, seed=7)


@pytest.mark.parametrize("span", [0, 32, 64, 128])
@pytest.mark.parametrize(("a_major", "b_major"), [("k", "k"), ("m", "k"), ("k", "n"), ("m", "n")])
def test_majors_and_swizzles(a_major, b_major, span):
    product("bf16", "bf16", 128, 64, a_major=a_major, b_major=b_major, span=span, seed=span)


def words_along_rows(rows: np.ndarray, span: int) -> Image:
    """A matrix of rows of 16 words, M or N being contiguous, in lines of 128 bytes of which 32 bytes move at a time."""
    words = rows.view(np.uint32)
    words = np.concatenate([words, np.zeros((-len(words) % 32, 16), np.uint32)])
    pieces = words.reshape(len(words) // 32, 32, 2, 2, 4).transpose(2, 0, 3, 4, 1)  # step, lines, fours of k, k, words
    plain = np.ascontiguousarray(pieces).view(np.uint8).reshape(-1)
    at = np.arange(plain.size)
    data = np.empty_like(plain)
    data[at ^ ((at >> 7 & 3) << 5)] = plain
    return Image(data, (0, data.size // 2), 1024, 512, span)


@pytest.mark.parametrize(("a_major", "b_major"), [("m", "n"), ("m", "k"), ("k", "n")])
@pytest.mark.parametrize(("m", "n"), [(128, 64), (64, 40)])
def test_words_along_rows(m, n, a_major, b_major):
    product("tf32", "tf32", m, n, a_major=a_major, b_major=b_major, seed=m)


@pytest.mark.parametrize("n", [8, 24, 128, 176, 256])
@pytest.mark.parametrize("m", [64, 128])
def test_shapes(m, n):
    product("f16", "f16", m, n, b_major="n", span=128 if n % 64 == 0 else 0, seed=n)


@pytest.mark.parametrize("in_tensor", [False, True])
@pytest.mark.parametrize("lane", [0, 16])
def test_64_rows_in_either_half_of_the_lanes(lane, in_tensor):
    product("f16", "f16", 64, 40, lane=lane, in_tensor=in_tensor, seed=3)


@pytest.mark.parametrize("negated", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("kind", ["f16", "tf32", "e4m3"])
def test_negation(kind, negated):
    product(kind, kind, 128, 16, negated=negated)


@pytest.mark.parametrize("m", [64, 128])
def test_lanes_that_are_not_written(m):
    product("f16", "f16", m, 16, disabled=(0x80000001, 0xFFFF, 0, 0x00F0))


@pytest.mark.parametrize(("kind", "result"), [("f16", "f32"), ("f16", "f16"), ("tf32", "f32")])
def test_scale_of_d(kind, result):
    product(kind, kind, 128, 16, result, scale=3)
