# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The tree keeps to the rooms of docs/Architecture.md: files include and import downwards, private names stay home."""

import ast
import collections
import importlib
import importlib.util
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import cpp_functions
import pytest
import rooms
import weft

# What a function may import a module of Weft's for: optional, or slow to load.
HEAVY = {"torch", "numpy", "matplotlib", "triton", "rich"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def native_rooms() -> list[rooms.Room]:
    return [room for folder in rooms.NATIVE for room in rooms.read_rooms(under=folder)]


def test_no_circle_among_includes():
    assert len(rooms.includes()) > 300
    assert rooms.circles(rooms.includes()) == []


def test_every_file_is_in_a_room_and_includes_those_that_its_row_names():
    edges = [(user, used) for user, all_used in rooms.includes().items() for used in (user, *all_used)]
    assert sorted(set(rooms.forbidden(edges, native_rooms()))) == []


def test_no_room_is_crowded():
    """A folder of C++ has 25 files at most."""
    files = collections.Counter(file.rpartition("/")[0] for file in rooms.includes())
    assert {room: count for room, count in files.items() if count > 25} == {}


def test_functions_fit_a_screen():
    """No function of C++ is longer than 60 lines."""
    functions = list(cpp_functions.functions())
    assert len(functions) > 3000
    assert [f"{each.file}:{each.line}: {each.lines} lines" for each in functions if each.lines > 60] == []


def test_no_circle_among_modules():
    """Of imports at the top of a file and in functions together."""
    graph: dict[str, set[str]] = {}
    for each in rooms.imports():
        if each.when != "typed" and each.module != each.user:
            graph.setdefault(each.user, set()).add(each.module)
    assert rooms.circles(graph) == []


def test_every_module_is_in_a_room_and_uses_those_that_its_row_names():
    table = rooms.read_rooms(under="python/weft/")
    edges = [(rooms.file_of(each.user), rooms.file_of(each.module)) for each in rooms.imports()]
    edges += [(path, path) for path in map(rooms.file_of, rooms.modules())]
    assert sorted(set(rooms.forbidden(edges, table))) == []


@pytest.mark.parametrize("table", [native_rooms(), rooms.read_rooms(under="python/weft/")], ids=["native", "python"])
def test_rooms_are_layers(table):
    """No room uses one that uses it, by way of others either, and none is listed in vain."""
    graph = {
        room.path: {
            other.path for other in table if other != room and any(rooms.within(other.path, p) for p in room.uses)
        }
        for room in table
    }
    assert rooms.circles(graph) == []
    for room in table:
        assert (rooms.ROOT / room.path).exists(), f"no folder or file '{room.path}'"
        for path in room.uses:
            assert any(rooms.within(other.path, path) for other in table), f"'{path}', in the row of '{room.path}'"


def test_functions_import_only_what_is_heavy():
    """A lazy import defers a package that is optional or slow; commands of the command line load what they run."""
    found = [
        f"{rooms.file_of(each.user)}:{each.line}: {each.module}"
        for each in rooms.imports()
        if each.when == "called"
        and not rooms.within(rooms.file_of(each.user), "python/weft/cli")
        and not rooms.within(rooms.file_of(each.user), "python/weft/demo")
        and not rooms.outside(each.module) & HEAVY
    ]
    assert found == []


def test_no_private_name_is_imported():
    found = [
        f"{rooms.file_of(each.user)}:{each.line}: {each.module}.{each.name or ''}"
        for each in rooms.imports()
        if private(each.name or "") or any(map(private, each.module.split(".")))
    ]
    assert found == []


def test_no_private_attribute_is_reached_from_another_module():
    """``x._name``, where some other module defines ``_name`` and this one does not."""
    defined = {module: set(_defined(rooms.tree(module))) for module in rooms.modules()}
    found = []
    for module in rooms.modules():
        elsewhere = set().union(*(names for other, names in defined.items() if other != module))
        for node in ast.walk(rooms.tree(module)):
            if isinstance(node, ast.Attribute) and node.attr in elsewhere - defined[module]:
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")  # inherited
                if not own and not _is_foreign(node):
                    found.append(f"{rooms.file_of(module)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []


def test_public_functions_have_docstrings():
    """All but those named by a protocol: operators, methods of a documented base in the same file, and the
    visitors of Python's syntax (visit_If)."""
    found = []
    for module in rooms.modules():
        classes = {node.name: node for node in ast.walk(rooms.tree(module)) if isinstance(node, ast.ClassDef)}
        for name, function in _public(rooms.tree(module)):
            owner, _, method = name.rpartition(".")
            bases = [classes.get(ast.unparse(base)) for base in (classes[owner].bases if owner in classes else [])]
            inherited = any(base and any(_named(each, method) for each in base.body) for base in bases)
            if not ast.get_docstring(function) and not inherited and not method.startswith("visit_"):
                found.append(f"{rooms.file_of(module)}:{function.lineno}: {name}")
    assert found == []


def _public(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The public functions of a module and the public methods of its public classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If):
            yield from _public(node, prefix)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public(node, f"{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield prefix + node.name, node


def _named(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


#: modules named like the package that they need, which may not be installed
_OPTIONAL = {"jax"}


@pytest.mark.parametrize("package", ["weft", "weft.nn", "weft.tuning"])
def test_a_stub_is_the_list_of_public_names(package):
    """All that it names is there, by that name; and it names what there is, in order."""
    namespace = importlib.import_module(package)
    known = weft.lazy.names(namespace.__file__)
    assert known, "the stub has lines of another form"
    stub = pathlib.Path(namespace.__file__ + "i").read_text(encoding="utf-8")
    assert len(known) == sum(line.startswith(("from", "import")) for line in stub.splitlines())
    for name, module in known.items():
        assert name in dir(namespace)
        if name in _OPTIONAL and importlib.util.find_spec(name) is None:
            continue  # test_names_that_need_a_package_that_is_not_there
        found = getattr(namespace, name)
        if module != package:
            assert name in namespace.__all__
            assert getattr(importlib.import_module(module), name) is found
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        namespace.nothing  # noqa: B018


_WITHOUT = """
import importlib.abc, inspect, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "jax", "jinja2", "matplotlib", "rich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import weft, weft.nn, weft.tuning
for package in (weft, weft.nn, weft.tuning):
    names = dir(package)
    there = dict(inspect.getmembers(package))
    for name in names:
        if name in there:
            continue
        assert not hasattr(package, name), name
        try:
            getattr(package, name)
        except AttributeError as error:
            print(f"{package.__name__}.{name}:", error)
assert weft.softmax
"""


def test_names_that_need_a_package_that_is_not_there():
    """A package's members can be listed with NumPy alone; what needs more says what, where it is asked for."""
    run = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    missing = dict(line.split(": ", 1) for line in run.stdout.splitlines())
    assert missing.pop("weft.jax") == "weft.jax needs jax, which is not installed: pip install jax"
    assert {"weft.nn.Attention", "weft.testing"} <= missing.keys()
    for name, message in missing.items():
        assert message == f"{name} needs torch, which is not installed: pip install torch"


def _defined(tree: ast.AST) -> set[str]:
    """The private names that a module defines, in whatever scope."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return {name for name in names if private(name)}


def _is_foreign(node: ast.Attribute) -> bool:
    """Whether an attribute is of a module of another package: torch._C, sys._getframe."""
    owner = node.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in ("torch", "sys", "forward")
