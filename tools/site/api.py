# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The pages of the site on the API: the public names of each package, with their docstrings, read by Sphinx."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pathlib
import types

#: the packages, each a page, with what they are for; of ``weft`` itself those names that no other page has
PACKAGES = {
    "weft": "Programs, kernels, and what both are made of",
    "weft.attention": "Mechanisms as one call each",
    "weft.nn": "Mechanisms as modules of PyTorch",
    "weft.patterns": "Which queries attend to which keys",
    "weft.language": "The language of kernels",
    "weft.runtime": "Devices and libraries",
    "weft.simulator": "PTX on the CPU",
    "weft.tuning": "Schedules tried, checked and ranked",
    "weft.testing": "References, and when a result is right",
    "weft.distributed": "Sequences that ranks share",
    "weft.integrations.sdpa": "Weft behind torch's scaled_dot_product_attention",
    "weft.triton": "Triton's names for Weft",
} | ({"weft.jax": "Programs as functions of JAX"} if importlib.util.find_spec("jax") else {})
#: of a module without __all__
_OF_MODULES = {"weft.integrations.sdpa": ("activate", "restore", "objection"), "weft.jax": ("wrap",)}
#: packages whose names are other packages' too, and stay on their pages
_ALIASES = ("weft", "weft.triton")


def names_of(package: str) -> dict[str, object]:
    """The public names of a package, without modules, in order."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or _OF_MODULES[package]
    found = {name: getattr(module, name) for name in names}
    return {name: thing for name, thing in sorted(found.items()) if not isinstance(thing, types.ModuleType)}


def entries(package: str, taken: set[int]) -> list[str]:
    """The directives of a page; ``taken`` are the things that other pages have."""
    found = []
    for name, thing in names_of(package).items():
        if package == "weft" and id(thing) in taken:
            continue
        where = f"{package}.{name}"
        if inspect.isclass(thing):
            found.append(f".. autoclass:: {where}")
        elif callable(thing) and not isinstance(thing, type(names_of)) and not hasattr(thing, "__wrapped__"):
            found.append(f".. autodata:: {where}\n   :no-value:")
        elif callable(thing):
            found.append(f".. autofunction:: {where}")
        elif inspect.getdoc(thing) and type(thing).__module__.startswith("weft"):
            found.append(f".. autodata:: {where}\n   :no-value:")
    if package == "weft.triton":  # the same things by Triton's names: links go to the others
        found = [f"{each}\n   :no-index:" for each in found]
    return found


def write_api(folder: pathlib.Path) -> None:
    """A page a package, and one that lists them."""
    folder.mkdir(parents=True)
    others = (package for package in PACKAGES if package not in _ALIASES)
    taken = {id(thing) for package in others for thing in names_of(package).values()}
    lines = ["# API", "", "The public names, from their docstrings.", ""]
    for package, about in PACKAGES.items():
        body = "\n\n".join(entries(package, taken))
        text = f"# {package}\n\n{about}.\n\n```{{eval-rst}}\n{body}\n```\n"
        (folder / f"{package}.md").write_text(text, encoding="utf-8")
        lines.append(f"- [{package}](/api/{package}.md): {about[0].lower()}{about[1:]}")
    toctree = "\n".join(f"{package}.md" for package in PACKAGES)
    lines += ["", "```{toctree}", ":hidden:", "", toctree, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")
