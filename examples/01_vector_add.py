# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Vector addition: the smallest tile kernel. Run it: python examples/01_vector_add.py"""

import numpy as np
import weft
import weft.language as wl


@weft.jit
def vector_add(x, y, z, n, BLOCK: wl.constexpr):
    offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    mask = offsets < n
    wl.store(z + offsets, wl.load(x + offsets, mask=mask) + wl.load(y + offsets, mask=mask), mask=mask)


def main():
    rng = np.random.default_rng()
    for n in (1, 1000, 98432):
        x, y = rng.standard_normal((2, n), dtype=np.float32)
        z = np.full(n, np.nan, np.float32)
        vector_add[(weft.cdiv(n, 1024),)](x, y, z, n, BLOCK=1024)
        assert np.array_equal(z, x + y), f"n = {n}: the sum differs from NumPy's"
        print(f"vector add, n = {n:6}, float32 on {weft.device()}: equal to NumPy's, bit for bit")


if __name__ == "__main__":
    main()
