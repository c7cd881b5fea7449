# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random kernels of products, of sums that feed one another (`draw`) and of loops that copies run ahead of (`rings`):
one text, which Weft compiles and Python runs on NumPy's arrays (`arrays`), run and compared (`check`), and made smaller
where it fails.

Numbers are small integers, or such by powers of two: floats are exact whatever the order of sums, and results are
compared to the bit.
"""
