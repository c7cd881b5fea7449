# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What is done with every model of this folder: its parameters counted at the paper's sizes, a small one held against
the same model in plain PyTorch, exported and compiled, and trained for some steps on bytes of this machine's own files.

A model's module describes itself as a ``Study`` and calls ``main``.
"""

from __future__ import annotations

import argparse
import copy
import pathlib
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import weft
from rich import box
from rich.console import Console
from rich.table import Table

AGREEMENT = 1e-4  # the largest relative difference of two losses of the same parameters
SETTLED = 1e-3  # the largest relative change of logits that rounding makes where it turns no decision
DRAWS = 64  # models and batches that are tried for one that is settled; of the vision backbone about one in eight is
WIDTH = 110


@dataclass(frozen=True)
class Batch:
    """What a model reads, and what it is to say; targets are class numbers."""

    inputs: torch.Tensor
    targets: torch.Tensor


@dataclass(frozen=True)
class Study:
    """A paper's model.

    ``build(sizes, plain)``  the model, through Weft or in plain PyTorch operations, with the same parameters by the
                             same names; ``model(inputs)`` gives logits [..., classes], and ``model.loss(inputs,
                             targets)`` what training makes small
    ``sizes``                the paper's, by the paper's names
    ``parameters``           what the paper counts, of a model on the meta device: {"total": ..., ...}
    ``wanted``               what it says of them: {name: {"total": ...}}
    ``small``                the sizes of what is checked and trained here
    ``whole``                sizes of the paper at which a forward runs here: all of it, or one layer
    ``batch(sizes, generator)``  of such a model, from files
    ``costs(gpu, out)``      prints and draws what the paper says of costs, and returns the pictures' paths
    """

    name: str
    title: str
    build: Callable[[Any, bool], torch.nn.Module]
    sizes: Mapping[str, Any]
    parameters: Callable[[torch.nn.Module], dict[str, float]]
    small: Any
    whole: Any
    batch: Callable[[Any, torch.Generator], Batch]
    costs: Callable[[str, pathlib.Path], Sequence[pathlib.Path]]
    wanted: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rate: float = 2e-3


# ---- Parameters


def count(model: torch.nn.Module) -> int:
    """How many numbers a model learns."""
    return sum(each.numel() for each in model.parameters())


def counts(study: Study) -> dict[str, dict[str, float]]:
    """The parameters of each of the paper's sizes, in millions; no memory is taken for them."""
    found = {}
    for name, sizes in study.sizes.items():
        with torch.device("meta"):
            found[name] = {what: n / 1e6 for what, n in study.parameters(study.build(sizes, False)).items()}
    return found


# ---- Equality


@dataclass(frozen=True)
class Difference:
    """How far a result is from float64's, relative to its norm: through Weft, and in plain float32."""

    weft: float
    plain: float

    @property
    def right(self) -> bool:
        """Whether Weft's error is of the size of plain float32's."""
        return self.weft <= 8 * self.plain + 1e-4


def settled(plain: torch.nn.Module, batch: Batch, seed: int) -> bool:
    """Whether what a plain model decides, such as which tokens join, which experts take one, and on which side of its
    bend a ReLU is, is in float64 as in float32, its parameters moved by some roundings: logits and gradients stay where
    they are. Where less decides, any arithmetic may decide either way.
    """
    exact = _results(copy.deepcopy(plain), batch, torch.float64)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(12):
        moved = copy.deepcopy(plain).float()
        with torch.no_grad():
            for each in moved.parameters():
                each *= 1 + 2.0**-21 * torch.randn(each.shape, generator=generator)
        if max(_apart(_results(moved, batch, torch.float32), exact).values()) > SETTLED:
            return False
    return True


def twins(study: Study, seed: int) -> tuple[torch.nn.Module, torch.nn.Module]:
    """A small model through Weft, and the plain one of the same parameters."""
    torch.manual_seed(seed)
    mine, plain = study.build(study.small, False), study.build(study.small, True)
    plain.load_state_dict(mine.state_dict(), strict=True)
    return mine, plain


def differences(study: Study, seed: int) -> dict[str, Difference]:
    """Of a small model's logits, its loss, and the gradient of every parameter that the loss depends on. Of a model and
    batch that rounding decides (``settled``) nothing could be said: others take their place."""
    for each in range(seed, seed + DRAWS):
        mine, plain = twins(study, each)
        batch = study.batch(study.small, torch.Generator().manual_seed(each))
        if settled(plain, batch, each):
            return _differences(mine, plain, batch)
    raise RuntimeError(f"expected one of {DRAWS} models from seed {seed} on whose decisions rounding does not turn")


def _results(model: torch.nn.Module, batch: Batch, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Logits, loss and gradients by name, as float64; the model is of ``dtype`` then."""
    model = model.to(dtype)
    inputs = batch.inputs.to(dtype) if batch.inputs.dtype.is_floating_point else batch.inputs
    model.zero_grad()
    loss = model.loss(inputs, batch.targets)
    loss.backward()
    found = {"logits": model(inputs), "loss": loss}
    found |= {f"d {name}": each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {name: value.detach().double().clone() for name, value in found.items()}


def _apart(found: Mapping[str, torch.Tensor], exact: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """How far results are from exact ones, relative to the norm of these."""
    largest = max(float(value.norm()) for name, value in exact.items() if name.startswith("d "))
    # of a gradient that is next to nothing, such as a bias's that a softmax does not see, rounding is all
    sizes = {
        name: max(float(value.norm()), 1e-4 * largest if name.startswith("d ") else 0.0)
        for name, value in exact.items()
    }
    return {name: float((found[name] - value).norm()) / sizes[name] for name, value in exact.items()}


def _differences(mine: torch.nn.Module, plain: torch.nn.Module, batch: Batch) -> dict[str, Difference]:
    through, single = _results(mine, batch, torch.float32), _results(plain, batch, torch.float32)
    exact = _results(plain, batch, torch.float64)
    ours, plains = _apart(through, exact), _apart(single, exact)
    return {name: Difference(ours[name], plains[name]) for name in exact}


def whole_difference(study: Study, seed: int) -> tuple[float, float, float]:
    """At the paper's size, one sequence or image, in float32: how far the logits are from plain PyTorch's, relative to
    their norm; and the seconds of either."""
    torch.manual_seed(seed)
    mine, plain = study.build(study.whole, False).eval(), study.build(study.whole, True).eval()
    plain.load_state_dict(mine.state_dict(), strict=True)
    inputs = study.batch(study.whole, torch.Generator().manual_seed(seed)).inputs[:1]
    results, seconds = [], []
    with torch.no_grad():
        for model in (mine, plain):
            started = time.perf_counter()
            results.append(model(inputs))
            seconds.append(time.perf_counter() - started)
    return float((results[0] - results[1]).norm() / results[1].norm()), *seconds


# ---- Training


@dataclass(frozen=True)
class Training:
    """The loss at each step, the plain model's of the same parameters, and how long all steps took.

    Two trainings of their own would not do: AdamW's steps are as large for a gradient that is rounding alone as for any
    other, so that two right models part within three steps by 0.1 % and more.
    """

    losses: list[float]
    plain: list[float]
    seconds: float
    apart: float
    """the largest relative difference of the two losses; steps that rounding decides (``settled``) take no part"""


def trained(study: Study, seed: int, steps: int) -> tuple[Training, torch.nn.Module]:
    """The small model trained through Weft by AdamW, one step a batch."""
    mine, plain = twins(study, seed)
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(mine.parameters(), lr=study.rate, betas=(0.9, 0.95), weight_decay=0.1)
    losses: list[float] = []
    beside: list[float] = []
    apart = [0.0]
    show = progress(f"{study.name} through Weft", steps)
    seconds = 0.0
    for _ in range(steps):
        batch = study.batch(study.small, generator)
        plain.load_state_dict(mine.state_dict())
        with torch.no_grad():
            beside.append(plain.loss(batch.inputs, batch.targets).item())
        started = time.perf_counter()
        loss = mine.loss(batch.inputs, batch.targets)
        losses.append(loss.item())
        difference = abs(losses[-1] / beside[-1] - 1)
        if difference <= AGREEMENT or settled(plain, batch, seed):
            apart.append(difference)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(mine.parameters(), 1.0)
        optimiser.step()
        seconds += time.perf_counter() - started
        show(losses, seconds)
    return Training(losses, beside, seconds, max(apart)), mine


def progress(what: str, steps: int) -> Callable[[list[float], float], None]:
    """Shows a training's step, loss and remaining time, in a line of a terminal that the next one replaces."""

    def show(losses: list[float], seconds: float) -> None:
        if sys.stderr.isatty():
            left = seconds / len(losses) * (steps - len(losses))
            line = f"{what}: step {len(losses)} of {steps}, loss {losses[-1]:.3f}, {left:.0f} s left"
            print(f"\r{line:78}\r", end="", file=sys.stderr, flush=True)

    return show


# ---- What is said


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print one; the first column is text, the rest numbers."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i else "left")
    for row in rows:
        made.add_row(*row)
    Console(width=WIDTH).print(made)


def show_parameters(study: Study) -> None:
    """Counted, beside what the paper says."""
    rows = []
    for name, found in counts(study).items():
        for what, millions in found.items():
            said = study.wanted.get(name, {}).get(what)
            rows.append([f"{name}, {what}", f"{millions:,.2f}", "" if said is None else f"{said:,g}"])
    table("Parameters, millions", ["sizes", "counted", "said"], rows)


def show_differences(study: Study, seed: int) -> None:
    """The largest few. Raises SystemExit where one is not rounding alone."""
    found = differences(study, seed)
    worst = sorted(found.items(), key=lambda item: -item[1].weft)
    rows = [[name, f"{each.weft:.1e}", f"{each.plain:.1e}"] for name, each in worst[:6]]
    table(f"Relative differences from float64: the 6 largest of {len(found)}", ["of", "Weft", "plain PyTorch"], rows)
    wrong = [name for name, each in found.items() if not each.right]
    if wrong:
        raise SystemExit(f"through Weft these are further from float64 than rounding takes them: {', '.join(wrong)}")


def show_whole(study: Study, seed: int) -> None:
    """A forward at the paper's size beside plain PyTorch's, which takes whole matrices: minutes."""
    found, mine, plain = whole_difference(study, seed)
    print(
        f"{study.whole}: logits differ by {found:.1e} of their norm; Weft {mine:.0f} s, plain PyTorch {plain:.0f} s\n"
    )
    if not found <= 1e-5:
        raise SystemExit("expected the logits to differ by rounding alone, by at most 1e-5 of their norm")


def show_export(study: Study, seed: int) -> None:
    """The model as torch.export and torch.compile take it, without a break."""
    mine, _ = twins(study, seed)
    inputs = study.batch(study.small, torch.Generator().manual_seed(seed)).inputs
    with torch.no_grad():
        expected = mine(inputs)
        program = torch.export.export(mine, (inputs,))
        nodes = [str(node.target) for node in program.graph.nodes if "weft" in str(node.target)]
        same = torch.equal(program.module()(inputs), expected)
        compiled = torch.compile(mine, fullgraph=True, backend="aot_eager")(inputs)
    print(f"torch.export: {len(nodes)} of Weft's operators in the graph, {'equal bits' if same else 'other bits'}")
    print(f"torch.compile(fullgraph=True): {'equal bits' if torch.equal(compiled, expected) else 'other bits'}\n")
    if not nodes or not same or not torch.equal(compiled, expected):
        raise SystemExit("expected the exported and the compiled model to give what the model gives")


def show_training(study: Study, seed: int, steps: int, out: pathlib.Path) -> pathlib.Path:
    """Both curves, in numbers and drawn."""
    found, _ = trained(study, seed, steps)
    print(
        f"trained for {steps} steps: loss {found.losses[0]:.3f} to {found.losses[-1]:.3f} in {found.seconds:.1f} s;"
        f" plain PyTorch's of the same parameters differ by {100 * found.apart:.1e} %\n"
    )
    if not found.apart <= AGREEMENT:
        raise SystemExit(f"expected the losses to agree to {100 * AGREEMENT:g} %")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.2), layout="constrained")
    panel = figure.subplots()
    panel.plot(found.plain, color="#9ecae1", linewidth=5, label="plain PyTorch")
    panel.plot(found.losses, color="#08306b", linewidth=1.2, label="Weft")
    panel.set(title=study.title, xlabel="step", ylabel="loss")
    finish(panel)
    path = out / f"{study.name}_training.png"
    figure.savefig(path, dpi=150)
    return path


def finish(panel: Any) -> None:
    """What every panel of a picture has."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(alpha=0.25)
    panel.title.set_fontsize(10)
    panel.legend(frameon=False, fontsize=8)


def main(study: Study) -> None:
    """The command line of a model's module."""
    everything, slow = ["parameters", "check", "export", "train", "costs"], "whole"
    parser = argparse.ArgumentParser(description=study.title)
    parser.add_argument(
        "what", nargs="*", help=f"of {', '.join(everything)}, all of it unless given; or {slow}, which takes minutes"
    )
    parser.add_argument("--steps", type=int, default=20, help="of the training (default 20)")
    parser.add_argument("--seed", type=int, default=None, help="fresh, and printed, unless given")
    parser.add_argument("--gpu", default="A100", help="whose rates stand behind modelled times (default A100)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("models"), help="folder of the pictures")
    options = parser.parse_args()
    unknown = [what for what in options.what if what not in (*everything, slow)]
    if unknown:
        parser.error(f"expected what to do to be of {', '.join(everything)}, {slow}, but got {unknown[0]}")
    torch.set_num_threads(1)  # of models so small more threads would wait for one another
    options.out.mkdir(parents=True, exist_ok=True)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{study.title}; seed {seed}, {weft.device()}\n")
    wanted, pictures = options.what or everything, []
    if "parameters" in wanted:
        show_parameters(study)
    if "check" in wanted:
        show_differences(study, seed)
    if slow in wanted:
        show_whole(study, seed)
    if "export" in wanted:
        show_export(study, seed)
    if "train" in wanted:
        pictures.append(show_training(study, seed, options.steps, options.out))
    if "costs" in wanted:
        pictures += study.costs(options.gpu, options.out)
    for picture in pictures:
        print(f"wrote {picture}")
