# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""Small PTX kernels for sm_90a: bulk copies, tensor maps and wgmma."""

from __future__ import annotations

import numpy as np

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"

REGISTERS = """
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<20>; .reg .f32 %f<140>; .reg .b32 %a<8>; .reg .b32 %c<140>;
"""


def kernel(
    body: str, *, parameters: str = ".param .u64 x", shared: int = 1024, tile: str = "", attributes: str = ""
) -> str:
    """One entry. %r0 is the thread's number, %r1 where shared memory begins, %d0 the parameter x, %p0 thread 0."""
    return f"""{HEADER}.visible .entry k({parameters}) {attributes}
{{{REGISTERS}  .shared .align 1024 .b8 s[{shared}]; .shared .align 8 .b64 full; .shared .align 8 .b64 other;{tile}
  ld.param.u64 %d0, [x]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; setp.eq.u32 %p0, %r0, 0;
  mov.u32 %r2, full; mov.u32 %r3, other;
{body}
  ret;
}}
"""


INIT = "@%p0 mbarrier.init.shared::cta.b64 [%r2], 1;\nbar.sync 0;\n"


def expect(count: int, barrier: str = "%r2") -> str:
    return f"@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [{barrier}], {count};\n"


def wait(parity: int = 0, barrier: str = "%r2", label: str = "W") -> str:
    return f"{label}: mbarrier.try_wait.parity.shared::cta.b64 %p1, [{barrier}], {parity};\n@!%p1 bra {label};\n"


def bulk_load(count: int, source: str = "%d0", to: str = "%r1", barrier: str = "%r2") -> str:
    return f"@%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{to}], [{source}], {count}, [{barrier}];\n"


def copy_out(count: int, block: int, to: str = "%d0") -> str:
    """All threads copy `count` bytes of shared memory to global memory, 4 bytes each at a time."""
    steps = []
    for i in range(0, count, 4 * block):
        steps.append(
            f"add.u32 %r5, %r4, {i}; cvt.u64.u32 %d2, %r5; add.s64 %d2, {to}, %d2; add.u32 %r6, %r1, %r5; "
            f"setp.lt.u32 %p2, %r5, {count}; @%p2 ld.shared.u32 %r7, [%r6]; @%p2 st.global.u32 [%d2], %r7;"
        )
    return "shl.b32 %r4, %r0, 2;\n" + "\n".join(steps) + "\n"


def swizzle(image: np.ndarray, span: int) -> np.ndarray:
    """Bytes of shared memory as they lie without swizzling, from a 1,024-byte boundary on, to where they lie with it."""
    at = np.arange(image.size)
    if span:
        at = at ^ (((at >> 7) & (span // 16 - 1)) << 4)
    result = np.empty_like(image)
    result[at] = image
    return result


def box_of(array: np.ndarray, start, box, fill=0, steps=None) -> np.ndarray:
    """The box of an array at a start, elements outside of it filled."""
    steps = steps or (1,) * array.ndim
    counts = [-(-size // step) for size, step in zip(box, steps, strict=True)]
    result = np.full(counts, fill, array.dtype)
    for index in np.ndindex(*counts):
        at = [first + i * step for first, i, step in zip(start, index, steps, strict=True)]
        if all(0 <= where < size for where, size in zip(at, array.shape, strict=True)):
            result[index] = array[tuple(at)]
    return result


MAP = ".param .align 64 .b8 m[128], .param .u64 x"
MAPPED = "mov.b64 %d1, m; cvta.param.u64 %d1, %d1;\n"


def coordinates(start) -> str:
    return "{" + ", ".join(str(each) for each in reversed(start)) + "}"


def tensor_load(start, count: int, barrier: str = "%r2", to: str = "%r1") -> str:
    return (
        f"@%p0 cp.async.bulk.tensor.{len(start)}d.shared::cta.global.mbarrier::complete_tx::bytes [{to}], "
        f"[%d1, {coordinates(start)}], [{barrier}];\n"
    )


def tensor_store(start, operation: str = "") -> str:
    name, mode = ("cp.reduce.async.bulk.tensor", f".{operation}") if operation else ("cp.async.bulk.tensor", "")
    return f"@%p0 {name}.{len(start)}d.global.shared::cta{mode}.bulk_group [%d1, {coordinates(start)}], [%r1];\n"


def descriptor(start: int, leading: int, stride: int, span: int) -> int:
    """A matrix descriptor of wgmma, for shared memory that begins at byte 0."""
    code = {0: 0, 128: 1, 64: 2, 32: 3}[span]
    return (start >> 4) & 0x3FFF | (leading >> 4) << 16 | (stride >> 4) << 32 | code << 62
