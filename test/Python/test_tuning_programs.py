# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whole programs tuned, forward and backward, as a user would: windows with fused rows, grouped heads with a score_mod,
arrays of integers, a library of two programs.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import weft
from weft.programs.choices import forget
from weft.tuning import tune, tune_library
from weft.tuning.tuner import Options


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield
    forget()


@weft.program
def sema(q, k, v, lepe):
    q, k = weft.rope(q, k, window=64)
    local = weft.softmax(q, k, weft.block_window(64))
    return (local + weft.mean() + weft.toeplitz(lepe, centred=True)) @ v


@weft.program
def grouped(q, k, v, slopes):
    mixer = weft.softmax(q, k, weft.causal(), score_mod=lambda s, b, h, n, m: s - slopes[h] * (n - m))
    return mixer @ v


def input_type(head: int, heads: str = "H", element: str = "fp16") -> str:
    return f"{element}[B,{heads},N,{head}]:16"


SEMA = f"q:{input_type(64)}, k:{input_type(64)}, v:{input_type(64)}, lepe:fp16[3,64*H]:16"
BF16 = {"element": "bf16"}
GROUPED = f"q:{input_type(64, '4*H', **BF16)}, k:{input_type(64, **BF16)}, v:{input_type(64, **BF16)}, slopes:fp32[4*H]"


def statuses(result):
    return {row.status for row in result.rows}


@pytest.mark.slow
def test_sema():
    result = tune(sema, signature=SEMA, sizes={"B": 1, "H": 2, "N": 512}, limit=4)
    assert {row.place for row in result.rows} >= {"0.forward", "0.backward.keys"}
    assert "0.backward.query" not in {row.place for row in result.rows}, "one kernel makes all gradients of a window"
    assert statuses(result) <= {"chosen", "lost", "dropped"}, str(result)
    forward = [row for row in result.rows if row.place == "0.forward"]
    assert {row.schedule[:2] for row in forward} == {(64, 64)}
    same = [row for row in forward if row.reason.startswith("the same code as 64x64x4x3")]
    assert {row.schedule for row in same} >= {(64, 64, 4, 2), (64, 64, 4, 4)}, "nothing is walked, in no stages"
    assert len({row.seconds for row in same}) == 1


@pytest.mark.slow
def test_grouped_heads():
    result = tune(grouped, signature=GROUPED, sizes={"B": 2, "H": 2, "N": 512}, limit=4)
    assert statuses(result) <= {"chosen", "lost", "dropped"}, str(result)
    assert {"0.forward", "0.backward.query", "0.backward.keys"} <= {row.place for row in result.rows}


def test_channels_of_wide_values():
    """Parts of other widths are right, measured, and lose or win for a reason; what no target holds is dropped."""

    @weft.program
    def wide(q, k, v):
        return weft.softmax(q, k) @ v

    generator = np.random.default_rng()
    q, k, v = (generator.standard_normal((1, 1, 40, c)).astype(np.float16) for c in (16, 16, 272))
    tried = {"forward": ["64x32x1x2x272"], "backward.values": ["32x16x2x2x64"]}
    result = tune(wide, q, k, v, candidates=tried)
    rows = {(row.place, row.schedule): row for row in result.rows}
    assert rows["0.forward", (64, 32, 1, 2, 272)].reason.startswith("its sums take 648 registers of a thread")
    narrow = rows["0.backward.values", (32, 16, 2, 2, 64)]
    assert narrow.status in ("chosen", "lost") and narrow.seconds, str(result)
    assert narrow.status == "chosen" or narrow.reason, str(result)
    assert "0.backward.query" not in {row.place for row in result.rows}, "dq comes with dk"
    default = next(row for row in result.rows if row.place == "0.backward.values" and row.default)
    assert default.schedule == (64, 32, 8, 2, 512)
    work = [sum(sum(each.mma_macs.values()) for each in row.launches) for row in (default, narrow)]
    assert work[0] < work[1], "scores are computed again for every part"


def test_integers_are_the_callers():
    @weft.program
    def documents(q, k, v, ids):
        return weft.softmax(q, k, weft.document(ids, ids)) @ v

    generator = np.random.default_rng()
    q, k, v = (generator.standard_normal((1, 2, 100, 16)).astype(np.float16) for _ in range(3))
    ids = np.sort(generator.integers(0, 5, (1, 100))).astype(np.int32)
    result = tune(documents, q, k, v, ids, candidates={"forward": ["32x32x2x2"]}, backward=False)
    assert statuses(result) == {"chosen", "lost"}, str(result)
    assert "counted at" not in str(result)


@pytest.mark.slow
def test_a_library_of_two_programs(tmp_path):
    """One is tuned for two targets, the other, of rows alone, for its own; both run as before."""

    @weft.program
    def scaled(x: "fp16[B,N,16]:16"):  # noqa: F722
        return x * 2

    @weft.program
    def full(q: "fp16[B,H,N,16]:16", k: "fp16[B,H,N,16]:16", v: "fp16[B,H,N,16]:16"):  # noqa: F722
        return weft.softmax(q, k, weft.full()) @ v

    from weft.programs.compiled import compiled
    from weft.programs.libraries import parts
    from weft.runtime.library import write_library

    forms = [compiled(full.declare(), target, False) for target in ("sm_80", "sm_90a")]
    mine, others = parts(forms), parts([compiled(scaled.declare(), "sm_80", False)])
    path = tmp_path / "library"
    write_library(path, mine[0] + others[0], mine[2] | others[2], mine[1] + others[1])
    before = weft.load(path)
    options = Options(candidates={"forward": [(32, 32, 2, 2)]})
    results = list(tune_library(path, [{"B": 1, "H": 1, "N": 256}], options))
    assert sorted((result.program, result.target) for result in results) == [
        ("full", "sm_80"),
        ("full", "sm_90a"),
        ("scaled", "sm_80"),
    ]
    after = weft.load(path)
    assert set(after.programs) == set(before.programs) == {"full", "scaled"}
    tuned = [v["target"] for program in after.programs.values() for v in program.variants if "guards" in v]
    assert len(tuned) == sum(bool(result.schedules) for result in results)
    generator = np.random.default_rng()
    for n in (64, 100, 300):
        q, k, v = (generator.standard_normal((1, 1, n, 16)).astype(np.float16) for _ in range(3))
        scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(2, 3) / 4
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        exact = weights / weights.sum(-1, keepdims=True) @ v
        assert np.abs(after.run("full", q, k, v) - exact).max() < 4e-3
        assert (after.run("scaled", q[0]) == 2 * q[0]).all()
    shown = subprocess.run(
        [sys.executable, "-m", "weft.cli", "inspect", str(path), "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(shown.stdout)["manifest"]["programs"][0]["variants"] == after.programs["full"].variants
