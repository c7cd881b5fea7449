# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft config``: where an installed wheel keeps what C and C++ projects build with."""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import Any

NAMES = ("cmake-prefix", "pkg-config", "include", "libraries")


def add(commands: Any) -> None:
    """Add the sub-command."""
    part = commands.add_parser(
        "config",
        help="where headers, libraries, and the packages for CMake and pkg-config are",
        description="Prints the folders of an installed wheel that C and C++ projects build with, or one of them: "
        "cmake-prefix for CMAKE_PREFIX_PATH, pkg-config for PKG_CONFIG_PATH, include, libraries.",
    )
    part.add_argument("name", nargs="?", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    part.add_argument("--json", action="store_true", help="print one JSON object")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    import weft

    found = folders(pathlib.Path(weft.__file__).parent)
    if arguments.name:
        print(found[arguments.name])
    elif arguments.json:
        print(json.dumps(found))
    else:
        for name in NAMES:
            print(f"{name:12}  {found[name]}")
    return 0


def folders(package: pathlib.Path) -> dict[str, str]:
    """The folders by name. Raises ValueError for a package that was not installed from a wheel."""
    if not (package / "cmake").is_dir():
        raise ValueError(
            f"expected a package that was installed from a wheel, but got '{package}', which has no headers; "
            "'cmake --install BUILD --prefix PREFIX' installs those of a build"
        )
    places = (package.parent, package / "pkgconfig", package / "include", package / "_native")
    return {name: str(place) for name, place in zip(NAMES, places, strict=True)}
