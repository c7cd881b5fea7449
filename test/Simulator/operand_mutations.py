# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Instructions with one operand replaced, marked, left out or added: what ptxas and the simulator think of each."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterator

import weft.simulator as simulator
from snippets import REGISTERS
from weft.compiler.ptxas import find_tool

TARGET = "sm_90a"

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x)
{{{registers}
  .reg .b8 %b<4>; .reg .b128 %q<3>; .reg .f64 %e<8>; .reg .v4 .b32 %v<2>;
  .reg .u16 %us<4>; .reg .f16 %hf<4>; .reg .u32 %ur<4>; .reg .f16x2 %hh<4>;
  .shared .align 128 .b8 s[1024]; .local .b32 l[4];
  ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x;
  {instruction}
L1: ret;
}}
"""

#: one of each kind of operands
_INSTRUCTIONS = """\
add.s32 %r1, %r2, %r3;
add.f32 %f1, %f2, %f3;
add.rn.f64 %e1, %e2, %e3;
add.f16 %h1, %h2, %h3;
add.u16 %h1, %h2, %h3;
add.cc.u32 %r1, %r2, %r3;
mov.u32 %r1, %r2;
mov.f32 %f1, %f2;
mov.b64 %d1, %d2;
mov.b64 %d1, {%r1, %r2};
mov.b64 {%r1, %r2}, %d1;
mov.pred %p1, %p2;
not.pred %p1, %p2;
and.pred %p1, %p2, %p3;
and.b32 %r1, %r2, %r3;
shl.b32 %r1, %r2, %r3;
mul.wide.u32 %d1, %r2, %r3;
mad.lo.s32 %r1, %r2, %r3, %r4;
fma.rn.f32 %f1, %f2, %f3, %f4;
fma.rn.f16x2 %r1, %r2, %r3, %r4;
neg.f32 %f1, %f2;
setp.lt.s32 %p1, %r1, %r2;
setp.lt.and.f32 %p1|%p2, %f1, %f2, %p3;
selp.b32 %r1, %r2, %r3, %p1;
set.lt.u32.s32 %r1, %r2, %r3;
slct.s32.s32 %r1, %r2, %r3, %r4;
cvt.rn.f32.s32 %f1, %r1;
cvt.rn.f16.f32 %h1, %f1;
cvt.u32.u16 %r1, %h1;
cvt.rn.bf16x2.f32 %r1, %f1, %f2;
ld.global.u32 %r1, [%d1];
ld.global.f32 %f1, [%d1];
ld.global.v2.u32 {%r1, %r2}, [%d1+8];
st.global.u32 [%d1], %r1;
st.shared.v2.u32 [%r1], {%r2, %r3};
ld.shared.u32 %r1, [s+4];
ld.param.u64 %d1, [x];
ld.local.u32 %r1, [l];
atom.global.add.u32 %r1, [%d1], %r2;
atom.global.cas.b32 %r1, [%d1], %r2, %r3;
red.global.add.f32 [%d1], %f1;
shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;
vote.sync.ballot.b32 %r1, %p1, -1;
vote.sync.any.pred %p1, %p2, -1;
match.any.sync.b32 %r1, %r2, -1;
redux.sync.add.s32 %r1, %r2, -1;
bar.sync 0;
bar.sync 1, 64;
bar.arrive 1, 64;
bar.red.popc.u32 %r1, 0, %p1;
bar.warp.sync -1;
prmt.b32 %r1, %r2, %r3, %r4;
lop3.b32 %r1, %r2, %r3, %r4, 0x80;
bfe.u32 %r1, %r2, %r3, %r4;
bfi.b32 %r1, %r2, %r3, %r4, %r5;
popc.b32 %r1, %r2;
cvta.to.global.u64 %d1, %d2;
cvta.shared.u64 %d1, s;
cp.async.cg.shared.global [%r1], [%d1], 16;
cp.async.wait_group 0;
ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];
bra L1;
mbarrier.init.shared.b64 [%r1], 1;
mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;
ex2.approx.f32 %f1, %f2;
vadd.s32.s32.s32 %r1, %r2, %r3;
dp4a.u32.u32 %r1, %r2, %r3, %r4;
prefetch.global.L2 [%d1];
min.s32 %r1, %r2, %r3;
shf.l.wrap.b32 %r1, %r2, %r3, %r4;
testp.normal.f32 %p1, %f1;
copysign.f32 %f1, %f2, %f3;
nanosleep.u32 %r1;
elect.sync %r1|%p1, -1;
isspacep.global %p1, %d1;
pmevent 1;
"""
INSTRUCTIONS = _INSTRUCTIONS.splitlines()

#: what takes an operand's place; `*` is the operand itself
_REPLACEMENTS = """
!* -* *.x *.b0 *+4 _ 3 -3 0f3F800000 0d3FF0000000000000 1.0 %p7 !%p7 %h7 %r7 %d7 %f7 %e7 %b1 %q1 %us1 %hf1
%ur1 %hh1 {%r7,%r8} {%r7} %v1 %v1.x [%d7] [16] [%r7] [-%d7] [!%d7] [%d7+-4] [%d7.x] [%h7] s s+8 x L1 k %laneid
%clock64 !%laneid nothing 0x1FFFFFFFF (3+4)
"""
REPLACEMENTS = _REPLACEMENTS.split()


def parts(instruction: str) -> tuple[str, list[str], list[str]]:
    """The mnemonic, the operands, and what stands between them."""
    name, _, rest = instruction.rstrip(";").partition(" ")
    found = re.findall(r"((?:[^,|{}\[\]]|\{[^}]*\}|\[[^\]]*\])+)([,|]?)\s*", rest)
    return name, [operand.strip() for operand, _ in found], [between for _, between in found[:-1]]


def joined(name: str, operands: list[str], between: list[str]) -> str:
    text = "".join(f" {operand}{mark}" for operand, mark in zip(operands, [*between, ""][: len(operands)], strict=True))
    return f"{name}{text};"


def mutations(instruction: str) -> Iterator[str]:
    """The instruction with one change."""
    name, operands, between = parts(instruction)
    for i, operand in enumerate(operands):
        for text in REPLACEMENTS:
            yield joined(name, [*operands[:i], text.replace("*", operand), *operands[i + 1 :]], between)
        fewer = between[: max(i - 1, 0)] + between[max(i, 1) :] if operands[1:] else []
        yield joined(name, operands[:i] + operands[i + 1 :], fewer)
    yield joined(name, [*operands, "%r9"], [*between, ","])
    for i, mark in enumerate(between):
        other = "|" if mark == "," else ","
        yield joined(name, operands, [*between[:i], other, *between[i + 1 :]])


def module(instruction: str) -> str:
    return KERNEL.format(registers=REGISTERS, instruction=instruction)


def ptxas_takes(instruction: str) -> bool | None:
    """Whether ptxas takes it; None where ptxas crashes or does not come to an end."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "mutated.ptx")
        file.write_text(module(instruction))
        command = [find_tool("ptxas"), f"-arch={TARGET}", "-O0", "-o", os.devnull, str(file)]
        try:
            code = subprocess.run(command, capture_output=True, check=False, timeout=20).returncode
        except subprocess.TimeoutExpired:
            return None
    return None if code < 0 else code == 0


def refusal(instruction: str) -> str:
    """What the simulator says of it; empty where it takes it."""
    try:
        simulator._module(module(instruction), "mutated.ptx")
    except simulator.SimulatorError as error:
        return str(error)
    return ""
