# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""tcgen05.mma of 4, 6 and 8 bits with and without block scales, and tcgen05.cp, against float64."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from operand_images import along_k
from tensor_kernels import AFTER, LOADED, MEET, STORED, alloc, commit, dealloc, kernel, load, store, wait
from test_tcgen05 import copy_in, read_out


def numbers(exponents: int, fractions: int) -> np.ndarray:
    """The numbers of a format without infinities, by their bits."""
    bits = np.arange(1 << (1 + exponents + fractions))
    exponent, fraction = bits >> fractions & ((1 << exponents) - 1), bits & ((1 << fractions) - 1)
    bias = (1 << (exponents - 1)) - 1
    sizes = np.where(exponent > 0, 1 + fraction / (1 << fractions), fraction / (1 << fractions))
    return np.where(bits >> (exponents + fractions), -1, 1) * sizes * 2.0 ** (np.maximum(exponent, 1) - bias)


#: Numbers and bits of each type; of e4m3 and e5m2 those that are numbers.
TYPES = {
    "e4m3": (numbers(4, 3)[:0x7F], 8), "e5m2": (numbers(5, 2)[:0x7C], 8), "e2m3": (numbers(2, 3), 6),
    "e3m2": (numbers(3, 2), 6), "e2m1": (numbers(2, 1), 4),
}  # fmt: skip


def packed(codes: np.ndarray, bits: int, padded: bool) -> np.ndarray:
    """Rows of codes as bytes: 16 of them in 16 bytes where they are padded, else without gaps."""
    rows, count = codes.shape
    whole = np.zeros((rows, count // 16, 16), np.uint8)
    for i in range(16):
        for bit in range(bits):
            at = i * bits + bit
            whole[:, :, at // 8] |= ((codes.reshape(rows, -1, 16)[:, :, i] >> bit & 1) << at % 8).astype(np.uint8)
    return (whole if padded else whole[:, :, : 2 * bits]).reshape(rows, -1)


def operand(name: str, rows: int, k: int, padded: bool, random) -> tuple[np.ndarray, np.ndarray]:
    values, bits = TYPES[name]
    codes = random.integers(0, len(values), (rows, k))
    return values[codes], packed(codes, bits, padded)


def memory_of(*parts: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Parts one after another, each from a multiple of 1024 bytes on."""
    starts, whole = [], np.zeros(0, np.uint8)
    for part in parts:
        whole = np.concatenate([whole, np.zeros(-whole.size % 1024, np.uint8)])
        starts.append(whole.size)
        whole = np.concatenate([whole, part.reshape(-1)])
    return np.concatenate([whole, np.zeros(-whole.size % 16, np.uint8)]), starts


def run(body: str, memory: np.ndarray, n: int, seed: int, z=None) -> tuple[np.ndarray, simulator.Report]:
    y = np.full((128, n), np.nan, np.float32)
    text = kernel(
        copy_in(memory.size) + body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=memory.size
    )
    report = simulator.launch(text, "k", 1, 128, [memory, y, np.zeros(1, np.uint32) if z is None else z], seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert not [each for each in report.advisories if each.kind == "tensor-race"]
    return y, report


@pytest.mark.parametrize(
    ("a", "b"), [("e2m1", "e2m1"), ("e2m3", "e3m2"), ("e3m2", "e4m3"), ("e5m2", "e2m1"), ("e4m3", "e2m3")]
)
def test_narrow_types(a, b):
    random = np.random.default_rng(5)
    n = 48
    (a, a_bytes), (b, b_bytes), names = operand(a, 128, 64, True, random), operand(b, n, 64, True, random), (a, b)
    images = [along_k(each, 64) for each in (a_bytes, b_bytes)]
    memory, (_, base) = memory_of(*(image.data for image in images))
    shape = tensor.instruction(128, n, *names)
    steps = "".join(
        f"setp.eq.u32 %p3, 1, {step};\n"
        + tensor.multiply(
            "f8f6f4",
            images[0].descriptor(0, step, tensor.descriptor),
            images[1].descriptor(base, step, tensor.descriptor),
            shape,
        )
        for step in range(2)
    )
    y, _ = run(alloc(64) + steps + commit() + wait(0, "%r3", "V") + AFTER + read_out(n) + dealloc(64), memory, n, 3)
    np.testing.assert_allclose(y, a @ b.T, rtol=1e-6, atol=1e-6 * np.abs(a @ b.T).max())


def scaled_instruction(n: int, a: str, b: str, scale: str, places: tuple[int, int], kind: str) -> int:
    types = (1, 1) if kind.startswith("mxf4") else (tensor.TYPES[a], tensor.TYPES[b])
    return (
        types[0] << 7
        | types[1] << 10
        | n >> 3 << 17
        | (scale == "ue8m0") << 23
        | 1 << 27
        | places[0] << 29
        | places[1] << 4
    )


def words_of(scales: np.ndarray) -> np.ndarray:
    """[rows, 4] bytes as 32 lanes have them: a row's in a word, 32 rows in a column."""
    words = np.ascontiguousarray(scales).view(np.uint32).reshape(-1)
    words = np.concatenate([words, np.zeros(-len(words) % 32, np.uint32)])
    return words.reshape(-1, 32).T


@pytest.mark.parametrize(
    ("kind", "vector", "a", "b", "scale", "places"),
    [("mxf8f6f4", "", "e4m3", "e4m3", "ue8m0", (0, 3)), ("mxf8f6f4", ".block32", "e5m2", "e4m3", "ue8m0", (2, 1)),
     ("mxf8f6f4", ".scale_vec::1X", "e4m3", "e2m1", "ue8m0", (1, 0)), ("mxf8f6f4", "", "e3m2", "e2m3", "ue8m0", (3, 2)),
     ("mxf4", "", "e2m1", "e2m1", "ue8m0", (0, 2)), ("mxf4", ".scale_vec::2X", "e2m1", "e2m1", "ue8m0", (2, 0)),
     ("mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", "ue8m0", (2, 2)), ("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", "ue4m3", (0, 0)),
     ("mxf4nvf4", ".block16", "e2m1", "e2m1", "ue8m0", (0, 0))],
)  # fmt: skip
@pytest.mark.parametrize(("n", "copied", "seed"), [(32, False, 0), (96, True, 1), (200, False, 2)])
def test_block_scales(kind, vector, a, b, scale, places, n, copied, seed):
    """One step of k; the scales are stored by threads, or brought by tcgen05.cp."""
    random = np.random.default_rng(n)
    wide = kind != "mxf8f6f4"
    k, each = (64 if wide else 32), (16 if vector in (".scale_vec::4X", ".block16") else 32)
    names = (a, b)
    (a, a_bytes), (b, b_bytes) = operand(a, 128, k, not wide, random), operand(b, n, k, not wide, random)
    low, high = (0x28, 0x48) if scale == "ue4m3" else (120, 134)
    a_scales, b_scales = (random.integers(low, high, (rows, 4)).astype(np.uint8) for rows in (128, n))
    values = numbers(4, 3) if scale == "ue4m3" else 2.0 ** (np.arange(256) - 127.0)

    def scaled(x, scales, place):
        return x * np.repeat(values[scales[:, place : place + k // each]], each, 1)

    expected = scaled(a, a_scales, places[0]) @ scaled(b, b_scales, places[1]).T
    images = [along_k(np.concatenate([x, np.zeros_like(x)], 1), 64) for x in (a_bytes, b_bytes)]
    words = np.concatenate([words_of(a_scales), words_of(b_scales)], 1)
    words = np.concatenate([words, np.zeros((32, -words.shape[1] % 4), np.uint32)], 1)
    count = words.shape[1]
    blocks = words.reshape(4, 8, count // 4, 4).transpose(2, 0, 1, 3)  # 16 bytes of 32 lanes each, without a swizzle
    memory, (_, base, third) = memory_of(*(image.data for image in images), np.ascontiguousarray(blocks).view(np.uint8))
    body = alloc(512) + f"add.u32 %t4, %t0, 256; add.u32 %t5, %t0, {256 + 4}; add.u32 %t6, %t1, 256;\n"
    if copied:
        for i in range(count // 4):
            body += f"mov.b64 %d5, {tensor.descriptor(third + 512 * i, 16, 128, 0)}; add.u32 %t7, %t4, {4 * i}; @%p0 tcgen05.cp.cta_group::1.32x128b.warpx4 [%t7], %d5;\n"
    else:
        body += f"ld.param.u64 %d7, [z]; and.b32 %r16, %r0, 31; mul.wide.u32 %d4, %r16, {4 * count}; add.s64 %d7, %d7, %d4;\n"
        for i in range(count):
            body += f"ld.global.u32 %v{i}, [%d7+{4 * i}];\n"
        body += "".join(store(1, first=i, address=f"%t6+{i}") for i in range(count)) + STORED + MEET
    shape = scaled_instruction(n, *names, scale, places, kind)
    body += "setp.ne.u32 %p3, 0, 0;\n" + tensor.multiply(
        f"{kind}.block_scale{vector}",
        images[0].descriptor(0, 0, tensor.descriptor),
        images[1].descriptor(base, 0, tensor.descriptor),
        shape,
        masks=", [%t4], [%t5]",
    )
    body += commit() + wait(0, "%r3", "V") + AFTER + read_out(n) + dealloc(512)
    y, report = run(body, memory, n, seed, np.ascontiguousarray(words))
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert report.counters["mma_macs"] == 128 * n * k


@pytest.mark.parametrize(
    ("shape", "rows", "parts", "lanes"),
    [("128x256b", 128, 2, lambda row: [row]), ("128x128b", 128, 1, lambda row: [row]),
     ("64x128b.warpx2::02_13", 64, 1, lambda row: [row, row + 64]),
     ("64x128b.warpx2::01_23", 64, 1, lambda row: [row + row // 32 * 32, row + row // 32 * 32 + 32]),
     ("32x128b.warpx4", 32, 1, lambda row: [row, row + 32, row + 64, row + 96])],
)  # fmt: skip
@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_copies(shape, rows, parts, lanes, span):
    words = np.random.default_rng(rows).integers(0, 2**23, (rows, 4 * parts)).astype(np.uint32)
    image = along_k(np.concatenate([words.view(np.uint8), np.zeros((rows, 64 - 16 * parts), np.uint8)], 1), span)
    descriptor = tensor.descriptor(0, image.leading, image.stride, span)
    body = (
        alloc(32)
        + f"mov.b64 %d5, {descriptor}; @%p0 tcgen05.cp.cta_group::1.{shape} [%t0], %d5;\n{commit()}{wait(0, '%r3', 'V')}{AFTER}"
    )
    body += (
        load(4 * parts)
        + LOADED
        + f"ld.param.u64 %d3, [y]; mul.wide.u32 %d4, %r0, {16 * parts}; add.s64 %d3, %d3, %d4;\n"
    )
    body += "".join(f"st.global.u32 [%d3+{4 * i}], %v{i};\n" for i in range(4 * parts)) + dealloc(32)
    y, report = run(body, image.data, 4 * parts, span)
    for row in range(rows):
        for lane in lanes(row):
            np.testing.assert_array_equal(y.view(np.uint32)[lane], words[row])
    assert report.counters["tensor_bytes_written"] == 128 * 16 * parts
