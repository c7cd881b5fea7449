# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether configurations of one kernel compute the same. No reference is known: most decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .arrays import Storage, type_name

# Relative error, in the norm, that different orders of sums and of rounding explain: by the narrowest float of a call.
_ALLOWED = {"float64": 1e-9, "float32": 1e-3}
_ALLOWED_NARROW = 2e-2


def allowed(arrays: Sequence[Storage]) -> float:
    """The relative error that two configurations may differ by."""
    kinds = {type_name(each.array) for each in arrays}
    floats = [kind for kind in kinds if "float" in kind or kind.startswith("uint")]  # NumPy's bfloat16 is uint16
    return max((_ALLOWED.get(kind, _ALLOWED_NARROW) for kind in floats), default=0.0)


def difference(a: Sequence[np.ndarray], b: Sequence[np.ndarray], most: float) -> str:
    """How the arrays of two runs differ, or ""."""
    for number, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.dtype.kind not in "fc":
            different = int(np.count_nonzero(x != y))
            if different:
                return f"{different} of {x.size} elements of array {number} differ"
            continue
        x, y = x.astype(np.float64), y.astype(np.float64)
        finite = np.isfinite(y)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
            return f"other elements of array {number} are infinite or NaN"
        x, y = x[finite], y[finite]
        error = float(np.linalg.norm(x - y)) / (float(np.linalg.norm(y)) or 1.0)
        if error > most:
            return f"array {number} differs by {error:.2g} of its norm, more than {most:g}"
    return ""


def largest_group(outputs: Mapping[Any, list[np.ndarray]], arrays: Sequence[Storage]) -> dict[Any, str]:
    """Those whose results differ from the results of most, with the reason; of equally many the earlier are right."""
    most = allowed(arrays)
    groups: list[list[Any]] = []
    for name, found in outputs.items():
        group = next((each for each in groups if not difference(found, outputs[each[0]], most)), None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    right = max(groups, key=len)[0]
    wrong = [name for group in groups if group[0] is not right for name in group]
    return {
        name: f"its results are not those of most: {difference(outputs[name], outputs[right], most)}" for name in wrong
    }
