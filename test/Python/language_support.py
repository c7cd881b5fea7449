# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the tests of the language share: a kernel's tile IR as text, and a small matcher in the manner of FileCheck."""

import re

import weft.language as wl
from weft.compiler import lower, signature


def tile_ir(function, text="", **constants):
    """The IR that the front end makes of a kernel for a signature, verified."""
    found = signature.for_function(function, signature.parse(text), constants)
    return lower.lower(function, found, lower.Options(), "sm_80").text()


def matches(ir, *patterns):
    """Every pattern is found, each after the one before; in a pattern ``...`` stands for anything on the line."""
    position = 0
    for pattern in patterns:
        expression = ".*".join(re.escape(part) for part in pattern.split("..."))
        found = re.compile(expression).search(ir, position)
        assert found, f"expected {pattern!r} after position {position} in\n{ir}"
        position = found.end()


SCALARS = {
    str(t): t
    for t in (
        wl.int1,
        wl.int8,
        wl.int16,
        wl.int32,
        wl.int64,
        wl.uint8,
        wl.uint16,
        wl.uint32,
        wl.uint64,
        wl.float16,
        wl.bfloat16,
        wl.float32,
        wl.float64,
    )
}
