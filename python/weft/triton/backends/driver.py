# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.backends.driver``: what runs kernels, a GPU's driver or the simulator, of backend "cpu", whose properties
are those of the GPU that stands for its target.
"""

from __future__ import annotations

from typing import Any

from weft.compiler.targets import target_of
from weft.kernels.bench import do_bench
from weft.runtime.devices import open_device
from weft.targets import targets
from weft.triton.backends.compiler import GPUTarget


class Utils:
    """Questions about devices."""

    def get_device_properties(self, device: int | None = None) -> dict[str, Any]:
        """Shared memory of a block, registers of a multiprocessor, how many these are, threads of a warp, a clock."""
        opened = _device(device)
        target = targets()[target_of(opened)]
        gpu = next(iter(target.gpus.values()))
        known = opened.properties
        return {
            "max_shared_mem": int(known.get("max_shared_bytes", target.shared_bytes_per_block)),
            "max_num_regs": target.registers_per_processor,
            "multiprocessor_count": int(known.get("multiprocessors", gpu.multiprocessors)),
            "warpSize": target.warp_size,
            "sm_clock_rate": int(gpu.clock * 1e6),
        }


class DriverBase:
    """What a backend's driver derives from."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels run by it where nothing else is said."""
        raise NotImplementedError(f"expected {cls.__name__} to define 'is_active'")


class Driver(DriverBase):
    """Questions about the device that kernels run on now."""

    utils = Utils()

    @classmethod
    def is_active(cls) -> bool:
        """Whether the default device is of this driver's kind."""
        return True

    def get_current_target(self) -> GPUTarget:
        """What kernels are compiled for now."""
        opened = _device(None)
        target = targets()[target_of(opened)]
        return GPUTarget("cpu" if opened.simulated else "cuda", target.capability, target.warp_size)

    def get_active_torch_device(self) -> Any:
        """Where torch's tensors must be for kernels to take them."""
        import torch

        opened = _device(None)
        return torch.device("cpu" if opened.simulated else opened.name)

    def get_current_device(self) -> int:
        """The number of the present GPU; 0 for the simulator."""
        import torch

        return torch.cuda.current_device() if torch.cuda.is_available() else 0

    def get_current_stream(self, device: int = 0) -> int:
        """The handle of torch's present stream on a GPU; 0 for the simulator."""
        import torch

        return int(torch.cuda.current_stream(device).cuda_stream) if torch.cuda.is_available() else 0

    def get_device_interface(self) -> Any:
        """torch.cuda, or torch.cpu for the simulator."""
        import torch

        return torch.cpu if _device(None).simulated else torch.cuda

    def get_benchmarker(self) -> Any:
        """The function that times a call."""
        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory that is written to empty the L2 cache."""
        import torch

        return torch.empty(256 << 20, dtype=torch.int8, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Empty the L2 cache by writing to memory."""
        cache.zero_()


def _device(number: int | None) -> Any:
    """The GPU of that number, the default device for None; the simulator where that is the default."""
    default = open_device()
    return default if number is None or default.simulated else open_device(f"cuda:{number}")


class SimulatorDriver(Driver):
    """The simulator."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether the simulator is the default device."""
        return bool(_device(None).simulated)


class CudaDriver(Driver):
    """NVIDIA's driver."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether a GPU is the default device."""
        return not _device(None).simulated


__all__ = ["CudaDriver", "Driver", "DriverBase", "SimulatorDriver", "Utils"]
