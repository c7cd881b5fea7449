# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random tile programs: drawn (`draw`), as source text (`emit`), evaluated by NumPy (`evaluate`), run and compared
(`check`), and made smaller where they fail (`shrink`).

Values are float64 with a bound on their error, integers exact; `values` says how. What cannot be known, because an
overflow or a rounding decides it, is not compared.
"""
