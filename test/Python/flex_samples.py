# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mods and masks as users of FlexAttention write them: functions of (score, b, h, q_idx, kv_idx) and of (b, h, q_idx,
kv_idx) in torch, with the tensors that they read around them.

Each sample draws its tensors, and makes its mods of them: of float32 tensors for Weft, of float64 ones for the
reference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.attention.flex_attention import and_masks, noop_mask, or_masks


@dataclass(frozen=True)
class Sample:
    """``make(*tensors)`` gives (score_mod, mask_mod), ``draw(randn, sample)`` the tensors by name; ``groups`` are the
    heads of the keys, ``block`` the side of the BlockMask's blocks."""

    make: Callable[..., Any]
    draw: Callable[..., dict[str, torch.Tensor]] = field(default=lambda randn, s: {})
    batch: int = 2
    heads: int = 2
    groups: int | None = None
    n: int = 70
    m: int = 70
    block: int = 16
    scale: float | None = None


SAMPLES: dict[str, Sample] = {}


def sample(name, **sizes):
    """Register what a function makes under a name; its tensors come from ``draw=``."""

    def add(make):
        SAMPLES[name] = Sample(make, **sizes)
        return make

    return add


def causal_mask(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


@sample("noop")
def noop():
    return (lambda score, b, h, q_idx, kv_idx: score), noop_mask


@sample("causal")
def causal():
    return None, causal_mask


@sample("causal as a score_mod")
def causal_scores():
    def mod(score, b, h, q_idx, kv_idx):
        return torch.where(q_idx >= kv_idx, score, -float("inf"))

    return mod, None


@sample("sliding window", n=64, m=90)
def sliding_window():
    return None, lambda b, h, q_idx, kv_idx: (q_idx - kv_idx).abs() <= 9


@sample("causal window")
def causal_window():
    size = 12

    def mask(b, h, q_idx, kv_idx):
        return causal_mask(b, h, q_idx, kv_idx) & (q_idx - kv_idx <= size)

    return None, mask


@sample("prefix-LM, a length each batch", draw=lambda randn, s: {"lengths": torch.tensor([5, 40])})
def prefix_lm(lengths):
    return None, or_masks(lambda b, h, q, kv: kv < lengths[b], causal_mask)


def documents(randn, s):
    ids = torch.repeat_interleave(torch.arange(3), torch.tensor([20, 3, s.n - 23]))
    return {"document_id": ids}


@sample("document", draw=documents)
def document(document_id):
    return None, lambda b, h, q_idx, kv_idx: document_id[q_idx] == document_id[kv_idx]


@sample(
    "document and causal, of positions in it",
    draw=lambda randn, s: {**documents(randn, s), "offsets": torch.tensor([0, 20, 23, s.n])},
)
def document_causal(document_id, offsets):
    def mask(b, h, q_idx, kv_idx):
        same = document_id[q_idx] == document_id[kv_idx]
        q_local, kv_local = q_idx - offsets[document_id[q_idx]], kv_idx - offsets[document_id[kv_idx]]
        return same & causal_mask(b, h, q_local, kv_local)

    return None, mask


@sample("natten, 2-D", n=72, m=72)
def natten():
    width, height, kernel = 9, 8, 5

    def mask(b, h, q_idx, kv_idx):
        q_x, q_y, kv_x, kv_y = q_idx // width, q_idx % width, kv_idx // width, kv_idx % width
        x = q_x.clamp(kernel // 2, height - 1 - kernel // 2)
        y = q_y.clamp(kernel // 2, width - 1 - kernel // 2)
        return ((x - kv_x).abs() <= kernel // 2) & ((y - kv_y).abs() <= kernel // 2)

    return None, mask


@sample("dilated sliding window")
def dilated():
    def mask(b, h, q_idx, kv_idx):
        far = torch.abs(q_idx - kv_idx)
        return torch.logical_and(far <= 12, far % 3 == 0)

    return None, mask


@sample("alibi", heads=4)
def alibi():
    def mod(score, b, h, q_idx, kv_idx):
        return score + torch.exp2(-((h + 1) * 8.0 / 4)) * (kv_idx - q_idx)

    return mod, causal_mask


@sample("alibi of a tensor of slopes", draw=lambda randn, s: {"slopes": randn(s.heads).abs()})
def alibi_slopes(slopes):
    def mod(score, b, h, q_idx, kv_idx):
        bias = slopes[h] * (kv_idx - q_idx)
        return score + bias

    return mod, causal_mask


@sample("relative position")
def relative_position():
    return (lambda score, b, h, q_idx, kv_idx: score + 0.1 * (q_idx - kv_idx)), None


@sample("relative bias, a table by distance", n=50, m=50, draw=lambda randn, s: {"table": randn(s.heads, 2 * s.n - 1)})
def relative_table(table):
    count = table.shape[1] // 2

    def mod(score, b, h, q_idx, kv_idx):
        return score + table[h, q_idx - kv_idx + count]

    return mod, None


@sample("relative bias, negative distances from the end", n=50, m=50, draw=lambda randn, s: {"table": randn(99)})
def relative_wrapped(table):
    return (lambda score, b, h, q_idx, kv_idx: score + table[q_idx - kv_idx]), None


@sample("soft-cap by tanh")
def soft_cap():
    cap = 2

    def mod(score, b, h, q_idx, kv_idx):
        score = score / cap
        score = torch.tanh(score)
        return score * cap

    return mod, None


@sample("soft-cap and causal, in place operators")
def soft_cap_causal():
    def mod(score, b, h, q_idx, kv_idx):
        score = (score * 0.5).tanh()
        score = score * 2.0
        score += score.new_tensor(0.25)
        return score

    return mod, causal_mask


@sample("T5's buckets", draw=lambda randn, s: {"weight": randn(16, s.heads)})
def t5(weight):
    buckets, furthest = 16, 64

    def mod(score, b, h, q_idx, kv_idx):
        relative = kv_idx - q_idx
        side = (relative > 0).to(torch.long) * (buckets // 2)
        distance = torch.abs(relative)
        exact = buckets // 4
        far = torch.log(distance.float().clamp(min=1) / exact) / torch.log(torch.tensor(furthest / exact))
        far = (exact + (far * (buckets // 2 - exact)).to(torch.long)).clamp(max=buckets // 2 - 1)
        return score + weight[side + torch.where(distance < exact, distance, far), h]

    return mod, None


@sample("a window for each head", heads=4, draw=lambda randn, s: {"windows": torch.tensor([1, 5, 12, 40])})
def head_window(windows):
    return None, lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (q_idx - kv_idx < windows[h])


@sample("local in chunks, every other head global", heads=4)
def local_global():
    def mask(b, h, q_idx, kv_idx):
        local = q_idx // 16 == kv_idx // 16
        return (local | (h % 2 == 1)) & (q_idx >= kv_idx)

    return None, mask


@sample("transformer-XL", n=40, m=64, draw=lambda randn, s: {"position": randn(s.heads, s.n, s.n + s.m)})
def transformer_xl(position):
    count = position.shape[1]
    return (lambda score, b, h, q_idx, kv_idx: score + position[h][q_idx, kv_idx - q_idx + count - 1]), None


@sample(
    "a bias of all pairs", draw=lambda randn, s: {"bias": randn(s.batch, s.heads, s.n, s.m), "gate": randn(s.heads)}
)
def pair_bias(bias, gate):
    return (lambda score, b, h, i, j: score + bias[b, h, i, j] * torch.sigmoid(gate[h])), None


@sample("padding, a length each batch", draw=lambda randn, s: {"lengths": torch.tensor([33, 70])})
def padding(lengths):
    return None, and_masks(causal_mask, lambda b, h, q_idx, kv_idx: kv_idx < lengths[b])


@sample(
    "padding, a truth each token",
    draw=lambda randn, s: {"padded": torch.arange(s.m + 9)[None] < torch.tensor([33, 70])[:, None]},
)
def padding_truths(padded):
    def mod(score, b, h, q_idx, kv_idx):
        return score.masked_fill(~padded[b, kv_idx], float("-inf"))

    return mod, causal_mask


@sample("jagged sequences, by offsets", batch=1, draw=lambda randn, s: {"offsets": torch.tensor([0, 11, 30, s.n])})
def jagged(offsets):
    count = offsets[-1]
    lookup = torch.searchsorted(offsets, torch.arange(int(count)), right=True) - 1

    def mod(score, b, h, q_idx, kv_idx):
        return score * 0.5 + (q_idx - offsets[lookup[q_idx]]) * 0.01

    return mod, lambda b, h, q_idx, kv_idx: torch.eq(lookup[q_idx], lookup[kv_idx])


@sample("checkerboard")
def checkerboard():
    def mod(score, b, h, q_idx, kv_idx):
        score = torch.where((kv_idx - q_idx) % 2 == 0, score * 0.5, score)
        return torch.where(torch.logical_not((q_idx + kv_idx) % 2 == 0), score * 2, score)

    return mod, None


def graph(randn, s):
    return {"adjacency": (randn(s.n, s.m) > 0.8) | torch.eye(s.n, s.m, dtype=torch.bool)}


@sample("a graph's adjacency", draw=graph)
def adjacency_mask(adjacency):
    return None, lambda b, h, q_idx, kv_idx: adjacency[q_idx, kv_idx]


@sample("and_masks and or_masks of several")
def several():
    window = and_masks(causal_mask, lambda b, h, q, kv: q - kv < 20)
    return None, and_masks(
        or_masks(window, lambda b, h, q, kv: kv < 3), lambda b, h, q, kv: (q ^ kv) & 1 == 0, noop_mask
    )


@sample(
    "score_mod and mask_mod, shared heads",
    heads=4,
    groups=2,
    draw=lambda randn, s: {"slopes": randn(4), "factor": randn(1)},
)
def shared_heads(slopes, factor):
    def mod(score, b, h, q_idx, kv_idx):
        distance = torch.minimum(q_idx - kv_idx, torch.tensor(30)).to(score.dtype)
        return score * factor[0] - slopes[h] * torch.log1p(distance.clamp(min=0.0))

    return mod, causal_mask


@sample("queries at the end of the keys", n=10, m=70, scale=0.3, draw=lambda randn, s: {"offset": torch.tensor(60)})
def at_the_end(offset):
    return None, lambda b, h, q_idx, kv_idx: q_idx + offset >= kv_idx


@sample("a temperature learnt for each batch and head", draw=lambda randn, s: {"temperature": randn(s.batch, s.heads)})
def temperature(temperature):
    def mod(score, b, h, q_idx, kv_idx):
        row = temperature[b]
        return score * torch.nn.functional.softplus(row[h]) + torch.zeros_like(score)

    return mod, None


@sample("rows that see nothing", draw=lambda randn, s: {"empty": torch.tensor([0, 17, 69])})
def empty_rows(empty):
    return None, lambda b, h, q, kv: (q != empty[0]) & (q != empty[1]) & (q != empty[2]) & (kv <= q + 3)
