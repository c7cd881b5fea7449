# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""References and the rule that says when an attention kernel is right.

``accuracy`` judges a result by a float64 reference and the same formula in plain framework operations, ``hold``
raises where it is wrong; ``judge`` runs a program and its backward and judges every result and gradient.
``masks``, ``attention``, ``mixers``, ``gau``, ``sema`` and ``sfa`` are those references, written from the definitions
and sharing nothing with the compiler. ``do_bench`` times a function of launches. All of it needs PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.testing import masks, mixers
from weft.testing.accuracy import Accuracy, accuracy, hold, summed
from weft.testing.attention import FORMS, Domain, attention, plain_attention, reference_attention
from weft.testing.gau import convolved_gau, gau
from weft.testing.judge import Demonstration, demonstrate, drawn, judge, poisoned
from weft.testing.sema import sema
from weft.testing.sfa import sfa

if TYPE_CHECKING:
    from weft.kernels.bench import do_bench

__all__ = [
    "FORMS",
    "Accuracy",
    "Demonstration",
    "Domain",
    "accuracy",
    "attention",
    "convolved_gau",
    "demonstrate",
    "do_bench",
    "drawn",
    "gau",
    "hold",
    "judge",
    "masks",
    "mixers",
    "plain_attention",
    "poisoned",
    "reference_attention",
    "sema",
    "sfa",
    "summed",
]


def __getattr__(name: str) -> Any:
    """``do_bench``, which loads the compiler, when it is asked for: references serve processes without it."""
    if name == "do_bench":
        return import_module("weft.kernels.bench").do_bench
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
