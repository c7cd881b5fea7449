# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Small PTX kernels for sm_100a: tensor memory and tcgen05."""

from __future__ import annotations

from hopper_kernels import REGISTERS, wait

HEADER = ".version 8.6\n.target sm_100a\n.address_size 64\n"
MORE = "  .reg .b32 %t<12>; .reg .b32 %v<260>; .reg .pred %q<8>;\n"


def kernel(body: str, *, parameters: str = ".param .u64 x", shared: int = 1024, attributes: str = "") -> str:
    """One entry. %r0 is the thread's number, %r1 where shared memory begins, %d0 the parameter x, %p0 thread 0, %q0 warp
    0, %r2 and %r3 mbarriers, %r9 where the address of tensor memory goes."""
    return f"""{HEADER}.visible .entry k({parameters}) {attributes}
{{{REGISTERS}{MORE}  .shared .align 1024 .b8 s[{shared}]; .shared .align 8 .b64 full; .shared .align 8 .b64 other; .shared .align 4 .b32 place;
  ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %q0, %r0, 32;
  mov.u32 %r2, full; mov.u32 %r3, other; mov.u32 %r9, place;
{body}
  ret;
}}
"""


INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\n@%p0 mbarrier.init.shared::cta.b64 [%r3], 1;\nbar.sync 0;\n"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync;\n", "tcgen05.fence::after_thread_sync;\n"
MEET = f"{BEFORE}bar.sync 0;\n{AFTER}"


def alloc(columns: int, group: int = 1) -> str:
    """Afterwards %t0 is the address, and %t1 that of the warp's own lanes."""
    return (
        f"@%q0 tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%r9], {columns};\n{MEET}ld.shared.b32 %t0, [%r9];\n"
        "shr.u32 %t1, %r0, 5; and.b32 %t1, %t1, 3; shl.b32 %t1, %t1, 21; add.u32 %t1, %t0, %t1;\n"
    )


def dealloc(columns: int, group: int = 1) -> str:
    return (
        f"{MEET}@%q0 tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %t0, {columns};\n"
        f"@%q0 tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;\n"
    )


def commit(barrier: str = "%r3", group: int = 1) -> str:
    return f"@%p0 tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 [{barrier}];\n"


def multiply(
    kind: str, a: int | str, b: int | str, instruction: int, *, d="%t0", adds="%p3", group=1, tail="", masks=""
) -> str:
    """tcgen05.mma by thread 0."""
    return (
        f"mov.b64 %d6, {b}; mov.b32 %t3, {instruction}; "
        + (f"mov.b64 %d5, {a}; " if isinstance(a, int) else "")
        + f"@%p0 tcgen05.mma.cta_group::{group}.kind::{kind} [{d}], {'%d5' if isinstance(a, int) else a}, %d6, %t3{masks}, {adds}{tail};\n"
    )


def vector(count: int, first: int = 0, name: str = "%v") -> str:
    return "{" + ", ".join(f"{name}{first + i}" for i in range(count)) + "}"


def load(
    count: int,
    *,
    shape: str = "32x32b",
    address: str = "%t1",
    registers: int | None = None,
    first: int = 0,
    tail: str = "",
    pack: str = "",
) -> str:
    return (
        f"tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 {vector(registers or count, first)}, [{address}]{tail};\n"
    )


def store(
    count: int,
    *,
    shape: str = "32x32b",
    address: str = "%t1",
    registers: int | None = None,
    first: int = 0,
    split: str = "",
    pack: str = "",
) -> str:
    return (
        f"tcgen05.st.sync.aligned.{shape}.x{count}{pack}.b32 [{address}]{split}, {vector(registers or count, first)};\n"
    )


LOADED = "tcgen05.wait::ld.sync.aligned;\n"
STORED = "tcgen05.wait::st.sync.aligned;\n"


def descriptor(start: int, leading: int, stride: int, span: int) -> int:
    """A matrix descriptor of tcgen05, for shared memory that begins at byte 0; span 129: of 128 bytes by 32 bytes."""
    code = {0: 0, 129: 1, 128: 2, 64: 4, 32: 6}[span]
    return (start >> 4) & 0x3FFF | (leading >> 4) << 16 | (stride >> 4) << 32 | 1 << 46 | code << 61


TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}


def instruction(
    m: int,
    n: int,
    a: str,
    b: str,
    result: str = "f32",
    *,
    negated=(False, False),
    turned=(False, False),
    saturate=False,
) -> int:
    """An instruction descriptor (PTX ISA 9.7.16.4.2)."""
    return (
        int(saturate) << 3
        | {"f16": 0, "f32": 1, "s32": 2}[result] << 4
        | TYPES[a] << 7
        | TYPES[b] << 10
        | negated[0] << 13
        | negated[1] << 14
        | turned[0] << 15
        | turned[1] << 16
        | n >> 3 << 17
        | m >> 4 << 24
    )


__all__ = [
    "AFTER", "BEFORE", "INIT", "LOADED", "MEET", "STORED", "alloc", "commit", "dealloc", "descriptor", "instruction",
    "kernel", "load", "multiply", "store", "vector", "wait",
]  # fmt: skip
