# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention by Weft and by others, each called as its users call it: q, k, v [B, H, N, D] to [B, H, N, D]."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from weft import attention, patterns
from weft.first_gpu.cases import CHECKOUT, LeftOut

Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Shape:
    """``pairs`` is "full", "causal", or "window": each token sees ``window`` tokens before it, and itself."""

    batch: int
    heads: int
    length: int
    head: int
    pairs: str
    window: int

    @property
    def operations(self) -> float:
        """Of a forward: two products of a multiply and an add for each pair."""
        return 4.0 * self.batch * self.heads * self.head * self.attending

    @property
    def attending(self) -> int:
        """Pairs of one head."""
        if self.pairs == "full":
            return self.length**2
        before = self.length if self.pairs == "causal" else min(self.window + 1, self.length)
        return before * (before + 1) // 2 + (self.length - before) * before


def _pattern(shape: Shape) -> Any:
    return {"full": None, "causal": patterns.causal(), "window": patterns.window(shape.window, 0)}[shape.pairs]


def _weft(shape: Shape) -> Call:
    pattern = _pattern(shape)
    return lambda q, k, v: attention.attend(q, k, v, pattern)


def _one_pass(shape: Shape) -> Call:
    """Weft's, where sums may be added in any order: its backward in one pass, if heads have at most 128 channels."""
    pattern = _pattern(shape)

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if not torch.is_grad_enabled():
            raise LeftOut("its forward is that of two passes")
        return attention.attend(q, k, v, pattern, deterministic=False)

    return call


def _sdpa(backend: str, shape: Shape) -> Call:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    _need_cuda()
    if shape.pairs == "window":
        raise LeftOut("scaled_dot_product_attention has no window but as a mask of all pairs")
    chosen = getattr(SDPBackend, backend)

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel([chosen]):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=shape.pairs == "causal")

    return call


def _flex(shape: Shape) -> Call:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    _need_cuda()
    torch._dynamo.reset()  # a form a shape: what was compiled for the others counts towards its limit

    def causal(b: Any, h: Any, n: Any, m: Any) -> Any:
        return n >= m

    def sliding(b: Any, h: Any, n: Any, m: Any) -> Any:
        return (n >= m) & (n - m <= shape.window)

    mask = None
    if shape.pairs != "full":
        of = causal if shape.pairs == "causal" else sliding
        mask = create_block_mask(of, None, None, shape.length, shape.length, device="cuda")
    compiled: Any = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


def _triton(shape: Shape) -> Call:
    """examples/04_flash_attention.py, whose source Triton compiles too; its tutorials are not in its package. At the
    fastest of its tilings."""
    if importlib.util.find_spec("triton") is None:
        raise LeftOut("Triton is not installed")
    _need_cuda()
    if shape.pairs == "window" or shape.head > 128:
        raise LeftOut("the example's kernel is full or causal, of heads of 64 and 128")
    kernel = _triton_kernel()
    fastest: list[tuple[int, int, int, int]] = []

    def launch(tiling: tuple[int, int, int, int], q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        rows, keys, warps, stages = tiling
        out = torch.empty_like(q)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        scale = math.log2(math.e) / math.sqrt(shape.head)
        strides = [stride for x in (q, k, v, out) for stride in x.stride()[:3]]
        grid = (math.ceil(shape.length / rows), shape.batch * shape.heads)
        kernel[grid](
            *(q, k, v, out, lse, scale, *strides, shape.heads, shape.length, shape.length),
            D=shape.head, CAUSAL=shape.pairs == "causal", BLOCK_M=rows, BLOCK_N=keys,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if q.requires_grad and torch.is_grad_enabled():
            raise LeftOut("the example's kernel is a forward")
        if not fastest:
            fastest.append(min(_TILINGS, key=lambda tiling: _seconds(functools.partial(launch, tiling, q, k, v))))
        return launch(fastest[0], q, k, v)

    return call


#: rows, keys, warps and stages of the example's kernel
_TILINGS = ((128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3), (64, 64, 4, 3))


def _seconds(run: Callable[[], Any]) -> float:
    """The least time of three runs; infinity where the GPU cannot hold what it takes."""
    try:
        run()
    except Exception as error:  # Triton has a type of its own for each reason
        if "out of resource" in str(error).lower():
            return math.inf
        raise
    times = []
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return min(times)


@functools.cache
def _triton_kernel() -> Any:
    path = CHECKOUT / "examples" / "04_flash_attention.py"
    if not path.exists():
        raise LeftOut("the kernel is in Weft's repository: run `make gpu` there")
    import triton
    import triton.language as tl

    spec = importlib.util.spec_from_file_location("example_04", path)
    assert spec is not None and spec.loader is not None, "it is a file of Python"
    module = importlib.util.module_from_spec(spec)
    sys.modules["example_04"] = module
    spec.loader.exec_module(module)
    function = module.flash_attention_kernel.fn
    names = {**function.__globals__, "wl": tl}
    copied = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copied.__annotations__ = dict.fromkeys(function.__annotations__, tl.constexpr)  # the only ones that it has
    return triton.jit(copied)


def _flash(modules: tuple[str, ...], shape: Shape) -> Call:
    """FlashAttention 2, 3 and 4 by the first of their modules: tensors [B, N, H, D], windows as (left, right)."""
    function = _first_function(modules)
    _need_cuda()
    options: dict[str, Any] = {"causal": shape.pairs != "full"}
    if shape.pairs == "window":
        options["window_size"] = (shape.window, 0)

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        found = function(*(x.transpose(1, 2) for x in (q, k, v)), **options)
        out: torch.Tensor = found[0] if isinstance(found, tuple) else found
        return out.transpose(1, 2)

    return call


def _first_function(modules: tuple[str, ...]) -> Any:
    """``flash_attn_func`` of the first module that is installed."""
    reasons = []
    for module in modules:
        try:
            return importlib.import_module(module).flash_attn_func
        except (ImportError, AttributeError) as error:
            reasons.append(str(error))
    raise LeftOut(f"not installed: {'; '.join(reasons)}")


def _need_cuda() -> None:
    if not torch.cuda.is_available():
        raise LeftOut("PyTorch has no CUDA here")


#: by name, what makes the call for a shape; LeftOut where there is none
PEERS: dict[str, Callable[[Shape], Call]] = {
    "Weft": _weft,
    "Weft, one pass": _one_pass,
    "SDPA, cuDNN": functools.partial(_sdpa, "CUDNN_ATTENTION"),
    "SDPA, flash": functools.partial(_sdpa, "FLASH_ATTENTION"),
    "FlexAttention": _flex,
    "Triton": _triton,
    "FlashAttention 2": functools.partial(_flash, ("flash_attn",)),
    # The second is its forward alone, as a package on PyPI.
    "FlashAttention 3": functools.partial(_flash, ("flash_attn_interface", "fa3_fwd_interface")),
    "FlashAttention 4": functools.partial(_flash, ("flash_attn.cute",)),
}
