# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A pattern as an attribute of the attn dialect: its text, and the arrays and masks that the text names by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pattern import Pattern

#: the bounds of weft.span, in the order of its arguments
SPAN = ("lower", "upper", "first", "past")
# How a pattern sees a pair (b, h, n, m): in numbers, or, while a program is traced, by the indices that these are.
Place = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class PairIndex:
    """What a mask is given for an index of a pair: which of b, h, n, m it is, by number, and whether a shift has moved
    it, so that it may be any integer."""

    axis: int
    moved: bool = False

    def __sub__(self, by: int) -> PairIndex:
        return PairIndex(self.axis, moved=True)


#: a pair as a pattern at the top sees it
PAIR: Place = (PairIndex(0), PairIndex(1), PairIndex(2), PairIndex(3))


def lowered(
    pattern: Pattern, operands: list[Any], add_mask: Callable[[Any], None], masks: int, place: Place
) -> tuple[str, int]:
    """The attribute's text, and how many masks there are then. Masks are added as functions, with the place at which
    they are asked."""
    name, values = pattern.spelling, pattern.values
    if name == "mask":
        add_mask((values[0], place))
        scattered = ", scattered = true" if values[1:] else ""
        return f"#attn.mask<{masks}{scattered}>", masks + 1
    b, h, n, m = place
    if name == "shift":
        place = (b, h, n, m - values[0])
    elif name == "transpose":
        place = (b, h, m, n)
    elif name == "section":
        place = (b, h, _within(n, values[0]), _within(m, values[1]))
    parts = []
    for part in pattern.parts:
        text, masks = lowered(part, operands, add_mask, masks, place)
        parts.append(text)
    if name == "section":
        rows, keys = (_number(operands, array) for array in values)
        return f"#attn.section<{parts[0]}, rows = {rows}, keys = {keys}>", masks
    if parts:
        parts += [str(v) for v in values]
        return f"#attn.{name}<{', '.join(parts)}>", masks
    return _leaf_text(name, values, operands), masks


def _within(index: Any, place: Any) -> Any:
    """A section's index in the sequence of which it is one."""
    return PairIndex(index.axis, moved=True) if isinstance(index, PairIndex) else index + int(place[0])


def _number(operands: list[Any], array: Any) -> int:
    """The number of an array among the operands, where it is put if it is not there."""
    for i, other in enumerate(operands):
        if other is array:
            return i
    operands.append(array)
    return len(operands) - 1


def _leaf_text(name: str, values: tuple[Any, ...], operands: list[Any]) -> str:
    def number(array: Any) -> int:
        return _number(operands, array)

    def listed(sizes: Sequence[int]) -> str:
        return f"[{', '.join(map(str, sizes))}]"

    def named(**parameters: Any) -> str:
        return f"#attn.{name}<{', '.join(f'{key} = {value}' for key, value in parameters.items())}>"

    match name:
        case "window":
            sides = {side: v for side, v in zip(("left", "right"), values, strict=True) if v is not None}
            return named(**sides) if sides else "#attn.full"
        case "block_window":
            window, grid = values
            return f"#attn.block_window<{listed(window)}" + (f", grid = {listed(grid)}>" if grid else ">")
        case "dilated":
            return named(step=values[0], width=values[1])
        case "neighbourhood":
            return named(shape=listed(values[0]), kernel=listed(values[1]), dilation=listed(values[2]))
        case "random_blocks":
            return named(seed=values[0], perRow=values[1], block=values[2])
        case "document":
            return named(queryIds=number(values[0]), keyIds=number(values[1]))
        case "blocks":
            index, count, (rows, columns) = values
            return named(index=number(index), count=number(count), blockM=rows, blockN=columns)
        case "block_bitmap":
            bits, (rows, columns) = values
            return named(bits=number(bits), blockM=rows, blockN=columns)
        case "span":
            return named(**{side: number(v) for side, v in zip(SPAN, values, strict=True)})
    return f"#attn.{name}<{', '.join(map(str, values))}>" if values else f"#attn.{name}"
