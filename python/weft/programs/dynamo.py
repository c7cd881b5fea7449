# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Calls of traced programs inside of functions that torch.compile compiles (runtime/dynamo.py).

Beside tensors a call has patterns, score_mods and objects that they read. What of it could differ in the next call is
guarded by value, as a program's own forms are (compiler/reads.py). What cannot be compared breaks the graph.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch._dynamo import variables
from torch._dynamo.guards import GuardBuilder, get_verbose_code_parts, install_guard
from torch._dynamo.source import AttrSource, CellContentsSource, ClosureSource, DefaultsSource, GetItemSource
from torch._dynamo.variables.base import VariableTracker
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..compiler.code import names_of
from ..compiler.keys import Same
from ..compiler.objects import is_bare
from ..compiler.origins import LIBRARIES, is_foreign, is_own, root
from ..compiler.reads import MISSING, Reads, Unknown
from ..runtime.dynamo import Values, entrance, guard
from . import autocast
from .foreign import trust_libraries

_REMEDY = "Give a pattern, numbers or tensors in its place, or call this outside of what torch.compile compiles."

_FLEX = "torch.nn.attention.flex_attention"
#: what weft.attention.block_masks reads of a BlockMask
_BLOCK_MASK_FIELDS = (
    *("mask_mod", "BLOCK_SIZE", "seq_lengths"),
    *("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"),
)
_MAKERS = (torch.tensor, torch.as_tensor, torch.scalar_tensor, torch.zeros, torch.ones, torch.full, torch.arange)


class _Values(Values):
    def __init__(self, tx: Any) -> None:
        super().__init__(tx)
        self._around = 0  # how many functions the present value is around
        self._names: frozenset[str] = frozenset()  # attributes that functions made in the compiled one ask for
        # What is to be guarded by value: its source, itself, and whether it is used otherwise than for attributes.
        self._compared: list[tuple[Any, Any, bool]] = []

    def tensor(self, variable: Any) -> Any:
        fake = super().tensor(variable)
        dtype = None if self._around else autocast.wanted(fake)
        if dtype is None:
            return fake
        return super().tensor(variable.call_method(self.tx, "to", [variables.ConstantVariable.create(dtype)], {}))

    def object(self, variable: Any, bare: bool = True) -> Any:
        kind = variable.python_type()
        if (kind.__module__, kind.__qualname__) == (_FLEX, "BlockMask"):
            return self._block_mask(variable)
        fields = getattr(type(variable.value), "__weft_fields__", None)
        if fields is not None:  # of values that may be tensors: those are variables, whoever made the object
            return type(variable.value)(*(self.of(variable.var_getattr(self.tx, name)) for name in fields))
        if variable.source is None or self.tx.output.side_effects.has_pending_mutation(variable):
            return super().object(variable)
        self._guard(variable.source, variable.value, bare)
        return variable.value

    def _held(self, variable: Any, bare: bool) -> Any:
        """What is around a function: of an object that is not ``bare``, a module of torch too, attributes alone."""
        found = variable.realize()
        if not bare and isinstance(found, variables.UserDefinedObjectVariable):
            return self.object(found, bare)
        return self.of(found)

    def _block_mask(self, variable: Any) -> Any:
        """What a BlockMask holds: its tables are tensors of the graph, its mask_mod a function as any other. Of one
        that is there before the graph, ``asked(question)`` is what a function says of it; another answer compiles
        again."""
        held = {name: self.of(variable.var_getattr(self.tx, name)) for name in _BLOCK_MASK_FIELDS}
        if variable.source is None:
            return types.SimpleNamespace(**held)
        install_guard(variable.source.make_guard(GuardBuilder.TYPE_MATCH))
        return types.SimpleNamespace(**held, asked=functools.partial(self._asked, variable))

    def _asked(self, variable: Any, question: Callable[[Any], bool]) -> bool:
        known = variable.value
        tables = [getattr(known, name) for name in _BLOCK_MASK_FIELDS[3:]]
        versions = list(map(_version, tables))
        with unset_fake_temporarily(), torch._C.DisableTorchFunction():
            answer = question(known)

        def check(found: Any) -> bool:
            mine = [getattr(found, name) for name in _BLOCK_MASK_FIELDS[3:]]
            same = all(map(operator.is_, mine, tables)) and list(map(_version, mine)) == versions
            return same or question(found) == answer

        self._install(variable.source, "has the blocks of its mask_mod's pattern, or not, as before", check)
        return answer

    def other(self, variable: Any) -> Any:
        if isinstance(variable, (variables.UserDefinedClassVariable, variables.PythonModuleVariable)):
            return self._named(variable)
        if isinstance(variable, variables.UserMethodVariable):
            return types.MethodType(self._function(variable), self._held(variable.obj, is_bare(variable.fn)))
        if isinstance(variable, (variables.UserFunctionVariable, variables.NestedUserFunctionVariable)):
            return self._function(variable)
        if isinstance(variable, variables.functions.FunctoolsPartialVariable):
            keywords = {name: self.of(each) for name, each in variable.keywords.items()}
            return functools.partial(self.of(variable.func), *map(self.of, variable.args), **keywords)
        return super().other(variable)

    def _named(self, variable: Any) -> Any:
        """A class or a module: what functions ask it for is guarded, where it is not a library's."""
        value = variable.as_python_constant()
        if variable.source is not None and not _of_library(value):
            self._guard(variable.source, value)
        return value

    # ---- Functions

    def _function(self, variable: Any) -> Any:
        """A function, with fake tensors in the places of those around it."""
        if isinstance(variable, variables.NestedUserFunctionVariable):
            return self._nested(variable)
        function = variable.fn
        joins = function.__module__ == _FLEX and function.__closure__  # and_masks, or_masks: of masks around it
        if is_own(function.__code__.co_filename):
            return self.own(variable)
        if is_foreign(function.__module__) and not joins:
            return function
        source = variable.get_source()
        if source is None:
            raise self.refuse(f"the function '{function.__name__}', which the compiled function makes")
        if joins:
            install_guard(source.make_guard(GuardBuilder.CLOSURE_MATCH))
        else:
            self._guard(source, function)
        contents = self._contents(function, source)
        made = self._made(function.__code__, function.__globals__, contents)
        defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        made.__defaults__ = tuple(self._default(each, source, number) for number, each in enumerate(defaults)) or None
        made.__kwdefaults__ = {name: self._default(each, source, name) for name, each in named.items()} or None
        changed = contents or defaults or named or made.__globals__ is not function.__globals__
        return made if changed else function

    def _default(self, value: Any, source: Any, place: int | str) -> Any:
        """What an argument of a function is where none is given: around it, as what is in its closure."""
        self._around += 1
        found = DefaultsSource(source, place, is_kw=isinstance(place, str))
        made = self.of(VariableTracker.build(self.tx, value, found))
        self._around -= 1
        return made

    def _nested(self, variable: Any) -> Any:
        """A function that the compiled function defines."""
        effects = self.tx.output.side_effects
        code, names = variable.get_code(), variable.get_globals()
        contents = [effects.load_cell(cell) for cell in (variable.closure.items if variable.closure else ())]
        made = self._made(code, names, contents)
        made.__defaults__ = self.of(variable.defaults) if variable.defaults else None
        made.__kwdefaults__ = self.of(variable.kwdefaults) if variable.kwdefaults else None
        read = names_of(code)
        if read.imports:
            raise self.refuse(f"the import in '{code.co_name}'", _REMEDY)
        self._names |= read.attributes
        for name in read.globals:
            if name in names and not _of_library(names[name]) and not isinstance(names[name], torch.Tensor):
                self._guard(self._place(names, name), names[name])
        return made

    def _made(self, code: types.CodeType, names: dict[str, Any], contents: list[Any]) -> Any:
        self._around += 1
        bare = names_of(code).bare
        held = (self._held(each, name in bare) for name, each in zip(code.co_freevars, contents, strict=True))
        cells = tuple(map(types.CellType, held))
        tensors = [name for name in code.co_names if isinstance(names.get(name), torch.Tensor)]
        changed = {
            name: self.of(VariableTracker.build(self.tx, names[name], self._place(names, name))) for name in tensors
        }
        self._around -= 1
        return types.FunctionType(code, {**names, **changed} if changed else names, code.co_name, None, cells)

    def _contents(self, function: Any, source: Any) -> list[Any]:
        """The variables of a function's closure."""
        effects = self.tx.output.side_effects
        found = []
        for number, cell in enumerate(function.__closure__ or ()):
            if cell in effects:
                found.append(effects.load_cell(effects[cell]))
                continue
            name = function.__code__.co_freevars[number]
            place = CellContentsSource(GetItemSource(ClosureSource(source), number), "cell_contents", freevar_name=name)
            found.append(VariableTracker.build(self.tx, cell.cell_contents, place))
        return found

    def _place(self, names: dict[str, Any], name: str) -> Any:
        """The source of a global variable."""
        return AttrSource(self.tx.import_source(names["__name__"]), name)

    # ---- Guards

    def _guard(self, source: Any, value: Any, bare: bool = True) -> None:
        """Compile again where what is at ``source`` is no longer equal to ``value``."""
        self._read(source, value, bare, self._names)  # refused before the call is made
        self._compared.append((source, value, bare))

    def settle(self) -> None:
        # Of an object the attributes count that any code of the call names: a method has its object elsewhere.
        names, known = self._names, -1
        while len(names) > known:
            known = len(names)
            for source, value, bare in self._compared:
                reads = self._read(source, value, bare, names)[1]
                names |= reads.names
        met: set[int] = set()
        for source, value, bare in self._compared:
            met |= self._compare(source, value, bare, names)
        if any(number not in met for number in self.fixed):
            raise self.refuse("a tensor that the kernels read and that no variable leads to")
        self._compared.clear()

    def _read(self, source: Any, value: Any, bare: bool, names: frozenset[str]) -> tuple[Hashable, _Guarded]:
        reads = _Guarded(names, self.fixed)
        trust_libraries()
        try:
            return reads.key(value, bare=bare), reads
        except (Unknown, RecursionError) as error:
            what = f"a {type(value).__name__} at '{source.name}' of which no copy can be compared: it reads {error}"
            raise self.refuse(what, _REMEDY) from None

    def _compare(self, source: Any, value: Any, bare: bool, names: frozenset[str]) -> set[int]:
        """Install the guard; gives the tensors that it compares, by their ids."""
        (expected, reads), fixed = self._read(source, value, bare, names), self.fixed

        def compare(found: Any) -> bool:
            return _key(found, bare, _Guarded(names, fixed)) == expected

        known = reads.variables
        check = compare if known is None else guard(value, *known, MISSING, compare)

        self._install(source, "is as it was when a program of Weft was traced", check)
        return reads.met

    def _install(self, source: Any, what: str, check: Callable[[Any], bool]) -> None:
        def create(builder: Any, guard: Any) -> None:
            said = get_verbose_code_parts(f"{source.name} {what}", guard)
            builder.get_guard_manager(guard).add_lambda_guard(check, said, guard.user_stack)

        install_guard(source.make_guard(create))


class _Guarded(Reads):
    """What a guard compares: tensors that are inputs of the graph are Dynamo's to guard, and what makes some is a node
    of it. Those that are ``fixed`` in the graph, which were found in objects, have to be these very ones."""

    def __init__(self, names: frozenset[str], fixed: dict[int, Any]) -> None:
        super().__init__(names)
        self._fixed = fixed
        self.met: set[int] = set()

    def value(self, value: Any) -> Hashable:
        if any(value is each for each in _MAKERS):
            return ("torch", value.__name__)
        if isinstance(value, torch.Tensor):
            fixed = id(value) in self._fixed
            self.met.add(id(value))
            return (Same(value), value.requires_grad) if fixed else ("tensor", str(value.dtype), value.dim())
        return super().value(value)


def _version(tensor: Any) -> int | None:
    """How often a tensor was changed in place."""
    return None if tensor is None else int(tensor._version)


def _key(value: Any, bare: bool, reads: Reads) -> Hashable | None:
    trust_libraries()
    try:
        return reads.key(value, bare=bare)
    except (Unknown, RecursionError):
        return None


def _of_library(value: Any) -> bool:
    """Whether a value is a library's, or this package's: Reads knows the rest of Python's, such as os.environ."""
    module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return root(module) in (*LIBRARIES, "weft")


def call(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``function(*args, **keywords)``, of a traced program."""
    return torch.compiler.disable(function)(*args, **keywords)  # after a graph break: Dynamo is not to come back


@torch.compiler.disable(reason="a kernel of Weft writes into its arguments in place")
def outside(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``function(*args, **keywords)``, between two graphs."""
    return function(*args, **keywords)


entrance(call, _Values)
