# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The parameters of a @weft.jit function: which are constants, which types their annotations promise."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..language.types import block_type, constexpr, dtype
from .diagnostics import CompilationError
from .signature import type_named


@dataclass(frozen=True)
class Parameter:
    """One parameter, the ``num``-th. ``type`` and ``divisibility`` come from its annotation: a type, or text such as
    "*fp16:16". ``default`` is inspect's ``empty`` where there is none."""

    num: int
    name: str
    is_constexpr: bool
    type: dtype | None
    divisibility: int
    has_default: bool
    default: Any
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool
    is_const: bool = False  # whether nothing may be stored through it

    @property
    def specialise(self) -> bool:
        """Whether an integer that is 1 becomes a constant."""
        return not self.do_not_specialize

    @property
    def specialise_alignment(self) -> bool:
        """Whether divisibility by 16 is used."""
        return not (self.do_not_specialize or self.do_not_specialize_on_alignment)


def of(
    function: Any, signature: inspect.Signature, unspecialised: Iterable[int | str], unaligned: Iterable[int | str]
) -> list[Parameter]:
    """The parameters of a function, which must all be given by position or name."""
    parameters = []
    plain, plain_alignment = set(unspecialised), set(unaligned)
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise CompilationError(
                f"expected named parameters of '{function.__name__}', but got '*{parameter.name}'",
                remedy="name each one",
            )
        is_constexpr, kind, divisibility = _annotation(parameter.annotation)
        is_const = getattr(parameter.annotation, "__weft_const__", False) or _last_name(parameter.annotation) == "const"
        has_default = parameter.default is not parameter.empty
        default = parameter.default.value if isinstance(parameter.default, constexpr) else parameter.default
        ids = {index, parameter.name}
        parameters.append(
            Parameter(
                index,
                parameter.name,
                is_constexpr,
                kind,
                divisibility,
                has_default,
                default,
                bool(ids & plain),
                bool(ids & plain_alignment),
                is_const,
            )
        )
    return parameters


def _last_name(annotation: Any) -> str | None:
    """Of an annotation in text, "tl.const", the name; under 'from __future__ import annotations' it may be quoted
    twice."""
    return annotation.strip("'\" ").split(".")[-1] if isinstance(annotation, str) else None


def _annotation(annotation: Any) -> tuple[bool, dtype | None, int]:
    """Whether it says constexpr, the type it names, and the divisibility it promises."""
    if annotation is constexpr or isinstance(annotation, constexpr):
        return True, None, 1
    if isinstance(annotation, dtype) and not isinstance(annotation, block_type):
        return False, annotation, 1
    if not isinstance(annotation, str):
        return False, None, 1
    if _last_name(annotation) == "constexpr":
        return True, None, 1
    name, _, multiple = annotation.strip("'\" ").partition(":")
    try:
        return False, type_named(name), int(multiple) if multiple else 1
    except ValueError:
        return False, None, 1  # an annotation for people, or for another tool
