# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tensors that a kernel reaches by their addresses alone, as tables of pointers hold them, and objects that stand for
an address with a type.

On a GPU such an address is as good as an argument. The simulator knows the memory that it is told of: where a launch is
given addresses, or integers of 64 bits, the host tensors that lie there are made known to it for the launch.

So, if ``WEFT_SIMULATOR_BOUNDS=memory`` asks for it, is the memory around a tensor that is a view of a part of it: some
kernels go on from the part that they are given, as from all but the last of an array's offsets to the last.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

_WIDE = ("i64", "u64")  # as signatures spell them
_MAPPED = range(1 << 24, 1 << 48)  # where memory of the host may lie: indices, sizes and random bits cost no search
_MOST = 1 << 16  # entries that are looked at: larger arrays are data
#: a finding, as the text of an error has it
_OUTSIDE = re.compile(r"^ *out-of-bounds: .*? (\d+) bytes at (0x[0-9a-f]+)", re.MULTILINE)


class SimulatedModule:
    """A kernel on the simulator, launched with what its arguments are the addresses of."""

    def __init__(self, module: Any, device: Any, types: Sequence[str]):
        self._module, self._device = module, device
        self._tables = [i for i, each in enumerate(types) if each.lstrip("*k") in _WIDE]
        self._pointers = [i for i, each in enumerate(types) if each[0] == "*"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def launch(self, grid: Any, block: Any, args: tuple[Any, ...], *rest: Any, **options: Any) -> None:
        """As of the runtime's module."""
        mapped = []
        views_may_be_left = _views_may_be_left()
        try:
            held = [args[i] for i in self._tables] + [args[i] for i in self._pointers if isinstance(args[i], int)]
            around = _around(args) if views_may_be_left else []
            for begin, end in _apart([*around, *_ranges(set(_addresses(held)))]):
                mapped.append(self._device.map(begin, end - begin))
            self._module.launch(grid, block, args, *rest, **options)
        except RuntimeError as error:  # weft.runtime.Error is one
            if not views_may_be_left and getattr(error, "status", "") == "finding":
                _name_the_way_out(error, args)
            raise
        finally:
            for address in mapped:
                self._device.unmap(address)


def reached(args: Iterable[Any]) -> list[Any]:
    """The memory that a launch with such arguments reaches by addresses, as arrays of bytes where it is."""
    import numpy as np

    ranges = _ranges(set(_addresses(args)))
    return [np.ctypeslib.as_array((ctypes.c_uint8 * (end - begin)).from_address(begin)) for begin, end in ranges]


def simulated_module(module: Any, device: Any, types: Iterable[str]) -> Any:
    """The module, for launches on the simulator with addresses where the types of its arguments allow them."""
    types = list(types)
    return SimulatedModule(module, device, types) if device.simulated and any(map(_may_hold, types)) else module


def _may_hold(kind: str) -> bool:
    """Whether an argument of a type may be an address, or hold some."""
    return kind[0] == "*" or kind in _WIDE


@functools.cache
def _is_bare(kind: type) -> bool:
    return hasattr(kind, "data_ptr") and not hasattr(kind, "is_cpu")


def is_bare(value: Any) -> bool:
    """Whether a value has an address (``data_ptr()``) and a ``dtype``, as all that Triton asks of a pointer, and
    nothing that tells the memory around it."""
    kind: type = type(value)
    return _is_bare(kind)


def _addresses(args: Iterable[Any]) -> Iterable[int]:
    """The integers among the arguments and in the arrays of 64 bits that may be addresses."""
    for each in args:
        if isinstance(each, int):
            values: Iterable[int] = (each,)
        elif str(getattr(each, "dtype", "")).rpartition(".")[2] not in ("int64", "uint64"):
            continue
        else:
            count = each.numel() if hasattr(each, "numel") else each.size
            values = each.reshape(-1).tolist() if count <= _MOST else ()
        yield from (value for value in values if value in _MAPPED)


def _storage(tensor: Any) -> tuple[int, int] | None:
    """The memory that a tensor of torch is a view of, where there is some."""
    try:
        storage = tensor.untyped_storage()
        size = int(storage.nbytes())
    except (RuntimeError, NotImplementedError):  # sparse ones, and those of torch.func
        return None
    begin = int(storage.data_ptr()) if size else 0
    return (begin, begin + size) if begin else None


def _views_may_be_left() -> bool:
    """Whether bounds are those of a tensor's memory, not the tensor's."""
    given = os.environ.get("WEFT_SIMULATOR_BOUNDS") or "tensors"
    if given not in ("tensors", "memory"):
        raise ValueError(f"expected WEFT_SIMULATOR_BOUNDS to be 'tensors' or 'memory', but got '{given}'")
    return given == "memory"


def _around(args: Iterable[Any]) -> Iterable[tuple[int, int]]:
    """The memory of the arguments that are views of a part of some."""
    for each in args:
        if hasattr(each, "untyped_storage"):
            found = _storage(each)
            if found is not None and found[1] - found[0] != each.nbytes:
                yield found


def _name_the_way_out(error: RuntimeError, args: Iterable[Any]) -> None:
    """Says in an error of out-of-bounds accesses that the memory around views may be made known, where that holds one
    of them: where none does, the setting would help nobody."""
    memory = list(_around(args))
    for size, place in _OUTSIDE.findall(str(error)) if memory else ():
        address = int(place, 16)
        if any(begin <= address and address + int(size) <= end for begin, end in memory):
            error.args = (
                f"{error}\n  {place} is in the memory that an argument is a view of, outside of the view: where the "
                "kernel may leave it, as on a GPU, set WEFT_SIMULATOR_BOUNDS=memory",
            )
            return


def _ranges(addresses: set[int]) -> list[tuple[int, int]]:
    """The memory of the tensors of torch that lie on the host at these addresses: ranges apart from one another."""
    torch = sys.modules.get("torch")
    if not addresses or torch is None:
        return []
    found = []
    for each in gc.get_objects():
        if type(each) in (torch.Tensor, torch.nn.Parameter) and each.device.type == "cpu":
            found.append(_storage(each))
    ranges = _apart(each for each in found if each is not None)
    return [(begin, end) for begin, end in ranges if any(begin <= address < end for address in addresses)]


def _apart(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of which none overlap, that cover the same memory."""
    apart: list[tuple[int, int]] = []
    for begin, end in sorted(set(ranges)):
        if apart and begin < apart[-1][1]:
            apart[-1] = apart[-1][0], max(apart[-1][1], end)
        else:
            apart.append((begin, end))
    return apart
