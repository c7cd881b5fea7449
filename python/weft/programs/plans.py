# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The sizes of a plan: its symbols bound from arrays, its expressions evaluated. Checks are the runtime's own."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """A grid expression (docs/LibraryFormat.md) of non-negative numbers."""

    def walk(node: ast.AST) -> int:
        if isinstance(node, ast.Constant):
            return int(str(node.value))
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            a, b = (walk(x) for x in node.args)
            return {"cdiv": lambda: -(-a // b), "min": lambda: min(a, b), "max": lambda: max(a, b)}[node.func.id]()
        if isinstance(node, ast.BinOp):
            a, b = walk(node.left), walk(node.right)
            return {
                ast.Add: lambda: a + b,
                ast.Sub: lambda: a - b,
                ast.Mult: lambda: a * b,
                ast.Div: lambda: a // b,
                ast.Mod: lambda: a % b,
            }[type(node.op)]()
        raise ValueError(text)

    return walk(ast.parse(text, mode="eval").body)


def bind(plan: Mapping[str, Any], arrays: Sequence[Any]) -> dict[str, int]:
    """The symbols of a plan, from the shapes of its inputs."""
    sizes: dict[str, int] = {}
    for described, array in zip(plan["inputs"], arrays, strict=False):
        for dim, size in zip(described["dims"], array.shape, strict=True):
            if dim.isidentifier():
                sizes.setdefault(dim, int(size))
    return sizes
