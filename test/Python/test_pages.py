# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The pages that Weft writes, in a browser: no error, no dead link, nothing from elsewhere, and no scrolling sideways
on a phone."""

import html
import json
import pathlib
import re
import shutil
import subprocess

import pytest
from weft.cli.__main__ import main
from weft.demo import page as demo_page
from weft.demo.tables import Grid

ROOT = pathlib.Path(__file__).resolve().parents[2]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = 390  # pixels

# What is put before a page's own scripts, and what measures it once it is loaded.
WATCH = """<script>
const found = [];
addEventListener("error", event => found.push(event.message || "cannot load " + event.target.outerHTML), true);
addEventListener("unhandledrejection", event => found.push(String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...said) => found.push(said.join(" "));
addEventListener("load", () => setTimeout(() => {
  const links = [...document.querySelectorAll("a[href]")].map(link => link.getAttribute("href"));
  const dead = links.filter(link => link.startsWith("#"))
    .filter(link => !document.getElementById(decodeURIComponent(link.slice(1))));
  const loaded = performance.getEntriesByType("resource").map(each => each.name)
    .filter(name => !name.startsWith("data:"));
  const wide = document.documentElement.scrollWidth, room = document.documentElement.clientWidth;
  const source = [...document.querySelectorAll(".column:first-child [data-p]")];
  source.at(-1)?.click();
  const linked = document.querySelectorAll(".on").length;
  parent.postMessage(JSON.stringify({found, links, dead, loaded, wide, room, linked}), "*");
}, 50));
</script>"""


def opened(path, folder):
    """What a browser says of a page on a screen of a phone's width."""
    page = path.read_text(encoding="utf-8").replace("<head>", "<head>" + WATCH, 1)
    assert WATCH in page
    frame = f'<iframe style="width:{PHONE}px;height:844px;border:0" srcdoc="{html.escape(page)}"></iframe>'
    listen = '<pre id="result"></pre><script>onmessage = event => result.textContent = event.data</script>'
    (folder / "opened.html").write_text(f"<!DOCTYPE html><meta charset='utf-8'>{listen}{frame}", encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    ]
    options += ["--enable-logging=stderr", "--virtual-time-budget=20000", "--timeout=60000", "--dump-dom"]
    address = (folder / "opened.html").as_uri()
    run = subprocess.run([BROWSER, *options, address], capture_output=True, text=True, timeout=120, check=False)
    said = re.search(r'<pre id="result">(.+?)</pre>', run.stdout, re.DOTALL)
    assert said, run.stderr[-2000:]
    return json.loads(html.unescape(said[1])) | {"console": re.findall(r"CONSOLE.*", run.stderr)}


def check(found):
    assert found["console"] == [] and found["found"] == [] and found["dead"] == [] and found["loaded"] == []
    assert not [link for link in found["links"] if not link.startswith(("#", "https://"))]
    assert found["room"] == PHONE and found["wide"] <= PHONE


def explained(tmp_path):
    path = tmp_path / "attention.html"
    file = ROOT / "examples" / "mechanisms" / "attention.py"
    assert main(["explain", str(file), "--forward-only", "--sizes", "B=1,Hkv=1,N=128", "--html", str(path)]) == 0
    return path


def demonstrated(tmp_path):
    grid = Grid("A table", ("case", *(f"number {i}" for i in range(12))), [("a < b", *map(str, range(12)))] * 3, left=1)
    demo_page.write(tmp_path / "demo.html", "All is well: a & b", [grid], [])
    return tmp_path / "demo.html"


@pytest.mark.ecosystem
@pytest.mark.skipif(BROWSER is None, reason="no chromium is on PATH: apt-get install chromium")
@pytest.mark.parametrize("made", [explained, demonstrated])
def test_page_in_a_browser(made, tmp_path):
    found = opened(made(tmp_path), tmp_path)
    check(found)
    if made is explained:
        assert found["linked"] > 20, "lines of all forms that come from the last line of the source"


@pytest.mark.ecosystem
@pytest.mark.skipif(BROWSER is None, reason="no chromium is on PATH: apt-get install chromium")
def test_a_page_at_fault_is_found(tmp_path):
    wrong = (
        '<html><head></head><body><a href="#nowhere">x</a><div style="width: 700px">x</div>'
        "<img src='missing.png'><script>undefinedFunction()</script></body></html>"
    )
    (tmp_path / "wrong.html").write_text(wrong)
    found = opened(tmp_path / "wrong.html", tmp_path)
    assert len(found["found"]) == 2 and "undefinedFunction" in " ".join(found["found"])
    assert found["dead"] == ["#nowhere"] and found["wide"] >= 700
    with pytest.raises(AssertionError):
        check(found)
