# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Writes what a wheel says of the code that is linked into it: the licences' texts, and a CycloneDX bill of materials.

Versions and texts are those of the Debian packages that the code comes from. Usage: notices.py FOLDER VERSION
[--runtime-only]
"""

import argparse
import json
import pathlib
import shutil
import subprocess

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("version")
    parser.add_argument("--runtime-only", action="store_true")
    options = parser.parse_args()
    licences = options.folder / "licenses"
    licences.mkdir(parents=True, exist_ok=True)
    components = []
    for package, name, licence, compiler_only in PARTS:
        if compiler_only and options.runtime_only:
            continue
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            shutil.copyfile(text, licences / f"{name}.txt")
        version = version_of(package)
        found = {"type": "library", "name": name, "licenses": [{"expression": licence}]}
        components.append(
            found | ({"version": version, "purl": f"pkg:deb/debian/{package}@{version}"} if version else {})
        )
    name = "weft-attention-runtime" if options.runtime_only else "weft-attention"
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": name, "version": options.version}},
        "components": components,
    }
    path = options.folder / "sboms" / f"{name}.cyclonedx.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
