# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Machine code written by hand, as nvdisasm would list it."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cycles.control import Control, encode

#: an instruction's text, and its control or its stall count
Written = tuple[str, Control | int]


def listing(code: Sequence[Written | str], name: str = "k") -> str:
    """The listing of one kernel; a text alone, such as ".L_1:", is a label."""
    lines = [f".text.{name}:"]
    address = 0
    for each in code:
        if isinstance(each, str):
            lines.append(each)
            continue
        text, control = each
        control = Control(stall=control) if isinstance(control, int) else control
        lines.append(f"        /*{address:04x}*/   {text} ;   /* 0x{0:016x} */")
        lines.append(f"                              /* 0x{encode(control):016x} */")
        address += 16
    return "\n".join(lines) + "\n"


def loop(body: Sequence[Written], name: str = "k") -> str:
    """A kernel that repeats a body; the branch back stalls as long as branches do."""
    return listing([".L_1:", *body, ("@P0 BRA `(.L_1)", 1), ("EXIT", 5)], name)
