# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random programs whose padding is not 0: functions with f(0) != 0 before whatever adds up rows, channels or heads,
each beside the same in float64. A tile has rows past the end of the sequence and channels past the head size, which
must not count.
"""

import itertools
import random
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
import weft

# What of x is computed before anything adds it up: by name the program's, torch's, and the operand that they take.
FUNCTIONS = {
    "cos": (weft.cos, torch.cos, None),
    "exp": (weft.exp, torch.exp, None),
    "sigmoid": (weft.sigmoid, torch.sigmoid, None),
    "inverse": (lambda x: 1.0 / x, lambda x: 1 / x, None),
    "log": (lambda x: weft.log(weft.abs(x)), lambda x: x.abs().log(), None),
    "rsqrt": (lambda x: x * weft.rsqrt(x * x) + x, lambda x: x * (x * x).rsqrt() + x, None),
    "where": (lambda x: weft.where(x > 0, x, 1.0), lambda x: torch.where(x > 0, x, 1.0), None),
    "plus": (lambda x: x + 0.5, lambda x: x + 0.5, None),
    "channel bias": (lambda x, w: x + w, lambda x, w: x + w, "D"),
    "head bias": (lambda x, w: x + w, lambda x, w: x + w, "H11"),
    "token bias": (lambda x, w: x - w, lambda x, w: x - w, "N1"),
    "token divisor": (lambda x, w: x / w, lambda x, w: x / w, "N1"),
    "channel divisor": (lambda x, w: x / w, lambda x, w: x / w, "D"),
    "square": (lambda x: x * x, lambda x: x * x, None),
    "same": (lambda x: x, lambda x: x, None),
}


# Those that are smooth at 0, where what is computed before may lie, and do not make large numbers of it.
SMOOTH = [name for name in FUNCTIONS if name not in ("inverse", "log", "rsqrt", "where", "exp")]


def packed(n):
    """Where three sequences start in n tokens, and the end."""
    return [0, n // 3, n // 3 + n // 5, n]


def blocks(n, cu):
    """[n, n]: 1 / length where two tokens are of one sequence."""
    a = torch.zeros(n, n, dtype=torch.float64)
    for first, past in itertools.pairwise(cu):
        a[first:past, first:past] = 1 / max(past - first, 1)
    return a


def causal_mean(x):
    return x.cumsum(2) / torch.arange(1, x.shape[2] + 1).double()[:, None]


def convolved(x, taps, centre=0, dilation=1, cu=None):
    """Tap j takes row n - dilation (j - centre), of the same sequence."""
    n, (_, h, _, d) = x.shape[2], x.shape
    sequence = torch.bucketize(torch.arange(n), torch.tensor(cu[1:]), right=True) if cu else torch.zeros(n)
    total = 0
    for j in range(len(taps)):
        at = torch.arange(n) - dilation * (j - centre)
        there = (at >= 0) & (at < n)
        there &= sequence[at.clamp(0, n - 1)] == sequence
        rows = torch.where(there[:, None], x[:, :, at.clamp(0, n - 1)], 0.0)
        total = total + taps[j].view(1, h, 1, d) * rows
    return total


def convolved_over(x, taps, grid):
    b, h, n, d = x.shape
    side = round(len(taps) ** 0.5)
    image = x.transpose(2, 3).reshape(b, h * d, *grid)
    weight = taps.view(side, side, h * d).permute(2, 0, 1).flip(1, 2)[:, None]
    return F.conv2d(image, weight, padding=side // 2, groups=h * d).view(b, h, d, n).transpose(2, 3)


def attended(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1) @ v


def normed(x, gain=None):
    y = x * (x.square().mean(-1, keepdim=True) + 1e-3).rsqrt()
    return y if gain is None else y * gain[:, None]


def windows(n, size):
    at = torch.arange(n) // size
    return at[:, None] == at[None]


def shifted(x, by):
    return F.pad(x, (0, 0, by, 0))[:, :, : x.shape[2]] if by > 0 else F.pad(x, (0, 0, 0, -by))[:, :, -by:]


def over_heads(x, weight, bias):
    b, h, n, d = x.shape
    y = F.conv1d(x.transpose(1, 2).reshape(b * n, h, d), weight, bias, padding=weight.shape[2] // 2)
    return y.view(b, n, -1, d).transpose(1, 2)


def grid_of(n):
    """A grid of n tokens: as square as it goes."""
    height = max(i for i in range(1, int(n**0.5) + 1) if n % i == 0)
    return height, n // height


# What adds up, by name: the program's and torch's function of y, of what the draw says (`a.n`, `a.cu`) and of weights,
# and those weights' shapes.
CONSUMERS = {
    "sum of tokens": (lambda y, a: weft.sum(y, 2), lambda y, a: y.sum(2), ()),
    "sum of tokens, kept": (lambda y, a: weft.sum(y, 2, keepdims=True), lambda y, a: y.sum(2, keepdim=True), ()),
    "sum of batches and tokens": (lambda y, a: weft.sum(y, (0, 2)), lambda y, a: y.sum((0, 2)), ()),
    "sum of channels": (lambda y, a: weft.sum(y, 3), lambda y, a: y.sum(3), ()),
    "sum of channels, kept": (
        lambda y, a: y - weft.sum(y, 3, keepdims=True),
        lambda y, a: y - y.sum(3, keepdim=True),
        (),
    ),
    "sum of all": (lambda y, a: weft.sum(y), lambda y, a: y.sum(), ()),
    "mean": (lambda y, a: weft.mean() @ y, lambda y, a: y.mean(2, keepdim=True).expand_as(y), ()),
    "causal mean": (lambda y, a: weft.mean(causal=True) @ y, lambda y, a: causal_mean(y), ()),
    "packed mean": (
        lambda y, a: weft.mean(cu_seqlens=a.cu) @ y,
        lambda y, a: blocks(a.n, a.starts) @ y,
        (),
    ),
    "norm": (lambda y, a: weft.rms_norm(y, None, 1e-3), lambda y, a: normed(y), ()),
    "norm with a gain": (lambda y, a, g: weft.rms_norm(y, g, 1e-3), lambda y, a, g: normed(y, g), ("HD",)),
    "convolution": (lambda y, a, t: weft.toeplitz(t) @ y, lambda y, a, t: convolved(y, t), ("taps 4",)),
    "centred convolution": (
        lambda y, a, t: weft.toeplitz(t, centred=True, dilation=2) @ y,
        lambda y, a, t: convolved(y, t, 1, 2),
        ("taps 3",),
    ),
    "packed convolution": (
        lambda y, a, t: weft.toeplitz(t, centred=True, cu_seqlens=a.cu) @ y,
        lambda y, a, t: convolved(y, t, 1, cu=a.starts),
        ("taps 3",),
    ),
    "convolution over a grid": (
        lambda y, a, t: weft.toeplitz(t, grid=grid_of(a.n)) @ y,
        lambda y, a, t: convolved_over(y, t, grid_of(a.n)),
        ("taps 9",),
    ),
    "long convolution": (lambda y, a, t: weft.toeplitz(t) @ y, lambda y, a, t: convolved(y, t), ("taps 40",)),
    "attention": (
        lambda y, a: weft.softmax(y, y * 0.5) @ y,
        lambda y, a: attended(y, y * 0.5, y),
        (),
    ),
    "causal attention": (
        lambda y, a, k: weft.softmax(y, k - y, weft.causal()) @ y,
        lambda y, a, k: attended(y, k - y, y, torch.ones(a.n, a.n).tril().bool()),
        ("BHND",),
    ),
    "attention in windows": (
        lambda y, a, k: weft.softmax(y + k, weft.cos(k) * y, weft.block_window(a.window)) @ (1.0 - y),
        lambda y, a, k: attended(y + k, k.cos() * y, 1 - y, windows(a.n, a.window)),
        ("BHND",),
    ),
    "attention to oneself": (
        lambda y, a, k, s: weft.softmax(y, k + y, weft.window(0, 0), sink=s) @ (y + k),
        lambda y, a, k, s: to_oneself(y, k + y, y + k, s),
        ("BHND", "H"),
    ),
    "linear map": (lambda y, a, w, b: weft.linear(y, w, b), lambda y, a, w, b: y @ w.T + b, ("24,D", "24")),
    "convolution of heads": (
        lambda y, a, w, b: weft.head_conv(y, w, b),
        lambda y, a, w, b: over_heads(y, w, b),
        ("3,H,3", "3"),
    ),
    "mean of heads": (lambda y, a: y - weft.mean_heads(y, 1), lambda y, a: y - y.mean(1, keepdim=True), ()),
    "shift": (lambda y, a: weft.shift(y, 1) * y, lambda y, a: shifted(y, 1) * y, ()),
    "shift back": (lambda y, a: weft.shift(y, -2) - y, lambda y, a: shifted(y, -2) - y, ()),
    "rotation": (
        lambda y, a: weft.rope(y),
        lambda y, a: turned(y),
        (),
    ),
}
GIVES_ROWS = [name for name in CONSUMERS if not name.startswith("sum of") or name == "sum of channels, kept"]
GIVES_ROWS = [name for name in GIVES_ROWS if name not in ("linear map", "convolution of heads")]


def turned(x):
    d = x.shape[-1]
    angle = torch.arange(x.shape[2]).double()[:, None] * 10000.0 ** (-torch.arange(0, d, 2).double() / d)
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()]
    return torch.stack(pairs, -1).flatten(-2)


def to_oneself(q, k, v, sink):
    score = (q * k).sum(-1, keepdim=True) / q.shape[-1] ** 0.5
    return v * torch.sigmoid(score - sink.view(-1, 1, 1))


@dataclass
class Draw:
    """One random program: x [b, h, n, d] through steps, each a function and what adds up."""

    b: int
    h: int
    n: int
    d: int
    steps: list[tuple[str, str]]
    dtype: torch.dtype
    window: int = 5
    inputs: list[torch.Tensor] = field(default_factory=list)

    @property
    def starts(self):
        return packed(self.n)

    @staticmethod
    def of(generator: random.Random, steps=None):
        n, d = generator.choice([1, 7, 33, 64, 70]), generator.choice([8, 24, 72, 64, 1, 16])
        if steps is None:
            first, then = generator.choice(list(FUNCTIONS)), generator.choice(SMOOTH)
            consumer = generator.choice(list(CONSUMERS))
            two = [(first, generator.choice(GIVES_ROWS)), (then, consumer)]
            steps = generator.choice([[(first, consumer)], two])
        draw = Draw(generator.choice([1, 2]), generator.choice([1, 2, 3]), n, d, steps, torch.float32)
        if any("packed" in step[1] for step in steps):
            draw.b = 1
        if d == 1 and any(step[1] == "rotation" for step in steps):
            draw.d = 8
        draw.window = generator.choice([3, 5, 16, 33])
        torch.manual_seed(generator.getrandbits(32))
        draw.inputs = [draw.tensor("BHND")]
        for function, consumer in steps:
            operand = FUNCTIONS[function][2]
            draw.inputs += [draw.tensor(operand)] if operand else []
            draw.inputs += [draw.tensor(shape) for shape in CONSUMERS[consumer][2]]
        return draw

    def tensor(self, shape):
        """Of numbers away from 0, whose inverses are small."""
        b, h, n, d = self.b, self.h, self.n, self.d
        if shape.startswith("taps "):
            sizes = [int(shape.removeprefix("taps ")), h * d]
        elif "," in shape or shape.isdigit():
            sizes = [{"D": d, "H": h}.get(size) or int(size) for size in shape.split(",")]
        else:
            sizes = [{"B": b, "H": h, "N": n, "D": d, "1": 1}[size] for size in shape]
        return ((0.4 + torch.rand(sizes)) * torch.where(torch.rand(sizes) < 0.5, -1.0, 1.0)).to(self.dtype)

    def run(self, inputs, side, starts=None):
        """The steps on the program's side (0) or on torch's (1)."""
        rest = list(inputs[1:])
        self.cu = starts
        y = inputs[0]
        for function, consumer in self.steps:
            make, operand = FUNCTIONS[function][side], FUNCTIONS[function][2]
            y = make(y, rest.pop(0)) if operand else make(y)
            shapes = CONSUMERS[consumer][2]
            weights, rest = rest[: len(shapes)], rest[len(shapes) :]
            y = CONSUMERS[consumer][side](y, self, *weights)
        return y

    def program(self):
        """The program as weft takes it: a function of so many tensors."""
        names = ", ".join(f"x{i}" for i in range(len(self.inputs)))
        if any("packed" in step[1] for step in self.steps):
            return weft.program(eval(f"lambda cu, {names}: run([{names}], 0, cu)", {"run": self.run}))
        return weft.program(eval(f"lambda {names}: run([{names}], 0)", {"run": self.run}))

    def check(self):
        """The largest error of the result and of the gradients, against what numbers of this size may differ by."""
        ours = [x.clone().requires_grad_() for x in self.inputs]
        exact = [x.double().requires_grad_() for x in self.inputs]
        first = [torch.tensor(self.starts, dtype=torch.int32)] if "packed" in str(self.steps) else []
        made, wanted = self.program()(*first, *ours), self.run(exact, 1)
        assert made.shape == wanted.shape, f"{list(made.shape)} instead of {list(wanted.shape)}"
        direction = torch.randn(wanted.shape, dtype=torch.float64)
        got = torch.autograd.grad(made, ours, direction.to(made.dtype), allow_unused=True)
        want = torch.autograd.grad(wanted, exact, direction, allow_unused=True)
        worst = off(made, wanted)
        for number, (one, other) in enumerate(zip(got, want, strict=True)):
            if other is None:
                continue
            assert one is not None, f"no gradient of input {number}"
            worst = max(worst, off(one, other))
        return worst

    def __str__(self):
        chain = "; ".join(f"{consumer} of {function}" for function, consumer in self.steps)
        return f"[{self.b}, {self.h}, {self.n}, {self.d}] {chain} (window {self.window})"


def off(made, wanted):
    """The error, in parts of the largest number."""
    made, wanted = made.detach(), wanted.detach()
    if not torch.isfinite(made).all():
        return float("inf") if torch.isfinite(wanted).all() else 0.0
    return float((made - wanted).abs().max() / (1 + wanted.abs().max())) if wanted.numel() else 0.0
