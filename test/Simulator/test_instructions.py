# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Instructions that compilers emit rarely: each gives what NumPy gives."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel


def halves(words: np.ndarray) -> np.ndarray:
    return words.view(np.float16).astype(np.float32)


def bfloats(words: np.ndarray) -> np.ndarray:
    return (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def pairs(which: np.ndarray, yes: int) -> np.ndarray:
    return np.where(which, yes, 0).astype(np.uint16).view(np.uint32)


# %r1, %r2 and %r3 are random words; the result is %r4.
CASES = {
    "set.gt.f16x2.f16x2 %r4, %r1, %r2;": lambda a, b, c: pairs(halves(a) > halves(b), 0x3C00),
    "set.neu.f16x2.f16x2 %r4, %r1, %r1;": lambda a, b, c: pairs(np.isnan(halves(a)), 0x3C00),
    "set.le.u32.f16x2 %r4, %r1, %r2;": lambda a, b, c: pairs(halves(a) <= halves(b), 0xFFFF),
    "set.lt.bf16x2.bf16x2 %r4, %r1, %r2;": lambda a, b, c: pairs(bfloats(a) < bfloats(b), 0x3F80),
    "set.num.s32.bf16x2 %r4, %r1, %r2;": lambda a, b, c: pairs(~np.isnan(bfloats(a) + bfloats(b) * 0), 0xFFFF),
    "setp.lt.u32 %p1, %r1, %r2; lop3.or.b32 %r5|%p2, %r1, %r2, %r3, 0x80, %p1; selp.u32 %r4, %r5, 1, %p2;": (
        lambda a, b, c: np.where((a & b & c != 0) | (a < b), a & b & c, 1)
    ),
    "setp.lt.u32 %p1, %r1, %r2; lop3.and.b32 _|%p2, %r1, %r2, %r3, 0x01, !%p1; selp.u32 %r4, 7, 1, %p2;": (
        lambda a, b, c: np.where((~(a | b | c) != 0) & (a >= b), 7, 1)
    ),
    """createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %d3, [%d0], 64, 64;
       createpolicy.cvt.L2.b64 %d4, 3;
       atom.global.add.L2::cache_hint.u32 %r5, [%d1], %r2, %d3; red.global.xor.L2::cache_hint.b32 [%d1], %r3, %d4;
       ld.mmio.relaxed.sys.global.u32 %r4, [%d1]; st.mmio.relaxed.sys.global.u32 [%d1], %r4;""": (
        lambda a, b, c: (a + b) ^ c
    ),
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: text.split()[0])
def test_instruction(text):
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    words = rng.integers(0, 1 << 32, (3, 64), dtype=np.uint64).astype(np.uint32)
    words[1, ::5] = words[0, ::5]
    load = "ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+256]; ld.global.u32 %r3, [%d1+512];\n"
    x = words.copy()
    report = simulator.launch(kernel(load + text + "\nst.global.u32 [%d1], %r4;"), "k", 1, 64, [x])
    assert not report.findings, list(map(str, report.findings))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(x[0], CASES[text](*words))


def test_a_loop_around_compare_and_swap_may_start_from_a_weak_read():
    body = """
      ld.global.u32 %r1, [%d0];
    L: mov.u32 %r2, %r1; add.u32 %r3, %r2, 3; atom.global.cas.b32 %r1, [%d0], %r2, %r3;
      setp.ne.u32 %p1, %r1, %r2; @%p1 bra L;"""
    for seed in range(6):
        x = np.zeros(1, np.uint32)
        report = simulator.launch(kernel(body), "k", 2, 64, [x], seed=seed)
        assert not report.findings and x[0] == 3 * 128, list(map(str, report.findings))


def test_atomics_after_a_barrier_after_a_plain_read():
    body = """
      mov.u32 %r1, s; setp.ne.u32 %p1, %r0, 0; @!%p1 st.shared.u32 [%r1], %r0; bar.sync 0;
      ld.shared.u32 %r2, [%r1]; bar.sync 0;
      atom.shared.add.u32 %r3, [%r1], 1; bar.sync 0;
      ld.shared.u32 %r4, [%r1]; st.global.u32 [%d1], %r4;"""
    x = np.zeros(64, np.uint32)
    report = simulator.launch(kernel(body, shared=16), "k", 1, 64, [x])
    assert not report.findings and (x == 64).all(), list(map(str, report.findings))


@pytest.mark.parametrize("byte", range(4))
def test_a_flag_of_one_byte_publishes(byte):
    """As cuda::atomic_ref<unsigned char>: stored by a compare-and-swap of the word, read as a half."""
    body = f"""
      mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 1; @%p1 bra R;
      st.global.u32 [%d0+8], 42; ld.relaxed.gpu.global.u32 %r2, [%d0];
    C: or.b32 %r3, %r2, {1 << 8 * byte}; atom.cas.release.gpu.global.b32 %r4, [%d0], %r2, %r3;
      setp.eq.u32 %p2, %r4, %r2; mov.u32 %r2, %r4; @!%p2 bra C;
      st.release.gpu.global.b16 [%d0+4], 1; st.relaxed.gpu.global.b16 [%d0+6], 1; bra E;
    R: ld.acquire.gpu.global.b16 %h1, [%d0+{byte // 2 * 2}]; setp.eq.u16 %p2, %h1, 0; @%p2 bra R;
      ld.global.u32 %r5, [%d0+8]; st.global.u32 [%d0+12], %r5;
    E:"""
    for seed in (0, 3):
        x = np.zeros(4, np.uint32)
        report = simulator.launch(kernel(body), "k", 2, 1, [x], seed=seed)
        assert not report.findings and x[3] == 42, list(map(str, report.findings))
