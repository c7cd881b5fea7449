# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site: python tools/site [OUT] (build/site), or `make site`.

Pages are docs/*.md as they are, but for links to files that are no pages; the gallery and the reference of the API are
written here, of examples and of docstrings. What Sphinx warns of is an error. Sphinx and its theme are installed into
build/site-packages; what they need is served by the site itself, which asks no other host for anything. Several builds
may run at once, if each has a folder of its own to write to.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from api import write_api
from gallery import write_gallery
from pages import CONTENTS, DOCS, ROOT, page_rewritten, pages

BUILD = ROOT / "build"
REQUIREMENTS = pathlib.Path(__file__).with_name("requirements.txt")


def gather(source: pathlib.Path) -> None:
    """Write all that Sphinx reads into a folder."""
    for page in pages():
        made = source / page.relative_to(DOCS)
        made.parent.mkdir(exist_ok=True, parents=True)
        made.write_text(page_rewritten(page.read_text(encoding="utf-8"), page.parent), encoding="utf-8")
    contents = CONTENTS.read_text(encoding="utf-8").partition("\n")[2]
    readme = page_rewritten((ROOT / "README.md").read_text(encoding="utf-8"), ROOT)
    (source / "index.md").write_text(readme + contents.replace(":maxdepth: 1", ":maxdepth: 1\n:hidden:"), "utf-8")
    write_api(source / "api")
    write_gallery(source / "gallery")


def install(place: pathlib.Path) -> None:
    """Sphinx and its theme in a folder of their own, once for each version of the requirements."""
    stamp = place / "requirements.txt"
    if stamp.exists() and stamp.read_bytes() == REQUIREMENTS.read_bytes():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="site-packages-") as folder:
        made = pathlib.Path(folder) / "made"
        command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(made)]
        subprocess.run([*command, "-r", str(REQUIREMENTS)], check=True)
        shutil.copy(REQUIREMENTS, made / stamp.name)
        if place.exists():
            place.rename(pathlib.Path(folder) / "old")
        with contextlib.suppress(OSError):  # another build was faster
            made.rename(place)


def main(arguments: list[str]) -> int:
    """Gather, and run Sphinx."""
    out = pathlib.Path(arguments[0]) if arguments else BUILD / "site"
    packages = BUILD / "site-packages"
    install(packages)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), str(ROOT / "python")])}
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="site-source-") as folder:
        source, doctrees = pathlib.Path(folder) / "source", pathlib.Path(folder) / "doctrees"
        gather(source)
        shutil.rmtree(out, ignore_errors=True)
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html"]
        command += ["-c", str(DOCS / "site"), "-d", str(doctrees), str(source), str(out)]
        ended = subprocess.run(command, env=environment, check=False).returncode
    if ended == 0:
        print(f"The site: {out.resolve() / 'index.html'}")
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
