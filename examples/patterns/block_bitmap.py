# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A bitmap of blocks that a kernel computed on the device: here, blocks whose first query and key agree.
Run it: python examples/patterns/block_bitmap.py
"""

import torch
import weft
import weft.language as wl
from weft.testing import Domain, attention, demonstrate, masks

BLOCK = 32


@weft.jit
def agreement(q, k, bits, stride_qh, stride_kh, BLOCK: wl.constexpr, D: wl.constexpr):
    row, column, head, channel = wl.program_id(0), wl.program_id(1), wl.program_id(2), wl.arange(0, D)
    query = wl.load(q + head * stride_qh + row * BLOCK * D + channel).to(wl.float32)
    key = wl.load(k + head * stride_kh + column * BLOCK * D + channel).to(wl.float32)
    place = (head * wl.num_programs(0) + row) * wl.num_programs(1) + column
    wl.store(bits + place, wl.sum(query * key, axis=0) > 0)


@weft.program
def block_bitmap(q, k, v, bits):
    return weft.softmax(q, k, weft.block_bitmap(bits, block=(BLOCK, BLOCK))) @ v


def inputs(randn):
    q, k, v = randn(1, 2, 250, 64), randn(1, 2, 330, 64), randn(1, 2, 330, 64)
    rows, columns = weft.cdiv(250, BLOCK), weft.cdiv(330, BLOCK)
    bits = torch.zeros(1, 2, rows, columns, dtype=torch.bool)
    agreement[(rows, columns, 2)](q, k, bits, q.stride(1), k.stride(1), BLOCK=BLOCK, D=64)
    return {"q": q, "k": k, "v": v, "bits": bits}


def expected(q, k, v, bits, form):
    return attention(q, [Domain(k, v, masks.block_bitmap(250, 330, bits, (BLOCK, BLOCK)))], form=form)[0]


if __name__ == "__main__":
    demonstrate(block_bitmap, expected, inputs, title="block bitmap")
