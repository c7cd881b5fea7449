# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every target of the table: one entry joins it, what is compiled for it assembles, fits its limits and is right on the
simulator.
"""

import ast
import dataclasses
import pathlib
import re

import numpy as np
import pytest
import torch
import weft
from weft import runtime, simulator
from weft.compiler.ptxas import assemble, find_tool
from weft.demo.cases import flash_case
from weft.demo.mechanisms import demonstrations
from weft.programs.compiled import compiled
from weft.simulator.cost import Figures, estimate, gpu_of
from weft.simulator.gpus import GPUS, gpu_named
from weft.targets import default_target, target_for, target_named, targets
from weft.testing import drawn
from weft.tuning.space import Kernel, candidates

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = list(targets())
FIRST = target_named(default_target())
SMALL = [name for name, each in targets().items() if each.shared_bytes_per_block < FIRST.shared_bytes_per_block]


# ---- One table


def _texts(path):
    """The texts in a file's code: literals, without those that document."""
    source = path.read_text()
    if path.suffix == ".py":
        tree = ast.parse(source)
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # of fields
        return [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
            and id(node) not in bare
        ]
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", source, flags=re.DOTALL)
    return re.findall(r'"(?:[^"\\\n]|\\.)*"', code)


def test_targets_are_named_in_one_file():
    """What adding a target touches: no other file of the product has a target's or a GPU's name in its code."""
    wanted = re.compile("|".join([rf"\b{name}\b" for name in NAMES] + [rf"\b{name}\b" for name in GPUS]))
    rooms = ("compiler", "dialects", "runtime", "targets", "python", "tools")
    files = [path for room in rooms for suffix in ("cpp", "h", "py") for path in (ROOT / room).rglob(f"*.{suffix}")]
    assert len(files) > 300
    naming = {str(path.relative_to(ROOT)) for path in files if any(wanted.search(text) for text in _texts(path))}
    assert naming == {"targets/Targets.cpp"}


def test_the_table_reaches_all():
    assert runtime.open_device(f"simulator:{NAMES[0]}").properties["max_shared_bytes"] == FIRST.shared_bytes_per_block
    for name, target in targets().items():
        device = runtime.open_device(f"simulator:{name}")
        assert device.properties["capability"] == (target.capability // 10, target.capability % 10)
        assert device.properties["max_shared_bytes"] == target.shared_bytes_per_block
        gpu = gpu_of(name)
        assert gpu.target == name and gpu is next(iter(target.gpus.values()))
    assert gpu_named("rtx 4090") is GPUS["RTX4090"]


def test_a_device_has_the_target_that_suits_it():
    for target in targets().values():
        capability = (target.capability // 10, target.capability % 10)
        assert target_for(capability, target.shared_bytes_per_block) == target.name
    # none of these is in the table: Orin and B300 hold the tiles of the default, a GB10 those of its family
    assert target_for((8, 7), 163 << 10) == "sm_80"
    assert target_for((10, 3), 227 << 10) == "sm_80"
    assert target_for((12, 1), 99 << 10) == "sm_120"
    assert target_for((7, 5), 64 << 10) is None


def test_newer_targets_come_first_in_a_library(tmp_path):
    @weft.program
    def attention(q: "fp16[B,1,N,64]:16", k: "fp16[B,1,N,64]:16", v: "fp16[B,1,N,64]:16"):  # noqa: F722
        return weft.softmax(q, k) @ v

    library = attention.compile(NAMES, None, tmp_path / "library", differentiate=False)
    found = [variant["target"] for variant in library.program("attention").variants]
    expected = sorted(NAMES, key=lambda name: -target_named(name).capability)
    assert found == expected
    x = np.random.default_rng(0).standard_normal((1, 1, 32, 64)).astype(np.float16)
    for name in NAMES:
        library.program("attention").run([x, x, x], device=f"simulator:{name}")


# ---- The simulator's limits

DYNAMIC = """.version 8.0
.target {target}
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry k() {{ ret; }}
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_launch_keeps_to_its_targets_limits(name):
    most = target_named(name).shared_bytes_per_block
    assert not simulator.launch(DYNAMIC.format(target=name), "k", 1, 32, [], shared=most).findings
    with pytest.raises(simulator.SimulatorError, match=f"at most {most} bytes of shared memory, but got {most + 1}"):
        simulator.launch(DYNAMIC.format(target=name), "k", 1, 32, [], shared=most + 1)
    threads = 32 * target_named(name).max_warps
    with pytest.raises(simulator.SimulatorError, match=f"a block of 1 to {threads} threads"):
        simulator.launch(DYNAMIC.format(target=name), "k", 1, threads + 1, [])


# ---- Kernels and programs on every target


def _results(each, tensors):
    """A program's results and the gradients of its inputs, for gradients of the results that are all 1."""
    given = [x.detach().clone().requires_grad_() for x in tensors]
    found = each.program(*given)
    results = [found] if isinstance(found, torch.Tensor) else [x for x in found if x.is_floating_point()]
    gradients = torch.autograd.grad(results, given, [torch.ones_like(x) for x in results], allow_unused=True)
    return [*results, *(x for x in gradients if x is not None)]


MECHANISMS = {each.title: each for _, each in demonstrations()}
QUICK = ("SEMA on a sequence",)


@pytest.mark.parametrize(
    "title", [title if title in QUICK else pytest.param(title, marks=pytest.mark.slow) for title in MECHANISMS]
)
def test_mechanisms_give_the_same_bits_on_every_target(title, seed, monkeypatch):
    """Forward and backward. They are right on the default target (test_sema.py and the others); their tiles fit every
    target's shared memory, so that their schedules are the same, and no target has arithmetic of its own. Where
    warpgroups make products, sums lie otherwise and have another order: those results are judged by themselves."""
    torch.manual_seed(seed)
    each = MECHANISMS[title]
    tensors = list(drawn(each.inputs, torch.float16).values())
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{FIRST.name}")
    expected = _results(each, tensors)
    for name in NAMES[1:]:
        monkeypatch.setenv("WEFT_DEVICE", f"simulator:{name}")
        if target_named(name).warpgroup_mma:
            each.judged(torch.float16)
            continue
        for one, other in zip(expected, _results(each, tensors), strict=True):
            assert torch.equal(one, other), (name, seed)


@pytest.mark.parametrize("D", [64, pytest.param(128, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_flash_attention(name, D, monkeypatch):
    """The tile kernel of the examples, at three stages or as many as fit."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{name}")
    assert not flash_case(torch.float16, D, True, (1, 1, 160)).judge().failures


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def one_pass(q, k, v):
    return weft.softmax(q, k, weft.causal(), deterministic=False) @ v


def _form(program, D, dtype, name, tokens=160):
    arrays = [torch.zeros(1, 1, tokens, D, dtype=dtype) for _ in range(3)]
    return compiled(program.trace(program.bind(arrays, {})), name, True)


def _most(form):
    return max(each["shared_bytes"] for each in form.info["kernels"])


#: heads whose default tiles are more than a block of 99 KiB
LARGE = [
    (attention, 256, torch.float16),
    (one_pass, 128, torch.float16),
    (attention, 192, torch.float32),
    (attention, 256, torch.float32),
]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("program, D, dtype", LARGE)
def test_large_heads_get_a_schedule_that_fits(name, program, D, dtype):
    form, first = _form(program, D, dtype, name), _form(program, D, dtype, FIRST.name)
    assert _most(form) <= target_named(name).shared_bytes_per_block < _most(first)
    schedules = [[each["schedule"] for each in one.info["schedules"]] for one in (form, first)]
    assert schedules[0] != schedules[1]


@pytest.mark.skipif(find_tool("ptxas") is None, reason="ptxas was not found")
@pytest.mark.parametrize("program, D", [(attention, 256), pytest.param(one_pass, 128, marks=pytest.mark.slow)])
def test_large_heads_spill_no_more_than_on_the_default_target(program, D):
    def spilled(name):
        found = assemble(_form(program, D, torch.float16, name).ptx, name)
        return found.spilled_bytes

    # One pass in tiles of 64 keys stores 8 bytes and loads them, once a block: heads are divided to begin abreast.
    assert spilled(SMALL[0]) <= spilled(FIRST.name) + (16 if program is one_pass else 0)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "program, D, dtype",
    [LARGE[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in LARGE[1:])],
)
def test_large_heads_are_right(name, program, D, dtype, seed, monkeypatch):
    torch.manual_seed(seed)
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{name}")
    tensors = [torch.randn(1, 1, 100, D).to(dtype) for _ in range(3)]
    given = [x.clone().requires_grad_() for x in tensors]
    wide = [x.double().requires_grad_() for x in tensors]
    found = program(*given)
    expected = torch.nn.functional.scaled_dot_product_attention(*wide, is_causal=True)
    found.sum().backward()
    expected.sum().backward()
    rule = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(found.double(), expected, **rule)
    for one, other in zip(given, wide, strict=True):
        torch.testing.assert_close(one.grad.double(), other.grad, **rule)


@pytest.mark.parametrize("name", NAMES)
def test_ptx_names_its_target_and_assembles(name):
    form = _form(attention, 64, torch.float16, name)
    version = target_named(name).ptx_version
    assert f".version {version // 10}.{version % 10}\n.target {name}\n" in form.ptx
    if find_tool("ptxas"):
        found = assemble(form.ptx, name)
        assert found.spill_store_bytes <= 16  # on sm_90a and sm_120 dq's kernel stores 12 bytes


# ---- The tuner


@pytest.mark.parametrize("name", NAMES)
def test_the_tuner_knows_every_target(name):
    target, gpu = target_named(name), gpu_of(name)
    kernel = Kernel(0, "forward", (128, 64, 8, 3), 128, 128, 16, 1, 0)
    kept = [each.schedule for each in candidates(kernel, target, 64) if not each.dropped]
    assert kept[0] == kernel.schedule and len(kept) > 8
    rates = dict.fromkeys(("sectors", "bytes", "shared_wavefronts", "barriers", "special", "warp_instructions"), 1e6)
    figures = Figures("k", 1000, 4, 3, 49152, 160, 0, 2000, mma_macs={"f16": 1e10}, **rates)
    assert 0 < estimate(figures, target, gpu).seconds < 1
    more = dataclasses.replace(figures, shared_bytes=target.shared_bytes_per_block + 1)
    assert estimate(more, target, gpu).resident == 0
