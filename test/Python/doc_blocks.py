# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The blocks of a page of documentation, and what it takes to run them.

A page's blocks run in order, in one folder and in one Python namespace:

    ```python            runs; where its first line is "# NAME.py" it is that file in the folder too
    ```text              after a python block: what that prints
    ```console           "$ " lines are commands; what follows them, if anything, is what they print
    ```ptx NAME.ptx      a file: the block in the place of "..." in the page's first ```ptx block
    ```json, cpp, c      json is parsed; the others are parts of examples/cpp, which the tests build

After the language may stand "slow" or "ecosystem" (run by the tests marked so), or "not run: REASON", for which few
have one. "..." in what is printed stands for anything; white space, long hexadecimal numbers, seconds and seeds are not
compared.
"""

import json
import linecache
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = {"python", "text", "console", "ptx", "json", "cpp", "c"}
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the word or words after it, its text, and the page's line of its first line."""

    language: str
    note: str
    text: str
    line: int

    @property
    def left_out(self):
        return self.note.startswith("not run: ")

    @property
    def ecosystem(self):
        return self.note == "ecosystem"

    @property
    def slow(self):
        return self.note.split(" ")[0] == "slow"


def blocks(page):
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    found = []
    for match in _FENCE.finditer(text):
        language, _, note = match[1].partition(" ")
        found.append(Block(language, note, match[2], text[: match.start(2)].count("\n") + 1))
    return found


def normalised(text):
    """A text as outputs are compared."""
    text = re.sub(r"0x[0-9a-f]{5,}", "0x#", text)
    text = re.sub(r"\b[\d.]+ (s|ms|GB|MB)\b", r"# \1", text)
    text = re.sub(r"seed:? \d+", "seed #", text)
    return " ".join(re.sub(r"[─━┄┏┓┗┛┡┩└┘┳┴╇┬┼├┤┃│]", " ", text).split())


def differs(wanted, said):
    """What of the wanted output is not in what was said, in order; "" where all is."""
    said = normalised(said)
    for part in re.split(r"(?<![.\w])\.\.\.(?![.\w])", wanted):
        _, found, rest = said.partition(normalised(part) or "\0")
        said = rest if found else said
        if not found and normalised(part):
            return f"expected\n{normalised(part)}\nin\n{said[-3000:]}"
    return ""


class Page:
    """A page being run in a folder."""

    def __init__(self, path, folder, build, capture):
        self.path, self.folder, self.capture = path, folder, capture
        self.names = {"__name__": "__page__"}
        self.printed = ""
        self.frame = None
        for name in ("examples", ".venv", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        if build is not None:
            (folder / "build").mkdir()
            (folder / "build" / "release").symlink_to(build)
        path_of = [str(pathlib.Path(sys.executable).parent), str(ROOT / ".venv" / "bin"), os.environ["PATH"]]
        self.environment = {
            **os.environ, "PATH": os.pathsep.join(path_of), "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "80"
        }  # fmt: skip

    def run(self, block):
        """Run a block; AssertionError, with the page's line, where it does not do what the page says."""
        try:
            getattr(self, block.language, lambda block: None)(block)
        except Exception as error:
            raise AssertionError(f"{self.path.name}:{block.line}: {type(error).__name__}: {error}") from error

    def python(self, block):
        name = re.match(r"# (\w+\.py)\n", block.text)
        if name:
            (self.folder / name[1]).write_text(block.text)
        # Kernels are read from their source: the block stands at its own lines of a file.
        file = self.folder / f"{self.path.stem}_{block.line}.py"
        text = "\n" * (block.line - 1) + block.text
        file.write_text(text)
        linecache.checkcache(str(file))
        self.capture.readouterr()
        exec(compile(text, str(file), "exec"), self.names)
        self.printed = self.capture.readouterr().out

    def text(self, block):
        assert not (wrong := differs(block.text, self.printed)), wrong

    def ptx(self, block):
        if self.frame is None:
            self.frame = block.text
            return
        (self.folder / block.note).write_text(self.frame.replace("  ...\n", block.text))

    def json(self, block):
        json.loads(re.sub(r"\[\.\.\.\]", "[]", block.text))

    def console(self, block):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command = re.match(r"(?:.*\\\n)*.*\n", part)[0]
            wanted = part[len(command) :]
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            said = done.stdout + done.stderr
            expected = 1 if command.startswith("weft sim") and "finding: " in wanted else 0
            assert done.returncode == expected, f"$ {command}{said}"
            assert not (wrong := differs(wanted, said)), f"$ {command}{wrong}"
