# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Persistent kernels: blocks that go over the programs of a grid give the same bits as a block for each, without
findings, whatever the number of multiprocessors and the order in which copies arrive."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from installed import ROOT, build_folder
from kernel_support import simulate
from weft.programs.compiled import compiled
from weft.testing.plans import run_plan

MARK = "// weft.programs 1 "
ROWS, FEW, DEEP = (128, 128, 8, 2), (128, 64, 8, 2), (128, 64, 8, 3)


def full(q, k, v):
    return weft.softmax(q, k) @ v


def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def window(q, k, v):
    return weft.softmax(q, k, weft.window(70, 0)) @ v


def scored(q, k, v):
    return weft.softmax(q, k, weft.causal(), score_mod=lambda s, b, h, i, j: s - 0.01 * (i - j)) @ v


def operands(seed, shapes):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=random).half() for shape in shapes]


def outputs(form, name, given, seed=0):
    """What a program gives, by name, without findings."""
    run = run_plan(form.ptx, form.info, name, given, seed=seed)
    assert not run.findings
    return run.outputs


@pytest.mark.parametrize("multiprocessors", [1, 2, 5])
@pytest.mark.parametrize("function, D, schedule, heads, shared, N, M", [
    (full, 128, ROWS, 2, 1, 300, 300), (causal, 128, ROWS, 3, 1, 500, 500), (causal, 128, DEEP, 2, 1, 300, 410),
    (full, 128, DEEP, 2, 2, 130, 257), (window, 128, FEW, 2, 1, 333, 333), (scored, 112, ROWS, 2, 1, 260, 260),
    (full, 64, ROWS, 2, 1, 129, 1), (causal, 192, FEW, 1, 1, 300, 200),
])  # fmt: skip
def test_programs(seed, monkeypatch, function, D, schedule, heads, shared, N, M, multiprocessors):
    """Ragged tiles, rows without keys, rings of two and three stages."""
    given = [x.numpy() for x in operands(seed, [(2, heads, N, D), *[(2, heads // shared, M, D)] * 2])]
    traced = weft.program(function).declare(
        f"q:fp16[B,{heads},N,{D}]:16, k:fp16[B,{heads // shared},M,{D}]:16, v:fp16[B,{heads // shared},M,{D}]:16"
    )
    plain = compiled(traced, "sm_90a", False, schedules={"0.forward": schedule})
    form = compiled(traced, "sm_90a", False, schedules={"0.forward": (*schedule, 0, 1, 1)})
    assert MARK in form.ptx and MARK not in plain.ptx
    name = form.info["programs"][0]["name"]
    (wanted,) = outputs(plain, name, given).values()
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", str(multiprocessors))
    for order in (0, seed + 1):
        (made,) = outputs(form, name, given, order).values()
        assert made.tobytes() == wanted.tobytes()


def test_gradients(seed, monkeypatch):
    """The kernels of a backward whose products run late are persistent too."""
    q, k, v, g = operands(seed, [(1, 2, 300, 128)] * 4)
    traced = weft.program(full).declare("q:fp16[B,2,N,128]:16, k:fp16[B,2,N,128]:16, v:fp16[B,2,N,128]:16")
    places = {"0.forward": ROWS, "0.backward.query": ROWS, "0.backward.keys": (128, 64, 8, 2)}
    given, made = {"q": q.numpy(), "k": k.numpy(), "v": v.numpy(), "d_out": g.numpy()}, []
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", "2")
    for more in ((), (0, 1, 1)):
        form = compiled(
            traced, "sm_90a", True, schedules={place: (*numbers, *more) for place, numbers in places.items()}
        )
        assert form.ptx.count(MARK) == (2 if more else 0)
        found = dict(given)
        for plan in form.info["programs"]:
            found |= outputs(form, plan["name"], [found[each["name"]] for each in plan["inputs"]], seed + 1)
        made.append({name: array.tobytes() for name, array in found.items()})
    assert made[0] == made[1]


def test_blocks(monkeypatch):
    """No more blocks than multiprocessors, and none for a program that is not there."""
    traced = weft.program(causal).declare("q:fp16[B,2,N,128]:16, k:fp16[B,2,N,128]:16, v:fp16[B,2,N,128]:16")
    form = compiled(traced, "sm_90a", False, schedules={"0.forward": (*ROWS, 0, 1, 1)})
    given = [x.numpy() for x in operands(0, [(1, 2, 300, 128)] * 3)]
    for multiprocessors, blocks in ((1, 1), (4, 4), (100, 6)):
        monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", str(multiprocessors))
        run = run_plan(form.ptx, form.info, form.info["programs"][0]["name"], given)
        (launch,) = run.launches
        assert not run.findings and launch.grid == (blocks, 1, 1) and launch.scale == 1
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", "some")
    with pytest.raises(
        weft.Error, match="expected WEFT_SIMULATOR_MULTIPROCESSORS to be a number from 1, but got 'some'"
    ):
        run_plan(form.ptx, form.info, form.info["programs"][0]["name"], given)


@weft.jit
def attend_rows(q, k, v, o, first, rows, tokens, scale, BN: wl.constexpr, D: wl.constexpr):
    """Attention of a tile of a head's rows, whose elements begin at `first`, as tile kernels have it."""
    channels = wl.arange(0, D)
    queries = wl.load(q + first + rows[:, None] * D + channels, mask=rows[:, None] < tokens, other=0.0)
    most, total = wl.full([rows.shape[0]], float("-inf"), wl.float32), wl.zeros([rows.shape[0]], wl.float32)
    acc = wl.zeros([rows.shape[0], D], wl.float32)
    for start in range(0, tokens, BN):
        keys = start + wl.arange(0, BN)
        at = first + keys[:, None] * D + channels
        s = wl.dot(queries, wl.load(k + at, mask=keys[:, None] < tokens, other=0.0).T) * scale
        s = wl.where(keys[None, :] < tokens, s, float("-inf"))
        more = wl.maximum(most, wl.max(s, 1))
        p, kept = wl.exp2(s - more[:, None]), wl.exp2(most - more)
        total = total * kept + wl.sum(p, 1)
        values = wl.load(v + at, mask=keys[:, None] < tokens, other=0.0)
        acc = wl.dot(p.to(wl.float16), values, acc * kept[:, None])
        most = more
    made = (acc / total[:, None]).to(wl.float16)
    wl.store(o + first + rows[:, None] * D + channels, made, mask=rows[:, None] < tokens)


@weft.jit
def attend(q, k, v, o, tokens, scale, BM: wl.constexpr, BN: wl.constexpr, D: wl.constexpr):
    """A tile a program, a head along the grid's second axis."""
    rows, first = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1).to(wl.int64) * tokens * D
    attend_rows(q, k, v, o, first, rows, tokens, scale, BN, D)


@weft.jit
def attend_tiles(q, k, v, o, tokens, heads, scale, BM: wl.constexpr, BN: wl.constexpr, D: wl.constexpr):
    """A loop over tiles of all heads that the kernel has itself."""
    tiles = wl.cdiv(tokens, BM)
    for tile in range(wl.program_id(0), tiles * heads, wl.num_programs(0)):
        rows, first = tile % tiles * BM + wl.arange(0, BM), (tile // tiles).to(wl.int64) * tokens * D
        attend_rows(q, k, v, o, first, rows, tokens, scale, BN, D)


@pytest.mark.parametrize("tokens, heads, blocks, BN, stages", [
    (300, 3, 2, 128, 2), (500, 2, 1, 64, 3), (200, 4, 3, 64, 2),
])  # fmt: skip
def test_a_loop_over_tiles(seed, monkeypatch, tokens, heads, blocks, BN, stages):
    """The ring of a loop that the kernel's own stands around goes on too."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    q, k, v = (x.numpy() for x in operands(seed, [(heads, tokens, 128)] * 3))
    s = np.einsum("hnd,hmd->hnm", q.astype(float), k) / 128**0.5
    p = np.exp(s - s.max(-1, keepdims=True))
    wanted = np.einsum("hnm,hmd->hnd", p / p.sum(-1, keepdims=True), v.astype(float))
    tile = {"BM": 128, "BN": BN, "D": 128, "num_warps": 8, "num_stages": stages}
    sizes = (np.int32(tokens), np.int32(heads), np.float32(128**-0.5 * 1.4426950408889634))
    for order in (0, seed + 1):
        o = np.full_like(q, np.nan)
        assert not simulate(attend_tiles, (blocks,), q, k, v, o, *sizes, seed=order, **tile).findings
        np.testing.assert_allclose(o.astype(float), wanted, atol=2e-3)
    ptx = attend_tiles.warmup(q, k, v, o, tokens, heads, 0.1, grid=(blocks,), **tile).ptx
    assert "mbarrier.inval" not in ptx  # nothing has the ring's bytes behind a tile


TILE = {"BM": 128, "BN": 128, "D": 128, "num_warps": 8, "num_stages": 2}


def test_tile_kernel(seed, monkeypatch):
    """persistent=True of a launch, whose grid stays that of its programs."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", "2")
    q, k, v = (x.numpy() for x in operands(seed, [(3, 300, 128)] * 3))
    made = []
    for persistent in (False, True):
        o = np.full_like(q, np.nan)
        arguments = (q, k, v, o, np.int32(300), np.float32(128**-0.5 * 1.4426950408889634))
        report = simulate(attend, (3, 3), *arguments, seed=seed, persistent=persistent, **TILE)
        assert not report.findings
        made.append(o.tobytes())
    assert made[0] == made[1]
    s = np.einsum("hnd,hmd->hnm", q.astype(float), k) / 128**0.5
    p = np.exp(s - s.max(-1, keepdims=True))
    wanted = np.einsum("hnm,hmd->hnd", p / p.sum(-1, keepdims=True), v.astype(float))
    np.testing.assert_allclose(o.astype(float), wanted, atol=2e-3)


@weft.jit
def matmul(a, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    m, n = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        x = wl.load(a + m[:, None] * K + k, mask=(m[:, None] < M) & (k < K), other=0.0)
        y = wl.load(b + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = wl.dot(x, y, acc)
    wl.store(c + m[:, None] * N + n, acc.to(wl.float16), mask=(m[:, None] < M) & (n < N))


@pytest.mark.parametrize("multiprocessors", [1, 3])
@pytest.mark.parametrize("M, N, K, BM, BN, stages", [
    (256, 512, 208, 128, 256, 3), (400, 256, 512, 128, 128, 4), (130, 272, 64, 128, 256, 2), (300, 304, 0, 128, 256, 3),
])  # fmt: skip
def test_products(seed, monkeypatch, M, N, K, BM, BN, stages, multiprocessors):
    """Loops that free a tile in each iteration; of any number of them, and none."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    monkeypatch.setenv("WEFT_SIMULATOR_MULTIPROCESSORS", str(multiprocessors))
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    tile = {"BM": BM, "BN": BN, "BK": 64, "num_warps": 8, "num_stages": stages, "persistent": True}
    sizes = [np.int32(each) for each in (M, N, K)]
    for order in (0, seed + 1):
        c = np.full((M, N), np.nan, np.float16)
        grid = (-(-M // BM), -(-N // BN))
        report = simulate(matmul, grid, a, b, c, *sizes, seed=order, **tile)
        assert not report.findings and report.launch.grid == (min(grid[0] * grid[1], multiprocessors), 1, 1)
        np.testing.assert_allclose(c, a.astype(float) @ b, rtol=2**-10, atol=2**-7)
    assert MARK in matmul.warmup(a, b, c, M, N, K, grid=grid, **tile).ptx


def test_refusals():
    """What cannot be persistent says so."""
    signature = "q:*fp16:16, k:*fp16:16, v:*fp16:16, o:*fp16:16, tokens:i32, scale:fp32"
    with pytest.raises(
        ValueError, match="expected a kernel to be persistent or to have clusters, but got a cluster of 2"
    ):
        attend.compile(signature, {"BM": 128, "BN": 128, "D": 128}, "sm_90a", 8, 2, cluster=2, persistent=True)
    arrays = [np.zeros((1, 128, 128), np.float16) for _ in range(4)]
    with pytest.raises(ValueError, match="expected no 'persistent' of a cooperative launch"):
        attend[(1, 1)](*arrays, 128, 1.0, persistent=True, launch_cooperative_grid=True, **TILE)
    with pytest.raises(
        TypeError, match="expected no 'persistent' of a program, whose schedules are chosen, but got True"
    ):
        weft.compile(weft.program(full), persistent=True)
    older = attend.compile(signature, {"BM": 128, "BN": 128, "D": 128}, "sm_80", 8, 2, persistent=True)
    assert MARK not in older.ptx


def launch_both(device):
    """On a device: the same bits from a block for each program and from persistent ones."""
    os.environ["WEFT_DEVICE"] = device
    q, k, v = (x.numpy() for x in operands(3, [(3, 300, 128)] * 3))
    made = []
    for persistent in (False, True):
        o = np.full_like(q, np.nan)
        attend[(3, 3)](q, k, v, o, 300, 0.1, persistent=persistent, **TILE)
        made.append(o.tobytes())
    return made[0] == made[1]


@pytest.mark.parametrize("device", ["simulator:sm_90a", "cuda:0"])
def test_on_a_device(device):
    """Through the runtime: the simulator's own device, and the driver's interface, whose GPU is the simulator."""
    build = build_folder()
    path = build and build / "test" / "Unit" / "Runtime" / "libWeftSimulatedCuda.so"
    if device == "cuda:0" and not (path and path.exists()):
        pytest.skip("no libWeftSimulatedCuda.so: the build of the extension modules under test has no tests")
    environment = os.environ | {"WEFT_SIMULATOR_MULTIPROCESSORS": "2"}
    if device == "cuda:0":
        environment |= {"WEFT_LIBCUDA": str(path), "WEFT_STANDIN_TARGET": "sm_90a"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), str(ROOT / "test" / "Python")])
    script = f"import test_persistent as own; print(own.launch_both({device!r}))"
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "True", done.stderr


def test_tuner_tries_them(tmp_path, monkeypatch):
    """A candidate that is said is measured, kept and read again."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    signature = ", ".join(f"{each}:fp16[B,H,N,128]:16" for each in "qkv")
    candidates = {"forward": ["128x64x8x2", "128x64x8x2x0x1x1"]}
    for reused in (0, 2):
        result = weft.tuning.tune(
            weft.program(full), target="sm_90a", sizes={"B": 1, "H": 1, "N": 256}, signature=signature, backward=False,
            candidates=candidates, jobs=1,
        )  # fmt: skip
        assert result.reused >= reused
        row = next(row for row in result.rows if len(row.schedule) == 7)
        assert row.status in ("chosen", "lost") and row.seconds > 0  # right, and ranked
