# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs as functions of JAX: ``weft.jax.wrap(program)``, for jit, grad and vmap.

XLA calls the kernels itself, through its foreign function interface: on a CPU the simulator runs them on XLA's arrays
where they are, on a GPU they are queued on XLA's stream.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft import native
from weft.compiler.targets import target_of
from weft.programs import running
from weft.programs.inputs import rebuild
from weft.programs.program import Program, program
from weft.programs.trace import Traced
from weft.runtime.devices import open_device
from weft.runtime.elements import TORCH, array_type, is_float
from weft.runtime.library import Library
from weft.runtime.plans import bind, evaluate, folded_batch, saved_outputs

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as error:
    message = "weft.jax needs jax, which is not installed: pip install jax"
    raise ModuleNotFoundError(message, name=error.name, path=error.path) from error

_HANDLER = "weft_program"
#: finds the library of a function that is to run: for the device of that name, and with its backward or without
_Libraries = Callable[[str, bool], Library]


def wrap(what: Any, name: str | None = None) -> Callable[..., Any]:
    """A program as a function of JAX arrays, or the program ``name`` of an opened library:

        attend = weft.jax.wrap(lambda q, k, v: weft.softmax(q, k, weft.causal()) @ v)
        jax.jit(jax.grad(lambda q, k, v: attend(q, k, v).sum()))(q, k, v)

    ``what`` is a program, a function to make one of, or a library. What a call gives, by values and by structure, is
    what the program gives; arguments that are no arrays are fixed when the call is traced. Gradients are the program's
    own backward; jax.vmap runs one after the other. Forward mode and second derivatives are refused by JAX.

    Raises TypeError for other things, KeyError for a program that the library has not.
    """
    if isinstance(what, Library):
        if name is None:
            raise TypeError(f"expected the name of a program, one of {', '.join(what.programs) or 'none'}")
        return _of_library(what, name)
    if isinstance(what, types.FunctionType):
        what = program(what)
    if not isinstance(what, Program):
        raise TypeError(f"expected a program, a function to make one of, or a library, but got {what!r}")
    if name is not None:
        raise TypeError("expected no name beside a program: it is for libraries")
    return _of_program(what)


def _of_program(what: Program) -> Callable[..., Any]:
    @functools.wraps(what.fn)
    def call(*args: Any, **keywords: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten((args, keywords))
        values = {}
        for number, leaf in enumerate(leaves):
            if isinstance(leaf, (jax.Array, np.ndarray)):
                value = jnp.asarray(leaf)
                # an array of the same facts, whose memory nobody touches, for the tracer of programs
                leaves[number] = np.empty(value.shape, value.dtype)
                values[id(leaves[number])] = value
        args, keywords = jax.tree_util.tree_unflatten(tree, leaves)
        bound = what.bind(args, keywords)
        traced = what.trace(bound)
        shapes = [*bound.arrays, *traced.captured]

        def library(device: str, differentiate: bool) -> Library:
            target = target_of(open_device(device))
            found: Library = running.tuned(traced, shapes, differentiate, target).library
            return found

        arrays = [*(values[id(each)] for each in bound.arrays), *map(_constant, traced.captured)]
        unseen = any(map(_is_elsewhere, arrays))
        if traced.starts and not unseen:
            running.packed_as_said(traced, [np.asarray(each) for each in arrays])
        results = _applied(traced.name, library, arrays)
        if traced.starts and unseen:
            results = _unless_packed(traced, arrays, results)
        return rebuild(traced.result, lambda number: results[number] if number >= 0 else arrays[-1 - number])

    return call


def _of_library(library: Library, name: str) -> Callable[..., Any]:
    plain = library.program(name)

    def call(*inputs: Any, **named: Any) -> Any:
        arrays = [jnp.asarray(each) for each in plain.positional(inputs, named)]
        results = _applied(name, lambda device, differentiate: library, arrays)
        return results[0] if len(results) == 1 else results

    call.__name__ = call.__qualname__ = name
    return call


def _is_elsewhere(array: Any) -> bool:
    """Whether an array's values are not here to be looked at: it is traced, or on a GPU."""
    return isinstance(array, jax.core.Tracer) or any(device.platform != "cpu" for device in array.devices())


def _unless_packed(traced: Traced, arrays: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
    """The results, and NaN in the place of numbers of theirs where starts of packed sequences do not rise from 0 to the
    number of tokens: `running.packed_as_said` for starts on a GPU, whose values nobody sees before the call; on a CPU
    the runtime refuses them. Multiplied, so that gradients are NaN with them."""
    sizes = bind({"inputs": [{"dims": each.dims} for each in traced.inputs]}, arrays)
    fits: Any = True
    for number, tokens in traced.starts:
        starts = arrays[number]
        if starts.shape[0] == 0:
            fits = False
            continue
        rises = (starts[0] == 0) & (starts[-1] == evaluate(tokens, sizes)) & (starts[1:] >= starts[:-1]).all()
        fits = fits & rises
    factor = jnp.where(fits, 1.0, jnp.nan)
    floats = [jnp.issubdtype(each.dtype, jnp.floating) for each in results]
    return tuple(r * factor.astype(r.dtype) if f else r for r, f in zip(results, floats, strict=True))


def _constant(array: Any) -> Any:
    """An array from around a program, of NumPy or torch."""
    return jnp.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)


def _applied(name: str, libraries: _Libraries, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a program on arrays, differentiable by its backward."""

    @jax.custom_vjp
    def apply(*inputs: Any) -> tuple[Any, ...]:
        return _run(name, "", libraries, inputs)

    def forward(*inputs: Any) -> tuple[Any, Any]:
        if not any(is_float(each["type"]) for each in libraries("simulator", False).program(name).outputs):
            return _run(name, "", libraries, inputs), (inputs, None)  # there is no backward
        plain, first, last = _parts(name, libraries)
        results = _run(name, ".forward", libraries, inputs)
        count = len(plain.outputs)
        saved = saved_outputs(len(inputs), count, first.outputs, last.inputs)
        return results[:count], (inputs, tuple(results[number] for number in saved))

    def backward(kept: Any, gradients: Any) -> tuple[Any, ...]:
        inputs, saved = kept
        if saved is None:
            return tuple(_gradient(each, None) for each in inputs)
        plain, _, last = _parts(name, libraries)
        given = [g for g, each in zip(gradients, plain.outputs, strict=True) if is_float(each["type"])]
        found = dict(zip(last.gradients_of, _run(name, ".backward", libraries, [*inputs, *saved, *given]), strict=True))
        return tuple(_gradient(each, found.get(number)) for number, each in enumerate(inputs))

    apply.defvjp(forward, backward)
    results: tuple[Any, ...] = apply(*arrays)
    return results


def _parts(name: str, libraries: _Libraries) -> tuple[Any, Any, Any]:
    """The program, its forward and its backward. What they take and give is the same for every target."""
    library = libraries("simulator", True)
    return library.program(name), library.program(f"{name}.forward"), library.program(f"{name}.backward")


def _gradient(array: Any, found: Any) -> Any:
    """The gradient of an input as JAX takes it: of its own type, float0 for integers, zero where nothing reads it."""
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return np.zeros(array.shape, jax.dtypes.float0)
    return jnp.zeros_like(array) if found is None else found.astype(array.dtype)


def _run(name: str, part: str, libraries: _Libraries, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Run one of a program's functions, on whichever platform the call is compiled for."""
    _register_handlers()

    def on(device: str) -> Callable[..., tuple[Any, ...]]:
        library = libraries(device, bool(part))
        made = library.program(name + part)
        simulator = device if device.startswith("simulator") else "simulator"
        key = f"{library.manifest['digest']} {made.name} {simulator}"
        native.load("_runtime").jax_register(key, library.handle, made.name, simulator)

        def call(*inputs: Any) -> tuple[Any, ...]:
            shapes = _results(made, inputs)
            results = jax.ffi.ffi_call(_HANDLER, shapes, vmap_method="sequential")(*inputs, program=key)
            return tuple(results)

        return _batched(call, made.plan)

    if not _has_cuda():
        return on("simulator")(*arrays)
    results: tuple[Any, ...] = jax.lax.platform_dependent(*arrays, cpu=on("simulator"), cuda=on("cuda:0"))
    return results


def _batched(call: Callable[..., tuple[Any, ...]], plan: Mapping[str, Any]) -> Callable[..., tuple[Any, ...]]:
    """``call``, which runs a function of this plan, with its rule for jax.vmap: the axis becomes part of the batch, or
    the calls follow one another where it cannot (runtime/batching.py)."""
    whole = jax.custom_batching.custom_vmap(call)

    @whole.def_vmap
    def rule(count: int, mapped: Sequence[bool], *inputs: Any) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
        size = folded_batch(plan, count, mapped, [each.shape for each in inputs])
        if size is None:
            results = jax.vmap(call, [0 if each else None for each in mapped], axis_size=count)(*inputs)
            return results, (True,) * len(results)
        folded = []
        for each, is_mapped, described in zip(inputs, mapped, plan["inputs"], strict=True):
            if described["dims"][:1] == [plan["batch"]]:
                spread = each if is_mapped else jnp.broadcast_to(each, (count, *each.shape))
                each = spread.reshape(count * size, *spread.shape[2:])
            folded.append(each)
        results = tuple(each.reshape(count, size, *each.shape[1:]) for each in whole(*folded))
        return results, (True,) * len(results)

    return whole


def _results(made: Any, arrays: Sequence[Any]) -> list[Any]:
    """The shapes and types of a program's results. TypeError, naming the argument, for arrays that it does not take."""
    if len(arrays) != len(made.inputs):
        raise TypeError(f"'{made.name}': expected {len(made.inputs)} arrays, but got {len(arrays)}")
    for described, array in zip(made.inputs, arrays, strict=True):
        given = _type_of(array)
        if given != described["type"] or len(array.shape) != len(described["dims"]):
            wanted = f"{described['type']}[{', '.join(described['dims'])}]"
            shape = ", ".join(map(str, array.shape))
            raise TypeError(f"'{made.name}': expected '{described['name']}' to be {wanted}, but got {given}[{shape}]")
    sizes = bind({"inputs": made.inputs}, arrays)
    for described in made.outputs:
        if described["type"] == "i64" and jax.dtypes.canonicalize_dtype(np.int64) != np.int64:
            raise TypeError(
                f"'{made.name}': '{described['name']}' is of int64, which JAX has not: "
                "jax.config.update('jax_enable_x64', True)"
            )
    return [
        jax.ShapeDtypeStruct(
            tuple(evaluate(dim, sizes) for dim in described["dims"]), getattr(jnp, _NUMPY_NAME[described["type"]])
        )
        for described in made.outputs
    ]


_NUMPY_NAME = {**TORCH, "i1": "bool_"}


def _type_of(array: Any) -> str:
    try:
        return array_type(array.dtype)
    except TypeError:
        return str(array.dtype)


@functools.cache
def _register_handlers() -> None:
    runtime = native.load("_runtime")
    jax.ffi.register_ffi_target(_HANDLER, runtime.jax_handler_cpu, platform="cpu")
    jax.ffi.register_ffi_target(_HANDLER, runtime.jax_handler_cuda, platform="CUDA")


@functools.cache
def _has_cuda() -> bool:
    try:
        return bool(jax.devices("cuda"))
    except RuntimeError:  # what JAX raises for a platform that is not there
        return False
