# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether a candidate's results are right: the rule by which the test suite judges kernels, in NumPy.

The exact result is that of the program with float32 in the place of narrower floats; the plain one, whose errors bound
the candidate's, that of the default schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_SMALL = 4096  # below this many elements, means are too noisy for the tight bounds
_UNIT = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-23}


def disagreement(
    given: Mapping[str, np.ndarray],
    plain: Mapping[str, np.ndarray],
    exact: Mapping[str, np.ndarray],
    types: Mapping[str, str],
    gradient: bool,
) -> tuple[str, float]:
    """What is wrong with the results, by name, and the most that a bound is exceeded by as a factor; ("", ...) where
    nothing is."""
    worst, said = 0.0, ""
    for name, kind in types.items():
        text, excess = _judge(given[name], plain[name], exact[name], kind, gradient)
        if excess > worst:
            worst, said = excess, f"{name}: {text}" if text else ""
    return said, worst


def decoded(array: np.ndarray, kind: str) -> np.ndarray:
    """The numbers of an array; bf16 travels as its bits."""
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.asarray(array, np.float64)


def _judge(given: Any, plain: Any, exact: Any, kind: str, gradient: bool) -> tuple[str, float]:
    if kind not in _UNIT:  # integers and truths
        different = int(np.count_nonzero(given != plain))
        return (f"{different} of {plain.size} elements differ", np.inf) if different else ("", 0.0)
    out, like, ref = decoded(given, kind), decoded(plain, kind), np.asarray(exact, np.float64)
    holes = int(np.count_nonzero(np.isnan(out) & ~np.isnan(ref)))
    if holes:
        return f"{holes} of {out.size} elements are NaN, as they were before: not written, or spoilt", np.inf
    finite = np.isfinite(ref)
    if not np.array_equal(out[~finite], ref[~finite], equal_nan=True):
        return "infinite elements differ from the reference's", np.inf
    out, like, ref = out[finite], like[finite], ref[finite]
    if not ref.size:
        return "", 0.0
    # a result rounded to the last bit may be off by a unit of its type
    slack = 1e-5 + _UNIT[kind] * float(np.abs(ref).max())
    mine, theirs = np.abs(out - ref), np.abs(like - ref)
    bounds = {"the largest error": (mine.max(), (3 if gradient else 2) * theirs.max() + slack)}
    norm = float(np.linalg.norm(ref)) or 1.0
    limit = max(1.1 * np.linalg.norm(theirs) / norm, 1e-5 * np.sqrt(ref.size) / norm, _UNIT[kind])
    bounds["the relative error"] = (np.linalg.norm(mine) / norm, limit)
    if not gradient:
        factor = 1.1 if ref.size >= _SMALL else 1.5
        bounds["the mean error"] = (mine.mean(), factor * theirs.mean() + 1e-6)
        if ref.size >= _SMALL:
            signed, other = (out - ref) * np.sign(ref), (like - ref) * np.sign(ref)
            error = float(signed.std()) / np.sqrt(ref.size)
            allowed = abs(other.mean()) + 6 * error + 1e-4 * np.abs(ref).mean()
            bounds["the bias"] = (abs(signed.mean()), allowed)
    excess = {name: float(value / bound) if bound else np.inf for name, (value, bound) in bounds.items()}
    broken = max(excess, key=lambda name: excess[name])
    if excess[broken] <= 1:
        return "", excess[broken]
    value, bound = bounds[broken]
    return f"{broken} is {value:.3g}, at most {bound:.3g} is right", excess[broken]
