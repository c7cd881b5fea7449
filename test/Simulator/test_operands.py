# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The simulator takes no operand that ptxas refuses, and refuses with the place and a reason."""

import concurrent.futures
import os
import random
import re
import secrets

import pytest
from operand_mutations import INSTRUCTIONS, module, mutations, ptxas_takes, refusal
from weft.compiler.ptxas import find_tool

ALL = [text for instruction in INSTRUCTIONS for text in mutations(instruction)]

#: what ptxas takes and the simulator refuses by intent
STRICTER = {
    "an offset from a register, which ptxas crashes on or ignores": r"%\w+\+4|[ ,]s\+8",
    "a function's or a kernel's address where a number is asked for": r"\bk\b",
    "a register of 128 bits where fewer are asked for": r"%q1",
    "a 16-bit register as an address": r"\[%h7\]",
    "a register of .f16x2 as a predicate": r"%hh1",
    "a vector where a register is asked for": r"\{%r7|%v1",
    "`!` before a number": r"!-?\d",
    "a 32-bit register as a generic address": r"isspacep.*%u?r\d;",
    "a table of more than eight bits, and a result of lop3 that nobody wants": r"lop3",
    "more groups of copies than there can be": r"wait_group",
}
#: what ptxas refuses and the simulator takes by intent
LAXER = {
    "a register of .f16x2 for a whole number, which ptxas takes in some instructions": r"%hh1",
    "an element of a vector register before `|`": r"%v1\.x\|",
    "an element of a vector register in a video instruction": r"vadd.*%v1",
    "the address of a variable of another space": r"cvta.shared.u64 %d1, [xk];",
}


@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_well_formed(instruction):
    assert refusal(instruction) == ""


def judge(texts):
    with concurrent.futures.ThreadPoolExecutor() as pool:
        taken = list(pool.map(ptxas_takes, texts))
    wrong = []
    for text, by_ptxas in zip(texts, taken, strict=True):
        said = refusal(text)
        assert not said or re.match(r"mutated.ptx: line \d+, column \d+: ", said), said
        if by_ptxas is None or by_ptxas == (not said):
            continue
        if not any(re.search(each, text) for each in (STRICTER if by_ptxas else LAXER).values()):
            wrong.append((text, "ptxas takes it", said) if by_ptxas else (text, "ptxas refuses it"))
    return wrong


@pytest.mark.skipif(find_tool("ptxas") is None, reason="ptxas was not found")
def test_operands_are_those_of_ptxas():
    seed = int(os.environ.get("WEFT_TEST_SEED", secrets.randbits(32)))
    print(f"seed {seed} (repeat with WEFT_TEST_SEED={seed})")
    assert judge(random.Random(seed).sample(ALL, 100)) == []


@pytest.mark.slow
@pytest.mark.skipif(find_tool("ptxas") is None, reason="ptxas was not found")
@pytest.mark.parametrize("instruction", INSTRUCTIONS)
def test_all_operands_are_those_of_ptxas(instruction):
    assert judge(list(mutations(instruction))) == []


@pytest.mark.parametrize(
    "instruction, said",
    [
        ("add.s32 %r1, %r2, %f3;", "expected a register that goes with .s32, but '%f3' is a .f32"),
        ("add.s32 %r1, %r2, 1.0;", "expected a whole number for .s32, but got '1.0'"),
        ("add.f32 %f1, %f2, 3;", "expected a floating-point number, such as 0f3f800000 or 1.0, for .f32, but got '3'"),
        ("fma.rn.f16x2 %r1, %r2, %r3, 5;", "expected a register, as there are no constants for .f16x2, but got '5'"),
        ("add.s32 %r1, %laneid, 5;", "'%laneid' is read by a 'mov' or 'cvt' of whole numbers alone"),
        ("mov.u64 %d1, %laneid;", "expected 64 bits, but '%laneid' has 32"),
        ("add.s32 %r1, %r2, s;", "the address of 's' is read by a 'mov' or 'cvta' alone"),
        ("add.s32 %r1, %r2+4, 5;", "expected no offset, which addresses in brackets have, from '%r2'"),
        ("add.s32 %r1, %r2.b0, 5;", "expected no part '.b0' of '%r2'"),
        ("add.s32 %r1, !%r2, 5;", "expected no '!' before '%r2'"),
        ("mov.pred %p1, -%p2;", "expected no '-' before '%p2'"),
        ("add.s32 _, %r2, 5;", "'add.s32' has no result that can be left out"),
        ("setp.lt.s32 %p1, %r1, %r2, %r3, %r4;", "expected 3 operands of 'setp.lt.s32', but got 5"),
        ("add.s32 %r1|%r2, %r3;", "expected ',' behind '%r1', but got '|'"),
        ("bar.sync 16;", "expected at most 15, but got '16'"),
        ("bar.sync 1, 48;", "expected a multiple of 32 threads, but got '48'"),
        ("st.global.v2.f32 [%d0], {1.0, 3};", "expected constants of one kind, but got '3'"),
    ],
)
def test_refusals(instruction, said):
    text = module(instruction)
    line = 1 + next(i for i, each in enumerate(text.splitlines()) if each.strip() == instruction)
    assert said in refusal(instruction)
    assert refusal(instruction).startswith(f"mutated.ptx: line {line}, column ")
