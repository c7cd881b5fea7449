# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random score_mods and masks for weft.flex_attention, written as text in torch's functions, against the same text run
by torch in float64: integers of either sign, truths, reals, tables, and what turns one into another."""

import random
import re

import pytest
import torch
import weft
from test_flex_attention import dense
from weft.programs.torch_reads import AsTorch
from weft.testing import drawn, hold, judge

D = 16
# Expressions by what they give; {i}, {f} and {t} are smaller ones of integers, reals and truths, {n} is a number. What
# torch's functions take has to be a tensor: (i * 0 + x) is one whatever x is.
LEAVES = {"i": ("b", "h", "i", "j", "{n}", "ti[h]", "tj[i % 5]"), "f": ("s", "s", "0.37", "-1.21", "tf[h]", "tg[h][j]")}
LEAVES["t"] = ("(i >= j)", "(i > j + 3)", "(h == 1)", "(b == 0)")
FORMS = {
    "i": (
        "({i} + {i})", "({i} - {i})", "({i} * {n})", "({i} // 3)", "({i} // -5)", "({i} % 7)", "({i} % -3)",
        "({i} & 15)", "({i} ^ 5)", "(({i} & 7) << 2)", "({i} >> 1)", "torch.abs(i * 0 + {i})",
        "(i * 0 + {i}).clamp(-4, 6)", "torch.where({t}, i * 0 + {i}, i * 0 + {i})",
        "torch.maximum(i * 0 + {i}, i * 0 + {i})",
        "({t}).to(torch.int32)",
        "torch.div(i * 0 + {i}, 4, rounding_mode='trunc')", "torch.fmod(i * 0 + {i}, 3)",
    ),
    "t": (
        "({i} < i * 0 + {i})", "(i * 0 + {i} >= {i})", "(i * 0 + {i} == {i})", "({t} & {t})", "({t} | {t})", "(~{t})",
        "torch.logical_xor({t}, {t})", "(s * 0 + {f} > 0.3171)", "torch.logical_not({t})",
    ),
    "f": (
        "({f} + {f})", "({f} - {f})", "({f} * {f})", "({f} / -3)", "torch.tanh(s * 0 + {f})",
        "torch.sigmoid(s * 0 + {f})",
        "torch.exp(-torch.abs(s * 0 + {f}))", "torch.where({t}, s * 0 + {f}, s * 0 + {f})", "({f} + {i} * 0.05)",
        "torch.log1p(torch.abs(s * 0 + {f}))", "torch.sin(s * 0 + {f})", "(s * 0 + {f}).masked_fill({t}, 0.6)",
        "torch.clamp(s * 0 + {f}, -1.5, 2)", "({i} / -7)", "({t} * (s * 0 + {f}))",
    ),
}  # fmt: skip


def written(draw, kind, depth):
    """A random expression that gives an integer "i", a truth "t" or a real "f"."""
    text = draw.choice(FORMS[kind] if depth else LEAVES[kind])
    while "{" in text:
        for part in ("{i}", "{t}", "{f}", "{n}"):
            if part in text:
                inner = str(draw.randint(-9, 9)) if part == "{n}" else written(draw, part[1], max(depth - 1, 0))
                text = text.replace(part, inner, 1)
    return text


def mods(score, mask, tf, tg):
    """The functions of the texts, over tables of integers and these of reals."""
    names = {"torch": torch, "ti": torch.tensor([3, -4]), "tj": torch.tensor([1, 0, -2, 5, 9]), "tf": tf, "tg": tg}
    return eval(f"lambda s, b, h, i, j: s * 0.5 + {score}", names), eval(f"lambda b, h, i, j: (i == j) | {mask}", names)


def check(seed):
    """One random mod with a random mask: forward, log-sum-exp and all gradients."""
    draw, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    n = draw.choice((20, 33))
    score, mask = written(draw, "f", draw.choice((2, 3))), written(draw, "t", 1)
    if re.search(r"\bs\b", mask):  # a mask has no score
        mask = "(i >= j)"
    print(f"seed {seed}\n  score {score}\n  mask {mask}")

    def attend(q, k, v, *tables):
        mod, allowed = mods(score, mask, *tables)
        return weft.flex_attention(q, k, v, mod, weft.mask(AsTorch(allowed)), return_lse=True)

    def formula(q, k, v, *tables, form):
        return dense(q, k, v, *mods(score, mask, *tables))

    def inputs(randn):
        return {
            "q": randn(2, 2, n, D),
            "k": randn(2, 2, n, D),
            "v": randn(2, 2, n, D),
            "tf": randn(2),
            "tg": randn(2, n),
        }

    def judged():
        tensors = drawn(inputs, torch.float32, generator)
        return judge(attend, formula, tensors, names=("out", "lse"), parameters=("tg",), generator=generator)

    hold(judged)


def test_random_mods(seed):
    for number in range(12):
        check((seed + number) % 2**32)


@pytest.mark.slow
def test_many_random_mods(seed):
    for number in range(250):
        check((seed + number) % 2**32)
