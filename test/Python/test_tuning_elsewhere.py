# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tuning by other processes and machines: executors, bundles that the runtime measures, libraries tuned by records."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
from weft.programs.choices import forget
from weft.runtime.devices import open_device
from weft.tuning import bundle, records, tune
from weft.tuning.bundles import measure_bundle, open_bundle

INPUT = "fp16[B,H,N,16]:16"
SIGNATURE = f"q:{INPUT}, k:{INPUT}, v:{INPUT}"
SIZES = {"B": 1, "H": 1, "N": 64}
CANDIDATES = {"forward": ["64x32x4x2", "32x32x2x2"]}


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Each test has a cache of its own, which no other choice is in."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("WEFT_CACHE", raising=False)
    forget()
    yield tmp_path / "cache"
    forget()


def tuned(**options):
    return tune(causal, signature=SIGNATURE, sizes=SIZES, backward=False, **{"candidates": CANDIDATES, **options})


def figures(result):
    return [(row.schedule, row.status, row.seconds) for row in result.rows]


# ---- Records


def test_what_has_the_same_code_is_not_measured_again_by_another_build(cache, monkeypatch):
    first = tuned()
    assert (first.measured, first.reused) == (3, 0)
    (file,) = cache.glob("records.jsonl")
    assert len(records.read(file).records) == 3
    from weft.tuning import store

    monkeypatch.setattr(store, "compiler_fingerprint", lambda: "another build")
    again = tuned()
    assert (again.measured, again.reused) == (0, 3) and figures(again) == figures(first)
    assert len(records.read(file).records) == 3


def test_records_of_two_machines_are_those_of_one(tmp_path):
    both = tuned(records=str(tmp_path / "both.jsonl"))
    for number, schedule in enumerate(CANDIDATES["forward"]):
        os.environ["WEFT_CACHE_DIR"] = str(tmp_path / f"cache{number}")
        tuned(records=str(tmp_path / f"{number}.jsonl"), candidates={"forward": [schedule]})
    merged = records.merge(*(records.read(tmp_path / f"{number}.jsonl").records for number in range(2)))
    records.write(tmp_path / "merged.jsonl", merged)
    keys = records.by_key(records.read(tmp_path / "both.jsonl").records).keys()
    assert records.by_key(merged).keys() == keys
    os.environ["WEFT_CACHE_DIR"] = str(tmp_path / "cache.merged")
    result = tuned(records=str(tmp_path / "merged.jsonl"))
    assert (result.measured, result.reused) == (0, 3) and figures(result) == figures(both)


# ---- Executors


def test_an_executor_gives_the_same(tmp_path):
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        elsewhere = tuned(executor=executor, folder=str(tmp_path))
    os.environ["WEFT_CACHE_DIR"] = str(tmp_path / "cache.serial")
    serial = tuned(jobs=1)
    assert elsewhere.measured == serial.measured == 3
    assert figures(elsewhere) == figures(serial) and elsewhere.schedules == serial.schedules


class Losing(concurrent.futures.ThreadPoolExecutor):
    """Loses every job that it is given, so many times."""

    def __init__(self, times):
        super().__init__(1)
        self.times, self.given = times, {}

    def submit(self, function, job, lost):
        self.given[str(job["schedules"])] = number = self.given.get(str(job["schedules"]), 0) + 1
        if number <= self.times:
            future = concurrent.futures.Future()
            future.set_exception(RuntimeError("the worker has gone"))
            return future
        return super().submit(function, job, lost)


def test_lost_jobs_are_submitted_again():
    with Losing(3) as executor:
        assert tuned(executor=executor).measured == 3
    assert set(executor.given.values()) == {4}


def test_a_cluster_that_knows_calls_by_their_arguments_tries_a_lost_one_again():
    known = {}

    class Knowing(Losing):
        def submit(self, function, *arguments):
            name = json.dumps(arguments, sort_keys=True)
            if name not in known:
                known[name] = super().submit(function, *arguments)
            return known[name]

    with Knowing(3) as executor:
        assert tuned(executor=executor).measured == 3


def test_what_no_worker_finishes_is_tried_again_next_time(cache):
    with Losing(99) as executor, pytest.raises(ValueError, match="the worker has gone"):
        tuned(executor=executor)
    assert not (cache / "records.jsonl").exists()


def test_a_broken_executor_is_said():
    class Broken(concurrent.futures.Executor):
        def submit(self, function, *arguments):
            future = concurrent.futures.Future()
            future.set_exception(concurrent.futures.BrokenExecutor("a process died"))
            return future

    with pytest.raises(weft.Error, match="the executor is broken: a process died; what was measured is kept"):
        tuned(executor=Broken())


def test_a_killed_process_costs_nothing():
    from weft.tuning.evaluate import Job
    from weft.tuning.pool import Processes

    pool = Processes(1)
    job = Job("module {}", "f", "sm_80", False, {}, [], [], {}, "")
    whole = pool.evaluate(job)
    assert whole["status"] != "failed" or "Traceback" in whole["reason"]

    def kill():
        while not stop.wait(0.15):
            for process in pool._all[-1:]:
                process.kill()
            return

    stop = threading.Event()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for _ in range(3):
            assert pool.evaluate(job)["status"] == whole["status"]
            time.sleep(0.1)
    finally:
        stop.set()
        killer.join()
        pool.close()


class Killing:
    """Kills a worker after every second candidate, while the others work."""

    def __init__(self, cluster):
        self.cluster, self.done, self.killed = cluster, 0, []

    def begin(self, total, what):
        pass

    def advance(self, what):
        self.done += 1
        alive = [nanny.pid for nanny in self.cluster.workers.values() if nanny.pid not in (None, *self.killed)]
        if self.done % 2 == 0 and alive:
            self.killed.append(alive[0])
            os.kill(alive[0], signal.SIGKILL)


@pytest.mark.ecosystem
@pytest.mark.parametrize(
    "failures",
    [pytest.param(0, id="lost at once"), pytest.param(3, id="tried again by the cluster", marks=pytest.mark.slow)],
)
def test_dask_workers_that_are_killed_while_they_work(failures):
    distributed = pytest.importorskip("distributed")
    import dask

    serial = tuned(candidates={"forward": SCHEDULES}, jobs=2)
    os.environ["WEFT_CACHE_DIR"] += ".dask"
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": failures}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killing = Killing(cluster)
        result = tuned(candidates={"forward": SCHEDULES}, executor=client.get_executor(), progress=killing)
    assert len(killing.killed) >= 3
    assert result.measured == len(SCHEDULES) + 1 and figures(result) == figures(serial)


SCHEDULES = ["64x64x4x3", "64x32x4x2", "32x32x2x2", "128x32x4x3", "64x64x2x2", "32x64x1x2", "16x64x1x2", "128x64x8x2"]


@pytest.mark.ecosystem
def test_submitit(tmp_path):
    submitit = pytest.importorskip("submitit")
    executor = submitit.LocalExecutor(folder=tmp_path / "jobs")
    executor.update_parameters(timeout_min=5)
    assert tuned(executor=executor, candidates={"forward": ["32x32x2x2"]}).measured == 2


# ---- Search


@pytest.mark.ecosystem
def test_a_space_too_large_is_sampled(monkeypatch):
    """On a made-up landscape whose best is far from the default."""
    pytest.importorskip("optuna")
    from weft.targets import target_named
    from weft.tuning import search
    from weft.tuning.space import Kernel, candidates, why_not

    kernel = Kernel(0, "backward.query", (64, 32, 8, 2, 64), 16, 1024, 16, 1, 0)
    target = target_named("sm_80")
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    assert not search.is_large(kernel, target), "511 schedules are all tried"
    monkeypatch.setattr(search, "EXHAUSTIVE", 120)
    assert search.is_large(kernel, target)

    def seconds(schedule):
        return sum(abs(a - b) / b for a, b in zip(schedule, (128, 64, 4, 3, 32), strict=True))

    sampler = search.Sampler(kernel, target, seed)
    first = candidates(kernel, target, search.FIRST)
    tried = {each.schedule: seconds(each.schedule) for each in first if not each.dropped}
    sampler.tell(tried)
    while asked := sampler.ask(4):
        assert not set(asked) & tried.keys() and not any(why_not(each, kernel, target) for each in asked)
        sampler.tell({each: seconds(each) for each in asked})
        tried |= {each: seconds(each) for each in asked}
    every = (each.schedule for each in candidates(kernel, target, 10_000) if not each.dropped)
    assert len(tried) == 120 and min(tried.values()) <= sorted(map(seconds, every))[25], "among the best twentieth"


@pytest.mark.ecosystem
def test_a_sampled_run_measures_each_once(monkeypatch):
    pytest.importorskip("optuna")
    from weft.tuning import search

    monkeypatch.setattr(search, "EXHAUSTIVE", 6)
    monkeypatch.setattr(search, "FIRST", 3)
    result = tuned(candidates=None, limit=None, jobs=2)
    schedules = [row.schedule for row in result.rows if row.status != "dropped" and row.place == "0.forward"]
    assert len(schedules) == len(set(schedules)) == result.measured == 6


# ---- Bundles


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle") / "bundle"
    os.environ["WEFT_CACHE_DIR"] = str(folder.parent / "cache")
    count = bundle(causal, str(folder), signature=SIGNATURE, sizes=SIZES, candidates=CANDIDATES)
    assert count == 4, "three of the forward, and the default backward, which counts for both its kernels"
    return folder


def test_a_bundle_is_measured_and_resumed(bundled, tmp_path):
    out, device = tmp_path / "r.jsonl", open_device("simulator")
    found = []
    for record in measure_bundle(bundled, device, out):
        found.append(record)
        if len(found) == 2:
            break  # interrupted
    assert len(records.read(out).records) == 2
    whole = list(measure_bundle(bundled, device, out))
    assert {each["status"] for each in whole} == {"right"} and all(len(each["seconds"]) == 20 for each in whole[2:])
    assert len(records.read(out).records) == len(whole), "none of them twice"


def test_the_runtime_alone_measures(bundled, tmp_path):
    """With the compiler's and the profiling simulator's modules hidden, and without torch."""
    script = (
        "import sys, importlib.abc\n"
        "class Hidden(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('weft._native._compiler', 'weft._native._simulator', 'torch', 'triton'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from weft.cli.__main__ import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["measure", str(bundled), "-o", str(tmp_path / "r.jsonl"), "--device", "simulator"]
    run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "candidates on Weft simulator" in run.stdout


def test_a_wrong_candidate_is_refused(bundled, tmp_path):
    import shutil

    copy = tmp_path / "bundle"
    shutil.copytree(bundled, copy)
    facts = json.loads((copy / "bundle.json").read_text())
    case = copy / "cases" / "plain.0.npz"
    with np.load(case) as file:
        arrays = dict(file)
    for name in arrays:
        if name.startswith(("plain.", "exact.")):
            arrays[name] = arrays[name] + 1
    np.savez(case, **arrays)
    with pytest.raises(weft.Error, match=r"plain.0.npz' is missing, or not what the bundle was written with"):
        open_bundle(copy)
    import hashlib

    facts["cases"]["plain.0.npz"] = hashlib.sha256(case.read_bytes()).hexdigest()
    (copy / "bundle.json").write_text(json.dumps(facts))
    found = list(measure_bundle(copy, open_device("simulator"), tmp_path / "r.jsonl"))
    assert any(each["status"] == "refused" and each["reason"].startswith("wrong: out") for each in found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 7}, "expected a bundle of format 1, but .* has 7"),
        ({"sizes": 3}, "expected 'sizes' to be dict"),
        ({"candidates": [1]}, "expected a candidate to have library"),
        ({"cases": {"../x": ""}}, "expected names of files within the bundle, but got '../x'"),
    ],
)
def test_what_is_no_bundle_is_refused(bundled, tmp_path, change, message):
    facts = json.loads((bundled / "bundle.json").read_text())
    (tmp_path / "bundle.json").write_text(json.dumps({**facts, **change}))
    with pytest.raises(weft.Error, match=message):
        open_bundle(tmp_path)
    with pytest.raises(weft.Error, match="expected a bundle of 'weft tune --bundle', but"):
        open_bundle(tmp_path / "nothing")


def test_a_bundle_is_whole_or_not_there(tmp_path):
    with pytest.raises(ValueError, match="expected the sizes"):
        bundle(causal, str(tmp_path / "bundle"), signature=SIGNATURE, sizes={"B": 1}, candidates=CANDIDATES)
    assert not list(tmp_path.glob("bundle*"))


# ---- Libraries by records


def weft_command(*arguments, check=True):
    return subprocess.run(
        [sys.executable, "-m", "weft.cli", *arguments], capture_output=True, text=True, check=check, timeout=300
    )


def test_a_library_is_tuned_by_records_of_another_machine(bundled, tmp_path):
    """Times are made up so that one schedule wins, and the backward's too."""
    library = tmp_path / "library"
    causal.compile("sm_80", SIGNATURE, library)
    list(measure_bundle(bundled, open_device("simulator"), tmp_path / "r.jsonl"))
    fast = records.read(tmp_path / "r.jsonl").records
    for each in fast:
        each["device"] = "NVIDIA H100"
        each["seconds"] = [1e-6 if each["schedules"] == {"0.forward": [32, 32, 2, 2]} else 5e-6]
    records.write(tmp_path / "h100.jsonl", fast)
    done = weft_command("records", "to-library", str(library), str(tmp_path / "h100.jsonl"))
    assert "NVIDIA H100" in done.stdout and "0.forward = 32x32x2x2" in done.stdout
    variants = weft.load(library).manifest["programs"][0]["variants"]
    assert variants[0]["guards"][0] == {"size": "N", "at_least": 64, "below": 128}
    arrays = [np.random.default_rng(1).standard_normal((1, 1, 100, 16)).astype(np.float16) for _ in range(3)]
    assert np.isfinite(weft.load(library).run("causal", *arrays)).all()
    shown = weft_command("records", "show", str(tmp_path / "h100.jsonl")).stdout
    assert "0.forward = 32x32x2x2" in shown and "1.0" in shown
    two = records.merge(fast, [{**each, "device": "NVIDIA A100"} for each in fast])
    records.write(tmp_path / "two.jsonl", two)
    refused = weft_command("records", "to-library", str(library), str(tmp_path / "two.jsonl"), check=False)
    assert refused.returncode == 1 and "expected --device, one of NVIDIA A100, NVIDIA H100" in refused.stderr


def test_the_command_merges_and_prunes(tmp_path):
    from test_records import record

    records.append(tmp_path / "a", [record(), record(ptx="b")])
    records.append(tmp_path / "b", [record(), record(device="another")])
    with (tmp_path / "b").open("a") as file:
        file.write('{"schema": 1, "pt')
    done = weft_command("records", "merge", str(tmp_path / "a"), str(tmp_path / "b"), "-o", str(tmp_path / "c"))
    assert done.stdout.startswith("3 records") and "b: 1 line passed by, torn" in done.stderr
    weft_command("records", "prune", str(tmp_path / "c"), "--device", "another")
    assert [each["device"] for each in records.read(tmp_path / "c").records] == ["another"]
    wrong = weft_command("records", "prune", str(tmp_path / "c"), "--latest", "0", check=False)
    assert wrong.returncode == 1 and "expected --latest to be at least 1" in wrong.stderr
    for given, said in [
        (("--since", "yesterday"), "expected --since to be a day such as 2026-01-31, but got 'yesterday'"),
        (("--since", "2026-02-30"), "expected --since to be a day"),
        (("--since", "20260101"), "expected --since to be a day"),
        (("--device", "anther"), "expected --device among another, but got 'anther'"),
    ]:
        wrong = weft_command("records", "prune", str(tmp_path / "c"), *given, check=False)
        assert wrong.returncode == 1 and said in wrong.stderr, wrong.stderr
    assert pathlib.Path(tmp_path / "c").read_text().count("\n") == 1
