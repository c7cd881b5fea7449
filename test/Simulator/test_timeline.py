# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Timelines: trace events that Perfetto takes, whose times add up to the cost model's."""

import json
import math
import re
import secrets

import numpy as np
import pytest
import weft.simulator
from weft.cli.__main__ import main
from weft.simulator.cost import Figures, estimate, gpu_of
from weft.simulator.timeline import MODELLED, trace
from weft.targets import target_named

COPY = """
.version 7.1
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
  .reg .b64 %a<6>;
  .reg .b32 %r<6>;
  .reg .f32 %f<2>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %a1, [from];
  ld.param.u64 %a2, [to];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  shl.b32 %r3, %r1, 7;
  add.u32 %r3, %r3, %r2;
  mul.wide.u32 %a3, %r3, 4;
  add.u64 %a4, %a1, %a3;
  add.u64 %a5, %a2, %a3;
  ld.global.f32 %f1, [%a4];
  mul.f32 %f1, %f1, %f1;
  bar.sync 0;
  st.global.f32 [%a5], %f1;
  ret;
}
"""


def check(events):
    """What Trace Event Format asks of complete events and of metadata."""
    for event in events:
        assert event["ph"] in ("X", "M") and event["name"], event
        assert all(isinstance(event[field], int) for field in ("pid", "tid")), event
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0 and math.isfinite(event["ts"] + event["dur"]), event
    return [event for event in events if event["ph"] == "X"]


def test_timeline_of_a_launch(tmp_path):
    x, y = np.ones(128 * 300, np.float32), np.empty(128 * 300, np.float32)
    report = weft.simulator.launch(COPY, "copy", 300, 128, [x, y])
    assert not report.findings
    figures = report.figures()
    assert (figures.blocks, figures.warps, figures.stages, figures.shared_bytes) == (300, 4, 1, 512)
    assert (figures.code, figures.bytes, figures.sectors) == (14, 2 * x.nbytes, 2 * x.nbytes / 32)
    found = report.timeline("A100")
    expected = estimate(figures, target_named("sm_80"), report.gpu("A100")).seconds
    assert found.seconds == expected
    found.write(tmp_path / "trace.json")
    written = json.loads((tmp_path / "trace.json").read_text())
    assert written["otherData"]["note"] == MODELLED == "modelled, not timed"
    events = check(written["traceEvents"])
    (whole,) = (event for event in events if event["cat"] == "launch")
    assert whole["dur"] == pytest.approx(expected * 1e6) and whole["args"]["note"] == MODELLED
    blocks = {event["name"] for event in events if event["cat"] == "block"}
    # 108 multiprocessors of which 8 are drawn: blocks 0-7, 108-115, 216-223.
    assert blocks == {f"copy, block {each + 108 * turn}" for turn in range(3) for each in range(8)}
    assert max(event["ts"] + event["dur"] for event in events) == pytest.approx(expected * 1e6)

    assert figures.added == 0
    adding = COPY.replace("st.global.f32 [%a5]", "red.global.add.f32 [%a5]")
    added = weft.simulator.launch(adding, "copy", 300, 128, [x, np.zeros_like(x)]).figures()
    assert (added.sectors, added.added) == (figures.sectors, x.nbytes / 32)

    few = weft.simulator.launch(COPY, "copy", 300, 128, [x, y], sample=30)
    assert few.figures() == figures, "counts of the whole grid, from some of its blocks"


def test_phases_of_a_block_fill_it():
    """Rounds follow one another, and in each a block's phases, whose times add up to the block's."""
    seed = secrets.randbits(32)
    random = np.random.default_rng(seed)
    gpu = gpu_of("sm_80")
    for _ in range(20):
        launches = [
            Figures(
                kernel=f"k{i}", blocks=int(random.integers(1, 2000)), warps=4, stages=int(random.integers(1, 5)),
                shared_bytes=int(random.integers(0, 60000)), registers=128, spill_bytes=0, code=500,
                warp_instructions=1e6, special=1e4, mma_macs={"f16": 1e8}, sectors=1e5, bytes=1e6,
                shared_wavefronts=1e5, barriers=float(random.integers(0, 10**6)),
            )
            for i in range(2)
        ]  # fmt: skip
        found = trace(launches, gpu)
        total = sum(estimate(each, target_named("sm_80"), gpu).seconds for each in launches)
        assert found.seconds == pytest.approx(total), seed
        events = check(found.events)
        assert max(event["ts"] + event["dur"] for event in events) == pytest.approx(total * 1e6), seed
        for block in [event for event in events if event["cat"] == "block"][::7]:
            inside = [
                each
                for each in events
                if each["cat"] in ("work", "wait")
                and (each["pid"], each["tid"]) == (block["pid"], block["tid"])
                and block["ts"] <= each["ts"] + each["dur"] / 2 <= block["ts"] + block["dur"]
            ]
            assert sum(each["dur"] for each in inside) == pytest.approx(block["dur"]), seed
            assert {each["name"] for each in inside} >= {"wait: first loads", "products: matrix units"}, seed


def test_a_launch_that_no_multiprocessor_holds():
    x = np.ones(128, np.float32)
    report = weft.simulator.launch(COPY, "copy", 1, 128, [x, x.copy()])
    with pytest.raises(ValueError, match=r"a multiprocessor of A100 .* holds no block of 'copy'"):
        report.timeline("A100", shared_bytes=1 << 20)


def test_command_line(tmp_path, capsys):
    (tmp_path / "copy.ptx").write_text(COPY)
    out = tmp_path / "trace.json"
    command = ["sim", str(tmp_path / "copy.ptx"), "--entry", "copy", "--block", "128", "--grid", "2"]
    assert main([*command, "--arg", "f32[256]=ones", "--arg", "f32[256]=nan", "--timeline", str(out)]) == 0
    assert re.search(r"wrote .*trace.json", capsys.readouterr().out.replace("\n", ""))
    assert check(json.loads(out.read_text())["traceEvents"])
