# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Small PTX kernels as text, for tests that need no other compiler."""

from __future__ import annotations

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

REGISTERS = """
  .reg .pred %p<8>;
  .reg .b16 %h<12>;
  .reg .b32 %r<40>;
  .reg .b64 %d<20>;
  .reg .f32 %f<20>;
"""


def kernel(body: str, *, parameters: str = ".param .u64 x", shared: int = 0, name: str = "k") -> str:
    """One entry. %d0 is the parameter x, %r0 the thread's number, %d1 the address of its own 4 bytes of x."""
    memory = f"  .shared .align 16 .b8 s[{shared}];\n" if shared else ""
    prologue = """
  ld.param.u64 %d0, [x];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.s64 %d1, %d0, %d1;
"""
    return f"{HEADER}.visible .entry {name}({parameters})\n{{{REGISTERS}{memory}{prologue}{body}\n  ret;\n}}\n"


def line_of(text: str, part: str, nth: int = 0) -> int:
    """The number of the nth line that contains a part."""
    return [number for number, line in enumerate(text.splitlines(), 1) if part in line][nth]
