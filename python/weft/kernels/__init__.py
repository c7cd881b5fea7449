# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What chooses the constants of a tile kernel when it is called: ``weft.heuristics`` computes them from the arguments,
``weft.autotune`` tries configurations and keeps the best. Names and meanings are Triton's.
"""
