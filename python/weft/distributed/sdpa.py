# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch's scaled_dot_product_attention of sequences that ranks share, as inside its context_parallel, by Weft.

torch's context_parallel turns the operands of each call into sharded tensors (DTensor) and calls the function that it
has replaced; a mode of torch's for functions sees that call before DTensor does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..patterns import causal
from .attend import attend
from .layouts import Layout
from .meshes import is_sharded

_SDPA = torch._C._nn.scaled_dot_product_attention


class sdpa(TorchFunctionMode):  # used as a function is: with weft.distributed.sdpa():
    """While it lasts, ``torch.nn.functional.scaled_dot_product_attention`` of sharded tensors is
    ``weft.distributed.attend``, so also inside torch's ``context_parallel(mesh, ...)``, which shards the operands:

        with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]), weft.distributed.sdpa():
            out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    ``layout``   which tokens each rank has: "head-tail", as context_parallel deals them out unless its balancing is
                 off, "consecutive", as distribute_tensor does, or a weft.distributed.Layout
    ``rotate``   as in weft.distributed.attend
    ``pattern``  of the whole sequence, in the place of what ``is_causal`` says

    Calls of tensors that are not sharded are torch's. What cannot be shared raises ValueError: a mask, dropout.
    """

    def __init__(self, layout: str | Layout = "head-tail", rotate: str = "ring", pattern: Any = None) -> None:
        super().__init__()
        self.layout, self.rotate, self.pattern = layout, rotate, pattern

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Replace the one function; all others are torch's."""
        kwargs = kwargs or {}
        if func is _SDPA and any(is_sharded(each) for each in (*args, *kwargs.values())):
            return self._shared(*args, **kwargs)
        return func(*args, **kwargs)

    def _shared(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        if attn_mask is not None:
            raise ValueError("expected no 'attn_mask' of sharded tensors; give weft.distributed.sdpa a pattern")
        if dropout_p:
            raise ValueError(f"expected no dropout of sharded tensors, but got dropout_p={dropout_p}")
        if is_sharded(query) and not is_sharded(key):
            raise ValueError("expected 'key' to be sharded as 'query' is")
        if is_sharded(query) and key.shape[1] != query.shape[1] and not enable_gqa:
            raise ValueError(
                f"expected as many heads of 'key' as of 'query', {query.shape[1]}, but got {key.shape[1]}; "
                "give enable_gqa=True"
            )
        if is_causal and self.pattern is None and key.shape[2] != query.shape[2]:
            # is_causal counts from the first query and key, weft.causal() from the last
            raise ValueError(f"expected as many keys as queries with is_causal, but got {key.shape[2]}")
        pattern = self.pattern if self.pattern is not None else causal() if is_causal else None
        return attend(query, key, value, pattern, rotate=self.rotate, layout=self.layout, scale=scale)
