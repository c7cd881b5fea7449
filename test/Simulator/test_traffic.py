# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a launch touches, counted sector by sector, against NumPy; what of it is memory's and what the L2 cache's."""

from __future__ import annotations

import pickle

import hopper_kernels as hopper
import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel
from weft.simulator.cost import _resources
from weft.simulator.profile import Profile
from weft.simulator.traffic import Touched, Traffic, l2_seconds, touched_bytes
from weft.targets import gpu_named, gpus

A100 = gpu_named("A100")

#: %r1: the block's number; %d3: the address of x[at], where `at` is this thread's own entry of a table; %p0: its mark
ADDRESS = """
  ld.param.u64 %d2, [at]; ld.param.u64 %d4, [marks]; ld.param.u64 %d6, [y];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r1, %r1, %r2, %r0;
  mul.wide.u32 %d3, %r1, 4; add.s64 %d5, %d4, %d3; ld.global.u32 %r4, [%d5]; setp.ne.u32 %p0, %r4, 0;
  add.s64 %d5, %d2, %d3; ld.global.u32 %r3, [%d5];
  mul.wide.u32 %d3, %r3, 4; add.s64 %d7, %d6, %d3; add.s64 %d3, %d0, %d3;
"""
PARAMETERS = ".param .u64 x, .param .u64 at, .param .u64 marks, .param .u64 y"


def sectors(array: np.ndarray, indices: np.ndarray) -> int:
    """Different sectors of 32 bytes that elements of an array lie in, whose allocation begins with a sector."""
    return len(np.unique(array.itemsize * np.asarray(indices) // 32))


def of(report: simulator.Report, array: np.ndarray) -> Touched:
    """What was touched of the only allocation of that many bytes."""
    (found,) = (each for each in report.profile.touched if each.sectors == -(-array.nbytes // 32))
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("apart", [1, 3, 97], ids="{} elements apart".format)
def test_touched_sectors_are_those_that_numpy_counts(apart, threads, seed):
    """Loads at drawn addresses, under conditions, of several blocks that share what they read; an atomic reads what it
    changes, and a sector that was touched before counts no more."""
    random = np.random.default_rng(seed)
    x, y = np.zeros(3000, np.uint32), np.zeros(5000, np.uint32)
    at = (random.integers(0, 3000 // apart, (6, 1)) * apart + np.arange(64) * apart).astype(np.uint32) % 3000
    at[5] = random.integers(0, 3000, 64)
    marks = random.integers(0, 2, (6, 64)).astype(np.uint32)
    body = (
        ADDRESS + "@%p0 ld.global.u32 %r5, [%d3]; @!%p0 st.global.u32 [%d7], %r0; @%p0 red.global.add.u32 [%d7], %r0;"
    )
    text = kernel(body, parameters=PARAMETERS)
    report = simulator.launch(text, "k", 6, 64, [x, at, marks, y], threads=threads, checks="none")
    assert not report.findings, report.findings
    on, off = at[marks != 0], at[marks == 0]
    assert (of(report, x).read, of(report, x).written) == (sectors(x, on), 0)
    assert (of(report, y).read, of(report, y).written) == (sectors(y, on), sectors(y, np.concatenate([on, off])))
    once = sum(each.read + each.written for each in report.profile.touched)
    assert touched_bytes(report.profile.touched) == 32 * once
    assert pickle.loads(pickle.dumps(report.profile)).touched == report.profile.touched


def test_bulk_copies_touch_what_they_move(seed):
    """A bulk load reads its bytes, and a reduction reads and writes."""
    x = np.random.default_rng(seed).integers(0, 9, 512).astype(np.uint32)
    body = hopper.INIT + hopper.expect(1024) + hopper.bulk_load(1024) + hopper.wait()
    body += """
  @%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r1], 256;
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group 0;
"""
    report = simulator.launch(hopper.kernel(body), "k", 1, 64, [x])
    assert not report.findings, report.findings
    (found,) = report.profile.touched
    assert (found.read, found.written) == (sectors(x, range(256)), sectors(x, range(64)))
    assert sum(line.added for line in report.profile) == sectors(x, range(64))


REREAD = """
  ld.param.u32 %r2, [passes]; ld.param.u32 %r3, [words]; mov.u32 %r4, 0;
P: mov.u32 %r5, %r0;
W: mul.wide.u32 %d2, %r5, 4; add.s64 %d2, %d0, %d2; ld.global.u32 %r6, [%d2]; add.u32 %r7, %r7, %r6;
  add.u32 %r5, %r5, 128; setp.lt.u32 %p1, %r5, %r3; @%p1 bra W;
  add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r2; @%p1 bra P;
  setp.eq.u32 %p2, %r7, 12345; @%p2 st.global.u32 [%d1], %r7;
"""


@pytest.mark.parametrize("mebibytes", [1, 7])
def test_what_is_read_again_is_the_caches_if_it_holds_it(mebibytes):
    """An A10's L2 cache holds 6 MB: what is larger, and is read in three passes, comes from memory three times."""
    x = np.zeros(mebibytes << 18, np.uint32)
    text = kernel(REREAD, parameters=".param .u64 x, .param .u32 passes, .param .u32 words")
    report = simulator.launch(text, "k", 1, 128, [x, np.uint32(3), np.uint32(len(x))], checks="none")
    a10 = gpu_named("A10")
    roofline = report.profile.roofline(a10)
    bounds = {bound.resource: bound.seconds for bound in roofline.bounds}
    asked, once = 3 * x.nbytes, x.nbytes
    assert roofline.bytes == (once if mebibytes == 1 else asked)
    assert bounds["global memory"] == pytest.approx(roofline.bytes / 600e9)
    assert bounds["L2 cache"] == pytest.approx(asked / (a10.l2_bytes_per_clock * a10.clock * 1e9))
    # the tuner's model has the same two
    resources = _resources(report.figures(), a10)
    assert resources["device memory"] == bounds["global memory"]
    assert resources["L2 cache"] == bounds["L2 cache"]


def test_a_part_of_the_blocks_stands_for_all(seed):
    """Each block reads a tensor that all share, and its own part of another one: of the first there is no more than all
    of it, of the second as many times more as there are blocks."""
    shared, own = np.zeros(256, np.uint32), np.zeros(64 * 256 + 8, np.uint32)
    body = """
  ld.param.u64 %d4, [own]; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 256, %r0;
  mul.wide.u32 %d3, %r2, 4; add.s64 %d3, %d4, %d3; ld.global.u32 %r3, [%d1]; st.global.u32 [%d3], %r3;
"""
    text = kernel(body, parameters=".param .u64 x, .param .u64 own")
    whole = simulator.launch(text, "k", 64, 256, [shared, own], checks="none", seed=seed)
    few = simulator.launch(text, "k", 64, 256, [shared, own], checks="none", seed=seed, sample=8)
    assert of(few, own).written < of(whole, own).written
    assert touched_bytes(few.profile.touched, 8) == pytest.approx(touched_bytes(whole.profile.touched), rel=0.02)
    bounds = [
        {bound.resource: bound.seconds for bound in report.profile.roofline(A100, times).bounds}
        for report, times in ((whole, 1), (few, 8))
    ]
    assert bounds[0].keys() == bounds[1].keys()
    for resource, seconds in bounds[0].items():
        assert bounds[1][resource] == pytest.approx(seconds, rel=0.02), resource


def test_atomics_keep_the_cache_busy_longer_and_memory_twice():
    assert l2_seconds(100, 100, A100) == pytest.approx(3.6 * l2_seconds(100, 0, A100))
    assert Traffic(100, 100, 6400, 6400).memory_bytes(A100) == 6400
    assert Traffic(100, 0, 6400, 6400).memory_bytes(A100) == 3200, "no more than is asked for"


@pytest.mark.parametrize("gpu", gpus().values(), ids=lambda gpu: gpu.name)
def test_memory_gives_no_less_than_is_touched(gpu, seed):
    """The bytes lie between those touched and those asked for, and more of anything is never less."""
    random = np.random.default_rng(seed)
    for _ in range(200):
        once = float(gpu.l2_bytes * random.uniform(0.1, 3))
        asked = once / 32 * random.uniform(1, 20)
        found = Traffic(asked, 0, once, once).memory_bytes(gpu)
        assert once <= found <= 32 * asked
        assert found == (once if once <= gpu.l2_bytes else 32 * asked)
        more = random.uniform(1, 2)
        assert Traffic(asked * more, 0, once, once).memory_bytes(gpu) >= found
        assert Traffic(asked * more, 0, once * more, once * more).memory_bytes(gpu) >= found


def test_lines_without_what_they_touch_are_memorys_alone():
    """Of a profile that was made by hand nothing is known of what its lines read again."""
    report = simulator.launch(kernel("ld.global.u32 %r1, [%d1];"), "k", 1, 32, [np.zeros(32, np.uint32)])
    asked = 32 * report.counters["global_sectors_read"]
    assert Profile("k", list(report.profile)).roofline(A100).bytes == asked
