# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random tile programs beside a NumPy evaluator of the same description; WEFT_FUZZ_TILES says how many. A failing one
is printed as small as it could be made, with the seed that draws it. ``python -m fuzz_tiles`` runs any number.
"""

import os

import numpy as np
import pytest
from fuzz_tiles import check
from fuzz_tiles.draw import draw
from fuzz_tiles.emit import source
from fuzz_tiles.evaluate import UnknownError
from fuzz_tiles.ops import OPS
from fuzz_tiles.shrink import shrink
from fuzz_tiles.values import Value, cast, floats, integers, rounded

COUNT = int(os.environ.get("WEFT_FUZZ_TILES", "100"))
PARTS = 4  # so that workers share them


def fault(program):
    try:
        return check.fault(program)
    except UnknownError:
        return None


@pytest.mark.parametrize("part", range(PARTS))
def test_random_tile_programs(part, seed):
    for number in range(seed + part, seed + COUNT, PARTS):
        program = draw(number)
        wrong = fault(program)
        if wrong is not None:
            small = shrink(program, lambda p: fault(p) is not None)
            launched = f"{small.programs} programs of {small.warps} warps, {small.stages} stages, n = {small.n}"
            launched += f", {small.target}"
            pytest.fail(f"seed {number}: {wrong}\nsmaller: {fault(small)}\n{launched}\n{source(small)}")


@pytest.mark.parametrize("name", ["trans", "dot_onto", "load"])
def test_a_wrong_result_is_seen(name, monkeypatch):
    """An evaluator that is off by one where an operation is concerned disagrees with the compiler."""
    if name == "load":
        monkeypatch.setattr("fuzz_tiles.evaluate.Machine.formula", lambda self, text, shape: np.zeros(shape, int))
    else:
        written, computed = OPS[name]

        def wrong(*given):
            found = computed(*given)
            return Value(found.dtype, found.data + found.data.dtype.type(1), found.err)

        monkeypatch.setitem(OPS, name, (written, wrong))
    assert any(fault(draw(number)) is not None for number in range(40))


def test_values_round_and_wrap_as_their_types():
    halves = np.array([2049.0, 1.0 + 2.0**-11, 6e-8, 65519.0])
    assert (rounded(halves, "float16") == halves.astype(np.float16).astype(float)).all()
    exact = floats("float32", np.array([3.0]), np.zeros(1))
    assert exact.err[0] == 0
    assert cast(floats("float32", np.array([1e6]), np.zeros(1)), "float16").err[0] == np.inf
    assert integers("int8", np.array([300]), np.zeros(1, bool)).data[0] == 44
    assert np.isinf(cast(floats("float32", np.array([0.3, 1.0]), np.array([0.0, 0.5])), "int32").err[1])
