# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.driver``: which device kernels run on. The module's ``driver`` is what ``triton.runtime.driver``
names too."""

from __future__ import annotations

from weft.triton.backends import backends
from weft.triton.backends.compiler import GPUTarget
from weft.triton.backends.driver import Driver, Utils


class DriverConfig:
    """``active`` is the driver that kernels run by, ``default`` the one that is there by itself: of the default device,
    a GPU or the simulator."""

    def __init__(self) -> None:
        self._active: Driver | None = None

    @property
    def default(self) -> Driver:
        """The driver of the default device."""
        return next(each.driver() for each in backends.values() if each.driver.is_active())

    @property
    def active(self) -> Driver:
        """The driver that was set, else the default one."""
        return self._active or self.default

    def set_active(self, driver: Driver) -> None:
        """Use a driver from now on. Raises TypeError for what is none."""
        if not isinstance(driver, Driver):
            raise TypeError(f"expected a driver of triton.backends.backends, but got {driver!r}")
        self._active = driver

    def reset_active(self) -> None:
        """Use the default driver again."""
        self._active = None


driver = DriverConfig()

__all__ = ["Driver", "DriverConfig", "GPUTarget", "Utils", "driver"]
