# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``python -m weft.demo``:

The examples compiled, run, held against float64 and, where Triton is installed, beside Triton's code.
"""
