# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches of the Triton kernels: how each is compiled, and its reference in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import triton_attention, triton_kernels
from .case import Launch, from_bfloat, to_bfloat


@dataclass(frozen=True)
class TritonCase:
    """A kernel, the types of its run-time arguments, its constants and options, and what launches it."""

    kernel: Any
    types: dict[str, str]
    constants: dict[str, Any]
    prepare: Callable[[np.random.Generator], Launch]
    options: dict[str, int]

    @property
    def id(self) -> str:
        return "-".join([self.prepare.__name__, *(f"{name}{value}" for name, value in self.options.items())])


CASES: list[TritonCase] = []


def case(kernel, types: str, *, num_warps: int = 4, num_stages: int = 2, **constants):
    """Registers a launch; `types` are those of the run-time arguments in order."""
    names = [name for name in kernel.arg_names if name not in constants]

    def register(prepare):
        pairs = dict(zip(names, types.split(), strict=True))
        options = {"num_warps": num_warps, "num_stages": num_stages}
        CASES.append(TritonCase(kernel, pairs, constants, prepare, options))
        return prepare

    return register


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@case(triton_kernels.add, "*fp32 *fp32 *fp32 i32", BLOCK=256)
def add(rng):
    x, y = normal(rng, 1000), normal(rng, 1000)
    return Launch((4,), (128,), [x, y, np.zeros_like(x), np.int32(1000)], {2: x + y})


@case(triton_kernels.softmax, "*fp32 *fp32 i32 i32", BLOCK=512)
def softmax(rng):
    x = normal(rng, 5, 400)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    args = [x, np.zeros_like(x), np.int32(400), np.int32(400)]
    return Launch((5,), (128,), args, {1: e / e.sum(1, keepdims=True)}, rtol=1e-5)


@case(triton_kernels.layer_norm, "*fp32 *fp32 *fp32 *fp32 i32 fp32", BLOCK=256, num_warps=2)
def layer_norm(rng):
    x, weight, bias = normal(rng, 6, 200), normal(rng, 200), normal(rng, 200)
    wide = x.astype(np.float64)
    want = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    args = [x, weight, bias, np.zeros_like(x), np.int32(200), np.float32(1e-5)]
    return Launch((6,), (64,), args, {3: want}, rtol=1e-4, atol=1e-5)


@case(triton_kernels.cumulative_sum, "*fp32 *fp32", ROWS=8, COLUMNS=64)
def cumulative_sum(rng):
    x = normal(rng, 8, 64)
    return Launch((1,), (128,), [x, np.zeros_like(x)], {1: x.astype(np.float64).cumsum(1)}, atol=1e-5)


@case(triton_kernels.linear_recurrence, "*fp32 *fp32 *fp32", LENGTH=256)
def linear_recurrence(rng):
    a, b = rng.uniform(0.5, 1, (2, 256)).astype(np.float32), normal(rng, 2, 256)
    want, state = np.zeros((2, 256)), np.zeros(2)
    for i in range(256):
        state = a[:, i] * state + b[:, i]
        want[:, i] = state
    return Launch((2,), (128,), [a, b, np.zeros_like(b)], {2: want}, rtol=1e-4, atol=1e-4)


@case(triton_kernels.sort_rows, "*i32 *i32", ROWS=4, COLUMNS=64)
def sort_rows(rng):
    x = rng.integers(-1000, 1000, (4, 64)).astype(np.int32)
    return Launch((1,), (128,), [x, np.zeros_like(x)], {1: np.sort(x, 1)})


@case(triton_kernels.histogram, "*i32 *i32 i32", BLOCK=256)
def histogram(rng):
    x = rng.integers(0, 20, 700).astype(np.int32)
    return Launch((3,), (128,), [x, np.zeros(20, np.int32), np.int32(700)], {1: np.bincount(x, minlength=20)})


@case(triton_kernels.extremes, "*fp32 *fp32 *i32", COLUMNS=256)
def extremes(rng):
    x = rng.integers(-20, 20, (5, 256)).astype(np.float32)
    places = np.stack([x.argmax(1), x.argmin(1)], 1)
    return Launch((5,), (128,), [x, np.zeros(5, np.float32), np.zeros((5, 2), np.int32)], {1: x.max(1), 2: places})


@case(triton_kernels.convert, "*fp32 *fp16 *bf16 *i32", BLOCK=256)
def convert(rng):
    x = (rng.standard_normal(256) * 100).astype(np.float32)
    ints = np.trunc(np.trunc(x) / 3).astype(np.int32)  # division in Triton truncates
    args = [x, np.zeros(256, np.float16), np.zeros(256, np.uint16), np.zeros(256, np.int32)]
    return Launch((1,), (128,), args, {1: x.astype(np.float16), 2: from_bfloat(to_bfloat(x)), 3: ints})


MATMUL = "{0} {0} {1} i32 i32 i32"


@case(triton_kernels.matmul, MATMUL.format("*fp16", "*fp16"), BM=64, BN=64, BK=32, num_stages=3)
def matmul_f16(rng):
    a, b = normal(rng, 100, 96, dtype=np.float16), normal(rng, 96, 80, dtype=np.float16)
    args = [a, b, np.zeros((100, 80), np.float16), np.int32(100), np.int32(80), np.int32(96)]
    return Launch((2, 2), (128,), args, {2: a.astype(np.float64) @ b}, rtol=1e-3, atol=1e-3)


@case(triton_kernels.matmul, MATMUL.format("*bf16", "*fp32"), BM=32, BN=128, BK=32, num_warps=8)
def matmul_bf16(rng):
    a, b = to_bfloat(normal(rng, 64, 64)), to_bfloat(normal(rng, 64, 128))
    args = [a, b, np.zeros((64, 128), np.float32), np.int32(64), np.int32(128), np.int32(64)]
    return Launch((2, 1), (256,), args, {2: from_bfloat(a).astype(np.float64) @ from_bfloat(b)}, atol=1e-4)


@case(triton_kernels.matmul, MATMUL.format("*fp32", "*fp32"), BM=32, BN=32, BK=32)
def matmul_tf32(rng):
    a, b = normal(rng, 64, 64), normal(rng, 64, 32)
    args = [a, b, np.zeros((64, 32), np.float32), np.int32(64), np.int32(32), np.int32(64)]
    return Launch((2, 1), (128,), args, {2: a.astype(np.float64) @ b}, atol=5e-2)


@case(triton_kernels.integer_matmul, "*i8 *i8 *i32 i32", BM=32, BN=32, BK=32)
def integer_matmul(rng):
    a, b = rng.integers(-128, 128, (32, 96)).astype(np.int8), rng.integers(-128, 128, (96, 32)).astype(np.int8)
    args = [a, b, np.zeros((32, 32), np.int32), np.int32(96)]
    return Launch((1,), (128,), args, {2: a.astype(np.int32) @ b.astype(np.int32)})


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """The first word of Philox 4x32-10, the generator behind tl.rand."""
    c = [counters.astype(np.uint64), *(np.zeros_like(counters, np.uint64) for _ in range(3))]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        low, thirty_two = np.uint64(0xFFFFFFFF), np.uint64(32)
        c = [
            second >> thirty_two ^ c[1] ^ np.uint64(keys[0]),
            second & low,
            first >> thirty_two ^ c[3] ^ np.uint64(keys[1]),
            first & low,
        ]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype(np.uint32)


@case(triton_kernels.dropout, "*fp32 *fp32 i32 i32 fp32", BLOCK=256)
def dropout(rng):
    x = normal(rng, 500)
    words = philox(42, np.arange(500)).view(np.int32)
    uniform = np.where(words < 0, ~words, words).astype(np.float32) * np.float32(4.6566127342e-10)
    want = np.where(uniform < np.float32(0.7), x / np.float32(0.7), 0)
    args = [x, np.zeros_like(x), np.int32(500), np.int32(42), np.float32(0.7)]
    return Launch((2,), (128,), args, {1: want}, rtol=1e-6)


@case(triton_kernels.locked_sum, "*fp32 *i32 *fp32", COLUMNS=128)
def locked_sum(rng):
    x = rng.integers(-50, 50, (6, 128)).astype(np.float32)
    args = [x, np.zeros(1, np.int32), np.zeros(1, np.float32)]
    return Launch((6,), (128,), args, {1: np.zeros(1, np.int32), 2: x.sum(dtype=np.float64)[None]})


def attention(rng, n: int, causal: bool):
    """Operands of two heads, and everything forward and backward gives, in f64."""
    q, k, v, do = (normal(rng, 2, n, 32, dtype=np.float16) for _ in range(4))
    wide = [x.astype(np.float64) for x in (q, k, v, do)]
    scale = 32**-0.5
    score = wide[0] @ wide[1].transpose(0, 2, 1) * scale
    if causal:
        score = np.where(np.tri(n, dtype=bool), score, -np.inf)
    lse = np.log(np.exp(score).sum(2))
    p = np.exp(score - lse[:, :, None])
    o = p @ wide[2]
    delta = (o * wide[3]).sum(2)
    ds = p * (wide[3] @ wide[2].transpose(0, 2, 1) - delta[:, :, None]) * scale
    gradients = ds @ wide[1], ds.transpose(0, 2, 1) @ wide[0], p.transpose(0, 2, 1) @ wide[3]
    return (q, k, v, do), o, lse / np.log(2), delta, gradients, np.float32(scale)


def attention_launch(rng, n: int, causal: bool, blocks: int):
    (q, k, v, _), o, lse, _, _, scale = attention(rng, n, causal)
    args = [q, k, v, np.zeros_like(q), np.zeros((2, n), np.float32), np.int32(n), scale]
    return Launch((blocks, 2), (128,), args, {3: o, 4: lse}, rtol=2e-3, atol=2e-3)


FORWARD = "*fp16 *fp16 *fp16 *fp16 *fp32 i32 fp32"
BACKWARD = "*fp16 *fp16 *fp16 *fp16 *fp32 *fp32"


@case(triton_attention.attention_forward, FORWARD, CAUSAL=False, D=32, BM=64, BN=32)
def attention_full(rng):
    return attention_launch(rng, 100, False, 2)


@case(triton_attention.attention_forward, FORWARD, CAUSAL=True, D=32, BM=64, BN=32, num_stages=3)
def attention_causal(rng):
    return attention_launch(rng, 128, True, 2)


@case(triton_attention.attention_backward_kv, BACKWARD + " *fp16 *fp16 i32 fp32", D=32, BM=32, BN=32)
def attention_backward_kv(rng):
    (q, k, v, do), _, lse, delta, (_, dk, dv), scale = attention(rng, 80, False)
    saved = [lse.astype(np.float32), delta.astype(np.float32)]
    args = [q, k, v, do, *saved, np.zeros_like(k), np.zeros_like(v), np.int32(80), scale]
    return Launch((3, 2), (128,), args, {6: dk, 7: dv}, rtol=5e-3, atol=5e-3)


@case(triton_attention.attention_backward_q, BACKWARD + " *fp16 i32 fp32", D=32, BM=32, BN=32)
def attention_backward_q(rng):
    (q, k, v, do), _, lse, delta, (dq, _, _), scale = attention(rng, 80, False)
    saved = [lse.astype(np.float32), delta.astype(np.float32)]
    args = [q, k, v, do, *saved, np.zeros_like(q), np.int32(80), scale]
    return Launch((3, 2), (128,), args, {6: dq}, rtol=5e-3, atol=5e-3)
