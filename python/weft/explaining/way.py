# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A program or a kernel compiled with all that the compiler can say of it: IR with locations, and remarks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.compiler.diagnostics import from_native
from weft.compiler.lower import Options, lower, native_context
from weft.compiler.signature import for_function, parse
from weft.programs.compiled import Schedules
from weft.programs.trace import Traced


@dataclass(frozen=True)
class Way:
    """``ir`` is the text after each stage that was asked for, with locations; "python" is before all of them. ``info``
    is the compiler's report, as weft.programs.compiled.Compiled has it."""

    name: str
    target: str
    ir: Mapping[str, str]
    ptx: str
    info: Mapping[str, Any]
    traced: Traced | None = None
    """of a program"""


def of_program(
    traced: Traced,
    target: str,
    differentiate: bool,
    schedules: Schedules | None,
    stages: Sequence[str],
    decisions: bool = False,
) -> Way:
    """A traced program's way to PTX, with what the compiler decided on it where ``decisions`` asks. Raises
    CompilationError."""
    context = native_context().context
    context.take_diagnostics()
    module = context.parse(traced.text, traced.name)
    options = {"differentiate": differentiate, "schedules": {k: list(v) for k, v in (schedules or {}).items()}}
    options |= {"decisions": decisions}
    return _compiled(module, traced.name, target, stages, options, traced)


def of_kernel(
    function: Any,
    signature: str | None,
    target: str,
    options: Options,
    stages: Sequence[str],
    decisions: bool = False,
) -> Way:
    """A @weft.jit function's way to PTX. Raises CompilationError."""
    wanted = replace(for_function(function, parse(signature) if signature else None, {}), apart=True)
    module = lower(function, wanted, options, target)
    return _compiled(module, function.__name__, target, stages, {"decisions": decisions})


def _compiled(
    module: Any, name: str, target: str, stages: Sequence[str], options: Mapping[str, Any], traced: Traced | None = None
) -> Way:
    python = module.text(locations=True)
    asked = {"target": target, "remarks": True, "locations": True, "dump": list(stages), **options}
    ptx, info, error = module.compile(json.dumps(asked))
    if error is not None:
        raise from_native(error, native_context().context.take_diagnostics())
    found = json.loads(info)
    return Way(name, target, {"python": python, **found.pop("ir")}, ptx, found, traced)
