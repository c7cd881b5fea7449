# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Elementary functions against float64: the worst error in units of the last place, what infinities and NaN give."""

import math

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.simulator
from weft import native

BLOCK = 1024


@weft.jit
def apply(x, y, FUNCTION: wl.constexpr, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + at, FUNCTION(wl.load(x + at)))


@weft.jit
def divide(x, y, z, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(z + at, wl.load(x + at) / wl.load(y + at))


@weft.jit
def through(x, y, TYPE: wl.constexpr, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + at, wl.load(x + at).to(TYPE).to(wl.float32))


def padded(values):
    """As float32, repeated up to a whole number of blocks."""
    return np.resize(np.asarray(values, np.float32), -(-len(values) // BLOCK) * BLOCK)


def ulps(result, exact):
    """The error of each element in units of the last place of the exact value."""
    nearest = exact.astype(np.float32)
    unit = np.spacing(np.abs(nearest)).astype(np.float64)
    return np.abs(result.astype(np.float64) - exact) / unit


def each(function):
    return lambda values: np.array([function(value) for value in values])


# What is applied, its exact form, the arguments (from, to, whether spread by magnitude), the bound in ulp.
CASES = {
    "exp2": (wl.exp2, np.exp2, (-125, 127, False), 2.5),
    "exp": (wl.exp, np.exp, (-1, 1, False), 3.5),  # the error grows with |x|: x · log2 e is rounded before 2^x
    "log": (wl.log, np.log, (1e-44, 1e38, True), 2),
    "log near 1": (wl.log, np.log, (0.6, 1.5, False), 2),
    "sqrt": (wl.sqrt, np.sqrt, (1e-37, 1e38, True), 2),  # PTX: a relative error of 2^-23
    "rsqrt": (wl.rsqrt, lambda x: 1 / np.sqrt(x), (1e-37, 1e38, True), 2.5),
    "sin": (wl.sin, np.sin, (-1e6, 1e6, False), 3),
    "sin near 0": (wl.sin, np.sin, (-4, 4, False), 3),
    "cos": (wl.cos, np.cos, (-1e6, 1e6, False), 3),
    "erf": (wl.erf, each(math.erf), (-5, 5, False), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_function(name, seed):
    function, exact, (low, high, by_magnitude), bound = CASES[name]
    rng = np.random.default_rng(seed)
    if by_magnitude:
        x = np.exp(rng.uniform(math.log(low), math.log(high), 4 * BLOCK)).astype(np.float32)
    else:
        x = rng.uniform(low, high, 4 * BLOCK).astype(np.float32)
    y = np.full_like(x, np.nan)
    apply[(4,)](x, y, function, BLOCK)
    error = ulps(y, exact(x.astype(np.float64)))
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {y[worst]!r}, {error[worst]:.2f} ulp"


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (wl.exp2, [math.inf, -math.inf, math.nan, 0, 200, -200], [math.inf, 0, math.nan, 1, math.inf, 0]),
        (wl.log, [math.inf, 0, -1, math.nan, 1, -math.inf], [math.inf, -math.inf, math.nan, math.nan, 0, math.nan]),
        (wl.sqrt, [math.inf, 0, -1, math.nan], [math.inf, 0, math.nan, math.nan]),
        (wl.erf, [math.inf, -math.inf, math.nan, 0], [1, -1, math.nan, 0]),
        (wl.sin, [math.inf, math.nan, 0], [math.nan, math.nan, 0]),
    ],
    ids=["exp2", "log", "sqrt", "erf", "sin"],
)
def test_special_values(function, arguments, expected):
    x = padded(arguments)
    y = np.zeros_like(x)
    apply[(1,)](x, y, function, BLOCK)
    np.testing.assert_array_equal(y, padded(expected))


def test_division(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(BLOCK).astype(np.float32) * np.exp(rng.uniform(-30, 30, BLOCK)) for _ in range(2))
    x, y = x.astype(np.float32), y.astype(np.float32)
    z = np.zeros_like(x)
    divide[(1,)](x, y, z, BLOCK)
    assert ulps(z, x.astype(np.float64) / y).max() <= 2


FLOAT8 = {"e4m3": (wl.float8e4nv, torch.float8_e4m3fn, 448.0), "e5m2": (wl.float8e5, torch.float8_e5m2, 57344.0)}


@pytest.mark.parametrize("name", FLOAT8)
def test_float8(name, seed):
    """Every value rounds as PyTorch rounds it, except that what is too large becomes the largest finite value."""
    kind, reference, largest = FLOAT8[name]
    rng = np.random.default_rng(seed)
    ties = torch.arange(127, dtype=torch.uint8).view(reference).float().numpy()
    ties = np.concatenate([ties, (ties[1:] + ties[:-1]) / 2])
    spread = rng.standard_normal(2 * BLOCK) * np.exp2(rng.integers(-20, 20, 2 * BLOCK))
    x = padded(np.concatenate([ties[np.isfinite(ties)], spread, [math.nan, math.inf, -math.inf, -0.0]]))
    y = np.zeros_like(x)
    through[(len(x) // BLOCK,)](x, y, kind, BLOCK)
    expected = torch.from_numpy(x).clamp(-largest, largest).to(reference).float().numpy()
    np.testing.assert_array_equal(y, expected)


@weft.jit
def converted(x, y, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    wl.store(y + at, wl.load(x + at).to(y.dtype.element_ty))


def on(target, source, destination, tmp_path):
    """What ``converted``, compiled for a target, makes of arrays whose elements are of these types by name."""
    block = min(len(source[1]), 1024)
    types = f"x:*{source[0]}, y:*{destination[0]}, BLOCK={block}"
    weft.compile(converted, target=target, signature=types, out=tmp_path / "library")
    ptx = next((tmp_path / "library").glob("*.ptx")).read_text()
    grid = (len(source[1]) // block, 1, 1)
    report = weft.simulator.launch(ptx, "converted", grid, (128, 1, 1), [source[1], destination[1]])
    assert report.findings == []
    return ptx


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])  # on bits, and by cvt
@pytest.mark.parametrize("name", FLOAT8)
def test_float8_on_targets(name, target, tmp_path, seed):
    kind, reference, largest = FLOAT8[name]
    bits = np.arange(256, dtype=np.uint8)
    exact = torch.from_numpy(bits).view(reference)
    for wide in (torch.float16, torch.bfloat16, torch.float32):
        of = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}[wide]
        y = np.full(256, 0xAA, np.uint32 if of == "fp32" else np.uint16)
        ptx = on(target, (kind.name, bits), (of, y), tmp_path / of)
        # an e5m2 is the upper half of an f16
        assert (f"cvt.rn.f16x2.{name}x2" in ptx) == (name == "e4m3" and target == "sm_90a")
        found, wanted = torch.from_numpy(y).view(wide), exact.to(wide)
        assert torch.equal(found.isnan(), wanted.isnan())
        finite = ~wanted.isnan()
        assert torch.equal(found[finite].view(torch.uint8), wanted[finite].view(torch.uint8))  # -0 too
    for wide, of in ((torch.float32, "fp32"), (torch.float16, "fp16"), (torch.bfloat16, "bf16")):
        x = beside_ties(exact.float(), seed) if of == "fp32" else torch.arange(65536).to(torch.uint16).view(wide)
        y = np.full(len(x), 0xAA, np.uint8)
        bits = x.view(torch.int32 if of == "fp32" else torch.int16).numpy()
        on(target, (of, bits), (kind.name, y), tmp_path / f"{of}-narrow")
        wanted = x.float().clamp(-largest, largest).to(reference)
        finite = ~x.isnan().numpy()
        np.testing.assert_array_equal(y[finite], wanted.view(torch.uint8).numpy()[finite])  # -0 too
        assert set(y[~finite]) == {0x7F}


def beside_ties(values, seed):
    """Every f8 and every middle of two, numbers beside them by single bits and more, and any bits at all: 2**16."""
    values = values[values.isfinite()].unique()
    exact = torch.cat([values, (values[1:] + values[:-1]) / 2]).view(torch.int32)[:, None]
    steps = torch.tensor([s << i for i in range(0, 24, 2) for s in (1, -1)] + [0])
    any_bits = np.random.default_rng(seed).integers(-(2**31), 2**31, 2**16)
    special = [0x7F800000, -0x800000, 0x7FFFFFFF, -1, 0x7F800001, -(2**31)]
    found = torch.cat([(exact + steps).flatten(), torch.tensor(special), torch.from_numpy(any_bits)])
    return found[: 2**16].to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("name", FLOAT8)
def test_float8_of_float64_is_rounded_once(name):
    """Beside ties, by less than a float32 can say: by way of float32 they would be ties."""
    _, reference, _ = FLOAT8[name]
    values = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(reference).double().numpy()
    values = np.unique(values[np.isfinite(values)])
    ties = (values[1:] + values[:-1]) / 2
    x = np.concatenate([ties, ties * (1 + 2.0**-40), ties * (1 - 2.0**-40)])
    x = np.resize(x, BLOCK)
    y = torch.empty(BLOCK, dtype=reference)
    converted[(1,)](torch.from_numpy(x), y, BLOCK)
    error = np.abs(y.double().numpy() - x)
    np.testing.assert_array_equal(error, np.abs(values - x[:, None]).min(1))


# Functions of the tile dialect that the language has no name for.
UNNAMED = {
    "tanh": (each(math.tanh), (-12, 12), 4),
    "log1p": (np.log1p, (-0.9, 10), 4),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_function_of_the_dialect(name, seed):
    exact, (low, high), bound = UNNAMED[name]
    tensor, pointers = f"tensor<{BLOCK}xf32>", f"tensor<{BLOCK}x!tile.ptr<f32>>"
    pointer = "!tile.ptr<f32>"
    context = native.load("_compiler").Context()
    text = f"""
      func.func @apply(%x: {pointer}, %y: {pointer}) attributes {{tile.kernel}} {{
        %at = tile.make_range {{start = 0 : i32, end = {BLOCK} : i32}} : tensor<{BLOCK}xi32>
        %xs = tile.splat %x : {pointer} -> {pointers}
        %ys = tile.splat %y : {pointer} -> {pointers}
        %from = tile.addptr %xs, %at : {pointers}, tensor<{BLOCK}xi32>
        %to = tile.addptr %ys, %at : {pointers}, tensor<{BLOCK}xi32>
        %v = tile.load %from : {pointers}
        %w = math.{name} %v : {tensor}
        tile.store %to, %w : {pointers}
        return
      }}"""
    module = context.parse(text, "apply.mlir")
    assert module is not None, context.take_diagnostics()
    ptx, _, error = module.compile('{"target": "sm_80"}')
    assert error is None, (error, context.take_diagnostics())
    x = np.random.default_rng(seed).uniform(low, high, BLOCK).astype(np.float32)
    y = np.zeros_like(x)
    report = weft.simulator.launch(ptx, "apply", (1, 1, 1), (128, 1, 1), [x, y])
    assert report.findings == []
    error = ulps(y, exact(x.astype(np.float64)))
    worst = int(error.argmax())
    assert error[worst] <= bound, f"{name}({x[worst]!r}) = {y[worst]!r}, {error[worst]:.2f} ulp"
