# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The kernels of this folder at sizes that fill a GPU, their tensors on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch.nn import functional
from triton.tools.tensor_descriptor import TensorDescriptor

from . import Case, attention, indexed, linear, matmul, norms, quantised, rows
from .matmul import tile_of_program

#: makers by name, each with the bytes it must move and the operations of its products
LARGE: dict[str, Callable[[], tuple[Case, float, float]]] = {}
_ROWS = 8192


def _large(name: str, *given: Any, **named: Any) -> Callable[..., Any]:
    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        LARGE[name] = lambda: make(*given, **named)
        return make

    return register


def _randn(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, device="cuda", dtype=torch.float32).to(dtype)


def _out(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(size, torch.nan, device="cuda", dtype=torch.float32).to(dtype)


def _moved(arguments: dict[str, Any]) -> float:
    """The bytes of all tensors, each once."""
    return float(sum(x.numel() * x.element_size() for x in arguments.values() if isinstance(x, torch.Tensor)))


def _of(case: Case, operations: float = 0) -> tuple[Case, float, float]:
    return case, _moved(case.arguments), operations


@_large("add f32", torch.float32)
@_large("add bf16", torch.bfloat16)
def _add(dtype: torch.dtype) -> Any:
    n = 1 << 26
    x, y = _randn(n, dtype=dtype), _randn(n, dtype=dtype)
    arguments = {"x": x, "y": y, "out": _out(n, dtype=dtype), "n": n}
    return _of(Case(rows.add_kernel, (n // 1024,), arguments, {"BLOCK": 1024}, {"out": x.float() + y.float()}))


@_large("gated silu bf16")
def _gated() -> Any:
    columns = 11008
    x, gate = (_randn(_ROWS, columns, dtype=torch.bfloat16) for _ in range(2))
    arguments = {"x": x, "gate": gate, "out": _out(_ROWS, columns, dtype=x.dtype)}
    arguments |= {"columns": columns, "stride": columns}
    exact = x.float() * functional.silu(gate.float())
    return _of(Case(rows.gated_kernel, (_ROWS,), arguments, {"BLOCK": 1024}, {"out": exact}))


@_large("gelu of a matrix f16")
def _gelu() -> Any:
    x = _randn(_ROWS, 4096, dtype=torch.float16)
    arguments = {"x": x, "out": _out(_ROWS, 4096, dtype=x.dtype), "M": _ROWS, "N": 4096, "stride": 4096}
    constants = {"BLOCK_M": 32, "BLOCK_N": 128}
    exact = functional.gelu(x.float())
    return _of(Case(rows.gelu_kernel, (_ROWS // 32, 32), arguments, constants, {"out": exact}))


@_large("softmax f16, 4 096 columns", torch.float16, 4096)
@_large("softmax f32, 1 000 columns", torch.float32, 1000)
def _softmax(dtype: torch.dtype, columns: int) -> Any:
    x = _randn(4 * _ROWS, columns, dtype=dtype)
    arguments = {"x": x, "out": _out(4 * _ROWS, columns, dtype=dtype), "columns": columns, "stride": columns}
    constants = {"BLOCK": triton.next_power_of_2(columns)}
    return _of(Case(rows.softmax_kernel, (4 * _ROWS,), arguments, constants, {"out": x.float().softmax(-1)}))


@_large("softmax in two passes bf16")
def _online_softmax() -> Any:
    x = _randn(_ROWS, 8192, dtype=torch.bfloat16)
    arguments = {"x": x, "out": _out(_ROWS, 8192, dtype=x.dtype), "columns": 8192, "stride": 8192}
    return _of(Case(rows.online_softmax_kernel, (_ROWS,), arguments, {"BLOCK": 1024}, {"out": x.float().softmax(-1)}))


@_large("cross entropy bf16")
def _cross_entropy() -> Any:
    classes = 32000
    x, labels = _randn(_ROWS, classes, dtype=torch.bfloat16), torch.randint(0, classes, (_ROWS,), device="cuda")
    arguments = {"logits": x, "labels": labels, "loss": _out(_ROWS), "lse": _out(_ROWS), "classes": classes}
    lse = x.float().logsumexp(-1)
    picked = x.float().gather(1, labels[:, None])[:, 0]
    arguments |= {"stride": classes}
    case = Case(
        rows.cross_entropy_kernel, (_ROWS,), arguments, {"BLOCK": 4096}, {"loss": lse - picked, "lse": lse}, warps=8
    )
    return _of(case)


@_large("transpose f16", torch.float16)
@_large("transpose f32", torch.float32)
def _transpose(dtype: torch.dtype) -> Any:
    x = _randn(_ROWS, 4096, dtype=dtype)
    arguments = {"x": x, "out": _out(4096, _ROWS, dtype=dtype), "M": _ROWS, "N": 4096}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64}
    return _of(Case(rows.transpose_kernel, (_ROWS // 64, 64), arguments, constants, {"out": x.T.float()}))


@_large("sum of columns f32")
def _column_sum() -> Any:
    x = _randn(2048, 16384)
    arguments = {"x": x, "out": _out(16384), "M": 2048, "N": 16384}
    constants = {"BLOCK_M": 32, "BLOCK_N": 64}
    return _of(Case(rows.column_sum_kernel, (256,), arguments, constants, {"out": x.double().sum(0)}))


@_large("layer norm f16")
def _layer_norm() -> Any:
    columns = 4096
    x, w, b = _randn(4 * _ROWS, columns, dtype=torch.float16), _randn(columns), _randn(columns)
    arguments = {"x": x, "y": _out(*x.shape, dtype=x.dtype), "weight": w, "bias": b, "mean": _out(4 * _ROWS)}
    arguments |= {"rstd": _out(4 * _ROWS), "columns": columns, "eps": norms.EPS}
    exact = functional.layer_norm(x.float(), (columns,), w, b, norms.EPS)
    return _of(Case(norms.layer_norm_kernel, (4 * _ROWS,), arguments, {"BLOCK": columns}, {"y": exact}, warps=8))


@_large("layer norm backward f16")
def _layer_norm_backward() -> Any:
    columns, programs = 2048, 528
    x, g = (_randn(2 * _ROWS, columns, dtype=torch.float16) for _ in range(2))
    w = _randn(columns)
    leaf = x.float().requires_grad_()
    functional.layer_norm(leaf, (columns,), w, None, norms.EPS).backward(g.float())
    mean, rstd = x.float().mean(-1), (x.float().var(-1, unbiased=False) + norms.EPS).rsqrt()
    arguments = {"x": x, "dy": g, "weight": w, "mean": mean, "rstd": rstd, "dx": _out(*x.shape, dtype=x.dtype)}
    arguments |= {"dw_parts": _out(programs, columns), "db_parts": _out(programs, columns)}
    arguments |= {"rows": 2 * _ROWS, "columns": columns}
    constants = {"PROGRAMS": programs, "BLOCK": columns}
    case = Case(norms.layer_norm_backward_kernel, (programs,), arguments, constants, {"dx": leaf.grad}, warps=8)
    return _of(case)


@_large("RMS norm of a sum bf16")
def _rms_norm() -> Any:
    columns = 4096
    x, r = (_randn(2 * _ROWS, columns, dtype=torch.bfloat16) for _ in range(2))
    w = _randn(columns, dtype=torch.bfloat16)
    arguments = {"x": x, "residual": r, "y": _out(*x.shape, dtype=x.dtype), "kept": _out(*x.shape, dtype=x.dtype)}
    arguments |= {"weight": w, "columns": columns, "eps": norms.EPS}
    exact = functional.rms_norm(x.float() + r.float(), (columns,), w.float(), norms.EPS)
    return _of(Case(norms.rms_norm_kernel, (2 * _ROWS,), arguments, {"BLOCK": columns}, {"y": exact}, warps=8))


def _product(order: str, dtype: torch.dtype, size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b = _randn(size, size, dtype=dtype), _randn(size, size, dtype=dtype)
    exact = a.float() @ b.float()
    return (a if order[0] == "N" else a.T.contiguous().T), (b if order[1] == "N" else b.T.contiguous().T), exact


@_large("matmul 128x256x64 bf16", "128x256x64", "NN", torch.bfloat16)
@_large("matmul 128x256x64 NT bf16", "128x256x64", "NT", torch.bfloat16)
@_large("matmul 128x128x64 bf16", "128x128x64", "NN", torch.bfloat16)
@_large("matmul 128x128x64 TN bf16", "128x128x64", "TN", torch.bfloat16)
@_large("matmul 128x128x32 f16", "128x128x32", "NN", torch.float16)
@_large("matmul 64x256x32 f16", "64x256x32", "NN", torch.float16)
@_large("matmul with bias and gelu f16", "128x128x64", "NN", torch.float16, epilogue="bias gelu")
@_large("matmul tf32", "128x128x32", "NN", torch.float32, precision="tf32")
def _matmul(tiling: str, order: str, dtype: torch.dtype, epilogue: str = "", precision: str = "ieee") -> Any:
    size = 4096
    BM, BN, BK, warps, stages = matmul.TILINGS[tiling]
    a, b, exact = _product(order, dtype, size)
    bias = _randn(size, dtype=dtype)
    if epilogue:
        exact = functional.gelu(exact + bias.float())
    arguments = {"a": a, "b": b, "c": _out(size, size, dtype=dtype), "bias": bias, "M": size, "N": size, "K": size}
    arguments |= dict(zip(("am", "ak", "bk", "bn", "cm"), (*a.stride(), *b.stride(), size), strict=True))
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": BK, "GROUP": 8, "WRAP": True}
    constants |= {"EPILOGUE": epilogue, "PRECISION": precision}
    grid = (size // BM * (size // BN),)
    tolerance = 2e-3 if dtype == torch.float32 else None
    case = Case(matmul.matmul_kernel, grid, arguments, constants, {"c": exact}, warps, stages, tolerance)
    return _of(case, 2.0 * size**3)


@triton.jit
def _described_kernel(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = tile_of_program(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        b_tile = b.load([tile_n * BLOCK_N, k]).T if TURNED else b.load([k, tile_n * BLOCK_N])
        total = tl.dot(a.load([tile_m * BLOCK_M, k]), b_tile, total)
    c.store([tile_m * BLOCK_M, tile_n * BLOCK_N], total.to(tl.bfloat16))


@_large("matmul 128x256x64 of descriptors bf16", "128x256x64", False)
@_large("matmul 128x256x64 NT of descriptors bf16", "128x256x64", True)
@_large("matmul 128x128x64 of descriptors bf16", "128x128x64", False)
def _described(tiling: str, turned: bool) -> Any:
    size = 4096
    BM, BN, BK, warps, stages = matmul.TILINGS[tiling]
    a, b = (_randn(size, size, dtype=torch.bfloat16) for _ in range(2))
    exact = a.float() @ b.float()
    given_b = b.T.contiguous() if turned else b
    out = _out(size, size, dtype=a.dtype)
    of = TensorDescriptor.from_tensor
    arguments = {"a": of(a, [BM, BK]), "b": of(given_b, [BN, BK] if turned else [BK, BN]), "c": of(out, [BM, BN])}
    arguments |= {"M": size, "N": size, "K": size}
    constants = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": BK, "GROUP": 8, "TURNED": turned}
    case = Case(_described_kernel, (size // BM * (size // BN),), arguments, constants, {"c": exact}, warps, stages)
    return case, 3.0 * 2 * size**2, 2.0 * size**3


@_large("int8 matmul, columns of B contiguous")
def _int8() -> Any:
    size = 4096
    a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8, device="cuda") for _ in range(2))
    a_scale, b_scale = (torch.rand(size, device="cuda") * 0.01 for _ in range(2))
    exact = (a.double() @ b.T.double()) * a_scale.double()[:, None] * b_scale.double()[None, :]
    arguments = {"a": a, "b": b.T, "c": _out(size, size, dtype=torch.float16), "a_scale": a_scale, "b_scale": b_scale}
    arguments |= {"M": size, "N": size, "K": size, "am": size, "ak": 1, "bk": 1, "bn": size}
    constants = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128}
    return _of(Case(quantised.int8_kernel, (32, 32), arguments, constants, {"c": exact}, 8, 3), 2.0 * size**3)


@_large("W4A16 matmul, 64 rows")
def _w4a16() -> Any:
    M, N, K, group = 64, 8192, 8192, 64
    a = _randn(M, K, dtype=torch.float16)
    nibbles = torch.randint(0, 16, (K, N), dtype=torch.int32, device="cuda")
    packed = sum(nibbles.reshape(K // 8, 8, N)[:, i] << (4 * i) for i in range(8)).to(torch.int32)
    scales = (torch.rand(K // group, N, device="cuda") * 0.1).half()
    zeros = torch.randint(0, 16, (K // group, N), device="cuda").half()
    wide = [x.repeat_interleave(group, 0) for x in (scales, zeros)]
    exact = a.float() @ ((nibbles.half() - wide[1]) * wide[0]).float()
    arguments = {"a": a, "packed": packed, "scales": scales, "zeros": zeros, "c": _out(M, N, dtype=a.dtype)}
    arguments |= {"N": N, "K": K, "groups": K // group}
    constants = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": group}
    return _of(Case(quantised.w4a16_kernel, (1, N // 64), arguments, constants, {"c": exact}, 4, 3), 2.0 * M * N * K)


@_large("attention D 64 f16", 64, False, torch.float16)
@_large("attention D 64 causal f16", 64, True, torch.float16)
@_large("attention D 128 bf16", 128, False, torch.bfloat16)
@_large("attention D 128 causal bf16", 128, True, torch.bfloat16)
def _attention(D: int, causal: bool, dtype: torch.dtype) -> Any:
    H, N = 8192 // D, 4096
    q, k, v = (_randn(H, N, D, dtype=dtype) for _ in range(3))
    exact = functional.scaled_dot_product_attention(*(x[None].float() for x in (q, k, v)), is_causal=causal)[0]
    arguments = {"q": q, "k": k, "v": v, "out": _out(H, N, D, dtype=dtype), "lse": _out(H, N)}
    arguments |= {"scale": math.log2(math.e) * D**-0.5, "N": N}
    constants = {"BLOCK_M": 128, "BLOCK_N": 64 if D == 64 else 128, "D": D, "CAUSAL": causal}
    grid, stages = (N // 128, H), 3 if D == 64 else 2
    case = Case(attention.forward_kernel, grid, arguments, constants, {"out": exact}, 8, stages, 2e-2)
    return _of(case, 4.0 * H * D * N * N / (2 if causal else 1))


@_large("linear attention by chunks bf16")
def _chunked() -> Any:
    H, T, D = 128, 4096, 64
    q, k, v = (_randn(H, T, D, dtype=torch.bfloat16) * D**-0.25 for _ in range(3))
    gate = functional.logsigmoid(_randn(H, T))
    arguments = {"q": q, "k": k, "v": v, "gate": gate, "out": _out(H, T, D, dtype=q.dtype), "T": T}
    constants = {"C": 64, "K": D, "V": D, "BLOCK_V": 64}
    exact = linear.recurrence(*(x[:2, :256].cpu() for x in (q, k, v)), gate[:2, :256].cpu().double().exp())[0]
    case = Case(linear.chunked_kernel, (1, H), arguments, constants, {"out": exact.cuda()}, 4, 2, 2e-2)
    return _of(case, 8.0 * H * T * 64 * D)


@_large("selective scan f32")
def _selective_scan() -> Any:
    T, D = 4096, 2048
    gate, x = torch.rand(T, D, device="cuda") * 0.2 + 0.8, _randn(T, D)
    arguments = {"gate": gate, "x": x, "out": _out(T, D), "T": T, "D": D}
    state, exact = torch.zeros(D, device="cuda", dtype=torch.float64), []
    for at in range(64):
        state = gate[at].double() * state + x[at].double()
        exact.append(state)
    constants = {"BLOCK_T": 64, "BLOCK_D": 16}
    case = Case(linear.selective_scan_kernel, (D // 16,), arguments, constants, {"out": torch.stack(exact)}, 4)
    return _of(case)


@_large("sort of rows f32")
def _sort() -> Any:
    x = _randn(4 * _ROWS, 256)
    arguments = {"x": x, "out": _out(*x.shape)}
    constants = {"N": 256, "ROWS": 4, "DESCENDING": False}
    return _of(Case(indexed.sort_kernel, (_ROWS,), arguments, constants, {"out": x.sort(-1).values}, tolerance=0.0))
