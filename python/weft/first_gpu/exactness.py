# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which instructions of PTX have results that the PTX ISA does not fix to the bit: from the text of a kernel."""

from __future__ import annotations

import re

#: several may stand in one line, as those of a product do in braces
_INSTRUCTION = re.compile(r"(?:^|[;{}])[ \t]*(?:@!?%?\w+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)+)", re.MULTILINE)
_FLOAT = re.compile(r"[.:](?:f16|f16x2|bf16|bf16x2|tf32|f32|f64|e4m3|e5m2|f8f6f4|mxf\w+)\b")
_MATRIX = ("mma.", "wmma.mma", "wgmma.mma_async", "tcgen05.mma")
_ROUNDED = re.compile(r"\.r[nzmp]\b")
_CONTRACTED = re.compile(r"^(add|sub|mul)\.(?:ftz\.|sat\.)*(f16|f16x2|bf16|bf16x2|f32|f64)$")
#: registers that tell when or where a warp runs
_PLACES = re.compile(r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|smid|nsmid|warpid|nwarpid)\b")


def unfixed(ptx: str, entry: str) -> list[str]:
    """Instructions of an entry, and of the functions that it calls, whose results may differ from one GPU to another,
    in the words of PTX; [] where every result is fixed.

    These are approximate functions; products of matrices of floating-point numbers, whose sums have no order; sums of
    such numbers in memory, whose order is chance; registers that hold times and places; and products and sums without a
    rounding, which may become one instruction that rounds once (PTX ISA, "Floating Point Instructions: add").
    """
    text = body_of(ptx, entry)
    names = sorted(set(_INSTRUCTION.findall(text)))
    found = [name for name in names if _is_unfixed(name)]
    found += sorted(set(_PLACES.findall(text)))
    plain: dict[str, set[str]] = {}
    for name in names:
        if (match := _CONTRACTED.match(name)) and not _ROUNDED.search(name):
            plain.setdefault(match[2], set()).add(match[1])
    found += [
        f"mul.{kind} and {'add' if 'add' in which else 'sub'}.{kind} may be fused"
        for kind, which in plain.items()
        if "mul" in which and len(which) > 1
    ]
    return found


def _is_unfixed(name: str) -> bool:
    modifiers = name.split(".")[1:]
    if "approx" in modifiers or "full" in modifiers:
        return True
    if name.startswith(_MATRIX):
        return bool(_FLOAT.search(name))
    if name.startswith(("atom.", "red.", "cp.reduce.")):
        return "add" in modifiers and bool(_FLOAT.search(name))
    return False


def body_of(ptx: str, entry: str) -> str:
    """The body of an entry, and of the functions that it calls, by way of others too."""
    bodies = {}
    for match in re.finditer(r"\.(?:entry|func)\b(?:\s*\([^)]*\))?\s*([\w$]+)", ptx):
        body = re.compile(r"[^;{]*^(\{.*?^\})", re.DOTALL | re.MULTILINE).match(ptx, match.end())
        if body:  # and not a declaration
            bodies[match[1]] = body[1]
    reached, left = {entry}, [entry]
    while left:
        called = set(re.findall(r"[\w$]+", bodies.get(left.pop(), ""))) & bodies.keys()
        left += called - reached
        reached |= called
    return "\n".join(bodies.get(name, "") for name in reached)
