# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels without one of their fences, waits, commits, arrivals, expectations or barriers: every drop is found. What
compilers put in twice is dropped, one after the other, for as long as nothing is found: without all of it the results
must be right in every order, or the simulator missed something."""

from __future__ import annotations

import functools
import operator
import re

import cluster_kernels
import mutations
import numpy as np
import pytest
import test_clusters
import weft
import weft.language as wl
import weft.simulator as simulator

boxes = pytest.importorskip("triton_boxes", reason="no Triton on this machine")
SEEDS = (0, 1, 2, 5)
#: More than any of the kernels runs; one that waits for ever is found by then.
LIMIT = 400_000


def check(ptx: str, run, is_right, harmless: str = "(?!)") -> list[mutations.Drop]:
    """Every drop is found but those of barriers, and of what `harmless` matches, that the rest makes up for."""
    assert not run(ptx, 0).findings
    lost = mutations.survivors(ptx, run, seeds=SEEDS)
    unexpected = [drop for drop in lost if drop.family != "barrier" and not re.match(harmless, drop.instruction)]
    assert not unexpected, unexpected
    rest = mutations.without_redundant(ptx, lost, run, seeds=SEEDS)
    for seed in (*SEEDS, 11, 12, 13):
        assert not run(rest, seed).findings
        assert is_right()
    return lost


def test_a_ring_that_two_blocks_fill_for_each_other():
    text = cluster_kernels.kernel(test_clusters.RING).replace(
        ".shared .align 8 .b64 full;", ".shared .align 8 .b8 full[32];"
    )
    x = np.zeros(2048, np.uint32)
    values = np.random.default_rng(0).integers(0, 1000, 384)

    def run(text, seed):
        x[:], x[:384] = 0, values
        return simulator.launch(text, "k", 2, 64, [x], seed=seed, limit=LIMIT)

    def is_right():
        sums = values.reshape(6, 2, 32).sum((0, 1))
        return (x[1056:1088] == sums).all() and (x[1120:1152] == sums).all()

    assert not check(text, run, is_right)


@weft.jit
def of_descriptors(a_ptr, b_ptr, c_ptr, M, N, K, SIZE: wl.constexpr):
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[SIZE, SIZE])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[SIZE, SIZE])
    m, n = wl.program_id(0) * SIZE + wl.arange(0, SIZE), wl.arange(0, SIZE)
    acc = wl.zeros((SIZE, SIZE), dtype=wl.float32)
    for k in range(0, K, SIZE):
        acc = wl.dot(a.load([wl.program_id(0) * SIZE, k]), b.load([0, k]).T, acc)
    wl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def test_copies_that_programs_share(seed):
    """But for a fence of the asynchronous proxy before a ring that nobody has written yet."""
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((128, 192), (64, 192)))
    c = np.empty((128, 64), np.float32)
    sizes = [np.int32(size) for size in (128, 64, 192)]
    kernel = of_descriptors.compile(
        signature="a_ptr:*fp16:16, b_ptr:*fp16:16, c_ptr:*fp32:16, M:i32:16, N:i32:16, K:i32:16, SIZE=64",
        target="sm_90a", num_stages=2, cluster=2,
    )  # fmt: skip
    maps = "\n".join(line for line in kernel.ptx.splitlines() if line.startswith("// weft."))
    body = "\n".join(line for line in kernel.ptx.splitlines() if not line.startswith("// weft."))

    def run(text, order):
        c[...] = np.nan
        arguments = [a, b, c, *sizes]
        report = simulator.launch(
            f"{text}\n{maps}", kernel.name, 2, 32 * kernel.num_warps, arguments,
            shared=kernel.shared_bytes, seed=order, limit=LIMIT,
        )  # fmt: skip
        assert report.counters["multicast_copies"] == 3 or text is not body
        return report

    def is_right():
        return np.allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-3, rtol=1e-4)

    lost = check(body, run, is_right, harmless=r"fence\.proxy")
    assert len([drop for drop in lost if drop.family == "fence"]) <= 1


@weft.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, N, TOKENS: wl.constexpr, D: wl.constexpr):
    """Queries of one tile a program, a head along the grid's second axis."""
    first = wl.program_id(1).to(wl.int64) * N * D
    rows, channels = wl.program_id(0) * TOKENS + wl.arange(0, TOKENS), wl.arange(0, D)
    q = wl.load(q_ptr + first + rows[:, None] * D + channels, mask=rows[:, None] < N, other=0.0)
    acc, total = wl.zeros([TOKENS, D], wl.float32), wl.zeros([TOKENS], wl.float32)
    most = wl.full([TOKENS], float("-inf"), wl.float32)
    for start in range(0, N, TOKENS):
        keys = start + wl.arange(0, TOKENS)
        at, inside = first + keys[:, None] * D + channels, keys[:, None] < N
        s = wl.dot(q, wl.load(k_ptr + at, mask=inside, other=0.0).T) * 0.1
        s = wl.where(keys[None, :] < N, s, float("-inf"))
        more = wl.maximum(most, wl.max(s, 1))
        p, kept = wl.exp2(s - more[:, None]), wl.exp2(most - more)
        total = total * kept + wl.sum(p, 1)
        acc = wl.dot(p.to(wl.float16), wl.load(v_ptr + at, mask=inside, other=0.0), acc * kept[:, None])
        most = more
    out = (acc / total[:, None]).to(wl.float16)
    wl.store(o_ptr + first + rows[:, None] * D + channels, out, mask=rows[:, None] < N)


def test_copies_for_a_persistent_kernels_next_program(seed, monkeypatch):
    """One block for six programs. Where each has three iterations, no copy is of one iteration alone."""
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", "1")
    random = np.random.default_rng(seed)
    q, k, v = (random.standard_normal((2, 300, 128)).astype(np.float16) for _ in range(3))
    o = np.empty_like(q)
    s = np.einsum("hnd,hmd->hnm", q.astype(np.float64), k) * 0.1
    p = np.exp2(s - s.max(-1, keepdims=True))
    wanted = np.einsum("hnm,hmd->hnd", p / p.sum(-1, keepdims=True), v)
    kernel = attention.compile(
        signature="q_ptr:*fp16:16, k_ptr:*fp16:16, v_ptr:*fp16:16, o_ptr:*fp16:16, N:i32, TOKENS=128, D=128",
        target="sm_90a", num_warps=8, num_stages=2, persistent=True,
    )  # fmt: skip
    lines = kernel.ptx.splitlines()
    notes = "\n".join(line for line in lines if line.startswith("// weft."))
    body = "\n".join(line for line in lines if not line.startswith("// weft."))
    assert "// weft.programs" in notes

    def run(text, order):
        o[...] = np.nan
        return simulator.launch(
            f"{text}\n{notes}", kernel.name, (3, 2), 32 * kernel.num_warps, [q, k, v, o, np.int32(300)],
            shared=kernel.shared_bytes, seed=order, limit=LIMIT,
        )  # fmt: skip

    harmless = (
        r"cp\.async\.wait_group\s+0|@%p\d+ fence\.mbarrier_init|mbarrier\.arrive\.expect_tx\S+ _, \[%r\d+\], 32768"
    )
    check(body, run, lambda: np.allclose(o, wanted, atol=4e-3), harmless)


def matmul(compiled, args_of, grid):
    """run and is_right of a matmul kernel of Triton of 64-column tiles."""
    random = np.random.default_rng(1)
    a, b = random.standard_normal((64, 192)).astype(np.float16), random.standard_normal((192, 64)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    c = np.empty((64, 64), np.float16)

    def run(text, seed):
        c[:] = np.nan
        return boxes.run(compiled, text, grid, args_of(a, b, c), seed, limit=LIMIT)

    return run, lambda: np.allclose(c, expected, rtol=2**-10, atol=1e-2)


def matmul_of_triton(capability):
    """(compiled kernel, the arguments of arrays a, b, c) of Triton's matmul with boxes, of K 192."""
    types = {
        "a_desc": "tensordesc<fp16[64,32]>",
        "b_desc": "tensordesc<fp16[32,64]>",
        "c_desc": "tensordesc<fp16[64,64]>",
    }
    constants = {"BM": 64, "BN": 64, "BK": 32}
    compiled = boxes.compile_for(capability, boxes.matmul, {**types, "K": "i32"}, constants, num_warps=4, num_stages=3)
    metas = compiled.metadata.tensordesc_meta

    def args_of(*arrays):
        parts = [boxes.described(array, meta) for array, meta in zip(arrays, metas, strict=True)]
        return [*functools.reduce(operator.iadd, parts, []), np.int32(192)]

    return compiled, args_of


def test_matmul_of_triton():
    compiled, args_of = matmul_of_triton(90)
    lost = check(compiled.asm["ptx"], *matmul(compiled, args_of, (1, 1)))
    assert lost and {drop.family for drop in lost} == {"barrier"}


def test_matmul_of_triton_in_tensor_memory():
    """Each commit, wait, barrier and dealloc of the kernel for sm_100a is missed."""
    compiled, args_of = matmul_of_triton(100)
    families = [drop.family for drop in mutations.drops(compiled.asm["ptx"])]
    assert families.count("tensor") == 5
    assert not check(compiled.asm["ptx"], *matmul(compiled, args_of, (1, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("specialized", [False, True], ids=["one", "roles"])
def test_matmul_of_triton_whose_maps_the_kernel_makes(specialized):
    types = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")
    constants = {"BM": 64, "BN": 64, "BK": 32, "SPECIALIZED": specialized}
    compiled = boxes.compile_for(
        90, boxes.matmul_of_pointers, types, constants, divisible="abcNK", num_warps=4, num_stages=3
    )
    sizes = [np.int32(64), np.int32(64), np.int32(192)]
    run, is_right = matmul(compiled, lambda a, b, c: [a, b, c, *sizes], (1, 1))
    # Triton waits for bulk stores after each map that it makes, where none is in flight.
    check(compiled.asm["ptx"], run, is_right, r"@%p\d+ cp\.async\.bulk\.(commit_group|wait_group\.read 0) ;")
