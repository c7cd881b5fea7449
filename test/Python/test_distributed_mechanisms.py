# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SEMA and SFA of sequences that ranks share, held against one process."""

import pytest
import ring_support
from ring_support import FOUNDATIONS, MECHANISMS, on_ranks
from weft import distributed


def judged(given, names, parts_of, wanted):
    layout = distributed.layout("consecutive", len(given))
    for name in names:
        parts = list(zip(*(each[name] for each in given), strict=True))
        whole = [layout.unshard(x) for x in parts[:4]] + [sum(x) for x in parts[4:6]]
        for what, x, y in zip(parts_of, whole, wanted[name], strict=False):
            difference = (x - y).abs().max() / max(1.0, y.abs().max())
            assert difference <= 2e-6, (name, what, difference)


def both(rank, ranks, names, seed):
    return tuple(
        compute(rank, [name for name in of if name in names], seed, ranks)
        for compute, of in ((ring_support.mechanisms, MECHANISMS), (ring_support.foundations, FOUNDATIONS))
    )


def held(ranks, names, seed, folder):
    sema, sfa = zip(*on_ranks(ranks, both, ranks, names, seed, folder=folder), strict=True)
    wanted, others = both(0, None, names, seed)
    judged(sema, wanted, ("out", "q", "k", "v", "taps", "bias"), wanted)
    judged(sfa, others, ("out", "q", "k", "v", "q_gain", "k_gain"), others)
    for name, alone in others.items():
        for each in sfa:
            assert (each[name][6] - alone[6]).abs() <= 2e-6 * max(1.0, alone[6].abs()), name
    # units travel, and not tokens: merged by five, a fifth of them
    assert sum(each["chains"][7] for each in sfa) < 0.5 * sum(each["nothing"][7] for each in sfa)


def test_two_ranks_are_as_one(seed, tmp_path):
    held(2, ["line", "grid", "chains", "nothing", "turned, with loss"], seed, tmp_path)


@pytest.mark.slow
def test_eight_ranks_lose_no_digits(tmp_path):
    """A draw in which the queries' gradient took over what each merge of parts rounded off the log-sum-exp."""
    names = ["turned, with loss"]
    given = on_ranks(8, ring_support.foundations, names, 10, 8, folder=tmp_path)
    wanted = ring_support.foundations(0, names, 10)
    layout = distributed.layout("consecutive", 8)
    for number in range(4):
        whole = layout.unshard([each[names[0]][number] for each in given])
        own = wanted[names[0]][number]
        assert (whole - own).abs().max() <= 1e-6 * max(1.0, own.abs().max()), number


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
def test_ranks_are_as_one(ranks, seed, tmp_path):
    held(ranks, [*MECHANISMS, *FOUNDATIONS], seed, tmp_path)
