# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The functions of the tree's C++ and how long they are, read by counting braces, for tests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import rooms

# Comments, literals and preprocessor lines: what braces in them say is nothing to us.
_ELSEWHERE = re.compile(
    r'R"(\w*)\((?:.|\n)*?\)\1"|//[^\n]*|/\*(?:.|\n)*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    r"|^\s*#[^\n]*(?:\\\n[^\n]*)*",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Function:
    """A function with a body; ``lines`` are those from its declaration's first to its last brace."""

    file: str
    line: int
    declaration: str
    lines: int


def functions() -> Iterator[Function]:
    """All functions of the files that rooms have; those inside of others count as lines of these."""
    for file in rooms.includes():
        if not file.endswith(".td"):
            text = _ELSEWHERE.sub(lambda m: "\n" * m[0].count("\n"), (rooms.ROOT / file).read_text(encoding="utf-8"))
            yield from _functions(file, text)


def _functions(file: str, text: str) -> Iterator[Function]:
    open_braces: list[tuple[str, int, str]] = []  # what each opens, and the first line and text of its declaration
    line, first, declaration = 1, 1, ""
    for character in text:
        line += character == "\n"
        inside = any(kind == "function" for kind, _, _ in open_braces)
        if character == "{":
            kind = "block" if inside else _kind(declaration.strip())
            open_braces.append((kind, first, declaration))
            if kind != "initialiser":
                declaration = ""
        elif character == "}":
            kind, start, declared = open_braces.pop()
            if kind == "function":
                yield Function(file, start, " ".join(declared.split()), line - start + 1)
            if kind != "initialiser":
                declaration = ""
        elif inside:
            continue
        elif character == ";" and declaration.count("(") == declaration.count(")"):
            declaration = ""
        elif declaration.strip():
            declaration = (
                "" if re.fullmatch(r"\s*(public|private|protected):", declaration) else declaration + character
            )
        elif not character.isspace():
            declaration, first = character, line


def _kind(declaration: str) -> str:
    """What a brace opens after a declaration that is in no function."""
    if re.match(r"(inline )?namespace|extern", declaration):
        return "scope"
    if re.match(r"(template <.*> )?(class|struct|union|enum)\b", declaration, re.DOTALL) and not re.search(
        r"\)\s*(const)?$", declaration
    ):
        return "scope"
    if "operator" not in declaration and ("(" not in declaration or declaration.endswith("=")):
        return "value"
    # A member of a constructor's list, "start{0}", where the function's own brace is still to come.
    if re.search(r"[\w>]$", declaration) and not re.search(
        r"\b(const|override|noexcept|final)$|->\s*\S+$", declaration
    ):
        return "initialiser"
    return "function"
