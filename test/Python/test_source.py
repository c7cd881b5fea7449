# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Where a function's source ends: as ``inspect.getblock`` has it, which reads a file token by token."""

import ast
import inspect
import pathlib
import textwrap

import pytest
import weft
from weft.compiler import source

BODIES = {
    "one line": "def f(x): return x\ny = 1\n",
    "arguments in lines": "@a\n@b(\n    1,\n)\ndef f(\n    x,\n):\n    return x\n\n\nz = 2\n",
    "text in column 0": 'def f(x):\n    y = """\nnone\n"""\n    return x + y\nz = 2\n',
    "a continued line": "def f(x):\n    return x + \\\n1\nz = 2\n",
    "comments": "def f(x):\n    y = x\n# shallow\n    return y\n\n    # deep\n  # less\n# shallow\nz = 2\n",
    "a comment first": "def f(x):\n  # less\n    # deep\n    return x\n  # less\n",
    "within another": "  def f(x):\n    if x:\n      return 1\n    # deep\n\n  # beside\n  def g(x):\n    pass\n",
    "the file's end": "def f(x):\n    return x",
    "brackets in column 0": "def f(x):\n    y = (\nx\n)\n    return y\nz = 2\n",
    "separators in text": "def f(x):\n    y = 'a\u2028b\x0c'\n    # deep\n    return y\n    # deep\n\nz = 2\n",
    "tabs": "def f(x):\n\tif x:\n\t\treturn 1\n\treturn x\nz = 2\n",
    "many shallow lines": "def f(x):\n    y = (\n" + "1 +\n" * 20 + "x)\n    return y\nz = 2\n",
    "async": "async def f(x):\n    return x\nz = 2\n",
}


def by_tokens(lines):
    return textwrap.dedent("".join(inspect.getblock(lines)))


@pytest.mark.parametrize("name", BODIES)
def test_a_block_ends_where_its_tokens_say(name):
    lines = [f"{line}\n" for line in BODIES[name].split("\n")]
    lines[-1] = lines[-1].rstrip("\n")  # what is behind the last end of a line, if anything is
    lines = [line for line in lines if line]
    first, text, tree = source.read_block(lines)
    assert (first, text) == (lines[0], by_tokens(lines))
    if name == "async":
        assert tree is None
    else:
        assert ast.dump(tree, include_attributes=True) == ast.dump(ast.parse(text).body[0], include_attributes=True)


def test_all_functions_of_the_package():
    count = 0
    for path in sorted(pathlib.Path(weft.__file__).parent.rglob("*.py")):
        lines = path.read_text().splitlines(keepends=True)
        for node in ast.walk(ast.parse("".join(lines))):
            if isinstance(node, ast.FunctionDef):
                start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                _, text, _ = source.read_block(lines[start - 1 :])
                assert text == by_tokens(lines[start - 1 :]), f"{path}:{start}"
                count += 1
    assert count > 1000
