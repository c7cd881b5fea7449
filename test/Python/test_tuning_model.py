# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the tuner decides by: the space of schedules, the cost model, the rule of agreement, buckets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from weft.programs.buckets import Bucket, Symbols
from weft.simulator.cost import Figures, estimate, gpu_of, resident_blocks
from weft.simulator.gpus import GPUS
from weft.tuning.agreement import disagreement
from weft.tuning.cases import check_sizes, count_sizes, make_inputs
from weft.tuning.space import Kernel, candidates, parse, spelled, target_named, targets, why_not

KERNEL = Kernel(0, "forward", (128, 64, 4, 3), 64, 64, 16, 1, 0)
SM80 = target_named("sm_80")
A100 = GPUS["A100"]
LAUNCH = Figures(
    kernel="attend",
    blocks=1000,
    warps=4,
    stages=3,
    shared_bytes=49152,
    registers=160,
    spill_bytes=0,
    code=2000,
    warp_instructions=2e7,
    special=1e6,
    mma_macs={"f16": 1e10},
    sectors=1e6,
    bytes=1e7,
    shared_wavefronts=1e6,
    barriers=64000,
)


# ---- The cost model


def seconds(**changes) -> float:
    return estimate(dataclasses.replace(LAUNCH, **changes), SM80, A100).seconds


@pytest.mark.parametrize(
    "worse",
    [
        {"spill_bytes": 64},
        {"warp_instructions": 4e7},
        {"mma_macs": {"f16": 1e11}},
        {"special": 4e6},
        {"shared_wavefronts": 8e6},
        {"sectors": 1e8},
        {"added": 1e8},
        {"bytes": 1e9},
        {"registers": 255},
        {"shared_bytes": 150_000},
        {"blocks": 4000, "warp_instructions": 8e7, "barriers": 256_000},
        {"stages": 1},
    ],
    ids=lambda worse: next(iter(worse)),
)
def test_what_costs_more_loses_when_all_else_is_equal(worse):
    assert seconds(**worse) > seconds()


def test_more_of_anything_is_never_faster():
    random = np.random.default_rng()
    for _ in range(300):
        base = dataclasses.replace(
            LAUNCH,
            blocks=int(random.integers(1, 5000)),
            stages=int(random.integers(1, 5)),
            registers=int(random.integers(32, 256)),
            warp_instructions=float(10 ** random.uniform(4, 9)),
            barriers=float(10 ** random.uniform(2, 6)),
        )
        before = estimate(base, SM80, A100).seconds
        for name in (
            "warp_instructions",
            "special",
            "sectors",
            "added",
            "bytes",
            "shared_wavefronts",
            "barriers",
            "spill_bytes",
        ):
            more = dataclasses.replace(base, **{name: getattr(base, name) * 2 + 8})
            assert estimate(more, SM80, A100).seconds >= before, (name, base)


def test_a_block_that_fits_nowhere_takes_forever():
    assert estimate(dataclasses.replace(LAUNCH, shared_bytes=170_000), SM80, A100).seconds == float("inf")


def test_resident_blocks_are_those_of_the_occupancy_calculator():
    # registers are given to warps in units of 256; 64 warps, 32 blocks, 164 KiB of which 1 KiB a block
    for registers, warps, shared, expected in (
        (255, 4, 49152, 2), (168, 4, 49152, 3), (168, 4, 0, 3), (32, 4, 0, 16), (32, 1, 0, 32), (64, 8, 83_000, 1),
    ):  # fmt: skip
        figures = dataclasses.replace(LAUNCH, registers=registers, warps=warps, shared_bytes=shared)
        assert resident_blocks(figures, SM80) == expected, figures


def test_gpus_stand_for_targets():
    assert gpu_of("sm_80").name.startswith("A100") and gpu_of("sm_90a").name.startswith("H100")
    with pytest.raises(ValueError, match="expected one of A100, H100, H200"):
        gpu_of("sm_80", "B9000")


# ---- The space


def test_the_space_begins_with_the_default_and_goes_on_with_its_neighbours():
    found = candidates(KERNEL, SM80, limit=8)
    assert found[0].schedule == KERNEL.schedule and not found[0].dropped
    assert sum(not each.dropped for each in found) == 8
    assert len({each.schedule for each in found}) == len(found)
    for each in found:
        assert (why_not(each.schedule, KERNEL, SM80) == "") == (each.dropped == "")


def test_every_target_bounds_the_space():
    large = dataclasses.replace(KERNEL, head_size=256, value_size=256, schedule=(64, 32, 4, 2))
    dropped = {
        name: {each.schedule for each in candidates(large, target, 10**6) if each.dropped}
        for name, target in targets().items()
    }
    assert (64, 64, 4, 3) in dropped["sm_80"], "196,608 bytes are more than 166,912"
    assert (64, 64, 4, 3) not in dropped["sm_90a"], "and less than 232,448"


def test_the_default_is_never_dropped():
    wide = dataclasses.replace(KERNEL, head_size=128, value_size=1536, schedule=(128, 32, 8, 2, 256))
    found = candidates(wide, SM80, 4)
    assert found[0].schedule == wide.schedule and not found[0].dropped
    assert sum(not each.dropped for each in found) == 4, "values that wide are taken in parts"


def test_channels_of_wide_values_are_a_choice():
    wide = dataclasses.replace(KERNEL, head_size=128, value_size=768, schedule=(128, 32, 8, 2, 256))
    found = candidates(wide, SM80, 10**6)
    assert {each.schedule[4] for each in found} == {128, 256, 384, 512, 768}, "to all of them"
    reasons = {each.schedule: each.dropped for each in found}
    assert reasons[128, 32, 8, 2, 384] == "" and "328 registers" in reasons[128, 32, 4, 2, 256]
    keys = dataclasses.replace(wide, role="backward.keys", schedule=(128, 32, 8, 2, 64))
    assert {each.schedule[4] for each in candidates(keys, SM80, 10**6)} == {32, 64, 128}
    assert "values of 64 are not taken in parts" in why_not((128, 64, 4, 3, 64), KERNEL, SM80)


def test_windows_keep_their_tiles():
    window = dataclasses.replace(KERNEL, window_tokens=64, schedule=(64, 64, 4, 3))
    assert {each.schedule[:2] for each in candidates(window, SM80, 100)} == {(64, 64)}


@pytest.mark.parametrize("text", ["128x64x4", "128x64x4x3x64x2", "ax64x4x3", "", "128x64x4x-3"])
def test_what_spells_no_schedule(text):
    with pytest.raises(ValueError, match="expected a schedule ROWSxCOLUMNSxWARPSxSTAGES"):
        parse(text)


def test_schedules_are_spelled_as_they_are_read():
    assert parse(spelled((128, 64, 4, 3))) == (128, 64, 4, 3)
    assert parse(spelled((128, 64, 4, 3, 0, 2))) == (128, 64, 4, 3, 0, 2)


def test_clusters_are_candidates_where_programs_may_share():
    """One step from the default, on targets that have them, where candidates are timed."""
    shares = dataclasses.replace(KERNEL, may_share=True)
    clustered = (*KERNEL.schedule, 0, 2)
    hopper = target_named("sm_90a")
    near = [each.schedule for each in candidates(shares, hopper, 16, timed=True)]
    assert clustered in near and KERNEL.schedule in near
    for found in (
        candidates(shares, hopper, 100),
        candidates(KERNEL, hopper, 100, timed=True),
        candidates(shares, SM80, 100, timed=True),
    ):
        assert all(len(each.schedule) != 6 for each in found)
    assert "walk over blocks of their own" in why_not(clustered, KERNEL, hopper)
    assert "the target has clusters of at most 1" in why_not(clustered, shares, SM80)


def test_persistent_kernels_are_candidates_where_warps_copy():
    """One step from the default, where candidates are timed."""
    persistent = (*KERNEL.schedule, 0, 1, 1)
    hopper = target_named("sm_90a")
    assert persistent in [each.schedule for each in candidates(KERNEL, hopper, 16, timed=True)]
    for found in (candidates(KERNEL, hopper, 100), candidates(KERNEL, SM80, 100, timed=True)):
        assert all(len(each.schedule) == 4 for each in found)
    assert not why_not(persistent, KERNEL, hopper)
    assert why_not(persistent, KERNEL, SM80) == "persistent: the target has no warps that copy for the others"
    assert parse(spelled(persistent)) == persistent
    with pytest.raises(ValueError, match="expected a schedule ROWSxCOLUMNSxWARPSxSTAGES"):
        parse("128x64x4x3x0x2x1")


# ---- The rule


def results(error: float, kind: str = "fp16", size: int = 10_000):
    random = np.random.default_rng()
    exact = random.standard_normal(size).astype(np.float32)
    plain = (exact + 1e-3 * random.standard_normal(size)).astype(np.float16)
    given = (exact + error * random.standard_normal(size)).astype(np.float16)
    return {"out": given}, {"out": plain}, {"out": exact}, {"out": kind}


def test_errors_like_the_plain_ones_pass():
    for _ in range(5):
        said, excess = disagreement(*results(1e-3), gradient=False)
        assert excess < 1.3, said


@pytest.mark.parametrize("error", [4e-3, 3e-2, 1.0])
def test_larger_errors_do_not(error):
    said, excess = disagreement(*results(error), gradient=False)
    assert excess > 1 and said.startswith("out: ")


def test_a_few_wrong_elements_are_seen():
    given, plain, exact, types = results(1e-3)
    given["out"][17] += 0.5
    said, excess = disagreement(given, plain, exact, types, gradient=False)
    assert "the largest error" in said and excess > 3


def test_what_was_not_written_is_seen():
    given, plain, exact, types = results(1e-3)
    given["out"][100:164] = np.nan
    said, excess = disagreement(given, plain, exact, types, gradient=True)
    assert said == "out: 64 of 10000 elements are NaN, as they were before: not written, or spoilt"
    assert excess == np.inf


def test_a_result_that_is_always_too_small_is_seen():
    given, plain, exact, types = results(1e-3)
    given["out"] = (exact["out"] * (1 - 6e-4)).astype(np.float16)
    assert disagreement(given, plain, exact, types, gradient=False)[1] > 1


def test_integers_are_equal_or_wrong():
    one = {"n": np.arange(10)}
    assert disagreement(one, one, one, {"n": "i32"}, False) == ("", 0.0)
    other = {"n": np.arange(10) // 9 * 3}
    assert disagreement(other, one, one, {"n": "i32"}, False)[0] == "n: 9 of 10 elements differ"


def test_infinities_are_equal_or_wrong():
    given, plain, exact, types = results(1e-3)
    for each in (given, plain, exact):
        each["out"][5] = -np.inf
    assert disagreement(given, plain, exact, types, False)[1] < 1.3
    given["out"][5] = -60000
    assert disagreement(given, plain, exact, types, False)[0] == "out: infinite elements differ from the reference's"


# ---- Sizes

INPUTS = [
    {"name": "q", "type": "fp16", "dims": ["B", "4*Hkv", "N", "64"]},
    {"name": "k", "type": "bf16", "dims": ["B", "Hkv", "M", "64"]},
    {"name": "sink", "type": "fp32", "dims": ["4*Hkv"]},
]


def test_buckets_are_powers_of_two():
    symbols = Symbols.of(INPUTS)
    assert symbols == Symbols(("B", "Hkv"), ("N", "M"))
    bucket = Bucket.of(symbols, {"B": 3, "Hkv": 5, "N": 1000, "M": 4096})
    assert str(bucket) == "512 ≤ N < 1024, 4096 ≤ M < 8192, 8 ≤ B*Hkv < 16"
    assert bucket.holds({"B": 1, "Hkv": 8, "N": 512, "M": 8191})
    assert not bucket.holds({"B": 2, "Hkv": 8, "N": 512, "M": 8191})
    assert not bucket.holds({"N": 512})
    assert bucket.manifest()[0] == {"size": "N", "at_least": 512, "below": 1024}


def test_sizes_are_reduced():
    symbols = Symbols.of(INPUTS)
    sizes = {"B": 8, "Hkv": 4, "N": 65536, "M": 100}
    assert check_sizes(symbols, sizes) == {"B": 2, "Hkv": 2, "N": 300, "M": 100}
    assert count_sizes(symbols, sizes) == {"B": 1, "Hkv": 1, "N": 8192, "M": 100}
    assert count_sizes(symbols, sizes, 512) == {"B": 1, "Hkv": 1, "N": 512, "M": 100}


def test_inputs_are_made_or_taken():
    sizes = {"B": 1, "Hkv": 2, "N": 10, "M": 12}
    sink = np.zeros(8, np.float32)
    q, k, taken = make_inputs(INPUTS, sizes, {"sink": sink}, np.random.default_rng())
    assert q.shape == (1, 8, 10, 64) and q.dtype == np.float16 and k.dtype == np.uint16
    assert taken is sink
    with pytest.raises(ValueError, match="expected 'sink' to be fp32"):
        make_inputs(INPUTS, sizes, {"sink": np.zeros(7, np.float32)}, np.random.default_rng())


def test_sums_in_tensor_memory_take_no_registers():
    """Of 128 rows and 128 columns on a warpgroup 256 words a thread elsewhere; on sm_100a half of them, the scores."""
    of_128 = dataclasses.replace(KERNEL, head_size=128, value_size=128)
    assert "its sums take 296 registers of a thread" in why_not((128, 128, 4, 2), of_128, targets()["sm_90a"])
    assert why_not((128, 128, 4, 2), of_128, targets()["sm_100a"]) == ""
    assert "its scores take 296 registers" in why_not((128, 256, 4, 2), of_128, targets()["sm_100a"])


def test_four_warpgroups():
    """Tiles of 512 rows on 16 warps are candidates where sums lie in tensor memory alone."""
    for name, tried in (("sm_100a", True), ("sm_90a", False)):
        kernel = dataclasses.replace(KERNEL, schedule=(256, 128, 8, 3))
        found = {each.schedule for each in candidates(kernel, targets()[name], 10**6) if not each.dropped}
        assert ((512, 64, 16, 3) in found, any(512 in each[:1] or 16 in each[2:3] for each in found)) == (tried, tried)
