# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Mistakes in kernels: each is reported at the user's line with a caret, what was expected, what came, and a remedy."""

import linecache
import math
import pathlib

import numpy as np
import pytest
import weft
import weft.language as wl
from language_support import tile_ir

PLAIN = 3
PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "Errors.md").read_text(encoding="utf-8")


@weft.jit
def wants_constant(x, N: wl.constexpr):
    return x + N


@weft.jit
def endless(x):
    return endless(x)


@weft.jit
def broken(x):
    return x + wl.topk(wl.arange(0, 3), 4)


def not_jit(x):
    return x


def kernel(*lines, parameters="x, y, n, BLOCK: wl.constexpr"):
    """A kernel with these lines as its body, and the number of the first of them in its file."""
    name = f"<errors {abs(hash(lines))}>"
    text = "\n".join(["@weft.jit", f"def kernel({parameters}):", *(f"    {line}" for line in lines)]) + "\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {
        "weft": weft,
        "wl": wl,
        "PLAIN": PLAIN,
        "wants_constant": wants_constant,
        "endless": endless,
        "broken": broken,
        "not_jit": not_jit,
        "np": np,
        "math": math,
    }
    exec(compile(text, name, "exec"), scope)
    return scope["kernel"]


# Per case: the body; the text that the caret underlines, in the body's last line unless another is marked with >;
# parts of message and remedy.
CASES = {
    "unknown name": (["z = BLOKC + 1"], "BLOKC", ["got 'BLOKC'", "did you mean 'BLOCK'?"]),
    "unknown function": (["z = wl.softmaks(x)"], "wl.softmaks", ["no attribute 'softmaks'", "did you mean 'softmax'?"]),
    "unknown method": (
        ["z = wl.load(x).too(wl.int32)"],
        "wl.load(x).too",
        ["type fp32 has no attribute 'too'", "did you mean 'to'?"],
    ),
    "shapes": (
        ["a = wl.arange(0, 64)", "b = a + wl.arange(0, 32)"],
        "a + wl.arange(0, 32)",
        ["got [64] and [32]", "axis 0 is 64 on the left and 32 on the right", "[:, None]"],
    ),
    "shapes of two axes": (
        ["a = wl.zeros((4, 8), wl.int32)", "b = a * wl.zeros((4, 2), wl.int32)"],
        "a * wl.zeros((4, 2), wl.int32)",
        ["[4, 8] and [4, 2]", "axis 1 is 8"],
    ),
    "gather shapes": (
        ["a = wl.zeros((64, 32), wl.float16)", "b = wl.gather(a, wl.arange(0, 64)[:, None], 0)"],
        "wl.arange(0, 64)[:, None]",
        ["but along axis 0, but got [64, 1] for [64, 32]", "wl.broadcast_to"],
    ),
    "type of a sum": (
        ["a = wl.sum(wl.zeros((4, 8), wl.int32), 0, dtype=1)"],
        None,
        ["expected a type for 'dtype' of 'sum', but got 1", "wl.float32"],
    ),
    "dot shapes": (
        ["a = wl.zeros((64, 32), wl.float16)", "c = wl.dot(a, a)"],
        "wl.dot(a, a)",
        ["got fp16[64, 32] and fp16[64, 32]", "K is 32 on the left and 64 on the right", "wl.trans"],
    ),
    "dot types": (
        ["a = wl.zeros((16, 16), wl.float16)", "c = wl.dot(a, a.to(wl.float32))"],
        "wl.dot(a, a.to(wl.float32))",
        ["one type", "fp16[16, 16] and fp32[16, 16]"],
    ),
    "dot accumulator": (
        ["a = wl.zeros((16, 16), wl.float16)", "c = wl.dot(a, a, acc=wl.zeros((16, 32), wl.float32))"],
        "wl.zeros((16, 32), wl.float32)",
        ["'acc' of 'dot' to be fp32[16, 16]"],
    ),
    "type changes in a loop": (
        ["total = 0", "for i in range(n):", ">    total += wl.load(x + i)", "wl.store(y, total)"],
        "total += wl.load(x + i)",
        ["'total' to keep its type int32 in the loop, but got fp32", "start from a float"],
    ),
    "shape changes in a loop": (
        ["total = 0.0", "for i in range(n):", ">    total += wl.zeros((16,), wl.float32)"],
        "total += wl.zeros((16,), wl.float32)",
        ["type fp32 in the loop, but got fp32[16]", "wl.full([16], ..., wl.float32)"],
    ),
    "types differ between branches": (
        ["if n > 3:", "    a = 1", "else:", "    a = 2.5", "wl.store(x, a)"],
        "a",
        ["'a' to have one type after both branches", "int32 from the first and fp32 from the second"],
    ),
    "defined in one branch": (
        ["if n > 3:", "    a = 1", "wl.store(x, a)"],
        "a",
        ["'a' may have no value here", "only one branch of the 'if' at line 3", "before the 'if'"],
    ),
    "defined in a loop": (
        ["for i in range(n):", "    a = i", "wl.store(x, a)"],
        "a",
        ["only inside of the loop at line 3"],
    ),
    "none carried by a loop": (
        ["a = None", "for i in range(n):", ">    b = a", "    a = i"],
        "a",
        ["'a' may have no value", "None before the loop"],
    ),
    "more of the best than there are": (
        ["a = wl.topk(wl.arange(0, 96), 97)"],
        "97",
        ["'k' of 'topk' to be from 1 to 96, but got 97"],
    ),
    "no elements along an axis": (
        ["a = wl.zeros((16, 0), wl.float32)"],
        "wl.zeros((16, 0), wl.float32)",
        ["sizes of at least 1", "0 in [16, 0]"],
    ),
    "too large": (
        ["a = wl.zeros((2048, 1024), wl.float32)"],
        "wl.zeros((2048, 1024), wl.float32)",
        ["at most 1048576 elements"],
    ),
    "not constant": (
        ["a = wl.arange(0, n)"],
        "wl.arange(0, n)",
        ["the end of arange to be a constant integer, but got int32", "wl.constexpr"],
    ),
    "unsupported statement": (["try:", "    pass", "except ValueError:", "    pass"], None, ["'try'", "no exceptions"]),
    "unsupported expression": (
        ["a = {i: i for i in (1, 2)}"],
        "{i: i for i in (1, 2)}",
        ["a dictionary comprehension"],
    ),
    "lambda": (["a = lambda: 1"], "lambda: 1", ["a lambda"]),
    "chained comparison": (["a = 1 < n < 3"], "1 < n < 3", ["chained comparison", "and b < c"]),
    "power": (["a = n ** 2"], "n ** 2", ["'**' of tensors"]),
    "matrix operator": (["a = n @ n"], "n @ n", ["wl.dot"]),
    "element assignment": (["a = wl.arange(0, 4)", "a[0] = 3"], "a[0]", ["an assignment to an element", "wl.where"]),
    "element": (["a = wl.arange(0, 4)", "b = a[0]"], "a[0]", ["only ':' and None"]),
    "too few arguments": (
        ["a = wl.arange(16)"],
        "wl.arange(16)",
        ["missing a required argument: 'end'", "arange(start, end)"],
    ),
    "unknown keyword": (["a = wl.load(x, maks=1)"], "wl.load(x, maks=1)", ["'maks'", "load(pointer, mask=None"]),
    "arguments of a helper": (
        ["a = wants_constant(1, 2, 3)"],
        "wants_constant(1, 2, 3)",
        ["too many positional arguments", "wants_constant(x, N)"],
    ),
    "load of a number": (["a = wl.load(n)"], "n", ["a pointer for 'load', but got int32"]),
    "pointer plus float": (["a = x + 1.5"], "x + 1.5", ["got pointer<fp32> and fp32", "whole elements"]),
    "pointer plus pointer": (["a = x + y"], "x + y", ["got pointer<fp32> and pointer<fp32>"]),
    "pointer times": (["a = x * 2"], "x * 2", ["pointer<fp32>", "load the values first"]),
    "store of a pointer": (["wl.store(x, y)"], "y", ["'value' of 'store' to be fp32", "pointer<fp32>"]),
    "store of a block at a pointer": (
        ["wl.store(x, wl.arange(0, 4))"],
        "wl.arange(0, 4)",
        ["to be a scalar, as the pointer is, but got int32[4]", "wl.arange(0, BLOCK)"],
    ),
    "mask shape": (
        ["at = wl.arange(0, 8)", "a = wl.load(x + at, mask=wl.arange(0, 4) < n)"],
        "wl.arange(0, 4) < n",
        ["pointers' shape [8], but got int1[4]"],
    ),
    "mask type": (
        ["at = wl.arange(0, 8)", "a = wl.load(x + at, mask=at)"],
        "at",
        ["'mask' of 'load' to be int1, but got int32[8]"],
    ),
    "other without mask": (["a = wl.load(x, other=0.0)"], "0.0", ["a mask beside 'other'"]),
    "float division": (["a = wl.load(x) // 2"], "wl.load(x) // 2", ["integers for '//', but got fp32", "wl.floor"]),
    "float bits": (["a = wl.load(x) & 1.5"], "wl.load(x) & 1.5", ["integers for '&'"]),
    "signedness": (
        ["a = n % wl.cast(n, wl.uint32)"],
        "n % wl.cast(n, wl.uint32)",
        ["same signedness, but got int32 and uint32"],
    ),
    "division by zero": (["a = n // 0"], "n // 0", ["a divisor other than 0"]),
    "bitcast": (["a = n.to(wl.float16, bitcast=True)"], "n.to(wl.float16, bitcast=True)", ["32 bits", "fp16 of 16"]),
    "condition on a block": (
        ["if wl.arange(0, 4) > n:", "    pass"],
        None,
        ["a scalar condition, but got int1[4]", "wl.where"],
    ),
    "plain global": (["a = PLAIN + 1"], "PLAIN", ["'PLAIN' to be a constexpr", "wl.constexpr(...)"]),
    "plain function": (["a = not_jit(n)"], "not_jit(n)", ["plain Python function 'not_jit'", "@weft.jit"]),
    "function of NumPy's": (["a = np.sqrt(2.0)"], "np.sqrt(2.0)", ["plain Python function 'sqrt'", "use wl.sqrt"]),
    "function of constants": (
        ["a = math.exp(n)"],
        "math.exp(n)",
        ["a constant for 'argument 1' of 'exp'", "use wl.exp"],
    ),
    "with": (["with wl.async_task(0):", "    a = 1"], None, ["but got 'with'", "write its body without it"]),
    "unused pointer": (
        ["p = wl.make_block_ptr(x, (16,), (1,), (0,), (16,), (0,))", "wl.advance(p, (4,))"],
        "wl.advance(p, (4,))",
        ["block pointer that 'wl.advance' gives to be used", "assign it"],
    ),
    "del": (["a = n", "del a"], "del a", ["but got 'del'", "leave it out"]),
    "recursion": (["a = endless(n)"], None, ["no recursion", "called from"]),
    "error in a helper": (["a = broken(n)"], None, ["to be from 1 to 3, but got 4", "in 'broken', called from"]),
    "return of a value": (["return n"], "return n", ["a kernel to return nothing, but got int32"]),
    "endless loop": (["while True:", "    a = 1"], None, ["always true"]),
    "loop bound": (
        ["for i in range(1.5):", "    pass"],
        None,
        ["the end of the loop to be a scalar integer, but got fp32"],
    ),
    "not iterable": (["for i in n:", "    pass"], None, ["to loop over, but got int32"]),
    "unpacking": (["a, b = 1, 2, 3"], "a, b", ["2 values to unpack, but got 3 values"]),
    "static assertion": (
        ["wl.static_assert(BLOCK < 4, f'{BLOCK} is large')"],
        "wl.static_assert(BLOCK < 4, f'{BLOCK} is large')",
        ["static assertion failed: 16 is large"],
    ),
    "none used": (["a = None", "b = a + n"], "a + n", ["to be a number or a tensor, but got None"]),
    "precision": (
        ["a = wl.zeros((16, 16), wl.float32)", "b = wl.dot(a, a, input_precision='f64')"],
        "'f64'",
        ["one of 'tf32' 'tf32rz' 'tf32x3' 'bf16x3' 'bf16x6' 'ieee'"],
    ),
    "negative unsigned": (
        ["a = n.to(wl.uint32) + -1"],
        "n.to(wl.uint32) + -1",
        ["a number that uint32 holds, but got -1"],
    ),
    "constant out of range": (["a = n.to(wl.int8) + 300"], "n.to(wl.int8) + 300", ["fits int8, but got 300"]),
    "grid axis": (["a = wl.program_id(3)"], "3", ["0, 1 or 2"]),
    "axis": (["a = wl.sum(wl.arange(0, 4), 1)"], "1", ["from -1 to 0, but got 1"]),
    "atomic type": (
        ["wl.atomic_add(x.to(wl.pointer_type(wl.int8)), 1)"],
        "x.to(wl.pointer_type(wl.int8))",
        ["'atomic_add' takes, but got int8"],
    ),
    "two policies": (
        ['a = wl.load(x, cache_modifier=".cg", volatile=True)'],
        "True",
        ["expected one of", "but got 'cache_modifier' and 'volatile'"],
    ),
    "constant expression": (["a: wl.constexpr = BLOCK // 0"], "BLOCK // 0", ["ZeroDivisionError"]),
    "reassigned constexpr": (
        ["a: wl.constexpr = 1", "a: wl.constexpr = 2"],
        "a: wl.constexpr = 2",
        ["'a' to be assigned once"],
    ),
    "two while conditions": (
        ["a = wl.zeros((4,), wl.int32)", "while a < 3:", "    a += 1"],
        None,
        ["a scalar condition"],
    ),
}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.replace(" ", "-"))
def test_mistake(case):
    lines, underlined, parts = CASES[case]
    marked = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines) - 1)
    lines = [line.removeprefix(">") for line in lines]
    function = kernel(*lines)
    with pytest.raises(weft.CompilationError) as caught:
        tile_ir(function, "x:*fp32, y:*fp32, n:i32, BLOCK=16")
    report = str(caught.value)
    for part in parts:
        assert part in report, report
    assert caught.value.remedy, report
    header, source, caret = report.splitlines()[:3]
    position = caught.value.position
    where = f"{position.file}:{position.line}:{position.column}"
    assert header == f"{where}: error: {caught.value.message} [{caught.value.number}]", report
    assert f"### {caught.value.number}\n" in PAGE, report
    assert caught.value.message[0].islower() or caught.value.message[0] == "'", report
    assert not caught.value.message.endswith("."), report
    if underlined is not None:
        assert position.line == marked + 3, report
        start, end = caret.index("^"), len(caret.rstrip())
        assert source[start:end] == underlined, report


@pytest.mark.parametrize(
    ("line", "call"), [("n.to(wl.float32)", "n.to"), ("wl.sort(wl.arange(0, 4))", "wl.sort"), ("wl.abs(n)", "wl.abs")]
)
def test_results_that_are_not_used(line, call):
    """As statements these do nothing, where readers of code may take them to change their operand."""
    with pytest.warns(RuntimeWarning, match=rf"the result of '{call}' is not used: values do not change"):
        kernel(line, parameters="n").compile("n:i32", target="sm_80")


@pytest.mark.filterwarnings("error")
def test_statements_whose_results_nobody_has_to_use():
    body = ["wl.load(x)", "wl.atomic_add(x, n)", "wl.multiple_of(n, 4)", "wl.static_print('a')", "wl.assume(n > 0)"]
    kernel(*body, parameters="x, n").compile("x:*i32, n:i32", target="sm_80")
