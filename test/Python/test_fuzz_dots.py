# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random kernels of products that feed one another, beside Python's run of the same text; WEFT_FUZZ_DOTS says how many.
A failing one is printed as small as it could be made, with the seed that draws it.
"""

import os

import pytest
from fuzz_dots import rings
from fuzz_dots.arrays import UnfitError, dot
from fuzz_dots.check import judged, shrunk
from fuzz_dots.draw import draw

COUNT = int(os.environ.get("WEFT_FUZZ_DOTS", "24"))
#: an instruction of such products in their PTX
INSTRUCTIONS = {"sm_90a": "wgmma.mma_async", "sm_100a": "tcgen05.mma"}


def fault(drawn, target):
    """What is wrong with a kernel, and its PTX; neither where it cannot be judged."""
    try:
        verdict = judged(drawn, target)
    except UnfitError:
        return "", ""
    return verdict.text, verdict.ptx


def still_fails(drawn, target):
    try:
        return bool(fault(drawn, target)[0])
    except Exception:  # of Python, which runs a text that lacks a line
        return False


def fail(number, wrong, drawn, target):
    """Prints it as small as it could be made."""
    small = shrunk(drawn, lambda each: still_fails(each, target))
    launched = f"{small.programs} programs of {small.warps} warps, {small.stages} stages, n = {small.counts}"
    if small.options:
        launched += f", {small.options}"
    pytest.fail(f"seed {number}: {wrong}\nsmaller: {fault(small, target)[0]}\n{launched}\n{small.text}")


@pytest.mark.parametrize("target", INSTRUCTIONS)
@pytest.mark.parametrize("drawer", [draw, rings.draw], ids=["sums", "rings"])
def test_random_products(drawer, target, seed):
    count = COUNT if drawer is draw else COUNT // 2
    made = 0
    for number in range(seed, seed + count):
        wrong, ptx = fault(drawer(number), target)
        if wrong:
            fail(number, wrong, drawer(number), target)
        made += INSTRUCTIONS[target] in ptx and (drawer is draw or "cp.async.bulk.tensor" in ptx)
    assert made >= count // 4


def test_a_wrong_result_is_seen(monkeypatch):
    """Python's run of a text, where products are off by one, disagrees with the compiler's."""
    monkeypatch.setattr("fuzz_dots.arrays.dot", lambda a, b, acc=None, out_dtype=None: dot(a, b, acc) + 1)
    assert any(fault(draw(number), "sm_100a")[0] for number in range(4))
