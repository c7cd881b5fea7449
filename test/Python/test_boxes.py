# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rings of shared memory that bulk copies of boxes fill: right against float64, no finding whatever is early or late,
and what orders them needed. Launches make the maps: on the simulator, on its device, and through a CUDA driver.
"""

import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.simulator
from doc_blocks import ROOT
from installed import build_folder
from test_warpgroups import TARGET, attends, attention, bits, grouped, judge, matmul
from weft import runtime
from weft.compiler.lower import Options, lower, native_context
from weft.compiler.signature import parse
from weft.programs.simulated import run_plan

DEVICE = f"simulator:{TARGET}"


def emitted(module, **options):
    ptx, info, error = module.compile(json.dumps({"target": TARGET, **options}))
    assert error is None, (error, native_context().context.take_diagnostics())
    return ptx, json.loads(info)


def boxed(kernel, text, warps, stages):
    """A tile kernel whose rings bulk copies fill."""
    ptx, info = emitted(lower(kernel, parse(text), Options(warps, stages), TARGET))
    (facts,) = info["kernels"]
    return SimpleNamespace(
        ptx=ptx, name=facts["entry"], shared_bytes=facts["shared_bytes"], num_warps=facts["num_warps"]
    )


@weft.jit
def wide_matmul(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, EXACT: wl.constexpr,
):  # fmt: skip
    m = wl.program_id(0).to(wl.int64) * BM + wl.arange(0, BM)
    n = wl.program_id(1).to(wl.int64) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        k = start.to(wl.int64) + wl.arange(0, BK)
        mask_a, mask_b = (m[:, None] < M) & (k[None, :] < K), (k[:, None] < K) & (n[None, :] < N)
        a_tile = wl.load(a + m[:, None] * sam + k[None, :] * sak, mask=mask_a, other=0.0)
        b_tile = wl.load(b + k[:, None] * sbk + n[None, :] * sbn, mask=mask_b, other=0.0)
        acc = wl.dot(a_tile, b_tile, acc)
    wl.store(c + m[:, None] * scm + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def boxed_matmul(order="nn", tile=(64, 64, 32), stages=3, warps=4, b=16, kernel=matmul):
    unit = {"n": ("sam:i32:16", "sak=1"), "t": ("sam=1", "sak:i32:16")}[order[0]]
    other = {"n": ("sbk:i32:16", "sbn=1"), "t": ("sbk=1", "sbn:i32:16")}[order[1]]
    BM, BN, BK = tile
    text = (
        f"a:*bf16:16, b:*bf16:{b}, c:*fp32:16, M:i32:16, N:i32:16, K:i32:16, {', '.join(unit + other)}, "
        f"scm:i32:16, BM={BM}, BN={BN}, BK={BK}, EXACT=False"
    )
    return boxed(kernel, text, warps, stages)


@pytest.mark.parametrize("order, stages", [("nn", 2), ("nt", 3), ("tn", 4), ("tt", 3)])
def test_ragged_sizes(order, stages):
    """Lines of 64 and 128 bytes along either axis; what lies outside of the matrices is zero."""
    kernel = boxed_matmul(order, stages=stages)
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.cg" not in kernel.ptx
    judge(kernel, (80, 96, 112), (64, 64, 32), 4, order=order, seeds=2)


@pytest.mark.parametrize("order", ["nn", "tt"])
def test_indices_of_64_bits(order):
    """Bounds that are cut to 32 bits are bounds."""
    kernel = boxed_matmul(order, kernel=wide_matmul)
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.cg" not in kernel.ptx
    judge(kernel, (80, 96, 112), (64, 64, 32), 4, order=order, seeds=2)


def test_several_boxes_of_a_tile():
    """A tile of 256 columns is four boxes of 64."""
    kernel = boxed_matmul(tile=(64, 256, 64), stages=2)
    assert kernel.ptx.count("cp.async.bulk.tensor.2d") == 2 * (1 + 4)
    judge(kernel, (64, 272, 144), (64, 256, 64), 4, seeds=1)


def test_beside_copies_of_threads():
    """One loop's ring that a bulk copy and copies of threads fill: B's address is promised for pieces of 8 bytes."""
    kernel = boxed_matmul(b=8)
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.ca" in kernel.ptx
    judge(kernel, (80, 96, 112), (64, 64, 32), 4, seeds=4)


def test_schedules():
    """Whatever is early or late."""
    judge(boxed_matmul(tile=(64, 64, 64)), (80, 80, 144), (64, 64, 64), 4, seeds=16)


@weft.jit
def beside_a_row(a, b, row, c, sums, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    m, n = wl.arange(0, BM), wl.arange(0, BN)
    acc, total = wl.zeros((BM, BN), wl.float32), wl.zeros((1, BN), wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        acc = wl.dot(wl.load(a + m[:, None] * K + k[None, :]), wl.load(b + k[:, None] * BN + n[None, :]), acc)
        total += wl.load(row + (start // BK + wl.arange(0, 1))[:, None] * BN + n[None, :])
    wl.store(c + m[:, None] * BN + n[None, :], acc)
    wl.store(sums + wl.arange(0, 1)[:, None] * BN + n[None, :], total)


def test_a_row_that_warps_have_in_common(seed):
    """It is no reason for threads to copy where none does."""
    kernel = boxed(
        beside_a_row,
        "a:*bf16:16, b:*bf16:16, row:*fp32:16, c:*fp32:16, sums:*fp32:16, K:i32:16, BM=64, BN=64, BK=64",
        4,
        3,
    )
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.c" not in kernel.ptx
    rng = np.random.default_rng(seed)
    a, b = (
        torch.from_numpy(rng.integers(-4, 5, size).astype(np.float32)).bfloat16() for size in ((64, 256), (256, 64))
    )
    row = rng.random((4, 64), np.float32)
    c, sums = np.full((64, 64), np.nan, np.float32), np.full((1, 64), np.nan, np.float32)
    arguments = [a.view(torch.int16).numpy(), b.view(torch.int16).numpy(), row, c, sums, np.int32(256)]
    threads = 32 * kernel.num_warps
    report = weft.simulator.launch(kernel.ptx, kernel.name, (1,), (threads,), arguments, shared=kernel.shared_bytes)
    assert report.findings == []
    assert (c == (a.double() @ b.double()).numpy()).all() and np.allclose(sums, row.sum(0), rtol=1e-6)


@weft.jit
def of_heads(a, b, c, M, K, D: wl.constexpr, SHIFTED: wl.constexpr):
    """Keys of head 1 of several, each of as many rows as nothing is known of; and some columns further."""
    i, d = wl.arange(0, 64), wl.arange(0, D)
    acc = wl.zeros((64, D), dtype=wl.float32)
    for start in range(0, K, 32):
        k = start + wl.arange(0, 32)
        rows = (wl.program_id(0) + 1) * M + k
        at = rows[:, None] * D + d[None, :]
        if SHIFTED:
            at += wl.program_id(0) * M
        weights = wl.load(a + i[:, None] * 96 + k[None, :])
        acc = wl.dot(weights, wl.load(b + at, mask=k[:, None] < M, other=0.0), acc)
    wl.store(c + i[:, None] * D + d[None, :], acc)


@pytest.mark.parametrize("shifted, boxes", [(False, 2), (True, 1)])
def test_strides_of_a_constant_and_what_nothing_is_known_of(seed, shifted, boxes):
    """M · 64 elements are a multiple of what a map asks for, whatever M is; M alone is none."""
    text = f"a:*bf16:16, b:*bf16:16, c:*fp32:16, M:i32, K:i32, D=64, SHIFTED={shifted}"
    kernel = boxed(of_heads, text, 4, 2)
    assert kernel.ptx.count("// weft.tensor_map") == boxes
    random = np.random.default_rng(seed)
    M = 77
    (a, a64), (b, b64) = (bits(random.standard_normal(shape), "bf16") for shape in ((64, 96), (3 * M + 2, 64)))
    c = np.full((64, 64), np.nan, np.float32)
    arguments = [a, b, c, np.int32(M), np.int32(96)]
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, 1, 32 * kernel.num_warps, arguments, shared=kernel.shared_bytes
    )
    assert report.findings == []
    np.testing.assert_allclose(c, a64[:, :M] @ b64[M : 2 * M], atol=2e-4, rtol=0)


@weft.jit
def among_all_rows(a_ptr, b_ptr, c, N, H, K, D: wl.constexpr):
    """Descriptors of all heads' rows, of which a program reads those of its own head."""
    h = wl.program_id(0)
    a = wl.make_tensor_descriptor(a_ptr, shape=[H * 64, K], strides=[K, 1], block_shape=[64, 32])
    b = wl.make_tensor_descriptor(b_ptr, shape=[H * N, D], strides=[D, 1], block_shape=[32, D])
    acc = wl.zeros((64, D), dtype=wl.float32)
    for k in range(0, K, 32):
        acc = wl.dot(a.load([h * 64, k]), b.load([h * N + k, 0]), acc)
    i, d = h * 64 + wl.arange(0, 64), wl.arange(0, D)
    wl.store(c + i[:, None] * D + d[None, :], acc)


def test_rows_of_a_head_among_all(seed):
    """A head's first row is a product of what the launch knows and the head, in a tensor that ends behind all heads."""
    kernel = boxed(among_all_rows, "a_ptr:*bf16:16, b_ptr:*bf16:16, c:*fp32:16, N:i32, H:i32, K:i32:16, D=64", 4, 3)
    assert kernel.ptx.count("// weft.tensor_map") == 2
    random = np.random.default_rng(seed)
    N, H, K = 100, 3, 128  # what lies behind a head's rows is the next one's, and behind the last there is nothing
    (a, a64), (b, b64) = (bits(random.standard_normal(shape), "bf16") for shape in ((H * 64, K), (H * N, 64)))
    c = np.full((H * 64, 64), np.nan, np.float32)
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, H, 32 * kernel.num_warps, [a, b, c, np.int32(N), np.int32(H), np.int32(K)],
        shared=kernel.shared_bytes,
    )  # fmt: skip
    assert report.findings == []
    rows = np.concatenate([b64, np.zeros((K, 64))])
    for h in range(H):
        wanted = a64[h * 64 : h * 64 + 64] @ rows[h * N : h * N + K]
        np.testing.assert_allclose(c[h * 64 : h * 64 + 64], wanted, atol=5e-4, rtol=0)


@weft.jit
def by_any_stride(memory, a, b, c, K, sam, sbk, scm):
    """``memory`` is all that the others lie in."""
    i, k = wl.arange(0, 64), wl.arange(0, 32)
    acc = wl.zeros((64, 64), dtype=wl.float32)
    for start in range(0, K, 32):
        a_tile = wl.load(a + i[:, None] * sam + (start + k)[None, :])
        acc = wl.dot(a_tile, wl.load(b + (start + k)[:, None] * sbk + i[None, :]), acc)
    wl.store(c + i[:, None] * scm + i[None, :], acc.to(wl.float16))


@pytest.mark.parametrize("strides, boxes", [
    ((96, 64, 64), 2), ((0, 64, 64), 2), ((96, 0, 64), 2), ((-96, 64, 64), 1), ((96, -64, 64), 1), ((96, 64, -64), 2),
    ((-96, -64, -64), 0),
])  # fmt: skip
def test_strides_of_either_sign(seed, monkeypatch, strides, boxes):
    """Rows that are one, and rows counted from the last: no tensor map has these, so that threads copy them."""
    monkeypatch.setenv("WEFT_DEVICE", DEVICE)
    random = np.random.default_rng(seed)
    memory = torch.from_numpy(random.integers(-4, 5, 3 * 8192).astype(np.float16))
    shapes = ((64, 96), (96, 64), (64, 64))
    begins = [8192 * n + max(-stride * (shapes[n][0] - 1), 0) for n, stride in enumerate(strides)]
    places = [
        begin + np.arange(rows)[:, None] * stride + np.arange(columns)
        for begin, stride, (rows, columns) in zip(begins, strides, shapes, strict=True)
    ]
    a, b = (memory.numpy()[place].astype(float) for place in places[:2])
    wanted = memory.numpy().copy()
    wanted[places[2]] = a @ b
    views = [memory[begin:] for begin in begins]
    kernel = by_any_stride[(1,)](memory, *views, 96, *strides, num_warps=4, num_stages=3)
    assert kernel.ptx.count("// weft.tensor_map") == boxes
    np.testing.assert_array_equal(memory.numpy(), wanted)


@weft.jit
def from_the_middle(
    a, b, c, K, begin, limit,
    MASKED: wl.constexpr, OTHER: wl.constexpr, BACK: wl.constexpr,
):  # fmt: skip
    """Rows of b from row ``begin`` on, or those before it; those from ``limit`` on are OTHER."""
    i, k = wl.arange(0, 64), wl.arange(0, 32)
    acc = wl.zeros((64, 64), dtype=wl.float32)
    for start in range(0, K, 32):
        at = begin - start - 32 + k if BACK else begin + start + k
        a_tile = wl.load(a + i[:, None] * 96 + (start + k)[None, :])
        if MASKED:
            b_tile = wl.load(b + at[:, None] * 64 + i[None, :], mask=at[:, None] < limit, other=OTHER)
        else:
            b_tile = wl.load(b + at[:, None] * 64 + i[None, :])
        acc = wl.dot(a_tile, b_tile, acc)
    wl.store(c + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("masked, other, back, limit, boxes", [
    (True, 0.0, False, 150, 2), (True, 0.0, False, 100, 2), (True, 0.0, False, -3, 2), (True, 2.0, False, 130, 1),
    (False, 0.0, False, 0, 2), (False, 0.0, True, 0, 1), (True, 0.0, True, 60, 1),
])  # fmt: skip
def test_what_lies_outside(masked, other, back, limit, boxes):
    """Masks that leave nothing, other fills than zero, and rows before the row that the kernel counts from."""
    text = (
        f"a:*bf16:16, b:*bf16:16, c:*fp32:16, K:i32, begin:i32, limit:i32, MASKED={masked}, OTHER={other}, BACK={back}"
    )
    kernel = boxed(from_the_middle, text, 4, 2)
    assert kernel.ptx.count("// weft.tensor_map") == boxes
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    (a, a64), (b, b64) = (bits(rng.standard_normal(shape), "bf16") for shape in ((64, 96), (196, 64)))
    begin = 100
    rows = [begin - start - 32 + k if back else begin + start + k for start in range(0, 96, 32) for k in range(32)]
    wanted = a64 @ np.stack([b64[row] if not masked or row < limit else np.full(64, other) for row in rows])
    for seed in range(2):
        c = np.full((64, 64), np.nan, np.float32)
        arguments = [a, b, c, np.int32(96), np.int32(begin), np.int32(limit)]
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, (1,), (128,), arguments, shared=kernel.shared_bytes, seed=seed
        )
        assert report.findings == []
        np.testing.assert_allclose(c, wanted, atol=2e-4, rtol=0)


@pytest.mark.parametrize("D, warps", [(64, 4), (128, 8)])
def test_attention(D, warps):
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    BM, BN = 128 if warps == 8 else 64, 64
    scale = math.log2(math.e) / math.sqrt(D)
    text = (
        f"q:*fp16:16, k:*fp16:16, v:*fp16:16, out:*fp32:16, N:i32, SCALE={scale}, D={D}, BM={BM}, BN={BN}, CAUSAL=True"
    )
    kernel = boxed(attention, text, warps, 2)
    assert "cp.async.bulk.tensor" in kernel.ptx
    attends(kernel, rng, D, BM, warps, "fp16")


def test_a_program():
    """Grouped heads of ragged length: maps have an axis for heads and one for sequences."""
    heads, groups, tokens, D = 4, 2, 75, 64
    text = ", ".join(f"{name}:fp16[B,{heads if name == 'q' else groups},N,{D}]:16" for name in "qkv")
    ptx, info = emitted(native_context().context.parse(grouped.declare(text).text))
    assert "cp.async.bulk.tensor.4d" in ptx
    start = torch.random.seed() % 2**31
    print("seed", start)
    torch.manual_seed(start)
    q, k, v = (torch.randn(2, count, tokens, D).half() for count in (heads, groups, groups))
    wide = [each.double().repeat_interleave(heads // each.shape[1], 1) for each in (q, k, v)]
    later = torch.ones(tokens, tokens).triu(1).bool()
    right = (wide[0] @ wide[1].mT / math.sqrt(D)).masked_fill(later, -math.inf).softmax(-1) @ wide[2]
    for seed in range(16):
        run = run_plan(ptx, info, "grouped", [each.numpy() for each in (q, k, v)], seed=seed)
        assert run.findings == []
        error = float((torch.from_numpy(run.outputs["out"]).double() - right).abs().max())
        assert error <= 4e-3 * float(right.abs().max())


def run_on(device):
    """The matmul on a device of the runtime, launched by its own arguments."""
    kernel = boxed_matmul()
    M, N, K = 80, 96, 112
    rng = np.random.default_rng(0)
    (a, a64), (b, b64) = (bits(rng.standard_normal(shape), "bf16") for shape in ((M, K), (K, N)))
    types = ["*bf16", "*bf16", "*fp32", *["i32"] * 6]
    module = runtime.Module(kernel.ptx, kernel.name, kernel.shared_bytes, runtime.open_device(device), types)
    for rows in (M, M - 16, M):  # another map, and one that was made before
        c = np.full((M, N), np.nan, np.float32)
        module.launch((2, 2), 128, (a, b, c, rows, N, K, K, N, N))
        np.testing.assert_allclose(c[:rows], (a64 @ b64)[:rows], atol=2e-4, rtol=0)
        assert np.isnan(c[rows:]).all()


def test_the_simulated_device():
    run_on("simulator")


def test_the_cuda_driver():
    """The driver makes the maps. Its GPU is the simulator."""
    build = build_folder()
    path = build and build / "test" / "Unit" / "Runtime" / "libWeftSimulatedCuda.so"
    if not path or not path.exists():
        pytest.skip("no libWeftSimulatedCuda.so: the build of the extension modules under test has no tests")
    environment = {**os.environ, "WEFT_LIBCUDA": str(path), "WEFT_STANDIN_TARGET": TARGET}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "test" / "Python")])
    script = "import test_boxes; test_boxes.run_on('cuda:0'); print('passed')"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "passed", done.stderr


@pytest.mark.parametrize("text", ["try_wait", "expect_tx", "mbarrier.init", "bar.sync"])
def test_what_is_dropped_is_found(text):
    """Without the waits, the expectations, the barriers in shared memory or those of the block there is a finding."""
    kernel = boxed_matmul()
    lines = kernel.ptx.splitlines()
    assert any(text in line for line in lines)
    ptx = "\n".join(line for line in lines if text not in line)
    a, b = np.zeros((80, 112), np.uint16), np.zeros((112, 96), np.uint16)
    sizes = [np.int32(each) for each in (80, 96, 112, 112, 96, 96)]
    findings = []
    for seed in range(2):
        c = np.zeros((80, 96), np.float32)
        report = weft.simulator.launch(
            ptx, kernel.name, (2, 2), (128,), [a, b, c, *sizes], shared=kernel.shared_bytes, seed=seed, limit=10**6
        )
        findings += report.findings
    assert findings, text
