# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``launch_cooperative_grid``: programs that wait for each other run where all fit, and are refused where not."""

import types

import numpy as np
import pytest
import weft
import weft.triton as triton
import weft.triton.language as tl
from weft.compiler import cooperative
from weft.targets import target_named


@triton.jit
def neighbours(x, y, arrived, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Each program adds what the next one has to its own, and then waits for all, ``STEPS`` times."""
    me, all_of_them = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, BLOCK)
    for step in range(STEPS):
        source, goal = (x, y) if step % 2 == 0 else (y, x)
        mine = tl.load(source + me * BLOCK + at)
        other = tl.load(source + (me + 1) % all_of_them * BLOCK + at)
        tl.store(goal + me * BLOCK + at, mine + other)
        tl.debug_barrier()
        tl.atomic_add(arrived, 1, sem="release")
        while tl.atomic_add(arrived, 0, sem="acquire") < (step + 1) * all_of_them:
            pass
        tl.debug_barrier()


def summed(x: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        x = x + np.roll(x, -1, 0)
    return x


@pytest.mark.parametrize("form", ["launch", "config", "compiled", "warmed up"])
def test_programs_that_wait_for_each_other(form, seed):
    x = np.random.default_rng(seed).integers(0, 9, (150, 16)).astype(np.float32)
    y, arrived, before = np.zeros_like(x), np.zeros(1, np.int32), x.copy()
    together = {"launch_cooperative_grid": True, "num_warps": 1}
    if form == "launch":
        for _ in range(2):  # the second one is known
            x[:], arrived[:] = before, 0
            made = neighbours[(150,)](x, y, arrived, 2, BLOCK=16, **together)
        assert made.metadata.launch_cooperative_grid
    elif form == "config":
        config = triton.Config({"BLOCK": 16, "launch_cooperative_grid": True}, num_warps=1)
        triton.autotune([config], key=[])(neighbours)[(150,)](x, y, arrived, 2)
    elif form == "compiled":
        signature = {"x": "*fp32", "y": "*fp32", "arrived": "*i32", "STEPS": "constexpr", "BLOCK": "constexpr"}
        source = triton.compiler.ASTSource(neighbours, signature, {"STEPS": 2, "BLOCK": 16})
        made = triton.compile(source, options=together)
        made.run(150, 1, 1, 0, None, made.packed_metadata, None, None, None, x, y, arrived)
    else:
        made = neighbours.warmup(x, y, arrived, 2, BLOCK=16, grid=(150,), **together)
        assert made[(150,)](x, y, arrived, 2, 16).cooperative
    np.testing.assert_array_equal(x, summed(before, 2))


@pytest.mark.parametrize("form", ["launch", "compiled"])
def test_more_programs_than_run_at_once_are_refused(form, monkeypatch):
    """The simulator stands for an A100: 108 multiprocessors, of 32 blocks, 64 warps and 65536 registers each."""
    monkeypatch.setattr(cooperative, "_registers", lambda *given: 32)
    x, arrived = np.zeros((10, 16), np.float32), np.zeros(1, np.int32)
    together = {"launch_cooperative_grid": True, "num_warps": 4}
    said = (
        r"cooperative launch of 'neighbours' to have at most 1728 programs, which run at once, but got 1730: "
        r"16 fit on each of 108 multiprocessors, with 32 registers a thread, \d+ bytes of shared memory and 128 threads"
    )
    made = neighbours.warmup(x, x, arrived, 1, 16, **together)
    with pytest.raises(weft.Error, match=said):
        if form == "launch":
            neighbours[(173, 10)](x, x, arrived, 1, 16, **together)
        else:
            made.run(173, 10, 1, 0, None, None, None, None, None, x, x, arrived)
    assert not arrived
    assert neighbours[(0,)](x, x, arrived, 1, 16, **together) is None


def test_what_decides_how_many_fit(monkeypatch):
    kernel = types.SimpleNamespace(ptx="", target="sm_90a", name="k", num_warps=4, shared_bytes=0)
    gpu = types.SimpleNamespace(
        simulated=False, name="cuda:0", properties={"capability": (9, 0), "multiprocessors": 10}
    )
    loaded = lambda registers, shared: types.SimpleNamespace(  # noqa: E731
        attributes={"registers": registers, "static_shared_bytes": shared}
    )
    hopper = target_named("sm_90a")
    assert cooperative.room(kernel, loaded(32, 0), gpu).programs == 160  # threads
    assert cooperative.room(kernel, loaded(128, 0), gpu).programs == 40  # registers
    half = hopper.shared_bytes_per_processor // 2 - hopper.reserved_shared_bytes
    assert cooperative.room(kernel, loaded(32, half), gpu).programs == 20  # shared memory
    monkeypatch.setattr(cooperative.ptxas, "find_tool", lambda name: None)
    unknown = types.SimpleNamespace(simulated=True, name="simulator:sm_90a")
    assert cooperative.room(kernel, loaded(0, 0), unknown).registers == hopper.registers_per_thread
    gpu.properties["capability"] = (7, 5)
    with pytest.raises(weft.Error, match=r"'cuda:0' has compute capability 7\.5: launch without it"):
        cooperative.check(kernel, loaded(32, 0), gpu, (1,))
