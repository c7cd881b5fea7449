# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every pass says what it needs and what it rejects, and does to its example what its description shows.

The page's head lists all of them, and none besides.

A description's blocks of MLIR come in pairs: what the pass is given, and what it makes of that. Of the second, "..."
stands for anything, values, blocks and aliases of attributes have any names (the same name everywhere), and white space
does not count. Options stand in the first line of the first: `// weft-opt --NAME=OPTIONS`.
"""

import re
import shlex
import sys

from pages import entries, head, weft_opt

NAME = re.compile(r"[%^][A-Za-z_]\w*|[%^]\d+|#[a-z]\w*(?![\w.<])")


def pattern(shown):
    """The regular expression that matches what a block shows, spaces as `spaced` leaves them."""
    types = dict(re.findall(r"^(!\w+) = (.*)\n", shown, re.MULTILINE))
    shown = re.sub(r"^!\w+ = .*\n|//.*", "", shown, flags=re.MULTILINE)
    shown = re.sub(r"![a-z]\w*\b(?![.<])", lambda match: types[match[0]], shown)
    made, known, end = "", {}, 0
    shown = spaced(shown)
    for match in re.finditer(rf"\.\.\.|func\.func|{NAME.pattern}", shown):
        made += re.escape(shown[end : match.start()])
        end = match.end()
        if match[0] == "...":
            made += ".*?"
        elif match[0] == "func.func":  # where values' names are new
            made += r"func\.func"
            known = {name: group for name, group in known.items() if name[0] == "#"}
        elif match[0] in known:
            made += rf"(?P={known[match[0]]})\b"
        else:
            known[match[0]] = f"at{match.start()}"
            made += rf"(?P<{known[match[0]]}>{re.escape(match[0][0])}\w+)"
    return re.compile(made + re.escape(shown[end:]))


def spaced(text):
    return " ".join(text.split())


def check(name, before, after):
    """What is wrong with a pass's example; "" where nothing is."""
    command = re.match(r"// weft-opt (.*)\n", before)
    options = shlex.split(command[1]) if command else [f"-{name}"]
    [(printed, messages)] = weft_opt([before], *options)
    if messages:
        return messages
    return "" if pattern(after).search(spaced(printed)) else f"expected\n{after}but got\n{printed}"


def faults(each):
    """What is wrong with a pass's description."""
    examples = each.examples
    if not examples or len(examples) % 2:
        yield f"expected pairs of blocks of 'mlir', before and after, but got {len(examples)} blocks"
    for word in ("Needs: ", "Rejects: "):
        if word not in each.text:
            yield f"expected '{word}' in its description"
    for before, after in zip(examples[::2], examples[1::2], strict=False):
        if said := check(each.name, before, after):
            yield f"in its example\n{said}"


def main():
    passes = entries("Passes")
    wrong = [f"{each.name}: {fault}" for each in passes for fault in faults(each)]
    listed = set(re.findall(r"`(-[-\w]+)`", head("Passes")))
    unlike = listed ^ {each.name for each in passes}
    wrong += [f"{name}: expected it in the page's list and in its entries" for name in sorted(unlike)]
    print(*wrong, f"{len(wrong)} faults, {len(passes)} passes", sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
