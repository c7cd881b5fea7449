# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The loop model: cycles of machine code without a GPU, from control codes, pipes and latencies."""
