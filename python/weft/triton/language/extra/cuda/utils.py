# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda.utils``: what a kernel asks of its machine."""

from weft.language.extra.cuda import globaltimer, num_threads, num_warps, smid

__all__ = ["globaltimer", "num_threads", "num_warps", "smid"]
