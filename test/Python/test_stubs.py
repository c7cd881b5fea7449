# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The stubs of the extension modules say what is in them: the same names, and the same parameters in the same order."""

import ast
import inspect
import pathlib
import re

import pytest
import weft
from weft import native

STUBS = sorted((pathlib.Path(weft.__file__).parent / "_native").glob("*.pyi"))


def parameters_of(node):
    """The names of a stub's parameters; None in the place of one that is given by position alone."""
    spec = node.args
    names = [None for each in spec.posonlyargs if each.arg != "self"] + [each.arg for each in spec.args]
    return [name for name in names if name != "self"] + ([f"**{spec.kwarg.arg}"] if spec.kwarg else [])


def stubbed(body):
    """What the bodies of a stub's module and classes define: parameters of functions, None of what is none."""
    found = {}
    for node in body:
        match node:
            case ast.ClassDef():
                found |= {node.name: None} | {f"{node.name}.{name}": what for name, what in stubbed(node.body).items()}
            case ast.FunctionDef():
                is_property = any(ast.unparse(each) == "property" for each in node.decorator_list)
                found[node.name] = None if is_property else parameters_of(node)
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                found[name] = None
    return found


def signature_of(function):
    """The same of a function of pybind11, whose documentation starts with its signature."""
    text = re.match(r"\w+\((.*)\) -> ", function.__doc__)[1]
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    names = [part.strip().partition(":")[0].partition("=")[0] for part in parts if part.strip()]
    return [None if re.fullmatch(r"arg\d+", name) else name for name in names if name != "self"]


def found_in(module):
    """What is in an extension module."""
    found = {}
    for name, what in vars(module).items():
        if name.startswith("__"):
            continue
        found[name] = signature_of(what) if inspect.isbuiltin(what) else None
        if inspect.isclass(what) and what.__module__ == module.__name__:
            found |= {f"{name}.{each}": of for each, of in members_of(what).items()}
    return found


def members_of(cls):
    found = {}
    for name, what in vars(cls).items():
        if isinstance(what, staticmethod):
            found[name] = signature_of(what.__func__)
        elif isinstance(what, property):
            found[name] = None
        elif callable(what) and not name.startswith("_"):
            found[name] = signature_of(what)
    return found


def test_each_module_has_one():
    assert [path.stem for path in STUBS] == ["_compiler", "_runtime", "_simulator"]


@pytest.mark.parametrize("path", STUBS, ids=lambda path: path.stem)
def test_the_stub_is_that_of_the_module(path):
    wanted = stubbed(ast.parse(path.read_text()).body)
    found = found_in(native.load(path.stem))
    named = {name: parameters for name, parameters in wanted.items() if not name.endswith("__")}
    assert sorted(named) == sorted(found)
    assert named == found
