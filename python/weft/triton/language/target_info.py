# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.target_info``: questions of a kernel about what it is compiled for, answered when it is."""

from weft.language import constexpr_function
from weft.language.emit import current


@constexpr_function
def is_cuda() -> bool:
    """True: Weft compiles for NVIDIA's GPUs, and its simulator runs their code."""
    return True


@constexpr_function
def is_hip() -> bool:
    """False."""
    return False


is_hip_cdna3 = is_hip_cdna4 = is_hip_gfx1250 = is_hip


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the target has at least this compute capability."""
    digits = "".join(c for c in current().target if c.isdigit())
    return int(digits) >= 10 * major + minor


@constexpr_function
def current_target() -> str:
    """The target's name, such as "sm_90a"."""
    return current().target


__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]
