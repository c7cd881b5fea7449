# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random tile kernels beside a NumPy interpreter of the same description; WEFT_FUZZ_KERNELS says how many. A failing
one is printed as small as it could be made, with the seed that draws it.
"""

import os

import pytest
from fuzz_kernels.check import drawn, fault
from fuzz_kernels.emit import source
from fuzz_kernels.interpret import UnfitError
from fuzz_kernels.shrink import shrink

COUNT = int(os.environ.get("WEFT_FUZZ_KERNELS", "30"))


def fails(kernel):
    try:
        return fault(kernel) is not None
    except UnfitError:
        return False


def test_random_kernels(seed):
    for number in range(seed, seed + COUNT):
        kernel = drawn(number)
        if fault(kernel) is not None:
            small = shrink(kernel, fails)
            launched = f"{small.programs} programs of {small.warps} warps"
            pytest.fail(f"seed {number}: {fault(small)}\n{launched}\n{small}\n{source(small)}")
