# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends.compiler``: what a kernel is compiled for, and how."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.compiler.fingerprint import compiler_fingerprint
from weft.compiler.targets import target_of
from weft.runtime.devices import open_device
from weft.targets import target_for, targets


@dataclass(frozen=True)
class GPUTarget:
    """What kernels are compiled for: "cuda" (or "cpu", the simulator), the compute capability as in 80, and threads of
    a warp."""

    backend: str
    arch: int | str
    warp_size: int


class Language(enum.Enum):
    """What a kernel is written in."""

    TRITON = 0
    GLUON = 1


@dataclass(frozen=True)
class Options:
    """Options of ``triton.compile`` under Triton's names; of ``num_ctas`` and what follows,
    ``launch_cooperative_grid`` has an effect, on launches, and the rest is advice."""

    num_warps: int = 4
    num_stages: int = 3
    debug: bool = False
    enable_fp_fusion: bool = True
    num_ctas: int = 1
    maxnreg: int | None = None
    sanitize_overflow: bool = False
    launch_pdl: bool = False
    launch_cooperative_grid: bool = False
    extern_libs: tuple[tuple[str, str], ...] = ()
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4nv", "fp8e4b15")
    backend_name: str = "cuda"


class BaseBackend:
    """What compiles for a target."""

    def __init__(self, target: GPUTarget):
        if not self.supports_target(target):
            raise ValueError(f"expected a target of another backend, but got {target}")
        self.target = target

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether it compiles for a target."""
        raise NotImplementedError("expected a backend to define 'supports_target'")


class Compiler(BaseBackend):
    """Weft's compiler, which makes PTX for GPUs and for the simulator."""

    binary_ext = "ptx"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether a target is a GPU of NVIDIA's, or the simulator."""
        return target.backend in ("cuda", "cpu")

    @property
    def name(self) -> str:
        """The compiler's target, such as "sm_80". Raises ValueError where there is none for the compute capability."""
        if self.target.backend == "cpu" and not self.target.arch:
            return target_of(open_device())
        digits = str(self.target.arch).removeprefix("sm_").rstrip("af")
        found = target_for(divmod(int(digits), 10), _ANY_BYTES) if digits.isdigit() else None
        if found is None:
            raise ValueError(f"expected a compute capability among {_known()}, but got {self.target.arch!r}")
        return found

    def hash(self) -> str:
        """What changes with the compiler and with the target."""
        return f"{compiler_fingerprint()}-{self.name}"

    def parse_options(self, options: Mapping[str, Any]) -> Options:
        """The options among those given that Weft knows; those of other backends are left out."""
        known = {field.name for field in dataclasses.fields(Options)}
        given = {name: value for name, value in options.items() if name in known and value is not None}
        return Options(**given)

    def pack_metadata(self, metadata: Any) -> Any:
        """What launchers are given of a kernel's metadata: all of it."""
        return metadata


_ANY_BYTES = 1 << 30  # of shared memory: the target alone counts


def _known() -> str:
    return ", ".join(sorted({str(each.capability) for each in targets().values()}))


__all__ = ["BaseBackend", "Compiler", "GPUTarget", "Language", "Options"]
