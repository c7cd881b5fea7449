# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels in TileLang, lowered for sm_90a with no GPU: the CUDA C++ and the launch that its host code makes, as files.

    python tilelang_kernels.py FOLDER

Run by a Python that has TileLang; nothing of Weft is imported. For each kernel NAME.cu and NAME.json: the entry, the
grid, the threads, the bytes of dynamic shared memory, the arguments' names in order, and each tensor map's numbers as
cuTensorMapEncodeTiled takes them."""

import json
import pathlib
import re
import sys

import tilelang
import tilelang.language as T
from tilelang import tvm

TARGET = {"kind": "cuda", "arch": "sm_90a"}


def matmul(m, n, k, bm, bn, bk, dtype, threads, transposed):
    """C = A B, or A Bᵀ, in float32."""
    whole, block = ((n, k), (bn, bk)) if transposed else ((k, n), (bk, bn))

    @T.prim_func
    def main(A: T.Tensor((m, k), dtype), B: T.Tensor(whole, dtype), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (column, row):
            a = T.alloc_shared((bm, bk), dtype)
            b = T.alloc_shared(block, dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, bk), num_stages=3):
                T.copy(A[row * bm, step * bk], a)
                if transposed:
                    T.copy(B[column * bn, step * bk], b)
                else:
                    T.copy(B[step * bk, column * bn], b)
                T.gemm(a, b, c, transpose_B=transposed)
            T.copy(c, C[row * bm, column * bn])

    return main


def sparse_matmul(m, n, k, bm, bn, bk, dtype, threads, transposed, described=16):
    """C = A B, or A Bᵀ, in float32, of an A of which half of each row is stored; `described` elements of a row have
    their metadata in one element of E."""
    whole, block = ((n, k), (bn, bk)) if transposed else ((k, n), (bk, bn))

    @T.prim_func
    def main(
        A: T.Tensor((m, k // 2), dtype),
        E: T.Tensor((m, k // described), "int16"),
        B: T.Tensor(whole, dtype),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (column, row):
            a = T.alloc_shared((bm, bk // 2), dtype)
            e = T.alloc_shared((bm, bk // described), "int16")
            b = T.alloc_shared(block, dtype)
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[row * bm, step * bk // 2], a)
                T.copy(E[row * bm, step * bk // described], e)
                if transposed:
                    T.copy(B[column * bn, step * bk], b)
                else:
                    T.copy(B[step * bk, column * bn], b)
                T.gemm_sp(a, e, b, c, transpose_B=transposed)
            T.copy(c, C[row * bm, column * bn])

    return main


def scaled_weights(m, n, k, bm, bn, bk, threads):
    """C = A (scale · W)ᵀ with W of int8: the tile is converted between its load and the product."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k), "float16"),
        W: T.Tensor((n, k), "int8"),
        scale: T.Tensor((n,), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (column, row):
            a = T.alloc_shared((bm, bk), "float16")
            bytes_ = T.alloc_shared((bn, bk), "int8")
            b = T.alloc_shared((bn, bk), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[row * bm, step * bk], a)
                T.copy(W[column * bn, step * bk], bytes_)
                for i, j in T.Parallel(bn, bk):
                    b[i, j] = bytes_[i, j].astype("float16") * scale[column * bn + i]
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[row * bm, column * bn])

    return main


def attention(heads, n, d, bm, bn, causal, threads):
    """softmax(Q Kᵀ / √d) V of [heads, n, d], in float16."""
    scale = 1.4426950408889634 / d**0.5
    lowest = -T.infinity("float32")
    shape = (heads, n, d)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, "float16"),
        K: T.Tensor(shape, "float16"),
        V: T.Tensor(shape, "float16"),
        O: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(n, bm), heads, threads=threads) as (block, head):
            q = T.alloc_shared((bm, d), "float16")
            k = T.alloc_shared((bn, d), "float16")
            v = T.alloc_shared((bn, d), "float16")
            o = T.alloc_shared((bm, d), "float16")
            s = T.alloc_fragment((bm, bn), "float32")
            p = T.alloc_fragment((bm, bn), "float16")
            result = T.alloc_fragment((bm, d), "float32")
            most = T.alloc_fragment((bm,), "float32")
            before = T.alloc_fragment((bm,), "float32")
            part = T.alloc_fragment((bm,), "float32")
            total = T.alloc_fragment((bm,), "float32")
            T.copy(Q[head, block * bm : (block + 1) * bm, :], q)
            T.clear(result)
            T.clear(total)
            T.fill(most, lowest)
            for step in T.Pipelined(T.ceildiv((block + 1) * bm, bn) if causal else T.ceildiv(n, bn), num_stages=2):
                T.copy(K[head, step * bn : (step + 1) * bn, :], k)
                for i, j in T.Parallel(bm, bn):
                    s[i, j] = T.if_then_else(block * bm + i >= step * bn + j, 0, lowest) if causal else 0
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(most, before)
                T.reduce_max(s, most, dim=1, clear=False)
                for i, j in T.Parallel(bm, bn):
                    s[i, j] = T.exp2((s[i, j] - most[i]) * scale)
                for i in T.Parallel(bm):
                    before[i] = T.exp2((before[i] - most[i]) * scale)
                T.reduce_sum(s, part, dim=1)
                for i in T.Parallel(bm):
                    total[i] = total[i] * before[i] + part[i]
                for i, j in T.Parallel(bm, d):
                    result[i, j] = result[i, j] * before[i]
                T.copy(s, p)
                T.copy(V[head, step * bn : (step + 1) * bn, :], v)
                T.gemm(p, v, result, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(bm, d):
                result[i, j] = result[i, j] / total[i]
            T.copy(result, o)
            T.copy(o, O[head, block * bm : (block + 1) * bm, :])

    return main


KERNELS = {
    "matmul_bf16": matmul(256, 256, 256, 128, 128, 64, "bfloat16", 128, False),
    "matmul_f16_transposed": matmul(128, 256, 320, 128, 128, 64, "float16", 256, True),
    "matmul_e4m3": matmul(128, 128, 512, 128, 128, 128, "float8_e4m3fn", 128, True),
    "sparse_f16": sparse_matmul(128, 128, 256, 64, 128, 64, "float16", 128, False),
    "sparse_bf16_transposed": sparse_matmul(128, 128, 256, 128, 128, 64, "bfloat16", 256, True),
    "sparse_tf32_transposed": sparse_matmul(128, 64, 128, 64, 64, 32, "float32", 128, True, 8),
    "scaled_weights": scaled_weights(128, 128, 256, 128, 128, 64, 128),
    "attention": attention(2, 384, 64, 128, 128, False, 256),
    "attention_causal": attention(1, 384, 128, 128, 128, True, 256),
}


def numbers(text):
    return [each.strip() for each in text.split(",")]


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, kernel in KERNELS.items():
        with tvm.target.Target(TARGET):
            lowered = tilelang.lower(kernel, target=TARGET, enable_device_compile=False)
        host = str(lowered.host_mod)
        maps = {}
        for call in re.findall(r'call_packed\("__tvm_tensormap_create_tiled", ([^)]*)\)', host):
            map_name, kind, rank, tensor, *rest = numbers(call)
            maps[map_name] = {"kind": int(kind), "rank": int(rank), "tensor": tensor, "numbers": [*map(int, rest)]}
        (call,) = re.findall(r'call_packed\("main_kernel", ([^)]*)\)', host)
        given = numbers(call)
        arguments = [each for each in given if not each.isdecimal()]
        sizes = [int(each) for each in given if each.isdecimal()]
        bounds = re.search(r"__launch_bounds__\((\d+)", lowered.kernel_source)
        (folder / f"{name}.cu").write_text(lowered.kernel_source)
        launch = {"arguments": arguments, "sizes": sizes, "threads": int(bounds[1]), "maps": maps}
        (folder / f"{name}.json").write_text(json.dumps(launch))
    print(pathlib.Path(tilelang.__file__).parent)


if __name__ == "__main__":
    main()
