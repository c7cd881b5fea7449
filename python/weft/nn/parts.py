# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Layers of which kernels take the weights: torch's own, that give them when they are called with nothing.

So what torch hangs on the call of a layer is done: hooks that make the weight anew (pruning, weight norm), and the
user's own, which are given the weights as the result.
"""

from __future__ import annotations

from typing import Any

import torch

Weights = tuple[torch.Tensor, torch.Tensor | None]


class Conv1d(torch.nn.Conv1d):
    """torch's; without an argument a call gives its weight and bias."""

    def forward(self, x: Any = None) -> Any:
        """See the class."""
        return (self.weight, self.bias) if x is None else super().forward(x)


class Conv2d(torch.nn.Conv2d):
    """torch's; without an argument a call gives its weight and bias."""

    def forward(self, x: Any = None) -> Any:
        """See the class."""
        return (self.weight, self.bias) if x is None else super().forward(x)


class Linear(torch.nn.Linear):
    """torch's; without an argument a call gives its weight and bias."""

    def forward(self, x: Any = None) -> Any:
        """See the class."""
        return (self.weight, self.bias) if x is None else super().forward(x)


def weights(module: torch.nn.Module, name: str) -> Weights:
    """The weight and the bias, which may be None, of the layer ``name``. TypeError where another stands in its place:
    what that computes, no kernel does."""
    part = getattr(module, name)
    if not isinstance(part, (Conv1d, Conv2d, Linear)):
        raise TypeError(
            f"{type(module).__name__}: expected '{name}' to be the layer that it was made with, whose weights kernels "
            f"take, but got '{type(part).__name__}': change its weight by torch.nn.utils.parametrize in place of that"
        )
    found: Weights = part()
    return found
