# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``@weft.program``: a Python function over whole tensors as an attention mechanism, compiled when it is called and for
what it is called with.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import locks
from ..compiler import places, targets
from ..compiler.cubins import Asked
from ..compiler.diagnostics import Position
from ..compiler.launchable import Decorated
from ..recent import Recent
from ..runtime import exchange
from ..runtime.compiling import compiling
from ..runtime.devices import device_for, open_device
from ..runtime.plans import bind
from . import autocast, calls, graph, known, running, static
from .calls import Call
from .compiled import stages
from .explain import Explanation, explain
from .facts import facts_of, readable, wants_gradients
from .inputs import flatten, rebuild
from .libraries import compile_program
from .running import Saved
from .signature import arguments_of, elements_of
from .trace import Traced, trace

_lock = locks.lock("traces")


class Program(Decorated):
    """A mechanism. ``f(*tensors, **static)`` runs it on torch tensors or NumPy arrays; results of torch tensors are
    differentiable.

    ``f.ir(*tensors)`` is its attn IR; ``f.forward``, ``f.backward``, ``f.compile``, ``f.explain`` are described where
    they are defined.
    """

    __weft_program__ = True

    def __init__(self, function: Callable[..., Any]):
        self.fn = function
        self._of_class: Program | None = None  # the class' own, of which this is an object's
        self.signature = inspect.signature(function)
        code = getattr(inspect.unwrap(function), "__code__", None)
        self.position: Position | None = None
        if code is not None and not places.is_own(code.co_filename):  # else errors are at the line of the call
            self.position = Position(code.co_filename, code.co_firstlineno, 1)
        self._traced: Recent[Any, list[Traced]] = Recent(256)
        self._known: Recent[Any, known.Known] | None = Recent(256)
        functools.update_wrapper(self, function)
        self.__name__: str = getattr(function, "__name__", "program").strip("<>")

    def __weft_reads__(self, reads: Any) -> Any:
        return reads.value(self.fn)

    def __get__(self, owner: Any, kind: type | None = None) -> Program:
        """Of a class' program that of an object: a call has the object first, and reads its attributes then."""
        if owner is None:
            return self
        bound = Program.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._of_class = self
        bound.fn = types.MethodType(self.fn, owner)
        bound.signature = self._bound_signature
        bound._known = None  # what it reads is the object's
        return bound

    def __deepcopy__(self, memo: Any) -> Any:
        if self._of_class is None:
            return self
        method: Any = self.fn
        return self._of_class.__get__(copy.deepcopy(method.__self__, memo))  # as methods are copied

    def __reduce__(self) -> Any:
        method: Any = self.fn
        return super().__reduce__() if self._of_class is None else (getattr, (method.__self__, method.__name__))

    @functools.cached_property
    def _declared(self) -> dict[str, Any]:
        return elements_of(self.signature)

    @functools.cached_property
    def _bound_signature(self) -> inspect.Signature:
        parameters = list(self.signature.parameters.values())
        if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
            raise TypeError(f"expected '{self.__name__}', a program in a class, to take the object first, as 'self'")
        rest = parameters if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:]
        return self.signature.replace(parameters=rest)

    def __repr__(self) -> str:
        return f"<@weft.program {self.__name__}>"

    # ---- Tracing

    def bind(self, args: tuple[Any, ...], keywords: dict[str, Any], selective: bool = False) -> Call:
        """The arguments, with arrays apart. TypeError where they do not fit the function."""
        try:
            bound = self.signature.bind(*args, **keywords)
        except TypeError as error:
            names = [each.replace(annotation=each.empty) for each in self.signature.parameters.values()]
            said = f"'{self.__name__}': {error}; it takes {inspect.Signature(names)}"
            spelled = getattr(self.fn, "__weft_spelled__", {})
            remedies = [f"; '{name}' is {spelled[name]} here" for name in keywords if name in spelled]
            raise TypeError(said + "".join(remedies)) from None
        bound.apply_defaults()
        found: list[tuple[str, Any]] = []
        structure = []
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            label = "" if kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL) else name
            structure.append((name, flatten(value, label or name, found)))
        found, home = exchange.adopted(found)
        found = readable(autocast.cast(found) if selective else found, differentiable=selective)
        arrays = tuple(array for _, array in found)
        selective = selective and wants_gradients(arrays)
        facts = tuple(facts_of(array, selective, name, self._declared.get(name)) for name, array in found)
        return Call(tuple(name for name, _ in found), arrays, facts, tuple(structure), selective, home)

    def trace(self, call: Call) -> Traced:
        """The program for such a call: one that was traced before from equal values, or a new one."""
        shapes = [facts.shape for facts in call.facts]
        key = call.key(self.fn)
        with _lock:
            before = (self._traced.get(key) or []) if key is not None else []
            for each in before:
                if each.accepts(shapes):
                    return each
            arguments = functools.partial(self._arguments, call)
            traced = trace(
                *(self.fn, self.__name__, call.names, call.facts, arguments, self.position),
                selective=call.selective,
                arrays=call.arrays,
            )
            # A function that changes what it reads is traced at each call.
            if key is not None and traced.general and call.key(self.fn) == key:
                self._traced.keep(key, [*before, traced])
            return traced

    def declare(self, signature: str | None = None, constants: Mapping[str, Any] | None = None) -> Traced:
        """The program for inputs that are declared: by ``signature`` ("q:fp16[B,H,N,64]:16, ..., w=64"), by annotations
        of the parameters, and by ``constants`` for what is no array."""
        inputs, values, dicts = arguments_of(self.signature, signature, constants or {})
        names = list(inputs)

        def arguments(tensor: Callable[[int], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
            tensors = {name: tensor(i) for i, name in enumerate(names)}
            made = {name: {key: tensors.pop(each) for key, each in keys.items()} for name, keys in dicts.items()}
            given = {**values, **tensors, **made}
            bound = self.signature.bind(**given)
            bound.apply_defaults()
            return bound.args, bound.kwargs

        sizes = [each.sizes for each in inputs.values()]
        return trace(self.fn, self.__name__, names, list(inputs.values()), arguments, self.position, sizes)

    def _arguments(self, call: Call, tensor: Callable[[int], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound = inspect.BoundArguments(
            self.signature,
            {name: rebuild(part, tensor) for name, part in call.structure},
        )
        return bound.args, bound.kwargs

    def ir(self, *args: Any, stage: str | None = None, **keywords: Any) -> str:
        """The IR for such a call: as traced, or after the ``stage`` of that name."""
        traced = self.trace(self.bind(args, keywords))
        if stage is None:
            return traced.plain
        return stages(traced, stage)

    def explain(self, *args: Any, target: str | None = None, backward: bool = True, **keywords: Any) -> Explanation:
        """What such a call becomes: launches, their kernels and the bytes that they move; print it."""
        backward = static.truth("backward", backward)
        if target is not None:
            (target,) = targets.asked(target)
        call = self.bind(args, keywords)
        traced = self.trace(call)
        form = running.form_of(traced, call.arrays, backward, target)
        return explain(form, bind(form.plan(), [*call.arrays, *traced.captured]))

    def compile(
        self,
        target: str | Iterable[str] | None = None,
        signature: str | None = None,
        out: str | os.PathLike[str] | None = None,
        *,
        constants: Mapping[str, Any] | None = None,
        differentiate: bool = True,
        cubin: Asked = False,
        tangents: bool = False,
    ) -> Any:
        """Compile for one or more targets ("sm_80,sm_90a"; ``weft doctor`` lists them, the default first), forward and
        backward, and write the PTX library ``out``, a directory; gives it opened (weft.runtime.Library). Without
        ``out`` the library, of one target, stays in memory.

        Input types come from ``signature`` ("q:fp16[B,H,N,64]:16, ..., w=64") or from the annotations of the
        parameters; ``constants`` are further values, such as patterns. Without ``differentiate`` there is no backward.
        ``cubin`` asks for machine code beside the PTX, as in ``weft.compile``. With ``tangents`` the library,
        which then needs ``out``, has forward mode too, and second derivatives of what has some.
        """
        return compile_program(self.declare, target, signature, out, constants, differentiate, cubin, tangents)

    # ---- Running

    def forward(self, *args: Any, **keywords: Any) -> tuple[Any, Saved]:
        """What a call gives, and what ``backward`` needs of it."""
        call = self.bind(args, keywords)
        result, saved = running.forward(self.trace(call), call.arrays)
        return exchange.given_back(result, call.home), dataclasses.replace(saved, home=call.home)

    def backward(self, saved: Saved, *gradients: Any) -> Mapping[str, Any]:
        """The gradients of a call's inputs by their names, given those of its results; None stands for zero."""
        return running.backward(saved, gradients)

    def prepare(self, *args: Any, device: str | None = None, **keywords: Any) -> Program:
        """Compile for calls with such arguments, and load the kernels on ``device``: by default that of the tensors.
        Tensors may be on the device "meta"; where one requires gradients, the backward is made ready too. Calls that
        follow load nothing and wait for nothing. Gives the program itself."""
        given = self.bind(args, keywords, selective=True)
        on = open_device(device) if device else device_for(given.arrays)
        calls.load(self.trace(given), given.arrays, on)
        return self

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if compiling():
            from . import dynamo  # PyTorch is loaded: it reads this

            return dynamo.call(Program.call, (self, *args), keywords)
        return self.call(*args, **keywords)

    def call(self, *args: Any, **keywords: Any) -> Any:
        """What a call gives, where torch.compile does not read it."""
        if graph.present() is not None:  # a program inside of another is part of it
            return self.fn(*args, **keywords)
        facts = known.facts_of(args, keywords) if self._known is not None else None
        if facts is None or self._known is None:
            given = self.bind(args, keywords, selective=True)
            return exchange.given_back(calls.ready(self.trace(given), given.arrays)(given.arrays), given.home)
        key, tensors = facts
        found = self._known.get(key)
        if found is None or not found.holds(tensors):
            given = self.bind(args, keywords, selective=True)
            traced = self.trace(given)
            run = calls.ready(traced, given.arrays)
            made = known.known(tensors, given.arrays, self.fn, run) if traced.general else None
            if made is None:
                return exchange.given_back(run(given.arrays), given.home)
            found = self._known.keep(key, made)
        return found.run([tensors[number] for number in found.order])


def program(function: Callable[..., Any] | None = None) -> Any:
    """Decorate a function of whole tensors as a program. Positional arguments that are arrays are its inputs; numbers,
    patterns and keywords are fixed in the compiled form."""
    if function is None:
        return program
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"expected a function to decorate with @weft.program, but got {function!r}")
    return Program(function)
