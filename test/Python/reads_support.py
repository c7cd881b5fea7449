# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random Python code that reads one number: where the number is kept, through what it is read, and who changes it.

``random_code(random)`` draws it; ``module_of`` makes a module of it, whose ``change(x)`` gives the number another value
and whose ``make()`` builds what reads it: a score_mod, a mask, a program, a kernel.
"""

import dataclasses
import linecache
import textwrap
import types


@dataclasses.dataclass
class Code:
    """``top`` stands in the module, ``inner`` in make(); ``read`` is the expression, ``change`` the statements."""

    top: str
    inner: str
    read: str
    change: str


HEAD = """
import collections, dataclasses, enum, functools, math, types
import numpy as np
import torch
import weft
import weft.language as wl
"""

#: where a number may be kept: definitions, the expression that reads it, statements that change it (to ``x``)
KEPT = {
    "a global": ("A = 0.5", "A", "global A; A = x"),
    "an entry of a list": ("A = [1, 0.5]", "A[1]", "A[1] = x"),
    "a list that is sliced": ("A = [0.5]", "A[0]", "A[:] = [x]"),
    "an entry of a dict": ("A = {'a': {'b': 0.5}}", "A['a']['b']", "A['a']['b'] = x"),
    "what get gives": ("A = {'a': 0.5}", "A.get('a', 0.0)", "A['a'] = x"),
    "an attribute of an object": (
        "class C:\n    def __init__(self): self.a = 0.5\nA = C()",
        "A.a",
        "A.a = x",
    ),
    "an attribute of an attribute": (
        "class C: pass\nA = C()\nA.inner = C()\nA.inner.a = 0.5",
        "A.inner.a",
        "A.inner.a = x",
    ),
    "a slot": ("class C:\n    __slots__ = ('a',)\nA = C()\nA.a = 0.5", "A.a", "A.a = x"),
    "an attribute of a class": ("class A:\n    a = 0.5", "A.a", "A.a = x"),
    "an inherited attribute": ("class B:\n    a = 0.5\nclass C(B): pass\nA = C()", "A.a", "B.a = x"),
    "a property": (
        "class C:\n    b = 0.25\n    @property\n    def a(self): return self.b * 2\nA = C()",
        "A.a",
        "A.b = x / 2",
    ),
    "a cached property": (
        "class C:\n    def __init__(self, b): self.b = b\n"
        "    @functools.cached_property\n    def a(self): return self.b\nA = C(0.5)",
        "A.a",
        "global A; A = C(x)",
    ),
    "what __getattr__ makes up": (
        "class C:\n    store = {'a': 0.5}\n    def __getattr__(self, name): return self.store[name]\nA = C()",
        "A.a",
        "C.store['a'] = x",
    ),
    "a name that is computed": ("class A:\n    a = 0.5", "getattr(A, 'ab'[0])", "A.a = x"),
    "a method": (
        "class C:\n    def __init__(self): self.a = 0.5\n    def read(self): return self.a\nA = C()",
        "A.read()",
        "A.a = x",
    ),
    "an object that is called": (
        "class C:\n    def __init__(self): self.a = 0.5\n    def __call__(self): return self.a\nA = C()",
        "A()",
        "A.a = x",
    ),
    "an object that is indexed": (
        "class C:\n    a = (0.5,)\n    def __getitem__(self, i): return self.a[i]\nA = C()",
        "A[0]",
        "A.a = (x,)",
    ),
    "an object that is iterated": (
        "class C:\n    a = 0.5\n    def __iter__(self): yield self.a\nA = C()",
        "sum(A)",
        "A.a = x",
    ),
    "a dataclass": ("@dataclasses.dataclass\nclass C:\n    a: float = 0.5\nA = C()", "A.a", "A.a = x"),
    "a frozen dataclass": (
        "@dataclasses.dataclass(frozen=True)\nclass C:\n    a: float = 0.5\nA = C()",
        "A.a",
        "global A; A = dataclasses.replace(A, a=x)",
    ),
    "a named tuple": ("C = collections.namedtuple('C', 'a b')\nA = C(0.5, 1)", "A.a", "global A; A = C(x, 1)"),
    "an enumeration": (
        "class C(enum.Enum):\n    LOW = 0.5\n    HIGH = 0.75\nA = C.LOW",
        "A.value",
        "global A\nif x not in C._value2member_map_: A = types.SimpleNamespace(value=x)\nelse: A = C(x)",
    ),
    "a namespace": ("A = types.SimpleNamespace(a=0.5)", "A.a", "A.a = x"),
    "a module": ("A = types.ModuleType('settings')\nA.a = 0.5", "A.a", "A.a = x"),
    "an attribute of a function": ("def A(): pass\nA.a = 0.5", "A.a", "A.a = x"),
    "a default": ("def A(a=0.5): return a", "A()", "A.__defaults__ = (x,)"),
    "a default by keyword": ("def A(*, a=0.5): return a", "A()", "A.__kwdefaults__['a'] = x"),
    "a number of NumPy": ("A = np.float32(0.5)", "A", "global A; A = np.float32(x)"),
    "an array of NumPy": ("A = np.array([0.5])", "float(A[0])", "A[0] = x"),
    "a tensor of torch": ("A = torch.tensor([0.5], dtype=torch.float64)", "A[0].item()", "A[0] = x"),
    "a module of torch": (
        "class C(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = 0.5\nA = C()",
        "A.a",
        "A.a = x",
    ),
    "a module inside a module of torch": (
        "A = torch.nn.Module()\nA.inner = torch.nn.Module()\nA.inner.a = 0.5",
        "A.inner.a",
        "A.inner.a = x",
    ),
    "a partial": (
        "A = functools.partial(lambda a: a, 0.5)",
        "A()",
        "global A; A = functools.partial(A.func, x)",
    ),
    "a partial's keywords": ("A = functools.partial(lambda a: a, a=0.5)", "A()", "A.keywords['a'] = x"),
    "a closure": (
        "def _held():\n    a = 0.5\n    def read(): return a\n    def write(x):\n        nonlocal a\n        a = x\n"
        "    return read, write\nA, _write = _held()",
        "A()",
        "_write(x)",
    ),
    "an iterator": ("A = iter([0.5, 0.75, 0.875, 0.625, 0.5, 0.75])", "next(A)", "pass"),
    "a set": ("A = {0.5}", "max(A)", "A.clear(); A.add(x)"),
    "a deque": ("A = collections.deque([0.5])", "A[0]", "A[0] = x"),
    "a metaclass' attribute": (
        "class M(type):\n    a = 0.5\nclass A(metaclass=M): pass",
        "A.a",
        "M.a = x",
    ),
}  # fmt: skip

#: through what an expression may be read: definitions that hold {read}, the expression, by a number of the layer
THROUGH = {
    "a helper": ("def h{i}(): return {read}", "h{i}()"),
    "a lambda": ("h{i} = lambda: {read}", "h{i}()"),
    "a nested function": ("def h{i}():\n    def inner():\n        return {read}\n    return inner", "h{i}()()"),
    "a method": ("class H{i}:\n    def read(self): return {read}\nh{i} = H{i}()", "h{i}.read()"),
    "a bound method": ("class H{i}:\n    def read(self): return {read}\nh{i} = H{i}().read", "h{i}()"),
    "a static method": ("class H{i}:\n    @staticmethod\n    def read(): return {read}", "H{i}.read()"),
    "a class method": ("class H{i}:\n    @classmethod\n    def read(cls): return {read}", "H{i}.read()"),
    "a property": ("class H{i}:\n    @property\n    def a(self): return {read}\nh{i} = H{i}()", "h{i}.a"),
    "an object that is made": (
        "class H{i}:\n    def __init__(self): self.a = {read}",
        "H{i}().a",
    ),
    "a partial": ("h{i} = functools.partial(lambda x: {read} + x, 0)", "h{i}()"),
    "a wrapper": (
        "def w{i}(f):\n    @functools.wraps(f)\n    def call(): return f()\n    return call\n"
        "@w{i}\ndef h{i}(): return {read}",
        "h{i}()",
    ),
    "a comprehension": ("def h{i}(): return [{read} for _ in range(1)][0]", "h{i}()"),
    "a generator": ("def h{i}(): yield {read}", "sum(h{i}())"),
    "a list of functions": ("h{i} = [lambda: {read}]", "h{i}[0]()"),
    "a dict of functions": ("h{i} = dict(read=lambda: {read})", "h{i}['read']()"),
    "an argument": ("h{i} = lambda f: f()", "h{i}(lambda: {read})"),
    "Python's own functions": ("h{i} = max", "h{i}({read}, -1.0)"),
    "an operator of an object": (
        "class H{i}:\n    def __mul__(self, other): return {read} * other\nh{i} = H{i}()",
        "(h{i} * 1.0)",
    ),
    "an exception": (
        "def h{i}():\n    try:\n        raise KeyError\n    except KeyError:\n        return {read}",
        "h{i}()",
    ),
}  # fmt: skip


def random_code(random, without=""):
    """Code that reads a number, and the words for what was drawn; never kept as ``without`` says."""
    kept = random.choice([name for name in KEPT if name != without])
    top, read, change = KEPT[kept]
    words, inner = [kept], ""
    in_make = False  # from a layer inside of make() on, all others must be there
    for i in range(random.randrange(4)):
        layer = random.choice(list(THROUGH))
        words.append(f"through {layer}")
        definition, expression = THROUGH[layer]
        text = definition.replace("{i}", str(i)).replace("{read}", read) + "\n"
        in_make = in_make or random.random() < 0.4
        if in_make:
            inner += text
        else:
            top += "\n" + text
        read = expression.replace("{i}", str(i)).replace("{read}", read)
    return Code(top, inner, read, change), ", ".join(words)


def module_of(code, made, path):
    """The module of the code, whose make() gives ``made``, an expression with the code's read in it."""
    body = textwrap.indent(f"{code.inner}\nreturn {made}", "    ")
    text = f"{HEAD}\n{code.top}\n\ndef change(x):\n{textwrap.indent(code.change, '    ')}\n\ndef make():\n{body}\n"
    module = types.ModuleType("reads")
    module.TEXT = text
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), vars(module))
    return module
