# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random programs against an interpreter of their descriptions (fuzz_programs), and checks of that fuzzer itself."""

import copy
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import weft
from fuzz_programs import campaign, generate, judge, patterns, shrink, source, tensors, worker

COUNT, BATCHES = 24, 6
TARGETS = ("sm_80", "sm_90a", "sm_100a")  # which move and multiply tiles by other instructions
FRESH = secrets.randbelow(10**9)  # of each process that runs tests; its batches print their seeds


@pytest.fixture(scope="module", autouse=True)
def prepared():
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_CACHE", "0")
        patch.setenv("WEFT_VERIFY", "1")  # after each pass
        worker.prepare()
        yield
    torch.set_num_threads(threads)


def explained(seed):
    """What went wrong with a seed, smaller, as a script."""
    description = generate.describe(seed)
    smaller, verdict = shrink.shrunk(description, worker.isolated(description), seconds=20)
    return shrink.script(smaller, verdict)


def run_for(target, monkeypatch):
    """On a device that has the target's instructions, compiled for it."""
    monkeypatch.setenv("WEFT_TARGET", target)
    if target == "sm_100a":  # the simulated device is one of sm_90a otherwise
        monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_programs(batch, record_property, monkeypatch):
    each = COUNT // BATCHES
    target = TARGETS[batch % len(TARGETS)]
    run_for(target, monkeypatch)
    first = int(os.environ.get("WEFT_FUZZ_SEED", FRESH)) + batch * each
    seeds = f"seeds {first} to {first + each - 1} for {target} (repeat with WEFT_FUZZ_SEED={first - batch * each})"
    print(seeds)
    record_property("random programs", seeds)
    records = list(campaign.verdicts(range(first, first + each), 1))
    print(campaign.table(records))
    failed = [r for r in records if r["kind"] not in ("right", "skipped", "refused")]
    assert not failed, explained(failed[0]["seed"])
    assert sum(r["kind"] == "right" for r in records) >= each // 2


FOUND = sorted((Path(__file__).parent / "fuzz_programs" / "found").glob("*.json"))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("file", FOUND, ids=[file.stem for file in FOUND])
def test_found(file, target, monkeypatch):
    """What once failed, shrunk."""
    run_for(target, monkeypatch)
    description = json.loads(file.read_text())
    verdict = worker.isolated(description)
    assert verdict.kind == "right", f"{verdict.kind}: {verdict.message}\n{source.program(description)}"


# ---- The fuzzer


PATTERNS = [
    ["causal"], ["full"], ["window", 5, None], ["window", None, -1], ["window", 3, 2], ["block_window", 4],
    ["prefix", 5], ["global_tokens", 2], ["strided", 3], ["dilated", 2, 3], ["random_blocks", 5, 2, 4],
    ["random_blocks", 2**33 + 7, 3, 8],
    ["not", ["shift", ["causal"], 3]], ["transpose", ["window", 3, 0]], ["per_head", [["causal"], ["prefix", 3]]],
    ["and", ["strided", 2], ["shift", ["random_blocks", 0, 1, 4], -2]], ["transpose", ["random_blocks", 1, 2, 4]],
    ["shift", ["transpose", ["dilated", 3, 2]], 5],
]  # fmt: skip


@pytest.mark.parametrize("tree", PATTERNS, ids=patterns.text)
@pytest.mark.parametrize(("n", "m"), [(12, 12), (7, 19), (19, 7)])
def test_membership(tree, n, m):
    """What the interpreter takes for a pattern is what the library does."""
    places = [
        torch.arange(size).view([-1 if i == axis else 1 for i in range(4)]) for axis, size in enumerate((1, 2, n, m))
    ]
    pairs = patterns.Pairs(*places, torch.tensor(n), torch.tensor(m), 1)
    mine = patterns.member(tree, pairs, {}).expand(1, 2, n, m).numpy()
    theirs = eval(patterns.text(tree), {"weft": weft}).matrix(n, m, heads=2)
    np.testing.assert_array_equal(mine, np.broadcast_to(theirs, mine.shape))


def test_descriptions_repeat():
    assert generate.describe(7) == generate.describe(7) != generate.describe(8)


def attention_description(**changes):
    shape = {
        "dims": ["B", "H", "N", "D"],
        "role": "data",
        "dtype": "f16",
        "layout": "contiguous",
        "grad": True,
        "capture": False,
    }
    softmax = {"q": "x0", "domains": [["x1", ["causal"], None]], "score": None, "sink": None, "scale": None, "cu": None,
               "deterministic": True}  # fmt: skip
    step = {
        "name": "y0",
        "op": "apply",
        "dims": shape["dims"],
        "dtype": "f16",
        "of": ["x2"],
        "mixer": ["softmax", softmax],
    }
    return {
        "seed": 1, "dtype": "f16", "sizes": {"B": 1, "H": 2, "N": 33, "D": 16}, "variants": [{"N": 1}, {"N": 0}],
        "inputs": {f"x{i}": dict(shape) for i in range(3)}, "tables": {}, "steps": [step], "results": ["y0"],
        "backward": True, "forward": True, **changes,
    }  # fmt: skip


WRONG = {
    "no mask": lambda q, k, v: weft.softmax(q, k) @ v,
    "one key too many": lambda q, k, v: weft.softmax(q, k, weft.window(None, 1)) @ v,
    "another scale": lambda q, k, v: weft.softmax(q, k, weft.causal(), scale=0.26) @ v,
    "other queries": lambda q, k, v: weft.softmax(q * 1.01, k, weft.causal()) @ v,
    "an offset": lambda q, k, v: weft.softmax(q, k, weft.causal()) @ v + 0.01,
    "another shape": lambda q, k, v: weft.sum(v, 2),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_programs_are_caught(name):
    """Programs that do something else than their description, some by one percent."""
    description = attention_description()
    assert judge.judged(description, worker.compiled(description)) == "right"
    with pytest.raises(judge.Wrong):
        judge.judged(description, weft.program(WRONG[name]))


def test_wrong_tangents_are_caught():
    """Off by one percent, where results and gradients are right."""
    description = attention_description(variants=[])
    program = worker.compiled(description)

    def off(*given):
        primal, tangent = forward_ad.unpack_dual(program(*given))
        return primal if tangent is None else forward_ad.make_dual(primal, 1.01 * tangent)

    off.fn = program.fn
    with pytest.raises(judge.Wrong, match="tangent of y0"):
        judge.judged(description, off)


def test_what_becomes_of_a_process():
    """Crashes, endless loops and errors are verdicts, and leave the fuzzer running."""
    description = attention_description(variants=[])

    def crash(_):
        os.kill(os.getpid(), 15)  # (11 would be a finding of a build with sanitizers)

    def endless(_):
        while True:
            pass

    def internal(_):
        raise weft.Error("'tile.dot' op expected operands of another layout")

    def refused(_):
        raise weft.Error("expected keys of the queries' type")

    made = worker.compiled
    try:
        for instead, kind in ((crash, "crash"), (endless, "hang"), (internal, "internal"), (refused, "refused")):
            worker.compiled = instead
            assert worker.isolated(description, cpu_seconds=2).kind == kind
    finally:
        worker.compiled = made
    assert worker.isolated(description).kind == "right"


def test_failures_are_shrunk(monkeypatch):
    """Down to what fails: here, whatever has a norm in it."""

    def run(description):
        bad = any(step["op"] == "rms_norm" for step in description["steps"])
        return judge.Verdict("wrong" if bad else "right", "planted")

    seed = next(s for s in range(10**6) if run(generate.describe(s)).failed and len(generate.describe(s)["steps"]) > 4)
    smaller, verdict = shrink.shrunk(generate.describe(seed), run(generate.describe(seed)), seconds=60, run=run)
    assert [step["op"] for step in smaller["steps"]] == ["rms_norm"] and verdict.failed
    assert all(size == 1 for size in shrink.used_sizes(smaller).values()) and len(smaller["inputs"]) == 1
    compile(shrink.script(smaller, verdict), "<script>", "exec")


def test_runs_go_on_where_they_were_left(tmp_path):
    """A run with a log does not repeat its seeds."""
    environment = {**os.environ, "PYTHONPATH": str(Path(weft.__file__).parents[1])}
    log = tmp_path / "log.jsonl"

    def run(count):
        command = [sys.executable, "-m", "fuzz_programs", "--seed", "2", "--count", str(count), "--log", str(log)]
        done = subprocess.run(command, cwd=Path(__file__).parent, env=environment, capture_output=True, text=True)
        return done.stdout

    assert "1 programs" in run(1) and "1 of them known" in run(2)
    assert sorted(r["seed"] for r in campaign.Log(log).records) == [2, 3]


def test_tables_and_strides(seed):
    """Inputs have the numbers of contiguous ones, whatever their strides; every table is as its kind says."""
    shape = {"dims": ["B", "H", "N", "D"], "role": "data", "dtype": "f32"}
    for layout in set(generate.LAYOUTS) - {"batch expanded", "heads expanded"}:
        made = {n: {**shape, "layout": n} for n in ("contiguous", layout)}
        description = attention_description(seed=seed, inputs=made)
        found = tensors.inputs({**description, "inputs": {"x": made[layout]}}, description["sizes"])["x"]
        plain = tensors.inputs({**description, "inputs": {"x": made["contiguous"]}}, description["sizes"])["x"]
        assert torch.equal(found, plain) and (
            layout == "contiguous" or found.stride() != plain.stride() or found.data_ptr() % 16
        )
    description = copy.deepcopy(attention_description(seed=seed))
    description["tables"] = {"t0": {"kind": "starts", "dims": ["4+1"], "along": "N"},
                             "t1": {"kind": "span", "dims": ["B", "H", "N"], "along": "N"}}  # fmt: skip
    made = tensors.tables(description, description["sizes"])
    starts = made["t0"].tolist()
    assert starts == sorted(starts) and starts[0] == 0 and starts[-1] == 33 and len(starts) == 5
    lower, upper, first, past = (made["t1" + part].long() for part in ("", "_upper", "_first", "_past"))
    keys = torch.arange(33)
    mine = (lower[..., None] <= keys) & (keys < upper[..., None])
    rows = torch.arange(33)[:, None]
    assert torch.equal(mine, (first[..., None, :] <= rows) & (rows < past[..., None, :]))
