# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the site of what tools/site has gathered."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools" / "site")]

import weft  # noqa: E402
from docstrings import to_rst  # noqa: E402

project, author, release = "Weft", "the Weft developers", weft.__version__
project_copyright = "the Weft developers"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
html_theme, html_title = "furo", f"Weft {release}"
html_static_path, html_css_files = ["static"], ["site.css"]
html_copy_source = html_show_sourcelink = False
templates_path, exclude_patterns = [], ["site"]
highlight_language = "none"
# JSON with "..." in it, and programs as IR, are shown and not read
suppress_warnings = ["misc.highlighting_failure"]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"
autodoc_preserve_defaults = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 88


def setup(app):
    """Docstrings are plain text with tables, which become the markup that Sphinx reads."""

    def converted(app, what, name, thing, options, lines):
        lines[:] = to_rst(lines)

    app.connect("autodoc-process-docstring", converted)
