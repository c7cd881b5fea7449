# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels of flash-linear-attention, by name, as installed: launches of its operators, recorded with their arguments.

An operator's result and gradients are compared with its definition in float64; a kernel's, with Triton's of the same
inputs.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from . import Case, case

TOKENS, HEADS, SIZE = 128, 2, 64


@dataclass(frozen=True)
class Launched:
    """A launch as the operator made it, its tensors as they were before."""

    kernel: Any
    grid: tuple[int, ...]
    values: dict[str, Any]
    warps: int
    stages: int


def recorded(call: Callable[[], Any]) -> tuple[Any, dict[str, Launched]]:
    """What a call gives, and the first launch of each kernel in it."""
    from weft.compiler.jit import JITFunction

    found: dict[str, Launched] = {}
    original = JITFunction._call

    def record(self: Any, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        named = self._named(args, dict(kwargs))
        extent = grid(named) if callable(grid) else grid
        if self.__name__ not in found:
            values = {p.name: named[p.name] for p in self.params}
            kept = {k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in values.items()}
            extent = (extent,) if isinstance(extent, int) else tuple(extent)
            found[self.__name__] = Launched(self, extent, kept, named["num_warps"], named["num_stages"])
        return original(self, grid, *args, **kwargs)

    JITFunction._call = record
    try:
        return call(), found
    finally:
        JITFunction._call = original


def compared(function: Callable[..., Any], exact: Callable[..., Any], leaves: dict[str, torch.Tensor]) -> Any:
    """Errors of a result and of gradients, over the largest element of each; and the launches."""
    mine = {name: x.requires_grad_(x.is_floating_point()) for name, x in leaves.items()}
    wide = {name: x.detach().double().requires_grad_() for name, x in leaves.items()}
    wanted = exact(*wide.values())
    along = torch.randn(wanted.shape).double()
    expected = torch.autograd.grad(wanted, list(wide.values()), along, allow_unused=True)

    def call() -> tuple[Any, Any]:
        out = function(*mine.values())
        return out, torch.autograd.grad(out, list(mine.values()), along.to(out.dtype), allow_unused=True)

    (out, gradients), launches = recorded(call)
    errors = {"result": _off(out, wanted)}
    for name, a, b in zip(leaves, gradients, expected, strict=True):
        if a is not None and b is not None:
            errors[f"gradient of {name}"] = _off(a, b)
    return errors, launches


def _off(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.double() - exact).abs().max() / exact.abs().max())


def sequences(*names: str) -> dict[str, torch.Tensor]:
    """Tensors [1, T, H, D] in bf16, and gates and betas [1, T, H] in f32."""
    found = {}
    for name in names:
        if name in "qkv":
            found[name] = torch.randn(1, TOKENS, HEADS, SIZE).bfloat16() * SIZE**-0.25
        elif name == "beta":
            found[name] = torch.rand(1, TOKENS, HEADS)
        else:
            sizes = (1, TOKENS, HEADS) if name == "g" else (1, TOKENS, HEADS, SIZE)
            found[name] = functional.logsigmoid(torch.randn(*sizes) + 2)
    if "beta" in names:
        found["k"] = functional.normalize(found["k"].float(), dim=-1).bfloat16()
    return found


def of_library(module: str, name: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(f"fla.{module}"), name)


def by_recurrence(q, k, v, g=None, gk=None, beta=None):
    """Linear attention in float64, [1, T, H, D]."""
    state, out, scale = torch.zeros(HEADS, SIZE, SIZE).double(), [], SIZE**-0.5
    for t in range(TOKENS):
        if g is not None:
            state = state * g[0, t, :, None, None].exp()
        if gk is not None:
            state = state * gk[0, t, :, :, None].exp()
        value = v[0, t]
        if beta is not None:
            value = beta[0, t, :, None] * (value - torch.einsum("hkv,hk->hv", state, k[0, t]))
        state = state + k[0, t, :, :, None] * value[:, None, :]
        out.append(torch.einsum("hkv,hk->hv", state, q[0, t] * scale))
    return torch.stack(out)[None]


def gla() -> Any:
    chunk = of_library("ops.gla", "chunk_gla")
    given = sequences("q", "k", "v", "gk")
    return compared(lambda *x: chunk(*x)[0], lambda q, k, v, gk: by_recurrence(q, k, v, gk=gk), given)


def simple_gla() -> Any:
    chunk = of_library("ops.simple_gla", "chunk_simple_gla")
    return compared(lambda q, k, v, g: chunk(q, k, v, g)[0], by_recurrence, sequences("q", "k", "v", "g"))


def gated_delta() -> Any:
    chunk = of_library("ops.gated_delta_rule", "chunk_gated_delta_rule")
    given = sequences("q", "k", "v", "g", "beta")
    return compared(
        lambda q, k, v, g, beta: chunk(q, k, v, g=g, beta=beta)[0],
        lambda q, k, v, g, beta: by_recurrence(q, k, v, g=g, beta=beta),
        given,
    )


def attention() -> Any:
    function = of_library("ops.attn", "parallel_attn")

    def exact(q, k, v):
        scores = torch.einsum("bthd,bshd->bhts", q, k) * SIZE**-0.5
        scores = scores.masked_fill(torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf)
        return torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v)

    return compared(lambda q, k, v: function(q, k, v, scale=SIZE**-0.5), exact, sequences("q", "k", "v"))


def recurrent_gla() -> Any:
    function = of_library("ops.gla", "fused_recurrent_gla")
    given = sequences("q", "k", "v", "gk")
    exact = lambda q, k, v, gk: by_recurrence(q, k, v, gk=gk)  # noqa: E731
    return compared(lambda q, k, v, gk: function(q, k, v, gk=gk)[0], exact, given)


def hgrn() -> Any:
    function = of_library("ops.hgrn", "fused_recurrent_hgrn")

    def exact(x, g):
        state, out = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = state * g[:, t].exp() + x[:, t]
            out.append(state)
        return torch.stack(out, 1)

    given = {"x": torch.randn(2, 100, 64), "g": functional.logsigmoid(torch.randn(2, 100, 64))}
    return compared(lambda x, g: function(x, g)[0], exact, given)


def swiglu() -> Any:
    function = of_library("modules.activations", "swiglu")
    given = {"x": torch.randn(64, 128).bfloat16(), "y": torch.randn(64, 128).bfloat16()}
    return compared(function, lambda x, y: functional.silu(x) * y, given)


def rms_norm() -> Any:
    layer = of_library("modules", "RMSNorm")(256)
    return compared(layer, lambda x: functional.rms_norm(x, (256,), None, 1e-5), {"x": torch.randn(32, 256)})


KERNELS = {
    simple_gla: (
        "chunk_local_cumsum_scalar_kernel", "chunk_fwd_kernel_h", "chunk_fwd_kernel_o", "chunk_bwd_kernel_dh",
        "chunk_bwd_kernel_dqkwg", "chunk_bwd_kernel_dv",
    ),
    gated_delta: (
        "chunk_gated_delta_rule_fwd_kkt_solve_kernel", "recompute_w_u_fwd_kernel",
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "chunk_bwd_kernel_dv_local",
        "chunk_gated_delta_rule_bwd_kernel_dhu_blockdim64", "prepare_wy_repr_bwd_kernel",
    ),
    gla: (
        "chunk_local_cumsum_vector_kernel", "chunk_gla_fwd_A_kernel_intra_sub_inter",
        "chunk_gla_fwd_A_kernel_intra_sub_intra", "chunk_gla_fwd_kernel_o", "chunk_gla_bwd_kernel_intra",
        "chunk_gla_bwd_kernel_inter", "chunk_gla_bwd_kernel_dA", "chunk_gla_bwd_kernel_dv",
    ),
    attention: ("parallel_attn_fwd_kernel", "parallel_attn_bwd_kernel_dq", "parallel_attn_bwd_kernel_dkv"),
    recurrent_gla: ("fused_recurrent_fwd_kernel", "fused_recurrent_bwd_kernel"),
    hgrn: ("fused_recurrent_hgrn_fwd_kernel", "fused_recurrent_hgrn_bwd_kernel"),
    rms_norm: ("layer_norm_fwd_kernel", "layer_norm_bwd_kernel"),
    swiglu: ("swiglu_fwd_kernel", "swiglu_fwdbwd_kernel"),
}  # fmt: skip
#: of an operator's result and gradients: products of bf16, chained
TOLERANCE = 2e-2


@functools.cache
def ran(operator: Callable[[], Any]) -> Any:
    """An operator's errors and launches, once a process."""
    return operator()


def launch(operator: Callable[[], Any], name: str) -> Case:
    errors, launches = ran(operator)
    if name not in launches:
        raise LookupError(f"expected a launch of '{name}', but got {', '.join(launches)}")
    found = launches[name]
    fixed = {p.name for p in found.kernel.params if p.is_constexpr}
    arguments = {name: value for name, value in found.values.items() if name not in fixed}
    constants = {name: value for name, value in found.values.items() if name in fixed}
    off = {f"{operator.__name__}: {what}": error / TOLERANCE for what, error in errors.items()}
    return Case(found.kernel, found.grid, arguments, constants, {}, found.warps, found.stages, known=off)


for each, names in KERNELS.items():
    for kernel in names:
        case(f"fla {kernel.removesuffix('_kernel')}", each, kernel)(launch)
