# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Small language models, one per mechanism, trained through Weft and through plain PyTorch from the same seed: their
loss curves agree. Run it: python examples/10_language_models.py [--mechanism NAME ...] [--steps N] [--out FILE]

Two layers over characters of sentences that a little grammar makes. Causal mechanisms learn the next character; SEMA's
mean sees the whole text, before and after, so its model fills in characters that were blotted out.
"""

import argparse
import pathlib
import random
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import weft
from torch.nn import functional
from weft.testing import layers, masks

DIM, HEADS, TOKENS, BATCH, LAYERS = 32, 2, 64, 4, 2
AGREEMENT = 0.001  # the largest relative difference of two losses; 1 % would not show a mask that is missing
BLOT = "#"


def causal(n):
    return masks.causal(n, n)


@dataclass(frozen=True)
class Mechanism:
    """A layer of weft.nn, and the same in plain PyTorch; the state of one loads into the other."""

    weft: Callable[[], torch.nn.Module]
    plain: Callable[[], torch.nn.Module]
    fills: bool = False  # learns to fill in what is blotted out, in the place of the next character


MECHANISMS = {
    "attention": Mechanism(
        lambda: weft.nn.Attention(DIM, HEADS, pattern=weft.causal(), rope=True),
        lambda: layers.Attention(DIM, HEADS, mask=causal, rope=True),
    ),
    "sema": Mechanism(
        lambda: weft.nn.SEMA(DIM, HEADS, window=16), lambda: layers.SEMA(DIM, HEADS, window=16), fills=True
    ),
    "sfa": Mechanism(lambda: weft.nn.SFA(DIM, HEADS), lambda: layers.SFA(DIM, HEADS)),
    "sas": Mechanism(
        lambda: weft.nn.SAS(DIM, HEADS, kernel=3, expanded_heads=4),
        lambda: layers.SAS(DIM, HEADS, many=4, wide=24, kernel=3),
    ),
    "gau": Mechanism(
        lambda: weft.nn.GAU(DIM, size=16, pattern=weft.causal()), lambda: layers.GAU(DIM, 16, 2 * DIM, mask=causal)
    ),
    "gau-conv": Mechanism(  # with convolutions before the scores and the gate
        lambda: weft.nn.GAU(DIM, size=16, pattern=weft.causal(), kernel=3),
        lambda: layers.GAU(DIM, 16, 2 * DIM, mask=causal, kernel=3),
    ),
}


# ---- Text


def sentences(seed, length):
    """So many characters of sentences that a grammar makes, the same for a seed."""
    choose = random.Random(seed).choice
    parts = [
        ["the", "a", "every", "one"],
        ["old", "quiet", "red", "small", "wooden", "clever"],
        ["weaver", "cat", "river", "loom", "miller", "bird"],
        ["follows", "mends", "watches", "finds", "forgets"],
        ["the thread", "a shuttle", "the market", "its shadow", "the cloth"],
        ["at dawn", "by the mill", "in winter", "without a sound", "again"],
    ]
    made = ""
    while len(made) < length:
        made += " ".join(choose(part) for part in parts) + ". "
    return made[:length]


@dataclass(frozen=True)
class Batch:
    """Characters as numbers [BATCH, TOKENS]; targets are -100 where nothing is asked."""

    inputs: torch.Tensor
    targets: torch.Tensor


def batches(seed, steps, fills):
    """The batches of a training, and how many characters there are; the same for a seed."""
    text = sentences(seed, 20_000)
    alphabet = sorted(set(text) | {BLOT})
    numbers = torch.tensor([alphabet.index(character) for character in text])
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(steps):
        starts = torch.randint(len(numbers) - TOKENS - 1, (BATCH,), generator=generator)
        rows = torch.stack([numbers[start : start + TOKENS + 1] for start in starts])
        if fills:
            blotted = torch.rand((BATCH, TOKENS), generator=generator) < 0.2
            shown = rows[:, 1:].masked_fill(blotted, alphabet.index(BLOT))
            made.append(Batch(shown, rows[:, 1:].masked_fill(~blotted, -100)))
        else:
            made.append(Batch(rows[:, :-1], rows[:, 1:]))
    return made, len(alphabet)


# ---- Model


class Block(torch.nn.Module):
    """A layer of the mechanism and a perceptron, each on the norm of what it adds to."""

    def __init__(self, mixer):
        super().__init__()
        self.norm_1, self.mixer = torch.nn.LayerNorm(DIM), mixer
        self.norm_2 = torch.nn.LayerNorm(DIM)
        self.perceptron = torch.nn.Sequential(
            torch.nn.Linear(DIM, 4 * DIM), torch.nn.GELU(), torch.nn.Linear(4 * DIM, DIM)
        )

    def forward(self, x):
        x = x + self.mixer(self.norm_1(x))
        return x + self.perceptron(self.norm_2(x))


class Model(torch.nn.Module):
    """Logits [BATCH, TOKENS, characters] of characters [BATCH, TOKENS]."""

    def __init__(self, characters, mixer):
        super().__init__()
        self.embedding = torch.nn.Embedding(characters, DIM)
        self.places = torch.nn.Parameter(0.1 * torch.randn(TOKENS, DIM))
        self.blocks = torch.nn.Sequential(*(Block(mixer()) for _ in range(LAYERS)))
        self.norm, self.head = torch.nn.LayerNorm(DIM), torch.nn.Linear(DIM, characters)

    def forward(self, characters):
        return self.head(self.norm(self.blocks(self.embedding(characters) + self.places)))


@dataclass(frozen=True)
class Training:
    """The loss at each step, and how long all of them took."""

    losses: list[float]
    seconds: float


def train(model, lessons, show):
    """Train by AdamW, one step a batch; ``show`` is told the losses so far and the seconds that they took."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    started = time.perf_counter()
    for batch in lessons:
        loss = functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        show(losses, time.perf_counter() - started)
    return Training(losses, time.perf_counter() - started)


def compare(name, seed, steps):
    """Train both forms of a mechanism's model from one state on the same batches."""
    mechanism = MECHANISMS[name]
    lessons, characters = batches(seed, steps, mechanism.fills)
    torch.manual_seed(seed)
    mine, plain = Model(characters, mechanism.weft), Model(characters, mechanism.plain)
    plain.load_state_dict(mine.state_dict())
    trained = train(mine, lessons, progress(f"{name}, Weft", steps))
    return trained, train(plain, lessons, progress(f"{name}, PyTorch", steps))


# ---- Reports


def progress(what, steps):
    """What shows a training's step, loss and remaining time, in a line of a terminal that the next one replaces."""

    def show(losses, seconds):
        if not sys.stderr.isatty():
            return
        left = seconds / len(losses) * (steps - len(losses))
        line = f"{what}: step {len(losses)} of {steps}, loss {losses[-1]:.3f}, {left:.0f} s left"
        print(f"\r{line:70}\r", end="", file=sys.stderr, flush=True)

    return show


def difference(mine, plain):
    """The largest relative difference of the losses."""
    return max(abs(a - b) / b for a, b in zip(mine.losses, plain.losses, strict=True))


def draw(results, path):
    """Both curves of each mechanism, three panels to a row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(3, len(results))
    rows = -(-len(results) // columns)
    size = (3.4 * columns, 2.8 * rows)
    figure, panels = pyplot.subplots(rows, columns, figsize=size, sharey=True, squeeze=False, layout="constrained")
    for panel in panels.flat[len(results) :]:
        panel.remove()
    for panel, (name, (mine, plain)) in zip(panels.flat, results.items(), strict=False):
        panel.plot(plain.losses, color="#9ecae1", linewidth=5, label="plain PyTorch")
        panel.plot(mine.losses, color="#08306b", linewidth=1.2, label="Weft")
        panel.set_title(name + (" (fills in)" if MECHANISMS[name].fills else ""), fontsize=10)
        panel.set_xlabel("step")
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
    for row in panels:
        row[0].set_ylabel("loss")
    panels[0][0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description="Train small language models through Weft and through PyTorch.")
    parser.add_argument("--mechanism", nargs="+", choices=MECHANISMS, default=list(MECHANISMS), metavar="NAME")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=None, help="fresh, and printed, unless given")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("language_models.png"), help="PNG or SVG")
    options = parser.parse_args()
    torch.set_num_threads(1)  # of models so small more threads would wait for one another
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{LAYERS} layers of {DIM}, {BATCH} x {TOKENS} characters a step, {options.steps} steps, seed {seed}, ")
    print(f"{weft.device()}; seconds are of the training, compiling included\n")
    print(
        f"{'mechanism':12}{'learns':12}{'first':>8}{'last':>8}{'PyTorch':>9}{'differ by':>11}{'Weft':>9}{'PyTorch':>9}"
    )
    results = {}
    for name in options.mechanism:
        mine, plain = results[name] = compare(name, seed, options.steps)
        learns = "blots" if MECHANISMS[name].fills else "next"
        print(
            f"{name:12}{learns:12}{mine.losses[0]:8.3f}{mine.losses[-1]:8.3f}{plain.losses[-1]:9.3f}"
            f"{100 * difference(mine, plain):9.1e} %{mine.seconds:7.1f} s{plain.seconds:7.1f} s",
            flush=True,
        )
    draw(results, options.out)
    print(f"\nwrote {options.out}")
    apart = [name for name, pair in results.items() if difference(*pair) > AGREEMENT]
    if apart:
        sys.exit(f"the losses of {', '.join(apart)} differ by more than {100 * AGREEMENT:g} %")


if __name__ == "__main__":
    main()
