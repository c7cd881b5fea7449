# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The work is the pattern's: kernels execute the products of the blocks that hold a pair, and no others; counted."""

import json

import numpy as np
import pytest
import torch
from weft import native
from weft.testing import masks, spans
from weft.testing.plans import run_plan

ROWS, COLUMNS, WARPS = 64, 32, 4
HEADS, D = 2, 64

#: patterns by name: as attributes, and as the dense masks they mean
PATTERNS = {
    "full": ("#attn.full", masks.full),
    "causal": ("#attn.causal", masks.causal),
    "window": ("#attn.window<left = 70, right = 0>", lambda n, m: masks.window(n, m, 70, 0)),
    "window-both": ("#attn.window<left = 33, right = 20>", lambda n, m: masks.window(n, m, 33, 20)),
    "long-block-window": ("#attn.block_window<[300]>", lambda n, m: masks.block_window(n, m, 300)),
    "prefix": ("#attn.prefix<50>", lambda n, m: masks.prefix(n, m, 50)),
    "prefix-lm": (
        "#attn.or<#attn.prefix<50>, #attn.causal>",
        lambda n, m: masks.prefix(n, m, 50) | masks.causal(n, m),
    ),
    "longformer": (
        "#attn.or<#attn.window<left = 40, right = 40>, #attn.global_tokens<5>>",
        lambda n, m: masks.window(n, m, 40, 40) | masks.global_tokens(n, m, 5),
    ),
    "dilated": ("#attn.dilated<step = 3, width = 20>", lambda n, m: masks.dilated(n, m, 3, 20)),
    "wide-stride": (
        "#attn.and<#attn.strided<100>, #attn.causal>",
        lambda n, m: masks.strided(n, m, 100) & masks.causal(n, m),
    ),
    "neighbourhood": (
        "#attn.neighbourhood<shape = [330], kernel = [31], dilation = [2]>",
        lambda n, m: masks.neighbourhood(n, m, (330,), (31,), (2,)),
    ),
    "neighbourhood-grid": (
        "#attn.neighbourhood<shape = [15, 22], kernel = [5, 5], dilation = [1, 1]>",
        lambda n, m: masks.neighbourhood(n, m, (15, 22), (5, 5)),
    ),
    "not": (
        "#attn.and<#attn.causal, #attn.not<#attn.window<left = 100, right = 0>>>",
        lambda n, m: masks.causal(n, m) & ~masks.window(n, m, 100, 0),
    ),
}


TENSOR, ROW = f"!attn.tensor<[B, H, N, {D}], f16>", "!attn.tensor<[B, H, N], f32>"
SCHEDULE = f"#attn.schedule<rows = {ROWS}, columns = {COLUMNS}, warps = {WARPS}, stages = 2>"
#: patterns whose masks are bounds of each row, and those whose masks are such bounds and more
OF_BOUNDS = {"causal", "window", "window-both"}
PARTLY_OF_BOUNDS = {"wide-stride", "not"}


def forward(pattern):
    """Attention of one pattern, with a fixed schedule, as attn IR."""
    return f"""
func.func @f(%q: {TENSOR} {{attn.name = "q"}}, %k: {TENSOR} {{attn.name = "k"}}, %v: {TENSOR} {{attn.name = "v"}})
    -> ({TENSOR} {{attn.name = "out"}}, {ROW} {{attn.name = "lse"}}) attributes {{attn.program}} {{
  %out, %lse = attn.attend %q keys(%k : {TENSOR}) values(%v : {TENSOR})
      {{patterns = [{pattern}], scale = 0.125 : f32, schedule = {SCHEDULE}}} : {TENSOR} -> {TENSOR}, {ROW}
  func.return %out, %lse : {TENSOR}, {ROW}
}}
"""


def backward(pattern):
    """Its gradients, given LSE, delta and the gradient of the output."""
    return f"""
func.func @f(%q: {TENSOR} {{attn.name = "q"}}, %k: {TENSOR} {{attn.name = "k"}}, %v: {TENSOR} {{attn.name = "v"}},
             %lse: {ROW} {{attn.name = "lse"}}, %delta: {ROW} {{attn.name = "delta"}},
             %d_out: {TENSOR} {{attn.name = "d_out"}})
    -> ({TENSOR} {{attn.name = "d_q"}}, {TENSOR} {{attn.name = "d_k"}}, {TENSOR} {{attn.name = "d_v"}})
    attributes {{attn.program}} {{
  %dq, %dk, %dv = attn.attend_backward %q keys(%k : {TENSOR}) values(%v : {TENSOR}) lse(%lse : {ROW})
      delta(%delta : {ROW}) gradient(%d_out : {TENSOR})
      {{patterns = [{pattern}], scale = 0.125 : f32, scheduleQuery = {SCHEDULE}, scheduleKeys = {SCHEDULE}}}
      : {TENSOR} -> {TENSOR}, {TENSOR}, {TENSOR}
  func.return %dq, %dk, %dv : {TENSOR}, {TENSOR}, {TENSOR}
}}
"""


def compiled(text, **options):
    """(PTX, info) of a module in MLIR text."""
    context = native.load("_compiler").Context()
    ptx, info, error = context.parse(text).compile(json.dumps({"target": "sm_80", **options}))
    assert error is None, "\n".join([error, *(str(each) for each in context.take_diagnostics())])
    return ptx, json.loads(info)


def blocks(mask, rows, columns):
    """Blocks of a dense mask that hold a pair."""
    n, m = mask.shape
    padded = torch.zeros(-(-n // rows) * rows, -(-m // columns) * columns, dtype=torch.bool)
    padded[:n, :m] = mask
    return int(padded.unflatten(1, (-1, columns)).unflatten(0, (-1, rows)).any(-1).any(1).sum())


def of_warps(mask, further):
    """Of blocks that hold a pair, the warps' parts that hold one of ``further``, a mask that goes on behind the end:
    rows there have bounds too."""
    n, m = (-(-size // step) * step for size, step in zip(mask.shape, (ROWS, COLUMNS), strict=True))
    padded = torch.zeros(n, m, dtype=torch.bool)
    padded[: mask.shape[0], : mask.shape[1]] = mask
    held = padded.unflatten(1, (-1, COLUMNS)).unflatten(0, (-1, ROWS)).any(-1).any(1)
    whole = held.repeat_interleave(ROWS, 0).repeat_interleave(COLUMNS, 1)
    return blocks(further[:n, :m] & whole, ROWS // WARPS, COLUMNS)


LENGTH = 330


def randoms(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float16) for shape in shapes]


@pytest.mark.parametrize("name", PATTERNS)
def test_forward_products_are_those_of_blocks_that_hold_a_pair(name, seed):
    attribute, dense = PATTERNS[name]
    run = run_plan(*compiled(forward(attribute)), "f", randoms(seed, *[(1, HEADS, LENGTH, D)] * 3))
    assert run.findings == []
    found = blocks(dense(LENGTH, LENGTH), ROWS, COLUMNS)
    assert run.total("mma_macs") == HEADS * found * ROWS * COLUMNS * 2 * D, f"{found} blocks hold a pair"


@pytest.mark.parametrize("name", PATTERNS)
def test_backward_products_are_those_of_blocks_that_hold_a_pair(name, seed):
    """dQ walks rows of blocks with three products each, dK and dV columns with four. A warp passes over blocks of which
    its own rows have no pair, as far as bounds of rows say so."""
    attribute, dense = PATTERNS[name]
    q, k, v, d_out = randoms(seed, *[(1, HEADS, LENGTH, D)] * 4)
    lse, delta = np.full((2, 1, HEADS, LENGTH), 5, np.float32)
    run = run_plan(*compiled(backward(attribute)), "f", [q, k, v, lse, delta, d_out])
    assert run.findings == []
    mask, beyond = dense(LENGTH, LENGTH), dense(LENGTH + ROWS, LENGTH + ROWS)
    most = least = 0
    for products, pairs, further in ((3, mask, beyond), (4, mask.mT, beyond.mT)):
        most += products * blocks(pairs, ROWS, COLUMNS) * ROWS
        least += products * of_warps(pairs, further) * (ROWS // WARPS)
    found = run.total("mma_macs") // (HEADS * COLUMNS * D)
    assert least <= found <= most
    if name in OF_BOUNDS:
        assert found == least
    elif name not in PARTLY_OF_BOUNDS:
        assert found == most


@pytest.mark.parametrize(("length", "windows"), [(288, 3), (300, 4)])
def test_windows_are_tiles_of_their_own(length, windows, seed):
    """Windows of 96 tokens are two tiles of rows by three of keys, wherever they lie; a ragged one is at most that."""
    tiles = HEADS * windows * 2 * 3 * ROWS * COLUMNS * D
    pattern = "#attn.block_window<[96]>"
    run = run_plan(*compiled(forward(pattern)), "f", randoms(seed, *[(1, HEADS, length, D)] * 3))
    assert run.findings == []
    assert run.total("mma_macs") == 2 * tiles if length % 96 == 0 else run.total("mma_macs") <= 2 * tiles
    lse, delta = np.full((2, 1, HEADS, length), 5, np.float32)
    q, k, v, d_out = randoms(seed, *[(1, HEADS, length, D)] * 4)
    run = run_plan(*compiled(backward(pattern)), "f", [q, k, v, lse, delta, d_out])
    assert run.findings == []
    assert run.total("mma_macs") <= 7 * tiles


TABLE = "!attn.tensor<[B, H, N], i32>"
TABLES = "".join(f', %{name}: {TABLE} {{attn.name = "{name}"}}' for name in spans.Span._fields)
OWN_AND_SPAN = """over(%lower, %upper, %first, %past : {0}, {0}, {0}, {0})
      {{patterns = [#attn.window<left = 0, right = 0>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>],
       scale = 0.125 : f32, {1}}}"""


def own_and_units(gradients):
    """Attention to itself and to a span of units, as many as tokens; its output and LSE, or its gradients."""
    given = "".join(f', %{x}: {TENSOR} {{attn.name = "{x}"}}' for x in ("k", "v", "units", "values"))
    keys = f"keys(%k, %units : {TENSOR}, {TENSOR}) values(%v, %values : {TENSOR}, {TENSOR})"
    if not gradients:
        results, names = (TENSOR, ROW), ("out", "lse")
        op = f"attn.attend %q {keys} {OWN_AND_SPAN.format(TABLE, f'schedule = {SCHEDULE}')}"
        rows = ""
    else:
        results, names = (TENSOR,) * 5, ("d_q", "d_k", "d_v", "d_units", "d_values")
        schedules = f"scheduleQuery = {SCHEDULE}, scheduleKeys = {SCHEDULE}"
        op = f"""attn.attend_backward %q {keys} lse(%lse : {ROW}) delta(%delta : {ROW}) gradient(%d_out : {TENSOR})
      {OWN_AND_SPAN.format(TABLE, schedules)}"""
        rows = f', %lse: {ROW} {{attn.name = "lse"}}, %delta: {ROW} {{attn.name = "delta"}}'
        rows += f', %d_out: {TENSOR} {{attn.name = "d_out"}}'
    types, values = ", ".join(results), ", ".join(f"%{name}" for name in names)
    named = ", ".join(f'{type} {{attn.name = "{name}"}}' for type, name in zip(results, names, strict=True))
    return f"""
func.func @f(%q: {TENSOR} {{attn.name = "q"}}{given}{TABLES}{rows}) -> ({named}) attributes {{attn.program}} {{
  {values} = {op} : {TENSOR} -> {types}
  func.return {values} : {types}
}}
"""


@pytest.mark.parametrize("merged", [0.0, 0.5, 0.9])
def test_spans_products_are_those_of_blocks_that_some_row_sees(merged, seed):
    """And of the tokens' own pairs, 16 times a row's channels: once in the forward, twice in each of two gradients."""
    generator = torch.Generator().manual_seed(seed)
    joins = torch.rand(1, HEADS, LENGTH, generator=generator) < merged
    span = spans.units_span(joins)
    tables = [x.numpy() for x in span]
    q, k, v, units, values, d_out = randoms(seed, *[(1, HEADS, LENGTH, D)] * 6)
    run = run_plan(*compiled(own_and_units(False)), "f", [q, k, v, units, values, *tables])
    assert run.findings == []
    seen = [blocks(span.mask[0, h], ROWS, COLUMNS) for h in range(HEADS)]
    own = HEADS * -(-LENGTH // ROWS) * ROWS * 16 * D
    assert run.total("mma_macs") == sum(seen) * ROWS * COLUMNS * 2 * D + own, f"{seen} blocks hold a pair"
    lse, delta = np.full((2, 1, HEADS, LENGTH), 5, np.float32)
    run = run_plan(*compiled(own_and_units(True)), "f", [q, k, v, units, values, *tables, lse, delta, d_out])
    assert run.findings == [] and len(run.launches) == 2
    across = [blocks(span.mask[0, h].mT, ROWS, COLUMNS) for h in range(HEADS)]
    products = 3 * sum(seen) + 4 * sum(across)
    assert run.total("mma_macs") == products * ROWS * COLUMNS * D + 4 * own
