# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mixers as trees: ["softmax", {...}], ["mean", {...}], ["toeplitz", {...}], ["diag", {...}], ["recurrence", {...}],
["add", a, b], ["compose", a, b]; random ones, and what they read.
"""

from __future__ import annotations

from . import patterns, scalars


def applied(draw, dims, depth):
    """A step that applies a random mixer; ``draw`` is the description being drawn."""
    rng = draw.rng
    b, h, n, v = dims
    if rng.random() < 0.16 and not draw.packed:
        return several(draw, dims, depth)
    tokens = rng.choice([n, n, n, "M"])
    heads = draw.key_heads(h)
    mixer = mixed(draw, h, heads, n, tokens, v, depth, rng.choice([0, 0, 1, 1, 2]))
    value = draw.want([b, heads, tokens, v], depth - 1)
    return draw.step("apply", dims, [value], mixer=mixer)


def mixed(draw, h, hv, n, m, v, depth, nesting):
    """A mixer of values with ``hv`` heads and ``m`` tokens to ``h`` heads and ``n`` tokens."""
    rng = draw.rng
    square = n == m
    if nesting and rng.random() < 0.75:
        if rng.random() < 0.6:
            other = hv if square and rng.random() < 0.5 else h
            parts = [
                mixed(draw, h, hv, n, m, v, depth, nesting - 1),
                mixed(draw, other, hv, n, m, v, depth, nesting - 1),
            ]
            rng.shuffle(parts)
            return ["add", *parts]
        middle = rng.choice([n, m])
        between = rng.choice([h, hv])
        left = mixed(draw, h, between, n, middle, v, depth, nesting - 1)
        return ["compose", left, mixed(draw, between, hv, middle, m, v, depth, nesting - 1)]
    kinds = ["softmax"] * 3
    if square:
        kinds.append("recurrence")
    if square and h == hv:
        kinds += ["mean", "toeplitz", "toeplitz", "diag"]
    elif square:
        kinds += ["diag"]
    return globals()[f"_{rng.choice(kinds)}"](draw, h, hv, n, m, v, depth)


def _softmax(draw, h, hv, n, m, v, depth):
    rng = draw.rng
    channels = rng.choice(["D", "D", "C"])
    packed = draw.packed and n == m and rng.random() < 0.85
    return ["softmax", {
        "q": draw.want(["B", h, n, channels], depth - 1),
        "domains": [[draw.want(["B", hv, m, channels], depth - 1), draw.pattern(h, hv, n, m, packed), None]],
        "score": draw.score(h, n, m) if rng.random() < 0.3 else None,
        "sink": draw.input([h], "data") if rng.random() < 0.15 else None,
        "scale": rng.choice([None, None, None, 0.3, 1.0]),
        "cu": draw.starts(n) if packed else None,
        "deterministic": rng.random() < 0.88,
        "splits": draw.splits(),
    }]  # fmt: skip


def _mean(draw, h, hv, n, m, v, depth):
    cu = draw.cu(n)
    return ["mean", {"causal": cu is None and draw.rng.random() < 0.5, "cu": cu}]


def _toeplitz(draw, h, hv, n, m, v, depth):
    rng = draw.rng
    grid = list(draw.grid) if draw.grid and n == "N" and rng.random() < 0.6 else None
    cu = None if grid else draw.cu(n)
    centred = bool(grid) or rng.random() < 0.5
    taps = rng.choice([1, 3, 5]) if centred else rng.choice([1, 2, 3, 4, 7, 16])
    dilation = rng.choice([1, 1, 1, 2, 3])
    if not centred and not cu and rng.random() < 0.12:  # long ones
        taps, dilation = rng.choice([17, 33, 70]), 1
    count = taps * taps if grid else taps
    given = draw.input([count, f"{h}*{v}"], "taps")
    return ["toeplitz", {"taps": given, "centred": centred and not grid, "dilation": dilation, "grid": grid, "cu": cu}]


def _diag(draw, h, hv, n, m, v, depth):
    return ["diag", {"g": draw.want(["B", h, n, draw.rng.choice([1, v])], depth - 1)}]


def _recurrence(draw, h, hv, n, m, v, depth):
    """Linear attention, or the delta rule, whose keys are of length 1: others make its state grow without bounds."""
    rng = draw.rng
    channels, heads, delta = rng.choice(["D", "D", "C"]), draw.key_heads(h), rng.random() < 0.5
    decay = rng.choice([None, "tokens"] if delta else [None, "tokens", "channels"])
    beta = draw.input(["B", h, n], "share", rng.choice([None, "f32"])) if delta else None
    dims = ["B", h, n, channels]
    numbers = {"tokens": dims[:3], "channels": dims}
    keys = ["B", heads, n, channels]
    return ["recurrence", {
        "q": draw.want(dims, depth - 1),
        "k": draw.input(keys, "unit") if delta else draw.want(keys, depth - 1),
        "decay": draw.input(numbers[decay], "decay", rng.choice([None, "f32"])) if decay else None,
        "beta": beta,
        "scale": rng.choice([None, None, 0.3]),
        "cu": draw.cu(n),
    }]  # fmt: skip


def several(draw, dims, depth):
    """One softmax over two or three domains."""
    rng = draw.rng
    b, h, n, v = dims
    channels = rng.choice(["D", "D", "C"])
    same = draw.key_heads(h)
    counted = rng.random() < 0.2
    domains, values = [], []
    for _ in range(rng.choice([2, 2, 3])):
        tokens = rng.choice([n, "M"])
        heads = same if rng.random() < 0.8 else draw.key_heads(h)
        count = draw.table("count", [b, heads], tokens) if counted else None
        pattern = (
            rng.choice([None, ["prefix", rng.randint(0, 20)]]) if counted else draw.pattern(h, heads, n, tokens, False)
        )
        domains.append([draw.want([b, heads, tokens, channels], depth - 1), pattern, count])
        values.append(draw.want([b, heads, tokens, v], depth - 1))
    mixer = ["softmax", {
        "q": draw.want([b, h, n, channels], depth - 1),
        "domains": domains,
        "score": draw.score(h, n, None) if rng.random() < 0.25 else None,
        "sink": draw.input([h], "data") if rng.random() < 0.15 else None,
        "scale": rng.choice([None, None, 0.3]),
        "cu": None,
        "deterministic": rng.random() < 0.88,
        "splits": draw.splits(),
    }]  # fmt: skip
    return draw.step("apply", dims, values, mixer=mixer)


# ---- What they read


def reads(tree):
    """The names of the tensors and tables that a mixer reads."""
    match tree:
        case ["add" | "compose", *parts]:
            return set().union(*map(reads, parts))
        case ["softmax", given]:
            found = {given["q"], given["sink"], given["cu"]} | score_reads(given["score"])
            for keys, pattern, count in given["domains"]:
                found |= {keys, count} | patterns.tables(pattern or ["full"])
            return found - {None}
        case ["mean", given]:
            return {given["cu"]} - {None}
        case ["toeplitz", given]:
            return {given["taps"], given["cu"]} - {None}
        case ["diag", given]:
            return {given["g"]}
        case ["recurrence", given]:
            return {given[name] for name in ("q", "k", "decay", "beta", "cu")} - {None}
    raise ValueError(f"expected a mixer, but got {tree!r}")


def has_recurrence(tree):
    """Whether a recurrence is in a mixer."""
    return tree[0] == "recurrence" or (tree[0] in ("add", "compose") and any(map(has_recurrence, tree[1:])))


def score_reads(tree):
    return scalars.names(tree) - set("sbhnm") if tree else set()


def step_reads(step):
    """The names that a step reads."""
    found = {name for name in step["of"] if name}
    if step["op"] == "apply":
        found |= reads(step["mixer"])
    elif step["op"] == "attend":
        found |= {step["bias"], step["sink"], *(step["cu"] or [])} | score_reads(step["score"])
        found |= patterns.tables(step["pattern"] or ["full"])
    elif step["op"] == "map":
        found |= scalars.names(step["tree"])
    elif "cu" in step:
        found |= {step["cu"], step.get("joins")}
    return found - {None}
