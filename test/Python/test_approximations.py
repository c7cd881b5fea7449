# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loose approximations: as far from the exact result as the PTX ISA allows (9.7.3), and no farther."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import weft.simulator
from weft.simulator import SimulatorError

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry apply(.param .u64 x, .param .u64 y, .param .u64 z) {{
  .reg .b64 %rd<5>;
  .reg .b32 %r<2>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [z];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd1, %rd1, %rd4;
  add.u64 %rd2, %rd2, %rd4;
  add.u64 %rd3, %rd3, %rd4;
  ld.global.f32 %f1, [%rd1];
  ld.global.f32 %f2, [%rd2];
  {instruction} %f3, %f1{second};
  st.global.f32 [%rd3], %f3;
  ret;
}}
"""
COUNT = 1024


def ulps(number):
    return lambda x, exact: number * np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)


def relative(power):
    return lambda x, exact: 2.0**power * np.abs(exact)


def of_logarithms(x, exact):
    return 2.0**-22 * np.where((x > 0.5) & (x < 2), 1, np.abs(exact))


def of_angles(x, exact):
    return np.where(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)


# instruction: (the function, its arguments, the error that PTX allows)
FUNCTIONS = {
    "ex2.approx.f32": (np.exp2, (-126, 127), ulps(2)),
    "ex2.approx.ftz.f32": (np.exp2, (-126, 127), ulps(2)),
    "lg2.approx.f32": (np.log2, (0.01, 3), of_logarithms),
    "sin.approx.f32": (np.sin, (-300, 300), of_angles),
    "cos.approx.f32": (np.cos, (-6.2, 6.2), of_angles),
    "tanh.approx.f32": (np.tanh, (-3, 3), relative(-11)),
    "rcp.approx.f32": (lambda x: 1 / x, (-9, 9), ulps(1)),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), (0.001, 1e6), relative(-22.9)),
    "sqrt.approx.f32": (np.sqrt, (0.001, 1e6), relative(-23)),
    "div.approx.f32": (np.divide, (-9, 9), ulps(2)),
    "div.full.f32": (np.divide, (-9, 9), ulps(2)),
}


def applied(instruction, x, y, **options):
    z = np.full_like(x, np.nan)
    text = PTX.format(instruction=instruction, second=", %f2" if instruction.startswith("div") else "")
    report = weft.simulator.launch(text, "apply", 1, COUNT, [x, y, z], **options)
    assert not report.findings
    return z


@pytest.mark.parametrize("instruction", FUNCTIONS)
def test_bounds(instruction, seed):
    function, (low, high), allowed = FUNCTIONS[instruction]
    rng = np.random.default_rng(seed)
    x, y = (rng.uniform(low, high, COUNT).astype(np.float32) for _ in range(2))
    wide = [x.astype(np.float64)] + [y.astype(np.float64)] * instruction.startswith("div")
    exact = function(*wide)
    loose = applied(instruction, x, y, approximations="loose")
    off = (loose - exact) / allowed(wide[0], exact)
    assert np.abs(off).max() <= 1
    # the next number beyond is not allowed: what is missing to the bound is less than a unit
    farther = np.nextafter(loose, np.where(off > 0, np.inf, -np.inf).astype(np.float32))
    assert (np.abs(farther - exact) > allowed(wide[0], exact)).all()
    assert 0.3 < (off > 0).mean() < 0.7
    np.testing.assert_array_equal(loose, applied(instruction, x, y, approximations="loose", seed=seed + 1))
    close = applied(instruction, x, y)
    assert np.median(np.abs(close - exact)) < np.median(np.abs(loose - exact))


@pytest.mark.parametrize("instruction", FUNCTIONS)
def test_what_ptx_lists(instruction):
    """Zeros, infinities and what is no number come out the same, and 2 to the power of whole numbers."""
    x = np.resize(np.float32([0.0, -0.0, np.inf, -np.inf, np.nan]), COUNT)
    y = np.resize(np.float32([1, 0, 2, np.inf, np.inf, 3e38, np.nan]), COUNT)
    np.testing.assert_array_equal(applied(instruction, x, y, approximations="loose"), applied(instruction, x, y))


@pytest.mark.parametrize("instruction", ["rcp.approx.f32", "lg2.approx.f32", "rsqrt.approx.f32", "sqrt.approx.f32"])
def test_powers_of_two(instruction):
    """Entries of the unit's table come out exact."""
    x = np.resize(np.exp2(np.arange(-100, 101, 2, dtype=np.float64)), COUNT).astype(np.float32)
    exact = FUNCTIONS[instruction][0](x.astype(np.float64))
    np.testing.assert_array_equal(applied(instruction, x, x, approximations="loose"), exact.astype(np.float32))


def test_division_by_powers_of_two():
    y = np.resize(np.exp2(np.arange(-100, 101, dtype=np.float64)), COUNT).astype(np.float32)
    x = np.full_like(y, 3.7)
    np.testing.assert_array_equal(applied("div.full.f32", x, y, approximations="loose"), x / y)


def test_whole_powers():
    x = np.resize(np.arange(-149, 128, dtype=np.float32), COUNT)
    exact = np.exp2(x.astype(np.float64))
    np.testing.assert_array_equal(applied("ex2.approx.f32", x, x, approximations="loose"), exact)


def test_scaling_by_powers_of_two(seed):
    """Of what scales with them the bits do not change, as the unit looks at mantissas."""
    x = np.random.default_rng(seed).uniform(1, 2, COUNT).astype(np.float32)
    for instruction, power, scale in (("rcp.approx.f32", 8.0, 1 / 8), ("rsqrt.approx.f32", 16.0, 1 / 4)):
        once, scaled = (applied(instruction, each, x, approximations="loose") for each in (x, x * np.float32(power)))
        np.testing.assert_array_equal(scaled, once * np.float32(scale))


def test_names():
    x = np.ones(COUNT, np.float32)
    with pytest.raises(SimulatorError, match="expected approximations 'close' or 'loose', but got 'wild'"):
        applied("ex2.approx.f32", x, x, approximations="wild")
    with pytest.raises(SimulatorError, match="expected 'approximations' to be text"):
        applied("ex2.approx.f32", x, x, approximations=2)


SCRIPT = """
import numpy as np, weft, weft.language as wl
from kernels import power
x, y = np.full(32, 0.3, np.float32), np.zeros(32, np.float32)
power[(1,)](x, y)
print(repr(float(y[0])))
"""
KERNELS = """
import weft, weft.language as wl

@weft.jit
def power(x, y):
    at = wl.arange(0, 32)
    wl.store(y + at, wl.exp2(wl.load(x + at)))
"""


def test_a_device_asks_the_environment(tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(KERNELS)

    def said(chosen):
        monkeypatch.setenv("WEFT_SIMULATOR_APPROXIMATIONS", chosen)
        monkeypatch.setenv("WEFT_DEVICE", "simulator:sm_80")
        return subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=tmp_path)

    exact = 2.0 ** float(np.float32(0.3))
    unit = float(np.spacing(np.float32(exact)))
    assert abs(float(said("close").stdout) - exact) <= unit
    assert unit < abs(float(said("loose").stdout) - exact) <= 2 * unit
    refused = said("wild")
    assert (
        refused.returncode
        and "WEFT_SIMULATOR_APPROXIMATIONS: expected approximations 'close' or 'loose'" in refused.stderr
    )


def test_functions_of_the_language():
    """They keep the errors that their tests allow, but for those that say so."""
    files = [pathlib.Path(__file__).with_name(f"test_{name}.py") for name in ("math_accuracy", "special_singles")]
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {**os.environ, "WEFT_SIMULATOR_APPROXIMATIONS": "loose"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-4000:]
