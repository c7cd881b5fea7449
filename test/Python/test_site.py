# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The documentation as a site: what breaks it is found without building it; `make test-ecosystem` builds it, and looks
at every page in Chromium, at a phone's width."""

import html
import html.parser
import importlib
import json
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest
from doc_blocks import ROOT

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PHONE = 390  # pixels


@pytest.fixture(scope="module")
def site():
    """The modules of tools/site."""
    sys.path.insert(0, str(ROOT / "tools" / "site"))
    try:
        return {name: importlib.import_module(name) for name in ("pages", "docstrings", "api", "gallery")}
    finally:
        sys.path.remove(str(ROOT / "tools" / "site"))


def test_every_page_is_in_the_contents_once(site):
    listed = re.findall(r"^(\S+\.md)$", site["pages"].CONTENTS.read_text(), re.MULTILINE)
    there = {path.relative_to(site["pages"].DOCS).as_posix() for path in site["pages"].pages()}
    assert sorted(listed) == sorted(there | {"gallery/index.md", "api/index.md"})


def dead_links(site, page):
    """The links of a page to files or headings that are not there."""
    text = page.read_text(encoding="utf-8")
    for target in site["pages"].links(text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        found = page if not path else page.parent / path
        if not found.exists() or (anchor and anchor not in site["pages"].anchors(found.read_text(encoding="utf-8"))):
            yield target


def test_links_lead_somewhere(site, tmp_path):
    pages = [ROOT / "README.md", *site["pages"].pages()]
    assert {str(page): found for page in pages if (found := list(dead_links(site, page)))} == {}
    assert sum(len(site["pages"].links(page.read_text(encoding="utf-8"))) for page in pages) > 60
    bad = tmp_path / "page.md"
    bad.write_text("# A *b* c\n[x](#a-b-c) [x](#a) [x](none.md) `[x](code.md)`\n```text\n[x](block.md)\n```\n")
    assert list(dead_links(site, bad)) == ["#a", "none.md"]


def test_links_of_the_site(site):
    """To pages from the site's root; what is no page of the site keeps its words."""
    rewritten = site["pages"].page_rewritten
    docs = site["pages"].DOCS
    assert rewritten("[a](Torch.md#x) [b](../tools/setup.sh) [c](https://d.e) [f](#g)\n", docs) == (
        "[a](/Torch.md#x) b [c](https://d.e) [f](#g)\n"
    )
    assert rewritten("[a](docs/Torch.md)\n```c\n[b](../c)\n```\n", ROOT) == "[a](/Torch.md)\n```c\n[b](../c)\n```\n"
    assert rewritten("# A\n\n[TOC]\n\n### B\n\n#### C\n", docs) == "# A\n\n\n## B\n\n### C\n"


def test_docstrings_as_markup(site):
    to_rst = site["docstrings"].to_rst
    assert to_rst(["A *b* ``c*``", "d_ `e`."]) == ["A \\*b\\* ``c*``", "d\\_ ``e``.", ""]
    assert to_rst(["``a``    one", "         two", "``b``, ``c``  three"]) == [
        "``a``", "    one", "    two", "``b``, ``c``", "    three", ""
    ]  # fmt: skip
    assert to_rst(["Text:", "", "    code |x|", "", ">>> 1 + 1", "2"]) == [
        "Text:", "", "::", "", "    code |x|", "", ">>> 1 + 1", "2", ""
    ]  # fmt: skip


def test_what_the_gallery_shows(site):
    """Every example has a page with a title; those of patterns have their own pattern's picture."""
    gallery = site["gallery"]
    examples = [path for group in gallery.GROUPS for path in (gallery.EXAMPLES / group).glob("*.py")]
    assert len(examples) >= 38 and all(2 < len(gallery._about(path)[0]) <= 70 for path in examples)
    ((found, n, m),) = gallery.patterns_of(gallery.EXAMPLES / "patterns" / "sliding_window.py")
    matrix = found.matrix(n, m)
    assert matrix[60].sum() == 41 and matrix[60, 20] and not matrix[60, 61]
    near, far = gallery.patterns_of(gallery.EXAMPLES / "patterns" / "landmarks.py")
    assert near[1:] == (208, 208) and far[1:] == (208, 13)
    ((packed, n, m),) = gallery.patterns_of(gallery.EXAMPLES / "patterns" / "varlen.py")
    assert (n, m) == (260, 260) and packed.matrix(n, m).reshape(n, m)[110].nonzero()[0].tolist() == list(
        range(100, 111)
    )


def test_every_example_has_a_picture_or_a_reason(site, tmp_path, monkeypatch):
    gallery = site["gallery"]
    monkeypatch.syspath_prepend(gallery.EXAMPLES)
    for group in gallery.GROUPS:
        for path in (gallery.EXAMPLES / group).glob("*.py"):
            place = path.relative_to(gallery.EXAMPLES).as_posix()
            if path.name in gallery._DRAWS:  # it is run for them
                continue
            pictures = gallery._pictures(path, tmp_path, place.replace("/", "-"))
            assert bool(pictures) != (place in gallery.WITHOUT), place
            assert all((tmp_path / name).stat().st_size > 1000 for name in pictures)


def test_every_public_name_is_on_a_page(site):
    import weft

    api = site["api"]
    named = {name for package in api.PACKAGES for name in api.names_of(package)}
    modules = {name for name in weft.__all__ if type(getattr(weft, name)) is type(weft)}
    assert set(weft.__all__) - modules - named == set()


# ---- Built ----------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """What a page of HTML refers to, what it loads, and what may be referred to in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "author", "search", "next", "prev", "index"):
            self.loads.append(given.get("href"))
        elif tag in ("script", "img", "iframe", "source", "object") and (given.get("src") or given.get("data")):
            self.loads.append(given.get("src") or given.get("data"))


@pytest.fixture(scope="module")
def built(once):
    def make(place):
        command = [sys.executable, ROOT / "tools" / "site", place / "site"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return once("site", make) / "site"


@pytest.mark.ecosystem
@pytest.mark.slow
def test_the_site_stands_by_itself(built):
    """Every link between its pages leads somewhere, and it loads nothing from elsewhere."""
    pages = {path: Page(path) for path in built.rglob("*.html")}
    assert len(pages) > 70
    dead, foreign = [], []
    for path, page in pages.items():
        for target in page.links + page.loads:
            found = urllib.parse.urlsplit(target)
            if found.scheme in ("data", "mailto"):
                continue
            if found.scheme or found.netloc:
                foreign += [(path.name, target)] * (target in page.loads)
                continue
            there = path if not found.path else (path.parent / urllib.parse.unquote(found.path)).resolve()
            named = pages.get(there)
            if not there.exists() or (found.fragment and named and found.fragment not in named.names):
                dead.append((path.relative_to(built).as_posix(), target))
    assert dead == [] and foreign == []
    assert (built / "gallery" / "index.html").read_text(encoding="utf-8").count("<img src=") >= 33
    for style in built.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//[^)]*\)|@import", style.read_text(encoding="utf-8")), style


WALK = """<!DOCTYPE html><meta charset="utf-8"><title>walk</title><body style="margin:0"><pre id="found"></pre><script>
const pages = PAGES, found = [];
async function look(page) {
  const frame = document.createElement("iframe");
  frame.style = "border:0;width:WIDTHpx;height:844px";
  const loaded = new Promise(resolve => frame.onload = resolve);
  frame.src = page;
  document.body.append(frame);
  await loaded;
  const root = frame.contentDocument.documentElement;
  if (root.scrollWidth > WIDTH) {
    const wide = [...frame.contentDocument.querySelectorAll("article *")].find(
      x => x.getBoundingClientRect().right > WIDTH + 1);
    found.push([page, root.scrollWidth, wide ? wide.outerHTML.slice(0, 200) : ""]);
  }
  frame.remove();
}
(async () => {
  for (const page of pages) await look(page);
  document.getElementById("found").textContent = "FOUND" + JSON.stringify({pages: pages.length, wide: found}) + "END";
})();
</script>"""


def walk(folder, profile):
    """What Chromium, at a phone's width, says of the pages of a folder: those that scroll sideways, each with its width
    and the element that is too wide, and the errors in its console."""
    pages = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.html"))]
    walker = folder / "walk.html"
    walker.write_text(WALK.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(PHONE)))
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"),
        *(f"--user-data-dir={profile}", "--enable-logging=stderr", "--window-size=1200,900"),
        *("--virtual-time-budget=600000", "--timeout=300000", "--dump-dom", walker.as_uri()),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    finally:
        walker.unlink()
    said = re.search(r"FOUND(\{.*?\})END</pre>", done.stdout, re.DOTALL)
    assert said, done.stdout[-500:] + done.stderr[-2000:]
    report = json.loads(html.unescape(said[1]))
    assert report["pages"] == len(pages)
    console = re.compile(r"CONSOLE.*(?:error|fail|refused|not found)", re.IGNORECASE)
    return report["wide"], [line for line in done.stderr.splitlines() if console.search(line)]


chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@chromium
@pytest.mark.ecosystem
@pytest.mark.slow
def test_every_page_in_chromium(built, tmp_path):
    """No error in the console, and no page that scrolls sideways on a phone."""
    assert walk(built, tmp_path / "profile") == ([], [])


@chromium
@pytest.mark.ecosystem
def test_what_chromium_would_find(tmp_path):
    (tmp_path / "site").mkdir()
    for name, body in (
        ("good", "<article><p>short</p></article>"),
        ("wide", "<article><div style='width:500px'>wide</div></article>"),
        ("thrown", "<script>nothing.there()</script>"),
    ):
        head = "<!DOCTYPE html><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        (tmp_path / "site" / f"{name}.html").write_text(f"{head}<title>{name}</title><body style='margin:0'>{body}")
    wide, console = walk(tmp_path / "site", tmp_path / "profile")
    assert [(page, width) for page, width, _ in wide] == [("wide.html", 500)] and "width:500px" in wide[0][2]
    assert len(console) == 1 and "nothing is not defined" in console[0]
