# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A vision backbone with SEMA attention, of MILA's shape: python examples/models/sema_vision.py [--help]

Four stages over 56 x 56, 28 x 28, 14 x 14 and 7 x 7 tokens of an image of 224 x 224, SEMA in windows of 7 x 7 in the
place of MILA's linear attention, with a linear map for the values (the SEMA paper, section 1). It learns which kind of
file a picture's bytes are from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import machine_bytes
import modelled
import torch
import weft
from study import Batch, Study, count, finish, main, table
from torch import nn
from torch.nn import functional
from weft.testing.sema import sema as plain_sema


@dataclass(frozen=True)
class Sizes:
    """``width`` channels and ``heads`` at the first stage, twice as many at each further one."""

    width: int
    depths: tuple[int, ...]
    heads: int
    image: int = 224
    window: int = 7
    classes: int = 1000


#: MILA's (Han et al., 2024, tiny, small and base): heads of 32
PAPER = {
    "SEMA-T": Sizes(64, (2, 4, 8, 4), 2),
    "SEMA-S": Sizes(64, (3, 6, 21, 6), 2),
    "SEMA-B": Sizes(96, (3, 6, 21, 6), 3),
}
#: without the values' maps these are MILA's, which its authors give as 25, 43 and 96
WANTED = {
    "SEMA-T": {"without the values' maps": 25},
    "SEMA-S": {"without the values' maps": 43},
    "SEMA-B": {"without the values' maps": 96},
}
SMALL = Sizes(32, (1, 1, 1, 1), 1, image=64, window=4, classes=len(machine_bytes.KINDS))


class Attention(nn.Module):
    """SEMA of tokens [B, h·w, C] on a grid, without a map of its results, which the block has."""

    def __init__(self, width: int, heads: int, window: int, grid: int, plain: bool) -> None:
        super().__init__()
        self.heads, self.window, self.grid, self.plain = heads, (window, window), (grid, grid), plain
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.lepe = nn.Conv2d(width, width, 3, padding=1, groups=width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            each(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for each in (self.q, self.k, self.v)
        )
        mechanism = plain_sema if self.plain else weft.attention.sema
        out = mechanism(q, k, v, self.lepe.weight, self.lepe.bias, window=self.window, grid=self.grid)
        return out.transpose(1, 2).flatten(2)


class Block(nn.Module):
    """MILA's: attention of convolved tokens under a gate, and a perceptron, each after a local convolution."""

    def __init__(self, width: int, heads: int, window: int, grid: int, plain: bool) -> None:
        super().__init__()
        self.grid = grid
        self.place_1, self.place_2, self.local = (nn.Conv2d(width, width, 3, padding=1, groups=width) for _ in range(3))
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.enter, self.gate, self.leave = (nn.Linear(width, width) for _ in range(3))
        self.attention = Attention(width, heads, window, grid, plain)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def over_grid(self, conv: nn.Conv2d, x: torch.Tensor) -> torch.Tensor:
        return conv(x.mT.unflatten(2, (self.grid, self.grid))).flatten(2).mT

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.over_grid(self.place_1, x)
        y = self.norm_1(x)
        mixed = self.attention(functional.silu(self.over_grid(self.local, self.enter(y))))
        x = x + self.leave(mixed * functional.silu(self.gate(y)))
        x = x + self.over_grid(self.place_2, x)
        return x + self.perceptron(self.norm_2(x))


def normed(inputs: int, outputs: int, kernel: int, stride: int = 1, act: bool = True, bias: bool = False) -> nn.Module:
    """A convolution, its norm over the batch, and ReLU."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([nn.ReLU()] if act else []))


class Stem(nn.Module):
    """Pixels [B, 3, 4h, 4w] to [B, C, h, w]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.first = normed(3, half, 3, stride=2)
        self.second = nn.Sequential(normed(half, half, 3), normed(half, half, 3, act=False))
        self.third = nn.Sequential(normed(half, 4 * width, 3, stride=2), normed(4 * width, width, 1, act=False))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.first(pixels)
        return self.third(self.second(x) + x)


def merging(width: int) -> nn.Module:
    """Between stages: [B, C, h, w] to [B, 2C, h/2, w/2], through 8C channels."""
    wide = 8 * width
    narrowed = nn.Conv2d(wide, wide, 3, 2, padding=1, groups=wide)
    return nn.Sequential(
        nn.Conv2d(width, wide, 1), nn.ReLU(), narrowed, nn.ReLU(), normed(wide, 2 * width, 1, act=False, bias=True)
    )


class Model(nn.Module):
    """Logits [B, classes] of pixels [B, 3, image, image]."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        self.stem = Stem(sizes.width)
        self.stages, self.merges = nn.ModuleList(), nn.ModuleList()
        for i, depth in enumerate(sizes.depths):
            width, heads, grid = sizes.width * 2**i, sizes.heads * 2**i, sizes.image // 4 // 2**i
            window = min(sizes.window, grid)
            self.stages.append(nn.Sequential(*(Block(width, heads, window, grid, plain) for _ in range(depth))))
            if i + 1 < len(sizes.depths):
                self.merges.append(merging(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, sizes.classes)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.stem(pixels)
        for i, stage in enumerate(self.stages):
            x = stage(x.flatten(2).mT).mT.unflatten(2, x.shape[2:])
            if i < len(self.merges):
                x = self.merges[i](x)
        return self.head(self.norm(x.flatten(2).mT).mean(1))

    def loss(self, pixels: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        """Cross entropy."""
        return functional.cross_entropy(self(pixels), kinds)


def parameters(model: nn.Module) -> dict[str, float]:
    values = sum(count(each.v) for each in model.modules() if isinstance(each, Attention))
    return {"total": count(model), "without the values' maps": count(model) - values}


def batch(sizes: Sizes, generator: torch.Generator) -> Batch:
    return Batch(*machine_bytes.images(4, sizes.image, generator))


# ---- Costs


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


@weft.program
def sema(q, k, v, *, window, grid, mean):
    return weft.attention.sema(q, k, v, window=window, grid=grid, mean=mean)


def costs(gpu: str, out: Any) -> list[Any]:
    """A layer of the first stage of SEMA-T, forward and backward, over the image's size: SEMA, windows alone, and full
    attention; without LePE, a convolution that each could have."""
    sizes, sides = PAPER["SEMA-T"], [112, 224, 448, 672]
    head = sizes.width // sizes.heads
    seconds: dict[str, list[float]] = {"SEMA": [], "windows alone": [], "full attention": []}
    for side in sides:
        grid = side // 4
        q, k, v = (torch.randn(1, sizes.heads, grid * grid, head).half() for _ in range(3))
        options = {"gpu": gpu, "window": (sizes.window, sizes.window), "grid": (grid, grid)}
        for name, mean in (("SEMA", True), ("windows alone", False)):
            seconds[name].append(modelled.total(modelled.program(sema, q, k, v, mean=mean, **options)))
        seconds["full attention"].append(modelled.total(modelled.program(full, q, k, v, gpu=gpu, sample=4)))
    rows = [
        [f"{side} x {side}", *(f"{1e6 * found[i]:,.1f}" for found in seconds.values())] for i, side in enumerate(sides)
    ]
    table(f"A layer of the first stage, forward and backward, modelled us on {gpu}", ["image", *seconds], rows)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    panel = figure.subplots()
    for name, found in seconds.items():
        panel.plot([side * side / 16 for side in sides], [1e6 * each for each in found], marker="o", label=name)
    panel.set(title="One layer, two heads of 32, forward and backward", xlabel="tokens", ylabel=f"us, modelled ({gpu})")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    finish(panel)
    path = out / "sema_vision_costs.png"
    figure.savefig(path, dpi=150)
    return [path]


STUDY = Study(
    name="sema_vision",
    title="A vision backbone of MILA's shape with SEMA",
    build=Model,
    sizes=PAPER,
    parameters=parameters,
    wanted=WANTED,
    small=SMALL,
    whole=PAPER["SEMA-T"],
    batch=batch,
    costs=costs,
)

if __name__ == "__main__":
    main(STUDY)
