# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every constraint of an op, an attribute or a type has a test that is named after it.

Descriptions number constraints: "C1: equal rank and element type." A case in an `*invalid.mlir` of the dialect's folder
is a function, or an alias where none can stand, called `broadcast_c1`, or `broadcast_c1_rank` where there are several.
"""

import re
import sys

from pages import DIALECTS, ROOT, entries


def short(name):
    """What cases call an op, an attribute or a type: "tile.load" `load`, "LayoutAttr" `layout`."""
    name = re.sub(r"(Attr|Type)$", "", name.split(".")[-1])
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def constraints(page):
    """The names of the page's constraints, such as "broadcast_c1"."""
    for entry in entries(page):
        for number in sorted(set(re.findall(r"\bC(\d+): ", entry.text)), key=int):
            yield f"{short(entry.name)}_c{number}"


def cases(page):
    """The names of all cases of a dialect's tests of what is invalid."""
    for path in (ROOT / "test" / page).rglob("*invalid.mlir"):
        yield from re.findall(r"[@#!](\w+)", path.read_text())


def main():
    all_of_them, without = [], []
    for page in DIALECTS:
        named = set(cases(page))
        for constraint in constraints(page):
            all_of_them.append(constraint)
            if not any(re.fullmatch(rf"{constraint}(_\w+)?", name) for name in named):
                without.append(f"test/{page}: expected a case named '{constraint}' in an invalid.mlir")
    print(*without, f"{len(without)} of {len(all_of_them)} constraints have no test", sep="\n")
    return bool(without)


if __name__ == "__main__":
    sys.exit(main())
