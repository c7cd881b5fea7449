# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Block scales of products of two blocks: each has the scales of its own rows of A, and those of all rows of B."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from operand_images import along_k
from tensor_kernels import AFTER, LOADED, STORED, kernel, load, store, wait
from test_tcgen05_pairs import BOTH, MEET, finish, read_out, start
from test_tcgen05_scales import memory_of, numbers, operand, scaled_instruction, words_of
from weft.compiler.ptxas import assemble, find_tool

#: Where the scales lie, behind D.
SCALES = 160


@dataclasses.dataclass(frozen=True)
class Case:
    """A product of 256 rows, one step of k, and what is wrong with it."""

    kind: str = "mxf8f6f4"
    vector: str = ""
    a: str = "e4m3"
    b: str = "e4m3"
    scale: str = "ue8m0"
    places: tuple[int, int] = (0, 0)
    n: int = 32
    copied: bool = False
    rows: int = 256
    where: str = "%p4"
    """The threads that store scales: all."""
    group: int = 2
    """Of the copies."""
    late: str = ""
    """What happens before the copies."""

    @property
    def k(self) -> int:
        return 32 if self.kind == "mxf8f6f4" else 64

    @property
    def each(self) -> int:
        return 16 if self.vector in (".scale_vec::4X", ".block16") else 32

    def operands(self, random) -> tuple[np.ndarray, list, list]:
        """What D is, the rows of both operands as bytes, and their scales."""
        parts = []
        padded = self.kind == "mxf8f6f4"
        low, high = (0x28, 0x48) if self.scale == "ue4m3" else (120, 134)
        sizes = numbers(4, 3) if self.scale == "ue4m3" else 2.0 ** (np.arange(256) - 127.0)
        for name, rows, place in zip((self.a, self.b), (256, self.n), self.places, strict=True):
            values, data = operand(name, rows, self.k, padded, random)
            scales = random.integers(low, high, (rows, 4)).astype(np.uint8)
            used = np.repeat(sizes[scales[:, place : place + self.k // self.each]], self.each, 1)
            parts.append((values * used, data, scales))
        return parts[0][0] @ parts[1][0].T, [part[1] for part in parts], [part[2] for part in parts]


def scale_code(case: Case, count: int, third: int) -> str:
    text = f"add.u32 %t4, %t0, {SCALES}; add.u32 %t5, %t0, {SCALES + 4}; add.u32 %t6, %t1, {SCALES}; setp.eq.u32 %p4, 0, 0; setp.eq.u32 %p6, %r15, 0;\n{case.late}"
    if case.copied:
        for i in range(count // 4):
            text += f"mov.b64 %d5, {tensor.descriptor(third + 512 * i, 16, 128, 0)}; add.u32 %t7, %t4, {4 * i}; @%p5 tcgen05.cp.cta_group::{case.group}.32x128b.warpx4 [%t7], %d5;\n"
        return text
    text += f"ld.param.u64 %d7, [z]; mul.wide.u32 %d4, %r15, {128 * count}; add.s64 %d7, %d7, %d4; and.b32 %r16, %r0, 31; mul.wide.u32 %d4, %r16, {4 * count}; add.s64 %d7, %d7, %d4;\n"
    text += "".join(f"ld.global.u32 %v{i}, [%d7+{4 * i}];\n" for i in range(count)) + f"@!{case.where} bra.uni S;\n"
    return text + "".join(store(1, first=i, address=f"%t6+{i}") for i in range(count)) + STORED + "S:\n" + MEET


def launched(case: Case, seed: int = 0) -> tuple[np.ndarray, np.ndarray, simulator.Report, str]:
    """D as it should be and as it is."""
    expected, rows, scales = case.operands(np.random.default_rng(case.n + seed))
    memory, words = [], []
    for left, right, left_scales in zip(*(np.split(each, 2) for each in (*rows, scales[0])), strict=True):
        images = [along_k(np.concatenate([x, np.zeros_like(x)], 1), 64) for x in (left, right)]
        both = np.concatenate([words_of(left_scales), words_of(scales[1])], 1)
        words.append(np.concatenate([both, np.zeros((32, -both.shape[1] % 4), np.uint32)], 1))
        count = words[-1].shape[1]
        blocks = words[-1].reshape(4, 8, count // 4, 4).transpose(2, 0, 1, 3)
        data, (_, base, third) = memory_of(
            *(image.data for image in images), np.ascontiguousarray(blocks).view(np.uint8)
        )
        memory.append(data)
    shape = scaled_instruction(case.n, case.a, case.b, case.scale, case.places, case.kind) + (
        (case.rows >> 7) - 1 << 27
    )
    at = [image.descriptor(where, 0, tensor.descriptor) for image, where in zip(images, (0, base), strict=True)]
    body = start(memory[0].size) + scale_code(case, count, third) + "setp.ne.u32 %p3, 0, 0;\n"
    body += tensor.multiply(
        f"{case.kind}.block_scale{case.vector}", *at, shape, group=2, masks=", [%t4], [%t5]"
    ).replace("@%p0", "@%p5")
    body += BOTH + wait(0, "%r3", "V") + AFTER + read_out(case.n) + finish()
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=memory[0].size)
    y = np.full((2, 128, case.n), np.nan, np.float32)
    report = simulator.launch(
        text, "k", 2, 128, [np.stack(memory), y, np.ascontiguousarray(np.stack(words))], seed=seed, cluster=2
    )
    return expected.reshape(2, 128, case.n), y, report, text


@pytest.mark.parametrize("copied", [False, True], ids=["stored", "copied"])
@pytest.mark.parametrize(
    "case",
    [Case(places=(0, 3)), Case(vector=".block32", a="e5m2", places=(2, 1), n=96), Case(a="e3m2", b="e2m3", places=(3, 2), n=128),
     Case("mxf4", "", "e2m1", "e2m1", places=(0, 2), n=64), Case("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", "ue4m3", n=96),
     Case("mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", places=(2, 0), n=112)],
    ids=lambda case: f"{case.kind}{case.vector}-{case.a}-{case.n}",
)  # fmt: skip
def test_products_of_pairs(case, copied):
    case = dataclasses.replace(case, copied=copied)
    for seed in (0, 5):
        expected, y, report, text = launched(case, seed)
        assert not report.findings, [str(finding) for finding in report.findings]
        assert not [each for each in report.advisories if each.kind == "tensor-race"]
        np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
        assert report.counters["mma_macs"] == 256 * case.n * case.k
    if find_tool("ptxas"):
        assemble(text.replace(".version 8.6", ".version 8.8"), "sm_100a")


#: At fault, each beside `Case(copied=...)`, which is clean.
PLANTS = {
    "scales stored in one block": ("uninitialised", Case(where="%p6")),
    "scales copied in one block": ("uninitialised", Case(copied=True, group=1)),
    "columns of one block": ("tensor-operands", Case(n=40)),
    "rows that no pair has": ("tensor-operands", Case(rows=384)),
    "scales of the other block written without a fence between proxies": (
        "missing-proxy-fence",
        Case(copied=True, late="setp.eq.u32 %p7, %r15, 1; and.pred %p7, %p7, %p0;\n@%p7 st.shared.u32 [%r1+THIRD], 0;\n" + MEET),
    ),
    "64 rows in each block": ("unsupported", Case(rows=128)),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found(name):
    kind, case = PLANTS[name]
    third = 128 * 64 + -(-case.n // 2 * 64 // 1024) * 1024
    case = dataclasses.replace(case, late=case.late.replace("THIRD", str(third)))
    for seed in (0, 3):
        report = launched(case, seed)[2]
        assert kind in {finding.kind for finding in report.findings}, list(map(str, report.findings))
    if case.late:
        mended = case.late.replace(MEET, "fence.proxy.async.shared::cta;\n" + MEET)
        assert not launched(dataclasses.replace(case, late=mended))[2].findings


@pytest.mark.parametrize("shape", ["128x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23"])
@pytest.mark.parametrize("seed", [0, 4])
def test_copies_of_both_blocks(shape, seed):
    """One thread of the even block has each block's shared memory copied to that block's tensor memory."""
    rows, parts = (64 if shape.startswith("64") else 128), (2 if "256b" in shape else 1)
    words = np.random.default_rng(seed).integers(0, 2**23, (2, rows, 4 * parts)).astype(np.uint32)
    images = [
        along_k(np.concatenate([each.view(np.uint8), np.zeros((rows, 64 - 16 * parts), np.uint8)], 1), 64)
        for each in words
    ]
    memory = np.stack([image.data for image in images])
    descriptor = tensor.descriptor(0, images[0].leading, images[0].stride, 64)
    body = start(memory[0].size) + f"mov.b64 %d5, {descriptor}; @%p5 tcgen05.cp.cta_group::2.{shape} [%t0], %d5;\n"
    body += BOTH + wait(0, "%r3", "V") + AFTER + load(4 * parts) + LOADED
    body += f"ld.param.u64 %d3, [y]; mad.lo.u32 %r16, %r15, 128, %r0; mul.wide.u32 %d4, %r16, {16 * parts}; add.s64 %d3, %d3, %d4;\n"
    body += "".join(f"st.global.u32 [%d3+{4 * i}], %v{i};\n" for i in range(4 * parts)) + finish()
    text = kernel(body, parameters=".param .u64 x, .param .u64 y", shared=memory[0].size)
    y = np.zeros((2, 128, 4 * parts), np.uint32)
    report = simulator.launch(text, "k", 2, 128, [memory, y], seed=seed, cluster=2)
    assert not report.findings, [str(finding) for finding in report.findings]
    lanes = {
        "02_13": lambda row: (row, row + 64),
        "01_23": lambda row: (row + row // 32 * 32, row + row // 32 * 32 + 32),
    }
    for row in range(rows):
        for lane in lanes.get(shape[-5:], lambda row: (row,))(row):
            np.testing.assert_array_equal(y[:, lane], words[:, row])
    assert report.counters["tensor_bytes_written"] == 2 * 128 * 16 * parts
