# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.PEAA: parameter-efficient attention aggregation, the output map of SAS, as a module."""

from __future__ import annotations

from typing import Any

import torch

from weft import attention
from weft.nn import checks


class PEAA(torch.nn.Linear):
    """Parameter-efficient attention aggregation (SAS, equation 12): y [B, Ĥ, N, D] to [B, N, out].

    The mean over the Ĥ/H groups of H heads of concat(heads) Wᵀ + b. The linear map runs once, on the averaged heads.

    ``heads``      H, heads of a group; it divides Ĥ, the heads of y
    ``head_size``  D

    Parameters: ``weight`` [out, H·D] and ``bias`` [out], initialised as torch.nn.Linear's are, which is what the
    paper's own code has (appendix L).

    >>> peaa = weft.nn.PEAA(heads=2, head_size=16, out=32)
    >>> peaa(torch.randn(1, 6, 50, 16)).shape
    torch.Size([1, 50, 32])
    """

    def __init__(
        self,
        heads: int,
        head_size: int,
        out: int,
        *,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        checks.given("PEAA", heads=heads, head_size=head_size, out=out)
        checks.truth("PEAA", bias=bias)
        super().__init__(heads * head_size, out, bias=bias, device=device, dtype=dtype)
        self.heads, self.head_size = heads, head_size

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        """See the class."""
        sizes = (None, None, None, self.head_size)
        checks.tensor("PEAA", "y", y, f"[B, Ĥ, N, {self.head_size}]", sizes, self)
        checks.divides("PEAA", **{"the heads of y": y.shape[1], "heads": self.heads})
        y, weight, bias = checks.cast(y, self.weight, self.bias)
        return attention.peaa(y, weight, bias, self.heads)

    def extra_repr(self) -> str:
        """The sizes, for printing."""
        return f"heads={self.heads}, head_size={self.head_size}, out={self.out_features}"
