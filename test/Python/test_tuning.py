# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The tuner: candidates are checked before they may win and measured once; the choice is taken where it is for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import weft
from weft.programs.choices import forget
from weft.programs.compiled import compiled
from weft.tuning import tune
from weft.tuning.evaluate import compile_module
from weft.tuning.pool import Processes

INPUT = "fp16[B,H,N,16]:16"
SIGNATURE = f"q:{INPUT}, k:{INPUT}, v:{INPUT}"
SIZES = {"B": 1, "H": 2, "N": 256}


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def exact(q, k, v):
    """Causal attention in float64."""
    q, k, v = (x.detach().double() for x in (q, k, v))
    scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~torch.ones(q.shape[2], k.shape[2]).tril().bool(), -torch.inf)
    return scores.softmax(-1) @ v


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Each test has a cache of its own, which no other choice is in."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    forget()
    yield tmp_path / "cache"
    forget()


def tuned(*schedules: str, **options):
    return tune(
        causal,
        signature=SIGNATURE,
        sizes=options.pop("sizes", SIZES),
        candidates={"forward": schedules},
        backward=False,
        **options,
    )


def row_of(result, schedule: str):
    rows = [row for row in result.rows if "x".join(map(str, row.schedule)) == schedule and row.place == "0.forward"]
    assert len(rows) == 1, str(result)
    return rows[0]


# ---- Measuring


class Recorder:
    """What a progress bar is told."""

    def __init__(self):
        self.told = []

    def begin(self, total, what):
        self.told.append((what, total))

    def advance(self, what):
        self.told.append(what)


def test_candidates_are_ranked_and_kept_and_one_more_is_measured_alone():
    progress = Recorder()
    first = tuned("64x32x4x2", progress=progress)
    assert progress.told[0] == ("candidates", 2)
    assert set(progress.told[1:3]) == {"0.forward 128x64x4x3", "0.forward 64x32x4x2"}
    assert progress.told[3:] == [("the choice", 0)], "one kernel's choice was measured already"
    assert (first.measured, first.reused) == (2, 0)
    assert {row.status for row in first.rows} == {"chosen", "lost"}
    assert all(row.seconds > 0 and row.launches for row in first.rows)
    again = tuned("64x32x4x2")
    assert (again.measured, again.reused) == (0, 2)
    assert [(row.schedule, row.status, row.seconds) for row in again.rows] == [
        (row.schedule, row.status, row.seconds) for row in first.rows
    ]
    more = tuned("64x32x4x2", "32x32x2x2")
    assert (more.measured, more.reused) == (1, 2)
    assert "32x32x2x2" in str(more) and "1 candidate measured, 2 known" in str(more)


def test_losers_have_their_reason():
    result = tuned("64x32x4x2", "16x16x1x1", "128x64x4x4")
    for row in result.rows:
        if row.status == "lost":
            assert "× the time" in row.reason or "as fast" in row.reason, row
    slowest = row_of(result, "16x16x1x1")
    assert slowest.status == "lost" and "× the time: " in slowest.reason and "L2 cache" in slowest.reason


def test_what_the_target_cannot_hold_is_dropped_with_the_reason():
    result = tuned("256x128x1x4", "16x32x8x2", "64x1024x4x4")
    assert "registers of a thread" in row_of(result, "256x128x1x4").reason
    assert "16 rows leave 8 warps fewer than the 16" in row_of(result, "16x32x8x2").reason
    assert all(row_of(result, each).status == "dropped" for each in ("256x128x1x4", "16x32x8x2", "64x1024x4x4"))
    assert result.measured == 1, "only the default"


# ---- Wrong candidates


def planted(schedule: list[int], change):
    """A compiler that gives the schedule a kernel that was tampered with."""

    def compile(text, name, options):
        if options["schedules"].get("0.forward") != schedule:
            return compile_module(text, name, options)
        return change(text, name, options)

    return compile


def test_a_kernel_that_skips_a_block_is_refused():
    def skips(text, name, options):
        near = "patterns = [#attn.and<#attn.causal, #attn.window<left = 191, right = 0>>]"
        changed = text.replace("patterns = [#attn.causal]", near)
        assert changed != text
        return compile_module(changed, name, options)

    result = tuned("64x32x4x2", "32x32x2x2", compile=planted([64, 32, 4, 2], skips))
    wrong = row_of(result, "64x32x4x2")
    assert wrong.status == "refused" and wrong.reason.startswith("wrong: out: "), wrong.reason
    assert row_of(result, "32x32x2x2").status in ("lost", "chosen")
    assert result.schedules.get("0.forward") != (64, 32, 4, 2)


def test_a_kernel_that_leaves_a_tile_as_it_was_is_refused():
    def lazy(text, name, options):
        ptx, info = compile_module(text, name, options)
        launch = info["programs"][0]["variants"][0]["launches"][0]
        launch["grid"][0] = f"{launch['grid'][0]} - 1"
        return ptx, info

    result = tuned("64x32x4x2", compile=planted([64, 32, 4, 2], lazy))
    assert "NaN" in row_of(result, "64x32x4x2").reason, "what is right from an earlier run must not stand there"
    assert not result.schedules


def test_a_kernel_that_is_at_fault_is_refused():
    def beyond(text, name, options):
        ptx, info = compile_module(text, name, options)
        info["kernels"][0]["shared_bytes"] //= 2
        return ptx, info

    result = tuned("64x32x4x2", compile=planted([64, 32, 4, 2], beyond))
    assert "the simulator found: " in row_of(result, "64x32x4x2").reason


def test_what_does_not_compile_is_refused():
    def fails(text, name, options):
        raise weft.Error("no such luck\nand more")

    result = tuned("64x32x4x2", compile=planted([64, 32, 4, 2], fails))
    assert row_of(result, "64x32x4x2").reason == "it does not compile: no such luck"


def test_winners_that_are_wrong_together_are_not_chosen_together(monkeypatch):
    from weft.simulator.cost import Estimate
    from weft.tuning import tuner

    # Less shared memory is faster here, so that both candidates win by themselves.
    monkeypatch.setattr(tuner, "estimate", lambda f, target, gpu: Estimate(1.0 + f.shared_bytes, {"memory": 1.0}, 1))

    def compile(text, name, options):
        ptx, info = compile_module(text, name, options)
        if len(options["schedules"]) == 2:
            launch = info["programs"][-1]["variants"][0]["launches"][-1]
            launch["grid"][0] = f"{launch['grid'][0]} - 1"
        return ptx, info

    @weft.program
    def twice(q, k, v):
        once = weft.softmax(q, k, weft.causal()) @ v
        return weft.softmax(once, k, weft.causal()) @ v

    options = {"candidates": {"forward": ["32x32x2x2"]}, "compile": compile, "backward": False}
    result = tune(twice, signature=SIGNATURE, sizes={"B": 1, "H": 1, "N": 130}, **options)
    assert {row.place for row in result.rows} == {"0.forward", "1.forward", "together"}
    # together they are wrong: the one that gains more stays, and where it is taken the other's default counts
    (place,) = result.schedules
    assert result.schedules == {place: (32, 32, 2, 2)} and result.seconds < result.default_seconds
    chosen = {row.place: row for row in result.rows if row.status == "chosen"}
    assert chosen[place].schedule == (32, 32, 2, 2) and len(chosen) == 3
    assert all(row.default == (where != place) for where, row in chosen.items() if where != "together")
    whole = [row for row in result.rows if row.place == "together"]
    assert [(row.default, row.status) for row in whole] == [(False, "chosen"), (True, "lost"), (False, "refused")]
    assert "NaN" in whole[2].reason and "all that won alone" in str(result) and "the defaults" in str(result)
    withdrawn = [row for row in result.rows if row.reason == "as a whole it is wrong, or no faster"]
    assert [row.schedule for row in withdrawn] == [(32, 32, 2, 2)] and withdrawn[0].place not in result.schedules


class Dying(Processes):
    """Processes that die of their first job, or never answer."""

    def __init__(self, code: str, seconds: float) -> None:
        super().__init__(1, seconds)
        self._code = code

    def _start(self):
        process = subprocess.Popen(
            [sys.executable, "-c", self._code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._all.append(process)
        return process


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; input(); os.kill(os.getpid(), 9)", "the process that compiled and ran it died: SIGKILL"),
        ("import time; time.sleep(60)", "it took longer than 1 s"),
    ],
)
def test_a_candidate_that_kills_its_process_is_refused(code, reason):
    from weft.tuning.evaluate import Job

    pool = Dying(code, 1)
    job = Job("", "f", "sm_80", False, {}, [""], [""], {}, "")
    try:
        assert [record for _, record in pool.run([job, job])] == [{"status": "refused", "reason": reason}] * 2
    finally:
        pool.close()


# ---- The whole way: forward and backward, calls, libraries


def drawn(n: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(1, 2, n, 16, generator=generator).half() for _ in range(3)]


def test_calls_take_the_choice_of_their_bucket():
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    q, k, v = drawn(200, seed)
    result = tune(causal, q, k, v, candidates={"backward.keys": ["32x32x2x2"]})
    assert result.measured == 3, "forward, the default backward, which counts for both its kernels, and the other"
    assert result.bucket == "128 ≤ N < 256, 128 ≤ M < 256, 2 ≤ B*H < 4", result.bucket
    assert {row.place for row in result.rows} >= {"0.forward", "0.backward.query", "0.backward.keys"}
    if not result.schedules:  # the model prefers the default: choose the other to see it taken
        from dataclasses import replace

        from weft.tuning.run import keep

        traced = causal.trace(causal.bind((q, k, v), {}))
        keep(traced.plain, replace(result, schedules={"0.forward": (32, 32, 2, 2), "0.backward.keys": (32, 32, 2, 2)}))
    explained = causal.explain(q, k, v)
    assert explained.tuned and ", tuned" in str(explained)
    assert not causal.explain(*drawn(300, seed)).tuned
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = causal(*leaves)
    out.sum().backward()
    assert (out.double() - exact(*leaves)).abs().max() < 4e-3
    assert all(x.grad.isfinite().all() for x in leaves)


def test_candidates_are_timed_where_a_gpu_is(monkeypatch):
    from weft.tuning import gpu, run

    monkeypatch.setattr(gpu, "_ROUNDS", 3)
    monkeypatch.setattr(run, "timer", lambda: gpu.GpuTimer(weft.runtime.devices.open_device("simulator")))
    result = tuned("32x32x2x2", sizes={"B": 1, "H": 2, "N": 100})
    assert result.device == "Weft simulator" and not result.notes, "at its own sizes, by the driver's events"
    assert [row.status for row in result.rows if row.place == "0.forward"].count("chosen") == 1
    assert all(row.seconds >= 0 and not row.launches for row in result.rows)


def test_a_library_dispatches_by_size(tmp_path):
    force({"B": 1, "H": 2, "N": 64}, (32, 32, 2, 2))
    force({"B": 1, "H": 2, "N": 128}, (64, 32, 4, 2))
    library = causal.compile("sm_80", SIGNATURE, tmp_path / "library", differentiate=False)
    variants = library.programs["causal"].variants
    assert [variant.get("guards") for variant in variants] == [
        [{"size": "N", "at_least": 64, "below": 128}, {"size": "B*H", "at_least": 2, "below": 4}],
        [{"size": "N", "at_least": 128, "below": 256}, {"size": "B*H", "at_least": 2, "below": 4}],
        None,
    ]
    program = weft.load(tmp_path / "library").programs["causal"]
    device = weft.runtime.devices.open_device("simulator")
    for n, expected in ((63, 2), (64, 0), (127, 0), (128, 1), (255, 1), (256, 2)):
        arrays = drawn(n, n)
        assert program._on(device).prepare(tuple(arrays)).variant == expected, n
        (out,) = program.run(arrays, poison=True)
        assert (out.double() - exact(*arrays)).abs().max() < 4e-3, n
    shown = subprocess.run(
        [sys.executable, "-m", "weft.cli", "inspect", str(tmp_path / "library")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "64 ≤ N < 128" in shown.stdout.replace("\n", " ") and "all others" in shown.stdout


def force(sizes, schedule) -> None:
    """Choose a schedule for a bucket, whatever the model says."""
    from weft.programs import choices
    from weft.programs.buckets import Bucket, Symbols

    traced = causal.declare(SIGNATURE)
    described = [{"dims": each.dims} for each in traced.inputs]
    guards = Bucket.of(Symbols.of(described), sizes).guards
    choices.choose(
        choices.program_hash(traced.plain), "sm_80", {"guards": guards, "schedules": {"0.forward": list(schedule)}}
    )


def weft_command(*arguments: str, check: bool = True):
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments], capture_output=True, text=True, check=check, timeout=300
    )


PROGRAM = f'''
import weft

@weft.program
def causal(q: "{INPUT}", k: "{INPUT}", v: "{INPUT}"):
    return weft.softmax(q, k, weft.causal()) @ v
'''


@pytest.fixture
def program_file(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return str(path)


def test_the_command_tunes_a_library(program_file, tmp_path):
    out = str(tmp_path / "library")
    weft_command("compile", program_file, "-o", out, "--forward-only")
    before = weft.load(out).manifest
    assert before["programs"][0]["source"] == {"ir": "causal.attn.mlir", "differentiate": False}
    done = weft_command(
        "tune", "--library", out, "--sizes", "B=1,H=1,N=1024", "--candidate", "forward=64x64x4x3", "--json"
    )
    (result,) = json.loads(done.stdout)
    assert result["measured"] == 2 and result["rows"][0]["place"] == "0.forward"
    assert result["schedules"] == {"0.forward": "64x64x4x3"}, "one block a multiprocessor: the smaller tile is faster"
    after = weft.load(out)
    assert after.manifest["programs"][0]["variants"][0]["guards"][0] == {"size": "N", "at_least": 1024, "below": 2048}
    arrays = drawn(100, 1)
    assert np.isfinite(np.asarray(after.run("causal", *arrays))).all()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "expected either FILE.py or --library DIR"),
        (["--library", "x", "-o", "y"], 2, "expected no --out with --library"),
        (["FILE", "--sizes", "B=1"], 1, "expected the sizes H, N of 'causal'"),
        (["FILE", "--sizes", "B=1,H=1,N=64", "--candidate", "forwards=1x2x3x4"], 1, "expected a candidate such as"),
        (["FILE", "--sizes", "B=1,H=1,N=64", "--candidate", "forward=1x2x3"], 1, "expected a schedule ROWSx"),
        (["FILE", "--sizes", "B=1,H=1,N=0"], 1, "expected sizes of 'causal' of at least 1, as nothing else takes time"),
        (["FILE", "--sizes", "B=1,H=1,N=64", "--target", "sm_12"], 1, "sm_12"),
        (["FILE", "--sizes", "B=1,H=1,N=64", "--gpu", "B9"], 1, "expected one of A100"),
        (["FILE", "--limit", "0"], 2, "at least 1"),
        (["FILE", "--seed", "-1"], 2, "expected --seed to be at least 0"),
    ],
)
def test_wrong_usage(program_file, arguments, code, words):
    done = weft_command("tune", *(program_file if a == "FILE" else a for a in arguments), check=False)
    assert done.returncode == code, done.stderr
    assert words in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.startswith("weft tune: ")


def test_help_has_an_example():
    assert "weft tune attention.py --signature" in weft_command("tune", "--help").stdout


def test_a_seed_gives_the_same_figures(monkeypatch, tmp_path):
    """Attention's instructions depend on its numbers: a row's maximum that does not change costs none."""
    rows = []
    for place in ("one", "two"):
        monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / place))
        forget()
        result = tuned("64x64x4x3", inputs_seed=7)
        assert result.seed == 7 and result.measured == 2
        rows.append([{**row, "compile_seconds": None} for row in result.as_dict()["rows"]])
    assert rows[0] == rows[1]
    for wrong in (-1, True, "7"):
        with pytest.raises(
            ValueError, match=f"expected 'inputs_seed' to be an integer of at least 0, but got {wrong!r}"
        ):
            tuned("64x64x4x3", inputs_seed=wrong)


def test_integers_cannot_be_made_up():
    @weft.program
    def documents(q, k, v, ids):
        return weft.softmax(q, k, weft.document(ids, ids)) @ v

    with pytest.raises(ValueError, match="expected an array for the input 'ids', as numbers of type i32"):
        tune(documents, signature=SIGNATURE + ", ids:i32[B,N]", sizes=SIZES, candidates={}, backward=False)


def test_an_interrupted_run_resumes(program_file, cache):
    arguments = ["tune", program_file, "--forward-only", "--sizes", "B=1,H=1,N=128", "--limit", "4", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "weft.cli", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while len(list(Path(cache).rglob("*.json"))) < 1 and time.monotonic() < deadline:
        assert process.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(list(Path(cache).rglob("*.json")))
    (result,) = json.loads(weft_command(*arguments, "--json").stdout)
    assert result["reused"] >= 1 and result["reused"] == kept and result["measured"] == 4 - kept, (kept, result)


def test_widened_programs_are_exact():
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    from weft.programs.simulated import run_plan

    traced = causal.declare(SIGNATURE)
    ptx, info = compile_module(traced.text, "causal", {"target": "sm_80", "widen": True})
    arrays = [x.float().numpy() for x in drawn(70, seed)]
    out = run_plan(ptx, info, "causal", arrays).outputs["out"]
    wanted = exact(*map(torch.from_numpy, arrays)).numpy()
    assert out.dtype == np.float32 and np.abs(out - wanted).max() < 1e-5


def test_schedules_reach_the_compiler_through_compiled_forms():
    traced = causal.declare(SIGNATURE)
    form = compiled(traced, "sm_80", True, {"0.backward.query": [32, 32, 2, 2]})
    schedules = {each["role"]: each["schedule"] for each in form.info["schedules"]}
    assert schedules["backward.query"] == [32, 32, 2, 2] and schedules["forward"] == [128, 64, 4, 3]
    with pytest.raises(weft.CompilationError, match=r"cannot take the schedule of '0\.forward'"):
        compiled(traced, "sm_80", False, {"0.forward": [48, 32, 2, 2]})
