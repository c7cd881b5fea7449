# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Copies of thousands of bytes where something else happened to a few of them: found wherever these lie. Lanes that wait
together at mbarriers, of which some may not."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import INIT, MAP, MAPPED, bulk_load, expect, kernel, tensor_load, wait
from snippets import line_of

SIZE = 8192
#: Warp 0 runs first, so that a thread of warp 1 copies.
ISSUER = "setp.eq.u32 %p6, %r0, 32; "
SECOND = expect(SIZE).replace("@%p0", "@%p6") + "ISSUE // BUG\n" + wait(1, label="V")

#: What happens to some bytes between two copies to the same place, and what makes it harmless.
BETWEEN = {
    "read by a thread": ("shared-race", "setp.eq.u32 %p5, %r0, 3; @%p5 ld.shared.u32 %r6, [%r1+AT];", "bar.sync 0;"),
    "written by a thread": (
        "shared-race",
        "setp.eq.u32 %p5, %r0, 3; @%p5 st.shared.u32 [%r1+AT], %r0;",
        "fence.proxy.async.shared::cta; bar.sync 0;",
    ),
    "another copy": (
        "async-overwrite",
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
        "add.u32 %r7, %r1, AT; @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r7], [%d0], 16, [%r3];",
        wait(0, "%r3", "U") + "bar.sync 0;",
    ),
    "sent on its way": (
        "async-overwrite",
        "add.u32 %r7, %r1, AT; add.s64 %d6, %d0, 65536;\n"
        "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d6], [%r7], 16; @%p0 cp.async.bulk.commit_group;",
        "@%p0 cp.async.bulk.wait_group 0; bar.sync 0;",
    ),
}


def launched(between: str, swizzled: bool) -> tuple[str, simulator.Report]:
    x = np.arange(1, 20481, dtype=np.uint32)
    start = INIT + "@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;\nbar.sync 0;\n" + ISSUER
    issue = tensor_load((0, 0), SIZE) if swizzled else bulk_load(SIZE)
    body = start + expect(SIZE) + issue + wait() + between + "\n"
    body += SECOND.replace("ISSUE", issue.replace("@%p0", "@%p6").strip()) + "@%p0 cp.async.bulk.wait_group 0;"
    if not swizzled:
        text = kernel(body, shared=SIZE)
        return text, simulator.launch(text, "k", 1, 64, [x])
    text = kernel(MAPPED + body, parameters=MAP, shared=SIZE)
    mapped = simulator.tensor_map(np.zeros((64, 64), np.uint16), (64, 64), "128B")
    return text, simulator.launch(text, "k", 1, 64, [mapped, x])


@pytest.mark.parametrize("at", [0, 16, 2048, 4112, 8176])
@pytest.mark.parametrize("swizzled", [False, True], ids=["stretch", "box"])
@pytest.mark.parametrize("name", BETWEEN)
def test_a_few_bytes_of_many(name, swizzled, at):
    kind, what, mended = BETWEEN[name]
    what = what.replace("AT", str(at))
    text, report = launched(what, swizzled)
    found = {(each.kind, each.line) for each in report.findings if each.kind != "exit-with-async"}
    assert found == {(kind, line_of(text, "// BUG"))}, list(map(str, report.findings))
    twin = launched(what + "\n" + mended, swizzled)[1]
    assert not twin.findings and not twin.advisories, list(map(str, [*twin.findings, *twin.advisories]))


def test_a_thread_that_writes_without_a_proxy_fence_is_advised_of():
    """However few of the bytes that a copy writes next it wrote."""
    _, what, _ = BETWEEN["written by a thread"]
    for at in (0, 4112, 8188):
        text, report = launched(what.replace("AT", str(at)) + "bar.sync 0;", False)
        assert not report.findings
        assert [(each.kind, each.line) for each in report.advisories] == [
            ("missing-proxy-fence", line_of(text, "// BUG"))
        ]


#: Lanes 0 to 15 wait for one mbarrier, the others for another; `ORDER` lets all know that both were initialised.
TWO = """@%p0 mbarrier.init.shared::cta.b64 [%r2], 1; setp.eq.u32 %p3, %r0, OWNER; @%p3 mbarrier.init.shared::cta.b64 [%r3], 1;
ORDER
@%p0 mbarrier.arrive.shared::cta.b64 _, [%r2]; @%p3 mbarrier.arrive.shared::cta.b64 _, [%r3]; MEET
and.b32 %r5, %r0, 16; setp.eq.u32 %p4, %r5, 0; mov.u32 %r6, %r3; @%p4 mov.u32 %r6, %r2;
W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6], 0; // WAIT
@!%p1 bra W;
st.global.u32 [%d1], %r0;"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("owner", [0, 20])
def test_lanes_that_wait_at_two_mbarriers(owner, seed):
    """A warp's lanes, one by one where they ask for different things."""
    text = TWO.replace("OWNER", str(owner)).replace("ORDER", "bar.sync 0;").replace("MEET", "")
    text = kernel("mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n" + text)
    x = np.zeros(32, np.uint32)
    report = simulator.launch(text, "k", 1, 32, [x], seed=seed)
    assert not report.findings, list(map(str, report.findings))
    np.testing.assert_array_equal(x, np.arange(32))


def test_each_lane_that_may_not_know_an_mbarrier_is_counted():
    """Where waits are relaxed, so that no lane learns anything from another's."""
    text = TWO.replace("OWNER", "0").replace("ORDER", "").replace("MEET", "").replace("parity", "parity.relaxed.cta")
    text = kernel("mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;\n" + text)
    report = simulator.launch(text, "k", 1, 64, [np.zeros(64, np.uint32)])
    assert {(found.kind, found.line) for found in report.findings} == {("shared-race", line_of(text, "// WAIT"))}
    (race,) = report.findings
    assert (race.warp, race.lane, race.count) == (0, 1, 63)  # all but the one that initialised them
