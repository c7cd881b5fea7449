# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.target_info``: questions about what a kernel is compiled for, answered when it is; outside of
kernels, about what kernels are compiled for now."""

from weft.compiler.targets import target_of
from weft.language import constexpr_function
from weft.language.emit import current_or_none
from weft.runtime.devices import open_device
from weft.targets import targets
from weft.triton.backends.compiler import GPUTarget


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
def current_target() -> GPUTarget:
    """The target: "cuda", for the simulator too, which runs the code of NVIDIA's GPUs; the compute capability as in 90;
    threads of a warp."""
    builder = current_or_none()
    target = targets()[builder.target if builder else target_of(open_device())]
    return GPUTarget("cuda", target.capability, target.warp_size)


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether the target has at least this compute capability."""
    arch = current_target().arch
    return isinstance(arch, int) and arch >= 10 * major + minor


__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]
