# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Row softmax: one program a row, the row in registers. Run it: python examples/02_softmax.py"""

import numpy as np
import weft
import weft.language as wl


@weft.jit
def row_softmax(x, y, stride_x, stride_y, columns, BLOCK: wl.constexpr):
    row = wl.program_id(0)
    offsets = wl.arange(0, BLOCK)
    mask = offsets < columns
    values = wl.load(x + row * stride_x + offsets, mask=mask, other=-float("inf"))
    exponentials = wl.exp(values - wl.max(values, axis=0))
    wl.store(y + row * stride_y + offsets, exponentials / wl.sum(exponentials, axis=0), mask=mask)


def softmax(x: np.ndarray) -> np.ndarray:
    """Softmax along the last axis of a [rows, columns] array whose last stride is one element."""
    rows, columns = x.shape
    y = np.full((rows, columns), np.nan, x.dtype)
    strides = (x.strides[0] // x.itemsize, y.strides[0] // y.itemsize)
    row_softmax[(rows,)](x, y, *strides, columns, BLOCK=weft.next_power_of_2(columns), num_warps=4)
    return y


def main():
    rng = np.random.default_rng()
    for rows, columns in ((4, 1), (7, 781), (64, 1024), (3, 4000)):
        x = rng.standard_normal((rows, columns), dtype=np.float32)
        exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        exact /= exact.sum(1, keepdims=True)
        error = np.abs(softmax(x) - exact).max()
        assert error < 1e-6, f"{rows}x{columns}: error {error:.2e}"
        print(f"softmax, {rows:3} x {columns:4}, float32 on {weft.device()}: error against float64 {error:.1e}")


if __name__ == "__main__":
    main()
