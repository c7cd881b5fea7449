# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels without one of their fences, waits, commits, arrivals, expectations or barriers: every drop is found. What
compilers put in twice is dropped, one after the other, for as long as nothing is found: without all of it the results
must be right in every order, or the simulator missed something."""

from __future__ import annotations

import functools
import operator
import re

import cluster_kernels
import mutations
import numpy as np
import pytest
import test_clusters
import weft.simulator as simulator

hopper = pytest.importorskip("test_corpus_hopper", reason="no Triton on this machine")
SEEDS = (0, 1, 2, 5)
#: More than any of the kernels runs; one that waits for ever is found by then.
LIMIT = 400_000


def check(ptx: str, run, is_right, harmless: str = "(?!)") -> list[mutations.Drop]:
    """Every drop is found but those of barriers, and of what `harmless` matches, that the rest makes up for."""
    assert not run(ptx, 0).findings
    lost = mutations.survivors(ptx, run, seeds=SEEDS)
    unexpected = [drop for drop in lost if drop.family != "barrier" and not re.match(harmless, drop.instruction)]
    assert not unexpected, unexpected
    rest = mutations.without_redundant(ptx, lost, run, seeds=SEEDS)
    for seed in (*SEEDS, 11, 12, 13):
        assert not run(rest, seed).findings
        assert is_right()
    return lost


def test_a_ring_that_two_blocks_fill_for_each_other():
    text = cluster_kernels.kernel(test_clusters.RING).replace(
        ".shared .align 8 .b64 full;", ".shared .align 8 .b8 full[32];"
    )
    x = np.zeros(2048, np.uint32)
    values = np.random.default_rng(0).integers(0, 1000, 384)

    def run(text, seed):
        x[:], x[:384] = 0, values
        return simulator.launch(text, "k", 2, 64, [x], seed=seed, limit=LIMIT)

    def is_right():
        sums = values.reshape(6, 2, 32).sum((0, 1))
        return (x[1056:1088] == sums).all() and (x[1120:1152] == sums).all()

    assert not check(text, run, is_right)


def matmul(compiled, args_of, grid):
    """run and is_right of a matmul kernel of Triton of 64-column tiles."""
    random = np.random.default_rng(1)
    a, b = random.standard_normal((64, 192)).astype(np.float16), random.standard_normal((192, 64)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    c = np.empty((64, 64), np.float16)

    def run(text, seed):
        c[:] = np.nan
        return hopper.run(compiled, text, grid, args_of(a, b, c), seed, limit=LIMIT)

    return run, lambda: np.allclose(c, expected, rtol=2**-10, atol=1e-2)


def test_matmul_of_triton():
    types = {
        "a_desc": "tensordesc<fp16[64,32]>",
        "b_desc": "tensordesc<fp16[32,64]>",
        "c_desc": "tensordesc<fp16[64,64]>",
    }
    constants = {"BM": 64, "BN": 64, "BK": 32}
    compiled = hopper.compile_for_hopper(hopper.matmul, {**types, "K": "i32"}, constants, num_warps=4, num_stages=3)
    metas = compiled.metadata.tensordesc_meta

    def args_of(*arrays):
        parts = [hopper.described(array, meta) for array, meta in zip(arrays, metas, strict=True)]
        return [*functools.reduce(operator.iadd, parts, []), np.int32(192)]

    lost = check(compiled.asm["ptx"], *matmul(compiled, args_of, (1, 1)))
    assert lost and {drop.family for drop in lost} == {"barrier"}


@pytest.mark.slow
@pytest.mark.parametrize("specialized", [False, True], ids=["one", "roles"])
def test_matmul_of_triton_whose_maps_the_kernel_makes(specialized):
    types = dict.fromkeys("abc", "*fp16") | dict.fromkeys("MNK", "i32")
    constants = {"BM": 64, "BN": 64, "BK": 32, "SPECIALIZED": specialized}
    compiled = hopper.compile_for_hopper(
        hopper.matmul_of_pointers, types, constants, divisible="abcNK", num_warps=4, num_stages=3
    )
    sizes = [np.int32(64), np.int32(64), np.int32(192)]
    run, is_right = matmul(compiled, lambda a, b, c: [a, b, c, *sizes], (1, 1))
    # Triton waits for bulk stores after each map that it makes, where none is in flight.
    check(compiled.asm["ptx"], run, is_right, r"@%p\d+ cp\.async\.bulk\.(commit_group|wait_group\.read 0) ;")
