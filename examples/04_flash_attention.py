# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Flash attention, forward:

F16 and bf16, full and causal, any lengths. Run it: python examples/04_flash_attention.py
"""

import math

import torch
import weft
import weft.language as wl
from weft.testing import accuracy, plain_attention, reference_attention


@weft.jit
def flash_attention_kernel(
    q, k, v, out, lse, scale_log2,
    stride_qb, stride_qh, stride_qn, stride_kb, stride_kh, stride_km, stride_vb, stride_vh, stride_vm,
    stride_ob, stride_oh, stride_on, heads, N, M,
    D: wl.constexpr, CAUSAL: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr,
):  # fmt: skip
    start = wl.program_id(0) * BLOCK_M
    batch_head = wl.program_id(1)
    batch = (batch_head // heads).to(wl.int64)
    head = (batch_head % heads).to(wl.int64)
    rows = start + wl.arange(0, BLOCK_M)
    columns = wl.arange(0, BLOCK_N)
    channels = wl.arange(0, D)
    q_ptrs = q + batch * stride_qb + head * stride_qh + rows[:, None] * stride_qn + channels[None, :]
    k_ptrs = k + batch * stride_kb + head * stride_kh + columns[None, :] * stride_km + channels[:, None]
    v_ptrs = v + batch * stride_vb + head * stride_vh + columns[:, None] * stride_vm + channels[None, :]
    q_tile = wl.load(q_ptrs, mask=rows[:, None] < N, other=0.0)

    # The state of the online softmax, in base 2: running maximum, running sum, running output.
    maximum = wl.full((BLOCK_M,), -float("inf"), dtype=wl.float32)
    total = wl.zeros((BLOCK_M,), dtype=wl.float32)
    acc = wl.zeros((BLOCK_M, D), dtype=wl.float32)
    end = M
    if CAUSAL:  # aligned at the end: query n sits at position n + (M - N)
        end = wl.minimum(M, start + BLOCK_M + (M - N))
    for first in range(0, end, BLOCK_N):
        k_tile = wl.load(k_ptrs, mask=first + columns[None, :] < M, other=0.0)
        scores = wl.dot(q_tile, k_tile) * scale_log2
        allowed = first + columns[None, :] < M
        if CAUSAL:
            allowed = allowed & (first + columns[None, :] <= rows[:, None] + (M - N))
        scores = wl.where(allowed, scores, -float("inf"))
        new_maximum = wl.maximum(maximum, wl.max(scores, 1))
        # A row that has seen no key yet keeps -inf; subtracting 0 instead keeps exp2 away from inf - inf.
        shift = wl.where(new_maximum == -float("inf"), 0.0, new_maximum)
        weights = wl.exp2(scores - shift[:, None])
        decay = wl.exp2(maximum - shift)
        total = total * decay + wl.sum(weights, 1)
        v_tile = wl.load(v_ptrs, mask=first + columns[:, None] < M, other=0.0)
        acc = wl.dot(weights.to(v.dtype.element_ty), v_tile, acc * decay[:, None])
        maximum = new_maximum
        k_ptrs += BLOCK_N * stride_km
        v_ptrs += BLOCK_N * stride_vm

    seen = total > 0.0
    acc = wl.where(seen, 1.0 / wl.where(seen, total, 1.0), 0.0)[:, None] * acc
    out_ptrs = out + batch * stride_ob + head * stride_oh + rows[:, None] * stride_on + channels[None, :]
    wl.store(out_ptrs, acc.to(out.dtype.element_ty), mask=rows[:, None] < N)
    logarithm = (maximum + wl.log2(total)) * 0.6931471805599453
    wl.store(lse + batch_head.to(wl.int64) * N + rows, wl.where(seen, logarithm, -float("inf")), mask=rows < N)


def flash_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, causal: bool = False, scale: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax attention of q [B, H, N, D] over k, v [B, H, M, D]; D 64 or 128, any strides whose last is 1.

    Returns the output [B, H, N, D] in q's dtype and the natural-log LSE [B, H, N] in float32. A row with nothing to
    attend to gives 0 and -inf.
    """
    B, H, N, D = q.shape
    M = k.shape[2]
    if D not in (64, 128):
        raise ValueError(f"expected a head size of 64 or 128, but got {D}")
    if any(x.stride(-1) != 1 for x in (q, k, v)):
        raise ValueError("expected q, k and v with a last stride of 1; call .contiguous() first")
    out = torch.full((B, H, N, D), torch.nan, dtype=q.dtype, device=q.device)
    lse = torch.full((B, H, N), torch.nan, dtype=torch.float32, device=q.device)
    scale_log2 = (1 / math.sqrt(D) if scale is None else scale) * math.log2(math.e)
    block = (128, 64)
    flash_attention_kernel[(weft.cdiv(N, block[0]), B * H)](
        q, k, v, out, lse, scale_log2, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3], H, N, M,
        D=D, CAUSAL=causal, BLOCK_M=block[0], BLOCK_N=block[1], num_warps=D // 16, num_stages=3,
    )  # fmt: skip
    return out, lse


def main():
    for dtype, D, causal, (N, M) in (
        (torch.float16, 64, False, (256, 256)),
        (torch.float16, 64, True, (113, 203)),
        (torch.bfloat16, 128, True, (200, 130)),
    ):
        q, k, v = (torch.randn(1, 2, length, D).to(dtype) for length in (N, M, M))
        out, lse = flash_attention(q, k, v, causal=causal)
        ref, ref_lse = reference_attention(q, k, v, causal=causal)
        result = accuracy(out, ref, plain_attention(q, k, v, causal=causal))
        assert result.ok, result.failures
        seen = torch.isfinite(ref_lse)
        assert torch.equal(lse.isfinite(), seen) and torch.allclose(lse[seen].double(), ref_lse[seen], atol=1e-4)
        name = f"{str(dtype).removeprefix('torch.')}, {'causal' if causal else 'full'}, D = {D}, {N} x {M}"
        errors = f"error {result.worst:.1e}, plain PyTorch's {result.worst_plain:.1e}"
        print(f"flash attention, {name} on {weft.device()}: {errors}")


if __name__ == "__main__":
    main()
