# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.nn.SFA: semantic foundation attention, causal attention over merged runs of tokens, as a module."""

from __future__ import annotations

from typing import Any

import torch

from weft import attention
from weft.nn import checks
from weft.nn.projections import Projections, join_heads


class SFA(Projections):
    """Semantic foundation attention (SFA, sections 3.1 to 3.3): x [B, N, dim] to [B, N, dim], causal.

    Per head, runs of adjacent tokens whose normalised keys are alike (similarity heads) or all but orthogonal
    (difference heads) are merged into units; a token attends to itself and to the units that ended before it.

    ``kv_heads``   fewer key and value heads than query heads: each serves a group
    ``head_size``  dim / heads unless given; a multiple of 8
    ``eps``, ``similarity_heads``, ``similarity_threshold``, ``difference_threshold``, ``max_joins``, ``value_merge``,
    ``value_offset``, ``rope``, ``deterministic``, ``scale``, ``return_loss``, ``loss_factor``, ``loss_pairs``
                   as weft.attention.sfa has them; with return_loss the result is (y, loss), to be added to the model's

    ``forward(x, cu_seqlens=None, decisions=None)``: with cu_seqlens int32 [S+1], x is [1, total, dim], S sequences one
    after another, and nothing crosses from one to another; ``decisions`` bool [B, Hkv, N] says which tokens join their
    predecessors, in the place of the thresholds.

    Parameters: the linear maps q_proj, k_proj, v_proj, out_proj, without bias unless ``bias``, initialised as
    torch.nn.Linear is, and the gains q_gain [H, D] and k_gain [Hkv, D], 1, as torch.nn.RMSNorm has them: the paper says
    nothing of how they begin.

    >>> sfa = weft.nn.SFA(64, 4, kv_heads=2, return_loss=True)
    >>> y, loss = sfa(torch.randn(2, 50, 64))
    >>> y.shape, loss.shape
    (torch.Size([2, 50, 64]), torch.Size([]))
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        eps: float = 1e-6,
        similarity_heads: int | None = None,
        similarity_threshold: float = 2e-4,
        difference_threshold: float = 0.0175,
        max_joins: int = 20,
        value_merge: str = "sum",
        value_offset: int = 0,
        rope: bool = False,
        deterministic: bool = False,
        scale: float | None = None,
        return_loss: bool = False,
        loss_factor: float = 1.0,
        loss_pairs: str = "all",
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(dim, heads, kv_heads, head_size, bias, device, dtype)
        checks.among("SFA", "value_merge", value_merge, "sum", "last", "mean")
        checks.among("SFA", "value_offset", value_offset, 0, 1)
        checks.among("SFA", "loss_pairs", loss_pairs, "all", "merged")
        whole = isinstance(similarity_heads, int) and not isinstance(similarity_heads, bool)
        if similarity_heads is not None and not (whole and 0 <= similarity_heads <= self.kv_heads):
            wanted = f"0 to {self.kv_heads}, the key and value heads"
            raise ValueError(f"SFA: expected 'similarity_heads' from {wanted}, but got {similarity_heads!r}")
        self.options: dict[str, Any] = {
            "eps": eps, "similarity_heads": similarity_heads, "similarity_threshold": similarity_threshold,
            "difference_threshold": difference_threshold, "max_joins": max_joins, "value_merge": value_merge,
            "value_offset": value_offset, "rope": rope, "deterministic": deterministic, "scale": scale,
            "return_loss": return_loss, "loss_factor": loss_factor, "loss_pairs": loss_pairs,
        }  # fmt: skip
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.q_gain = torch.nn.Parameter(torch.empty(heads, self.head_size, **place))
        self.k_gain = torch.nn.Parameter(torch.empty(self.kv_heads, self.head_size, **place))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the gains to one."""
        for gain in (self.q_gain, self.k_gain):
            torch.nn.init.ones_(gain)

    def forward(
        self, x: torch.Tensor, cu_seqlens: torch.Tensor | None = None, decisions: torch.Tensor | None = None
    ) -> Any:
        """See the class."""
        q, k, v = checks.cast(*self.split(x))
        checks.starts("SFA", cu_seqlens, x)
        if decisions is not None:
            checks.truths("SFA", "decisions", decisions, (x.shape[0], self.kv_heads, x.shape[1]), x)
        result = attention.sfa(
            q, k, v, self.q_gain, self.k_gain, cu_seqlens=cu_seqlens, decisions=decisions, **self.options
        )
        y, *loss = result if self.options["return_loss"] else (result,)
        y = self.out_proj(join_heads(y))
        return (y, *loss) if loss else y

    def extra_repr(self) -> str:
        """The sizes and what is not as it is by default, for printing."""
        usual = {"similarity_heads": None, "max_joins": 20, "value_merge": "sum", "value_offset": 0, "rope": False}
        unusual = [f"{name}={self.options[name]!r}" for name, value in usual.items() if self.options[name] != value]
        return ", ".join([super().extra_repr(), *unusual])
