# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operands of matrix instructions as they lie in shared memory: K or the other dimension contiguous, by swizzles."""

from __future__ import annotations

import dataclasses

import numpy as np
from hopper_kernels import descriptor, swizzle

# Values that all types have exactly, and their bits as e4m3 and e5m2.
VALUES = np.array([0, 1, -1, 2, -2, 0.5, -0.5, 1.5])
E4M3 = np.array([0, 0x38, 0xB8, 0x40, 0xC0, 0x30, 0xB0, 0x3C], np.uint8)
E5M2 = np.array([0, 0x3C, 0xBC, 0x40, 0xC0, 0x38, 0xB8, 0x3E], np.uint8)


def encode(name: str, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Elements by their number in VALUES: what they are, and their bytes."""
    values = VALUES[which]
    if name in ("s8", "u8"):
        values = which - 3.0 if name == "s8" else which * 1.0
        return values, values.astype(np.int8 if name == "s8" else np.uint8).view(np.uint8)
    bits = {
        "e4m3": E4M3[which],
        "e5m2": E5M2[which],
        "f16": values.astype(np.float16),
        "tf32": values.astype(np.float32),
    }
    if name == "bf16":
        return values, (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return values, bits[name].view(np.uint8)


@dataclasses.dataclass
class Image:
    """An operand of two steps of k, 32 bytes each, in shared memory."""

    data: np.ndarray
    starts: tuple[int, int]
    leading: int
    stride: int
    span: int

    def descriptor(self, base: int, step: int, make=descriptor) -> int:
        return make(base + self.starts[step], self.leading, self.stride, self.span)


def along_k(rows: np.ndarray, span: int) -> Image:
    """A matrix of rows of 64 bytes, K being contiguous."""
    count = len(rows)
    if span == 0:
        pieces = rows.reshape(count // 8, 8, 4, 16).transpose(0, 2, 1, 3)
        return Image(pieces.reshape(-1), (0, 256), 128, 512, 0)
    if span == 32:  # a pattern for each step
        data = np.concatenate([rows[:, :32].reshape(-1), rows[:, 32:].reshape(-1)])
        return Image(swizzle(data, 32), (0, count * 32), 16, 256, 32)
    wide = np.zeros((count, span), np.uint8)
    wide[:, :64] = rows
    return Image(swizzle(wide.reshape(-1), span), (0, 32), 16, 8 * span, span)


def along_rows(rows: np.ndarray, span: int) -> Image:
    """The same of 16-bit elements, M or N being contiguous: rows are filled up to whole patterns."""
    each = max(span, 16) // 2
    elements = rows.view(np.uint16)
    elements = np.concatenate([elements, np.zeros((-len(elements) % each, elements.shape[1]), np.uint16)])
    pieces = elements.reshape(len(elements) // each, each, 2, 2, 8).transpose(2, 0, 3, 4, 1)
    data = np.ascontiguousarray(pieces).view(np.uint8).reshape(-1)
    half = data.size // 2
    near, far = 8 * max(span, 16), 16 * max(span, 16)
    leading, stride = (far, near) if span else (near, far)
    return Image(swizzle(data, span), (0, half), leading, stride, span)
