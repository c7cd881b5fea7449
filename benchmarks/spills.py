# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What attention's and recurrences' kernels spill at their default schedules: bytes that ptxas stores and loads.

    python benchmarks/spills.py [--target sm_90a] [--sizes 64 128 192x128] [--forms causal bias] [--all]

For each head size and form (a pattern, a score_mod, heads that share keys, what is computed on the way) every kernel of
the forward and the generated backward: its registers and spilled bytes. Of those that spill none only the
count is printed without ``--all``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any

import torch
import weft
from patterns import HEADS, PATTERNS, attention
from weft.compiler.ptxas import Resources, assemble
from weft.programs.compiled import compiled
from weft.tables import console_class, table_class
from weft.targets import targets

TOKENS = 512


@weft.program
def one_pass(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern, deterministic=False) @ v


@weft.program
def biased(q, k, v, table, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: score + table[h, n, m]) @ v


@weft.program
def alibi(q, k, v, slopes, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: score - slopes[h] * (n - m)) @ v


@weft.program
def capped(q, k, v, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: 20 * weft.tanh(score / 20)) @ v


@weft.program
def sigmoid(q, k, v, bias, *, pattern):
    def log_sigmoid(score, b, h, n, m):
        return -weft.log(1 + weft.exp(-(score + bias[h])))

    return weft.softmax(q, k, pattern, score_mod=log_sigmoid) @ v


@weft.program
def tempered(q, k, v, factor, *, pattern):
    return weft.softmax(q, k, pattern, score_mod=lambda score, b, h, n, m: score * factor[h, n]) @ v


@weft.program
def dropped(q, k, v, seed, *, pattern):
    return weft.attention.attend(q, k, v, pattern, dropout_p=0.1, dropout_seed=seed)


@weft.program
def rotated(q, k, v, *, pattern):
    q, k = weft.rope(q, k)
    return weft.softmax(q, k, pattern) @ v


@weft.program
def gated(q, k, v, gate, *, pattern):
    return (weft.softmax(q, k, pattern) @ v) * weft.sigmoid(gate)


@weft.program
def linear(q, k, v, decay):
    return weft.linear_attention(q, k, decay) @ v


@weft.program
def delta(q, k, v, beta):
    return weft.delta_rule(q, k, beta) @ v


@weft.program
def gated_delta(q, k, v, beta):
    return weft.delta_rule(q, k, beta, beta) @ v


def table_of(D: int, Dv: int) -> torch.Tensor:
    return torch.zeros(HEADS, TOKENS, TOKENS)


def gate_of(D: int, Dv: int) -> torch.Tensor:
    return torch.zeros(1, HEADS, TOKENS, Dv, dtype=torch.float16)


def numbers_of(D: int, Dv: int) -> torch.Tensor:
    return torch.zeros(1, HEADS, TOKENS)


def channels_of(D: int, Dv: int) -> torch.Tensor:
    return torch.zeros(1, HEADS, TOKENS, D)


def heads_of(D: int, Dv: int) -> torch.Tensor:
    return torch.zeros(HEADS)


#: a form's program, its pattern if it has one, query heads that share keys, and what it takes beside q, k and v
FORMS: dict[str, tuple[Any, Any, int, Callable[[int, int], torch.Tensor] | None]] = {
    "full": (attention, weft.full(), 1, None),
    "causal": (attention, weft.causal(), 1, None),
    "window": (attention, weft.window(256, 0), 1, None),
    "one pass": (one_pass, weft.full(), 1, None),
    "one pass causal": (one_pass, weft.causal(), 1, None),
    "shared": (attention, weft.causal(), 4, None),
    "bias": (biased, weft.full(), 1, table_of),
    "bias causal": (biased, weft.causal(), 1, table_of),
    "alibi": (alibi, weft.causal(), 1, heads_of),
    "longformer alibi": (alibi, weft.window(64, 64) | weft.global_tokens(8), 1, heads_of),
    "neighbourhood bias": (biased, weft.neighbourhood((16, 32), (7, 7)), 1, table_of),
    "sigmoid": (sigmoid, weft.causal(), 1, heads_of),
    "temperature": (tempered, weft.causal(), 1, lambda D, Dv: torch.zeros(HEADS, TOKENS)),
    "mask tensor": (attention, PATTERNS["mask tensor"](TOKENS), 1, None),
    "documents": (attention, PATTERNS["documents"](TOKENS), 1, None),
    "blocks": (attention, PATTERNS["blocks"](TOKENS), 1, None),
    "bitmap": (attention, PATTERNS["bitmap"](TOKENS), 1, None),
    "dropout": (dropped, weft.causal(), 1, lambda D, Dv: torch.zeros(2, dtype=torch.int32)),
    "cap": (capped, weft.causal(), 1, None),
    "cap shared": (capped, weft.causal(), 4, None),
    "rope": (rotated, weft.causal(), 1, None),
    "gate": (gated, weft.causal(), 1, gate_of),
    "gate shared": (gated, weft.causal(), 4, gate_of),
    "linear": (linear, None, 1, numbers_of),
    "linear by channel": (linear, None, 1, channels_of),
    "delta": (delta, None, 1, numbers_of),
    "gated delta": (gated_delta, None, 1, numbers_of),
}
SIZES = [(64, 64), (96, 96), (128, 128), (160, 160), (192, 128), (192, 192), (256, 256)]


def kernels(target: str, size: tuple[int, int], form: str) -> dict[str, Resources]:
    """What ptxas says of the kernels of a form."""
    (D, Dv), (program, pattern, shared, beside) = size, FORMS[form]
    arrays = [
        torch.zeros(1, heads, TOKENS, channels, dtype=torch.float16)
        for heads, channels in ((HEADS, D), (HEADS // shared, D), (HEADS // shared, Dv))
    ]
    if beside:
        arrays.append(beside(D, Dv))
    made = compiled(program.trace(program.bind(arrays, {} if pattern is None else {"pattern": pattern})), target, True)
    found = {each["entry"]: assemble(made.ptx, target, each["entry"]) for each in made.info["kernels"]}
    return {name: each for name, each in found.items() if each is not None}


def size_of(text: str) -> tuple[int, int]:
    D, _, Dv = text.partition("x")
    return int(D), int(Dv or D)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(targets()), nargs="+", default=sorted(targets()))
    parser.add_argument("--sizes", type=size_of, nargs="+", default=SIZES, help="D, or DxDv where they differ")
    parser.add_argument("--forms", choices=FORMS, nargs="+", default=list(FORMS), metavar="FORM")
    parser.add_argument("--all", action="store_true", help="kernels without spills too")
    options = parser.parse_args()
    rows, count = [], 0
    for target, size, form in itertools.product(options.target, options.sizes, options.forms):
        for name, each in kernels(target, size, form).items():
            count += 1
            if each.spilled_bytes or options.all:
                sizes = "x".join(map(str, size))
                rows.append((target, sizes, form, name, str(each.registers), str(each.spilled_bytes)))
                print(*rows[-1], file=sys.stderr, flush=True)
    shown = table_class()()
    for heading in ("target", "D", "form", "kernel", "registers", "spilled bytes"):
        shown.add_column(heading)
    for row in rows:
        shown.add_row(*row)
    console_class()().print(shown)
    print(f"{count} kernels, of which {sum(row[-1] != '0' for row in rows)} spill")


if __name__ == "__main__":
    main()
