# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""PTX by its entries: what one kernel of a module is, whatever the others are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable

_ENTRY = re.compile(r"^\.visible \.entry ([\w$]+)\(.*?^\}\n", re.DOTALL | re.MULTILINE)
#: PTX ISA 9.7.16.7.1: where the address goes, and how many columns
_COLUMNS = re.compile(r"tcgen05\.alloc[^;]*\],\s*(\d+)\s*;")
#: labels are numbered over the whole module
_LABEL = re.compile(r"\$L__(BB|tmp|func_begin|func_end)\d+")


def only(ptx: str, names: Collection[str]) -> str:
    """The module without its other entries; what no entry has stays, and so does all where one of ``names`` is not
    found."""
    found = {entry[1] for entry in _ENTRY.finditer(ptx)}
    if not found.issuperset(names):
        return ptx
    return _ENTRY.sub(lambda entry: entry[0] if entry[1] in names else "", ptx)


def fingerprints(ptx: str, names: Iterable[str]) -> dict[str, str]:
    """A hash of each of the entries, with what no entry has: the same in modules with other kernels beside it. Of one
    that is not found it is the whole module's."""
    texts = {entry[1]: _LABEL.sub(r"$L__\1", entry[0]) for entry in _ENTRY.finditer(ptx)}
    common = _ENTRY.sub("", ptx)
    whole = {name: f"{name}\n{common}{texts[name]}" if name in texts else f"{name}\n{ptx}" for name in names}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in whole.items()}


def tensor_columns(ptx: str, name: str) -> int:
    """Columns of tensor memory that a block of an entry takes; of all entries together where it is not found."""
    return sum(int(each) for each in _COLUMNS.findall(only(ptx, [name])))
