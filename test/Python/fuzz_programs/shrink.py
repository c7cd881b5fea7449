# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A smaller description that fails alike: one change after another is kept as long as the failure stays."""

from __future__ import annotations

import copy
import json
import re
import time

from . import mixers, patterns, scalars, source, worker
from .tensors import Invalid, extent


def signature(verdict):
    """What two verdicts of one fault have in common."""
    first = verdict.message.split("\n")[0]
    if verdict.kind == "wrong":
        kind = first.split(" of ")[0]
        return verdict.kind, kind if kind in ("gradient", "tangent") else "result"
    if verdict.kind in ("crash", "hang"):
        place = re.search(r"File \"[^\"]*/([^/\"]+)\", line (\d+)", verdict.message)
        return verdict.kind, first, place.group(0) if place else ""
    return verdict.kind, generic(verdict.message)


def generic(message):
    """A message without what changes from program to program: names, numbers, shapes."""
    text = message.split("\n")[0]
    text = re.sub(r"!attn\.tensor<[^>]*>", "TENSOR", text)
    text = re.sub(r"#attn\.[\w.]+(<.*>)?", "PATTERN", text)
    text = re.sub(r"\b[a-zA-Z]*\d*\*[\w*]+", "SIZE", text)
    text = re.sub(r"-?\b\d+(\.\d+)?(e-?\d+)?\b", "0", text)
    text = re.sub(r"\b(?:b?f16|f32|fp16|fp32|bf16|b0|f0)\b", "TYPE", text)
    text = re.sub(r"\b[xyt]\d+(_\w+)?\b", "NAME", text)
    return re.sub(r"_\d+'", "'", text)[:160]


def shrunk(description, verdict, *, seconds=120, run=worker.isolated):
    """The smallest description found that has the verdict's signature, and its verdict."""
    wanted, end = signature(verdict), time.monotonic() + seconds
    seen = set()
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in candidates(description):
            if candidate is None:
                continue
            candidate = cleaned(candidate)
            key = json.dumps(candidate, sort_keys=True)
            if key in seen or time.monotonic() > end:
                continue
            seen.add(key)
            found = run(candidate)
            if signature(found) == wanted:
                description, verdict, progress = candidate, found, True
                break
    return description, verdict


def cleaned(description):
    """Without steps, inputs and tables that no result needs."""
    needed = set(description["results"])
    steps = []
    for step in reversed(description["steps"]):
        if step["name"] in needed or step.get("lse") in needed:
            steps.append(step)
            needed |= mixers.step_reads(step)
            if step.get("lse") and step["lse"] not in needed:
                step["lse"] = None
    description["steps"] = steps[::-1]
    description["inputs"] = {n: x for n, x in description["inputs"].items() if n in needed}
    spans = {n for name in needed for n in (name, re.sub("_(upper|first|past)$", "", name))}
    description["tables"] = {n: x for n, x in description["tables"].items() if n in spans}
    return description


def candidates(description):
    """Smaller descriptions, the boldest first. Some are no programs."""
    copied = lambda: copy.deepcopy(description)  # noqa: E731
    if description["variants"]:
        yield changed(copied(), variants=[])
        merged = description["sizes"] | description["variants"][0]
        yield changed(copied(), variants=[], sizes=merged)
    if len(description["results"]) > 1:
        for result in description["results"]:
            yield changed(copied(), results=[result])
        for result in description["results"]:
            yield changed(copied(), results=[r for r in description["results"] if r != result])
    if description.get("forward"):
        yield changed(copied(), forward=False)
    if description["backward"]:
        yield changed(copied(), backward=False)
    steps = description["steps"]
    for step in reversed(steps):  # a result is what its step reads
        if step["name"] in description["results"]:
            for name in sorted(mixers.step_reads(step)):
                if name[0] != "t" and name in {s["name"] for s in steps}:
                    yield changed(copied(), results=[name if r == step["name"] else r for r in description["results"]])
    for number in range(len(steps) - 1, -1, -1):
        yield from without_step(description, number)
    for number in range(len(steps)):
        for other in smaller_steps(steps[number]):
            made = copied()
            made["steps"][number] = other
            yield made
    yield from smaller_inputs(description)
    for name, size in description["sizes"].items():
        for less in sorted({1, 2, 3, 8, 16, 32, 64, size // 2, size - 1}):
            if 0 < less < size:
                yield changed(copied(), sizes={**description["sizes"], name: less})
        if size == 0:
            yield changed(copied(), sizes={**description["sizes"], name: 1})
    for dtype in ("f32", "f16"):
        if description["dtype"] not in ("f32", dtype):
            yield retyped(copied(), dtype)


def changed(description, **changes):
    description.update(changes)
    return description


def retyped(description, dtype):
    old = description["dtype"]
    description["dtype"] = dtype
    for each in [*description["inputs"].values(), *description["steps"]]:
        if each["dtype"] == old:
            each["dtype"] = dtype
        if each.get("to") == old:
            each["to"] = dtype
    return description


def renamed(tree, old, new):
    """The tree with a name in the place of another."""
    if isinstance(tree, str):
        return new if tree == old else tree
    if isinstance(tree, list):
        return [renamed(each, old, new) for each in tree]
    if isinstance(tree, dict):
        return {key: renamed(each, old, new) for key, each in tree.items()}
    return tree


def without_step(description, number):
    """The step's place taken by what it reads, or by an input."""
    step = description["steps"][number]
    known = {**description["inputs"], **{s["name"]: s for s in description["steps"]}}
    for name in sorted(mixers.step_reads(step)):
        if name in known and known[name]["dims"] == step["dims"] and known[name]["dtype"] == step["dtype"]:
            yield replaced(description, number, name)
    if step["name"] not in description["results"]:
        made = copy.deepcopy(description)
        free = max((int(n[1:]) for n in made["inputs"]), default=-1) + 1
        made["inputs"][f"x{free}"] = {
            "dims": step["dims"], "role": "data", "dtype": step["dtype"], "layout": "contiguous", "grad": True,
            "capture": False,
        }  # fmt: skip
        yield replaced(made, number, f"x{free}")


def replaced(description, number, name):
    made = copy.deepcopy(description)
    old = made["steps"].pop(number)["name"]
    made["steps"] = [{**renamed(s, old, name), "name": s["name"]} for s in made["steps"]]
    made["results"] = list(dict.fromkeys(name if r == old else r for r in made["results"]))
    return made


def smaller_steps(step):
    """The step with less in it."""
    match step["op"]:
        case "apply":
            for mixer, values in smaller_mixers(step["mixer"], step["of"]):
                yield {**step, "mixer": mixer, "of": values}
        case "attend":
            for key in ("score", "bias", "sink", "scale"):
                if step[key] is not None:
                    yield {**step, key: None}
            if step["cu"]:
                yield {**step, "cu": None}
            if not step["deterministic"]:
                yield {**step, "deterministic": True}
            if step.get("splits") is not None:
                yield {**step, "splits": None}
            for pattern in smaller_patterns(step["pattern"]):
                yield {**step, "pattern": pattern}
            for score in smaller_scores(step["score"]):
                yield {**step, "score": score}
        case "rope":
            for key, plain in (("cu", None), ("base", 10000.0)):
                if step[key] != plain:
                    yield {**step, key: plain}
            if step["grid"] or step["window"]:
                yield {**step, "grid": None, "window": None, "form": None}
        case "linear" | "head_conv" | "rms_norm":
            if step["of"][-1] is not None and (step["op"] == "rms_norm" or len(step["of"]) == 3):
                yield {**step, "of": [*step["of"][:-1], None]}
        case "merged":
            for key, plain in (("cu", None), ("offset", 0), ("mode", "sum"), ("most", 20)):
                if step[key] != plain:
                    yield {**step, key: plain}
        case "shift":
            for key, plain in (("cu", None), ("by", 1)):
                if step[key] != plain:
                    yield {**step, key: plain}
        case "map":
            for part in parts(step["tree"]):
                if scalars.names(part) == set(step["of"]) and part[0] != "x":
                    yield {**step, "tree": part}
        case "sum":
            for axis in step["axes"] if len(step["axes"]) > 1 and step["keepdims"] else []:
                dims = [d if i != axis else None for i, d in enumerate(step["dims"])]
                if None not in dims:
                    yield {**step, "axes": [a for a in step["axes"] if a != axis]}


def parts(tree):
    """All trees inside of an expression."""
    if isinstance(tree, list) and tree and isinstance(tree[0], str):
        for part in tree[1:]:
            if isinstance(part, list) and part and isinstance(part[0], str):
                yield part
                yield from parts(part)


def smaller_mixers(tree, values):
    kind, *inner = tree
    if kind in ("add", "compose"):
        for part in inner:
            yield part, values
        for i in range(2):
            for part, others in smaller_mixers(inner[i], values):
                if others == values:
                    yield [kind, *(part if j == i else inner[j] for j in range(2))], values
        return
    given = inner[0]
    plain = {"score": None, "sink": None, "scale": None, "cu": None, "deterministic": True, "causal": False,
             "centred": False, "dilation": 1, "grid": None, "decay": None, "beta": None, "splits": None}  # fmt: skip
    for key, value in plain.items():
        if key in given and given[key] != value:
            yield [kind, {**given, key: value}], values
    if kind != "softmax":
        return
    domains = given["domains"]
    for i, (keys, pattern, count) in enumerate(domains):
        if len(domains) > 1:
            kept = [d for j, d in enumerate(domains) if j != i]
            yield [kind, {**given, "domains": kept}], [v for j, v in enumerate(values) if j != i]
        for less in smaller_patterns(pattern):
            yield [kind, {**given, "domains": [*domains[:i], [keys, less, count], *domains[i + 1 :]]}], values
    if any(count for _, _, count in domains):
        yield [kind, {**given, "domains": [[k, p, None] for k, p, _ in domains]}], values
    for score in smaller_scores(given["score"]):
        yield [kind, {**given, "score": score}], values


def smaller_patterns(tree):
    if tree is None:
        return
    yield None
    match tree:
        case ["and" | "or" as name, *inner]:
            yield from inner
            for i, part in enumerate(inner):
                for less in smaller_patterns(part):
                    if less:
                        yield [name, *inner[:i], less, *inner[i + 1 :]]
        case ["not" | "shift" | "transpose" as name, part, *more]:
            yield part
            for less in smaller_patterns(part):
                if less:
                    yield [name, less, *more]
        case ["per_head", inner]:
            yield from inner
            for i, part in enumerate(inner):
                for less in [*smaller_patterns(part), ["full"], ["causal"]]:
                    if less and part not in (["full"], ["causal"]):
                        yield ["per_head", [*inner[:i], less, *inner[i + 1 :]]]
        case ["mask", expression]:
            for part in parts(expression):
                if part[0] in ("le", "lt", "eq", "ne", "both", "either", "invert"):
                    yield ["mask", part]


def smaller_scores(tree):
    for part in parts(tree) if tree else []:
        if "s" in scalars.names(part) and part != ["x", "s"] and part[0] not in ("lt", "le", "eq", "ne"):
            yield part


def smaller_inputs(description):
    inputs = description["inputs"]
    for name, given in inputs.items():
        plains = {"layout": "contiguous", "dtype": description["dtype"], "grad": False, "capture": False}
        for key, plain in plains.items():
            if given.get(key, plain) != plain:
                made = copy.deepcopy(description)
                made["inputs"][name][key] = plain
                yield made
    for name, table in description["tables"].items():
        if table["capture"]:
            made = copy.deepcopy(description)
            made["tables"][name]["capture"] = False
            yield made
    for name, given in inputs.items():
        for other in inputs:
            if other < name and all(inputs[other][key] == given[key] for key in ("dims", "capture")):
                made = copy.deepcopy(description)
                made["steps"] = [{**renamed(s, name, other), "dims": s["dims"]} for s in made["steps"]]
                yield made


def used_sizes(description):
    """The sizes that the description still names."""
    text = json.dumps([[x["dims"] for x in description["inputs"].values()],
                       [[x["dims"], x["along"]] for x in description["tables"].values()],
                       [x["dims"] for x in description["steps"]]])  # fmt: skip
    return {n: v for n, v in description["sizes"].items() if re.search(rf"\b{n}\b", text)}


def script(description, verdict):
    """A script that shows the failure."""
    shapes = {n: [extent(d, description["sizes"]) for d in x["dims"]] for n, x in description["inputs"].items()}
    text = source.program(description).replace("\n", "\n    ")
    return f'''"""{verdict.kind}: {verdict.message.strip()}

program, of {description["dtype"]}:

    {text}
sizes {used_sizes(description)}{f", then {description['variants']}" if description["variants"] else ""}
inputs {shapes}

Run it in test/Python.
"""

import json

from fuzz_programs import worker

worker.prepare()
print(worker.isolated(json.loads(r"""
{json.dumps(description)}
""")))
'''


__all__ = ["Invalid", "cleaned", "generic", "patterns", "script", "shrunk", "signature"]
