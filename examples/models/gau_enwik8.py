# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A byte-level language model of convolution-equipped gated attention units: python examples/models/gau_enwik8.py

Composite attention, section 4: the scores' queries and keys and the gate are made of convolved tokens (equations 19 and
20), by a few taps or by as many as there are tokens (definition 4.1). Its pictures are figure 3's: what aggregating and
shifting taps make of an impulse, and what a gate of many heads makes of one head of attention.
"""

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
from weft.testing import layers, masks


@dataclass(frozen=True)
class Sizes:
    """``size`` channels of queries and keys, ``values`` of values and the gate; ``taps`` of the convolutions, 0 for
    none."""

    width: int
    size: int
    values: int
    hidden: int
    layers: int
    tokens: int
    taps: int
    vocabulary: int = 256


#: the paper gives no sizes: these are of the model that it ablates, Mega on enwik8 (Ma et al., 2022, table 10)
BASE = Sizes(width=512, size=128, values=1024, hidden=1024, layers=12, tokens=4096, taps=0)
PAPER = {"GAU": BASE, "GAU, 3 taps": replace(BASE, taps=3), "GAU, 4,096 taps": replace(BASE, taps=4096)}
SMALL = Sizes(width=32, size=16, values=64, hidden=64, layers=2, tokens=96, taps=96)


def causal(n: int) -> torch.Tensor:
    return masks.causal(n, n)


def unit(sizes: Sizes, plain: bool) -> nn.Module:
    """The layer."""
    if plain:
        return layers.GAU(sizes.width, sizes.size, sizes.values, mask=causal, kernel=sizes.taps)
    options = {"size": sizes.size, "value_size": sizes.values, "kernel": sizes.taps}
    return weft.nn.GAU(sizes.width, pattern=weft.causal(), **options)


class Block(nn.Module):
    """A unit and a perceptron, each of the norm of what it adds to."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        width = sizes.width
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.unit = unit(sizes, plain)
        self.perceptron = nn.Sequential(nn.Linear(width, sizes.hidden), nn.SiLU(), nn.Linear(sizes.hidden, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.unit(self.norm_1(x))
        return x + self.perceptron(self.norm_2(x))


class Model(nn.Module):
    """Logits [B, N, vocabulary] of bytes [B, N]. Without convolutions it knows no places: they give it order."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.Sequential(*(Block(sizes, plain) for _ in range(sizes.layers)))
        self.norm, self.head = nn.LayerNorm(sizes.width), nn.Linear(sizes.width, sizes.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens))))

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Cross entropy of the next byte."""
        return functional.cross_entropy(self(tokens).flatten(0, 1), targets.flatten())


def parameters(model: nn.Module) -> dict[str, float]:
    taps = sum(p.numel() for name, p in model.named_parameters() if "conv" in name)
    return {"total": count(model), "of it taps": taps}


def batch(sizes: Sizes, generator: torch.Generator) -> Batch:
    rows = machine_bytes.text(2, sizes.tokens, generator)
    return Batch(rows[:, :-1], rows[:, 1:])


# ---- Pictures


def outer_product(taps: list[float], tokens: int = 48) -> torch.Tensor:
    """q kᵀ where q and k are an impulse in the middle under a causal convolution."""
    impulse = torch.zeros(1, 1, tokens, 8)
    impulse[0, 0, tokens // 2] = 1.0
    spread = convolved(impulse, torch.tensor(taps)[:, None].repeat(1, 8))[0, 0, :, 0]
    return torch.outer(spread, spread)


@weft.program
def convolved(x, taps):
    return weft.toeplitz(taps) @ x


def gated_rows(tokens: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrix of one head of attention [N, N], and of the gate after it in two of its channels, side by side: each
    channel has a map of its own (equations 15 to 17)."""
    torch.manual_seed(0)
    q, k = (torch.randn(1, 1, tokens, 16) for _ in range(2))
    gate = functional.silu(2 * torch.randn(2, tokens))
    scores = (q @ k.mT)[0, 0] / 4
    attention = scores.masked_fill(~causal(tokens), float("-inf")).softmax(-1)
    return attention, gate[:, :, None] * attention


def matrices(out: Any) -> Any:
    """Figure 3, centre and right, and section 4.1's gates."""
    from matplotlib.figure import Figure

    attention, (first, second) = gated_rows()
    shown = {
        "aggregation: 12 falling taps": outer_product([0.85**i for i in range(12)]),
        "shift: taps 0, 0, 0, 0, 1": outer_product([0.0] * 4 + [1.0]),
        "one head of attention": attention,
        "under the gate, channel 1": first,
        "under the gate, channel 2": second,
    }
    figure = Figure(figsize=(3 * len(shown), 3.1), layout="constrained")
    for panel, (title, matrix) in zip(figure.subplots(1, len(shown)), shown.items(), strict=True):
        most = float(matrix.abs().max())
        image = panel.imshow(matrix, cmap="RdBu_r", vmin=-most, vmax=most)
        panel.set(xlabel="key", ylabel="query")
        panel.set_title(title, fontsize=9)
        figure.colorbar(image, ax=panel, shrink=0.75)
    path = out / "gau_enwik8_matrices.png"
    figure.savefig(path, dpi=150)
    return path


# ---- Costs


@weft.program
def gated(u, v, g, kappa_q, mu_q, kappa_k, mu_k):
    return weft.attention.gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k, weft.causal())


LENGTHS = (1024, 2048, 4096)


def costs(gpu: str, out: Any) -> list[Any]:
    """One layer over the length: its attention under the gate, and its two convolutions by few and by all taps."""
    seconds: dict[str, list[float]] = {
        "attention and gate": [], "2 convolutions of 3 taps": [], "2 convolutions of as many taps as tokens": [],
    }  # fmt: skip
    for tokens in LENGTHS:
        u, v, g = (torch.randn(1, 1, tokens, n).half() for n in (BASE.size, BASE.values, BASE.values))
        vectors = [torch.randn(BASE.size) for _ in range(4)]
        of_unit = modelled.total(modelled.program(gated, u, v, g, *vectors, gpu=gpu, sample=48))
        x, found = torch.randn(1, 1, tokens, BASE.width).half(), [of_unit]
        for taps in (3, tokens):
            weights = torch.randn(taps, BASE.width).half()
            found.append(2 * modelled.total(modelled.program(convolved, x, weights, gpu=gpu, sample=48)))
        for each, value in zip(seconds.values(), found, strict=True):
            each.append(value)
    rows = [[name, *(f"{1e6 * each:,.1f}" for each in found)] for name, found in seconds.items()]
    columns = ["one layer, forward and backward, us", *(f"{tokens} tokens" for tokens in LENGTHS)]
    table(f"Convolution-equipped GAU, modelled on {gpu}", columns, rows)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.2), layout="constrained")
    panel = figure.subplots()
    for name, found in seconds.items():
        panel.plot(LENGTHS, [1e6 * each for each in found], marker="o", label=name)
    panel.set(title="One layer of 512, values of 1,024", xlabel="tokens", ylabel=f"us, modelled ({gpu})", yscale="log")
    finish(panel)
    path = out / "gau_enwik8_costs.png"
    figure.savefig(path, dpi=150)
    return [path, matrices(out)]


STUDY = Study(
    name="gau_enwik8",
    title="A byte-level language model of convolution-equipped gated attention units",
    build=Model,
    sizes=PAPER,
    parameters=parameters,
    small=SMALL,
    whole=replace(BASE, layers=1, taps=BASE.tokens),
    batch=batch,
    costs=costs,
)

if __name__ == "__main__":
    main(STUDY)
