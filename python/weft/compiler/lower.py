# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""From a Python function to a module of tile IR: the kernel with its arguments bound to types or constants."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from .. import native
from ..language import emit
from ..language.emit import Builder, NativeContext
from ..language.value import tensor
from . import composites
from .diagnostics import CompilationError, from_native
from .frame import Frame, as_constant
from .loops import Loops
from .names import symbol
from .signature import Signature, root


@dataclass(frozen=True)
class Options:
    """How a kernel is spread over the machine: warps a program, iterations of loads in flight; whether device_assert
    traps; whether products and the sums that take them are fused multiply-adds, of one rounding; how many programs
    share their copies; whether one block on each multiprocessor goes over the programs.
    """

    num_warps: int = 4
    num_stages: int = 3
    debug: bool = False
    enable_fp_fusion: bool = True
    cluster: int = 1
    persistent: bool = False


_contexts = threading.local()


def native_context() -> NativeContext:
    """This thread's compiler context."""
    context = getattr(_contexts, "context", None)
    if context is None:
        context = _contexts.context = NativeContext(native.load("_compiler"))
    return context


def lower(function: Any, signature: Signature, options: Options, target: str, warned: list[str] | None = None) -> Any:
    """The native module of a @weft.jit function for these arguments, verified. Warnings are added to ``warned``.

    Raises CompilationError at the user's line.
    """
    source = function.source
    context = native_context()
    context.context.take_diagnostics()
    visitor: Loops
    builder = Builder(
        context, source.file, options, lambda fn, arguments, keywords: visitor.apply(fn, arguments, keywords)
    )
    builder.target = target
    visitor = Loops(builder, Frame(function, source))
    visitor.at(source.tree)
    names = [p.name for p in function.params]
    runtime = sorted(signature.arguments, key=lambda name: names.index(root(name)))
    types = [signature.arguments[name].type for name in runtime]
    with emit.building(builder):
        with builder.region(types) as region:
            arguments = {name: tensor(region.argument(i), types[i]) for i, name in enumerate(runtime)}
            builder.arguments = {each.handle for each in arguments.values()}
            constants = {name: as_constant(value) for name, value in signature.constants.items()}
            known = {**constants, **arguments}
            visitor.frame.variables = {name: composites.together(name, known) for name in names}
            visitor.body(source.tree.body)
            builder.op("func.return")
        visitor.at(source.tree)
        attributes = _function_attributes(builder, symbol(function.__name__), region, signature, runtime, options)
        builder.op("func.func", [], [], attributes, [region])
    builder.module.set_attribute("warp.target", builder.string(target))
    if not options.enable_fp_fusion:
        builder.module.set_attribute("warp.rounds_products", builder.native.unit)
    if not builder.module.verify():
        raise _verification(context)
    if warned is not None:
        warned += builder.warnings
    return builder.module


def _function_attributes(
    builder: Builder, name: str, region: Any, signature: Signature, runtime: list[str], options: Options
) -> dict[str, Any]:
    types = [signature.arguments[n].type for n in runtime]
    per_argument = []
    for index, argument in enumerate(runtime):
        known = dict(builder.argument_hints.get(region.argument(index), {}))
        if signature.arguments[argument].divisibility > 1:
            known.setdefault("tile.divisibility", f"{signature.arguments[argument].divisibility} : i32")
        per_argument.append("{" + ", ".join(f"{key} = {value}" for key, value in known.items()) + "}")
    attributes = {
        "sym_name": builder.string(name),
        "function_type": builder.attribute(f"({', '.join(t.mlir for t in types)}) -> ()"),
        "tile.kernel": builder.native.unit,
        "tile.schedule": builder.attribute(
            f"#tile.schedule<warps = {options.num_warps}, stages = {options.num_stages}, cluster = {options.cluster}, "
            f"persistent = {str(options.persistent).lower()}>"
        ),
    }
    if signature.apart:
        attributes["warp.arrays_apart"] = builder.native.unit
    if any(known != "{}" for known in per_argument):
        attributes["arg_attrs"] = builder.attribute(f"[{', '.join(per_argument)}]")
    return attributes


def _verification(context: NativeContext) -> CompilationError:
    return from_native("the kernel breaks a rule of the tile dialect", context.context.take_diagnostics())
