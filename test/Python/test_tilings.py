# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that are no attention's run by any tiling that they say they can take, with the results of the usual one; the
tuner tries them."""

import random

import numpy as np
import pytest
import torch
import weft
from weft.programs.compiled import compiled
from weft.programs.simulated import run_plan
from weft.targets import default_target
from weft.testing.sas import expansion_shapes
from weft.tuning import space


@weft.program
def norm(x, gain):
    return weft.rms_norm(x, gain)


@weft.program
def long_convolution(x, taps):
    return weft.toeplitz(taps) @ x


@weft.program
def semantic(q, k, v, decisions):
    return weft.attention.sfa(q, k, v, decisions=decisions)


def drawn(name, generator):
    def randn(*shape):
        return torch.randn(shape, generator=generator).half()

    if name == "rows":
        return norm, [randn(2, 2, 150, 40), torch.rand(2, 40, generator=generator) + 0.5]
    if name == "long convolution":
        return long_convolution, [randn(2, 1, 200, 24), randn(200, 24) / 14]
    decisions = torch.rand(1, 2, 700, generator=generator) < 0.4
    return semantic, [*(randn(1, 2, 700, 32) for _ in range(3)), decisions]


def sas_case(generator):
    def randn(*shape):
        return torch.randn(shape, generator=generator).half()

    from weft.attention.sas import _sas

    weights = []
    for wide in (24, 24, None):
        shapes = expansion_shapes(2, 4, 16, wide, 3)
        weights.append({key: randn(*shape) / max(1, shape[-1]) ** 0.5 for key, shape in shapes.items()})
    return _sas, [*(randn(1, 2, 70, 16) for _ in range(3)), *weights], {"causal": True, "scale": None}


CASES = ["rows", "long convolution", "units", "expansions"]


def traced_case(name, seed):
    generator = torch.Generator().manual_seed(seed)
    if name == "expansions":
        program, arguments, static = sas_case(generator)
    else:
        (program, arguments), static = drawn(name, generator), {}
    flat = [x for each in arguments for x in (each.values() if isinstance(each, dict) else [each])]
    return program.trace(program.bind(arguments, static)), [x.numpy() for x in flat]


def results(traced, inputs, schedules, d_out):
    """All outputs of the forward and the backward."""
    form = compiled(traced, default_target(), True, schedules)
    forward = list(run_plan(form.ptx, form.info, f"{traced.name}.forward", inputs).outputs.values())
    saved = [*inputs, *(forward[number] for number in form.saved_outputs)]
    given = [*saved, d_out(forward[0])]
    backward = run_plan(form.ptx, form.info, f"{traced.name}.backward", given).outputs.values()
    return [np.asarray(x, np.float64) for x in (forward[0], *backward)]


def alike(found, expected):
    for x, y in zip(found, expected, strict=True):
        assert np.isfinite(x).all()
        assert np.linalg.norm(x - y) <= 2e-3 * np.linalg.norm(y)


def check(name, seed, every):
    traced, inputs = traced_case(name, seed)
    random.seed(seed)

    def d_out(x):
        return np.random.default_rng(seed).standard_normal(x.shape).astype(x.dtype)

    usual = results(traced, inputs, None, d_out)
    tiled = compiled(traced, default_target(), True).info["tilings"]
    assert tiled
    choices = [
        {each["place"]: [rows, warps]}
        for each in tiled
        for rows in each["rows"]
        for warps in each["warps"]
        if [rows, warps] != each["tiling"]
    ]
    if not every:
        one_of_each = {each["place"]: [random.choice(each["rows"]), random.choice(each["warps"])] for each in tiled}
        choices = [one_of_each, random.choice(choices)]
    for choice in choices:
        print(choice)
        alike(results(traced, inputs, choice, d_out), usual)


@pytest.mark.parametrize("name", CASES)
def test_a_tiling_changes_no_result(name, seed):
    check(name, seed, every=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_no_tiling_changes_a_result(name, seed):
    check(name, seed, every=True)


def test_the_kernels_that_there_are(seed):
    kinds = {}
    for name in CASES:
        info = compiled(traced_case(name, seed)[0], default_target(), True).info
        kinds[name] = {each.place.split(".")[1] for each in space.kernels(info) if isinstance(each, space.Tiled)}
    assert kinds["rows"] == {"rows"}
    assert {"long_convolution", "long_taps_grad"} <= kinds["long convolution"]
    assert "merge_units" in kinds["units"]
    assert {"expand", "expand_backward"} <= kinds["expansions"]


def test_fewer_rows_are_more_programs(seed):
    traced, inputs = traced_case("rows", seed)
    grids = {}
    for rows in (16, 64):
        form = compiled(traced, default_target(), True, {"forward.rows.0": [rows, 4]})
        run = run_plan(form.ptx, form.info, f"{traced.name}.forward", inputs)
        grids[rows] = run.launches[0].grid[0]
    assert grids == {16: 10, 64: 3}


def test_the_tuner_tries_tilings(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x, gain = torch.randn(2, 2, 512, 64).half(), torch.rand(2, 64) + 0.5
    result = weft.tuning.tune(norm, x, gain, candidates={"forward.rows.0": ["16x1", "32x2", "24x4"]})
    rows = {row.schedule: row for row in result.rows if row.place == "forward.rows.0"}
    assert set(rows) == {(64, 4), (16, 1), (32, 2), (24, 4)}
    assert rows[24, 4].status == "dropped" and "takes rows among 16, 32, 64, 128" in rows[24, 4].reason
    assert all(rows[each].seconds for each in ((64, 4), (16, 1), (32, 2)))
    assert "rows 0 of the forward" in str(result)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"forward.rows.7": [16, 4]}, "kernels that the programs have, but got one for 'forward.rows.7'"),
        ({"forward.rows.0": [20, 4]}, "expected rows among 16, 32, 64, 128"),
        ({"forward.rows.0": [16, 3]}, "warps among 1, 2, 4, 8, but got 16x3"),
    ],
)
def test_what_no_kernel_takes_is_refused(choice, message, seed):
    traced, _ = traced_case("rows", seed)
    with pytest.raises(weft.Error, match=message):
        compiled(traced, default_target(), True, choice)


def test_places_are_told_from_roles():
    assert space.role_of("forward.rows.0") == "forward.rows.0" and space.role_of("0.backward.keys") == "backward.keys"
    assert space.is_backward("backward.rows.0") and space.is_backward("0.backward.query")
    assert not space.is_backward("forward.rows.0") and not space.is_backward("0.forward")
    assert space.parse("32x4") == (32, 4)
    with pytest.raises(ValueError, match=r"or a tiling ROWSxWARPS such as 32x4, but got '32'"):
        space.parse("32")


@pytest.mark.slow
def test_what_a_forward_saves_of_integers_is_not_made_up(monkeypatch, tmp_path):
    """SFA's backward reads units that its forward found."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))

    @weft.program
    def merged(q, k, v):
        return weft.attention.sfa(q, k, v)

    operands = (torch.randn(1, 1, 70, 16).half() for _ in "qkv")
    result = weft.tuning.tune(merged, *operands, candidates={"forward.merge_units.0": ["256x1"]}, jobs=1)
    assert [row.status for row in result.rows if row.place == "forward.merge_units.0"].count("refused") == 0
    assert any("backward" in row.place for row in result.rows)
