# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft, a compiler for attention: kernels written in Python become PTX, run on a GPU or on the simulator, and ship as
libraries.

    @weft.program                 a mechanism over whole tensors: f(q, k, v); made of weft.softmax, weft.mean,
                                  weft.toeplitz, weft.diag, weft.rope, weft.rms_norm, weft.head_conv, weft.linear
                                  and functions of elements
    weft.causal(), weft.window(left, right), ...   patterns: which pairs attend; & | ~ combine them; weft.patterns lists
                                  them, weft.draw(pattern, path) draws them
    weft.attention                attend, sema: mechanisms as one call each
    weft.nn                       torch.nn.Modules over these
    weft.tuning.tune(f, *args)    schedules tried, checked and ranked; the best are kept for calls and libraries
    @weft.jit                     a tile kernel: kernel[grid](*args, BLOCK=64, num_warps=4); weft.language is its
    language
    weft.compile(fn, ...)         a PTX library from a kernel
    weft.load(DIR)                an opened library
    weft.device()                 where kernels run: "cuda:0", or "simulator" without a GPU; WEFT_DEVICE overrides

Everything is loaded when it is first used, so that ``import weft`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from weft.compiler.diagnostics import CompilationError as CompilationError
    from weft.compiler.jit import JITFunction as JITFunction
    from weft.compiler.jit import jit as jit
    from weft.compiler.kernel import Kernel as Kernel
    from weft.compiler.libraries import compile as compile
    from weft.drawing import draw as draw
    from weft.errors import Error as Error
    from weft.integers import cdiv as cdiv
    from weft.integers import next_power_of_2 as next_power_of_2
    from weft.patterns import Pattern as Pattern
    from weft.patterns import block_bitmap as block_bitmap
    from weft.patterns import block_window as block_window
    from weft.patterns import blocks as blocks
    from weft.patterns import causal as causal
    from weft.patterns import dilated as dilated
    from weft.patterns import document as document
    from weft.patterns import full as full
    from weft.patterns import global_tokens as global_tokens
    from weft.patterns import mask as mask
    from weft.patterns import neighbourhood as neighbourhood
    from weft.patterns import per_head as per_head
    from weft.patterns import prefix as prefix
    from weft.patterns import random_blocks as random_blocks
    from weft.patterns import span as span
    from weft.patterns import strided as strided
    from weft.patterns import window as window
    from weft.programs.elementwise import abs as abs
    from weft.programs.elementwise import cos as cos
    from weft.programs.elementwise import erf as erf
    from weft.programs.elementwise import exp as exp
    from weft.programs.elementwise import gelu as gelu
    from weft.programs.elementwise import log as log
    from weft.programs.elementwise import maximum as maximum
    from weft.programs.elementwise import minimum as minimum
    from weft.programs.elementwise import relu as relu
    from weft.programs.elementwise import rsqrt as rsqrt
    from weft.programs.elementwise import sigmoid as sigmoid
    from weft.programs.elementwise import silu as silu
    from weft.programs.elementwise import sin as sin
    from weft.programs.elementwise import sqrt as sqrt
    from weft.programs.elementwise import tanh as tanh
    from weft.programs.elementwise import where as where
    from weft.programs.functions import rms_norm as rms_norm
    from weft.programs.functions import rope as rope
    from weft.programs.functions import sum as sum
    from weft.programs.heads import head_conv as head_conv
    from weft.programs.heads import linear as linear
    from weft.programs.heads import mean_heads as mean_heads
    from weft.programs.merging import merge_decide as merge_decide
    from weft.programs.merging import merge_loss as merge_loss
    from weft.programs.merging import merge_units as merge_units
    from weft.programs.merging import shift as shift
    from weft.programs.mixers import diag as diag
    from weft.programs.mixers import domain as domain
    from weft.programs.mixers import mean as mean
    from weft.programs.mixers import softmax as softmax
    from weft.programs.mixers import toeplitz as toeplitz
    from weft.programs.program import Program as Program
    from weft.programs.program import program as program
    from weft.runtime.devices import device as device
    from weft.runtime.library import Library as Library
    from weft.runtime.library import load as load
    from weft.selection import select_blocks as select_blocks

# Public name: the module that defines it.
_NAMES = {
    "CompilationError": "weft.compiler.diagnostics",
    "Error": "weft.errors",
    "JITFunction": "weft.compiler.jit",
    "Kernel": "weft.compiler.kernel",
    "Library": "weft.runtime.library",
    "Pattern": "weft.patterns",
    "Program": "weft.programs.program",
    "abs": "weft.programs.elementwise",
    "block_bitmap": "weft.patterns",
    "block_window": "weft.patterns",
    "blocks": "weft.patterns",
    "causal": "weft.patterns",
    "cdiv": "weft.integers",
    "compile": "weft.compiler.libraries",
    "cos": "weft.programs.elementwise",
    "device": "weft.runtime.devices",
    "diag": "weft.programs.mixers",
    "dilated": "weft.patterns",
    "document": "weft.patterns",
    "domain": "weft.programs.mixers",
    "draw": "weft.drawing",
    "erf": "weft.programs.elementwise",
    "exp": "weft.programs.elementwise",
    "full": "weft.patterns",
    "gelu": "weft.programs.elementwise",
    "global_tokens": "weft.patterns",
    "head_conv": "weft.programs.heads",
    "jit": "weft.compiler.jit",
    "linear": "weft.programs.heads",
    "load": "weft.runtime.library",
    "log": "weft.programs.elementwise",
    "mask": "weft.patterns",
    "maximum": "weft.programs.elementwise",
    "mean": "weft.programs.mixers",
    "mean_heads": "weft.programs.heads",
    "merge_decide": "weft.programs.merging",
    "merge_loss": "weft.programs.merging",
    "merge_units": "weft.programs.merging",
    "minimum": "weft.programs.elementwise",
    "neighbourhood": "weft.patterns",
    "next_power_of_2": "weft.integers",
    "per_head": "weft.patterns",
    "prefix": "weft.patterns",
    "program": "weft.programs.program",
    "random_blocks": "weft.patterns",
    "relu": "weft.programs.elementwise",
    "rms_norm": "weft.programs.functions",
    "rope": "weft.programs.functions",
    "rsqrt": "weft.programs.elementwise",
    "select_blocks": "weft.selection",
    "shift": "weft.programs.merging",
    "sigmoid": "weft.programs.elementwise",
    "silu": "weft.programs.elementwise",
    "sin": "weft.programs.elementwise",
    "softmax": "weft.programs.mixers",
    "sqrt": "weft.programs.elementwise",
    "span": "weft.patterns",
    "strided": "weft.patterns",
    "sum": "weft.programs.functions",
    "tanh": "weft.programs.elementwise",
    "toeplitz": "weft.programs.mixers",
    "where": "weft.programs.elementwise",
    "window": "weft.patterns",
}
_MODULES = (
    "attention",
    "cli",
    "compiler",
    "demo",
    "language",
    "nn",
    "programs",
    "runtime",
    "simulator",
    "testing",
    "tuning",
)

__all__ = [
    "CompilationError",
    "Error",
    "JITFunction",
    "Kernel",
    "Library",
    "Pattern",
    "Program",
    "abs",
    "block_bitmap",
    "block_window",
    "blocks",
    "causal",
    "cdiv",
    "compile",
    "cos",
    "device",
    "diag",
    "dilated",
    "document",
    "domain",
    "draw",
    "erf",
    "exp",
    "full",
    "gelu",
    "global_tokens",
    "head_conv",
    "jit",
    "linear",
    "load",
    "log",
    "mask",
    "maximum",
    "mean",
    "mean_heads",
    "merge_decide",
    "merge_loss",
    "merge_units",
    "minimum",
    "neighbourhood",
    "next_power_of_2",
    "per_head",
    "prefix",
    "program",
    "random_blocks",
    "relu",
    "rms_norm",
    "rope",
    "rsqrt",
    "select_blocks",
    "shift",
    "sigmoid",
    "silu",
    "sin",
    "softmax",
    "span",
    "sqrt",
    "strided",
    "sum",
    "tanh",
    "toeplitz",
    "where",
    "window",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"weft.{name}")
    else:
        raise AttributeError(f"module 'weft' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
