# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A language model of GPT-2's shape with simulated attention scores, beside multi-head, grouped-query and multi-query
attention of as many parameters (the SAS paper's tables 2 and 4): python examples/models/sas_gpt2.py [--help]"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import machine_bytes
import modelled
import torch
import weft
from study import Batch, Study, count, finish, main, table
from torch import nn
from torch.nn import functional
from weft.attention.sas import _sas
from weft.testing import layers, masks
from weft.testing.sas import expansion_shapes

TOKENS = 512


@dataclass(frozen=True)
class Sizes:
    """``expanded`` and ``wide`` are SAS's heads and channels of queries and keys, 0 without it."""

    width: int
    heads: int
    kv_heads: int
    layers: int
    head: int = 64
    expanded: int = 0
    wide: int = 0
    kernel: int = 5
    tokens: int = TOKENS
    vocabulary: int = 50304


def family(width: int, layers: int, mha: int, gqa: int, mqa: int, expanded: int) -> dict[str, Sizes]:
    """A model of each attention; SAS's heads are multi-head attention's before it expands them."""
    return {
        "MHA": Sizes(width, mha, mha, layers),
        "GQA": Sizes(width, gqa, 2, layers),
        "MQA": Sizes(width, mqa, 1, layers),
        "SAS": Sizes(width, mha, mha, layers, expanded=expanded, wide=96),
    }


#: table 2; 12 and 24 layers and the vocabulary are GPT-2's as nanoGPT has them
SMALLER, LARGER = family(768, 12, 12, 22, 23, 36), family(1024, 24, 16, 30, 31, 48)
PAPER = {f"125M {name}": sizes for name, sizes in SMALLER.items()}
PAPER |= {f"350M {name}": sizes for name, sizes in LARGER.items()}
WANTED = {f"{size}M {name}": {"total": size} for size in (125, 350) for name in SMALLER}
#: table 4: milliseconds of a step, training length 512, batch size 1
MEASURED = {"MHA": 36.20, "GQA": 38.87, "MQA": 39.37, "SAS": 68.07}
SMALL = Sizes(32, 2, 2, 2, head=16, expanded=4, wide=24, kernel=3, tokens=64, vocabulary=256)


def causal(n: int) -> torch.Tensor:
    return masks.causal(n, n)


def attention(sizes: Sizes, plain: bool) -> nn.Module:
    """The layer of one of the four."""
    width, heads, more = sizes.width, sizes.heads, {"kv_heads": sizes.kv_heads}
    if not sizes.expanded:
        if plain:
            return layers.Attention(width, heads, **more, head=sizes.head, mask=causal)
        return weft.nn.Attention(width, heads, **more, head_size=sizes.head, pattern=weft.causal())
    if plain:
        return layers.SAS(width, heads, **more, many=sizes.expanded, wide=sizes.wide, kernel=sizes.kernel)
    expansion = {"expanded_heads": sizes.expanded, "expanded_size": sizes.wide, "kernel": sizes.kernel}
    return weft.nn.SAS(width, heads, **more, head_size=sizes.head, **expansion)


class Block(nn.Module):
    """Attention and a perceptron, each of the norm of what it adds to."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        width = sizes.width
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention(sizes, plain)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm_1(x))
        return x + self.perceptron(self.norm_2(x))


class Model(nn.Module):
    """Logits [B, N, vocabulary] of tokens [B, N]; the embedding is the last map too."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        self.embedding, self.places = (nn.Embedding(n, sizes.width) for n in (sizes.vocabulary, sizes.tokens))
        for table_of in (self.embedding, self.places):
            nn.init.normal_(table_of.weight, std=0.02)
        self.blocks = nn.Sequential(*(Block(sizes, plain) for _ in range(sizes.layers)))
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens) + self.places.weight[: tokens.shape[1]]
        return functional.linear(self.norm(self.blocks(x)), self.embedding.weight)

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy of the next token."""
        return functional.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())


def parameters(model: nn.Module) -> dict[str, float]:
    return {"total": count(model), "without places": count(model) - count(model.places)}


def batch(sizes: Sizes, generator: torch.Generator) -> Batch:
    rows = machine_bytes.text(2, sizes.tokens, generator)
    return Batch(rows[:, :-1], rows[:, 1:])


# ---- Costs


@weft.program
def attend(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def mixing(sizes: Sizes, gpu: str) -> float:
    """Seconds of a layer between the maps to q, k, v and the map of its results, forward and backward."""
    q, k, v = (
        torch.randn(1, heads, sizes.tokens, sizes.head).half()
        for heads in (sizes.heads, sizes.kv_heads, sizes.kv_heads)
    )
    if not sizes.expanded:
        return modelled.total(modelled.program(attend, q, k, v, gpu=gpu, sample=48))
    weights = []
    for heads, wide in ((sizes.heads, sizes.wide), (sizes.kv_heads, sizes.wide), (sizes.kv_heads, None)):
        shapes = expansion_shapes(heads, sizes.expanded, sizes.head, wide, sizes.kernel)
        weights.append({name: torch.randn(shape).half() for name, shape in shapes.items()})
    return modelled.total(modelled.program(_sas, q, k, v, *weights, gpu=gpu, sample=48, causal=True, scale=None))


def step(sizes: Sizes, gpu: str) -> dict[str, float]:
    """Seconds of one training step of one sequence, by part."""
    width, tokens = sizes.width, sizes.tokens
    maps = [(width, heads * sizes.head) for heads in (sizes.heads, sizes.kv_heads, sizes.kv_heads)]
    maps += [(sizes.heads * sizes.head, width), (width, 4 * width), (4 * width, width)]
    with torch.device("meta"):
        learned = count(Model(sizes, False))
    return {
        "attention": sizes.layers * mixing(sizes, gpu),
        "linear maps": sizes.layers * sum(modelled.training_matmul(tokens, *each, gpu) for each in maps)
        + modelled.training_matmul(tokens, width, sizes.vocabulary, gpu),
        "optimiser": modelled.adamw(learned, gpu),
    }


def costs(gpu: str, out: Any) -> list[Any]:
    """Table 4's first column: a step of one sequence of 512 tokens, over multi-head attention's."""
    steps = {name: step(sizes, gpu) for name, sizes in SMALLER.items()}
    for kernel in (1, 3):
        steps[f"SAS, {kernel} tap{'s' * (kernel > 1)}"] = step(replace(SMALLER["SAS"], kernel=kernel), gpu)
    base = sum(steps["MHA"].values())
    parts = list(steps["MHA"])
    rows = []
    for name, found in steps.items():
        said = MEASURED.get(name)
        over = [sum(found.values()) / base, (found["attention"] + found["linear maps"])]
        over[1] /= steps["MHA"]["attention"] + steps["MHA"]["linear maps"]
        times = [f"{1e3 * found[part]:.2f}" for part in parts]
        rows.append([name, *times, *(f"{each:.2f}" for each in over), f"{said / 36.20:.2f}" if said else ""])
    columns = ["125M, 512 tokens", *(f"{part}, ms" for part in parts), "over MHA", "without optimiser", "paper"]
    table(f"A training step, modelled on {gpu}", columns, rows)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.2), layout="constrained")
    panel = figure.subplots()
    left = [0.0] * len(steps)
    for part, colour in zip(parts, ("#08306b", "#4292c6", "#c6dbef"), strict=True):
        values = [1e3 * found[part] for found in steps.values()]
        panel.barh(list(steps), values, left=left, color=colour, label=part)
        left = [a + b for a, b in zip(left, values, strict=True)]
    panel.invert_yaxis()
    panel.set(title="125M, one sequence of 512 tokens", xlabel=f"ms of a training step, modelled ({gpu})")
    finish(panel)
    path = out / "sas_gpt2_costs.png"
    figure.savefig(path, dpi=150)
    return [path]


STUDY = Study(
    name="sas_gpt2",
    title="A language model of GPT-2's shape with SAS",
    build=Model,
    sizes=PAPER,
    parameters=parameters,
    wanted=WANTED,
    small=SMALL,
    whole=replace(SMALLER["SAS"], layers=1),
    batch=batch,
    costs=costs,
)

if __name__ == "__main__":
    main(STUDY)
