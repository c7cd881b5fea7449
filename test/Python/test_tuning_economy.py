# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a tuning run need not do again: kernels that it has met, checks of them, and draws that nobody asks for. What it
says is the same."""

import numpy as np
import pytest
import torch
import weft
from weft.attention.sas import _sas
from weft.compiler import entries, ptxas
from weft.cycles import judge
from weft.cycles.report import of_ptx
from weft.programs.program import Program
from weft.targets import gpu_named
from weft.tuning import agreement, judging, references
from weft.tuning.cases import make_inputs
from weft.tuning.evaluate import Job, compile_module, evaluate
from weft.tuning.launched import compiled, fingerprints
from weft.tuning.run import subject_of
from weft.tuning.tuner import Options, tune_subject

SIGNATURE = "q: fp16[B,H,N,32]:16, k: fp16[B,H,N,32]:16, v: fp16[B,H,N,32]:16"
needs_tools = pytest.mark.skipif(
    ptxas.find_tool("ptxas") is None or ptxas.find_tool("nvdisasm") is None, reason="needs ptxas and nvdisasm"
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))


def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def traced(function=causal, signature=SIGNATURE):
    return Program(function).declare(signature, {})


def form(schedules, target="sm_80"):
    found = traced()
    return compile_module(found.text, found.name, {"target": target, "differentiate": True, "schedules": schedules})


def test_a_kernel_is_the_same_beside_others():
    """Another schedule of one kernel leaves the others' fingerprints as they were, and only those."""
    (first, info), (second, other) = form({}), form({"0.backward.keys": [32, 32, 2, 2]})
    names = [each["entry"] for each in info["kernels"]]
    assert names == [each["entry"] for each in other["kernels"]]
    one, two = (entries.fingerprints(ptx, names) for ptx in (first, second))
    changed = [name for name in names if one[name] != two[name]]
    assert [name for name in changed if "keys" in name] and len(changed) < len(names)
    assert entries.fingerprints(first.replace(".target sm_80", ".target sm_90"), names)[names[0]] != one[names[0]]


def test_how_a_kernel_is_launched_counts():
    ptx, info = form({})
    before = fingerprints(ptx, info)
    name = info["programs"][0]["variants"][0]["launches"][0]["kernel"]
    info["programs"][0]["variants"][0]["launches"][0]["grid"][0] += " - 1"
    assert [each for each, key in fingerprints(ptx, info).items() if key != before[each]] == [name]
    before = fingerprints(ptx, info)
    info["kernels"][-1]["shared_bytes"] += 16
    assert [each for each, key in fingerprints(ptx, info).items() if key != before[each]] == [
        info["kernels"][-1]["entry"]
    ]


def test_what_is_not_found_is_the_whole_module():
    ptx = ".version 8.0\n.target sm_80\n.entry hidden()\n{\n}\n"
    assert entries.only(ptx, ["hidden"]) == ptx
    one, two = (entries.fingerprints(text, ["hidden"]) for text in (ptx, ptx + "\n"))
    assert one != two


@needs_tools
@pytest.mark.parametrize("target", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90a"])
def test_figures_of_kernels_by_themselves(target, monkeypatch):
    """Registers, spills, instructions and loops are those of the whole module."""
    monkeypatch.setattr(ptxas, "_FIGURES", {})
    monkeypatch.setattr(judge, "_MEASURED", {})
    ptx, info = form({}, target)
    gpu = gpu_named("A100" if target == "sm_80" else "H100")
    whole = ptxas.entries(ptx, target)
    for each in info["kernels"]:
        name = each["entry"]
        assert ptxas.figures(ptx, target, [name]) == {name: whole[name]}
        made = compiled(ptx, target, [each])[name]
        assert (made.registers, made.spill_bytes, made.code) == whole[name]
    every = of_ptx(ptx, target, gpu, info["kernels"])
    alone = judge.measured(ptx, target, gpu, info["kernels"])
    assert alone == {each.name: judge._facts(each) for each in every}
    assert any(alone.values())
    monkeypatch.setattr(judge, "of_ptx", lambda ptx, target, gpu, kernels, main_only: [] if not kernels else 1 / 0)
    other, _ = form({}, target)
    assert judge.measured(other, target, gpu, info["kernels"]) == alone  # without timing them again


def test_kernels_at_fault_by_default_are_checked(tmp_path):
    """A kernel is unchecked only where the default schedule has it and it ran clean."""
    found = traced()
    ptx, info = form({})

    def compile(text, name, options):
        ptx, info = compile_module(text, name, options)
        if not options.get("widen"):
            info["kernels"][0]["shared_bytes"] //= 2
        return ptx, info

    options = {"target": "sm_80", "differentiate": True, "schedules": {}}
    sizes = {"B": 1, "H": 1, "N": 70}
    references.write_cases(compile, found.text, found.name, options, sizes, {}, 64, 1, str(tmp_path), draws=range(1))
    clean = judging.load_clean(str(tmp_path))
    wrong_info = compile(found.text, found.name, options)[1]
    prints = fingerprints(ptx, wrong_info)
    assert prints[info["kernels"][0]["entry"]] not in clean
    assert any(prints[each["entry"]] in clean for each in info["kernels"][1:])


def test_a_candidate_that_exceeds_a_bound_by_little_is_drawn_again(monkeypatch, tmp_path):
    """By the first draw it is unsure, by the others it is right; these are not written for the ones that are right."""
    found = traced()
    kept, drawn, asked = agreement.disagreement, [], []

    def strict(given, plain, exact, types, gradient):
        asked.append(1)
        said, excess = kept(given, plain, exact, types, gradient)
        return ("a little", 1.5) if len(asked) == 2 else (said, excess)

    def write(*args):
        drawn.append(list(args[-1]))
        references.write_cases(*args)

    monkeypatch.setattr(judging, "disagreement", strict)
    monkeypatch.setattr("weft.tuning.tuner.write_cases", write)
    candidates = {"0.forward": [(64, 32, 4, 2), (32, 32, 2, 2)]}
    options = Options(candidates=candidates, longest=128, compile=compile_module)
    result = tune_subject(subject_of(found, backward=False), "sm_80", {"B": 1, "H": 1, "N": 128}, options)
    assert drawn == [[0], [1, 2]]
    rows = [row for row in result.rows if row.place == "0.forward"]
    assert len(rows) == 3 and all(row.seconds is not None for row in rows)


def test_further_draws_are_others(tmp_path):
    found = traced()
    options = {"target": "sm_80", "differentiate": False, "schedules": {}}
    references.write_cases(
        compile_module, found.text, found.name, options, {"B": 1, "H": 1, "N": 40}, {}, 40, 3, str(tmp_path)
    )
    draws = [judging.load_case(str(tmp_path), "", number).inputs[0] for number in range(judging.DRAWS)]
    assert not np.array_equal(draws[0], draws[1]) and not np.array_equal(draws[1], draws[2])


def test_weights_keep_what_they_are_applied_to_in_size(seed):
    """Inputs of sizes that the call does not say are drawn by their fan in: layers after one another keep numbers of
    size 1, in which float16 is judged by what it rounds and not by what it cannot hold."""
    inputs = [
        {"name": "x", "type": "fp16", "dims": ["B", "2", "N", "64"]},
        {"name": "w1", "type": "fp32", "dims": ["96", "64"]},
        {"name": "w2", "type": "fp32", "dims": ["36", "12", "3"]},
        {"name": "bias", "type": "fp32", "dims": ["4096"]},
    ]
    made = make_inputs(inputs, {"B": 2, "N": 100}, {}, np.random.default_rng(seed))
    spread = [float(np.std(each.astype(np.float64))) for each in made]
    assert spread == pytest.approx([1, 1 / 8, 1 / 6, 1], rel=0.1)
    fixed = make_inputs(inputs[1:2], {}, {}, np.random.default_rng(seed))  # of a program without symbols
    assert np.std(fixed[0]) == pytest.approx(1, rel=0.1)


WIDE = "q: bf16[B,1,N,64]:16, k: bf16[B,1,N,64]:16, v: bf16[B,1,N,320]:16"


def test_blocks_that_wait_for_their_turn_count_the_same(tmp_path):
    """In the backward of wide values blocks add to the gradients of keys in turn."""
    found = traced(signature=WIDE)
    options = {"target": "sm_80", "differentiate": True, "schedules": {}}
    sizes = {"B": 1, "N": 512}
    runs = references._Runs(*compile_module(found.text, found.name, options) * 2, found.name)
    runs.write_inputs(sizes, {}, np.random.default_rng(1), str(tmp_path))
    job = Job(found.text, found.name, "sm_80", True, {}, [], [".backward"], sizes, str(tmp_path))
    counts = [evaluate(job)["launches"] for _ in range(3)]
    assert len(counts[0]) >= 3 and counts[0] == counts[1] == counts[2]


def test_references_of_layers_after_one_another_are_no_noise(tmp_path):
    """SAS, whose queries and keys go through four layers: with weights of size 1 its scores are 10⁷, and neither
    float16's gradients nor float32's are those of the formula."""
    heads, wide = [torch.zeros(1, 12, 40, 64).half() for _ in "qkv"], []
    for perceptron in (True, True, False):
        shapes = {"conv1.weight": (36, 12, 3), "conv1.bias": (36,), "conv2.weight": (36, 36, 3), "conv2.bias": (36,)}
        if perceptron:
            shapes |= {"linear1.weight": (96, 64), "linear1.bias": (96,)}
            shapes |= {"linear2.weight": (96, 96), "linear2.bias": (96,)}
        wide.append({name: torch.zeros(shape).half() for name, shape in shapes.items()})
    call = _sas.bind((*heads, *wide, None), {"causal": True, "scale": None})
    found = _sas.trace(call)
    options = {"target": "sm_80", "differentiate": True, "schedules": {}}
    sizes = {"B": 1, "N": 40, "M": 40}
    references.write_cases(
        compile_module, found.text, found.name, options, sizes, {}, 40, 3, str(tmp_path), draws=range(1)
    )
    case = judging.load_case(str(tmp_path), ".backward", 0)
    for name in ("d_q", "d_k", "d_v"):
        plain, exact = case.plain[name].astype(np.float64), case.exact[name].astype(np.float64)
        assert np.linalg.norm(plain - exact) < 0.02 * np.linalg.norm(exact), name
