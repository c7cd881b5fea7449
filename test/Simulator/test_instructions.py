# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Instructions that compilers emit rarely: each gives what NumPy gives."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import weft.simulator as simulator
from snippets import kernel, line_of
from weft.compiler.ptxas import assemble, find_tool


def halves(words: np.ndarray) -> np.ndarray:
    return words.view(np.float16).astype(np.float32)


def bfloats(words: np.ndarray) -> np.ndarray:
    return (words.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def pairs(which: np.ndarray, yes: int) -> np.ndarray:
    return np.where(which, yes, 0).astype(np.uint16).view(np.uint32)


def low24(words: np.ndarray, signed: bool) -> np.ndarray:
    """The low 24 bits, as int64."""
    low = (words & 0xFFFFFF).astype(np.int64)
    return np.where(low >> 23 & signed, low - (1 << 24), low)


def product24(a: np.ndarray, b: np.ndarray, signed: bool) -> np.ndarray:
    """Bits 47:16 of the product of the low 24 bits, as int64."""
    high = low24(a, signed) * low24(b, signed) >> 16
    return high if signed else high & 0xFFFFFFFF


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
    "mad24.hi.u32 %r4, %r1, %r2, %r3;": lambda a, b, c: product24(a, b, False) + c & 0xFFFFFFFF,
    "mad24.hi.s32 %r4, %r1, %r2, %r3;": lambda a, b, c: product24(a, b, True) + c & 0xFFFFFFFF,
    "mad24.hi.sat.s32 %r4, %r1, %r2, %r3;": (
        lambda a, b, c: np.clip(product24(a, b, True) + c.view(np.int32), -(2**31), 2**31 - 1) & 0xFFFFFFFF
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


CARRIES = {  # what gives d and the next CC.CF from a, b, c and CC.CF
    "add.cc": lambda a, b, c, f: a + b,
    "addc.cc": lambda a, b, c, f: a + b + f,
    "sub.cc": lambda a, b, c, f: a + (b ^ 0xFFFFFFFF) + 1,
    "subc.cc": lambda a, b, c, f: a + (b ^ 0xFFFFFFFF) + f,
    "mad.lo.cc": lambda a, b, c, f: (a * b & 0xFFFFFFFF) + c,
    "mad.hi.cc": lambda a, b, c, f: (a * b >> 32) + c,
    "madc.lo.cc": lambda a, b, c, f: (a * b & 0xFFFFFFFF) + c + f,
    "madc.hi.cc": lambda a, b, c, f: (a * b >> 32) + c + f,
}


def test_carry_flags_pass_between_sums_differences_and_products():
    """In any order: a difference leaves 1 where it borrowed nothing, and takes 1 as "nothing borrowed before"."""
    rng = np.random.default_rng(24)
    for _ in range(12):
        names = [str(rng.choice(["add.cc", "sub.cc", "mad.lo.cc"])), *rng.choice(list(CARRIES), 15)]
        words = rng.choice([0, 1, 2**31, 2**32 - 1, *rng.integers(0, 2**32, 4)], (3, 32)).astype(np.uint32)
        code, want = [], []
        a, b, c = (row.astype(object) for row in words)
        flag = np.zeros(32, object)
        for i, name in enumerate(names):
            third = ", %r3" if name.startswith("mad") else ""
            code.append(f"{name}.u32 %r1, %r1, %r2{third}; st.global.u32 [%d1+{128 * (3 + i)}], %r1;")
            total = CARRIES[name](a, b, c, flag)
            a, flag = total & 0xFFFFFFFF, total >> 32
            want.append(a.astype(np.uint32))
        load = "ld.global.u32 %r1, [%d1]; ld.global.u32 %r2, [%d1+128]; ld.global.u32 %r3, [%d1+256];\n"
        x = np.concatenate([words, np.zeros((16, 32), np.uint32)])
        report = simulator.launch(kernel(load + "\n".join(code)), "k", 1, 32, [x])
        assert not report.findings, list(map(str, report.findings))
        np.testing.assert_array_equal(x[3:], want, err_msg=" ".join(names))


def test_a_carry_that_nothing_set():
    text = kernel("addc.u32 %r4, %r0, %r0;\nst.global.u32 [%d1], %r4; // BUG")
    report = simulator.launch(text, "k", 1, 32, [np.zeros(64, np.uint32)])
    assert [(found.kind, found.line) for found in report.findings] == [("uninitialised", line_of(text, "// BUG"))]
    twin = kernel("add.cc.u32 %r4, %r0, %r0; addc.u32 %r4, %r0, %r0; st.global.u32 [%d1], %r4;")
    assert not simulator.launch(twin, "k", 1, 32, [np.zeros(64, np.uint32)]).findings


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


MIXED = {
    "add.rn.f32.{t} %f3, %h1, %f2;": lambda a, b, c: a + c,
    "add.f32.{t} %f3, %h1, %f2;": lambda a, b, c: a + c,
    "sub.rn.f32.{t} %f3, %h1, %f2;": lambda a, b, c: a - c,
    "sub.sat.f32.{t} %f3, %h1, %f2;": lambda a, b, c: np.clip(a - c, 0, 1),
    "fma.rn.f32.{t} %f3, %h1, %h2, %f2;": lambda a, b, c: a * b + c,
    "fma.rz.f32.{t} %f3, %h1, %h2, %f2;": lambda a, b, c: toward_zero(a * b + c),
}


def toward_zero(exact: np.ndarray) -> np.ndarray:
    """float64 to float32 without rounding up."""
    near = exact.astype(np.float32)
    return np.where(abs(near) > abs(exact), np.nextafter(near, np.float32(0)), near)


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
@pytest.mark.parametrize("text", MIXED, ids=lambda text: text.split(".{t}")[0])
def test_mixed_precision(text, narrow):
    """f32 arithmetic on f16 and bf16 (PTX 8.6): one rounding of the exact result."""
    random = np.random.default_rng(zlib.crc32(text.encode()))
    words = random.standard_normal((64, 2)).astype(np.float32)
    bits = words.astype(np.float16).view(np.uint16) if narrow == "f16" else (words.view(np.uint32) >> 16)
    bits = bits.astype(np.uint16)
    wide = bits.view(np.float16).astype(np.float64) if narrow == "f16" else bfloats(bits).astype(np.float64)
    c = random.standard_normal(64).astype(np.float32)
    packed = bits.astype(np.uint32)
    x = np.stack([packed[:, 0] | packed[:, 1] << 16, c.view(np.uint32)], 1)
    body = f"""
      mad.wide.u32 %d1, %r0, 8, %d0;
      ld.global.v2.b32 {{%r1, %r2}}, [%d1];
      mov.b32 {{%h1, %h2}}, %r1;
      mov.b32 %f2, %r2;
      {text.format(t=narrow)}
      st.global.f32 [%d1], %f3;"""
    ptx = kernel(body).replace(".version 8.0", ".version 8.7").replace("sm_80", "sm_120")
    report = simulator.launch(ptx, "k", 1, 64, [x])
    assert not report.findings
    # In float64, sums and products of two f32 are exact; a product's sum is rounded, by far less than in f32.
    expected = MIXED[text](wide[:, 0], wide[:, 1], c.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(x[:, 0].copy().view(np.float32), expected, rtol=1.2e-7 if "fma" in text else 0, atol=0)
    if find_tool("ptxas"):
        assemble(ptx, "sm_120")


def hopper(body: str) -> str:
    return kernel(body).replace(".version 8.0", ".version 8.4").replace("sm_80", "sm_90a")


@pytest.mark.parametrize("spelling", ["relu.s16x2", "s16x2.relu"], ids=["ISA", "nvcc"])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_pairs_of_integers_not_below_zero(operation, spelling):
    x = np.random.default_rng(9).integers(0, 2**32, (64, 2), np.uint32)
    a, b = (x[:, i].copy().view(np.int16) for i in range(2))
    expected = np.maximum(0, {"min": np.minimum, "max": np.maximum}[operation](a, b))
    ptx = hopper(f"""
      mad.wide.u32 %d1, %r0, 8, %d0;
      ld.global.v2.b32 {{%r1, %r2}}, [%d1];
      membar.proxy.alias;
      {operation}.{spelling} %r3, %r1, %r2;
      st.global.u32 [%d1], %r3;""")
    assert not simulator.launch(ptx, "k", 1, 64, [x]).findings
    assert (x[:, 0].copy().view(np.int16) == expected).all()
    if find_tool("ptxas"):
        assemble(ptx, "sm_90a")


#: Type, elements that the type's registers hold, and the lengths of its vectors.
VECTORS = {
    "f32": (1, (2, 4)),
    "f16": (1, (2, 4, 8)),
    "bf16": (1, (2, 4, 8)),
    "f16x2": (2, (2, 4)),
    "bf16x2": (2, (2, 4)),
}


@pytest.mark.parametrize("operation", ["add", "min", "max"])
@pytest.mark.parametrize(("kind", "length"), [(kind, n) for kind, (_, all) in VECTORS.items() for n in all])
@pytest.mark.parametrize("spelling", ["{op}{noftz}.v{n}.{t}", "v{n}.{t}.{op}{noftz}"], ids=["ISA", "assembler"])
def test_vector_atomics(operation, kind, length, spelling):
    """atom and red of vectors of sm_90: every element changes for itself, and `atom` gives what was there."""
    if kind == "f32" and operation != "add":
        pytest.skip("vectors of f32 are only added")
    random = np.random.default_rng(zlib.crc32(f"{operation} {kind} {length}".encode()))
    count = length * VECTORS[kind][0]
    numbers = random.integers(-8, 9, (2, 64, count)).astype(np.float32)  # sums are exact
    letter = "f" if kind == "f32" else "r" if kind.endswith("x2") else "h"
    names = [f"%{letter}{1 + i}" for i in range(length)]
    registers = ", ".join(names)
    bits = 16 if kind in ("f16", "bf16") else 32
    load = "".join(f"ld.global.b{bits} {name}, [%d2+{bits // 8 * i}]; " for i, name in enumerate(names))
    store = "".join(f"st.global.b{bits} [%d2+{bits // 8 * i}], {name}; " for i, name in enumerate(names))
    modifiers = spelling.format(op=operation, noftz="" if kind == "f32" else ".noftz", n=length, t=kind)
    stride = length * bits // 8
    ptx = hopper(f"""
      mad.wide.u32 %d2, %r0, {stride}, %d0;
      {load}
      and.b32 %r20, %r0, 3; mad.wide.u32 %d3, %r20, {stride}, %d0;
      setp.lt.u32 %p1, %r0, 32;
      @%p1 red.relaxed.gpu.global.{modifiers} [%d3+{64 * stride}], {{{registers}}};
      @!%p1 atom.global.{modifiers} {{{registers}}}, [%d3+{64 * stride}], {{{registers}}};
      @!%p1 bra E;
      bra D;
      E: {store}
      D:""")

    def stored(values: np.ndarray) -> np.ndarray:
        if kind == "f32":
            return values
        return values.astype(np.float16) if kind.startswith("f16") else (values.view(np.uint32) >> 16).astype(np.uint16)

    def read(values: np.ndarray) -> np.ndarray:
        return bfloats(values) if kind.startswith("bf16") else values.astype(np.float32)

    x = stored(np.concatenate([numbers[0], numbers[1, :4]]))
    report = simulator.launch(ptx, "k", 1, 64, [x])
    assert not report.findings
    combined = {"add": np.sum, "min": np.min, "max": np.max}[operation]
    seen = read(x)
    for place in range(4):
        rows = np.concatenate([numbers[1, place : place + 1], numbers[0, place::4]])
        assert (seen[64 + place] == combined(rows, axis=0)).all()
        # In order, a lane of the second warp sees what its predecessors left.
        before = [combined(rows[: 1 + 8 + i], axis=0) for i in range(8)]
        assert (seen[32 + place : 64 : 4] == before).all()
    if operation == "add" and find_tool("ptxas"):
        assemble(ptx, "sm_90a")


def test_vector_atomics_are_refused_before_hopper_and_misaligned_found():
    body = "red.global.add.v4.f32 [%d0+8], {%f1, %f2, %f3, %f4};"
    with pytest.raises(simulator.SimulatorError, match=r"line 16.*'red.global.add.v4.f32' on 'sm_80'"):
        simulator.launch(kernel(body), "k", 1, 1, [np.zeros(8, np.float32)])
    report = simulator.launch(hopper(f"mov.f32 %f1, 0f00000000; {body}"), "k", 1, 1, [np.zeros(8, np.float32)])
    assert report.findings[0].kind == "misaligned" and "no multiple of 16" in report.findings[0].message


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomics_on_128_bits(space, seed):
    """A sum by compare-and-swaps of both halves, and an exchange; blocks of the grid run at the same time."""
    place = "[%d0]" if space == "global" else "[s]"
    ptx = hopper(f"""
      .reg .b128 %q<4>; .shared .align 16 .b8 s[16];
      mov.u64 %d8, 0; st.shared.u64 [s], %d8; st.shared.u64 [s+8], %d8;
      bar.sync 0;
      cvt.u64.u32 %d7, %r0;
      mov.b128 %q1, {{%d8, %d8}};
      L: mov.b128 {{%d4, %d5}}, %q1;
      add.u64 %d4, %d4, %d7; sub.u64 %d5, %d5, %d7; mov.b128 %q2, {{%d4, %d5}};
      mov.b128 %q3, %q1;
      atom.{space}.cas.b128 %q1, {place}, %q3, %q2;
      mov.b128 {{%d4, %d5}}, %q1; mov.b128 {{%d2, %d3}}, %q3;
      setp.ne.u64 %p1, %d4, %d2; @%p1 bra L;
      bar.sync 0;
      setp.ne.u32 %p2, %r0, 0; @%p2 ret;
      mov.b128 %q2, {{%d7, %d8}}; atom.shared.cas.b128 _, [s], %q1, %q1;
      mov.u32 %r1, %ctaid.x; mad.wide.u32 %d6, %r1, 16, %d0;
      atom.shared.exch.b128 %q1, [s], %q2; mov.b128 {{%d4, %d5}}, %q1; atom.shared.exch.b128 _, [s], %q1;
      st.global.v2.u64 [%d6+16], {{%d4, %d5}};""")
    blocks = 3
    x = np.zeros((1 + blocks, 2), np.uint64)
    report = simulator.launch(ptx, "k", blocks, 64, [x], seed=seed)
    assert not report.findings, [str(each) for each in report.findings]
    total = np.uint64(64 * 63 // 2)
    expected = np.array([total, np.uint64(2**64 - int(total))])
    if space == "global":
        assert (x[0] == expected * np.uint64(blocks)).all() and (x[1:] == 0).all()
    else:
        assert (x[0] == 0).all() and (x[1:] == expected).all()
    if find_tool("ptxas"):
        assemble(ptx, "sm_90a")


PAIRS = {
    "add.f32x2 {d}, {a}, {b};": lambda a, b, c: a + b,
    "add.rz.f32x2 {d}, {a}, {b};": lambda a, b, c: toward_zero(a + b),
    "sub.rn.f32x2 {d}, {a}, {b};": lambda a, b, c: a - b,
    "mul.f32x2 {d}, {a}, {b};": lambda a, b, c: a * b,
    "fma.rn.f32x2 {d}, {a}, {b}, {c};": lambda a, b, c: a * b + c,
}


def blackwell(body: str) -> str:
    return kernel(body).replace(".version 8.0", ".version 8.8").replace("sm_80", "sm_120")


@pytest.mark.parametrize("text", PAIRS, ids=lambda text: text.split(" ")[0])
def test_pairs_of_float32(text, seed):
    """Both halves of a register of 64 bits (PTX 8.6): one rounding of the exact result."""
    x = np.random.default_rng(seed).standard_normal((64, 6)).astype(np.float32)
    a, b, c = (x[:, 2 * i : 2 * i + 2].astype(np.float64) for i in range(3))
    ptx = blackwell(f"""
      mad.wide.u32 %d1, %r0, 24, %d0;
      ld.global.b64 %d2, [%d1]; ld.global.b64 %d3, [%d1+8]; ld.global.b64 %d4, [%d1+16];
      {text.format(d="%d5", a="%d2", b="%d3", c="%d4")}
      st.global.b64 [%d1], %d5;""")
    report = simulator.launch(ptx, "k", 1, 64, [x])
    assert not report.findings
    # In float64, sums and products of two f32 are exact; a product's sum is rounded, by far less than in f32.
    expected = PAIRS[text](a, b, c).astype(np.float32)
    np.testing.assert_allclose(x[:, :2], expected, rtol=1.2e-7 if "fma" in text else 6e-8, atol=0)
    with pytest.raises(simulator.SimulatorError, match="on 'sm_90'"):
        simulator.launch(ptx.replace("sm_120", "sm_90"), "k", 1, 64, [x])
    if find_tool("ptxas"):
        assemble(ptx, "sm_120")


@pytest.mark.parametrize("modifiers", ["", ".NaN", ".abs", ".ftz.NaN.abs"])
@pytest.mark.parametrize("operation", ["min", "max"])
def test_the_least_and_greatest_of_three(operation, modifiers, seed):
    """PTX 8.8: a NaN is left out unless .NaN asks for it; .abs compares magnitudes and gives one."""
    x = np.random.default_rng(seed).standard_normal((64, 3)).astype(np.float32)
    x[:8] = np.nan
    x[0, 1], x[1, 0], x[2, 2], x[3, 1:] = 1, -2, 3, (4, -5)
    given = np.abs(x) if "abs" in modifiers else x.copy()
    keep = {"min": np.minimum if "NaN" in modifiers else np.fmin, "max": np.maximum if "NaN" in modifiers else np.fmax}
    expected = keep[operation].reduce(given, axis=1)
    ptx = blackwell(f"""
      mad.wide.u32 %d1, %r0, 12, %d0;
      ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+4]; ld.global.f32 %f3, [%d1+8];
      {operation}{modifiers}.f32 %f4, %f1, %f2, %f3;
      st.global.f32 [%d1], %f4;""")
    assert not simulator.launch(ptx, "k", 1, 64, [x]).findings
    np.testing.assert_array_equal(x[:, 0], expected)
    with pytest.raises(simulator.SimulatorError, match="on 'sm_90'"):
        simulator.launch(ptx.replace("sm_120", "sm_90"), "k", 1, 64, [x])
    if find_tool("ptxas"):
        assemble(ptx, "sm_120")
