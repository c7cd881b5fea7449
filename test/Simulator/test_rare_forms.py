# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Forms of instructions, and special registers, that compilers emit rarely or never: each gives what the PTX ISA says,
or is refused where ptxas takes what the ISA does not have.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import weft.simulator as simulator
from hopper_kernels import kernel as hopper
from snippets import HEADER, kernel
from weft.compiler.ptxas import assemble, find_tool

#: What GPUs were seen to put outside of a tensor in every 16 bits.
OUTSIDE = 0x7FF7


def widen(name: str, words: np.ndarray) -> np.ndarray:
    if name.startswith("f16"):
        return words.view(np.float16).astype(np.float64)
    return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", ["f16", "bf16", "f16x2", "bf16x2"])
def test_fma_outside_of_a_tensor(name, relu):
    """An OOB NaN of either sign among the operands gives 0, another NaN a NaN."""
    random = np.random.default_rng(3)
    numbers = random.integers(-3, 4, (3, 64)).astype(np.float32)  # results are exact
    words = (
        numbers.astype(np.float16).view(np.uint16)
        if name.startswith("f16")
        else (numbers.view(np.uint32) >> 16).astype(np.uint16)
    )
    words[random.integers(0, 3, 9), range(9)] = OUTSIDE
    words[random.integers(0, 3, 9), range(9, 18)] = OUTSIDE | 0x8000
    words[1, 18:24] = 0x7FFF
    packed = name.endswith("x2")
    bits, register, step = (32, "%r", 128) if packed else (16, "%h", 128)
    body = "" if packed else "mul.wide.u32 %d1, %r0, 2; add.s64 %d1, %d0, %d1;\n"
    body += "".join(f"ld.global.b{bits} {register}{i + 1}, [%d1+{step * i}];\n" for i in range(3))
    body += f"fma.rn.oob{relu}.{name} {register}4, {register}1, {register}2, {register}3; st.global.b{bits} [%d1+{3 * step}], {register}4;"
    x = np.concatenate([words, np.zeros((1, 64), np.uint16)])
    report = simulator.launch(
        hopper(body).replace(
            "%d0, [x];", "%d0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;"
        ),
        "k",
        1,
        32 if packed else 64,
        [x],
    )
    assert not report.findings
    outside = ((words & 0x7FFF) == OUTSIDE).any(0)
    a, b, c = (widen(name, row) for row in words)
    expected = np.where(outside, 0, a * b + c)
    expected = np.where(np.isnan(expected), expected, np.maximum(expected, 0)) if relu else expected
    np.testing.assert_array_equal(widen(name, x[3]), expected)
    assert outside.sum() == 18 and np.isnan(expected).sum() == 6


def rounded(value: Fraction, mode: str) -> float:
    nearest = float(value)
    if mode == "rn" or Fraction(nearest) == value:
        return nearest
    down = nearest if Fraction(nearest) < value else math.nextafter(nearest, -math.inf)
    return {"rm": down, "rp": math.nextafter(down, math.inf)}.get(
        mode, down if value > 0 else math.nextafter(down, math.inf)
    )


@pytest.mark.parametrize("mode", ["", "rn", "rz", "rm", "rp"])
def test_wmma_of_f64_in_a_direction(mode):
    random = np.random.default_rng(5)
    a, b, c = random.standard_normal((8, 4)), random.standard_normal((4, 8)), random.standard_normal((8, 8))
    c[0, 0] = -(a[0] @ b[:, 0])
    x = np.concatenate([a.reshape(-1), b.reshape(-1), c.reshape(-1), np.zeros(64)])
    dot = f".{mode}" if mode else ""
    body = f"""mov.u32 %r1, 4; mov.u32 %r2, 8; .reg .f64 %g<6>;
wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {{%g0}}, [%d0], %r1;
wmma.load.b.sync.aligned.row.m8n8k4.global.f64 {{%g1}}, [%d0+256], %r2;
wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {{%g2, %g3}}, [%d0+512], %r2;
wmma.mma.sync.aligned.row.row.m8n8k4{dot}.f64.f64.f64.f64 {{%g4, %g5}}, {{%g0}}, {{%g1}}, {{%g2, %g3}};
wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%d0+1024], {{%g4, %g5}}, %r2;"""
    report = simulator.launch(kernel(body), "k", 1, 32, [x])
    assert not report.findings
    expected = c.copy()
    for row in range(8):
        for column in range(8):
            for k in range(4):
                exact = Fraction(a[row, k]) * Fraction(b[k, column]) + Fraction(expected[row, column])
                expected[row, column] = rounded(exact, mode or "rn")
    np.testing.assert_array_equal(x[128:].reshape(8, 8), expected)


def test_a_direction_is_of_f64_only():
    body = "wmma.mma.sync.aligned.row.row.m16n16k8.rz.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};"
    with pytest.raises(simulator.SimulatorError, match=r"line 16.*expected '\.rz' of f64 only"):
        simulator.launch(kernel(body), "k", 1, 32, [np.zeros(64)])


def test_vectors_of_special_registers():
    body = """mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid; mov.v4.u32 {%r5, %r6, %r7, %r8}, %ntid; mov.v4.u32 {%r9, %r10, %r11, %r12}, %ctaid;
mov.v4.b32 {%r13, %r14, %r15, %r16}, %nctaid; mad.lo.u32 %r17, %r9, 12, %r1; mad.lo.u32 %r17, %r2, 4, %r17; mad.lo.u32 %r17, %r10, 36, %r17;
mul.wide.u32 %d2, %r17, 64; add.s64 %d2, %d0, %d2;
""" + "".join(f"st.global.u32 [%d2+{4 * i}], %r{i + 1};" for i in range(16))
    x = np.full((6, 3, 4, 16), 99, np.uint32)
    assert not simulator.launch(kernel(body), "k", (3, 2), (4, 3), [x]).findings
    for block in range(6):
        for y in range(3):
            for column in range(4):
                expected = [column, y, 0, 0, 4, 3, 1, 0, block % 3, block // 3, 0, 0, 3, 2, 1, 0]
                assert x[block, y, column].tolist() == expected


def test_fourth_elements_of_special_registers():
    names = ["tid", "ntid", "ctaid", "nctaid"]
    body = "".join(f"mov.u32 %r1, %{name}.w; st.global.u32 [%d0+{4 * i}], %r1;" for i, name in enumerate(names))
    x = np.full(4, 9, np.uint32)
    assert not simulator.launch(kernel(body), "k", 1, 1, [x]).findings
    assert not x.any()
    with pytest.raises(simulator.SimulatorError, match=r"'%laneid\.w' is none"):
        simulator.launch(kernel("mov.u32 %r1, %laneid.w;"), "k", 1, 1, [x])


def test_halves_of_special_registers():
    """What once was of 16 bits is still read as such: the low half."""
    read = ["tid.x", "ntid.x", "ctaid.x", "nctaid.x"]
    body = "".join(
        f"mov.{kind}16 %h1, %{name}; cvt.u32.u16 %r1, %h1; st.global.u32 [%d1+{4 * i}], %r1;"
        for i, (name, kind) in enumerate(zip(read, "ubsu", strict=True))
    )
    start = "mov.u32 %r0, %ctaid.x; setp.lt.u32 %p1, %r0, 65600; @%p1 exit; sub.u32 %r0, %r0, 65600; mov.u32 %r1, %tid.x; mad.lo.u32 %r0, %r0, 4, %r1; mul.wide.u32 %d1, %r0, 16; add.s64 %d1, %d0, %d1;"
    x = np.zeros((2, 4, 4), np.uint32)
    assert not simulator.launch(kernel(start + body), "k", 65602, 4, [x]).findings
    for block in range(2):
        for thread in range(4):
            assert x[block, thread].tolist() == [thread, 4, 64 + block, 66]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "mov.v4.u32 {%r1, %r2, %r3, %r4}, %laneid;",
            "expected a special register of three dimensions, as '%tid', but got '%laneid'",
        ),
        ("mov.v4.u32 {%r1, %r2}, %tid;", "expected a vector of 4 registers"),
        ("mov.u16 %h1, %laneid;", "expected 16 bits, but '%laneid' has 32"),
        ("mov.u32 %r1, %tid;", "'%tid' is none"),
        ("mov.u32 %r1, %pm8;", "'%pm8' is none"),
        ("mov.pred %p1, %laneid;", "expected a predicate register, but got '%laneid'"),
    ],
)
def test_special_registers_that_are_none(body, message):
    with pytest.raises(simulator.SimulatorError, match=f"line 16.*{message}"):
        simulator.launch(kernel(body), "k", 1, 32, [np.zeros(64, np.uint32)])


def test_special_registers_without_meaning_here():
    """Counters that no tool has set, and a launch that is part of no graph: 0."""
    names = [f"%pm{i}" for i in range(8)]
    body = "".join(f"mov.u32 %r1, {name}; st.global.u32 [%d0+{8 * i}], %r1;\n" for i, name in enumerate(names))
    body += "".join(
        f"mov.u64 %d2, {name}; st.global.u64 [%d0+{64 + 8 * i}], %d2;\n"
        for i, name in enumerate([*(f"{each}_64" for each in names), "%current_graph_exec"])
    )
    body += "mov.pred %p1, %is_explicit_cluster; selp.u32 %r2, 7, 5, %p1; st.global.u32 [%d0+136], %r2;"
    for cluster, expected in (((1, 1, 1), 5), ((2, 1, 1), 7)):
        x = np.full(18, 2**40, np.uint64)
        assert not simulator.launch(hopper(body), "k", 2, 1, [x], cluster=cluster).findings
        assert (x[:8] & 0xFFFFFFFF == 0).all() and (x[8:17] == 0).all() and x[17] & 0xFFFFFFFF == expected


@pytest.mark.parametrize("kind", ["texref", "samplerref", "surfref"])
def test_nothing_is_a_texture(kind):
    x = np.zeros(1, np.uint32)
    body = f"istypep.{kind} %p1, %d0; selp.u32 %r1, 3, 4, %p1; st.global.u32 [%d0], %r1;"
    assert not simulator.launch(kernel(body), "k", 1, 1, [x]).findings
    assert x[0] == 4


#: Instructions that give %p1 from %p2 (lanes below 9) and %p3 (below 20).
PREDICATES = {
    "mov.pred %p1, !%p2;": lambda p, q: ~p,
    "mov.pred %p1, !1;": lambda p, q: p & False,
    "not.pred %p1, !%p2;": lambda p, q: p,
    "and.pred %p1, !%p2, %p3;": lambda p, q: ~p & q,
    "and.pred %p1, %p2, !%p3;": lambda p, q: p & ~q,
    "or.pred %p1, !%p2, !%p3;": lambda p, q: ~p | ~q,
    "xor.pred %p1, %p2, !%p3;": lambda p, q: p ^ ~q,
    "@!%p2 xor.pred %p1, !%p2, !%p3;": lambda p, q: p | (~p ^ ~q),
    "setp.eq.and.u32 %p4|%p1, %r0, %r0, !%p3;": lambda p, q: p & False,
    "setp.lt.or.u32 %p1, %r0, 3, !%p3;": lambda p, q: (np.arange(32) < 3) | ~q,
    "setp.lt.xor.s16 %p1, %h1, %h1, !%p3;": lambda p, q: ~q,
    "vote.sync.any.pred %p1, !%p2, -1;": lambda p, q: p | True,
    "barrier.red.and.pred %p1, 0, !%p2;": lambda p, q: p & False,
    "selp.u32 %r2, 1, 0, !%p3; setp.ne.u32 %p1, %r2, 0;": lambda p, q: ~q,
    "set.lt.and.u32.u32 %r2, %r0, 25, !%p3; setp.ne.u32 %p1, %r2, 0;": lambda p, q: (np.arange(32) < 25) & ~q,
    "lop3.or.b32 %r2|%p1, %r0, %r0, %r0, 0, !%p2;": lambda p, q: ~p,
}


@pytest.mark.parametrize("text", PREDICATES)
def test_negated_predicates(text):
    body = f"""mov.b16 %h1, 1; setp.lt.u32 %p2, %r0, 9; setp.lt.u32 %p3, %r0, 20; setp.lt.u32 %p1, %r0, 40;
{text} selp.u32 %r1, 1, 0, %p1; st.global.u32 [%d1], %r1;"""
    x = np.full(32, 9, np.uint32)
    assert not simulator.launch(kernel(body), "k", 1, 32, [x]).findings
    lane = np.arange(32)
    np.testing.assert_array_equal(x, PREDICATES[text](lane < 9, lane < 20))
    if find_tool("ptxas"):
        assemble(kernel(body).replace(".version 8.0", ".version 8.2"), "sm_80")


def test_a_fourth_operand_that_no_second_operation_uses():
    body = "mov.u32 %r3, 9; vset.u32.u32.lt %r1, %r0, %r3, %r3; vadd.u32.u32.u32 %r2, %r0, %r3, %r3; mad.lo.u32 %r1, %r1, 1000, %r2; st.global.u32 [%d1], %r1;"
    x = np.zeros(32, np.uint32)
    assert not simulator.launch(kernel(body), "k", 1, 32, [x]).findings
    lane = np.arange(32)
    np.testing.assert_array_equal(x, (lane < 9) * 1000 + lane + 9)


MALFORMED = [
    # ptxas 13.0 takes the second of B's registers for the first of C's.
    ("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32 {%f0, %f1, %f2, %f3}, {%r1, %r2}, {%r3, %r4}, {%f0, %f1, %f2, %f3};", "expected 1 registers, but got 2"),
    # It stores whatever stands behind the one register.
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], %r2, [%r3];", "expected 2 registers"),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r1], {%r2, %r3}, [%r4];", "expected 1 registers"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_what_ptxas_takes_and_compiles_wrongly(body, message):
    with pytest.raises(simulator.SimulatorError, match=message):
        simulator.launch(
            kernel(body).replace(HEADER, HEADER.replace("sm_80", "sm_90a").replace("8.0", "8.7")),
            "k",
            1,
            32,
            [np.zeros(64)],
        )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(3+4)*2-(1<<2)|0x10", (3 + 4) * 2 - (1 << 2) | 0x10),
        ("-5/2", -2),
        ("-5/2U", (2**64 - 5) // 2),
        ("-7 % 3", -1),
        ("-16>>2", -4),
        ("0xFFFFFFFFFFFFFFF0>>60", 15),
        ("(.u64)-1>>63", 1),
        ("-1<0 ? 6 : 7", 6),
        ("-1<0U ? 6 : 7", 7),
        ("3==3 && 2!=2 || 4>=4", 1),
        ("1 ? 0 ? 4 : 5 : 6", 5),
        ("~0x10&0xFF^3|1", ~0x10 & 0xFF ^ 3 | 1),
        ("WARP_SZ*2+WARP_SZ", 96),
        ("!5+2", 2),
        ("(1<<63)/-1", 1 << 63),
        ("5<=4", 0),
    ],
)
def test_constant_expressions(text, value):
    x = np.zeros(1, np.uint64)
    assert not simulator.launch(kernel(f"mov.u64 %d2, {text}; st.global.u64 [%d0], %d2;"), "k", 1, 1, [x]).findings
    assert x[0] == value % 2**64


@pytest.mark.parametrize("text", [".5", "-.5", ".5e1", "1.", "1.e2", "1e5", "2.5E-1", "-0.0"])
def test_decimal_numbers(text):
    module = kernel(f"mov.f32 %f1, {text}; add.f32 %f1, %f1, .0; st.global.f32 [%d1], %f1;")
    module = module.replace(".visible", f".global .f32 number[2] = {{{text},.25}};\n.visible")
    x = np.full(1, np.nan, np.float32)
    assert not simulator.launch(module, "k", 1, 1, [x]).findings
    assert x[0] == float(text)
    if find_tool("ptxas"):
        assemble(module, "sm_80")


@pytest.mark.parametrize(
    ("text", "message"),
    [("5/0", "expected a divisor other than zero"), ("1 ? 2", "expected ':'"), ("(1", r"expected '\)'")],
)
def test_constants_that_are_none(text, message):
    with pytest.raises(simulator.SimulatorError, match=f"line 16, column .*{message}"):
        simulator.launch(kernel(f"mov.u64 %d2, {text};"), "k", 1, 1, [np.zeros(1, np.uint64)])


FUNCTIONS = """
.visible .func (.param .b32 r) plus(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 100; st.param.b32 [r], %x; ret; }
.visible .func (.param .b32 r) also(.param .b32 a);
.visible .func (.param .b32 r) fib(.param .b32 a) {
  .reg .b32 %x<6>; .reg .pred %p; .param .b32 i; .param .b32 o;
  ld.param.b32 %x1, [a]; mov.u32 %x2, %x1; setp.gt.u32 %p, %x1, 1;
  sub.u32 %x3, %x1, 1; st.param.b32 [i], %x3; @%p call (o), fib, (i); ld.param.b32 %x5, [o]; @%p mov.b32 %x2, %x5;
  sub.u32 %x3, %x1, 2; st.param.b32 [i], %x3; @%p call (o), fib, (i); ld.param.b32 %x4, [o]; @%p add.u32 %x2, %x2, %x4;
  st.param.b32 [r], %x2; ret; }
.alias also, plus;
"""


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize(
    ("guard", "name", "expected"),
    [
        ("", "also", lambda lane: lane + 100),
        ("@%p1 ", "plus", lambda lane: np.where(lane < 9, lane + 100, 7)),
        ("@!%p1 ", "also", lambda lane: np.where(lane < 9, 7, lane + 100)),
        ("@%p1 ", "%d2", lambda lane: np.where(lane < 9, lane + 100, 7)),
        ("@%p1 ", "fib", lambda lane: np.where(lane < 9, np.array([0, 1, 1, 2, 3, 5, 8, 13, 21] + [0] * 23), 7)),
    ],
)
def test_guarded_calls_and_aliases(guard, name, expected, seed):
    body = f"""P: .callprototype (.param .b32 _) _ (.param .b32 _);
.param .b32 i; .param .b32 o; mov.u64 %d2, also; setp.lt.u32 %p1, %r0, 9; mov.u32 %r1, 7;
st.param.b32 [i], %r0; {guard}call (o), {name}, (i){", P" if name[0] == "%" else ""}; ld.param.b32 %r2, [o]; {guard}mov.b32 %r1, %r2; st.global.u32 [%d1], %r1;"""
    text = kernel(body).replace(HEADER, HEADER + FUNCTIONS)
    x = np.zeros(32, np.uint32)
    report = simulator.launch(text, "k", 1, 32, [x], seed=seed)
    assert not report.findings, [str(each) for each in report.findings]
    np.testing.assert_array_equal(x, expected(np.arange(32)))
    if find_tool("ptxas"):
        assemble(text, "sm_80")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("call (%r1), plus, (%r0);", lambda lane: lane + 100),
        ("call (%r1), also, (5);", lambda lane: 105 + 0 * lane),
        ("@%p1 call (%r1), plus, (%r0);", lambda lane: np.where(lane < 9, lane + 100, 7)),
        ("{ .param .b32 i; st.param.b32 [i], 8; call.uni (%r1), plus, (i); }", lambda lane: 108 + 0 * lane),
        ("{ .param .b32 o; call (o), fib, (%r2); ld.param.b32 %r1, [o]; }", lambda lane: 8 + 0 * lane),
    ],
)
def test_calls_by_value(call, expected):
    """Registers and constants stand for variables in the space of parameters."""
    text = kernel(f"setp.lt.u32 %p1, %r0, 9; mov.u32 %r1, 7; mov.u32 %r2, 6; {call} st.global.u32 [%d1], %r1;")
    text = text.replace(HEADER, HEADER + FUNCTIONS)
    x = np.zeros(32, np.uint32)
    assert not simulator.launch(text, "k", 1, 32, [x]).findings
    np.testing.assert_array_equal(x, expected(np.arange(32)))
    if find_tool("ptxas"):
        assemble(text, "sm_80")


def test_what_modules_may_not_say():
    with pytest.raises(simulator.SimulatorError, match=r"line 4.*expected a function, but 'no' is not one"):
        simulator.launch(kernel("").replace(HEADER, HEADER + ".alias also, no;\n"), "k", 1, 1, [np.zeros(1)])
    text = hopper("", attributes=".reqntid 32 .reqnctapercluster 1 .blocksareclusters")
    with pytest.raises(
        simulator.SimulatorError,
        match=r"'\.blocksareclusters' is not supported by the simulator: give the grid in blocks",
    ):
        simulator.launch(text, "k", 1, 32, [np.zeros(1)])


def test_elements_of_arrays():
    """`a[3]` is the address of an element, and what `ld` and `st` access (PTX ISA 6.4.2); indices count elements."""
    body = """.shared .align 8 .u16 t[4][6]; .local .u64 l[3];
st.shared.u16 t[5], 7; mov.u32 %r1, t; ld.shared.u16 %h1, [%r1+10]; cvt.u32.u16 %r2, %h1; st.global.u32 [%d0], %r2;
ld.global.u32 %r3, g[1+1]; st.global.u32 [%d0+4], %r3;
mov.u64 %d2, g[1]; ld.global.u32 %r4, [%d2+4]; st.global.u32 [%d0+8], %r4;
cvta.global.u64 %d3, g[3]; ld.u32 %r5, [%d3]; st.global.u32 [%d0+12], %r5;
st.local.u64 l[2], 9; mov.u64 %d4, l; ld.local.u32 %r6, [%d4+16]; st.global.u32 [%d0+16], %r6;"""
    text = kernel(body).replace(HEADER, HEADER + ".global .u32 g[4] = {1, 2, 3, 4};\n")
    x = np.zeros(5, np.uint32)
    assert not simulator.launch(text, "k", 1, 1, [x]).findings
    assert x.tolist() == [7, 3, 3, 4, 9]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ld.shared.u32 %r1, s[17];", "expected an index of at most 16, but got 17"),
        ("mov.u32 %r1, s[-1];", "expected an index of at most 16, but got -1"),
        ("ld.shared.u32 %r1, s[%r0];", "elements by registers are not supported"),
        ("ld.global.u32 %r1, %d0[1];", "expected an array before '\\[', but got '%d0'"),
        ("ld.shared.u32 %r1, [s[1]];", "expected '\\]', but got '\\['"),
        ("mov.u32 %r1, s[1]+4;", "expected ';', but got '\\+'"),
        ("atom.shared.add.u32 %r1, s[1], 1;", "s"),
    ],
)
def test_elements_that_are_none(body, message):
    with pytest.raises(simulator.SimulatorError, match=message):
        simulator.launch(kernel(body, shared=16), "k", 1, 1, [np.zeros(1, np.uint32)])
