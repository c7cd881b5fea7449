# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The language of tile kernels: what a ``@weft.jit`` function may use. Names and meanings are Triton's.

    import weft.language as wl
"""

from . import maths as math
from .atomics import atomic_add, atomic_and, atomic_cas, atomic_max, atomic_min, atomic_or, atomic_xchg, atomic_xor
from .casts import cast
from .control import (
    assume, debug_barrier, device_assert, max_constancy, max_contiguous, multiple_of, num_programs, program_id, range, static_assert,
    static_print, static_range,
)  # fmt: skip
from .errors import KernelError
from .maths import (
    PropagateNan, abs, cdiv, ceil, clamp, cos, div_rn, erf, exp, exp2, fdiv, floor, fma, log, log2, maximum, minimum, rsqrt, sigmoid, sin, sqrt,
    sqrt_rn, tanh, umulhi, where,
)  # fmt: skip
from .matrix import dot
from .memory import load, store
from .operators import add, mul, sub
from .reduction import (
    argmax, argmin, associative_scan, cumprod, cumsum, max, min, reduce, reduce_or, softmax, sum, xor_sum,
)  # fmt: skip
from .shapes import (
    arange, broadcast, broadcast_to, cat, expand_dims, full, full_like, interleave, join, permute, ravel, reshape, split, trans, view, zeros, zeros_like,
)  # fmt: skip
from .types import (
    bfloat16, block_type, constexpr, dtype, float8e4nv, float8e5, float16, float32, float64, int1, int8, int16, int32, int64, pi32_t, pointer_type,
    uint8, uint16, uint32, uint64,
)  # fmt: skip
from .value import tensor

__all__ = [
    "KernelError", "PropagateNan", "abs", "add", "arange", "argmax", "argmin", "associative_scan", "assume", "atomic_add", "atomic_and",
    "atomic_cas", "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "bfloat16", "block_type", "broadcast", "broadcast_to", "cast",
    "cat", "cdiv", "ceil", "clamp", "constexpr", "constexpr_function", "cos", "cumprod", "cumsum", "debug_barrier", "device_assert", "div_rn", "dot",
    "dtype", "erf", "exp", "exp2", "expand_dims", "fdiv", "float16", "float32", "float64", "float8e4nv", "float8e5", "floor", "fma", "full", "full_like",
    "int1", "int16", "int32", "int64", "int8", "interleave", "join", "load", "log", "log2", "math", "max", "max_constancy", "max_contiguous", "maximum",
    "min", "minimum", "mul", "multiple_of", "num_programs", "permute", "pi32_t", "pointer_type", "program_id", "range", "ravel", "reduce", "reduce_or",
    "reshape", "rsqrt", "sigmoid", "sin", "softmax", "split", "sqrt", "sqrt_rn", "static_assert", "static_print", "static_range", "store", "sub", "sum",
    "tanh", "tensor", "trans", "uint16", "uint32", "uint64", "uint8", "umulhi", "view", "where", "xor_sum", "zeros", "zeros_like",
]  # fmt: skip


def constexpr_function(function):  # type: ignore[no-untyped-def]
    """Mark a plain Python function as one that kernels may call with constants; its result is a constant."""
    function.__weft_constexpr__ = True
    return function
