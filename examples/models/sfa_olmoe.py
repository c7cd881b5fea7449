# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A causal language model of OLMoE's shape with semantic foundation attention: python examples/models/sfa_olmoe.py

RMSNorm, SFA, a router and its experts (SwiGLU, plain PyTorch), and the losses of the SFA paper, appendix F: cross
entropy, the router's balance (0.01) and z-loss (0.001), and SFA's compression loss. Trained, it says how many tokens
each layer's heads merge.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import machine_bytes
import modelled
import torch
import weft
from study import Batch, Study, count, finish, main, table, trained
from torch import nn
from torch.nn import functional
from weft.testing import layers
from weft.testing.mixers import rms_norm
from weft.testing.sfa import decide

BALANCE, ROUTER_Z, HEAD = 0.01, 0.001, 128


@dataclass(frozen=True)
class Sizes:
    """``hidden`` is the inner size of one of ``experts``, of which a token passes ``chosen``."""

    width: int
    heads: int
    layers: int
    tokens: int
    experts: int = 64
    chosen: int = 8
    hidden: int = 1024
    vocabulary: int = 50304


#: the paper's table 3; the inner size and the vocabulary are OLMoE's (Muennighoff et al., 2025)
PAPER = {"OLMoE 1B-7B": Sizes(2048, 16, 15, 4096), "OLMoE 0.25B-1.75B": Sizes(1024, 8, 8, 1024)}
WANTED = {
    "OLMoE 1B-7B": {"total": 7000, "active, without embeddings": 1000},
    "OLMoE 0.25B-1.75B": {"total": 1750, "active, without embeddings": 250},
}
SMALL = Sizes(64, 4, 2, 96, experts=4, chosen=2, hidden=32, vocabulary=256)


class Experts(nn.Module):
    """A token's share of ``chosen`` SwiGLU perceptrons, weighed by the router's probabilities as they are."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.chosen = sizes.chosen
        self.router = nn.Linear(sizes.width, sizes.experts, bias=False)
        shape = (sizes.experts, sizes.width, sizes.hidden)
        self.gate, self.up = (nn.Parameter(torch.randn(shape) / sizes.width**0.5) for _ in range(2))
        self.down = nn.Parameter(torch.randn(shape[0], shape[2], shape[1]) / sizes.hidden**0.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """[B, N, C] to the same, and the router's losses, weighed."""
        scores = self.router(x)
        shares = scores.softmax(-1)
        best, which = shares.topk(self.chosen)
        weights = torch.zeros_like(shares).scatter(-1, which, best)
        # every expert sees every token: few experts and tokens here, and one graph for torch.export
        inner = functional.silu(torch.einsum("bnc,ech->benh", x, self.gate)) * torch.einsum("bnc,ech->benh", x, self.up)
        y = torch.einsum("benh,ehc,bne->bnc", inner, self.down, weights)
        used = torch.zeros_like(shares).scatter(-1, which, 1.0).mean((0, 1))
        balance = shares.shape[-1] / self.chosen * (used * shares.mean((0, 1))).sum()
        return y, BALANCE * balance + ROUTER_Z * scores.logsumexp(-1).square().mean()


class Block(nn.Module):
    """Attention and experts, each of the norm of what it adds to."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = (nn.RMSNorm(sizes.width, eps=1e-5) for _ in range(2))
        make = layers.SFA if plain else weft.nn.SFA
        self.attention = make(sizes.width, sizes.heads, rope=True, return_loss=True)
        self.experts = Experts(sizes)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mixed, compression = self.attention(self.norm_1(x))
        x = x + mixed
        made, routing = self.experts(self.norm_2(x))
        return x + made, compression + routing


class Model(nn.Module):
    """Logits [B, N, vocabulary] of tokens [B, N]."""

    def __init__(self, sizes: Sizes, plain: bool) -> None:
        super().__init__()
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes, plain) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps=1e-5)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)

    def read(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits, and the mean over layers of what training adds to the cross entropy."""
        x, losses = self.embedding(tokens), []
        for block in self.blocks:
            x, loss = block(x)
            losses.append(loss)
        return self.head(self.norm(x)), torch.stack(losses).mean()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.read(tokens)[0]

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Of the next token, the router and the compression."""
        logits, more = self.read(tokens)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten()) + more


def parameters(model: nn.Module) -> dict[str, float]:
    """Active are those that a token meets; the paper's names leave out the two tables of the vocabulary."""
    sizes, total = model.sizes, count(model)
    tables = count(model.embedding) + count(model.head)
    idle = sizes.layers * (sizes.experts - sizes.chosen) * 3 * sizes.width * sizes.hidden
    return {"total": total, "active": total - idle, "active, without embeddings": total - idle - tables}


def batch(sizes: Sizes, generator: torch.Generator) -> Batch:
    rows = machine_bytes.text(2, sizes.tokens, generator)
    return Batch(rows[:, :-1], rows[:, 1:])


# ---- Compression


@torch.no_grad()
def compression(model: Model, tokens: torch.Tensor) -> list[tuple[float, float]]:
    """The share of tokens that join their predecessors in each layer: of the heads that merge what is alike, and of
    those that merge what is different."""
    shares, x = [], model.embedding(tokens)
    for block in model.blocks:
        attention = block.attention
        keys = attention.k_proj(block.norm_1(x)).unflatten(2, (attention.kv_heads, -1)).transpose(1, 2)
        joins, _ = decide(rms_norm(keys, attention.k_gain))
        alike = (attention.kv_heads + 1) // 2
        shares.append((float(joins[:, :alike].double().mean()), float(joins[:, alike:].double().mean())))
        x, _ = block(x)
    return shares


def show_compression(steps: int = 30) -> None:
    """Of a model as it begins, and after so many steps."""
    seed = 0
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    fresh = Model(SMALL, False)
    learned = trained(STUDY, seed, steps)[1]
    tokens = batch(SMALL, generator).inputs
    rows = [
        [f"layer {i + 1}", *(f"{100 * share:.1f} %" for pair in pairs for share in pair)]
        for i, pairs in enumerate(zip(compression(fresh, tokens), compression(learned, tokens), strict=True))
    ]
    columns = ["", "alike, at first", "different, at first", f"alike, step {steps}", f"different, step {steps}"]
    table("Tokens that join their predecessors, source text", columns, rows)


# ---- Costs


@weft.program
def sfa(q, k, v, decisions):
    return weft.attention.sfa(q, k, v, decisions=decisions)


@weft.program
def dense(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


LENGTHS, RATIOS = (1024, 4096, 8192), (0.0, 0.25, 0.5, 0.75, 0.9)


def curves(tokens: int, gpu: str) -> dict[str, list[float]]:
    """Modelled seconds of a head of 128, forward and backward, at each ratio of tokens that merge: SFA; dense causal
    attention, which no ratio helps; and dense attention of what is left of the tokens, as merging before the layer has
    it, where the merged rows give no results of their own."""

    def drawn(n: int) -> list[torch.Tensor]:
        return [torch.randn(1, 1, n, HEAD).half() for _ in range(3)]

    def of_dense(n: int) -> float:
        return modelled.total(modelled.program(dense, *drawn(n), gpu=gpu, sample=48))

    found: dict[str, list[float]] = {"SFA": [], "dense attention": [], "plain merging": []}
    whole = of_dense(tokens)
    for ratio in RATIOS:
        decisions = (torch.randperm(tokens) < ratio * tokens).view(1, 1, tokens)
        found["SFA"].append(modelled.total(modelled.program(sfa, *drawn(tokens), decisions, gpu=gpu)))
        found["dense attention"].append(whole)
        found["plain merging"].append(of_dense(max(16, round(tokens * (1 - ratio)))))
    return found


def crossing(found: dict[str, list[float]]) -> float | None:
    """The ratio from which on SFA takes less than dense attention, on the straight line between two that were tried."""
    gains = [own - other for own, other in zip(found["SFA"], found["dense attention"], strict=True)]
    if gains[0] <= 0:
        return 0.0
    for i in range(1, len(RATIOS)):
        if gains[i] <= 0:
            before, after = gains[i - 1], gains[i]
            return RATIOS[i - 1] + (RATIOS[i] - RATIOS[i - 1]) * before / (before - after)
    return None


def costs(gpu: str, out: Any, lengths: tuple[int, ...] = LENGTHS) -> list[Any]:
    """The paper's figures 3 to 5: throughput over the share of tokens that merge."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * len(lengths), 3.2), layout="constrained")
    panels = figure.subplots(1, len(lengths), squeeze=False)[0]
    rows = []
    for panel, tokens in zip(panels, lengths, strict=True):
        found = curves(tokens, gpu)
        for name, seconds in found.items():
            panel.plot(RATIOS, [tokens / each / 1e6 for each in seconds], marker="o", label=name)
            rows.append([f"{tokens} tokens, {name}", *(f"{1e6 * each:,.1f}" for each in seconds)])
        half, point = found["dense attention"][0] / found["SFA"][RATIOS.index(0.5)], crossing(found)
        rows.append([f"  dense over SFA at 0.5: {half:.2f}; crossing at {'none' if point is None else f'{point:.2f}'}"])
        panel.set(title=f"{tokens} tokens", xlabel="share of tokens that merge", yscale="log")
        finish(panel)
    panels[0].set_ylabel(f"million tokens/s, {gpu}, modelled")
    columns = [f"one head of {HEAD}, forward and backward, us", *map(str, RATIOS)]
    table(f"SFA over the share of tokens that merge, modelled on {gpu}", columns, rows)
    path = out / "sfa_olmoe_costs.png"
    figure.savefig(path, dpi=150)
    show_compression()
    return [path]


STUDY = Study(
    name="sfa_olmoe",
    title="A language model of OLMoE's shape with SFA",
    build=Model,
    sizes=PAPER,
    parameters=parameters,
    wanted=WANTED,
    small=SMALL,
    whole=replace(PAPER["OLMoE 0.25B-1.75B"], layers=1),
    batch=batch,
    costs=costs,
)

if __name__ == "__main__":
    main(STUDY)
