# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda.gdc``: waiting for other grids, which run one after another here."""

from weft.language.extra.cuda import gdc_launch_dependents, gdc_wait

__all__ = ["gdc_launch_dependents", "gdc_wait"]
