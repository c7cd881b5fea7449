# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Matrix product in f16, bf16 and f32, any M, N, K. Run it: python examples/03_matmul.py"""

import torch
import weft
import weft.language as wl


@weft.jit
def matmul_kernel(
    a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr, BLOCK_K: wl.constexpr, PRECISION: wl.constexpr,
):  # fmt: skip
    rows = wl.program_id(0) * BLOCK_M + wl.arange(0, BLOCK_M)
    columns = wl.program_id(1) * BLOCK_N + wl.arange(0, BLOCK_N)
    inner = wl.arange(0, BLOCK_K)
    a_ptrs = a + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b + inner[:, None] * stride_bk + columns[None, :] * stride_bn
    acc = wl.zeros((BLOCK_M, BLOCK_N), dtype=wl.float32)
    for k in range(0, K, BLOCK_K):
        a_tile = wl.load(a_ptrs, mask=(rows[:, None] < M) & (k + inner[None, :] < K), other=0.0)
        b_tile = wl.load(b_ptrs, mask=(k + inner[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = wl.dot(a_tile, b_tile, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    wl.store(c_ptrs, acc.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a: torch.Tensor, b: torch.Tensor, *, precision: str = "ieee", block=(64, 64, 32)) -> torch.Tensor:
    """a [M, K] times b [K, N], any strides; f32 products are exact to f32 ("ieee") or go through tf32 ("tf32")."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.full((M, N), torch.nan, dtype=a.dtype, device=a.device)
    grid = (weft.cdiv(M, block[0]), weft.cdiv(N, block[1]))
    matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], PRECISION=precision, num_warps=4, num_stages=3,
    )  # fmt: skip
    return c


# The bound on ‖c - exact‖ / ‖exact‖: half a unit in the last place of the result's type, of tf32's eleven bits for
# tf32.
BOUNDS = {
    (torch.float16, "tf32"): 2.0**-11,
    (torch.bfloat16, "tf32"): 2.0**-8,
    (torch.float32, "ieee"): 1e-6,
    (torch.float32, "tf32"): 2.0**-10,
}


def main():
    for (dtype, precision), bound in BOUNDS.items():
        for M, N, K in ((1, 1, 1), (64, 64, 64), (113, 203, 77), (128, 256, 512)):
            a = torch.randn(M, K).to(dtype)
            b = torch.randn(N, K).to(dtype).T if N % 2 else torch.randn(K, N).to(dtype)
            c = matmul(a, b, precision=precision)
            exact = a.double() @ b.double()
            error = float((c.double() - exact).norm() / exact.norm())
            assert error <= bound, f"{dtype} {M}x{N}x{K}: relative error {error:.2e}, expected at most {bound:.2e}"
            name = str(dtype).removeprefix("torch.") + (
                " by tf32" if (dtype, precision) == (torch.float32, "tf32") else ""
            )
            print(f"matmul {M:3} x {N:3} x {K:3}, {name:15} on {weft.device()}: relative error {error:.1e}")


if __name__ == "__main__":
    main()
