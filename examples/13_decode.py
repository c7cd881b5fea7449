# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Token by token over a cache in pages: what causal attention over the whole sequence gives, one row at a time.

Run it: python examples/13_decode.py
"""

import torch
import weft
from weft.attention import attend, decode

BATCH, HEADS, KEY_HEADS, TOKENS, HEAD, PAGE = 2, 8, 2, 24, 64, 8


def main() -> None:
    torch.manual_seed(0)
    q = torch.randn(BATCH, HEADS, TOKENS, HEAD)
    k, v = (torch.randn(BATCH, KEY_HEADS, TOKENS, HEAD) for _ in range(2))
    whole = attend(q, k, v, weft.causal())

    # Pages of all sequences lie in one pool, in any order; what nobody has written is NaN, and nobody reads it.
    each = -(-TOKENS // PAGE)
    keys, values = (torch.full((BATCH * each, PAGE, KEY_HEADS, HEAD), torch.nan) for _ in range(2))
    block_table = torch.randperm(BATCH * each).reshape(BATCH, each).to(torch.int32)
    largest = 0.0
    for token in range(TOKENS):
        now = slice(token, token + 1)
        seqused_k = torch.full((BATCH,), token + 1, dtype=torch.int32)
        out = decode(
            q[:, :, now], keys, values, block_table=block_table, seqused_k=seqused_k,
            k_new=k[:, :, now], v_new=v[:, :, now],
        )  # fmt: skip
        largest = max(largest, float((out - whole[:, :, now]).abs().max()))
    print(f"{TOKENS} tokens, largest difference from attention over the whole sequence: {largest:.1e}")
    assert largest < 1e-5, "expected decoding to give what attention gives"


if __name__ == "__main__":
    main()
