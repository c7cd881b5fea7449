# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``@weft.heuristics``: constants of a kernel computed from its arguments at each call. Also what all wrappers of
kernels share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.compiler.jit import JITFunction
from weft.compiler.launchable import Launchable
from weft.compiler.places import described

#: Integer arguments with the values that they must have, and what a kernel is then given.
Settled = tuple[dict[str, int], dict[str, Any]]


class Wrapper(Launchable):
    """A kernel with something around it that completes the arguments of a launch: ``wrapper[grid](*args)``.

    ``fn`` is the kernel or the wrapper inside, ``base_fn`` the Python function, ``arg_names`` its parameters.
    """

    __weft_kernel__ = True

    def __init__(self, fn: Any):
        if not isinstance(fn, Launchable):
            raise TypeError(f"expected a @weft.jit function to decorate, but got {fn!r}; put @weft.jit below")
        self.fn = fn
        self.arg_names = self.kernel.arg_names
        self.__name__ = self.kernel.__name__
        self.__doc__ = self.kernel.__doc__

    @property
    def kernel(self) -> JITFunction:
        """The @weft.jit function innermost."""
        inner = self.fn
        while not isinstance(inner, JITFunction):
            inner = inner.fn
        return inner

    @property
    def base_fn(self) -> Callable[..., Any]:
        """The Python function that was decorated."""
        return self.kernel.fn

    def settled(self, constants: Mapping[str, Any], target: str) -> list[Settled]:
        """The constants and options that a kernel gets when it is compiled ahead, with these constants; ``num_warps``
        and ``num_stages`` may be among them. Several where they depend on arguments: the first is taken whose arguments
        have the values that it names, and the last names none. Raises ValueError where that takes a call."""
        inner, found = self.fn, []
        for key, own in self._own(constants, target):
            inside = inner.settled({**constants, **own}, target) if isinstance(inner, Wrapper) else [({}, {})]
            found += [({**key, **more}, rest | own) for more, rest in inside]
        return found

    def _own(self, constants: Mapping[str, Any], target: str) -> list[Settled]:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)  # which says that a grid is missing


class Heuristics(Wrapper):
    """A kernel some of whose constants are computed from its arguments."""

    def __init__(self, fn: Any, values: Mapping[str, Callable[[dict[str, Any]], Any]]):
        super().__init__(fn)
        if not isinstance(values, Mapping) or not all(map(callable, values.values())):
            raise TypeError(f"expected a dictionary of functions for 'values', but got {described(values)}")
        self.values = dict(values)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Launch with the computed constants."""
        return self.fn.run(*args, **self._completed(args, kwargs))

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Compile with the computed constants, without a launch."""
        return self.fn.warmup(*args, **self._completed(args, kwargs))

    def _own(self, constants: Mapping[str, Any], target: str) -> list[Settled]:
        known = dict(constants)
        for name, compute in self.values.items():
            try:
                known[name] = compute(known)
            except Exception as error:
                raise ValueError(
                    f"expected '{name}' of '{self.__name__}' to follow from the constants of the signature, but its "
                    f"function fails with {type(error).__name__}: {error}; fix it there, {name}=VALUE"
                ) from error
        return [({}, {name: known[name] for name in self.values})]

    def _completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        known = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}
        for name, compute in self.values.items():
            known[name] = kwargs[name] = compute(known)
        return kwargs


def heuristics(values: Mapping[str, Callable[[dict[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Decorate a kernel so that constants are computed from its arguments at each call:

        @weft.heuristics({"BLOCK": lambda args: weft.next_power_of_2(args["n"])})
        @weft.jit
        def kernel(x, n, BLOCK: wl.constexpr): ...

    Each function is given the call's arguments by name, and the constants computed before it. What a function computes
    stands in the place of an argument of that name.
    """
    return lambda fn: Heuristics(fn, values)
