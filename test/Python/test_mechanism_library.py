# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""One library of all mechanisms: compiled from a folder on the command line, run forward and backward by a Python
process without the compiler, and what the command says of folders that it cannot compile.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch
import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "mechanisms"


def run(*command, fails=False):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, env=environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done


def weft_compile(*arguments, fails=False):
    return run("-m", "weft.cli", "compile", *arguments, fails=fails)


def test_all_mechanisms(mechanism_library):
    """For both targets, forward and backward; progress is shown of each."""
    library = weft.load(mechanism_library.path)
    names = [name for name in library.programs if not name.endswith(("ward",))]
    files = {path.stem for path in FOLDER.glob("*.py")}
    assert files <= {each.split("_")[0] for each in names} | set(names)
    for name in names:
        for part in ("", ".forward", ".backward"):
            targets = [variant["target"] for variant in library.program(name + part).variants]
            assert targets == ["sm_90a", "sm_80"], (name, part)
    said = mechanism_library.said
    steps = 2 * len(names)
    assert f"[1/{steps}] " in said and f"[{steps}/{steps}] " in said
    assert all(f"{name} for sm_90a, " in said for name in names)


def test_runs_without_the_compiler(mechanism_library):
    """The example judges results and gradients by the rule, and that no compiler is in its process."""
    said = mechanism_library.reported
    names = [name for name in weft.load(mechanism_library.path).programs if not name.endswith("ward")]
    assert f"ran {len(names)} mechanisms, forward and backward, without the compiler" in said
    assert all(f"{name}, simulator" in said or f"{name}, cuda" in said for name in names)


def test_differentiable_program(mechanism_library, seed):
    torch.manual_seed(seed)
    attention = weft.load(mechanism_library.path).differentiable("attention")
    q = torch.randn(1, 4, 20, 64).half().requires_grad_()
    k, v = (torch.randn(1, 1, 20, 64).half() for _ in range(2))
    attention(q, k, v=v).sum().backward()
    given = q.detach().requires_grad_()
    torch.nn.functional.scaled_dot_product_attention(
        given.float(), k.float(), v.float(), is_causal=True, enable_gqa=True
    ).sum().backward()
    torch.testing.assert_close(q.grad, given.grad, rtol=1e-2, atol=2e-3)
    with torch.no_grad():
        assert not attention(q, k, v).requires_grad
    with pytest.raises(TypeError, match="expected 'k', 'v' by name"):
        attention(q)
    with pytest.raises(KeyError, match="has no program 'sfb'"):
        weft.load(mechanism_library.path).differentiable("sfb")


def test_examples_of_mechanisms_are_short():
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


PROGRAM = """import weft

@weft.program
def {name}(q: "fp16[B,H,N,64]:16", k: "{k}"):
    return weft.softmax(q, k) @ k
"""
GOOD = "fp16[B,H,N,64]:16"


def folder(place, **files):
    for name, text in files.items():
        (place / f"{name}.py").write_text(text)
    return place


def test_folder_as_json(tmp_path):
    files = {
        "a": PROGRAM.format(name="first", k=GOOD),
        "_b": "1 / 0",
        "c": "from a import first\n" + PROGRAM.format(name="second", k=GOOD),
    }
    done = weft_compile(folder(tmp_path, **files), "-o", tmp_path / "lib", "--forward-only", "--json")
    report = json.loads(done.stdout)
    assert report["programs"] == ["first", "second"] and report["kernels"] == 2
    assert sorted(weft.load(tmp_path / "lib").programs) == ["first", "second"]
    assert "[2/2] " in done.stderr


WEIGHTS = {"linear.weight": "fp16[64]", "linear.bias": "fp16[64]"}


def test_annotation_of_a_dict():
    """Each key is an input, named as in a call."""

    @weft.program
    def scaled(x: "fp16[B,1,N,64]:16", w: WEIGHTS, *, factor=2.0):  # noqa: F722
        return factor * x * w["linear.weight"] + w["linear.bias"]

    declared = scaled.declare()
    assert [each.name for each in declared.inputs] == ["x", "w_linear.weight", "w_linear.bias"]
    constant = scaled.declare(constants={"w": {"linear.weight": 2.0, "linear.bias": 1.0}})
    assert [each.name for each in constant.inputs] == ["x"]


FAULTS = {
    "nothing in it": ({"a": "import weft\n"}, ["expected Python files with programs (@weft.program) in"]),
    "no Python": ({"a": "import weft\ndef ("}, ["a.py:2: "]),
    "what fails": ({"a": "import weft\n\nweft.nothing\n"}, ["a.py:3: AttributeError: ", "'nothing'"]),
    "no types": ({"a": PROGRAM.format(name="f", k="")}, ["a.py:3:1: error: expected the type of 'k'"]),
    "a wrong type": ({"a": PROGRAM.format(name="f", k="fp16[B,H,N,32]:16")}, ["a.py:5:12: error: ", "64 and 32"]),
    "a size that must be known": (
        {"a": PROGRAM.format(name="f", k=GOOD).replace("k) @ k", "k) @ weft.merge_decide(k)")},
        ["a.py:", "error: expected"],
    ),
    "two of one name": (
        {"a": PROGRAM.format(name="f", k=GOOD), "b": PROGRAM.format(name="f", k=GOOD)},
        ["b.py:3:1: error: expected programs of different names in one library, but got two of 'f'", "a.py:3:1"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_it_says_of_faults(fault, tmp_path):
    files, messages = FAULTS[fault]
    said = weft_compile(folder(tmp_path, **files), "-o", tmp_path / "lib", fails=True).stderr
    assert "Traceback" not in said
    for message in messages:
        assert message in said, said
    assert not (tmp_path / "lib").exists()


def test_no_signature_for_a_folder(tmp_path):
    folder(tmp_path, a=PROGRAM.format(name="f", k=GOOD))
    said = weft_compile(tmp_path, "-o", tmp_path / "lib", "--signature", "w=1", fails=True).stderr
    assert "expected no --signature with a directory" in said
