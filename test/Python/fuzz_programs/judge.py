# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Whether a program's results, gradients and tangents are right: they are held against float64, beside what arithmetic
of the same types reaches, as weft.testing.accuracy has it. How well a random program is conditioned nobody knows
beforehand, so plain arithmetic runs several times, on inputs that differ in their last bits.
"""

from __future__ import annotations

import dataclasses

import torch
import torch.autograd.forward_ad as forward_ad

from . import source, tensors
from .interpreter import Interpreter
from .tensors import TYPES, Invalid

#: what inputs are moved by, relatively: the rounding of what is computed first of them; products of float32 lose bits
_MOVED = {"f16": 2.0**-12, "bf16": 2.0**-9, "f32": 2.0**-21}
_ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
_DRAWS = 3


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a description."""

    kind: str  # right, wrong, skipped; a worker adds refused, internal, finding, crash, hang
    message: str = ""
    program: str = ""
    excess: float = 0.0

    @property
    def failed(self):
        return self.kind not in ("right", "skipped", "refused")


class Wrong(Exception):
    """A result or gradient that is not right."""

    def __init__(self, message, excess):
        super().__init__(message)
        self.excess = excess


def leaves_of(description):
    """The inputs whose gradients are compared."""
    read = set(source.read(description))
    return [n for n, x in description["inputs"].items() if n in read and x["grad"]] if description["backward"] else []


def moving(description):
    """The inputs that have tangents: most of those whose gradients are compared, a different choice for each seed."""
    names = leaves_of(description) if description.get("forward") else []
    chosen = torch.rand(len(names), generator=tensors.generator(description, "moving", 0)) < 0.7
    return [name for number, name in enumerate(names) if chosen[number] or (number == 0 and not chosen.any())]


def evaluated(description, sizes, inputs, tables, cotangents, *, rounded, moved=None):
    """The results, their tangents, and the gradients of the leaves, by the interpreter."""
    real = torch.float32 if rounded else torch.float64
    names = leaves_of(description)
    given = {}
    for name, x in inputs.items():
        x = x.to(real)
        if moved is not None:
            step = _MOVED[description["inputs"][name]["dtype"]]
            x = x * (1 + step * (2 * torch.rand(x.shape, generator=moved, dtype=real) - 1))
        given[name] = x.detach().requires_grad_(name in names)
    results = Interpreter(description, sizes, given, tables, rounded).run()
    found = gradients(results, [given[name] for name in names], cotangents)

    def forward(given):
        return Interpreter(description, sizes, given, tables, rounded).run()

    return results, pushed(forward, given, changes(description, sizes, real)), found


def changes(description, sizes, dtype=None):
    """The tangents of inputs by name, of the inputs' strides."""
    found = {}
    for name in moving(description):
        x = description["inputs"][name]
        made = tensors.numbers(x, tensors.shape(x["dims"], sizes), tensors.generator(description, f"change {name}", 0))
        found[name] = tensors.laid_out(made if dtype is None else made.to(dtype), x["layout"])
    return found


def pushed(f, given, tangents):
    """The tangents of what ``f`` gives of tensors by name; that of a row's -inf, which sees nothing, is 0."""
    if not tangents:
        return []
    with torch.no_grad(), forward_ad.dual_level():
        duals = {name: forward_ad.make_dual(given[name].detach(), tangent) for name, tangent in tangents.items()}
        pairs = [forward_ad.unpack_dual(each) for each in f({**given, **duals})]
        return [torch.zeros_like(p.primal) if p.tangent is None else p.tangent.clone() for p in pairs]


def gradients(results, leaves, cotangents):
    """The gradients of the leaves; where a result is -inf, that of a row that sees nothing, it is a constant."""
    pairs = [(x, c) for x, c in zip(results, cotangents, strict=True) if x.requires_grad]
    if not leaves or not pairs:
        return [torch.zeros_like(x) for x in leaves]
    seeds = [c.to(x.dtype).masked_fill(x.detach() == -torch.inf, 0) for x, c in pairs]
    found = torch.autograd.grad([x for x, _ in pairs], leaves, seeds, allow_unused=True)
    return [torch.zeros_like(x) if d is None else d for x, d in zip(leaves, found, strict=True)]


def judged(description, program):
    """Run ``program``, the compiled description, at all sizes; gives "right" or why it is skipped. Raises Wrong."""
    outcome = "right"
    for number in range(1 + len(description["variants"])):
        sizes = description["sizes"] | (description["variants"][number - 1] if number else {})
        excesses = []
        while len(excesses) < _DRAWS:
            try:
                excess = drawn(description, program, sizes, len(excesses))
            except OverflowError as error:
                outcome = str(error)
                break
            excesses.append(excess)
            if excess is None:
                break
            factor = excess[0]
            if factor > 4 or sum(e is not None for e in excesses) >= 2:
                raise Wrong(f"{excess[1]} at {sizes}", factor)
    return outcome


def drawn(description, program, sizes, draw):
    """The largest excess over the limits on one draw of numbers, as (factor, message), or None."""
    inputs, tables = tensors.inputs(description, sizes, draw), tensors.tables(description, sizes, draw)
    names = leaves_of(description)
    leaves = {name: x.double() for name, x in inputs.items()}
    shapes = [x.shape for x in Interpreter(description, sizes, leaves, tables, False).run()]
    types = [result_type(description, name) for name in description["results"]]
    cotangents = [
        torch.randn(shape, generator=tensors.generator(description, f"d{i}", draw)).to(dtype)
        for i, (shape, dtype) in enumerate(zip(shapes, types, strict=True))
    ]
    exact, exact_changes, exact_grads = evaluated(description, sizes, inputs, tables, cotangents, rounded=False)
    moved = [None, *(tensors.generator(description, f"moved {i}", draw) for i in range(2))]
    plain = [evaluated(description, sizes, inputs, tables, cotangents, rounded=True, moved=each) for each in moved]

    given = {name: x.detach().requires_grad_(name in names) for name, x in inputs.items()} | tables

    def run(given):
        program.fn.__globals__.update({name: given[name] for name in source.captured(description)})
        results = program(*(given[name] for name in source.arguments(description)))
        return list(results) if isinstance(results, (tuple, list)) else [results]

    results = run(given)
    if len(results) != len(exact):
        raise Wrong(f"expected {len(exact)} results, but got {len(results)}", 99.0)
    for name, got, want, dtype in zip(description["results"], results, exact, types, strict=True):
        if got.shape != want.shape or got.dtype != dtype:
            raise Wrong(f"{name}: expected {dtype} {list(want.shape)}, but got {got.dtype} {list(got.shape)}", 99.0)
    grads = gradients(results, [given[name] for name in names], cotangents)
    tangents = pushed(run, given, changes(description, sizes))
    # (Tangents and gradients are each held against float64, so <J x, y> = <x, Jᵀ y> to that accuracy.)
    everything = [
        *zip(description["results"], results, exact, *(p[0] for p in plain), strict=True),
        *named("tangent", description["results"], tangents, exact_changes, [p[1] for p in plain]),
        *named("gradient", names, grads, exact_grads, [p[2] for p in plain]),
    ]
    worst = None
    for name, got, want, *forms in everything:
        found = excess(name, got.detach(), want.detach(), [form.detach() for form in forms])
        if found and (worst is None or not found[0] <= worst[0]):
            worst = found
    return worst


def named(kind, names, got, want, forms):
    """Rows of what is compared: nothing, where nothing came and nothing was wanted."""
    columns = zip(got, want, *forms, strict=True)
    return [(f"{kind} of {name}", *each) for name, each in zip(names, columns, strict=bool(want))]


def result_type(description, name):
    for step in description["steps"]:
        if step["name"] == name:
            return TYPES[step["dtype"]]
        if step.get("lse") == name:
            return torch.float32
    return TYPES[description["inputs"][name]["dtype"]]


def excess(name, got, want, forms):
    """(factor, message) where the largest error exceeds its limit, else None."""
    if want.numel() == 0:
        return None
    finite = want.isfinite()
    largest = float(want[finite].abs().max()) if finite.any() else 0.0
    if (largest > 2e4 and got.dtype == torch.float16) or not all(f[finite].isfinite().all() for f in forms):
        raise OverflowError("numbers leave the type's range")
    if not torch.equal(got.double()[~finite], want[~finite]):
        return float("inf"), f"{name}: expected infinite elements where rows see nothing"
    error = (got.double() - want)[finite].abs()
    plain = max(float((form.double() - want)[finite].abs().max()) for form in forms) if finite.any() else 0.0
    limit = 3 * plain + 1e-5 * max(1.0, largest) + 2 * _ROUNDING[got.dtype] * largest
    if error.isnan().any() or (error.numel() and float(error.max()) > limit):
        factor = float("inf") if error.isnan().any() else float(error.max()) / limit
        where = torch.zeros_like(want)
        where[finite] = error.nan_to_num(nan=torch.inf)
        place = [int(i) for i in torch.unravel_index(where.argmax(), where.shape)]
        wrong = int((where > limit).sum())
        return factor, (
            f"{name}: expected {float(want[tuple(place)]):.6g} at {place}, but got {float(got[tuple(place)]):.6g}; "
            f"{wrong} of {want.numel()} elements are off, by up to {float(where.max()):.3g}, limit {limit:.3g}"
        )
    return None


__all__ = ["Invalid", "Verdict", "Wrong", "judged", "leaves_of"]
