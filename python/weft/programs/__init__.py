# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs: attention mechanisms as functions of whole tensors, traced to attn IR. The public names are weft's own:
weft.program, weft.softmax, weft.mean and so on; docs/Programs.md describes them.
"""
