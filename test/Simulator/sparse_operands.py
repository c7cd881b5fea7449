# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Structured sparse matrices for the tests of mma.sp and wgmma.mma_async.sp: their elements, stored ones, metadata, and
the registers that hold both, as the PTX ISA describes them ("Sparse matrix storage" and the fragments behind it).
"""

from __future__ import annotations

import dataclasses

import numpy as np

#: Bits of an element, the elements that four bits of metadata are for.
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4}
CHUNK = {4: 8, 8: 4, 16: 4, 32: 2}
# Values that all floating-point types have exactly, and their bits as e4m3 and e5m2.
VALUES = np.array([0, 1, -1, 2, -2, 0.5, -0.5, 1.5])
E4M3 = np.array([0, 0x38, 0xB8, 0x40, 0xC0, 0x30, 0xB0, 0x3C], np.uint8)
E5M2 = np.array([0, 0x3C, 0xBC, 0x40, 0xC0, 0x38, 0xB8, 0x3E], np.uint8)


def encode(name: str, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements by numbers from 0 to 7: what they are, and their rows' bytes."""
    which = np.ascontiguousarray(which)
    if name in ("s4", "u4", "s8", "u8"):
        values = which - 3 if name[0] == "s" else which
        raw = values.astype(np.int8).view(np.uint8)
        if name[1] == "4":
            raw = (raw[..., ::2] & 15) | (raw[..., 1::2] & 15) << 4
        return values.astype(np.float64), raw
    values = VALUES[which]
    single = values.astype(np.float32)
    bits = {
        "e4m3": E4M3[which],
        "e5m2": E5M2[which],
        "f16": values.astype(np.float16),
        "bf16": (single.view(np.uint32) >> 16).astype(np.uint16),
        "tf32": single,
    }
    return values, np.ascontiguousarray(bits[name]).view(np.uint8)


@dataclasses.dataclass
class Sparse:
    """A matrix of which half of each row is stored."""

    whole: np.ndarray  #: [rows, k]
    stored: np.ndarray  #: bytes, [rows, bytes of k / 2 elements]
    indices: np.ndarray  #: [rows, chunks]: the four bits of metadata of each


def sparse(random: np.random.Generator, name: str, rows: int, k: int, ordered: bool = True) -> Sparse:
    """A random one: of each chunk two elements are stored, in order or in any; of 4-bit types two pairs of elements, of
    tf32, whose chunks have two, one.
    """
    bits = BITS[name]
    chunk = CHUNK[bits]
    first = random.integers(0, 4, (rows, k // chunk))
    second = (first + random.integers(1, 4, first.shape)) % 4
    if ordered:
        first, second = np.minimum(first, second), np.maximum(first, second)
    indices = first | second << 2
    at = np.stack([first, second], -1)
    if bits == 32:
        indices = np.where(first % 2, 0b1110, 0b0100)
        at = (first % 2)[..., None]
    elif bits == 4:
        at = (2 * at[..., None] + [0, 1]).reshape(*first.shape, 4)
    columns = (at + chunk * np.arange(k // chunk)[None, :, None]).reshape(rows, k // 2)
    values, stored = encode(name, random.integers(0, 8, (rows, k // 2)))
    whole = np.zeros((rows, k))
    np.put_along_axis(whole, columns, values, 1)
    return Sparse(whole, stored, indices)


def metadata(random: np.random.Generator, name: str, indices: np.ndarray, selector: int) -> np.ndarray:
    """The words of a warp's 32 lanes for 16 rows; lanes that the selector does not name hold anything."""
    words = random.integers(0, 2**32, 32, dtype=np.uint64)
    chunks = indices.shape[1]
    for lane in range(32):
        group, thread = divmod(lane, 4)
        holds, word = False, 0
        for nibble in range(8):
            lower, which = group + 8 * (nibble // 4), nibble % 4
            if chunks == 4:  # one thread of four: both rows
                row, chunk, holds = lower, which, thread == selector
            elif chunks == 8 and BITS[name] >= 16:  # two threads: each half of both rows
                row, chunk, holds = lower, which + 4 * (thread % 2), thread // 2 == selector
            elif chunks == 8:  # two threads: each a row
                row, chunk, holds = group + 8 * (thread % 2), nibble, thread // 2 == selector
            else:  # all four: each half of a row
                row, chunk, holds = group + 8 * (thread % 2), nibble + 8 * (thread // 2), True
            word |= int(indices[row, chunk]) << 4 * nibble
        if holds:
            words[lane] = word
    return words.astype(np.uint32)


def fragment(rows: np.ndarray) -> np.ndarray:
    """[register, lane]: the words of a warp's fragment of 16 rows of A, or of 8 columns of B, K being contiguous."""
    words = np.ascontiguousarray(rows).view(np.uint32)
    lane = np.arange(32)
    high = len(words) // 8
    registers = range(high * words.shape[1] // 4)
    return np.stack([words[lane // 4 + 8 * (i % high), 4 * (i // high) + lane % 4] for i in registers])
