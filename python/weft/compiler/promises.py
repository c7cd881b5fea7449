# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What nobody promised of a kernel's arguments, and bulk copies of boxes need: a library has a second form of the
kernel that counts on it, behind guards, and launches choose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..language.types import dtype, pointer_type
from ..targets import target_named
from .signature import Argument, Signature

_MAP = re.compile(r"^// weft\.tensor_map 1 (\S+) (.*)$", re.MULTILINE)
_PLACE = re.compile(r"i\d+@(\d+)")
_BYTES = 16  # addresses and strides of tensor maps are multiples of


def copies_boxes(target: str) -> bool:
    """Whether a target's kernels may have tensor maps."""
    return target_named(target).box_axes > 0


def entries_with_maps(ptx: str) -> set[str]:
    """The kernels of PTX that have tensor maps."""
    return {found[1] for found in _MAP.finditer(ptx)}


def all_promised(signature: Signature) -> Signature:
    """The signature with every address and integer a multiple of 16."""
    widened = {
        name: Argument(each.type, max(each.divisibility, _BYTES)) if _countable(each.type) else each
        for name, each in signature.arguments.items()
    }
    return Signature(widened, signature.constants)


def needed(signature: Signature, ptx: str) -> Signature | None:
    """The signature with the promises that the tensor maps of ``ptx``, which was compiled for ``all_promised``, count
    on. None where it has no map, or where all of that had been promised."""
    used = {place for _, fields in _MAP.findall(ptx) for place in _counted(fields)}
    places = _places(signature)
    widened = {
        name: Argument(each.type, max(each.divisibility, _BYTES)) if places[name] in used else each
        for name, each in signature.arguments.items()
    }
    return Signature(widened, signature.constants) if widened != dict(signature.arguments) else None


def _counted(fields: str) -> Iterator[int]:
    """The places of the arguments by which addresses and strides of a map are multiples of 16 bytes, and its lines end
    where pieces of 16 bytes do, without which threads load single elements and nothing is copied."""
    for field in fields.split():
        key, _, sums = field.partition("=")
        counted = {"base": sums, "strides": sums, "sizes": sums.partition(",")[0]}.get(key, "")
        for term in re.split("[,+]", counted) if counted else ():
            if int(term.partition("*")[0].strip("-") or 0) % _BYTES:
                yield from map(int, _PLACE.findall(term))


def _countable(kind: dtype) -> bool:
    return isinstance(kind, pointer_type) or (kind.is_int() and kind.primitive_bitwidth > 1)


def _places(signature: Signature) -> dict[str, int]:
    """Where each argument lies among the parameters, as in a C struct."""
    places, end = {}, 0
    for name, each in signature.arguments.items():
        size = 8 if isinstance(each.type, pointer_type) else max(each.type.primitive_bitwidth, 8) // 8
        places[name] = -(-end // size) * size
        end = places[name] + size
    return places
