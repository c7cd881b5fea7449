# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""score_mod and mask: the user's functions of scalars, traced into regions of attend and softmax."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler import places
from ..compiler.around import with_views
from ..patterns import Pattern
from . import graph, scalars
from .foreign import concerns
from .graph import Region
from .scalars import F32, I1, I32, Scalar
from .sizes import Size
from .tensors import Tensor, lift
from .torch_reads import AsTorch

# How far b, h, n and m run; not said of m of several domains, and of what a pattern's shift has moved.
Extents = Sequence[Size | None]


@functools.cache
def _elements() -> Any:
    import numpy as np

    class View(np.ndarray):
        """An array, indexed by scalars of a program too."""

        original: Any = None

        def __getitem__(self, index: Any) -> Any:
            if not concerns(index):
                return super().__getitem__(index)
            return lift(np.asarray(self) if self.original is None else self.original)[index]

    return View


def _of_elements(array: Any) -> Any:
    """A view of an array of NumPy's whose elements the kernel reads."""
    view = array.view(_elements())
    view.original = array
    return view


def score_region(function: Callable[..., Any] | None, extents: Extents, bias: Tensor | None = None) -> Region:
    """The region of a score_mod(score, b, h, n, m), to which a bias is added; one with neither is empty."""
    if function is None and bias is None:
        return Region()
    if function is not None:
        callable_with("score_mod", function, ("score", "b", "h", "n", "m"))

    def body(score: Scalar, *place: Scalar) -> Any:
        changed = score if function is None else called(function, score, *place)
        return changed if bias is None else scalars.real(changed) + _at(bias, place)

    below = [None, *[scalars.POSITIONS] * 4]
    return _traced(body, [F32, I32, I32, I32, I32], below, (None, *extents), "score_mod", F32)


def _at(bias: Tensor, place: tuple[Scalar, ...]) -> Scalar:
    """The element of a bias [B, H, N, M], or of fewer axes, the last ones, at (b, h, n, m)."""
    return bias[place[4 - bias.ndim :]]


def mask_region(function: Callable[..., Any], extents: Extents, moved: Sequence[bool]) -> Region:
    """The region of a mask(b, h, n, m). What a shift has ``moved`` may be negative."""
    callable_with("mask", function, ("b", "h", "n", "m"))
    below = [None if each else scalars.POSITIONS for each in moved]
    return _traced(functools.partial(called, function), [I32, I32, I32, I32], below, extents, "mask", I1)


def called(function: Callable[..., Any], *arguments: Scalar) -> Any:
    """The user's function of scalars, over what stands around it; as torch has it where it is one of torch's."""
    tracing = graph.tracing()
    plain = function.function if isinstance(function, AsTorch) else function
    outer, tracing.as_torch = tracing.as_torch, plain is not function
    try:
        return with_views(plain, _of_elements)(*arguments)
    finally:
        tracing.as_torch = outer


def callable_with(name: str, function: Any, arguments: Sequence[str]) -> None:
    """Refuse what is no function of as many arguments."""
    function = function.function if isinstance(function, AsTorch) else function
    wanted = f"'{name}' to be a function of ({', '.join(arguments)})"
    if not callable(function) or isinstance(function, type):
        raise places.error(f"expected {wanted}, but got {places.described(function)}", _in_its_place(function))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # one that does not say what it takes
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise places.error(f"expected {wanted}, but got one of {signature}") from None


def _in_its_place(given: Any) -> str | None:
    """What to write where something else was given in the place of a function of scores or pairs."""
    if hasattr(given, "mask_mod") or isinstance(given, Pattern):
        return "who attends is another argument: 'block_mask' of weft.flex_attention, 'pattern' elsewhere"
    if hasattr(given, "shape"):
        return "a function that reads it: lambda score, b, h, n, m: score + bias[b, h, n, m]"
    return None


def _index_error(error: IndexError) -> places.CompilationError | None:
    """An array of NumPy's that was indexed by a scalar of the kernel, which it does not know."""
    if "valid indices" not in str(error):
        return None
    remedy = "give it a name around the function, as table = ..., then table[h]; or take torch.from_numpy of it"
    found = places.error("expected an array that a name leads to, but got one of NumPy's from elsewhere", remedy)
    found.position = places.raised_at(error) or found.position
    return found


def _traced(
    function: Callable[..., Any],
    arguments: list[str],
    below: Sequence[int | None],
    extents: Extents,
    what: str,
    wanted: str,
) -> Region:
    """The region of a function; what its arguments that are never negative are below, and how far each runs."""
    tracing = graph.tracing()
    with tracing.region(arguments) as region:
        where = zip(region.arguments, below, extents, strict=True)
        try:
            given = function(*(Scalar(*each) for each in where))
        except IndexError as error:
            raise _index_error(error) or error from None
        try:
            result = scalars.scalar(given)
        except places.CompilationError:
            raise places.error(f"expected '{what}' to give a number, but got '{type(given).__name__}'") from None
        if wanted == F32:
            if result.type == I1:
                raise places.error(
                    f"expected '{what}' to give a score, but got a truth",
                    "who attends is a pattern: weft.mask(lambda b, h, n, m: ...)",
                )
            result = scalars.real(result)
        elif result.type != I1:
            raise places.error(f"expected '{what}' to give a truth, but got {result.type}", "compare, as in m <= n")
        tracing.add("attn.yield", [result.value])
    return region
