# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Where the tests of the simulator find their helpers and the package."""

from __future__ import annotations

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE, HERE.parents[1] / "python"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
