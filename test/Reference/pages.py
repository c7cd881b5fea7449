# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference, generated from the `.td` files, as data; and running weft-opt on what they show."""

import bisect
import itertools
import pathlib
import re
import subprocess
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIALECTS = ("Attn", "Tile", "Warp")
SEPARATOR = "// -----\n"


@dataclass(frozen=True)
class Entry:
    """What a page says of one op ("tile.load"), attribute or type ("LayoutAttr") or pass ("-warp-pipeline")."""

    name: str
    text: str

    @property
    def examples(self):
        """The text of its blocks of MLIR."""
        return re.findall(r"^```mlir\n(.*?)^```$", self.text, re.DOTALL | re.MULTILINE)


def _parts(page):
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    return re.split(r"^### +", text, flags=re.MULTILINE)


def head(page):
    """What docs/reference/PAGE.md says before its first entry."""
    return _parts(page)[0]


def entries(page):
    """The entries of docs/reference/PAGE.md, in order."""
    return [Entry(re.match(r"`?([-\w.]+)`?", part)[1], part) for part in _parts(page)[1:]]


def ops():
    """The entries of all ops of all dialects."""
    return [entry for page in DIALECTS for entry in entries(page) if "." in entry.name]


def weft_opt(modules, *options):
    """What weft-opt makes of modules, each by itself: for each what it printed, and what it said against it."""
    command = ["weft-opt", "--split-input-file", *options]
    done = subprocess.run(command, input=SEPARATOR.join(modules), capture_output=True, text=True, check=False)
    messages = [""] * len(modules)
    lines = (module.count("\n") + SEPARATOR.count("\n") for module in modules)
    first_lines = list(itertools.accumulate(lines, initial=1))
    for message in re.split(r"^(?=<stdin>:)", done.stderr, flags=re.MULTILINE)[1:]:
        line = int(re.search(r":(\d+)", message)[1])
        messages[bisect.bisect(first_lines, line) - 1] += message
    return list(zip(done.stdout.split(SEPARATOR), messages, strict=True))
