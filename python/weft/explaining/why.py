# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the compiler says of itself, by source line: fast paths that it did not take, each with its reason, and what it
decided."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Remark:
    """One fast path that some kernels do not take at one source line, or one decision about it. docs/Explain.md says
    what each name means."""

    name: str
    category: str
    message: str
    file: str
    line: int
    """0 where the source is not known"""
    functions: tuple[str, ...]
    """kernels, or functions of a program"""

    @property
    def place(self) -> str:
        """FILE:LINE, the file without its folder."""
        return f"{pathlib.Path(self.file).name}:{self.line}" if self.line else "no source line"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def remarks(info: Mapping[str, Any], kind: str = "remarks") -> list[Remark]:
    """A compilation's remarks by source line, or its "decisions"; what several kernels are told in the same words is
    one."""
    found: dict[tuple[str, int, str, str], tuple[str, list[str]]] = {}
    for each in info.get(kind, []):
        key = (each["file"], each["line"], each["name"], each["message"])
        functions = found.setdefault(key, (each["category"], []))[1]
        if each["function"] not in functions:
            functions.append(each["function"])
    return [
        Remark(name, category, message, file, line, tuple(functions))
        for (file, line, name, message), (category, functions) in sorted(found.items(), key=lambda item: item[0][:2])
    ]


def table(found: Iterable[Remark], none: str = "every fast path was taken") -> str:
    """The remarks as text, under each source line with its code; ``none`` where there are none."""
    lines: list[str] = []
    place = ""
    for remark in found:
        if remark.place != place:
            place = remark.place
            code = _code(remark)
            lines += ["", f"{place}{f'    {code}' if code else ''}"]
        lines.append(f"  {remark.name}: {remark.message} ({', '.join(remark.functions)})")
    return "\n".join(lines[1:]) if lines else none


def _code(remark: Remark) -> str:
    path = pathlib.Path(remark.file)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return lines[remark.line - 1].strip() if 0 < remark.line <= len(lines) else ""
