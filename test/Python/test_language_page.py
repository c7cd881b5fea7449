# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""docs/reference/Language.md is what the docstrings say, and the examples in them compile."""

import importlib.util
import inspect
import pathlib
import sys
import textwrap

import pytest
import weft
import weft.language as wl

ROOT = pathlib.Path(__file__).parents[2]
PRELUDE = """
import weft
import weft.language as wl


@weft.jit
def plus(a, b):
    return a + b


@weft.jit
def kernel(x, y, M, N):
    at = wl.arange(0, 64)
    total = wl.zeros((64, 32), wl.float32)
    h = wl.zeros((16, 16), wl.float16)
    a, b = wl.zeros((16, 32), wl.uint8), wl.zeros((64, 16), wl.uint8)
    a_scale, b_scale = wl.zeros((16, 2), wl.uint8), wl.zeros((16, 2), wl.uint8)
"""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("language_page", ROOT / "tools" / "language_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_docstrings_say(tool):
    written = tool.PAGE.read_text(encoding="utf-8")
    assert written == tool.page(), "write it anew: python tools/language_page.py"
    assert tool.undescribed() == []


def examples():
    for name in wl.__all__:
        value = getattr(wl, name)
        doc = inspect.cleandoc(value.__doc__ or "") if inspect.isfunction(value) else ""
        lines = [line for line in doc.splitlines() if line.startswith("    ")]
        if lines:
            yield pytest.param("\n".join(lines), id=name)


@pytest.mark.parametrize("lines", list(examples()))
def test_examples_compile(lines, tmp_path):
    file = tmp_path / "example.py"
    file.write_text(PRELUDE + textwrap.indent(textwrap.dedent(lines), "    ") + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("example", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = module.kernel.compile("x:*fp32:16, y:*fp32:16, M:i32, N:i32")
    assert isinstance(kernel, weft.Kernel)
    assert "example" not in sys.modules
