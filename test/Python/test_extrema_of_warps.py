# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The largest and smallest float of a warp's lanes in one instruction, where the target has it: the same numbers as by
exchanges, also of what is no number.
"""

import warnings

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator

TARGET = "sm_100a"


@weft.jit
def extrema(x, y, N: wl.constexpr, R: wl.constexpr, GREATEST: wl.constexpr, NAN: wl.constexpr):
    row = wl.program_id(0) * R + wl.arange(0, R)
    values = wl.load(x + row[:, None] * N + wl.arange(0, N)[None, :])
    if NAN:
        found = wl.reduce(values, 1, all_greatest if GREATEST else all_least)
    else:
        found = wl.max(values, 1) if GREATEST else wl.min(values, 1)
    wl.store(y + row, found)


@weft.jit
def all_greatest(a, b):
    return wl.maximum(a, b, propagate_nan=wl.PropagateNan.ALL)


@weft.jit
def all_least(a, b):
    return wl.minimum(a, b, propagate_nan=wl.PropagateNan.ALL)


#: Rows of a block, their length, warps: a warp for each row, all warps for one, several warps for one.
SHAPES = [(4, 32, 4), (1, 512, 4), (2, 1024, 8)]


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("rows, length, warps", SHAPES)
def test_rows(rows, length, warps, dtype, greatest, nan, seed):
    name = "fp32" if dtype is np.float32 else "fp16"
    signature = f"x:*{name}:16, y:*{name}:16, N={length}, R={rows}, GREATEST={greatest}, NAN={nan}"
    kernel = extrema.compile(signature, target=TARGET, num_warps=warps)
    assert f"redux.sync.{'max' if greatest else 'min'}{'.NaN' if nan else ''}.f32" in kernel.ptx
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4 * rows, length)).astype(dtype)
    x[0, rng.integers(length)] = np.nan
    x[1] = np.nan
    x[2] = rng.choice([0.0, -0.0], length)
    y = np.full(4 * rows, 7, dtype)
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, 4, 32 * kernel.num_warps, [x, y], shared=kernel.shared_bytes, seed=seed
    )
    assert report.findings == []
    find = {(True, True): np.max, (True, False): np.nanmax, (False, True): np.min, (False, False): np.nanmin}
    with warnings.catch_warnings(action="ignore"):  # of a row without numbers
        exact = find[greatest, nan](x, axis=1)
    np.testing.assert_array_equal(y, exact)
    assert np.signbit(y[2]) == (not greatest)
