# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Plans run launch by launch."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from .allocation import empty
from .compiled import Compiled


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
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
    sizes: dict[str, int] = {}
    for described, array in zip(plan["inputs"], arrays, strict=False):
        for dim, size in zip(described["dims"], array.shape, strict=True):
            if dim.isidentifier():
                sizes.setdefault(dim, int(size))
    for described, array in zip(plan["inputs"], arrays, strict=False):
        for dim, size in zip(described["dims"], array.shape, strict=True):
            if evaluate(dim, sizes) != size:
                raise ValueError(f"'{described['name']}': expected {dim} = {evaluate(dim, sizes)}, but got {size}")
    return sizes


class Runner:
    def __init__(self, form: Compiled, part: str, device: Any):
        from ..runtime import Module

        self.plan, self.device = form.plan(part), device
        kernels = {k["entry"]: k for k in form.info["kernels"]}
        self.launches = []
        for launch in self.plan["variants"][0]["launches"]:
            kernel = kernels[launch["kernel"]]
            types = [_type(a["type"]) for a in kernel["arguments"]]
            module = Module(form.ptx, kernel["entry"], kernel["shared_bytes"], device, types)
            self.launches.append((launch, module, 32 * kernel["num_warps"]))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        sizes = bind(self.plan, arrays)
        tensors = list(arrays)
        for described in [*self.plan["outputs"], *self.plan["variants"][0]["buffers"]]:
            tensors.append(empty(arrays, described["type"], [evaluate(d, sizes) for d in described["dims"]]))
        for launch, module, threads in self.launches:
            for number in launch["zeroed"]:
                tensors[number][...] = 0
            grid = tuple(evaluate(e, sizes) for e in launch["grid"])
            if 0 not in grid:
                module.launch(grid, threads, tuple(_argument(a, tensors, sizes) for a in launch["arguments"]))
        count = len(arrays)
        return tensors[count : count + len(self.plan["outputs"])]


def _type(text: str) -> str:
    star = "*" if text.startswith("*") else ""
    name = text.lstrip("*")
    return star + {"f16": "fp16", "f32": "fp32"}.get(name, name)


def _argument(argument: Mapping[str, Any], tensors: Sequence[Any], sizes: Mapping[str, int]) -> Any:
    if "pointer" in argument:
        return tensors[argument["pointer"]]
    if "stride" in argument:
        number, axis = argument["stride"]
        tensor = tensors[number]
        return tensor.stride(axis) if hasattr(tensor, "data_ptr") else tensor.strides[axis] // tensor.itemsize
    return evaluate(argument["size"], sizes) if "size" in argument else float(argument["real"])
