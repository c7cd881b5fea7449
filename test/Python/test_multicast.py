# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs of a cluster that share what their loops copy: results in every order of the copies, what is read, and
what there is no cluster for."""

import os

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from kernel_support import simulate
from test_specialised_loops import check, operands
from weft.programs.compiled import compiled
from weft.programs.simulated import run_plan

TILE = {"BM": 128, "BN": 128, "BK": 64}


@weft.jit
def by_axes(a_ptr, b_ptr, c_ptr, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    """Programs that are neighbours along the first axis have the same columns."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c = wl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(wl.float16))


@weft.jit
def in_groups(
    a, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, GROUP: wl.constexpr,
):  # fmt: skip
    """Pointers and a grid of one axis: neighbours have the same columns but where a group of rows ends."""
    columns = wl.cdiv(N, BN)
    first = wl.program_id(0) // (GROUP * columns) * GROUP
    size = min(wl.cdiv(M, BM) - first, GROUP)
    m = (first + wl.program_id(0) % (GROUP * columns) % size) * BM + wl.arange(0, BM)
    n = wl.program_id(0) % (GROUP * columns) // size * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        x = wl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = wl.load(b + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        acc = wl.dot(x, y.trans(), acc)
    wl.store(c + m[:, None] * N + n[None, :], acc.to(wl.float16), mask=(m[:, None] < M) & (n[None, :] < N))


@weft.jit
def lower_triangle(a_ptr, c_ptr, N, BM: wl.constexpr, BK: wl.constexpr):
    """As many steps as the program's number says."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[N, N], strides=[N, 1], block_shape=[BM, BK])
    m = wl.program_id(0) * BM
    acc = wl.zeros((BM, BM), dtype=wl.float32)
    for k in range(0, m + BM, BK):
        acc = wl.dot(a.load([m, k]), a.load([0, k]).T, acc)
    wl.store(c_ptr + (m + wl.arange(0, BM))[:, None] * BM + wl.arange(0, BM)[None, :], acc)


@pytest.fixture
def hopper(monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")


@pytest.fixture
def device(monkeypatch):
    """A GPU, where one is asked for; else the simulator of one that has clusters."""
    if not os.environ.get("WEFT_DEVICE", "").startswith("cuda"):
        monkeypatch.setenv("WEFT_DEVICE", "simulator:sm_90a")


@pytest.mark.parametrize("cluster, M, N, K, warps, stages", [
    (2, 512, 256, 320, 8, 4), (2, 500, 136, 72, 4, 3), (4, 512, 128, 256, 8, 3), (2, 256, 128, 0, 8, 3),
    (4, 512, 128, 64, 8, 4), (2, 256, 128, 200, 8, 1),
])  # fmt: skip
@pytest.mark.parametrize("order", range(3))
def test_programs_of_two_axes(seed, hopper, cluster, M, N, K, warps, stages, order):
    """Sizes that tiles do not divide, no, one and fewer steps than stages."""
    given = operands(seed, M, N, K)
    options = {"num_warps": warps, "num_stages": stages, "cluster": cluster, **TILE}
    report = simulate(by_axes, (-(-M // 128), -(-N // 128)), *given, seed=order, **options)
    assert not report.findings
    check(*given[:3])


@pytest.mark.parametrize(
    "cluster, M, N, GROUP", [(2, 512, 256, 4), (2, 640, 256, 2), (4, 512, 256, 4), (2, 384, 256, 3)]
)
@pytest.mark.parametrize("order", range(2))
def test_programs_of_one_axis(seed, hopper, cluster, M, N, GROUP, order):
    """Groups whose rows are even and odd in number, and a last one of fewer: some neighbours share, some do not."""
    given = operands(seed, M, N, 144)
    grid = (M // 128 * (N // 128),)
    options = {"GROUP": GROUP, "num_warps": 8, "num_stages": 3, **TILE}
    report = simulate(in_groups, grid, *given, seed=order, cluster=cluster, **options)
    assert not report.findings
    check(*given[:3])
    assert report.counters["multicast_copies"] > 0


def test_what_is_read(seed, hopper):
    """Half of the columns' bytes where two programs share them; each block copies every second tile."""
    given = operands(seed, 512, 256, 256)
    read = {}
    for cluster in (1, 2, 4):
        report = simulate(by_axes, (4, 2), *given, num_warps=8, num_stages=3, cluster=cluster, **TILE)
        read[cluster] = report.counters["bulk_bytes_read"]
    rows, columns = 512 * 256 * 2 * 2, 256 * 256 * 2 * 4  # of either, as often as programs read them
    assert read == {cluster: rows + columns // cluster for cluster in (1, 2, 4)}


def test_steps_that_differ(seed, hopper):
    """There is no cluster, and the result is right."""
    a = np.random.default_rng(seed).standard_normal((256, 256)).astype(np.float16)
    c = np.full((256, 64), np.nan, np.float32)
    report = simulate(lower_triangle, (4,), a, c, np.int32(256), num_warps=4, num_stages=3, cluster=2, BM=64, BK=64)
    assert (
        not report.findings
        and ".multicast::"
        not in lower_triangle.warmup(a, c, 256, grid=(4,), num_warps=4, num_stages=3, cluster=2, BM=64, BK=64).ptx
    )
    lower = a.astype(np.float64) * (np.arange(256)[None, :] // 64 <= np.arange(256)[:, None] // 64)
    assert np.allclose(c, lower @ a[:64].astype(np.float64).T, atol=1e-3, rtol=1e-3)


@weft.jit
def as_far_as_others_say(a_ptr, c_ptr, steps, N, HOW: wl.constexpr, BM: wl.constexpr, BK: wl.constexpr):
    """As many steps as memory says, which every program writes, or others."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[N, N], strides=[N, 1], block_shape=[BM, BK])
    m, count = wl.program_id(0) * BM, wl.load(steps, volatile=HOW == "volatile")
    acc = wl.zeros((BM, BM), dtype=wl.float32)
    for k in range(0, count * BK, BK):
        acc = wl.dot(a.load([m, k]), a.load([0, k]).T, acc)
    wl.store(c_ptr + (m + wl.arange(0, BM))[:, None] * BM + wl.arange(0, BM)[None, :], acc)
    if HOW == "counted":
        wl.atomic_add(steps, 1)


@pytest.mark.parametrize("how, shares", [("volatile", False), ("counted", False), ("constant", True)])
def test_steps_that_others_write(hopper, how, shares):
    """What a program reads may be another number than what its neighbour has read: there is no cluster."""
    a, c, steps = np.zeros((256, 256), np.float16), np.zeros((256, 64), np.float32), np.zeros(1, np.int32)
    options = {"num_warps": 4, "num_stages": 3, "cluster": 2, "HOW": how, "BM": 64, "BK": 64}
    made = as_far_as_others_say.warmup(a, c, steps, 256, grid=(4,), **options)
    assert (".multicast::" in made.ptx) == shares


def test_an_older_target(seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", "sm_80")
    given = operands(seed, 256, 128, 128)
    assert not simulate(by_axes, (2, 1), *given, num_warps=8, num_stages=3, cluster=2, **TILE).findings
    check(*given[:3])


def test_launches(seed, device):
    """On a device: grids that clusters divide, and others, which are refused."""
    a, b, c, *sizes = operands(seed, 384, 128, 128)
    with pytest.raises(ValueError, match="expected cluster to be 1, 2, 4 or 8 programs, but got 3"):
        by_axes[(3, 1)](a, b, c, *sizes, num_warps=8, cluster=3, **TILE)
    with pytest.raises(
        ValueError, match=r"'by_axes': expected a grid whose first extent is a multiple of 2, .* \(3, 1\)"
    ):
        by_axes[(3, 1)](a, b, c, *sizes, num_warps=8, cluster=2, **TILE)
    assert np.isnan(c).all()
    made = by_axes[(4, 1)](a, b, c, *sizes, num_warps=8, cluster=2, **TILE)
    assert made.cluster == 2
    check(a, b, c)
    c[...] = np.nan
    made[(4, 1)](a, b, c, *sizes)
    check(a, b, c)


def test_autotuned(seed, device, monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    a, b, c, *sizes = operands(seed, 256, 128, 128)
    configs = [weft.Config({"cluster": cluster, **TILE}, num_warps=8) for cluster in (1, 2)]
    tuned = weft.autotune(configs, key=["M"])(by_axes)
    tuned[(2, 1)](a, b, c, *sizes)
    check(a, b, c)


def test_libraries(seed, device, tmp_path):
    signature = "a_ptr:*fp16:16, b_ptr:*fp16:16, c_ptr:*fp16:16, M:i32:16, N:i32:16, K:i32:16, BM=128, BN=128, BK=64"
    grid = ["cdiv(M, BM)", "cdiv(N, BN)"]
    library = weft.compile(by_axes, "sm_90a", signature, tmp_path / "library", num_warps=8, cluster=2, grid=grid)
    a, b, c, *sizes = operands(seed, 512, 256, 128)
    library.launch("by_axes", None, a, b, c, *sizes)
    check(a, b, c)
    with pytest.raises(
        weft.Error, match="'by_axes': expected a grid that clusters of 2 x 1 x 1 blocks divide, but got 3 x 2 x 1"
    ):
        library.launch("by_axes", (3, 2), a, b, c, *sizes)


# ---- Programs


def both(q, k, v):
    return weft.softmax(q, k) @ v


def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


FORWARD = {"0.forward": [128, 128, 8, 2, 0, 2]}
BACKWARD = {"0.backward.query": [64, 64, 4, 2, 0, 2], "0.backward.keys": [64, 64, 4, 2, 0, 2]}


def run_both(traced, operands, gradient, schedules):
    """The bits of outputs and gradients without clusters and with them, without findings, and the copies shared."""
    found, copies = [], []
    without = {place: numbers[:4] for place, numbers in schedules.items()}
    for given in (without, schedules):
        form = compiled(traced, "sm_90a", True, given)
        forward = run_plan(form.ptx, form.info, f"{traced.name}.forward", operands)
        outputs = list(forward.outputs.values())
        saved = [*operands, *(outputs[i] for i in form.saved_outputs), gradient]
        backward = run_plan(form.ptx, form.info, f"{traced.name}.backward", saved)
        runs = (forward, backward)
        assert not any(launch.report.findings for run in runs for launch in run.launches)
        found.append([each.tobytes() for run in runs for each in run.outputs.values()])
        copies.append(sum(launch.report.counters["multicast_copies"] for run in runs for launch in run.launches))
    return found, copies


@pytest.mark.parametrize("heads, shared, N, M, D", [
    (2, 1, 256, 256, 64), (2, 2, 200, 300, 128), (1, 1, 100, 130, 64), (1, 1, 384, 128, 96), (4, 1, 130, 65, 64),
])  # fmt: skip
def test_attention(seed, heads, shared, N, M, D):
    """The same bits as without clusters, both ways; of an odd number of tiles the last program has no rows."""
    random = torch.Generator().manual_seed(seed)
    q, g = (torch.randn(1, heads, N, D, generator=random).half() for _ in range(2))
    k, v = (torch.randn(1, heads // shared, M, D, generator=random).half() for _ in range(2))
    program = weft.program(both)
    traced = program.trace(program.bind((q, k, v), {}))
    operands = [each.numpy() for each in (q, k, v)]
    found, copies = run_both(traced, operands, g.numpy(), FORWARD | BACKWARD)
    assert found[0] == found[1]
    assert copies[0] == 0 < copies[1]


@pytest.mark.parametrize("cluster", [2, 4, 8])
@pytest.mark.parametrize("rows, warps", [(64, 4), (128, 8)])
@pytest.mark.parametrize("function", [both, causal])
def test_programs_behind_the_last_rows(seed, function, rows, warps, cluster):
    """Tiles of a cluster that have no rows read none, whatever their number; a walk that rows decide has no cluster."""
    random = torch.Generator().manual_seed(seed)
    N = int(torch.randint(1, 300, (1,), generator=random))
    print("N", N)
    q, k, v, g = (torch.randn(1, 1, N, 64, generator=random).half() for _ in range(4))
    program = weft.program(function)
    traced = program.trace(program.bind((q, k, v), {}))
    schedule = [rows, 64, warps, 2, 0, cluster]
    places = dict.fromkeys((*FORWARD, *BACKWARD), schedule)
    found, copies = run_both(traced, [each.numpy() for each in (q, k, v)], g.numpy(), places)
    assert found[0] == found[1]
    assert (copies[1] > 0) == (function is both)
