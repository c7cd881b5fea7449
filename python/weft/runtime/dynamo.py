# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs inside of functions that torch.compile compiles: a call becomes the program's operators in torch's graph.

torch's Dynamo reads Python's bytecode and knows tensors, numbers and containers. ``call(function, args, keywords)`` is
evaluated whole while Dynamo reads, on the fake tensors that it has in the place of real ones; what operators are called
by it become nodes of the graph.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._dynamo import trace_rules, variables
from torch._dynamo.exc import unimplemented
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import ConstantSource
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import wrap_fx_proxy
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from weft import native

from . import operators, transforms

_REMEDY = (
    "Make it outside of what torch.compile compiles and pass it in, or inside of a function that @weft.program "
    "decorates."
)
_IN_PLACE = "Compute a new tensor in its place, or change it outside of what torch.compile compiles."


class Values:
    """Dynamo's variables as values, tensors as the fake ones that stand for them, and the reverse."""

    def __init__(self, tx: Any) -> None:
        self.tx = tx
        self._variables: dict[int, Any] = {}
        self._kept: list[Any] = []  # so that no other tensor takes the place of one that was seen
        self.fixed: dict[int, Any] = {}  # tensors, by their id, that the graph has as they are: no inputs of it
        self._adding = False  # to the graph: what torch calls for it is no node

    # ---- From variables to values

    def of(self, variable: Any) -> Any:
        """The value of a variable. What it depends on is guarded: a change compiles again."""
        variable = variable.realize()
        if variable.is_tensor():
            return self.tensor(variable)
        if isinstance(variable, variables.SymNodeVariable):
            return variable.evaluate_expr(self.tx.output)
        if isinstance(variable, variables.ConstDictVariable):
            return {key.vt.as_python_constant(): self.of(each) for key, each in variable.items.items()}
        if isinstance(variable, variables.lists.BaseListVariable):
            items = [self.of(each) for each in variable.items]
            kind = variable.python_type()
            apart = kind in (range, slice) or hasattr(kind, "_fields")
            return kind(*items) if apart else kind(items)
        if isinstance(variable, variables.UserDefinedObjectVariable):
            return self.object(variable)
        return self.other(variable)

    def tensor(self, variable: Any) -> Any:
        """The fake tensor of a tensor's variable."""
        fake = variable.proxy.node.meta["example_value"]
        self._know(fake, variable)
        return fake

    def object(self, variable: Any) -> Any:
        """An object that the compiled function takes: that very one in each call."""
        if variable.source is None or self.tx.output.side_effects.has_pending_mutation(variable):
            raise self.refuse(f"an object of type '{type_of(variable)}' that the compiled function makes or changes")
        install_guard(variable.source.make_guard(GuardBuilder.ID_MATCH))
        return variable.value

    def other(self, variable: Any) -> Any:
        """Any other value: a number, a type, a function of this package."""
        if isinstance(variable, variables.UserFunctionVariable):
            return self.own(variable)
        try:
            return variable.as_python_constant()
        except NotImplementedError:
            raise self.refuse(f"a value of type '{type_of(variable)}'") from None

    def own(self, variable: Any) -> Any:
        """A function of this package: that very one in each call, as Dynamo itself compares but its code. So
        functions of different libraries' programs are one to it."""
        source = variable.get_source()
        if source is not None and variable.fn.__closure__:
            install_guard(source.make_guard(GuardBuilder.ID_MATCH))
        return variable.fn

    def settle(self) -> None:
        """Guard what is not guarded yet: the call was made."""

    # ---- From values to variables

    def record(self, made: operators.Operators, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """A forward operator's call as a node of torch's graph; gives its outputs, as fake tensors."""
        proxies = tuple(self._proxy(each) for each in tensors)
        target, given = made.forward, proxies
        if transforms.transformed():
            target, given = operators.transformed, (made.called, *proxies)
        return tuple(self._node(target, given, {}))

    def compute(self, function: Any, args: Any, keywords: Any) -> Any:
        """A function of torch's as a node of its graph, where it gives a tensor that no variable stands for yet."""
        name = getattr(function, "__name__", "")
        if not self._adding and (name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))):
            raise self.refuse(f"'{name}', which changes a tensor on the way to the kernels", _IN_PLACE)
        found = function(*args, **keywords)
        if self._adding:
            return found
        leaves, structure = tree_flatten(found)
        if all(id(each) in self._variables for each in leaves if isinstance(each, torch.Tensor)):
            return found
        args, keywords = tree_map(lambda x: self._proxy(x) if isinstance(x, torch.Tensor) else x, (args, keywords))
        return tree_unflatten(self._node(function, args, keywords), structure)

    def _node(self, target: Any, args: Any, keywords: Any) -> list[Any]:
        with self._added():
            variable = wrap_fx_proxy(self.tx, self.tx.output.create_proxy("call_function", target, args, keywords))
        return [self.of(each) for each in ([variable] if not hasattr(variable, "items") else variable.items)]

    @contextlib.contextmanager
    def _added(self) -> Iterator[None]:
        """A ``with`` in which torch adds to its graph, and calls functions on the way that are no part of it."""
        before, self._adding = self._adding, True
        try:
            yield
        finally:
            self._adding = before

    def _proxy(self, tensor: Any) -> Any:
        variable = self._variables.get(id(tensor))
        if variable is None:  # one that no variable leads to, as in a pattern: the same in each call
            if isinstance(tensor, FakeTensor):
                raise self.refuse("a tensor that is computed on the way to the kernels")
            name = f"weft_{len(self._variables)}"
            with self._added():
                variable = self.tx.output.register_attr_or_module(tensor, name, source=ConstantSource(name))
            self._know(tensor, variable)
            self.fixed[id(tensor)] = tensor
        return variable.as_proxy()

    def _know(self, tensor: Any, variable: Any) -> None:
        self._variables[id(tensor)] = variable
        self._kept.append(tensor)

    def variable(self, value: Any) -> Any:
        """The variable of what a call gives."""
        if isinstance(value, torch.Tensor):
            return self._variables[id(value)]
        if type(value) is tuple:
            return variables.TupleVariable([self.variable(each) for each in value])
        if type(value) is list:
            return variables.ListVariable([self.variable(each) for each in value])
        if type(value) is dict:
            made: dict[Any, Any] = {
                variables.ConstantVariable.create(key): self.variable(each) for key, each in value.items()
            }
            return variables.ConstDictVariable(made)
        if value is None or isinstance(value, (int, float, str)):
            return variables.ConstantVariable.create(value)
        raise self.refuse(f"a result of type '{type(value).__name__}'")

    def refuse(self, what: str, remedy: str = _REMEDY) -> Exception:
        """Break the graph at the call, and say why: this never returns."""
        unimplemented(
            gb_type="Weft: a call that torch.compile cannot take into its graph",
            context=what,
            explanation=f"expected tensors, numbers, patterns and functions of them in a call of Weft, but got {what}",
            hints=[remedy],
        )
        raise AssertionError("unreachable")


class _Computed(TorchFunctionMode):
    """What a call computes by torch's own functions on the way to the kernels: nodes of the graph too."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self._values = values

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._values.compute(function, args, kwargs or {})


def type_of(variable: Any) -> str:
    """The name of a variable's type, for messages."""
    try:
        return str(variable.python_type().__name__)
    except NotImplementedError:
        return type(variable).__name__


@contextlib.contextmanager
def _fakes(mode: Any) -> Iterator[None]:
    """A ``with`` in which torch computes shapes and types, of tensors too that a call finds in objects and computes
    with on the way to the kernels: they are of the graph as they are."""
    if mode is None:
        yield
        return
    before, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    try:
        with mode:
            yield
    finally:
        mode.allow_non_fake_inputs = before


def entrance(call: Callable[..., Any], values: type[Values]) -> None:
    """Let Dynamo evaluate ``call(function, args, keywords)`` by ``values`` where it meets one."""

    class Call(VariableTracker):
        @classmethod
        def create_with_source(cls, value: Any, source: Any) -> Call:
            return cls(source=source)

        def python_type(self) -> type:
            return types.FunctionType

        def call_function(self, tx: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
            found = values(tx)
            function, given, keywords = (found.of(each) for each in args)
            with _fakes(tx.output.fake_mode), operators.recorded_by(found.record), _Computed(found):
                result = found.variable(function(*given, **keywords))
            found.settle()
            return result

    trace_rules.get_torch_obj_rule_map()[call] = Call


def guard(
    value: Any, globals: list[Any], attributes: list[Any], missing: Any, otherwise: Callable[[Any], bool]
) -> Callable[[Any], bool]:
    """What a guard asks of what is found in the place of ``value``: that it is that very one, where these variables, as
    (namespace, name, value) and (object, name, value), still have their values, or else what ``otherwise`` says."""
    check: Callable[[Any], bool] = native.load("_runtime").guard(value, globals, attributes, missing, otherwise)
    return check


def call(function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """``function(*args, **keywords)``, of a library's program."""
    return torch.compiler.disable(function)(*args, **keywords)  # after a graph break: Dynamo is not to come back


entrance(call, Values)
