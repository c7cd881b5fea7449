# Part of Weft. SPDX-License-Identifier: Apache-2.0

"""Planted bugs, each reported as what it is at its line, and each beside a corrected twin that is clean."""

from __future__ import annotations

import collections
import pathlib
import re

import numpy as np
import pytest
import weft.simulator as simulator
from planted import COMPILED
from planted.by_hand import ARRIVE, COPY, EXCHANGE, MBARRIER, PLANTS, WAIT, Plant
from snippets import HEADER, REGISTERS, kernel, line_of


def run(text: str, plant: Plant, **options) -> simulator.Report:
    x = np.zeros(plant.elements, np.uint32) if plant.zero else np.arange(plant.elements, dtype=np.uint32)
    return simulator.launch(text, "k", plant.grid, plant.block, [x], **options)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_planted_bug_is_found_and_its_twin_is_clean(plant):
    text = plant.faulty
    report = run(text, plant)
    found = [finding for finding in report.findings if finding.kind == plant.kind]
    assert found, f"expected {plant.kind}, but got {[str(f) for f in report.findings]}"
    assert not plant.mark or line_of(text, plant.mark) in {finding.line for finding in found}, [
        str(finding) for finding in found
    ]
    assert all(finding.kernel == "k" and finding.cta[0] < plant.grid for finding in found)
    kinds = {finding.kind for finding in report.findings} - set(plant.also)
    assert kinds == {plant.kind}, [str(finding) for finding in report.findings]

    for seed in (0, 5):
        clean = run(plant.twin, plant, seed=seed)
        assert not clean.findings, [str(finding) for finding in clean.findings]


def test_every_kind_has_plants_of_both_origins():
    """Each kind of docs/Simulator.md: five planted by hand at least, and two that nvcc compiled."""
    page = (pathlib.Path(__file__).parents[2] / "docs" / "Simulator.md").read_text()
    findings = page[page.index("\n## Findings") : page.index("\n## Profile")]
    kinds = re.findall(r"^### ([\w-]+)$", findings, re.M)
    assert len(kinds) >= 14
    by_hand, compiled = (collections.Counter(plant.kind for plant in plants) for plants in (PLANTS, COMPILED))
    few = [
        f"{kind}: {by_hand[kind]} by hand, {compiled[kind]} compiled"
        for kind in kinds
        if by_hand[kind] < 5 or compiled[kind] < 2
    ]
    assert not few, few
    assert set(by_hand) | set(compiled) <= set(kinds), "every kind that is reported has its section"
    for plants in (PLANTS, COMPILED):
        names = [plant.name for plant in plants]
        assert len(names) == len(set(names))


def test_a_phase_that_never_ends_says_who_is_missing():
    text = kernel(MBARRIER.replace("64;", "65;") + ARRIVE + WAIT, shared=16)
    report = run(text, PLANTS[0])
    assert {finding.kind for finding in report.findings} == {"deadlock", "mbarrier-misuse"}
    assert {finding.line for finding in report.findings} == {line_of(text, "W:")}
    for finding in report.findings:
        assert "phase 0 and has 64 of 65 arrivals" in finding.message, finding.message


def test_both_sides_of_a_race_are_named():
    plant = next(plant for plant in PLANTS if plant.name == "read before the barrier")
    text = kernel(plant.body, shared=plant.shared)
    write, read = line_of(text, "st.shared", 1), line_of(text, "// BUG")
    for finding in run(text, plant).findings:
        other = {write: read, read: write}[finding.line]
        assert f"at line {other}" in finding.other and f"warp {1 - finding.warp}," in finding.other


def test_source_line_through_loc():
    text = kernel("ld.global.u32 %r1, [%d1+4];").replace("  ret;", "  ret;", 1)
    text = text.replace("ld.global.u32 %r1", ".loc 1 42 3\n  ld.global.u32 %r1") + '.file 1 "add.py"\n'
    plant = PLANTS[0]
    assert run(text, plant).findings[0].source == "add.py:42"


def test_one_value_from_many_threads_is_an_advisory():
    text = kernel(EXCHANGE + "mov.u32 %r9, 7; st.shared.u32 [%r1], %r9;", shared=256)
    report = run(text, PLANTS[0])
    assert not report.findings and report.advisories[0].kind == "shared-race"


def test_checks_can_be_chosen():
    plant = next(plant for plant in PLANTS if plant.name == "two writers")
    text = kernel(plant.body, shared=plant.shared)
    assert not run(text, plant, checks="none").findings
    assert not run(text, plant, checks="uninitialised,async").findings
    assert run(text, plant, checks="races").findings
    half = next(plant for plant in PLANTS if plant.name == "barrier in half a warp")
    assert not run(kernel(half.body), half, checks="races,async,uninitialised").findings
    out = PLANTS[0]
    assert run(kernel(out.body), out, checks="none").findings, "bounds are always checked"


def test_copies_are_visible_only_after_the_wait():
    body = (
        COPY
        + """
      mov.u32 %r7, 99; st.shared.v4.u32 [%r3], {%r7, %r7, %r7, %r7};
      cp.async.cg.shared.global [%r3], [%d2], 16; cp.async.commit_group;
      ld.shared.u32 %r8, [%r3];
      cp.async.wait_group 0;
      ld.shared.u32 %r9, [%r3];
      st.global.v2.u32 [%d2], {%r8, %r9};"""
    )
    x = np.arange(128, dtype=np.uint32)
    simulator.launch(kernel(body, shared=512), "k", 1, 32, [x], checks="none")
    assert (x[0::4] == 99).all() and (x[1::4] == np.arange(0, 128, 4)).all()


SPIN = """
L: atom.global.cas.b32 %r1, [%d0], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra L;
  ld.volatile.global.u32 %r2, [%d0+4];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%d0+4], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%d0], 0;"""


def test_spin_lock_inside_a_warp_ends():
    x = np.zeros(64, np.uint32)
    report = simulator.launch(kernel(SPIN), "k", 3, 64, [x])
    assert x[1] == 3 * 64 and x[0] == 0 and not report.findings


def test_grid_barrier_ends():
    body = """
      setp.ne.u32 %p1, %r0, 0; @%p1 bra E;
      atom.global.add.u32 %r1, [%d0], 1;
    L: ld.volatile.global.u32 %r2, [%d0];
      setp.lt.u32 %p2, %r2, 20; @%p2 bra L;
    E: bar.sync 0;"""
    x = np.zeros(64, np.uint32)
    for threads in (1, 2):
        x[:] = 0
        report = simulator.launch(kernel(body), "k", 20, 64, [x], threads=threads)
        assert x[0] == 20 and not report.findings


def test_bank_conflicts_are_counted():
    body = "mov.u32 %r1, s; mul.lo.u32 %r2, %r0, STRIDE; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %r0;"
    for stride, wavefronts in ((4, 1), (8, 2), (128, 32), (132, 1)):
        text = kernel(body.replace("STRIDE", str(stride)), shared=32 * 132)
        counters = simulator.launch(text, "k", 1, 32, [np.zeros(64, np.uint32)]).counters
        assert (counters["shared_wavefronts"], counters["shared_wavefronts_ideal"]) == (wavefronts, 1), stride


def test_sectors_are_counted():
    body = "mul.wide.u32 %d2, %r0, STRIDE; add.s64 %d2, %d0, %d2; ld.global.u32 %r1, [%d2];"
    for stride, sectors in ((4, 4), (8, 8), (32, 32), (0, 1)):
        counters = simulator.launch(
            kernel(body.replace("STRIDE", str(stride))), "k", 1, 32, [np.zeros(256, np.uint32)]
        ).counters
        assert counters["global_sectors_read"] == sectors


def test_header_is_a_module_of_its_own():
    text = HEADER + ".visible .entry k()\n{" + REGISTERS + "ret;\n}\n"
    assert simulator.launch(text, "k", 1, 1, []).counters["warp_instructions"] == 1
