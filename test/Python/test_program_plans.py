# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the compiler makes of lowered programs: plans of launches beside one PTX module of kernels."""

import json

import pytest
from program_samples import MODULE, compiled
from weft import native


def refusal(text):
    """The compiler's error and diagnostics for a module that it must refuse."""
    context = native.load("_compiler").Context()
    try:
        module = context.parse(text)
    except ValueError as refused:
        return str(refused)
    _, _, error = module.compile(json.dumps({"target": "sm_80"}))
    assert error is not None, "accepted"
    return "\n".join([error, *(str(each) for each in context.take_diagnostics())])


def program(body, signature="(%x: !attn.tensor<[N, 64], f32>) -> !attn.tensor<[N, 64], f32>"):
    """A module of a kernel that takes a matrix and gives one, and of a program with this body."""
    return f"""
func.func @copy(%x: !tile.ptr<f32>, %x0: i64, %y: !tile.ptr<f32>, %y0: i64) attributes {{tile.kernel}} {{
  func.return
}}
func.func @f{signature} attributes {{attn.program}} {{
{body}
}}
"""


def launch(result, operand, kernel="copy"):
    """One launch of `copy`."""
    matrix = "!attn.tensor<[N, 64], f32>"
    return f'  %{result} = attn.launch @{kernel}(%{operand}) grid ["N", "1", "1"] : ({matrix}) -> {matrix}\n'


RETURN = "  func.return %{} : !attn.tensor<[N, 64], f32>"


def test_tensors_and_launches_are_numbered():
    ptx, info = compiled()
    (norm,) = info["programs"]
    assert norm["name"] == "norm"
    assert norm["inputs"] == [
        {"name": "x", "type": "fp16", "dims": ["B", "N", "64"], "aligned": True},
        {"name": "gain", "type": "fp32", "dims": ["64"]},
    ]
    assert norm["outputs"] == [
        {"name": "y", "type": "fp16", "dims": ["B", "N", "64"]},
        {"name": "total", "type": "fp32", "dims": ["B"]},
    ]
    (variant,) = norm["variants"]
    assert variant["target"] == "sm_80"
    assert variant["buffers"] == [{"type": "fp32", "dims": ["B", "N", "64"]}, {"type": "fp32", "dims": ["B", "N"]}]
    scaled, rounded, total = variant["launches"]
    assert scaled == {
        "kernel": "scaled",
        "grid": ["N", "B", "1"],
        "writes": [4],
        "zeroed": [],
        "arguments": [
            {"pointer": 0},
            {"stride": [0, 0]},
            {"stride": [0, 1]},
            {"pointer": 1},
            {"pointer": 4},
            {"stride": [4, 0]},
            {"stride": [4, 1]},
            {"real": 2},
        ],
    }
    assert rounded["writes"] == [2, 5]
    assert (total["writes"], total["zeroed"], total["arguments"][-1]) == ([3], [3], {"size": "N"})
    assert [kernel["entry"] for kernel in info["kernels"]] == ["scaled", "round", "total"]
    for entry in ("scaled", "round", "total"):
        assert ptx.count(f".visible .entry {entry}(") == 1


def test_kernels_alone_have_no_programs():
    _, info = compiled(MODULE[: MODULE.index("func.func @norm")])
    assert info["programs"] == []
    assert len(info["kernels"]) == 3


def test_launches_that_nothing_needs_are_left_out():
    text = program(launch("a", "x") + launch("b", "a") + launch("c", "x") + RETURN.format("c"))
    (f,) = compiled(text)[1]["programs"]
    (variant,) = f["variants"]
    assert [step["writes"] for step in variant["launches"]] == [[1]]
    assert variant["buffers"] == []
    assert (f["inputs"][0]["name"], f["outputs"][0]["name"]) == ("argument0", "result0")


def test_reals_that_json_has_not():
    text = MODULE.replace("reals = [2.0]", "reals = [0xFFF0000000000000 : f64]")
    (norm,) = compiled(text)[1]["programs"]
    assert norm["variants"][0]["launches"][0]["arguments"][-1] == {"real": "-inf"}


def test_a_backward_says_whose_gradients_it_gives():
    text = MODULE.replace(
        "attributes {attn.program}", "attributes {attn.program, attn.gradients_of = array<i64: 0, 1>}"
    )
    assert compiled(text)[1]["programs"][0]["gradients_of"] == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (program(RETURN.format("x")), "expected result 0 to be a launch's own, but it is an argument"),
        (
            program(
                launch("a", "x") + "  func.return %a, %a : !attn.tensor<[N, 64], f32>, !attn.tensor<[N, 64], f32>",
                "(%x: !attn.tensor<[N, 64], f32>) -> (!attn.tensor<[N, 64], f32>, !attn.tensor<[N, 64], f32>)",
            ),
            "expected result 1 to be a launch's own, but it is returned twice",
        ),
        (program(launch("a", "x", "nothing") + RETURN.format("a")), "@nothing to be a kernel of the module"),
        (
            program(launch("a", "x") + RETURN.format("a")).replace(" attributes {tile.kernel}", ""),
            "expected 'copy' to be a tile kernel of the module",
        ),
        (
            program(launch("a", "x") + RETURN.format("a")).replace("%x0: i64", "%x0: i32"),
            "expected 'copy' to take ('!tile.ptr<f32>', 'i64', '!tile.ptr<f32>', 'i64'), but it takes",
        ),
        (
            program(launch("a", "x").replace('1"] :', '1"] {sizes = ["N"]} :') + RETURN.format("a")),
            "expected @copy to take 5 parameters, but it takes 4",
        ),
        (
            program("  %m = attn.mean\n" + launch("a", "x") + RETURN.format("a")),
            "the program cannot be lowered to kernels",
        ),
    ],
)
def test_refused(text, message):
    assert message in refusal(text)
