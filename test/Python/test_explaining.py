# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What ``weft explain`` says beyond launches: fast paths that were not taken, with reasons at source lines."""

import json
import pathlib
import re

import pytest
from weft.cli.__main__ import main
from weft.explaining.why import remarks, table

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECLARED = re.findall(
    r'^WEFT_REMARK\(\w+, "([\w-]+)", "(\w+)"\)$', (ROOT / "compiler/Support/Remarks.def").read_text(), re.M
)

KERNEL = """
import weft
import weft.language as wl

@weft.jit
def scale(x: "*fp32", y: "*fp32:16", N: "i32"):
    at = wl.program_id(0) * 1024 + wl.arange(0, 1024)
    value = wl.load(x + at, mask=at < N)
    wl.store(y + at, 2 * value, mask=at < N)
"""
PROGRAM = """
import weft

@weft.program
def strided(q: "fp16[B,H,N,64]:16", k: "fp16[B,H,N,64]:16", v: "fp16[B,H,N,64]:16"):
    return weft.softmax(q, k, weft.strided(4)) @ v
"""


def explained(file, capsys, *options):
    assert main(["explain", str(file), "--why", *options]) == 0
    return capsys.readouterr().out


def test_every_remark_is_documented_and_tested():
    """The declared list, the page's table and the lit tests name the same remarks."""
    page = (ROOT / "docs" / "Explain.md").read_text()
    assert re.findall(r"^\| `([\w-]+)` \| (\w+) \|", page, re.M) == DECLARED
    tests = " ".join(path.read_text() for path in (ROOT / "test" / "Remarks").glob("*.mlir"))
    for name, category in DECLARED:
        assert f"[Missed] {name} | Category:{category} |" in tests, name


def test_why_of_a_kernel(tmp_path, capsys):
    file = tmp_path / "scale.py"
    file.write_text(KERNEL)
    said = explained(file, capsys)
    assert said.startswith(
        "scale.py:8    value = wl.load(x + at, mask=at < N)\n  vector-width: a thread accesses 1 of the 4"
    )
    found = json.loads(explained(file, capsys, "--json"))
    assert [(each["name"], each["line"], each["functions"]) for each in found] == [
        ("vector-width", 8, ["scale"]),
        ("vector-width", 9, ["scale"]),
    ]
    file.write_text(KERNEL.replace('"*fp32"', '"*fp32:16"').replace('"i32"', '"i32:16"'))
    assert explained(file, capsys) == "every fast path was taken\n"


def test_why_of_a_program(tmp_path, capsys):
    file = tmp_path / "strided.py"
    file.write_text(PROGRAM)
    found = json.loads(explained(file, capsys, "--json"))
    assert {each["name"] for each in found} >= {"block-formulas", "one-pass-backward"}
    assert {(pathlib.Path(each["file"]), each["line"]) for each in found} == {(file, 6)}
    assert "#attn.strided<4>" in explained(file, capsys, "--forward-only")


def test_what_kernels_are_told_alike_is_one():
    def each(function, line=3):
        return {"name": "ldmatrix", "category": "products", "message": "m", "file": "f.py", "line": line, "column": 1,
                "function": function}  # fmt: skip

    found = remarks({"remarks": [each("b", 9), each("a"), each("b"), each("a")]})
    assert [(one.line, one.functions) for one in found] == [(3, ("a", "b")), (9, ("b",))]
    assert table(found) == "f.py:3\n  ldmatrix: m (a, b)\n\nf.py:9\n  ldmatrix: m (b)"
    assert table([]) == "every fast path was taken"


def test_a_kernel_has_launches_of_its_own_choosing(tmp_path, capsys):
    (tmp_path / "scale.py").write_text(KERNEL)
    assert main(["explain", str(tmp_path / "scale.py")]) == 1
    assert "expected one program in" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--num-warps", "--num-stages"])
def test_options_of_a_kernel(tmp_path, capsys, option):
    (tmp_path / "scale.py").write_text(KERNEL)
    assert main(["explain", str(tmp_path / "scale.py"), "--why", option, "0"]) == 1
