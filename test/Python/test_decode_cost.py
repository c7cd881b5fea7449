# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What decoding costs, counted by the simulator as benchmarks/decode.py does: blocks that a GPU gets, products, bytes
of the cache that are read, and what pages and 8-bit floats add to a contiguous cache."""

import pytest
import torch
from script_modules import load_script

benchmark = load_script("benchmarks/decode.py")
SMALL = benchmark.Step(heads=8, kv=2, keys=512)


@pytest.fixture(scope="module")
def contiguous():
    return SMALL.contiguous()


def test_one_sequence_fills_a_gpu():
    """B 1, 8 key heads, 32 query heads, 4,096 keys: a grid of two blocks for each of 132 multiprocessors, products of
    16 rows for the 4 that share keys, and each key and value read once."""
    step = benchmark.Step(heads=32, kv=8, keys=4096)
    run = step.contiguous(sample=8)
    blocks, macs, sectors = step.cost(run)
    assert blocks >= 264
    assert macs <= 1.1
    assert 1 <= sectors <= 1.03
    counters = run.launches[0].report.counters
    assert counters["shared_wavefronts"] <= 1.03 * counters["shared_wavefronts_ideal"], "bank conflicts"


def test_what_a_contiguous_cache_takes(contiguous):
    """Warp instructions of both kernels."""
    assert contiguous.total("warp_instructions") <= 41_816


@pytest.mark.parametrize(
    ("page", "most", "over"), [(1, 42_200, 1.02), (16, 43_288, 1.05), (64, 42_656, 1.03), (256, 42_512, 1.02)]
)
def test_what_pages_add(page, most, over, contiguous):
    """Warp instructions of both kernels, and over those of a contiguous cache."""
    run = SMALL.in_pages(page, checks="all")
    assert run.findings == []
    assert run.total("warp_instructions") <= min(most, over * contiguous.total("warp_instructions"))


def test_floats_of_8_bits_are_half_the_bytes():
    run = SMALL.in_pages(16, torch.float8_e4m3fn, checks="all")
    assert run.findings == []
    _, macs, sectors = SMALL.cost(run, bytes_of_an_element=1)
    assert macs <= 1.1
    assert sectors <= 1.05  # the table and what is known of the sequences too
    # This target has no instruction that converts e4m3: seven others do for two numbers.
    assert run.total("warp_instructions") <= 79_056


def test_a_contiguous_cache_of_8_bits_is_read_where_it_lies():
    """No kernel converts it before: half the bytes are read, and none written but of the results."""
    run = SMALL.contiguous(torch.float8_e4m3fn, checks="all")
    assert run.findings == []
    assert [launch.kernel for launch in run.launches] == ["attend", "merge_splits"]
    _, macs, sectors = SMALL.cost(run, bytes_of_an_element=1)
    assert macs <= 1.1
    assert sectors <= 1.03
