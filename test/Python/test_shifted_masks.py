# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks under shifts and transposes: their indices are any integers there, not positions of a sequence. Attention and
its gradients are held against the interpreter of random programs, in float64."""

import pytest
from fuzz_programs import judge, worker

N, M = ["x", "n"], ["x", "m"]


def const(value):
    return ["const", value]


#: what reads its indices so that their sign, or how far they run, makes a difference
EXPRESSIONS = {
    "remainder": ["ne", ["mod", ["add", N, M], const(4)], const(1)],
    "remainder by no power of two": ["eq", ["mod", ["mul", M, const(2)], const(3)], const(1)],
    "quotient": ["eq", ["floordiv", N, const(7)], ["floordiv", M, const(7)]],
    "remainder of a quotient": ["ne", ["mod", ["floordiv", M, const(3)], const(4)], const(0)],
    "distance": ["lt", ["abs", ["sub", N, M]], const(9)],
    "larger": ["lt", ["mod", ["maximum", N, M], const(5)], const(3)],
    "table of keys": ["ne", ["at", "t0", [M]], ["mod", N, const(3)]],
    "table of queries": ["ne", ["at", "t1", [N]], ["mod", M, const(3)]],
    "table at a sum": ["ne", ["at", "t0", [["add", M, const(2)]]], ["at", "t1", [N]]],
    "table at a quotient": ["ne", ["at", "t0", [["floordiv", M, const(2)]]], const(1)],
}
AROUND = {
    "shift": lambda mask: ["shift", mask, 16],
    "shift back": lambda mask: ["not", ["shift", mask, -7]],
    "shift of a transpose": lambda mask: ["shift", ["transpose", mask], 5],
    "transpose of a shift": lambda mask: ["or", ["transpose", ["shift", mask, -3]], ["causal"]],
    "transpose": lambda mask: ["transpose", mask],
}


def described(expression, around, sizes):
    """Attention of 21 queries and 38 keys under the pattern, with gradients."""
    turned = "transpose" in around
    shape = {"role": "data", "dtype": "f32", "layout": "contiguous", "grad": True, "capture": False}
    table = {"kind": "ids", "along": None, "capture": False}
    first, second = ("N", "M") if turned else ("M", "N")
    more = dict.fromkeys(("score", "bias", "sink", "scale", "lse", "cu"))
    step = {"name": "y0", "op": "attend", "dims": ["B", "H", "N", "D"], "dtype": "f32", "of": ["x0", "x1", "x2"],
            "pattern": AROUND[around](["mask", EXPRESSIONS[expression]]), "deterministic": True, **more}  # fmt: skip
    return {
        "seed": 1, "dtype": "f32", "sizes": sizes, "variants": [],
        "inputs": {"x0": {"dims": ["B", "H", "N", "D"], **shape}, "x1": {"dims": ["B", 1, "M", "D"], **shape},
                   "x2": {"dims": ["B", 1, "M", "D"], **shape}},
        "tables": {"t0": {"dims": [first], **table}, "t1": {"dims": [second], **table}},
        "steps": [step], "results": ["y0"], "backward": True,
    }  # fmt: skip


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_masks_see_what_shifts_make_of_indices(expression, around):
    description = described(expression, around, {"B": 1, "H": 2, "N": 21, "M": 38, "D": 8})
    assert judge.judged(description, worker.compiled(description)) == "right"
