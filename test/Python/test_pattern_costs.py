# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What patterns cost beside full attention, counted by benchmarks/patterns.py: finding blocks is little of it."""

import importlib
import pathlib

import pytest
import weft

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / "benchmarks"
TOKENS = 512


@pytest.fixture
def patterns(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("patterns")


#: at most this of the instructions of full attention, and this of its own for finding its blocks. Going through all
#: pairs of a list of blocks took 5 times what attention did, and of weights that chance drops 4 tenths of all.
MOST = {
    "blocks": (0.78, 0.12),
    "bitmap": (0.78, 0.06),
    "documents": (0.7, 0.22),
    "mask tensor": (1.55, 0.15),
    "by chance": (2.35, 0.0),
    "longformer": (1.2, 0.0),
}


@pytest.mark.parametrize("name", MOST)
def test_what_a_pattern_costs(patterns, name):
    full = sum(patterns.counts(weft.full(), TOKENS, "sm_80").values())
    found = patterns.counts(patterns.PATTERNS[name](TOKENS), TOKENS, "sm_80")
    total, most = sum(found.values()), MOST[name]
    finding = sum(count for kernel, count in found.items() if "blocks_of" in kernel)
    assert total / full <= most[0]
    assert finding / total <= most[1]
