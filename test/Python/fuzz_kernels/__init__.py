# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random tile kernels: what they do (`describe`), as source text (`emit`), computed by NumPy (`interpret`), run and
compared (`check`), and made smaller where they fail (`shrink`).

The description is all that the compiler's side and the interpreter share. Numbers are small integers, so that floats
are exact whatever the order of sums.
"""
