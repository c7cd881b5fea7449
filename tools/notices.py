# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Writes what a wheel says of the code that is linked into it: the licences' texts, and a CycloneDX bill of materials.

Versions and texts are those of the Debian packages that the code comes from, and of pybind11's own metadata. Usage:
notices.py FOLDER VERSION [--runtime-only]
"""

import argparse
import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys

#: package, name, licence (SPDX), whether the compiler alone has it
PARTS = (
    ("libmlir-22-dev", "llvm", "Apache-2.0 WITH LLVM-exception", True),
    ("zlib1g-dev", "zlib", "Zlib", True),
    ("libzstd-dev", "zstd", "BSD-3-Clause", True),
    ("libfmt-dev", "fmt", "MIT", False),
    ("nlohmann-json3-dev", "nlohmann-json", "MIT", False),
    ("libmd-dev", "libmd", "BSD-3-Clause", False),
    ("libstdc++-12-dev", "libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1", False),
)


def version_of(package: str) -> str:
    """The installed version; empty where the package is not Debian's."""
    if shutil.which("dpkg-query") is None:
        return ""
    asked = subprocess.run(["dpkg-query", "-W", "-f=${Version}", package], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def licence_of(package: str) -> str:
    """The text of a Debian package's licences; empty, with a warning, where there is none."""
    text = pathlib.Path("/usr/share/doc") / package / "copyright"
    if text.exists():
        return text.read_text(encoding="utf-8")
    print(f"notices: expected the licence of {package} in {text}, which is not there: left out", file=sys.stderr)
    return ""


def debian_part(package: str, name: str, licence: str) -> tuple[dict[str, object], str]:
    """What the bill says of a part that comes from a Debian package, and its licence."""
    found: dict[str, object] = {"type": "library", "name": name, "licenses": [{"expression": licence}]}
    if version := version_of(package):
        found |= {"version": version, "purl": f"pkg:deb/debian/{package}@{version}"}
    return found, licence_of(package)


def pybind11_part() -> tuple[dict[str, object], str]:
    """What the bill says of pybind11, whose headers are in the extension modules, and its licence."""
    distribution = importlib.metadata.distribution("pybind11")
    texts = [file for file in distribution.files or () if file.name.startswith("LICENSE")]
    found: dict[str, object] = {
        "type": "library",
        "name": "pybind11",
        "version": distribution.version,
        "purl": f"pkg:pypi/pybind11@{distribution.version}",
        "licenses": [{"expression": "BSD-3-Clause"}],
    }
    return found, "".join(text.read_text() for text in texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("--runtime-only", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)  # what an earlier run wrote for another wheel
    licences = options.folder / "licenses"
    licences.mkdir(parents=True)
    parts = [
        debian_part(package, name, licence)
        for package, name, licence, compiler_only in PARTS
        if not (compiler_only and options.runtime_only)
    ]
    parts.append(pybind11_part())
    for found, text in parts:
        if text:
            (licences / f"{found['name']}.txt").write_text(text, encoding="utf-8")
    shutil.copyfile(pathlib.Path(__file__).parents[1] / "LICENSE", licences / "LICENSE")
    name = "weft-attention-runtime" if options.runtime_only else "weft-attention"
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": name, "version": options.version}},
        "components": [found for found, _ in parts],
    }
    path = options.folder / "sboms" / f"{name}.cyclonedx.json"
    path.parent.mkdir()
    path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
