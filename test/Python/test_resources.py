# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ptxas makes of the examples' PTX: no spills, the algorithm's matrix instructions, no more code than Triton's."""

import pytest
from program_samples import compiled
from weft.compiler.ptxas import assemble, find_tool
from weft.demo.cases import all_cases
from weft.demo.report import beside_triton, peers_of
from weft.targets import target_named

pytestmark = pytest.mark.skipif(
    not (find_tool("ptxas") and find_tool("cuobjdump")), reason="ptxas or cuobjdump was not found"
)
CASES = list(all_cases())
FLASH = [case for case in CASES if case.name.startswith("flash")]
TARGETS = ["sm_80", "sm_90a"]
PEER_FACTOR = 1.1  # registers and static instructions, at most this times Triton's


def resources(case, target):
    return assemble(case.kernel.compile(case.signature, target=target, num_warps=case.warps, num_stages=3).ptx, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_spills(case, target):
    found = resources(case, target)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", FLASH, ids=lambda case: case.name)
def test_matrix_instructions_are_the_algorithms(case, target):
    """A warp's products for one 128×64 block of scores, Q·Kᵀ and P·V, by m16n8k16 or a warpgroup's m64nNk16; the loop
    holds them once. Of a warpgroup's, P·V runs beside the next block's Q·Kᵀ: the first and the last stand beside the
    loop."""
    D = 16 * case.warps
    copies = 2 if target_named(target).warpgroup_mma else 1
    if target_named(target).warpgroup_mma:
        tiles = 128 // (case.warps // 4) // 64
        scores, values = tiles * (D // 16), tiles * (64 // 16)
    else:
        rows = 128 // case.warps // 16
        scores = rows * (64 // 8) * (D // 16)
        values = rows * (D // 8) * (64 // 16)
    assert resources(case, target).matrix_instructions == copies * (scores + values)


@pytest.mark.parametrize("case", peers_of(CASES), ids=lambda case: case.name)
def test_no_more_than_triton(case):
    row = beside_triton(case)
    assert row.ours.registers <= PEER_FACTOR * row.theirs.registers
    assert row.ours.instruction_count <= PEER_FACTOR * row.theirs.instruction_count


def test_refused_ptx_is_reported():
    from weft import Error

    with pytest.raises(Error, match="ptxas refused"):
        assemble(".version 8.0\n.target sm_80\nnonsense", "sm_80")


def test_each_entry_of_a_module_by_itself():
    ptx, info = compiled()
    entries = [kernel["entry"] for kernel in info["kernels"]]
    together = assemble(ptx, "sm_80")
    each = [assemble(ptx, "sm_80", entry) for entry in entries]
    assert len(entries) == 3
    assert all(10 < one.instruction_count < together.instruction_count for one in each)
    assert sum(one.instruction_count for one in each) == together.instruction_count
    assert sum(one.registers for one in each) == together.registers
    assert assemble(ptx, "sm_80", "nothing").registers == 0
