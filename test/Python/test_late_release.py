# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loops whose last products are waited for with the next iteration's first ones: right against float64 whatever is
early or late, and the only thing advised against is a product that writes what the one before it reads.
"""

import math
import pathlib
import re
import sys

import numpy as np
import pytest
import torch
import weft
from weft.programs.compiled import compiled
from weft.programs.simulated import run_plan

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Simulator"))
import mutations

TARGET = "sm_100a"


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def form_of(program, D, role, schedule):
    text = ", ".join(f"{name}:fp16[B,H,N,{D}]:16" for name in "qkv")
    return compiled(program.declare(text), TARGET, role != "forward", {f"0.{role}": schedule})


def inputs_of(rng, names, N, D):
    return {name: rng.standard_normal((1, 1, N, D)).astype(np.float16) for name in names}


def wanted(program, known, differentiate):
    """Results by torch, in float64."""
    q, k, v = (torch.from_numpy(known[name]).double().requires_grad_() for name in "qkv")
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if program is causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)
    out = scores.softmax(-1) @ v
    results = {"out": out.detach()}
    if differentiate:
        gradients = torch.autograd.grad(out, (q, k, v), torch.from_numpy(known["d_out"]).double())
        results |= dict(zip(("d_q", "d_k", "d_v"), gradients, strict=True))
    return results


#: Two warpgroups and four; scores alone before the wait, and with them what is stored or started beside; one more ring.
KERNELS = [
    (128, "forward", (256, 128, 8, 2)),
    (64, "forward", (512, 64, 16, 3)),
    (128, "forward", (256, 128, 8, 2, 0, 1, 1)),
    (128, "backward.query", (256, 64, 8, 2)),
    (64, "backward.keys", (256, 64, 8, 2)),
    (128, "backward.keys", (128, 128, 4, 2)),
]


@pytest.mark.parametrize("program", [full, causal], ids=["full", "causal"])
@pytest.mark.parametrize("D, role, schedule", KERNELS)
def test_results(program, D, role, schedule):
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    form = form_of(program, D, role, schedule)
    known = inputs_of(rng, ["q", "k", "v", "d_out"], 600, D)
    advised = set()
    for plan in form.info["programs"]:
        arrays = [known[each["name"]] for each in plan["inputs"]]
        run = run_plan(form.ptx, form.info, plan["name"], arrays, seed=int(rng.integers(100)))
        assert run.findings == []
        known |= run.outputs
        advised |= {str(each) for launched in run.launches for each in launched.report.advisories}
    for name, expected in wanted(program, known, role != "forward").items():
        error = np.abs(known[name].astype(np.float64) - expected.numpy()).max()
        assert error <= 6e-3 * float(expected.abs().max()), name
    behind = r"accumulates into [^;]*, (which a .* may still read|and nothing orders that after a read); "
    assert all(re.search(behind, each) and "tcgen05.mma" in each for each in advised), advised


def test_what_is_dropped_is_found():
    """Each commit; of waits those for tiles, for free ones, and for the last product of an iteration's first ones; the
    arrival in a loop. (A wait for products before those, and what is behind a loop, others stand for.)"""
    form = form_of(full, 128, "forward", (256, 128, 8, 2))
    known = inputs_of(np.random.default_rng(3), "qkv", 500, 128)
    (plan,) = form.info["programs"]
    arrays = [known[each["name"]] for each in plan["inputs"]]
    notes = "\n".join(line for line in form.ptx.splitlines() if line.startswith("// weft."))

    def run(text, seed):
        (launched,) = run_plan(f"{text}\n{notes}", form.info, plan["name"], arrays, seed=seed).launches
        return launched.report

    def found(pattern):
        drops = [drop for drop in mutations.drops(form.ptx) if re.match(pattern, drop.instruction)]
        return [mutations.is_found(drop, run, seeds=(0, 1, 2, 5)) for drop in drops]

    assert found(r"@acts tcgen05\.commit") == [True] * 4
    assert sum(found(r"mbarrier\.try_wait")) >= 6
    assert sum(found(r"@%p\d+ mbarrier\.arrive\.shared")) >= 1
