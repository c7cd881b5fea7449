# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.profiler``: launches by scope, with what the simulator counted and the cost model's time."""

import contextlib
import json
import pathlib
import types

import numpy as np
import pytest
import weft
import weft.triton as triton
import weft.triton.language as tl
import weft.triton.profiler as proton
from weft.compiler import launches

pytestmark = pytest.mark.skipif(weft.device() != "simulator", reason="counters are the simulator's")


@triton.jit
def doubled(x, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(x + at, tl.load(x + at) * 2)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    proton.finalize()


def read(name: str) -> dict:
    tree, _ = json.loads(pathlib.Path(f"{name}.hatchet").read_text())
    return tree


def below(node: dict, *path: str) -> dict:
    for name in path:
        (node,) = [child for child in node["children"] if child["frame"]["name"] == name]
    return node


def test_launches_are_counted_by_scope():
    x = np.ones(256, np.float32)
    doubled[(4,)](x, 64)
    session = proton.start("run")
    doubled[(4,)](x, 64)
    with proton.scope("outer", {"flops": 256}):
        for _ in range(2):
            with proton.scope("inner", metrics={"steps": np.int64(3)}):
                doubled[(4,)](x, 64)
        doubled[(1,)](x, 64)
    proton.deactivate(session)
    doubled[(4,)](x, 64)
    proton.activate(session)
    doubled[(4,)](x, 64)
    proton.finalize(session)
    doubled[(4,)](x, 64)
    assert x.tolist() == [2.0**8] * 64 + [2.0**7] * 192
    tree = read("run")
    one, outer = below(tree, "doubled")["metrics"], below(tree, "outer")
    twice, quarter = below(outer, "inner", "doubled")["metrics"], below(outer, "doubled")["metrics"]
    assert (one["count"], twice["count"], quarter["count"]) == (2, 2, 1)
    assert one["sectors"] == twice["sectors"] == 8 * quarter["sectors"]
    assert 1 <= one["sectors"] / (2 * 2 * 256 * 4 / 32) <= 2  # read and written, the array may begin within a sector
    assert one["warp_instructions"] == twice["warp_instructions"] == 8 * quarter["warp_instructions"] > 0
    assert one["time (ns)"] == pytest.approx(twice["time (ns)"]) and one["time (ns)"] > 2 * 2500
    assert outer["metrics"] == {"flops": 256} and below(outer, "inner")["metrics"] == {"steps": 6}
    assert one["device_type"] == "simulator" and one["mma_macs"] == 0


def test_sessions_beside_each_other_and_decorators():
    x = np.ones(64, np.float32)

    @proton.profile(name="own")
    @proton.cpu_timed_scope("timed")
    def run(times):
        for _ in range(times):
            doubled[(1,)](x, 64)

    proton.start("all")
    run(3)
    proton.finalize()
    for name in ("all", "own"):
        timed = below(read(name), "timed")
        assert below(timed, "doubled")["metrics"]["count"] == 3 and timed["metrics"]["cpu_time (ns)"] > 0
    proton.finalize()  # of nothing


def test_a_launch_that_fails_leaves_scopes_as_they_were():
    x = np.ones(10, np.float32)
    proton.start()
    with pytest.raises(weft.Error, match="at fault"), proton.scope("fails"):
        doubled[(1,)](x, 64)
    assert proton.enter_scope("next") == 1 and proton.exit_scope() == 1
    proton.finalize()
    assert [child["frame"]["name"] for child in read("proton")["children"]] == ["fails", "next"]
    assert proton.enter_scope("unheard") is None and proton.exit_scope("unheard") is None


def test_what_is_not_there_is_refused():
    for options in ({"context": "python"}, {"data": "trace"}, {"backend": "cupti"}, {"mode": "pcsampling"}):
        with pytest.raises(ValueError, match=r"expected '?\w+"):
            proton.start(**options)
    with pytest.raises(ValueError, match="expected a session that was started and is not finalized, but got 99"):
        proton.activate(99)
    with pytest.raises(ValueError, match="expected 'output_format' to be 'hatchet', but got 'chrome_trace'"):
        proton.finalize(output_format="chrome_trace")
    with pytest.raises(ValueError, match="expected to leave the scope"):
        proton.exit_scope("none")


class Event:
    """A stand-in for torch's: each is recorded a millisecond and a half after the one before it."""

    recorded = 0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Event.recorded += 1
        self.at = Event.recorded

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return 1.5 * (later.at - self.at)


def test_launches_on_a_gpu_are_timed_by_events(monkeypatch):
    monkeypatch.setattr("torch.cuda.Event", Event)
    monkeypatch.setattr("torch.cuda.device", lambda index: contextlib.nullcontext())
    ran = []
    launch = types.SimpleNamespace(
        simulated=False, kernel=types.SimpleNamespace(name="k"), arguments=(3,), run=lambda: ran.append(Event.recorded)
    )
    proton.start()
    with proton.scope("twice"):
        launches.pass_on(launch)
        launches.pass_on(launch)
    proton.finalize()
    assert ran == [1, 3]
    assert below(read("proton"), "twice", "k")["metrics"] == {"count": 2, "device_type": "CUDA", "time (ns)": 3e6}
