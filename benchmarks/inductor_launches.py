# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Writes down the launches of Triton kernels that torch.compile makes of the functions below: each kernel once, in a
module of its own, with the arguments of its first launch. For ``beside_triton.py --inductor``.

    python -m weft.triton benchmarks/inductor_launches.py FOLDER

Functions run on the simulator, without its checks, on tensors that inductor takes for a GPU's. Of several tilings that
it would time, the first is taken.
"""

from __future__ import annotations

import hashlib
import inspect
import pathlib
import re
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn
from torch._inductor import config
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from weft.compiler.kernel import Kernel

config.cpu_backend = "triton"
config.force_disable_caches = True
config.fallback_random = True
config.assume_aligned_inputs = True
#: of tensors of a launch: larger ones take long to simulate
MOST_BYTES = 1 << 20


def f32(*size: int) -> torch.Tensor:
    return torch.randn(size)


def f16(*size: int) -> torch.Tensor:
    return torch.randn(size).half()


def bf16(*size: int) -> torch.Tensor:
    return torch.randn(size).bfloat16()


def below(most: int, *size: int) -> torch.Tensor:
    return torch.randint(0, most, size)


class Block(nn.Module):
    """A block of a transformer, attention by hand."""

    def __init__(self, norm: Any, activation: Any, size: int = 128, heads: int = 2):
        super().__init__()
        self.norms = nn.ModuleList([norm(size), norm(size)])
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.activation, self.heads = activation, heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, size = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (size // self.heads) ** 0.5
        scores = scores.masked_fill(torch.ones(tokens, tokens, dtype=torch.bool).triu(1), -torch.inf)
        x = x + F.dropout(self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)), 0.1)
        return x + self.down(self.activation(self.up(self.norms[1](x))))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(32, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = torch.zeros(x.shape[1:])
        for each in x:
            h, c = self.cell(each, (h, c))
        return h


def halves(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    m, v = m * 0.9 + g * 0.1, v * 0.999 + g * g * 0.001
    return p * 0.9999 - 1e-3 * m / 0.27 / ((v / 0.003).sqrt() + 1e-8), m, v


def quantised(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scale = x.float().abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def unpacked(packed: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    nibbles = torch.stack([packed & 15, packed >> 4], -1).flatten(-2).to(torch.bfloat16) - 8
    return (nibbles.view(len(packed), -1, 32) * scale[..., None]).flatten(-2)


def slopes(scores: torch.Tensor) -> torch.Tensor:
    at = torch.arange(scores.shape[-1])
    far = (at[:, None] - at).abs() * torch.tensor([0.5, 0.25]).view(2, 1, 1)
    return (scores * 0.125 - far).softmax(-1)


def relative(scores: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    at = torch.arange(scores.shape[-1])
    return scores + table[(at[:, None] - at).clamp(-16, 16) + 16].permute(2, 0, 1)


def layer_norm(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], *weights)


def classes(x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x.float(), labels, label_smoothing=0.1)


def contrastive(x: torch.Tensor) -> torch.Tensor:
    x = F.normalize(x, dim=-1)
    return F.cross_entropy(x @ x.mT / 0.07, torch.arange(len(x)))


#: name: what is compiled, its arguments, and inductor's settings; gradients are taken where there are any
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[torch.Tensor], dict[str, Any]]] = {
    "block f32": (Block(nn.LayerNorm, F.gelu), [f32(1, 64, 128)], {}),
    "block bf16": (Block(nn.RMSNorm, F.silu).bfloat16(), [bf16(1, 64, 128)], {}),
    "LSTM's cell": (Cell(), [f32(2, 32, 32)], {}),
    "rotation of halves": (halves, [bf16(2, 2, 64, 64), f32(64, 32), f32(64, 32)], {}),
    "rotation of pairs": (pairs, [bf16(2, 2, 64, 64), f32(64, 32), f32(64, 32)], {}),
    "gated unit": (lambda x: F.silu(x[..., :256]) * x[..., 256:], [bf16(16, 512)], {}),
    "gated unit, tanh": (lambda x: F.gelu(x[..., :256], approximate="tanh") * x[..., 256:], [f16(16, 512)], {}),
    "cross entropy": (classes, [bf16(16, 1000), below(1000, 16)], {}),
    "cross entropy, wide": (classes, [f32(8, 6000), below(6000, 8)], {}),
    "contrastive loss": (contrastive, [f32(64, 64)], {}),
    "divergence": (
        lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        [f32(16, 500), f32(16, 500)],
        {},
    ),
    "layer norm": (layer_norm, [bf16(16, 768), bf16(768), bf16(768)], {}),
    "layer norm, wide": (layer_norm, [bf16(4, 5120), bf16(5120), bf16(5120)], {}),
    "layer norm in loops": (layer_norm, [f32(16, 768), f32(768), f32(768)], {"triton.persistent_reductions": False}),
    "RMS norm of a sum": (
        lambda x, y, w: (F.rms_norm(x + y, (1024,), w), x + y),
        [bf16(8, 1024), bf16(8, 1024), bf16(1024)],
        {},
    ),
    "group norm": (
        lambda x, w, b: F.silu(F.group_norm(x, 8, w, b)),
        [f16(2, 32, 12, 12), f16(32), f16(32)],
        {},
    ),
    "batch norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        [f32(4, 16, 14, 14), f32(16), f32(16)],
        {},
    ),
    "softmax": (lambda x: x.softmax(-1), [f16(16, 2000)], {}),
    "softmax over columns": (lambda x: x.softmax(1), [f32(4, 100, 33)], {}),
    "softmax, causal": (
        lambda x: (x * 0.125 + torch.full((64, 64), -torch.inf).triu(1)).softmax(-1),
        [f16(2, 2, 64, 64)],
        {},
    ),
    "slopes of heads": (slopes, [f32(2, 2, 64, 64)], {}),
    "relative positions": (relative, [f32(2, 2, 64, 64), f32(33, 2)], {}),
    "largest pooled": (lambda x: F.max_pool2d(x, 3, 2, 1), [f32(2, 8, 14, 14)], {}),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [f32(1, 4, 12, 12)], {}),
    "pixels shuffled": (lambda x: F.pixel_shuffle(x, 2) * 2, [f32(1, 16, 14, 14)], {}),
    "rows looked up": (lambda w, i: F.embedding(i, w).mean(1), [f32(50, 128), below(50, 16, 8)], {}),
    "rows added": (lambda x, i: torch.zeros(50, 64).index_add(0, i, x.tanh()), [f32(100, 64), below(50, 100)], {}),
    "gathered": (lambda x, i: x.gather(1, i).exp(), [f32(16, 100), below(100, 16, 10)], {}),
    "running sums": (lambda x: x.cumsum(-1), [f32(8, 1000)], {}),
    "sorted": (lambda x: x.sort(-1), [f32(8, 128)], {}),
    "greatest and where": (lambda x: (x.argmax(-1), x.amax(-1), x.argmin(0)), [f32(32, 300)], {}),
    "any and all": (lambda x: ((x > 3).any(1), (x < 3).all(0), (x > 0).sum(1)), [f32(32, 300)], {}),
    "variance": (lambda x: torch.var_mean(x, (0, 2)), [f32(4, 16, 100)], {}),
    "norm of all": (lambda x: x.norm() + x.abs().max(), [f32(100, 200)], {}),
    "sums of columns": (lambda x: x.float().sum(0), [bf16(600, 128)], {}),
    "AdamW": (adam, [f32(50, 333), f32(50, 333), f32(50, 333), f32(50, 333).abs()], {}),
    "8-bit rows": (quantised, [bf16(16, 1024)], {}),
    "4-bit weights": (unpacked, [below(256, 32, 128).to(torch.uint8), bf16(32, 8)], {}),
    "transposed and added": (lambda x, y: x.mT + y, [f32(100, 150), f32(150, 100)], {}),
    "windows": (
        lambda x: x.view(1, 2, 7, 2, 7, 32).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, 32).softmax(-1),
        [f32(1, 14, 14, 32)],
        {},
    ),
    "rolled": (lambda x: torch.roll(x, (-3, -3), (1, 2)) * 2, [f32(1, 14, 14, 32)], {}),
    "joined and padded": (
        lambda x, y: F.pad(torch.cat([x, y], 1), (1, 1)).sigmoid(),
        [f32(4, 8, 30), f32(4, 8, 30)],
        {},
    ),
}


class Launches:
    """Takes down a kernel where it is launched first."""

    def __init__(self, folder: pathlib.Path):
        self.folder, self.function, self.seen = folder, "", set[str]()

    def take(self, kernel: Kernel, grid: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        params = kernel.function.params
        varying = [each.name for each in params if not each.is_constexpr]
        if len(arguments) == len(params):
            arguments = tuple(a for a, each in zip(arguments, params, strict=True) if not each.is_constexpr)
        tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
        source = inspect.getsource(sys.modules[kernel.function.fn.__module__])
        source = re.sub(r"@triton_heuristics\..*?(?=@triton\.jit)", "", source, flags=re.S)
        source = re.sub(r"^triton_helpers\.set_driver.*$", "", source, flags=re.M)
        name = kernel.function.fn.__name__
        constants = {k: v for k, v in kernel.signature.constants.items() if k not in varying}
        launch = (re.sub(r"_\d+(?=\()", "", source), [str(each.dtype) for each in tensors], constants, kernel.options)
        key = hashlib.sha256(repr(launch).encode()).hexdigest()[:12]
        if key in self.seen or sum(each.untyped_storage().nbytes() for each in tensors) > MOST_BYTES:
            return
        self.seen.add(key)
        (self.folder / f"inductor_{key}.py").write_text(source)
        torch.save(
            {
                "name": f"{self.function}: {name.removeprefix('triton_')[:48]} {key[:4]}",
                "kernel": (f"inductor_{key}", name),
                "grid": grid,
                "arguments": dict(zip(varying, arguments, strict=True)),
                "constants": constants,
                "schedule": (kernel.options.num_warps, kernel.options.num_stages),
            },
            self.folder / f"{key}.pt",
        )


def compiled_and_run(function: Callable[..., Any], arguments: list[torch.Tensor]) -> None:
    torch._dynamo.reset()
    given = [each.clone().requires_grad_(each.is_floating_point()) for each in arguments]
    found = torch.compile(function)(*given)
    results = [each for each in (found if isinstance(found, tuple) else (found,)) if each.requires_grad]
    if results:
        torch.autograd.backward(results, [torch.randn_like(each) for each in results])


def main() -> None:
    launches = Launches(pathlib.Path(sys.argv[1]))
    run = Kernel.run

    def taken(kernel: Kernel, *rest: Any) -> None:
        launches.take(kernel, rest[:3], rest[9:])
        run(kernel, *rest)

    def first(tuner: Any, *_: Any, **__: Any) -> None:
        tuner.launchers = tuner.launchers[:1]

    Kernel.run = taken  # type: ignore[method-assign]
    CachingAutotuner.autotune_to_one_config = first
    torch.manual_seed(0)
    for name, (function, arguments, settings) in FUNCTIONS.items():
        launches.function = name
        with config.patch(settings):
            compiled_and_run(function, arguments)
        print(f"{name}: {len(launches.seen)} kernels", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
