# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Flash attention's interior loop: how many instructions a warp runs for a block of keys, and that they are right."""

import math

import pytest
import torch
import weft
from script_modules import load_script
from weft.compiler.ptxas import find_tool
from weft.targets import targets
from weft.testing import accuracy

needs_ptxas = pytest.mark.skipif(
    not (find_tool("ptxas") and find_tool("nvdisasm")), reason="ptxas or nvdisasm was not found"
)
#: Matrix instructions, exp2, maxima, sums and conversions make about 505 and 385; where no maximum grows, sums are not
#: scaled.
MOST = {64: 560, 128: 425}


benchmark = load_script("benchmarks/interior_loop.py")


@needs_ptxas
@pytest.mark.parametrize("made_of", ["ours", "programs"])
@pytest.mark.parametrize("D", [64, 128])
def test_instructions_per_block(D, made_of):
    found = getattr(benchmark, made_of)(D)
    assert found.spill_bytes == 0
    assert found.loop.matrix == 128
    assert found.loop.count <= MOST[D], found.loop.classes
    assert found.scaling == 64
    assert not {"FSEL", "SEL", "ISETP"} & set(found.loop.classes), found.loop.classes
    assert found.loop.classes["FSETP"] <= 4, "of whether a maximum of four rows has grown"


#: Of 64 rows of a warpgroup and 128 keys: matrix instructions, the most that the loop takes, and with the retries of
#: waits and products of sums where a maximum grows. A warp of its own makes the copies, as FlashAttention-3's does,
#: whose loop takes 431 and 469 with these products, which heads of 64 take always.
WARPGROUPS = {64: (4 + 8, 394, 397), 128: (8 + 8, 380, 445)}
#: The most cycles of an iteration over what the matrix units alone take, by the loop model: one product runs beside the
#: softmax of the other. FlashAttention-3's takes 1.08, of three warpgroups, and 1.00.
RATIO = {64: 1.36, 128: 1.01}


@needs_ptxas
@pytest.mark.parametrize("D", WARPGROUPS)
def test_instructions_of_warpgroups(D):
    target = next(name for name, each in targets().items() if each.warpgroup_mma)
    products, most, whole = WARPGROUPS[D]
    found = benchmark.ours(D, target)
    assert found.spill_bytes == 0
    assert found.loop.matrix == products
    assert found.loop.count <= most, found.loop.classes
    assert sum(each.name != "NOP" for each in found.loop.whole) <= whole
    assert not {"LDSM", "HMMA", "STS"} & set(found.loop.classes), found.loop.classes
    assert benchmark.ratio(D, target) <= RATIO[D]


#: Instructions of blocks that masks cut, at the most; FlashAttention-3's are 577, 616 and 727.
EDGES = {("causal", 64): 505, ("causal", 128): 486, ("local", 64): 520, ("local", 128): 499}


@needs_ptxas
@pytest.mark.parametrize("pattern, D", EDGES)
def test_instructions_of_edges(pattern, D):
    target = next(name for name, each in targets().items() if each.warpgroup_mma)
    found = benchmark.edges(D, pattern, target)
    assert len(found) == (1 if pattern == "causal" else 2)
    assert max(found) <= EDGES[pattern, D], found


@pytest.mark.parametrize("N, window", [(400, 210), (129, 1000), (256, 64)])
def test_windowed_attention(N, window):
    """The benchmark's kernel computes what it says, all three loops of it."""
    D, heads = 64, 2
    q, k, v = (torch.randn(heads, N, D).half() for _ in range(3))
    out = torch.full((heads, N, D), torch.nan, dtype=torch.float16)
    lse = torch.full((heads, N), torch.nan)
    strides = [each for x in (q, k, v, out) for each in x.stride()[:2]]
    benchmark.windowed_attention[(weft.cdiv(N, 128), heads)](
        q, k, v, out, lse, *strides, N, window,
        SCALE_LOG2=math.log2(math.e) / math.sqrt(D), D=D, BLOCK_M=128, BLOCK_N=64, num_warps=4, num_stages=3,
    )  # fmt: skip
    distance = torch.arange(N)[:, None] - torch.arange(N)[None, :]
    allowed = (distance >= 0) & (distance < window)

    def reference(dtype):
        scores = (q.to(dtype) @ k.to(dtype).mT).double() / math.sqrt(D)
        weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), -1)
        return (weights.to(dtype) @ v.to(dtype)), torch.logsumexp(scores.masked_fill(~allowed, -torch.inf), -1)

    exact, exact_lse = reference(torch.float64)
    result = accuracy(out, exact, [reference(torch.float16)[0]])
    assert result.ok, result.failures
    torch.testing.assert_close(lse.double(), exact_lse, rtol=1e-4, atol=1e-4)
