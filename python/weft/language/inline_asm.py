# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""PTX inside of kernels: ``inline_asm_elementwise``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import errors
from .casts import convert
from .emit import builtin, current, is_dtype
from .literals import to_tensor
from .promotion import broadcast_all
from .shapes import constant_int
from .types import dtype, int64, unwrap
from .value import tensor


@builtin
def inline_asm_elementwise(
    asm: str, constraints: str, args: Sequence[Any], dtype: dtype | Sequence[dtype], is_pure: bool, pack: int
) -> Any:
    """PTX for every element of the arguments, which broadcast to one shape: a block of ``dtype`` of that shape, or a
    tuple of blocks for several types. Without arguments, or with scalars alone, a scalar.

    The code runs once for every ``pack`` elements. ``$0``, ``$1`` ... are first its results, then its operands:
    elements of 32 bits or more take an operand each, narrower ones are packed, at most ``pack`` of them, into 32 bits,
    the first in the lowest. ``constraints`` has an entry for each: ``=r`` for 32 bits, ``=h`` 16, ``=l`` 64, ``=f``
    float32, ``=d`` float64, without ``=`` for operands, ``n`` or ``i`` for an integer that is a constant and stands in
    the code as a number, then clobbers such as ``~{memory}``. Code that does more than compute its results has
    ``is_pure`` false. Nothing is promoted: operands have their own types, pointers are int64.

        v = wl.load(x + at)
        t = wl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=wl.float32, is_pure=True, pack=1)
    """
    code, wanted = unwrap(asm), unwrap(constraints)
    for what, text in (("asm", code), ("constraints", wanted)):
        if not isinstance(text, str):
            raise errors.expected_text(what, "inline_asm_elementwise", text)
    kinds = unwrap(dtype)
    types = list(kinds) if isinstance(kinds, (tuple, list)) else [kinds]
    for kind in types:
        if not is_dtype(kind) or kind.is_ptr():
            raise errors.expected_dtype("inline_asm_elementwise", kind)
    values = [to_tensor(arg, "an argument of 'inline_asm_elementwise'") for arg in unwrap(args)]
    values = [convert(value, int64) if value.dtype.is_ptr() else value for value in values]
    values = broadcast_all(values)
    shape = values[0].shape if values else ()
    builder = current()
    attributes = {
        "code": builder.string(code),
        "constraints": builder.string("".join(wanted.split())),
        "pack": builder.i32(constant_int(pack, "'pack' of 'inline_asm_elementwise'")),
    }
    if unwrap(is_pure):
        attributes["pure"] = builder.native.unit
    results = [kind.with_shape(shape) for kind in types]
    made = builder.op("tile.inline_asm", [value.handle for value in values], results, attributes)
    handles = (made,) if len(results) == 1 else made
    found = tuple(tensor(handle, kind) for handle, kind in zip(handles, results, strict=True))
    return found if isinstance(kinds, (tuple, list)) else found[0]


__all__ = ["inline_asm_elementwise"]
