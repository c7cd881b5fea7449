# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A compiled kernel is used again, from memory and from the disk, only where all that its source reads is equal: random
code that reads a number, compiled, the number changed, compiled again."""

import dataclasses
import enum
import random
import struct
import typing
import uuid

import numpy as np
import pytest
import reads_support
import weft
import weft.language as wl


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "kernel-reads"))


#: where a kernel's own language may read a number: definitions, the expression, statements that change it to ``x``
KEPT = {
    "a constant": ("A = wl.constexpr(0.5)", "A", "global A; A = wl.constexpr(x)"),
    "a constant that is changed in place": ("A = wl.constexpr(0.5)", "A", "A.value = x"),
    "a tuple of constants": (
        "A = (wl.constexpr(1), wl.constexpr(0.5))",
        "A[1]",
        "global A; A = (A[0], wl.constexpr(x))",
    ),
    "an attribute of a class": ("class A:\n    a = 0.5", "A.a", "A.a = x"),
    "an inherited attribute": ("class B:\n    a = 0.5\nclass A(B): pass", "A.a", "B.a = x"),
    "an enumeration": (
        "class C(enum.Enum):\n    A = 0.5\n    B = 0.75\n    C = 0.875\n    D = 0.625\n"
        "class A: pass\nA.a = wl.constexpr(C.A.value)",
        "A.a",
        "A.a = wl.constexpr(C(x).value)",
    ),
    "a constant in a module": (
        "A = types.ModuleType('settings')\nA.a = wl.constexpr(0.5)",
        "A.a",
        "A.a = wl.constexpr(x)",
    ),
    "getattr": ("class A:\n    a = 0.5", "getattr(A, 'a')", "A.a = x"),
    "a property of an object in a constant": (
        "class C:\n    def __init__(self): self.b = 0.5\n"
        "    @property\n    def a(self): return self.b\nA = wl.constexpr(C())",
        "A.a",
        "A.value.b = x",
    ),
    "a list in a constant": ("A = wl.constexpr([0.5])", "A[0]", "A.value[0] = x"),
    "a name that may be None": ("A = None", "(0.5 if A is None else A)", "global A; A = wl.constexpr(x)"),
    "a default of a helper": (
        "def _helper(a):\n    @weft.jit\n    def helper(f: wl.constexpr = a):\n        return f\n    return helper\n"
        "A = _helper(0.5)",
        "A()",
        "global A; A = _helper(x)",
    ),
    "a closure of a helper": (
        "def _helper():\n    a = wl.constexpr(0.5)\n    @weft.jit\n    def helper():\n        return a\n"
        "    def write(x):\n        nonlocal a\n        a = wl.constexpr(x)\n    return helper, write\n"
        "A, _write = _helper()",
        "A()",
        "_write(x)",
    ),
    "a type": (
        "A = wl.float32",
        "(0.5 if A == wl.float32 else 0.75)",
        "global A; A = wl.float32 if x == 0.5 else wl.float16",
    ),
}  # fmt: skip


def kernel_case(seed, number):
    """A random module with a kernel that reads a number, and what it is in words."""
    chosen = random.Random(seed + number)
    if chosen.random() < 0.5:
        code, words = reads_support.random_code(chosen, without="an iterator")
        code.inner += f"@wl.constexpr_function\ndef number(): return float({code.read})\n"
        code.read, words = "number()", f"a function of constants that reads {words}"
    else:
        words = chosen.choice(list(KEPT))
        top, read, change = KEPT[words]
        code = reads_support.Code(top, "", read, change)
        for i in range(chosen.randrange(3)):
            code.top += f"\n@weft.jit\ndef j{i}(): return {code.read}\n"
            code.read = f"j{i}()"
            words += ", through a helper"
    code.inner += f"@weft.jit\ndef kernel(x):\n    wl.store(x, wl.load(x) * ({code.read}))\n"
    path = f"<kernel reads {seed} {number}>"
    return lambda: reads_support.module_of(code, "kernel", path), f"{words} (case {number} of seed {seed})"


VALUES = (0.5, 0.75, 0.5, 0.875)


def spelled(x):
    """A float32 as PTX spells it."""
    return "0f" + struct.pack(">f", x).hex().upper()


def test_what_is_compiled_is_what_is_read(seed):
    for number in range(24):
        make, words = kernel_case(seed, number)
        for start in (0, 1):  # the second time from the disk
            module = make()
            kernel = module.make()
            for x in VALUES[start:]:
                module.change(x)
                right = 0.75 if "a type" in words and x != 0.5 else x
                ptx = kernel.warmup(np.zeros(4, np.float32)).ptx
                assert spelled(right) in ptx, f"{words}, changed to {x}\n{module.TEXT}\n{ptx}"
                assert kernel.compile("x:*fp32:16").ptx.count(spelled(right)), f"{words}, changed to {x}, compile()"


@pytest.mark.parametrize("number", range(4))
def test_what_a_kernel_computes(seed, number):
    make, words = kernel_case(seed, number)
    module = make()
    kernel = module.make()
    for x in VALUES[:2]:
        module.change(x)
        array = np.full(4, 3, np.float32)
        kernel[(1,)](array)
        assert array[0] == 3 * x, f"{words}, changed to {x}: {array[0]}\n{module.TEXT}"


@weft.jit
def scale_by(x, a: wl.constexpr):
    wl.store(x, wl.load(x) * a[0])


@weft.jit
def scale_by_attribute(x, a: wl.constexpr):
    wl.store(x, wl.load(x) * a.a)


@weft.jit
def scale_by_integer(x, a: wl.constexpr):
    wl.store(x, wl.load(x) * a.int)


@weft.jit
def scale_by_number(x, a: wl.constexpr):
    wl.store(x, a)


@weft.jit
def scale_by_call(x, a: wl.constexpr):
    wl.store(x, wl.load(x) * a())


FACTOR = wl.constexpr(2.0)


@weft.jit
def factor():
    return FACTOR


@dataclasses.dataclass
class Settings:
    a: float

    def __hash__(self):
        return 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object


class Named(typing.NamedTuple):
    a: float


class Plain:
    a = 7.0


def test_constants_are_compared_by_value():
    def compiled(kernel, value):
        return kernel.warmup(np.zeros(4, np.float32), value).ptx

    assert compiled(scale_by_number, -0.0) != compiled(scale_by_number, 0.0)
    first = scale_by_number.warmup(np.zeros(4, np.float32), float("nan"))
    assert scale_by_number.warmup(np.zeros(4, np.float32), float("nan")) is first
    for one, other in (((2,), (2.0,)), ((True,), (1,)), ((0.0,), (-0.0,))):
        first = scale_by.warmup(np.zeros(4, np.float32), one)
        assert scale_by.warmup(np.zeros(4, np.float32), tuple(one)) is first
        assert scale_by.warmup(np.zeros(4, np.float32), other) is not first
    for settings in (Settings(7.0), Plain()):
        assert spelled(7.0) in compiled(scale_by_attribute, settings)
        settings.a = 3.0
        assert spelled(3.0) in compiled(scale_by_attribute, settings)
    assert spelled(7.0) in compiled(scale_by_attribute, Named(7.0))
    assert spelled(3.0) in compiled(scale_by_attribute, Named(3.0))
    assert spelled(7.0) in compiled(scale_by_attribute, Frozen(7.0))
    assert spelled(3.0) in compiled(scale_by_attribute, Frozen(3.0))
    key = uuid.UUID(int=7)
    first = scale_by_integer.warmup(np.zeros(4, np.float32), key)
    assert scale_by_integer.warmup(np.zeros(4, np.float32), uuid.UUID(int=7)) is first
    assert scale_by_integer.warmup(np.zeros(4, np.float32), uuid.UUID(int=3)) is not first
    Plain.a = 5.0
    assert spelled(5.0) in compiled(scale_by_attribute, Plain)
    Plain.a = 6.0
    assert spelled(6.0) in compiled(scale_by_attribute, Plain)
    assert spelled(6.0) in compiled(scale_by_attribute, Plain())


class Policy(enum.IntEnum):
    NONE = 0
    INT4 = 4


class Side(str, enum.Enum):  # noqa: UP042 as much code has it
    LEFT = "left"
    RIGHT = "right"


class Counted(int):
    """A number of its own class."""


class Measured(float):
    """A number of its own class."""


@weft.jit
def by_policy(x, n, policy: wl.constexpr, side: wl.constexpr):
    wl.store(x, n if policy == 4 else n + policy)
    wl.store(x + 1, 2.0 if side == "left" else 3.0)


@pytest.mark.parametrize("number", [4, Policy.INT4, Counted(4), 5, Counted(5)])
@pytest.mark.parametrize("n", [1, 16, Policy.INT4, Counted(1), Measured(2.5)])
def test_numbers_and_text_of_derived_classes(number, n):
    for policy, side in ((number, Side.LEFT), (Policy.NONE, Side.RIGHT), (number, "left")):
        x = np.zeros(2, np.float32)
        by_policy[(1,)](x, n, policy, side)
        assert x.tolist() == [n if policy == 4 else n + policy, 2.0 if side == "left" else 3.0]


def test_what_a_function_that_is_handed_over_reads():
    global FACTOR
    for x in (3.0, 7.0, 3.0):
        FACTOR = wl.constexpr(x)
        assert spelled(x) in scale_by_call.warmup(np.zeros(4, np.float32), factor).ptx


def test_a_constant_that_cannot_be_compared():
    with pytest.raises(TypeError, match=r"'a': expected a constant that can be compared by value.*list_iterator"):
        scale_by.warmup(np.zeros(4, np.float32), iter([2.0]))


def test_a_name_that_is_assigned_is_no_global():
    @weft.jit
    def kernel(x, late: wl.constexpr):
        if late:
            FACTOR = 3.0
        wl.store(x, FACTOR)

    with pytest.raises(weft.CompilationError, match="FACTOR"):
        kernel.warmup(np.zeros(4, np.float32), False)
