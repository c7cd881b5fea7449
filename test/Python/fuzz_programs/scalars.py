# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Expressions of scalars: the bodies of score_mods, masks and elementwise maps, as trees of lists.

["x", name]  ["const", 0.5]  ["at", table, [indices]]  ["add", a, b] ...
"""

from __future__ import annotations

import math

import torch

#: name: (Python text of the operands' texts, what it computes)
OPERATIONS = {
    "add": ("({} + {})", lambda a, b: a + b),
    "sub": ("({} - {})", lambda a, b: a - b),
    "mul": ("({} * {})", lambda a, b: a * b),
    "div": ("({} / {})", lambda a, b: a / b),
    "neg": ("(-{})", lambda a: -a),
    "mod": ("({} % {})", lambda a, b: a % b),
    "floordiv": ("({} // {})", lambda a, b: a // b),
    "lt": ("({} < {})", lambda a, b: a < b),
    "le": ("({} <= {})", lambda a, b: a <= b),
    "eq": ("({} == {})", lambda a, b: a == b),
    "ne": ("({} != {})", lambda a, b: a != b),
    "both": ("({} & {})", lambda a, b: a & b),
    "either": ("({} | {})", lambda a, b: a | b),
    "invert": ("(~{})", lambda a: ~a),
    "where": ("weft.where({}, {}, {})", lambda c, a, b: torch.where(c, a, b)),
    "abs": ("abs({})", lambda a: a.abs()),
    "exp": ("weft.exp({})", lambda a: a.exp()),
    "log": ("weft.log({})", lambda a: a.log()),
    "sqrt": ("weft.sqrt({})", lambda a: a.sqrt()),
    "rsqrt": ("weft.rsqrt({})", lambda a: a.rsqrt()),
    "sin": ("weft.sin({})", lambda a: a.sin()),
    "cos": ("weft.cos({})", lambda a: a.cos()),
    "tanh": ("weft.tanh({})", lambda a: a.tanh()),
    "erf": ("weft.erf({})", lambda a: a.erf()),
    "sigmoid": ("weft.sigmoid({})", lambda a: a.sigmoid()),
    "silu": ("weft.silu({})", lambda a: a * a.sigmoid()),
    "relu": ("weft.relu({})", lambda a: torch.where(a > 0, a, torch.zeros_like(a))),
    "gelu": ("weft.gelu({})", lambda a: 0.5 * a * (1 + (a * math.sqrt(0.5)).erf())),
    "gelu_tanh": (
        'weft.gelu({}, approximate="tanh")',
        lambda a: 0.5 * a * (1 + (math.sqrt(2 / math.pi) * (a + 0.044715 * a**3)).tanh()),
    ),
    "maximum": ("weft.maximum({}, {})", lambda a, b: torch.where(a > b, a, b)),
    "minimum": ("weft.minimum({}, {})", lambda a, b: torch.where(a < b, a, b)),
    "pow": ("({} ** {})", lambda a, b: a**b),
}


def text(tree):
    """The expression in Python."""
    match tree:
        case ["x", name]:
            return name
        case ["const", value]:
            return repr(value)
        case ["at", table, indices]:
            return f"{table}[{', '.join(map(text, indices))}]"
        case [name, *parts]:
            return OPERATIONS[name][0].format(*map(text, parts))
    raise ValueError(f"expected an expression, but got {tree!r}")


def value(tree, values, real):
    """The expression of tensors by name; numbers meet reals in the type ``real``."""
    match tree:
        case ["x", name]:
            return values[name]
        case ["const", number]:
            return torch.tensor(number, dtype=real if isinstance(number, float) else torch.int64)
        case ["at", table, indices]:
            source = values[table]
            where = [value(index, values, real) for index in indices]
            # an axis of length 1 repeats; outside of another there is the nearest element
            kept = [i.clamp(0, max(size - 1, 0)) for i, size in zip(where, source.shape, strict=True)]
            return source[torch.broadcast_tensors(*kept)] if len(kept) > 1 else source[kept[0]]
        case [name, *parts]:
            given = [value(part, values, real) for part in parts]
            if name not in ("where", "both", "either", "invert") and any(x.is_floating_point() for x in given):
                given = [x if x.is_floating_point() else x.to(real) for x in given]
            if name == "where":
                given = [given[0], *(x if x.is_floating_point() else x.to(real) for x in given[1:])]
            return OPERATIONS[name][1](*given)
    raise ValueError(f"expected an expression, but got {tree!r}")


def names(tree):
    """The names that the expression reads, tables too."""
    match tree:
        case ["x", name]:
            return {name}
        case ["const", _]:
            return set()
        case ["at", table, indices]:
            return {table}.union(*map(names, indices))
    return set().union(*map(names, tree[1:]))


# ---- Random ones


def mapped(rng, x, exact):
    """A smooth function of ``x``, or one with kinks where ``x`` is ``exact``: the same number in every arithmetic."""
    c = lambda *numbers: ["const", rng.choice(numbers)]  # noqa: E731
    kinked = [["relu", x], ["abs", x], ["maximum", x, c(0.3, -0.7)], ["minimum", x, c(0.3, -0.7)],
              ["where", ["lt", x, c(0.1)], ["mul", x, c(0.5)], x]]  # fmt: skip
    one = ["const", 1.0]
    square = ["mul", x, x]
    smooth = [
        ["silu", x], ["tanh", x], ["sigmoid", x], ["cos", x], ["sin", x], ["gelu", x], ["gelu_tanh", x], ["erf", x],
        ["exp", ["mul", x, c(0.3, -0.5)]], ["neg", x], ["add", x, c(0.5, -1.25)], ["mul", x, c(1.5, 0.25)],
        square, ["sqrt", ["add", square, one]], ["rsqrt", ["add", square, c(0.5)]], ["div", x, ["add", one, square]],
        ["log", ["add", square, one]], ["sub", c(1.0), x], ["pow", x, ["const", rng.choice([2, 3])]],
        ["div", one, ["add", c(1.5), square]],
    ]  # fmt: skip
    return rng.choice(smooth + (kinked if exact else []))


def index_condition(rng, tables=None):
    """A truth of a pair's indices; ``tables(kind)`` gives an integer table or None."""
    b, h, n, m = (["x", i] for i in "bhnm")
    k = lambda low, high: ["const", rng.randint(low, high)]  # noqa: E731
    some = [
        ["le", m, n],
        ["le", ["sub", n, m], k(0, 9)],
        ["lt", ["abs", ["sub", n, m]], k(1, 20)],
        ["eq", ["mod", ["add", n, m], k(2, 4)], ["const", 0]],
        ["ne", ["mod", ["add", ["mul", n, k(1, 3)], m], k(2, 5)], k(0, 1)],
        ["le", m, ["add", ["mul", h, k(1, 8)], k(0, 20)]],
        ["eq", ["floordiv", n, k(2, 9)], ["floordiv", m, k(2, 9)]],
        ["le", ["add", ["mul", b, k(0, 5)], n], k(3, 40)],
        ["lt", m, k(0, 40)],
    ]
    found = rng.choice(some)
    if tables and rng.random() < 0.4:
        kind = rng.choice(["limit", "token", "key"])
        table = tables(kind)
        if table is not None and kind == "limit":  # one number a head
            found = ["le", m, ["at", table, [h]]]
        elif table is not None and kind == "key":
            found = ["ne", ["at", table, [m]], ["mod", n, k(2, 4)]]
        elif table is not None:
            found = ["eq", ["at", table, [n]], ["at", table, [m]]]
    if rng.random() < 0.35:
        other = index_condition(rng)
        found = rng.choice([["both", found, other], ["either", found, other], ["both", found, ["invert", other]]])
    return found


def score(rng, tensor, depth=2):
    """A score_mod's expression; ``tensor(kind)`` gives the name of a tensor to read, or None: "head" [H], "bias"
    [B, H, N, M] with axes of 1, "relative" of 7 numbers."""
    s, b, h, n, m = (["x", name] for name in ("s", "b", "h", "n", "m"))
    if depth == 0:
        return s
    inner = score(rng, tensor, depth - 1) if rng.random() < 0.4 else s
    c = lambda *numbers: ["const", rng.choice(numbers)]  # noqa: E731
    distance = ["sub", n, m]
    kind = rng.choice(["scale", "cap", "square", "where", "head", "bias", "relative", "line", "batch", "sin", "mask"])
    if kind in ("head", "bias", "relative"):
        name = tensor(kind)
        if name is None:
            kind = "line"
        elif kind == "head":
            slope = ["at", name, [h]]
            changed = [["add", inner, ["mul", slope, distance]], ["mul", inner, ["add", ["const", 1.0], slope]]]
            return rng.choice(changed)
        elif kind == "bias":
            return ["add", inner, ["at", name, [b, h, n, m]]]
        else:
            several = ["add", n, ["mul", m, ["const", 3]]]
            place = ["mod", rng.choice([["abs", distance], several]), ["const", 7]]
            return ["add", inner, ["at", name, [place]]]
    match kind:
        case "scale":
            return ["mul", inner, c(0.5, 1.5, -1.0)]
        case "cap":
            return ["mul", ["const", 3.0], ["tanh", ["div", inner, ["const", 3.0]]]]
        case "square":
            return ["sub", inner, ["mul", c(0.1, 0.05), ["mul", inner, inner]]]
        case "where":
            return ["where", index_condition(rng), inner, ["mul", inner, c(0.5, 0.25)]]
        case "line":
            return ["sub", inner, ["mul", c(0.0625, 0.01), ["abs", distance]]]
        case "batch":
            return ["add", inner, ["mul", ["add", b, h], c(0.1, -0.2)]]
        case "sin":
            return ["add", inner, ["sin", inner]]
    return ["where", index_condition(rng), inner, ["sub", inner, c(2.0)]]
