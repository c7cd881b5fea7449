# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""libdevice's functions whose names begin with ``fast_``: of float32 and narrower floats, one or two instructions of
the unit for special functions (PTX ISA 9.7.3), with their errors, as CUDA's intrinsics of these names have them. Of
float64 there are no such instructions: they are the functions without ``fast_``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.language.casts import convert
from weft.language.emit import builtin
from weft.language.inline_asm import inline_asm_elementwise
from weft.language.literals import to_tensor
from weft.language.maths import fdiv
from weft.language.operators import mul
from weft.language.promotion import operands
from weft.language.types import float32, float64
from weft.language.value import tensor

_LN2, _LOG10_2, _LOG2_10 = math.log(2), math.log10(2), math.log2(10)


def _instruction(name: str) -> Callable[[tensor], tensor]:
    def function(x: tensor) -> tensor:
        made: tensor = inline_asm_elementwise(f"{name}.approx.f32 $0, $1;", "=f,f", [x], float32, True, 1)
        return made

    return function


_ex2, _lg2, _sin, _cos, _tanh = map(_instruction, ("ex2", "lg2", "sin", "cos", "tanh"))


def _of_float32(exact: Callable[..., Any], name: str, text: str, function: Callable[..., tensor]) -> Any:
    """``function`` for floats of at most 32 bits, ``exact`` for others."""

    def fast(*arguments: Any) -> Any:
        values = operands(name, *arguments) if len(arguments) == 2 else tuple(map(to_tensor, arguments))
        kind = values[0].dtype
        if not kind.is_floating() or kind == float64:
            return exact(*arguments)
        return convert(function(*[convert(value, float32) for value in values]), kind)

    fast.__name__, fast.__doc__ = name, text
    return builtin(fast)


def functions(exact: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """The functions by name, given those without ``fast_`` by theirs."""
    made: dict[str, tuple[str, Callable[..., tensor]]] = {
        "exp10": ("10 to the power x: 2 to the power x·log₂ 10.", lambda x: _ex2(mul(x, _LOG2_10))),
        "log": ("The logarithm: 2⁻²¹ off near 1, and else 3 units.", lambda x: mul(_lg2(x), _LN2)),
        "log2": ("The logarithm to base 2: 2⁻²² off near 1, and else 2 units.", _lg2),
        "log10": ("The logarithm to base 10: 2⁻²² off near 1, and else 3 units.", lambda x: mul(_lg2(x), _LOG10_2)),
        "sin": ("The sine, 2⁻²⁰ off between -π and π, more beyond.", _sin),
        "cos": ("The cosine, 2⁻²⁰ off between -π and π, more beyond.", _cos),
        "tan": ("The quotient of fast_sinf and fast_cosf.", lambda x: fdiv(_sin(x), _cos(x))),
        "tanh": ("The hyperbolic tangent, within 2⁻¹⁰·⁹ of it.", _tanh),
        "pow": ("x to the power y: 2 to the power y·log₂ x.", lambda x, y: _ex2(mul(y, _lg2(x)))),
    }
    return {
        f"fast_{name}f": _of_float32(exact[name], f"fast_{name}f", text, function)
        for name, (text, function) in made.items()
    }
