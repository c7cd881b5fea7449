# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Profiles: sums by source line, roofline bounds against figures worked out by hand, table, JSON and picture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel
from weft.errors import Error

PRODUCT = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
    "{%r2, %r2, %r2, %r2}, {%r2, %r2}, {%f1, %f1, %f1, %f1};"
)
BODY = f"""
  .loc 1 10 0
  mov.u32 %r1, s; shl.b32 %r2, %r0, 7; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0;
  .loc 1 11 0
  bar.sync 0;
  .loc 1 12 0
  mul.wide.u32 %d2, %r0, 128; add.s64 %d2, %d0, %d2; ld.global.f32 %f1, [%d2];
  .loc 1 13 0
  fma.rn.f32 %f2, %f1, %f1, %f1; setp.lt.u32 %p1, %r0, 8; @%p1 bra L; add.f32 %f2, %f2, %f1;
L: mov.u32 %r2, 0; {PRODUCT}
  st.global.f32 [%d2], %f2;
"""


@pytest.fixture(scope="module")
def profile():
    text = kernel(BODY, shared=64 * 128) + '.file 1 "k.cu"\n'
    report = simulator.launch(text, "k", 1, 64, [np.zeros(64 * 32, np.float32)])
    assert not report.findings, report.findings
    return report.profile


def test_lines_sum_up(profile):
    rows = {row.place: row for row in profile.by_source()}
    assert rows["k.cu:10"].total.shared_wavefronts == 64 and rows["k.cu:10"].total.shared_wavefronts_ideal == 2
    assert rows["k.cu:11"].by_kind == {"barrier": 2} and rows["k.cu:11"].total.barrier_waits == 1
    load = rows["k.cu:12"].total
    assert (load.global_sectors_read, load.global_sectors_ideal, load.global_bytes) == (64, 8, 256)
    last = rows["k.cu:13"].total
    assert last.divergent_branches == 1 and last.mma_macs == 2 * 16 * 8 * 16 and last.global_sectors_written == 64
    total = profile.total()
    assert total.warp_instructions == sum(line.warp_instructions for line in profile)
    assert sum(profile.by_kind().values()) == total.warp_instructions


def test_roofline_by_hand(profile):
    roofline = profile.roofline("a100")
    bounds = {bound.resource: bound.seconds for bound in roofline.bounds}
    assert bounds["global memory"] == pytest.approx(128 * 32 / 2039e9)
    assert bounds["shared memory"] == pytest.approx(64 / (108 * 1.41e9))
    assert bounds["f16 matrix units"] == pytest.approx(2 * 4096 / 312e12)
    assert bounds["float32 arithmetic"] == pytest.approx((2 * 64 + 56) / 19.5e12)
    assert bounds["instruction issue"] == pytest.approx(profile.total().warp_instructions / (4 * 108 * 1.41e9))
    assert roofline.limit.resource == "global memory"
    assert roofline.intensity == pytest.approx((2 * 64 + 56 + 2 * 4096) / (128 * 32))
    with pytest.raises(ValueError, match="expected one of A100, H100, H200"):
        profile.roofline("V100")


def test_table_and_json(profile):
    table = profile.table("H200")
    assert "k.cu:12" in table and "H200" in table and "bound by" in table
    data = json.loads(json.dumps(profile.as_dict("H100")))
    assert data["roofline"]["gpu"].startswith("H100") and data["total"]["mma_macs"] == 4096


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_picture(profile, ending, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"p.{ending}"
    profile.draw(path)
    data = path.read_bytes()
    assert data.startswith(b"<?xml" if ending == "svg" else b"\x89PNG") and len(data) > 8_000
    with pytest.raises(Error, match="expected a file that ends in"):
        profile.draw(tmp_path / "p.nothing")


def test_picture_says_what_it_shows(profile, tmp_path):
    """Titles, axes with numbers, a legend: as text, which an SVG keeps."""
    pytest.importorskip("matplotlib")
    profile.draw(tmp_path / "p.svg", "A100")
    texts = [each.text for each in xml.parse(tmp_path / "p.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"warp instructions", "source line", "sectors of 32 bytes", "wavefronts", "resource", "arithmetic"} <= set(
        texts
    )
    assert "time that the resource needs at least" in texts and "warp instructions by source line" in texts
    assert any(each.startswith("least time on A100") for each in texts) and texts.count("0") >= 3


def test_command(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text(kernel(BODY, shared=64 * 128))
    command = [sys.executable, "-m", "weft.cli", "sim", str(path), "--entry", "k", "--block", "64"]
    command += ["--arg", "f32[2048]=zeros", "--schedules", "2", "--limit", "100000"]
    environment = {**os.environ, "PYTHONPATH": str(Path(simulator.__file__).parents[2])}
    for extra in (["--profile"], ["--profile", str(tmp_path / "p.json"), "--gpu", "H100"]):
        done = subprocess.run(command + extra, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "p.json").read_text())["roofline"]["gpu"].startswith("H100")
    bad = subprocess.run([*command, "--gpu", "V100"], capture_output=True, text=True, env=environment, check=False)
    assert bad.returncode != 0 and "expected one of A100" in bad.stderr
    stuck = kernel("L: ld.volatile.global.u32 %r1, [%d0]; add.u32 %r2, %r2, 1; setp.eq.u32 %p1, %r1, 9; @!%p1 bra L;")
    report = simulator.launch(stuck, "k", 1, 32, [np.zeros(32, np.uint32)], checks="none", limit=5000)
    assert [finding.kind for finding in report.findings] == ["deadlock"]
