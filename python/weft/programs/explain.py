# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a program became: its launches, their kernels, and the bytes that they move at least."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from ..errors import Error
from ..runtime.plans import evaluate
from . import choices
from .compiled import Compiled

_BYTES = {"i1": 1, "i8": 1, "i32": 4, "i64": 8, "fp16": 2, "bf16": 2, "fp32": 4, "fp8e4nv": 1, "fp8e5": 1}


@dataclass(frozen=True)
class Launch:
    """One kernel launch. ``reads`` and ``writes`` are the bytes of its tensors, each counted once."""

    kernel: str
    grid: tuple[int, ...]
    grid_of: tuple[str, ...]
    warps: int
    stages: int
    shared_bytes: int
    reads: int
    writes: int
    tensors: str


@dataclass(frozen=True)
class Part:
    """One function of a program: the program itself, its forward for training, its backward."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    workspace_bytes: int
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Explanation:
    """``str()`` of it is a table; ``as_dict()`` the same as plain data."""

    program: str
    target: str
    times_ms: Mapping[str, float]
    cached: bool
    parts: tuple[Part, ...]
    schedules: Mapping[str, str]
    """rows, columns, warps and stages of every attention's kernels: {"0.forward": "128x64x4x3"}"""
    tuned: tuple[str, ...]
    """which of them were chosen by ``weft tune``"""
    modelled: bool = False
    """whether that choice ships with Weft, made by its models and timed by no GPU"""

    def as_dict(self) -> dict[str, Any]:
        """Everything as dicts, lists, texts and numbers, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        made = "taken from the cache" if self.cached else "compiled"
        lines = [f"{self.program} for {self.target}, {made}; the compiler took {self.times_ms.get('total', 0):.0f} ms"]
        for place, schedule in self.schedules.items():
            chosen = f", {'modelled' if self.modelled else 'tuned'}" if place in self.tuned else ""
            lines.append(f"  attention {place.replace('.', ', ', 1)}: schedule {schedule}{chosen}")
        for part in self.parts:
            lines += ["", f"{part.name}({', '.join(part.inputs)})", f"  -> {', '.join(part.outputs)}"]
            kept = f", {_bytes(part.workspace_bytes)} of workspace" if part.workspace_bytes else ""
            lines.append(f"  {len(part.launches)} launch{'es' if len(part.launches) != 1 else ''}{kept}")
            rows = [_HEADER, *(_row(launch) for launch in part.launches)]
            widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADER))]
            for row in rows:
                lines.append("    " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
        return "\n".join(lines)


_HEADER = ("kernel", "grid", "warps", "stages", "shared", "reads", "writes", "tensors")


def _row(launch: Launch) -> tuple[str, ...]:
    grid = "×".join(map(str, launch.grid))
    return (
        launch.kernel,
        grid,
        str(launch.warps),
        str(launch.stages),
        _bytes(launch.shared_bytes),
        _bytes(launch.reads),
        _bytes(launch.writes),
        launch.tensors,
    )


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


def some_sizes(symbols: Iterable[str]) -> str:
    """Sizes for symbols, as the command line takes them: "B=1,N=1024"."""
    return ",".join(f"{name}={1024 if name in 'NM' else 1}" for name in sorted(symbols))


def explain(form: Compiled, sizes: Mapping[str, int]) -> Explanation:
    """The compiled program explained, where its symbols have these values."""
    symbols = {s for i in form.traced.inputs for dim in i.dims for s in dim.split("*") if s.isidentifier()}
    if missing := symbols - set(sizes):
        raise Error(
            f"expected the sizes {', '.join(sorted(missing))} of '{form.traced.name}', "
            f"but got {', '.join(sorted(sizes)) or 'none'}; on the command line, --sizes {some_sizes(symbols)}"
        )
    parts = tuple(_part(plan, form, sizes) for plan in form.info["programs"])
    schedules = {
        f"{each['attend']}.{each['role']}": "x".join(map(str, each["schedule"]))
        for each in form.info.get("schedules", [])
    }
    schedules |= {each["place"]: "x".join(map(str, each["tiling"])) for each in form.info.get("tilings", [])}
    times = form.info.get("times_ms", {})
    choice = choices.choice_for(form.traced.plain, form.target, sizes) or {}
    return Explanation(
        form.traced.name,
        form.target,
        times,
        form.cached,
        parts,
        schedules,
        tuple(form.schedules),
        bool(form.schedules) and choice.get("modelled", False),
    )


def _part(plan: Mapping[str, Any], form: Compiled, sizes: Mapping[str, int]) -> Part:
    variant = plan["variants"][0]
    described = [*plan["inputs"], *plan["outputs"], *variant["buffers"]]
    names = [d.get("name", f"buffer{i}") for i, d in enumerate(described)]
    size = [_BYTES[d["type"]] * prod(evaluate(dim, sizes) for dim in d["dims"]) for d in described]
    kernels = {kernel["entry"]: kernel for kernel in form.info["kernels"]}
    first = len(plan["inputs"]) + len(plan["outputs"])
    return Part(
        plan["name"],
        tuple(map(_spelled, plan["inputs"])),
        tuple(map(_spelled, plan["outputs"])),
        sum(size[first:]),
        tuple(_launch(launch, kernels[launch["kernel"]], names, size, sizes) for launch in variant["launches"]),
    )


def _spelled(described: Mapping[str, Any]) -> str:
    return f"{described['name']}: {described['type']}[{', '.join(described['dims'])}]"


def _launch(
    launch: Mapping[str, Any],
    kernel: Mapping[str, Any],
    names: Sequence[str],
    size: Sequence[int],
    sizes: Mapping[str, int],
) -> Launch:
    tensors = list(dict.fromkeys(a["pointer"] for a in launch["arguments"] if "pointer" in a))
    writes = [t for t in tensors if t in launch["writes"]]
    reads = [t for t in tensors if t not in writes]
    return Launch(
        kernel["entry"],
        tuple(evaluate(extent, sizes) for extent in launch["grid"]),
        tuple(launch["grid"]),
        kernel["num_warps"],
        kernel["num_stages"],
        kernel["shared_bytes"],
        sum(size[t] for t in reads),
        sum(size[t] for t in writes),
        f"{', '.join(names[t] for t in reads)} -> {', '.join(names[t] for t in writes)}",
    )
