# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Weft, a compiler for attention: kernels written in Python become PTX, run on a GPU or on the simulator, and ship as
libraries.

    @weft.program                 a mechanism over whole tensors: f(q, k, v); made of weft.softmax, weft.mean,
                                  weft.toeplitz, weft.diag, weft.rope, weft.rms_norm, weft.head_conv, weft.linear
                                  and functions of elements
    weft.causal(), weft.window(left, right), ...   patterns: which pairs attend; & | ~ combine them; weft.patterns lists
                                  them, weft.draw(pattern, path) draws them
    weft.attention                attend, sema, sfa, sas, peaa, gau: mechanisms as one call each
    weft.nn                       torch.nn.Modules over these
    weft.distributed              attention over sequences that the ranks of torch.distributed share
    weft.tuning.tune(f, *args)    schedules tried, checked and ranked; the best are kept for calls and libraries
    @weft.jit                     a tile kernel: kernel[grid](*args, BLOCK=64, num_warps=4); weft.language is its
    language
    @weft.autotune, @weft.heuristics   a tile kernel's constants chosen by trial, or computed from its arguments
    weft.triton                   Triton's names: "import weft.triton as triton" ports a script
    weft.compile(fn, ...)         a PTX library from a kernel
    weft.load(DIR)                an opened library
    weft.device()                 where kernels run: "cuda:0", or "simulator" without a GPU; WEFT_DEVICE overrides

Everything is loaded when it is first used, so that ``import weft`` stays quick; ``__init__.pyi`` lists it.
"""

from __future__ import annotations

from weft import lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
