# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The modules of weft.nn at small sizes, each with the plain PyTorch layer of the same parameters, and what is said of
tensors that they do not take."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import weft
from weft.testing import layers, masks


@dataclass(frozen=True)
class Sample:
    """``plain`` makes the layer whose state_dict is ``module``'s; x is [batch, tokens, dim]."""

    module: Callable[..., torch.nn.Module]
    plain: Callable[[], torch.nn.Module]
    dim: int = 32
    tokens: int = 50
    packs: bool = False  # takes cu_seqlens
    bends: bool = False  # has ReLUs: where a rounding moves their argument past 0, gradients jump
    given: Callable[[int], dict] = lambda batch: {}  # further arguments for so many sequences, where they matter


def causal(n):
    return masks.causal(n, n)


def joined(batch):
    """Which tokens join: decisions of their own would jump with a rounding of x."""
    return {"decisions": (torch.arange(batch * 2 * 50) * 7919 % 101 < 45).view(batch, 2, 50)}


SAMPLES = {
    "attention": Sample(
        lambda **at: weft.nn.Attention(32, 4, kv_heads=2, pattern=weft.causal(), **at),
        lambda: layers.Attention(32, 4, 2, mask=causal),
        packs=True,
    ),
    "attention, every pair, rope": Sample(
        lambda **at: weft.nn.Attention(32, 2, head_size=24, rope=True, bias=False, **at),
        lambda: layers.Attention(32, 2, None, 24, False, rope=True),
    ),
    "sema": Sample(
        lambda **at: weft.nn.SEMA(32, 2, window=16, **at), lambda: layers.SEMA(32, 2, window=16), packs=True
    ),
    "sema over a grid, grouped": Sample(
        lambda **at: weft.nn.SEMA(32, 2, kv_heads=1, window=(4, 4), grid=(6, 7), kernel=5, **at),
        lambda: layers.SEMA(32, 2, 1, window=(4, 4), grid=(6, 7), kernel=5),
        tokens=42,
    ),
    "sfa": Sample(
        lambda **at: weft.nn.SFA(32, 4, kv_heads=2, difference_threshold=0.1, **at),
        lambda: layers.SFA(32, 4, 2, difference_threshold=0.1),
        packs=True,
        given=joined,
    ),
    "sas": Sample(
        lambda **at: weft.nn.SAS(32, 2, kernel=3, expanded_heads=4, **at),
        lambda: layers.SAS(32, 2, many=4, wide=24, kernel=3),
        tokens=24,
        packs=True,
        bends=True,
    ),
    "sas, perceptrons, grouped, both ways": Sample(
        lambda **at: weft.nn.SAS(32, 2, kv_heads=1, kernel=1, expanded_size=16, causal=False, **at),
        lambda: layers.SAS(32, 2, 1, many=6, wide=16, kernel=1, causal=False),
        tokens=24,
        bends=True,
    ),
    "gau": Sample(
        lambda **at: weft.nn.GAU(32, size=16, pattern=weft.causal(), **at),
        lambda: layers.GAU(32, 16, 64, mask=causal),
        packs=True,
    ),
    "gau with convolutions": Sample(
        lambda **at: weft.nn.GAU(32, size=16, value_size=40, pattern=weft.causal(), kernel=3, **at),
        lambda: layers.GAU(32, 16, 40, mask=causal, kernel=3),
        packs=True,
    ),
}  # fmt: skip

#: what makes a module, and the sizes that it refuses
REFUSED_SIZES = {
    "heads that do not divide": (lambda: weft.nn.Attention(30, 4), "'heads' to divide 'dim' = 30, but got 4"),
    "odd head size": (lambda: weft.nn.Attention(36, 3), "'head_size' to be a multiple of 8, but got 12"),
    "kv heads": (lambda: weft.nn.Attention(32, 4, kv_heads=3), "'kv_heads' to divide 'heads' = 4, but got 3"),
    "no size": (lambda: weft.nn.Attention(32, 0), "'heads' to be at least 1, but got 0"),
    "no integer": (lambda: weft.nn.Attention(32.0, 4), "'dim' to be an integer, but got 32.0"),
    "a mask": (lambda: weft.nn.Attention(32, 4, pattern="causal"), "'pattern' to be a pattern such as weft.causal()"),
    "gau's size": (lambda: weft.nn.GAU(32, size=12), "GAU: expected 'size' to be a multiple of 8, but got 12"),
    "gau's pattern": (lambda: weft.nn.GAU(32, pattern=1), "GAU: expected 'pattern' to be a pattern"),
    "sfa's values": (lambda: weft.nn.SFA(32, 4, value_merge="max"), "'value_merge' to be 'sum', 'last' or 'mean'"),
    "sfa's offset": (lambda: weft.nn.SFA(32, 4, value_offset=2), "'value_offset' to be 0 or 1, but got 2"),
    "sfa's pairs": (lambda: weft.nn.SFA(32, 4, loss_pairs="some"), "'loss_pairs' to be 'all' or 'merged'"),
    "sfa's heads": (lambda: weft.nn.SFA(32, 4, similarity_heads=5), "'similarity_heads' from 0 to 4, the key and"),
    "sas's kernel": (lambda: weft.nn.SAS(32, 2, kernel=2), "SAS: expected 'kernel' to be odd, but got 2"),
    "sas's heads": (lambda: weft.nn.SAS(32, 2, expanded_heads=5), "'heads' to divide 'expanded_heads' = 5, but got 2"),
    "sas's size": (
        lambda: weft.nn.SAS(32, 4, expanded_size=12),
        "SAS: expected 'expanded_size' to be a multiple of 8, but got 12",
    ),
    "even kernel": (lambda: weft.nn.SEMA(32, 2, window=8, kernel=4), "'kernel' to be odd, but got 4"),
    "two windows": (lambda: weft.nn.SEMA(32, 2, window=(4, 4)), "'window' to be an integer without 'grid'"),
    "one window": (lambda: weft.nn.SEMA(32, 2, window=4, grid=(6, 7)), "'window' to be two sizes (rows, columns)"),
    "rope_2d": (lambda: weft.nn.SEMA(32, 2, window=8, rope_2d="round"), "'rope_2d' to be 'axial' or 'flat'"),
}

#: what is called, and what is said of the tensor
REFUSED_TENSORS = {
    "no tensor": ("attention", lambda f: f([1.0]), "'x' to be a torch.Tensor [B, N, 32], but got 'list'"),
    "axes": ("attention", lambda f: f(torch.zeros(5, 32)), "'x' [B, N, 32], but got [5, 32]"),
    "size": ("sema", lambda f: f(torch.zeros(1, 5, 31)), "SEMA: expected 'x' [B, N, 32], but got [1, 5, 31]"),
    "type": (
        "sema",
        lambda f: f(torch.zeros(1, 5, 32).half()),
        "'x' of float32 as the parameters are, but got fl",
    ),
    "double": ("sema", lambda f: f.double()(torch.zeros(1, 5, 32).double()), "parameters of float32, bfloat16 or"),
    "device": ("sema", lambda f: f(torch.zeros(1, 5, 32, device="meta")), "'x' on cpu as the parameters are, but got"),
    "sparse": (
        "sema",
        lambda f: f(torch.zeros(1, 5, 32).to_sparse()),
        "to be a tensor with strides, but got one of lay",
    ),
    "nested": (
        "sema",
        lambda f: f(torch.nested.nested_tensor([torch.zeros(5, 32)])),
        "to be a tensor with strides, but got a nested one",
    ),
    "gau": ("gau", lambda f: f(torch.zeros(1, 5, 33)), "GAU: expected 'x' [B, N, 32], but got [1, 5, 33]"),
    "grid": ("sema over a grid, grouped", lambda f: f(torch.zeros(1, 40, 32)), "'x' [B, 42, 32], but got [1, 40, 32]"),
    "decisions": (
        "sfa",
        lambda f: f(torch.zeros(1, 5, 32), decisions=torch.zeros(1, 2, 6, dtype=torch.bool)),
        "SFA: expected 'decisions' [1, 2, 5] of bool, but got [1, 2, 6] of bool",
    ),
    "heads of y": (
        "sas",
        lambda f: f.out_proj(torch.zeros(1, 3, 5, 16)),
        "PEAA: expected 'heads' to divide 'the heads of y' = 3, but got 2",
    ),
    "starts": (
        "attention",
        lambda f: f(torch.zeros(1, 5, 32), torch.tensor([0, 5])),
        "'cu_seqlens' [S+1] of int32, but got [2] of int64",
    ),
    "packed batch": (
        "attention",
        lambda f: f(torch.zeros(2, 5, 32), torch.tensor([0, 5], dtype=torch.int32)),
        "'x' [1, total, dim] with 'cu_seqlens', but got [2, 5, 32]",
    ),
}
