# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A warp of its own for copies: right against float64 whatever is early or late, no finding, and everything needed that
orders the two programs; no spill, nothing that ptxas complains of, and registers of each role within its share.
"""

import math
import pathlib
import re
import subprocess

import numpy as np
import pytest
import torch
import weft
import weft.simulator
from test_boxes import boxed, emitted
from test_warpgroups import TARGET, attends, attention, judge, matmul, needs_ptxas
from weft.compiler.lower import native_context
from weft.compiler.ptxas import assemble, find_tool
from weft.cycles.flow import loops_of
from weft.programs.simulated import run_plan
from weft.targets import target_named
from weft.testing.plans import counted


def roles_matmul(exact=False, stages=3, tile=(128, 256, 64)):
    BM, BN, BK = tile
    text = (
        "a:*bf16:16, b:*bf16:16, c:*fp32:16, M:i32:16, N:i32:16, K:i32:16, sam:i32:16, sak=1, sbk:i32:16, sbn=1, "
        f"scm:i32:16, BM={BM}, BN={BN}, BK={BK}, EXACT={exact}"
    )
    kernel = boxed(matmul, text, 8, stages)
    assert kernel.num_warps == 12
    return kernel


def roles_attention(D, causal=True, BN=128):
    scale = math.log2(math.e) / math.sqrt(D)
    text = (
        f"q:*fp16:16, k:*fp16:16, v:*fp16:16, out:*fp32:16, N:i32, SCALE={scale}, D={D}, BM=128, BN={BN}, "
        f"CAUSAL={causal}"
    )
    kernel = boxed(attention, text, 8, 2)
    assert kernel.num_warps == 12
    return kernel


@pytest.mark.parametrize("stages, seeds", [(2, 16), (3, 2), (4, 1)])
def test_a_matmul(stages, seeds):
    """Rings of any length; products that go on into the next iteration where there are three stages and more."""
    tile = (128, 256, 32)
    judge(roles_matmul(stages=stages, tile=tile), (112, 240, 208), tile, 8, seeds=seeds)


@pytest.mark.slow
def test_schedules_of_products_that_go_on():
    tile = (128, 256, 32)
    judge(roles_matmul(tile=tile), (112, 240, 176), tile, 8, seeds=16)


@pytest.mark.parametrize("sizes", [(128, 256, 32), (16, 16, 16)])
def test_loops_of_any_length(sizes):
    """Fewer iterations than stages."""
    judge(roles_matmul(tile=(128, 256, 32)), sizes, (128, 256, 32), 8, seeds=2)


def test_attention_of_tiles():
    start = np.random.SeedSequence().entropy
    print("seed", start)
    attends(roles_attention(64), np.random.default_rng(start), 64, 128, 8, "fp16")


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def windowed(q, k, v):
    return weft.softmax(q, k, weft.window(100, 0)) @ v


@weft.program
def documents(q, k, v, ids):
    return weft.softmax(q, k, weft.document(ids, ids) & weft.causal()) @ v


def allowed(name, tokens, ids):
    p, m = np.arange(tokens)[:, None], np.arange(tokens)[None, :]
    return {
        "full": p >= 0,
        "causal": m <= p,
        "windowed": (m <= p) & (m >= p - 100),
        "documents": (m <= p) & (ids[:, None] == ids[None, :]),
    }[name] & (m >= 0)


@pytest.mark.parametrize(
    "program, D, tokens, seeds",
    [
        (full, 128, 200, 1),
        (causal, 128, 75, 16),
        (windowed, 128, 330, 1),
        (documents, 128, 170, 2),
        (causal, 120, 140, 2),
    ],
    ids=lambda each: getattr(each, "name", str(each)),
)
def test_programs(program, D, tokens, seeds):
    """Grouped heads of ragged lengths, under patterns whose loops differ."""
    heads, groups = 2, 1
    text = ", ".join(f"{name}:fp16[B,{heads if name == 'q' else groups},N,{D}]:16" for name in "qkv")
    if program is documents:
        text += ", ids:int32[N]"
    ptx, info = emitted(native_context().context.parse(program.declare(text).text))
    assert "setmaxnreg" in ptx
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    q, k, v = (rng.standard_normal((1, count, tokens, D)).astype(np.float16) for count in (heads, groups, groups))
    ids = np.sort(rng.integers(0, 4, tokens)).astype(np.int32)
    inputs = [q, k, v, ids] if program is documents else [q, k, v]
    name = info["programs"][0]["name"]
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / math.sqrt(D)
    scores = np.where(allowed(name, tokens, ids), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    for seed in range(seeds):
        run = run_plan(ptx, info, name, inputs, seed=seed)
        assert run.findings == []
        error = np.abs(run.outputs["out"].astype(np.float64) - right).max()
        assert error <= 4e-3 * np.abs(right).max()


@pytest.mark.parametrize("D, waits", [(128, 14), (256, 21)])
def test_what_a_block_waits_for(D, waits):
    """All of it comes by the producer's bulk copies, the queries with the first keys, which nothing waits for: warps
    wait for the ring to be there, before they store, and, where what they store has the ring's bytes, before that."""
    q, k, v = (torch.randn(1, 2, 256, D).half() for _ in range(3))
    ran = counted(causal, q, k, v, target=TARGET)
    (forward,) = ran["forward"].launches
    assert forward.report.profile.total().barrier_waits <= 4 * waits
    text = ", ".join(f"{name}:fp16[B,H,N,{D}]:16" for name in "qkv")
    ptx, _ = emitted(native_context().context.parse(causal.declare(text).text))
    assert "cp.async.bulk.tensor" in ptx and "cp.async.cg" not in ptx


def test_blocks_that_share_a_multiprocessor_keep_one_program():
    """And so does a kernel of one warpgroup, or without products of warpgroups, of which two fit."""
    text = (
        "a:*bf16:16, b:*bf16:16, c:*fp32:16, M:i32:16, N:i32:16, K:i32:16, sam:i32:16, sak=1, sbk:i32:16, sbn=1, "
        "scm:i32:16"
    )
    for warps, tile in ((8, (128, 128, 32)), (4, (64, 64, 32))):
        BM, BN, BK = tile
        kernel = boxed(matmul, f"{text}, BM={BM}, BN={BN}, BK={BK}, EXACT=False", warps, 3)
        assert kernel.num_warps == warps and "setmaxnreg" not in kernel.ptx


#: What both programs do at mbarriers, the block's barrier between making them and using them, and turns of
#: warpgroups; but for the wait behind a loop, which is there for the next loop's turns.
NEEDED = r"mbarrier\.(arrive|try_wait|init)|bar\.sync\s+[02]|bar\.arrive|^\s*bar\.sync\s+%r"


def dropped(kernel, run):
    """Each arrival, wait and expectation of either program, and each of the barriers between them, is needed."""
    lines = kernel.ptx.splitlines()
    numbers = [number for number, line in enumerate(lines) if re.search(NEEDED, line)]
    # two barriers of each stage; waits at either, one arrival, an expectation before the loop and in it; a barrier in
    # each program
    assert len(numbers) >= 4 + 5 + 2
    for number in numbers:
        ptx = "\n".join([*lines[:number], *lines[number + 1 :]])
        assert any(run(ptx, seed).findings for seed in range(8)), lines[number]


@pytest.mark.parametrize("stages", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_what_is_dropped_is_found(stages):
    """Where products are waited for, and where they go on into the next iteration."""
    kernel = roles_matmul(stages=stages, tile=(128, 256, 32))
    a, b = np.zeros((128, 224), np.uint16), np.zeros((224, 256), np.uint16)
    sizes = [np.int32(each) for each in (128, 256, 224, 224, 256, 256)]

    def run(ptx, seed):
        arguments = [a, b, np.zeros((128, 256), np.float32), *sizes]
        threads = (32 * kernel.num_warps,)
        return weft.simulator.launch(
            ptx, kernel.name, (1,), threads, arguments, shared=kernel.shared_bytes, seed=seed, limit=200_000
        )

    assert not run(kernel.ptx, 0).findings
    dropped(kernel, run)


def test_what_is_dropped_of_attention_is_found():
    """Where products go on beside the next iteration's: of a loop of several iterations, or of one."""
    kernel = roles_attention(64, causal=False)

    def of_tokens(ptx, seed, N):
        q, k, v = (np.zeros((N, 64), np.float16) for _ in range(3))
        arguments = [q, k, v, np.zeros((N, 64), np.float32), np.int32(N)]
        threads = (32 * kernel.num_warps,)
        return weft.simulator.launch(
            ptx, kernel.name, (1,), threads, arguments, shared=kernel.shared_bytes, seed=seed, limit=200_000
        )

    def run(ptx, seed):
        several = of_tokens(ptx, seed, 600)
        return several if several.findings else of_tokens(ptx, seed, 100)

    assert not run(kernel.ptx, 0).findings
    dropped(kernel, run)


def registers_of(ptx, folder):
    """What ptxas says, and the highest register that machine code names."""
    file = folder / "kernel.ptx"
    pathlib.Path(file).write_text(ptx)
    cubin = folder / "kernel.cubin"
    command = [find_tool("ptxas"), "-v", "-arch", TARGET, file, "-o", cubin]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = subprocess.run([find_tool("nvdisasm"), "-c", cubin], capture_output=True, text=True, check=True).stdout
    return said.stdout + said.stderr, 1 + max(int(number) for number in re.findall(r"\bR(\d+)\b", listed))


@needs_ptxas
@pytest.mark.parametrize(
    "kernel, most",
    [
        (lambda: roles_matmul(exact=True), (34, 37)),
        (lambda: roles_attention(64, causal=False), (587, 590)),
        (lambda: roles_attention(128, causal=False), (628, 631)),
    ],
    ids=["matmul", "attention 64", "attention 128"],
)
def test_machine_code(kernel, most, tmp_path):
    """The consumers' loop has no copy in it, and each role's registers are its own."""
    made = kernel()
    said, registers = registers_of(made.ptx, tmp_path)
    assert "C75" not in said, said
    found = assemble(made.ptx, TARGET)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)
    shares = [int(number) for number in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", made.ptx)]
    assert len(shares) == 2 and registers <= max(shares)
    target = target_named(TARGET)
    assert 32 * (8 * max(shares) + 4 * min(shares)) <= target.registers_per_processor
    loops = [each for each in loops_of(made.ptx, TARGET)[made.name] if each.matrix]
    loop = min(loops, key=lambda each: (-each.matrix, each.count))
    assert not any(each.name.startswith("UTMA") for each in loop.whole)
    counts = (loop.count, sum(each.name != "NOP" for each in loop.whole))
    assert counts <= most, counts
