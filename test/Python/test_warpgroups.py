# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products by matrix instructions of warpgroups: right against float64 in every form, no finding of the simulator
whatever is early or late, no spill, and nothing that ptxas serialises.
"""

import itertools
import math
import subprocess

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.simulator
from weft.compiler.ptxas import assemble, find_tool
from weft.cycles.flow import loops_of
from weft.programs.compiled import compiled
from weft.programs.simulated import run_plan
from weft.targets import targets

TARGET = next(name for name, each in targets().items() if each.warpgroup_mma)
needs_ptxas = pytest.mark.skipif(
    not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)


@weft.jit
def matmul(
    a, b, c, M, N, K, sam, sak, sbk, sbn, scm,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, EXACT: wl.constexpr,
):  # fmt: skip
    m = wl.program_id(0) * BM + wl.arange(0, BM)
    n = wl.program_id(1) * BN + wl.arange(0, BN)
    k = wl.arange(0, BK)
    a_ptrs = a + m[:, None] * sam + k[None, :] * sak
    b_ptrs = b + k[:, None] * sbk + n[None, :] * sbn
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        if EXACT:
            a_tile, b_tile = wl.load(a_ptrs), wl.load(b_ptrs)
        else:
            inside = k < K - start
            a_tile = wl.load(a_ptrs, mask=(m[:, None] < M) & inside[None, :], other=0.0)
            b_tile = wl.load(b_ptrs, mask=inside[:, None] & (n[None, :] < N), other=0.0)
        acc = wl.dot(a_tile, b_tile, acc)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    wl.store(c + m[:, None] * scm + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def compile_matmul(
    dtype="bf16", order="nn", tile=(128, 128, 64), warps=4, stages=3, exact=False, pointer=16, target=TARGET
):  # the unit stride of an operand is a constant
    unit = {"n": ("sam:i32:16", "sak=1"), "t": ("sam=1", "sak:i32:16")}[order[0]]
    other = {"n": ("sbk:i32:16", "sbn=1"), "t": ("sbk=1", "sbn:i32:16")}[order[1]]
    BM, BN, BK = tile
    text = (
        f"a:*{dtype}:{pointer}, b:*{dtype}:{pointer}, c:*fp32:16, M:i32, N:i32, K:i32, {', '.join(unit + other)}, "
        f"scm:i32:16, BM={BM}, BN={BN}, BK={BK}, EXACT={exact}"
    )
    return matmul.compile(text, target=target, num_warps=warps, num_stages=stages)


EIGHT_BITS = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def bits(values, dtype):
    """Values as a product's operand, and what they stand for there."""
    if dtype == "fp32":
        single = values.astype(np.float32)
        raw = single.view(np.uint32)
        rounded = (raw + 0xFFF + (raw >> 13 & 1)) & 0xFFFFE000  # to TF32, ties to even
        return single, rounded.astype(np.uint32).view(np.float32).astype(np.float64)
    if dtype == "fp16":
        half = values.astype(np.float16)
        return half, half.astype(np.float64)
    if dtype in EIGHT_BITS:
        byte = torch.from_numpy(values).to(EIGHT_BITS[dtype])
        return byte.view(torch.uint8).numpy(), byte.double().numpy()
    raw = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return raw, (raw.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def run_matmul(kernel, sizes, tile, warps, dtype, order, rng, seed):
    """The result beside float64's, and the report."""
    M, N, K = sizes
    (a, a64), (b, b64) = (bits(rng.standard_normal(shape), dtype) for shape in ((M, K), (K, N)))
    strides = []
    arrays = []
    for array, way in ((a, order[0]), (b, order[1])):
        stored = np.ascontiguousarray(array if way == "n" else array.T)
        arrays.append(stored)
        strides.append(np.int32(stored.shape[1]))
    width = -(-N // 16) * 16
    c = np.full((M, width), np.nan, np.float32)
    grid = (math.ceil(M / tile[0]), math.ceil(N / tile[1]))
    scalars = [np.int32(each) for each in (M, N, K)]
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, grid, (32 * kernel.num_warps,), [*arrays, c, *scalars, *strides, np.int32(width)],
        shared=kernel.shared_bytes, seed=seed,
    )  # fmt: skip
    return c[:, :N], a64 @ b64, report


def judge(kernel, sizes, tile, warps, dtype="bf16", order="nn", seeds=3, counter="wgmma"):
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    for seed in range(seeds):
        result, wanted, report = run_matmul(kernel, sizes, tile, warps, dtype, order, rng, seed)
        assert report.findings == []
        np.testing.assert_allclose(result, wanted, atol=2e-6 * sizes[2], rtol=0)
        assert report.counters[counter] > 0
    return report


#: Tiles whose operands lie in lines of 32, 64 and 128 bytes and in panels of them; several tiles of a warpgroup, and
#: warpgroups along both axes.
TILES = [
    ((64, 16, 16), 4),
    ((64, 32, 32), 4),
    ((128, 64, 64), 4),
    ((64, 256, 32), 4),
    ((128, 128, 32), 8),
    ((64, 128, 64), 8),
    ((64, 64, 32), 8),
    ((64, 32, 64), 8),
]


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("tile, warps", TILES)
def test_every_order_of_operands(tile, warps, order):
    """Neighbours along K, M or N: descriptors turn what lies the other way round."""
    kernel = compile_matmul(order=order, tile=tile, warps=warps)
    assert "mma.sync" not in kernel.ptx and "ldmatrix" not in kernel.ptx
    judge(kernel, (tile[0], tile[1], 3 * tile[2]), tile, warps, order=order, seeds=2)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_ragged_sizes(dtype, stages):
    """Masked copies, and rings of any length."""
    tile = (64, 64, 32)
    judge(compile_matmul(dtype, tile=tile, stages=stages), (80, 96, 112), tile, 4, dtype)


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("tile, warps", [((64, 32, 32), 4), ((64, 64, 16), 8), ((128, 64, 32), 4)])
def test_tf32(tile, warps, order):
    """Operands of f32 are rounded on their way to shared memory, and turned there."""
    kernel = compile_matmul("fp32", order, tile, warps)
    assert ".f32.tf32.tf32" in kernel.ptx and "mma.sync" not in kernel.ptx
    judge(kernel, (tile[0] + 16, tile[1] + 16, 3 * tile[2] + 16), tile, warps, "fp32", order, seeds=2)


def test_narrow_pieces():
    """What cp.async cannot copy is stored by the threads, and fenced."""
    tile = (64, 64, 32)
    kernel = compile_matmul(tile=tile, pointer=2)
    assert "cp.async.c" not in kernel.ptx and "complete_tx" not in kernel.ptx and "fence.proxy.async" in kernel.ptx
    judge(kernel, (64, 64, 96), tile, 4)


def test_instructions_and_bytes():
    """128 × 256 × 64 on 8 warps is 4 instructions for each warpgroup, which read their rows of A and all of B."""
    tile = (128, 256, 64)
    kernel = compile_matmul(tile=tile, warps=8, exact=True)
    counters = judge(kernel, tile, tile, 8, seeds=1).counters
    assert counters["wgmma"] == 2 * 4
    assert counters["mma_macs"] == math.prod(tile)
    assert counters["wgmma_shared_bytes"] == 2 * (64 * 64 + 64 * 256) * 2
    # Sums of 32 bits go by pairs into the tile that leaves as boxes: two rows meet in each bank.
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"] + 8 * 64 * 2


@needs_ptxas
def test_the_loop_of_a_matmul():
    kernel = compile_matmul(tile=(128, 256, 64), warps=8, exact=True)
    found = assemble(kernel.ptx, TARGET)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)
    (loop,) = (each for each in loops_of(kernel.ptx, TARGET)[kernel.name] if each.matrix)
    assert loop.matrix == 4
    assert loop.count <= 41, loop.classes
    assert sum(each.name != "NOP" for each in loop.whole) <= 70


@weft.jit
def attention(
    q, k, v, out, N, SCALE: wl.constexpr, D: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, CAUSAL: wl.constexpr
):
    start = wl.program_id(0) * BM
    rows, columns, channels = start + wl.arange(0, BM), wl.arange(0, BN), wl.arange(0, D)
    q_tile = wl.load(q + rows[:, None] * D + channels[None, :], mask=rows[:, None] < N, other=0.0)
    maximum = wl.full((BM,), -float("inf"), dtype=wl.float32)
    total = wl.zeros((BM,), dtype=wl.float32)
    acc = wl.zeros((BM, D), dtype=wl.float32)
    for first in range(0, N, BN):
        keys = first + columns
        k_tile = wl.load(k + keys[None, :] * D + channels[:, None], mask=keys[None, :] < N, other=0.0)
        scores = wl.dot(q_tile, k_tile) * SCALE
        allowed = keys[None, :] < N
        if CAUSAL:
            allowed = allowed & (keys[None, :] <= rows[:, None])
        scores = wl.where(allowed, scores, -1e30)
        new = wl.maximum(maximum, wl.max(scores, 1))
        weights = wl.exp2(scores - new[:, None])
        decay = wl.exp2(maximum - new)
        total = total * decay + wl.sum(weights, 1)
        v_tile = wl.load(v + keys[:, None] * D + channels[None, :], mask=keys[:, None] < N, other=0.0)
        acc = wl.dot(weights.to(v.dtype.element_ty), v_tile, acc * decay[:, None])
        maximum = new
    wl.store(out + rows[:, None] * D + channels[None, :], acc / total[:, None], mask=rows[:, None] < N)


def compile_attention(D, BM, BN, warps, dtype="fp16", causal=True, target=TARGET):
    pointers = ", ".join(f"{name}:*{dtype}:16" for name in "qkv")
    scale = math.log2(math.e) / math.sqrt(D)
    text = f"{pointers}, out:*fp32:16, N:i32, SCALE={scale}, D={D}, BM={BM}, BN={BN}, CAUSAL={causal}"
    return attention.compile(text, target=target, num_warps=warps, num_stages=2)


ATTENTION = [(64, 128, 64, 4), (128, 128, 64, 8), (256, 64, 32, 4), (16, 64, 128, 4)]


def attends(kernel, rng, D, BM, warps, dtype):
    """Hold a kernel of causal attention against float64 over ragged rows, under two of the simulator's orders."""
    N = 150
    for seed in range(2):
        (q, q64), (k, k64), (v, v64) = (bits(rng.standard_normal((N, D)), dtype) for _ in range(3))
        out = np.full((N, D), np.nan, np.float32)
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, (math.ceil(N / BM),), (32 * kernel.num_warps,), [q, k, v, out, np.int32(N)],
            shared=kernel.shared_bytes, seed=seed,
        )  # fmt: skip
        assert report.findings == []
        scores = q64 @ k64.T / math.sqrt(D)
        scores[np.triu_indices(N, 1)] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        wanted = weights / weights.sum(1, keepdims=True) @ v64
        np.testing.assert_allclose(out, wanted, atol=0.004 if dtype == "fp16" else 0.03, rtol=0)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("D, BM, BN, warps", ATTENTION)
def test_attention(D, BM, BN, warps, dtype):
    """Weights go from the first product's registers into the second's."""
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    kernel = compile_attention(D, BM, BN, warps, dtype)
    assert "mma.sync" not in kernel.ptx and "ldmatrix" not in kernel.ptx
    attends(kernel, rng, D, BM, warps, dtype)


@weft.program
def grouped(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@pytest.mark.parametrize("target, instruction", [(TARGET, "wgmma.mma_async"), ("sm_100a", "tcgen05.mma")])
@pytest.mark.parametrize("D", [64, 128, 256])
def test_programs_and_their_backward(D, target, instruction):
    """Grouped heads of ragged length: all products of the forward and the backward, and no finding in any of them."""
    heads, groups, tokens = 4, 2, 75
    sizes = {"q": heads, "k": groups, "v": groups}
    text = ", ".join(f"{name}:fp16[B,{count},N,{D}]:16" for name, count in sizes.items())
    form = compiled(grouped.declare(text), target, differentiate=True)
    assert instruction in form.ptx
    if D < 256:
        assert "mma.sync" not in form.ptx
    start = torch.random.seed() % 2**31
    print("seed", start)
    torch.manual_seed(start)
    known = {name: torch.randn(1, count, tokens, D).half() for name, count in sizes.items()}
    known["d_out"] = torch.randn(1, heads, tokens, D).half()
    leaves = [known[name].double().requires_grad_() for name in "qkv"]
    k, v = (leaf.repeat_interleave(heads // groups, 1) for leaf in leaves[1:])
    later = torch.ones(tokens, tokens).triu(1).bool()
    out = (leaves[0] @ k.mT / math.sqrt(D)).masked_fill(later, -math.inf).softmax(-1) @ v
    expected = dict(zip(("d_q", "d_k", "d_v"), torch.autograd.grad(out, leaves, known["d_out"].double()), strict=True))
    expected["out"] = out.detach()
    arrays = {name: tensor.numpy() for name, tensor in known.items()}
    plans = {each["name"]: each for each in form.info["programs"]}
    for seed, name in enumerate(("grouped.forward", "grouped.backward")):
        inputs = [arrays[each["name"]] for each in plans[name]["inputs"]]
        run = run_plan(form.ptx, form.info, name, inputs, seed=seed)
        assert run.findings == []
        arrays |= run.outputs
    for name, right in expected.items():
        error = float((torch.from_numpy(arrays[name]).double() - right).abs().max())
        assert error <= 4e-3 * float(right.abs().max()), name


def said_of(ptx, folder):
    """What ptxas tells of a kernel; of instructions of warpgroups that it serialises, and of waits and fences that it
    adds, C75xx."""
    file = folder / "kernel.ptx"
    file.write_text(ptx)
    run = subprocess.run(
        [find_tool("ptxas"), "-v", "-arch", TARGET, file, "-o", folder / "kernel.cubin"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return run.stdout + run.stderr


@needs_ptxas
@pytest.mark.parametrize("D, BM, BN, warps", ATTENTION)
def test_ptxas_has_nothing_to_say(D, BM, BN, warps, tmp_path):
    said = said_of(compile_attention(D, BM, BN, warps).ptx, tmp_path)
    assert "C75" not in said, said
    assert "0 bytes spill stores, 0 bytes spill loads" in said


@weft.jit
def product_behind_others(a, b, c, K, N, count, BN: wl.constexpr, BK: wl.constexpr, AROUND: wl.constexpr):
    """A product that adds to sums of another loop's, which may have no iteration, or is not run at all."""
    m, n, k = wl.arange(0, 128)[:, None], wl.arange(0, BN)[None, :], wl.arange(0, BK)
    acc = wl.zeros((128, BN), wl.float32)
    if AROUND:
        for o in range(0, count):
            for s in range(0, K, BK):
                x = wl.load(a + m * K + (s + k)[None, :])
                acc = wl.dot(x, wl.load(b + (s + k)[:, None] * BN + n), acc)
            wl.store(c + (o + 1) * 128 * BN + m * BN + n, acc.to(wl.float16))
    else:
        if count > 3:
            acc += wl.load(c + m * BN + n)
        else:
            for s in range(0, K, BK):
                x = wl.load(a + m * K + (s + k)[None, :])
                acc = wl.dot(x, wl.load(b + (s + k)[:, None] * BN + n), acc)
    for s in range(0, N, BK):
        acc = wl.dot(wl.load(a + m * N + (s + k)[None, :]), wl.load(b + (s + k)[:, None] * BN + n), acc)
    wl.store(c + m * BN + n, acc.to(wl.float16))


@needs_ptxas
@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("BN, warps", [(128, 4), (128, 8), (32, 4)])
def test_products_behind_others_run_on(around, BN, warps, tmp_path):
    """The way out of the loop has a wait of its own; without, ptxas serialises all products (C7515)."""
    signature = f"a:*fp16:16, b:*fp16:16, c:*fp16:16, K:i32:16, N:i32:16, count:i32, BN={BN}, BK=64, AROUND={around}"
    kernel = product_behind_others.compile(signature, target=TARGET, num_warps=warps, num_stages=3)
    said = said_of(kernel.ptx, tmp_path)
    assert "C75" not in said, said


#: What the products' order hangs on. Fences for the asynchronous proxy may be more than are needed, one by one; of
#: products that are started one behind the other, each has a fence, and one orders what all of them read.
DROPPED = ["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned"]


def without(ptx: str):
    """PTX without one instruction that orders products, each in turn; and without any fence of the proxy."""
    fence, commit, wait = DROPPED
    for text in (commit, wait):
        parts = ptx.split(text)
        assert len(parts) >= 3, text
        for number in range(1, len(parts)):
            rest = parts[number].split(";", 1)[1] if text == wait else parts[number]
            yield text.join(parts[:number]) + rest + "".join(text + part for part in parts[number + 1 :])
    between = ptx.split(wait)
    for number in (each for each, part in enumerate(between) if fence in part):
        yield wait.join([*between[:number], between[number].replace(fence, ""), *between[number + 1 :]])
    if "fence.proxy.async.shared::cta;" in ptx:  # bulk copies write through that proxy
        yield ptx.replace("fence.proxy.async.shared::cta;", "")


def test_what_is_dropped_is_found():
    """Each fence, commit and wait of the attention's loop has to be there: without it there is a finding."""
    D, BM, BN, warps = 64, 64, 32, 4
    kernel = compile_attention(D, BM, BN, warps)
    rng = np.random.default_rng()
    N = 100
    q, k, v = (rng.standard_normal((N, D)).astype(np.float16) for _ in range(3))
    for ptx in without(kernel.ptx):
        out = np.full((N, D), np.nan, np.float32)
        findings = itertools.chain.from_iterable(
            weft.simulator.launch(
                ptx, kernel.name, (1,), (32 * warps,), [q, k, v, out, np.int32(N)],
                shared=kernel.shared_bytes, seed=seed,
            ).findings
            for seed in range(2)
        )  # fmt: skip
        assert next(findings, None), ptx
