# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A description as the Python text of a program, as a user would write it."""

from __future__ import annotations

import re

from . import mixers, patterns, scalars

_TYPES = {"f16": "fp16", "bf16": "bf16", "f32": "fp32"}


def arguments(description):
    """The names of a program's arguments in order: the inputs and tables that it reads and that are not captured."""
    around = set(captured(description))
    return [name for name in read(description) if name not in around]


def captured(description):
    """The names of the tensors that a program finds around it."""
    both = {**description["inputs"], **description["tables"]}
    around = {name for name, each in both.items() if each.get("capture")}
    return [name for name in read(description) if name in around or re.sub("_(upper|first|past)$", "", name) in around]


def read(description):
    """The names of all inputs and tables that a step reads, or that are results, in order."""
    found = set(description["results"]).union(*(mixers.step_reads(step) for step in description["steps"]))
    return [name for name in [*description["inputs"], *expanded(description["tables"])] if name in found]


def expanded(tables):
    """The names of all arrays that tables stand for: a span has four."""
    found = []
    for name, table in tables.items():
        found.append(name)
        if table["kind"] == "span":
            found += [f"{name}_{part}" for part in ("upper", "first", "past")]
    return found


def program(description):
    """The program's text: a function `f`."""
    lines = [f"def f({', '.join(arguments(description))}):"]
    for step in description["steps"]:
        if step["op"] == "merged":
            lines += [f"    {line}" for line in units(step)]
        target = f"{step['name']}, {step['lse']}" if step.get("lse") else step["name"]
        lines.append(f"    {target} = {expression(step)}")
    lines.append(f"    return {', '.join(description['results'])}")
    around = captured(description)
    note = [f"# captured: {', '.join(around)}"] if around else []
    return "\n".join([*note, "@weft.program", *lines]) + "\n"


def units(step):
    """The line that merges tokens."""
    _, k, v = step["of"]
    options = {"max_joins": step["most"], "modes": ("sum", step["mode"]), "offsets": (0, step["offset"])}
    merged = call("merge_units", [step["joins"], k, v], **options, cu_seqlens=step["cu"])
    return [f"{step['name']}_units = {merged}"]


def call(name, operands, **options):
    """A call's text, without options that are None."""
    given = [str(each) for each in operands if each is not None]
    given += [f"{key}={value}" for key, value in options.items() if value is not None]
    return f"weft.{name}({', '.join(given)})"


def expression(step):
    of = step["of"]
    match step["op"]:
        case "map":
            return scalars.text(step["tree"])
        case "to":
            return f'{of[0]}.to("{_TYPES[step["to"]]}")'
        case "rope":
            grid = tuple(step["grid"]) if step["grid"] else None
            window = tuple(step["window"]) if grid else step["window"]
            form = f'"{step["form"]}"' if step["form"] else None
            base = step["base"] if step["base"] != 10000.0 else None
            return call("rope", of, window=window, base=base, grid=grid, form=form, cu_seqlens=step["cu"])
        case "rms_norm":
            return call("rms_norm", [of[0], str(of[1])], eps=step["eps"])
        case "head_conv":
            return call("head_conv", of)
        case "linear":
            return call("linear", of, heads=step["heads"])
        case "mean_heads":
            return call("mean_heads", of, heads=step["heads"])
        case "shift":
            return call("shift", [of[0], step["by"]], cu_seqlens=step["cu"])
        case "sum":
            axes = step["axes"][0] if len(step["axes"]) == 1 else tuple(step["axes"])
            return call("sum", [of[0], axes], keepdims=True if step["keepdims"] else None)
        case "apply":
            values = of[0] if len(of) == 1 else f"({', '.join(of)})"
            text = mixer(step["mixer"])
            return f"{text} @ {values}" if step["mixer"][0] != "add" else f"({text}) @ {values}"
        case "merged":
            q, k, v = of
            merged = f"{step['name']}_units"
            seen = call("domain", [f"{merged}.merged[0]", f"{merged}.seen"])
            own = call("domain", [k, "weft.window(0, 0)"])
            return f"{call('softmax', [q, own, seen])} @ ({v}, {merged}.merged[1])"
        case "attend":
            cu = step["cu"] or [None, None]
            return call(
                "attention.attend",
                of,
                pattern=pattern(step["pattern"]),
                score_mod=score(step["score"]),
                bias=step["bias"],
                sink=step["sink"],
                scale=step["scale"],
                return_lse=True if step["lse"] else None,
                cu_seqlens_q=cu[0],
                cu_seqlens_k=cu[1],
                deterministic=None if step["deterministic"] else False,
                splits=step.get("splits"),
            )
    raise ValueError(f"expected a step, but got {step!r}")


def pattern(tree):
    return None if tree is None else patterns.text(tree)


def score(tree):
    return None if tree is None else f"lambda s, b, h, n, m: {scalars.text(tree)}"


def mixer(tree):
    match tree:
        case ["add", a, b]:
            return f"{mixer(a)} + {mixer(b)}"
        case ["compose", a, b]:
            return " @ ".join(f"({mixer(x)})" if x[0] in ("add", "compose") else mixer(x) for x in (a, b))
        case ["softmax", given]:
            if len(given["domains"]) == 1 and given["domains"][0][2] is None:
                keys, where, _ = given["domains"][0]
                operands = [given["q"], keys, pattern(where)]
            else:
                parts = [call("domain", [k, pattern(p)], count=count) for k, p, count in given["domains"]]
                operands = [given["q"], *parts]
            return call(
                "softmax",
                operands,
                score_mod=score(given["score"]),
                scale=given["scale"],
                sink=given["sink"],
                deterministic=None if given["deterministic"] else False,
                cu_seqlens=given["cu"],
                splits=given.get("splits"),
            )
        case ["mean", given]:
            return call("mean", [], causal=True if given["causal"] else None, cu_seqlens=given["cu"])
        case ["toeplitz", given]:
            return call(
                "toeplitz",
                [given["taps"]],
                centred=True if given["centred"] else None,
                dilation=given["dilation"] if given["dilation"] != 1 else None,
                grid=tuple(given["grid"]) if given["grid"] else None,
                cu_seqlens=given["cu"],
            )
        case ["diag", given]:
            return call("diag", [given["g"]])
        case ["recurrence", given]:
            operands = [given["q"], given["k"], given["beta"]]
            name = "linear_attention" if given["beta"] is None else "delta_rule"
            return call(name, operands, log_decay=given["decay"], scale=given["scale"], cu_seqlens=given["cu"])
    raise ValueError(f"expected a mixer, but got {tree!r}")
