# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Expansions of SAS (mechanisms, section 4) as attn IR, in float64, and as what they cost."""

import json
from dataclasses import dataclass
from typing import Any

import torch

from weft import native

#: MLIR's name, torch's type
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def compiled(text: str, **options: Any) -> tuple[str, dict[str, Any]]:
    """PTX of a program in attn IR, and what the compiler reports."""
    context = native.load("_compiler").Context()
    ptx, info, error = context.parse(text).compile(json.dumps({"differentiate": False, **options}))
    if error is not None:
        raise RuntimeError(f"{error}: {context.take_diagnostics()}")
    return ptx, json.loads(info)


@dataclass(frozen=True)
class Expansion:
    """From ``heads`` heads of ``d`` channels to ``wide`` heads, of ``e`` channels if that is not 0."""

    heads: int
    wide: int
    d: int
    e: int
    taps: int
    element: str = "f16"

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The weights and biases by name."""
        conv = [
            ("w1", (self.wide, self.heads, self.taps)),
            ("b1", (self.wide,)),
            ("w2", (self.wide, self.wide, self.taps)),
            ("b2", (self.wide,)),
        ]
        linear = [("l1", (self.e, self.d)), ("c1", (self.e,)), ("l2", (self.e, self.e)), ("c2", (self.e,))]
        return conv + (linear if self.e else [])

    def text(self) -> str:
        """The program: x and weights to the expanded operand."""

        def tensor(*dims: int | str) -> str:
            return f"!attn.tensor<[{', '.join(map(str, dims))}], {self.element}>"

        x, y = tensor("B", self.heads, "N", self.d), tensor("B", self.wide, "N", self.d)
        z = tensor("B", self.wide, "N", self.e)
        weights = {name: tensor(*shape) for name, shape in self.shapes()}
        # A convolution's weights have strides as odd as its number of taps.
        arguments = ", ".join(
            f'%{name}: {kind} {{{"" if name in ("w1", "w2") else "attn.aligned, "}attn.name = "{name}"}}'
            for name, kind in [("x", x), *weights.items()]
        )

        def relu(result: str, source: str, kind: str) -> str:
            return f"""{result} = attn.map ins({source} : {kind}) -> {kind} {{
              ^bb0(%a: f32):
                %zero = arith.constant 0.0 : f32
                %m = arith.maximumf %a, %zero : f32
                attn.yield %m : f32
              }}"""

        def add(result: str, left: str, right: str, kind: str) -> str:
            return f"""{result} = attn.map ins({left}, {right} : {kind}, {kind}) -> {kind} {{
              ^bb0(%a: f32, %b: f32):
                %s = arith.addf %a, %b : f32
                attn.yield %s : f32
              }}"""

        def product(name: str, result: str, source: str, weight: str, bias: str, kinds: tuple[str, str]) -> str:
            types = f"{kinds[0]}, {weights[weight]}, {weights[bias]} -> {kinds[1]}"
            return f"{result} = attn.{name} {source}, %{weight} bias %{bias} : {types}"

        lines = [
            product("head_conv", "%q1", "%x", "w1", "b1", (x, y)),
            relu("%r1", "%q1", y),
            product("head_conv", "%u2", "%r1", "w2", "b2", (y, y)),
            add("%q2", "%u2", "%q1", y),
        ]
        if self.e:
            lines += [
                product("linear", "%q3", "%q2", "l1", "c1", (y, z)),
                relu("%r3", "%q3", z),
                product("linear", "%u4", "%r3", "l2", "c2", (z, z)),
                add("%q4", "%u4", "%q3", z),
            ]
        root, kind = ("%q4", z) if self.e else ("%q2", y)
        body = "\n  ".join([*lines, f"return {root} : {kind}"])
        return f'func.func @f({arguments}) -> ({kind} {{attn.name = "y"}}) attributes {{attn.program}} {{\n  {body}\n}}'

    def inputs(self, generator: torch.Generator, batch: int, tokens: int) -> list[torch.Tensor]:
        """x and weights, of a size that keeps results near 1."""

        def random(*shape: int) -> torch.Tensor:
            drawn = torch.randn(shape, generator=generator)
            fan = 1
            for size in shape[1:]:
                fan *= size
            return (drawn / fan**0.5).to(TYPES[self.element])

        x = torch.randn((batch, self.heads, tokens, self.d), generator=generator).to(TYPES[self.element])
        return [x, *(random(*shape) for _, shape in self.shapes())]

    def formula(self, x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        """In the type of x, every step rounded to it."""
        w1, b1, w2, b2 = weights[:4]
        q1 = head_conv(x, w1, b1)
        q2 = head_conv(torch.relu(q1), w2, b2) + q1
        if not self.e:
            return q2
        l1, c1, l2, c2 = weights[4:]
        q3 = torch.nn.functional.linear(q2, l1, c1)
        return torch.nn.functional.linear(torch.relu(q3), l2, c2) + q3

    def multiply_adds(self, batch: int, tokens: int) -> int:
        """What the algorithm needs."""
        convolutions = self.d * self.taps * self.wide * (self.heads + self.wide)
        return batch * tokens * (convolutions + self.wide * self.e * (self.d + self.e))

    def bytes(self, batch: int, tokens: int) -> tuple[int, int]:
        """Of input and output; and of the weights."""
        moved = batch * tokens * (self.heads * self.d + self.wide * (self.e or self.d)) * 2
        weights = 0
        for _, shape in self.shapes():
            weights += 2 * torch.Size(shape).numel()
        return moved, weights


def head_conv(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Tap by tap, in the type of x but for its sums."""
    taps, channels = weight.shape[2], x.shape[3]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    padded = torch.nn.functional.pad(x, (taps // 2, taps // 2)).to(wide)
    sums: Any = 0 if bias is None else bias.to(wide)[None, :, None, None]
    for tap in range(taps):
        sums = sums + torch.einsum("bhnd,oh->bond", padded[..., tap : tap + channels], weight[..., tap].to(wide))
    result: torch.Tensor = sums.to(x.dtype)
    return result
