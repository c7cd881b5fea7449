# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What greedy generation says for certain."""

import torch


def decided(logits):
    """How many steps are taken before the two best tokens of a row are as good as one another: 1e-6 apart."""
    gaps = torch.stack(logits).topk(2).values.diff(dim=-1).abs().amin((1, 2))
    near = (gaps < 1e-6).nonzero()
    return int(near[0]) if len(near) else len(logits)
