# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Results that leave by bulk copies of boxes: right against float64, no finding whatever is early or late, nothing
written outside of a tensor, and what orders them needed.
"""

import math
import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.simulator
from test_boxes import boxed, emitted
from test_warpgroups import TARGET, bits, needs_ptxas
from weft.compiler.lower import native_context
from weft.compiler.ptxas import assemble
from weft.programs.simulated import run_plan

STORE = "cp.async.bulk.tensor.2d.global"
ADD = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add"


@weft.jit
def by_descriptors(
    a, b, c, M, N, K, lda, ldb, ldc,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, ADDS: wl.constexpr,
):  # fmt: skip
    """c = a @ b, or c += a @ b."""
    row, column = wl.program_id(0) * BM, wl.program_id(1) * BN
    left = wl.make_tensor_descriptor(a, [M, K], [lda, 1], [BM, BK])
    right = wl.make_tensor_descriptor(b, [K, N], [ldb, 1], [BK, BN])
    out = wl.make_tensor_descriptor(c, [M, N], [ldc, 1], [BM, BN])
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(left.load([row, k]), right.load([k, column]), acc)
    if ADDS:
        out.atomic_add([row, column], acc.to(c.dtype.element_ty))
    else:
        out.store([row, column], acc.to(c.dtype.element_ty))


@weft.jit
def by_pointers(
    a, b, c, M, N, K, lda, ldb, ldc,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, TURNED: wl.constexpr,
):  # fmt: skip
    """c = a @ b, of which rows or columns lie side by side."""
    m, n = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BN + wl.arange(0, BN)
    k = wl.arange(0, BK)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        inside = start + k < K
        left = wl.load(a + m[:, None] * lda + (start + k)[None, :], (m[:, None] < M) & inside[None, :], 0.0)
        right = wl.load(b + (start + k)[:, None] * ldb + n[None, :], inside[:, None] & (n[None, :] < N), 0.0)
        acc = wl.dot(left, right, acc)
    to = c + m[:, None] + n[None, :] * ldc if TURNED else c + m[:, None] * ldc + n[None, :]
    wl.store(to, acc.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


@weft.jit
def persistent(a, b, c, M, N, K, lda, ldb, ldc, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    """Each program computes several tiles of a @ b, one after the other."""
    left = wl.make_tensor_descriptor(a, [M, K], [lda, 1], [BM, BK])
    right = wl.make_tensor_descriptor(b, [K, N], [ldb, 1], [BK, BN])
    out = wl.make_tensor_descriptor(c, [M, N], [ldc, 1], [BM, BN])
    columns = wl.cdiv(N, BN)
    for tile in range(wl.program_id(0), wl.cdiv(M, BM) * columns, wl.num_programs(0)):
        row, column = tile // columns * BM, tile % columns * BN
        acc = wl.zeros((BM, BN), dtype=wl.float32)
        for k in range(0, K, BK):
            acc = wl.dot(left.load([row, k]), right.load([k, column]), acc)
        out.store([row, column], acc.to(c.dtype.element_ty))


TILE = (64, 128, 32)
TYPES = {"bf16": np.uint16, "fp16": np.float16, "fp32": np.float32}


def compiled_matmul(kernel, out="bf16", tile=TILE, warps=4, stages=3, **constants):
    BM, BN, BK = tile
    text = (
        f"a:*bf16:16, b:*bf16:16, c:*{out}:16, M:i32, N:i32, K:i32, lda:i32:16, ldb:i32:16, ldc:i32:16, "
        f"BM={BM}, BN={BN}, BK={BK}"
    )
    return boxed(kernel, ", ".join([text, *(f"{name}={value}" for name, value in constants.items())]), warps, stages)


def value(array, dtype):
    """What an array of results stands for."""
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def multiply(kernel, sizes, tile, rng, seed, out="bf16", turned=False, before=None, grid=None, ptx=None):
    """Launch on operands whose rows end in NaN; the report, c with what lies behind its rows, and float64's product."""
    M, N, K = sizes
    operands = []
    for rows, columns in ((M, K), (K, N)):
        whole = np.full((rows, -(-columns // 16) * 16 + 16), np.nan)
        whole[:, :columns] = rng.standard_normal((rows, columns))
        operands.append(bits(whole, "bf16"))
    (a, a64), (b, b64) = operands
    rows, columns = (N, M) if turned else (M, N)
    width = -(-columns // 16) * 16 + 16
    poison = np.array([0x7FC0], np.uint16) if out == "bf16" else np.array([np.nan], TYPES[out])
    c = np.repeat(poison, rows * width).reshape(rows, width)
    if before is not None:
        c[:, :columns] = before
    scalars = [np.int32(each) for each in (M, N, K, a.shape[1], b.shape[1], width)]
    report = weft.simulator.launch(
        ptx or kernel.ptx, kernel.name, grid or (math.ceil(M / tile[0]), math.ceil(N / tile[1])),
        (32 * kernel.num_warps,), [a, b, c, *scalars], shared=kernel.shared_bytes, seed=seed,
    )  # fmt: skip
    result = value(c, out)
    assert np.isnan(result[:, columns:]).all() or report.findings
    result = result[:, :columns]
    return report, result.T if turned else result, a64[:, :K] @ b64[:, :N]


def seeded():
    start = np.random.SeedSequence().entropy
    print("seed", start)
    return np.random.default_rng(start)


def close(result, wanted, out, depth):
    """Within the rounding of sums and of the result's type."""
    unit = {"bf16": 2**-8, "fp16": 2**-11, "fp32": 2**-24}[out]
    np.testing.assert_allclose(result, wanted, atol=4e-6 * depth, rtol=1.01 * unit)


@pytest.mark.parametrize("out", ["bf16", "fp16"])
@pytest.mark.parametrize("kernel, constants", [
    (by_descriptors, {"ADDS": False}), (by_pointers, {"TURNED": False}), (by_pointers, {"TURNED": True}),
])  # fmt: skip
def test_ragged_results(kernel, constants, out):
    """Rows and columns that end inside of a tile, a box and a piece of 16 bytes: nothing behind them is written."""
    made = compiled_matmul(kernel, out, **constants)
    assert STORE in made.ptx and "st.global" not in made.ptx
    assert "stmatrix" in made.ptx
    rng = seeded()
    for seed, sizes in enumerate([(64, 128, 32), (83, 201, 70), (1, 1, 5), (130, 7, 33)]):
        report, result, wanted = multiply(made, sizes, TILE, rng, seed, out=out, turned=constants.get("TURNED", False))
        assert report.findings == []
        close(result, wanted, out, sizes[2])


@pytest.mark.parametrize(
    "tile, warps", [((128, 256, 64), 8), ((128, 64, 32), 4), ((64, 32, 32), 4), ((64, 256, 32), 8)]
)
def test_tiles(tile, warps):
    """Lines of 64 and 128 bytes, panels of them, and warpgroups along both axes."""
    made = compiled_matmul(by_descriptors, tile=tile, warps=warps, ADDS=False)
    assert STORE in made.ptx and "st.global" not in made.ptx
    sizes = (tile[0] + 9, tile[1] + 3, 2 * tile[2] + 1)
    report, result, wanted = multiply(made, sizes, tile, seeded(), 0)
    assert report.findings == []
    close(result, wanted, "bf16", sizes[2])


def test_schedules():
    """Whatever is early or late, a tile's store among the copies of the next one's operands."""
    made = compiled_matmul(persistent)
    assert STORE in made.ptx
    rng = seeded()
    for seed in range(16):
        report, result, wanted = multiply(made, (150, 300, 90), TILE, rng, seed, grid=(2,))
        assert report.findings == []
        close(result, wanted, "bf16", 90)


@pytest.mark.parametrize("out", ["fp32", "fp16"])
def test_added(out):
    """Boxes are added to what is there, by programs of two launches."""
    made = compiled_matmul(by_descriptors, out, ADDS=True)
    assert ADD in made.ptx and not re.search(r"\b(red|atom)\.", made.ptx)
    rng = seeded()
    sizes = (83, 201, 70)
    before = rng.standard_normal(sizes[:2]).astype(TYPES[out])
    report, result, wanted = multiply(made, sizes, TILE, rng, 1, out=out, before=before)
    assert report.findings == []
    unit = {"fp16": 2**-9, "fp32": 2**-23}[out]
    np.testing.assert_allclose(result, before + wanted, atol=4e-6 * sizes[2] + 32 * unit, rtol=2 * unit)


def test_nothing_is_there():
    """Sizes of 0 and less: no element of c is touched, where c itself is a whole tile."""
    made = compiled_matmul(by_descriptors, ADDS=False)
    a, b = np.zeros((64, 32), np.uint16), np.zeros((32, 128), np.uint16)
    for M, N in ((0, 128), (64, 0), (-5, 128), (64, -1)):
        c = np.full((64, 128), 0x7FC0, np.uint16)
        scalars = [np.int32(each) for each in (M, N, 32, 32, 128, 128)]
        report = weft.simulator.launch(
            made.ptx, made.name, (1, 1), (32 * made.num_warps,), [a, b, c, *scalars], shared=made.shared_bytes
        )
        assert report.findings == []
        assert (c == 0x7FC0).all()


@weft.jit
def in_place(x, y, N, FLAG: wl.constexpr):
    """Tiles of y from those of x, by way of a product."""
    i, j = wl.program_id(0) * 64 + wl.arange(0, 64), wl.arange(0, 64)
    at = i[:, None] * 64 + j[None, :]
    tile = wl.load(x + at, i[:, None] < N, 0.0)
    unit = (j[:, None] == j[None, :]).to(wl.bfloat16)
    wl.store(y + at, wl.dot(tile, unit).to(wl.bfloat16), i[:, None] < N)
    if FLAG:
        wl.debug_barrier()


def test_what_others_look_at_stays():
    """One argument for both is one memory; a barrier of the program's own says that somebody looks."""
    text = "x:*bf16:16, y:*bf16:16, N:i32, FLAG={}"
    assert STORE in boxed(in_place, text.format(False), 4, 2).ptx
    assert STORE not in boxed(in_place, text.format(True), 4, 2).ptx
    made = boxed(in_place, text.format(False), 4, 2)
    x, wanted = bits(seeded().standard_normal((100, 64)), "bf16")
    report = weft.simulator.launch(
        made.ptx, made.name, (2,), (128,), [x, x, np.int32(100)], shared=made.shared_bytes, seed=3
    )
    assert report.findings == []
    np.testing.assert_array_equal(value(x, "bf16"), wanted)


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@pytest.mark.parametrize("D", [64, 128])
def test_attention(D):
    """A program's output: ragged rows, heads and sequences are axes of its map."""
    heads, tokens = 2, 75
    text = ", ".join(f"{name}:fp16[B,{heads},N,{D}]:16" for name in "qkv")
    ptx, info = emitted(native_context().context.parse(attention.declare(text).text))
    assert "cp.async.bulk.tensor.4d.global" in ptx
    assert "cp.async.bulk.tensor.5d" not in ptx, "heads that are counted by sections are one axis"
    start = torch.random.seed() % 2**31
    print("seed", start)
    torch.manual_seed(start)
    q, k, v = (torch.randn(2, heads, tokens, D).half() for _ in range(3))
    later = torch.ones(tokens, tokens).triu(1).bool()
    scores = q.double() @ k.double().mT / math.sqrt(D)
    right = scores.masked_fill(later, -math.inf).softmax(-1) @ v.double()
    for seed in range(8):
        run = run_plan(ptx, info, "attention", [each.numpy() for each in (q, k, v)], seed=seed)
        assert run.findings == []
        error = float((torch.from_numpy(run.outputs["out"]).double() - right).abs().max())
        assert error <= 4e-3 * float(right.abs().max())


def without(ptx, text):
    """PTX without an instruction, each of its places in turn."""
    lines = ptx.splitlines()
    places = [number for number, line in enumerate(lines) if text in line]
    assert places, text
    for number in places:
        yield "\n".join(lines[:number] + lines[number + 1 :])


@pytest.mark.parametrize("text", ["bulk.commit_group", "bulk.wait_group", "fence.proxy.async", "bar.sync"])
@pytest.mark.parametrize("kernel", [by_pointers, persistent])
def test_what_is_dropped_is_found(kernel, text):
    """Each fence, group, wait and barrier has to be there: without it there is a finding. Of two warpgroups, as
    one's wgmma are over for all its warps when they are for one."""
    constants = {"TURNED": False} if kernel is by_pointers else {}
    made = compiled_matmul(kernel, warps=8, stages=2, **constants)
    rng = seeded()
    grid = (1,) if kernel is persistent else None
    for ptx in without(made.ptx, text):
        findings = [
            finding
            for seed in range(4)
            for finding in multiply(made, (100, 150, 70), TILE, rng, seed, grid=grid, ptx=ptx)[0].findings
        ]
        assert findings, ptx


@needs_ptxas
def test_the_epilogue_of_a_matmul():
    """128 × 256 sums of 8 warps leave by 16 stores of matrices and 4 boxes: no thread has an address or a mask."""
    made = compiled_matmul(by_descriptors, tile=(128, 256, 64), warps=8, ADDS=False)
    assert made.ptx.count("stmatrix.sync.aligned.m8n8.x4") == 16 and made.ptx.count(STORE) == 4
    found = assemble(made.ptx, TARGET)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)


def test_a_library_for_any_tensor(tmp_path):
    """What c and its rows are multiples of is asked when a library's kernel is launched."""
    sizes = "M:i32, N:i32, K:i32, lda:i32:16, ldb:i32:16, ldc:i32, BM=64, BN=128, BK=32, ADDS=False"
    text = f"a:*bf16:16, b:*bf16:16, c:*bf16, {sizes}"
    library = weft.compile(by_descriptors, TARGET, text, tmp_path / "lib")
    first, second = library.kernels["by_descriptors"].variants
    asked, otherwise = ({guard["argument"] for guard in each["guards"]} for each in (first, second))
    assert {"c", "ldc"} <= asked and not {"c", "ldc"} & otherwise
