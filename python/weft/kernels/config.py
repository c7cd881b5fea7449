# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One configuration that a tuner may choose: constants of a kernel, and how it is spread over the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.compiler.places import described


class Config:
    """A candidate of ``weft.autotune``: ``weft.Config({"BLOCK": 128}, num_warps=8, num_stages=4)``.

    kwargs: constants of the kernel by name.
    num_warps, num_stages: as in a launch.
    pre_hook: called with all arguments by name, those of the configuration among them, before each launch with it.
    num_ctas, maxnreg, ir_override: advice of Triton's, kept and without effect.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
    ):
        if not isinstance(kwargs, Mapping):
            raise TypeError(f"expected a dictionary of constants for a Config, but got {described(kwargs)}")
        self.kwargs = dict(kwargs)
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """The constants and the options that a launch with this configuration is given."""
        options = {
            "num_warps": self.num_warps,
            "num_ctas": self.num_ctas,
            "num_stages": self.num_stages,
            "maxnreg": self.maxnreg,
            "ir_override": self.ir_override,
        }
        return {**self.kwargs, **{name: value for name, value in options.items() if value is not None}}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.all_kwargs() == other.all_kwargs() and self.pre_hook == other.pre_hook

    def __hash__(self) -> int:
        return hash((str(self), self.pre_hook))

    def __str__(self) -> str:
        shown = {**self.all_kwargs(), "maxnreg": self.maxnreg}
        return ", ".join(f"{name}: {value}" for name, value in shown.items())

    def __repr__(self) -> str:
        return f"<weft.Config {self}>"
