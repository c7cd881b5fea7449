# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ as the site has them: as they are, but for links to what is no page."""

from __future__ import annotations

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CONTENTS = DOCS / "site" / "contents.md"
_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def pages() -> list[pathlib.Path]:
    """The pages of the repository that the site has."""
    return [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "reference").glob("*.md"))]


def links(text: str) -> list[str]:
    """The targets of a page's links, outside of blocks of code."""
    prose = "".join(_FENCE.split(text)[::2])
    return [match[2] for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", prose))]


def anchors(text: str) -> set[str]:
    """What a link may name after "#": the headings as GitHub and MyST spell them."""
    headings = re.findall(r"^#+ (.+)$", "".join(_FENCE.split(text)[::2]), re.MULTILINE)
    found: set[str] = set()
    for heading in headings:
        plain = re.sub(r"[`*]|\]\([^)]*\)", "", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (slug if not number else f"{slug}-{number}") in found:
            number += 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def link_rewritten(text: str, target: str, folder: pathlib.Path) -> str:
    """A link of a page in ``folder`` as the site has it: to the page that it names, or its words alone where that is
    a file of the repository that the site has not."""
    path, _, anchor = target.partition("#")
    if "://" in target or not path:
        return f"[{text}]({target})"
    found = (folder / path).resolve()
    if found.is_dir() and found.is_relative_to(DOCS):
        return f"[{text}](/reference/Passes.md)"
    if not found.is_relative_to(DOCS):
        return text
    return f"[{text}](/{found.relative_to(DOCS).as_posix()}{'#' + anchor if anchor else ''})"


def _levelled(text: str) -> str:
    """A page whose headings go down by one: those of passes, as mlir-tblgen writes them, go from the first to the
    third."""
    headings = re.findall(r"^(#+) ", "".join(_FENCE.split(text)[::2]), re.MULTILINE)
    return text if "##" in headings else re.sub(r"^##(#+ )", r"#\1", text, flags=re.MULTILINE)


def page_rewritten(text: str, folder: pathlib.Path) -> str:
    """A page whose links are the site's; blocks of code stay as they are."""
    parts = _FENCE.split(_levelled(text.replace("\n[TOC]\n", "\n")))
    for at in range(0, len(parts), 2):
        parts[at] = _LINK.sub(lambda link: link_rewritten(link[1], link[2], folder), parts[at])
    return "".join(parts)
