# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels with random mistakes: each compiles to tile IR that verifies, or raises CompilationError with a place."""

import ast
import copy
import linecache
import random

import pytest
import weft
import weft.language as wl
from language_support import tile_ir

KERNEL = """
@weft.jit
def kernel(x, y, n, scale, BLOCK: wl.constexpr):
    offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    mask = offsets < n
    values = wl.load(x + offsets, mask=mask, other=0.0)
    total = wl.zeros((BLOCK,), wl.float32)
    most, count = -float("inf"), 0
    for i in range(0, n, 2):
        total += wl.exp(values * scale) / (i + 1)
        if i % 3 == 0:
            total = wl.where(mask, total, 0.0)
            count += 1
        elif i > 7:
            most = wl.maximum(most, wl.max(total, 0))
    tile = values[:, None] * wl.reshape(total, (1, BLOCK))
    product = wl.dot(tile.to(wl.float16), wl.trans(tile).to(wl.float16))
    while count > 0 and not (count == 5):
        count = count // 2 - 1
    for j in wl.static_range(2):
        product = product + j if BLOCK > 16 else product
    wl.store(y + offsets, wl.sum(product, 1) + most + helper(count, j), mask=mask)
"""


@weft.jit
def helper(a, b: wl.constexpr):
    if a > b:
        return a
    return b + 0 * a


PIECES = [
    "x",
    "n",
    "values",
    "total",
    "mask",
    "BLOCK",
    "count",
    "offsets",
    "None",
    "1",
    "-3",
    "0",
    "2.5",
    "'text'",
    "(1, 2)",
    "()",
    "True",
    "wl.float16",
    "wl",
    "helper",
    "wl.arange(0, 16)",
    "wl.arange",
    "range",
    "undefined",
    "values[:, None]",
    "x.dtype",
    "lambda: 1",
    "[1, 2]",
    "{}",
    "f'{n}'",
    "n is None",
    "total.shape",
    "1 << 70",
    "1e400",
]


def mutated(rng):
    """The kernel with one to three expressions or statements replaced, swapped or dropped."""
    tree = ast.parse(KERNEL)
    function = tree.body[0]
    for _ in range(rng.randint(1, 3)):
        nodes = [node for statement in function.body for node in ast.walk(statement)]
        kind = rng.random()
        if kind < 0.6:  # an expression becomes another
            owners = [
                (n, f, v)
                for n in nodes
                for f, v in ast.iter_fields(n)
                if isinstance(v, ast.expr) and isinstance(getattr(v, "ctx", ast.Load()), ast.Load)
            ]
            owner, field, _ = rng.choice(owners)
            other = ast.parse(rng.choice(PIECES), mode="eval").body
            setattr(owner, field, other if rng.random() < 0.7 else copy.deepcopy(rng.choice(owners)[2]))
        elif kind < 0.8:  # an argument goes, or comes twice
            calls = [
                n
                for n in nodes
                if isinstance(n, (ast.Call, ast.Tuple)) and (getattr(n, "args", None) or getattr(n, "elts", None))
            ]
            call = rng.choice(calls)
            items = call.args if isinstance(call, ast.Call) else call.elts
            index = rng.randrange(len(items))
            items[index : index + 1] = [] if rng.random() < 0.5 else [items[index], items[index]]
        else:  # a statement goes, or moves
            blocks = [
                function.body,
                *(getattr(n, "body", None) for n in nodes if isinstance(n, (ast.For, ast.If, ast.While))),
            ]
            block = rng.choice([b for b in blocks if len(b) > 1])
            statement = block.pop(rng.randrange(len(block)))
            if rng.random() < 0.5:
                target = rng.choice(blocks)
                target.insert(rng.randrange(len(target) + 1), copy.deepcopy(statement))
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_mistakes(seed):
    rng = random.Random(seed)
    outcomes = {"compiles": 0, "refused": 0}
    for number in range(600):
        name = f"<mutation {seed} {number}>"
        try:
            text = mutated(rng) + "\n"
            code = compile(text, name, "exec")
        except (SyntaxError, ValueError, RecursionError, TypeError):
            continue  # no Python
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        scope = {"weft": weft, "wl": wl, "helper": helper}
        exec(code, scope)
        try:
            tile_ir(scope["kernel"], "x:*fp32:16, y:*fp32, n:i32, scale:fp32, BLOCK=32")
            outcomes["compiles"] += 1
        except weft.CompilationError as error:
            outcomes["refused"] += 1
            assert error.position is not None and error.message, f"{error}\n{text}"
            assert str(error).count("\n") >= 2, f"{error}\n{text}"
            assert "defect" not in str(error), f"{error}\n{text}"
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\n{text}")
    assert min(outcomes.values()) > 20, outcomes
