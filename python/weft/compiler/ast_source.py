# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A kernel with the types of its arguments, as Triton's ``ASTSource`` says it: what is compiled without a call."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..language.types import constexpr
from .diagnostics import CompilationError
from .launchable import Launchable
from .signature import Argument, Signature, for_function, short_name, type_named

_CONSTANT = "constexpr"
_DIVISIBILITY = "tt.divisibility"


class ASTSource:
    """A kernel, its arguments' types and its constants: ``ASTSource(kernel, {"x": "*fp32", "n": "i32", "BLOCK":
    "constexpr"}, {"BLOCK": 64})``.

    signature: the type of each parameter by name; "constexpr" of those that are constants.
    constexprs: constants by name, or by the parameter's number in a tuple, (2,).
    attrs: what arguments are multiples of, by the parameter's number in a tuple: {(0,): [["tt.divisibility", 16]]}.
    """

    ext = "ttir"

    def __init__(
        self,
        fn: Any,
        signature: Mapping[str, str],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[Any, Sequence[Sequence[Any]]] | None = None,
    ):
        while isinstance(fn, Launchable) and isinstance(getattr(fn, "fn", None), Launchable):
            fn = fn.fn
        if not getattr(fn, "__weft_jit__", False):
            raise TypeError(f"expected a function decorated with @triton.jit, but got {fn!r}")
        for name in signature:
            if not isinstance(name, str):
                raise TypeError(f"expected the signature to name parameters, but got {name!r}")
        self.fn = fn
        self.name = fn.__name__
        self.signature = dict(signature)
        self.constants = {(self._number(key),): value for key, value in (constexprs or {}).items()}
        self.attrs = {(self._number(key),): value for key, value in (attrs or {}).items()}

    def _number(self, key: Any) -> int:
        """The number of the parameter that a key names."""
        names = self.fn.arg_names
        number = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if isinstance(number, str) and number in names:
            return int(names.index(number))
        if isinstance(number, int) and 0 <= number < len(names):
            return number
        raise CompilationError(
            f"expected one of the parameters of '{self.name}' ({', '.join(names)}), or its number in a tuple, "
            f"but got {key!r}"
        )

    def hash(self) -> str:
        """A digest of the kernel, of all that it reads, and of what it is compiled for."""
        constants = [getattr(value, "cache_key", repr(value)) for _, value in sorted(self.constants.items())]
        parts = [self.fn.cache_key, sorted(self.signature.items()), sorted(self.constants), constants, self.attrs]
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def parse_options(self) -> dict[str, Any]:
        """The options that the source itself sets: none."""
        return {}

    def wanted(self) -> Signature:
        """The run-time arguments and the constants, as the compiler takes them. Raises CompilationError."""
        names = self.fn.arg_names
        constants = {names[number]: value for (number,), value in self.constants.items()}
        arguments: dict[str, Argument] = {}
        for name, kind in self.signature.items():
            if name not in names:
                raise CompilationError(
                    f"expected one of the parameters of '{self.name}' ({', '.join(names)}), but got '{name}'"
                )
            if kind == _CONSTANT or name in constants:
                continue
            try:
                arguments[name] = Argument(type_named(str(kind)), self._multiple(names.index(name)))
            except ValueError as error:
                raise CompilationError(f"'{name}' of '{self.name}': {error}") from None
        return replace(for_function(self.fn, Signature(arguments, constants), {}), apart=True)

    def _multiple(self, number: int) -> int:
        """What an argument is a multiple of; other promises, such as "tt.pointer_range", change nothing."""
        return max([1, *(int(value) for name, value in self.attrs.get((number,), ()) if name == _DIVISIBILITY)])


def source_of(function: Any, signature: Signature) -> ASTSource:
    """The source that a compiled kernel was made from."""
    kinds = {name: short_name(argument.type) for name, argument in signature.arguments.items()}
    parts = {name for name in (*kinds, *signature.constants) if name not in function.arg_names}
    constants = {name: value for name, value in signature.constants.items() if name not in parts}
    kinds = {name: kinds.get(name, _CONSTANT) for name in function.arg_names}
    numbers = {name: number for number, name in enumerate(function.arg_names)}
    promised = {
        (numbers[name],): [[_DIVISIBILITY, argument.divisibility]]
        for name, argument in signature.arguments.items()
        if argument.divisibility > 1 and name in numbers
    }
    given = {name: value.value if isinstance(value, constexpr) else value for name, value in constants.items()}
    return ASTSource(function, kinds, given, promised)
