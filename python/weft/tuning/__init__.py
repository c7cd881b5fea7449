# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tuning: the schedules of a program's attentions tried, checked and ranked, and the best kept (docs/Tuning.md).

result = weft.tuning.tune(program, q, k, v)
print(result)
"""

from __future__ import annotations

from weft import lazy

__getattr__, __dir__, __all__ = lazy.attach(__name__, __file__)
