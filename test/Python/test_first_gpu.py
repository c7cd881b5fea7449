# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""`weft doctor --gpu`: all that it runs on a GPU, run on a driver whose GPU is the simulator
(test/Unit/Runtime/SimulatedCuda.cpp). Its times mean nothing there."""

import dataclasses
import html.parser
import json
import os
import subprocess
import sys

import pytest
from doc_blocks import ROOT
from installed import build_folder
from test_pages import BROWSER, check, opened
from weft.first_gpu.cases import Case, LeftOut, Wrong
from weft.first_gpu.exactness import unfixed
from weft.first_gpu.page import page
from weft.first_gpu.peers import Shape
from weft.first_gpu.rows import Rows
from weft.first_gpu.sections import SECTIONS
from weft.first_gpu.worker import run_cases

sys.path.append(str(ROOT / "test" / "Simulator"))
from planted import NVCC

SIZES = ("--lengths", "32", "--heads", "64", "--tokens", "32", "--width", "128", "--rounds", "2")
#: kernels of memory.cu, one of them with a structure among its arguments; and one program of Weft's
ONLY = "transpose_padded,narrow_widths,generic_pointer,apply_affine,window attention"


def doctor(folder, *arguments, **environment):
    """`weft doctor --gpu`, its exit code and what it said."""
    given = {**os.environ, "WEFT_DEVICE": "", "WEFT_SIMULATOR_CHECKS": "none", "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "weft.cli", "doctor", "--gpu", "--out", folder, *arguments]
    done = subprocess.run(command, env=given | environment, capture_output=True, text=True, check=False, cwd=folder)
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def stand_in():
    build = build_folder()
    path = build and build / "test" / "Unit" / "Runtime" / "libWeftSimulatedCuda.so"
    if not path or not path.exists():
        pytest.skip("no libWeftSimulatedCuda.so: the build of the extension modules under test has no tests")
    return {"WEFT_LIBCUDA": str(path)}


def rows_of(folder):
    report = json.loads((folder / "report.json").read_text())
    found = {name: {tuple(row["name"]): row for row in each["rows"]} for name, each in report["sections"].items()}
    return report, found


class Text(html.parser.HTMLParser):
    """The text of a page, and the addresses that it would load."""

    def __init__(self, page):
        super().__init__()
        self.words, self.loaded = [], []
        self.feed(page)

    def handle_data(self, data):
        self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")
def test_the_whole_on_the_stand_in(stand_in, tmp_path):
    """Everything once; of the corpus one kernel whose results differ by a bit, and one that ends the process."""
    planted = {"WEFT_STANDIN_WRONG": "narrow_widths", "WEFT_STANDIN_ABORT": "generic_pointer"}
    code, said = doctor(tmp_path, "--only", ONLY, *SIZES, **stand_in, **planted)
    report, rows = rows_of(tmp_path)
    assert code == 1 and "Weft's cases failed" in said, said
    assert report["gpu"]["model"] == "Stand-in GPU" and report["versions"]["torch"] and report["date"]
    assert report["sections"]["tests"]["reason"] == ""

    tests = rows["tests"]["test_on_gpu.py",]
    assert tests["state"] == "done" and tests["passed"] >= 4, tests
    corpus = rows["corpus"]
    for mode in ("-O3", "-G"):
        assert corpus["nvcc", "memory-transpose_padded", mode]["agreement"] == "bit for bit"
        wrong = corpus["nvcc", "memory-narrow_widths", mode]
        assert wrong["state"] == "failed"
        assert "argument 1: expected the simulator's bits, but 1 of 100 elements differ" in wrong["reason"]
        ended = corpus["nvcc", "memory-generic_pointer", mode]
        assert ended["state"] == "failed" and "the process ended with SIGABRT" in ended["reason"]
        assert "a structure passed by value" in corpus["nvcc", "memory-apply_affine", mode]["reason"]
    program = corpus["Weft", "window attention, float16, D 64", "forward, backward"]
    assert program["state"] == "done" and "of the largest" in program["agreement"]

    for section, timed in (("attention", 6), ("mechanisms", 8)):
        ours = [row for name, row in rows[section].items() if name[-1] == "Weft"]
        assert len(ours) == timed and all(row["state"] == "done" for row in ours), ours
        assert all(row["ms"] > 0 and row["TFLOP/s"] > 0 and row["runs"] == 2 for row in ours)
        assert all(row["state"] != "failed" for row in rows[section].values())
    one_pass = {name[0]: row["state"] for name, row in rows["attention"].items() if name[-1] == "Weft, one pass"}
    assert one_pass == {"forward": "left out", "backward": "done"}
    peers = {name[-1]: row for name, row in rows["attention"].items() if not name[-1].startswith("Weft")}
    assert len(peers) == 7 and all(row["state"] == "left out" and row["reason"] for row in peers.values())

    text = Text((tmp_path / "report.html").read_text())
    words = " ".join(text.words)
    for part in ("Stand-in GPU", "TFLOP/s", "the process ended with SIGABRT", "say that the way works", "left out"):
        assert part in words, part
    assert [address for address in text.loaded if not address.startswith("data:")] == []

    # Again, without the faults: what was done stays as it is, what failed is run.
    done = {name: row for name, row in corpus.items() if row["state"] == "done"}
    code, said = doctor(tmp_path, "--sections", "corpus", "--only", ONLY, *SIZES, **stand_in)
    report, rows = rows_of(tmp_path)
    assert code == 0, said
    assert {name: rows["corpus"][name] for name in done} == done
    assert rows["corpus"]["nvcc", "memory-narrow_widths", "-O3"]["agreement"] == "bit for bit"
    assert set(report["sections"]) == {"tests", "corpus", "attention", "mechanisms"}


@pytest.mark.ecosystem
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_page_on_a_phone(tmp_path):
    name = ("forward", "D 64", "causal", "32,768")
    done = {"state": "done", "ours": True, "reason": "", "ms": 12.3456789, "TFLOP/s": 456.789, "relative error": 4e-3}
    failed = {"state": "failed", "ours": False, "reason": f"<b>{'a long reason ' * 20}</b>"}
    rows = [{"name": [*name, "Weft"], **done}, {"name": [*name, "FlashAttention 3"], **failed}]
    compared = {"agreement": "bit for bit", "largest difference": 0.0, "not fixed by PTX": "mma.sync" * 30}
    corpus = [{"name": ["nvcc", "memory", "-O3"], "state": "done", "ours": True, "reason": "", **compared}]
    sections = {
        each: dataclasses.asdict(SECTIONS[each]) | {"reason": "", "rows": found}
        for each, found in (("attention", rows), ("corpus", corpus))
    }
    gpu = {"model": "GPU <1>", "capability": "9.0", "multiprocessors": 132}
    about = {"date": "2026-11-22", "commit": "c" * 40, "gpu": gpu, "clocks": {}, "versions": {"torch": "2.13.0"}}
    text = page(about | {"verdict": "1 failed", "note": "A note", "sections": sections})
    assert "457" in text and "12.3" in text and "&lt;b&gt;a long reason" in text and "<b>" not in text
    (tmp_path / "page.html").write_text(text)
    check(opened(tmp_path / "page.html", tmp_path))


def test_without_a_gpu(tmp_path):
    code, said = doctor(tmp_path, WEFT_LIBCUDA="/nonexistent")
    assert code == 1 and "expected a GPU, but NVIDIA's driver gives none" in said
    assert not list(tmp_path.iterdir())
    for arguments, words in (
        (("--sections", "all"), "expected sections among tests, corpus"),
        (("--lengths", "1k"), "expected --lengths to be numbers"),
        (("--rounds", "0"), "expected --rounds of at least 1"),
    ):
        code, said = doctor(tmp_path, *arguments, WEFT_LIBCUDA="/nonexistent")
        assert code == 1 and words in said


def test_rows_stay(tmp_path):
    """Of the same identity what is done; a torn last line is not read; cases that raise are rows."""
    rows = Rows(tmp_path / "rows" / "a.jsonl")

    def raises(error):
        def run():
            raise error

        return run

    ran = []
    cases = [
        Case(("a",), lambda: ran.append(1) or {"ms": 1.0}),
        Case(("b",), raises(LeftOut("not here"))),
        Case(("c",), raises(Wrong("2, not 1"))),
        Case(("d",), raises(IndexError("lost")), ours=False),
    ]
    for _ in range(2):
        rows.start({"gpu": "A", "options": (1, 2)})
        run_cases(cases, rows)
        found = {row["name"][0]: row for row in rows.all()}
        assert {name: row["state"] for name, row in found.items()} == {
            "a": "done", "b": "left out", "c": "failed", "d": "failed"
        }  # fmt: skip
        assert found["c"]["reason"] == "2, not 1" and found["d"]["reason"].startswith(
            "IndexError at test_first_gpu.py:"
        )
    assert ran == [1] and rows.total == 4 and rows.begun() is None
    rows.begin(("e",), True)
    with rows.path.open("a") as stream:
        stream.write('{"name": ["e"], "sta')
    assert rows.begun()["begin"] == ["e"] and len(rows.all()) == 4
    assert not rows.are_of({"gpu": "B"})
    rows.start({"gpu": "B"})
    assert rows.all() == []


def kernel(body):
    return f".visible .entry k(\n.param .u64 k_0)\n{{\n{body}\n}}\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("add.f32 %f1, %f2, %f3;\nfma.rn.f32 %f1, %f2, %f3, %f1;", []),
        ("add.rn.f32 %f1, %f2, %f3;\nmul.rn.f32 %f1, %f2, %f3;", []),
        ("mul.f32 %f1, %f2, %f3;\n@%p1 add.ftz.f32 %f1, %f2, %f3;", ["mul.f32 and add.f32 may be fused"]),
        ("mul.f32 %f1, %f2, %f3;\nadd.f64 %d1, %d2, %d3;", []),
        ("mul.lo.s32 %r1, %r2, %r3;\nadd.s32 %r1, %r2, %r3;", []),
        ("ex2.approx.ftz.f32 %f1, %f2;\ndiv.full.f32 %f1, %f2, %f3;", ["div.full.f32", "ex2.approx.ftz.f32"]),
        ("sqrt.rn.f32 %f1, %f2;\ndiv.rn.f32 %f1, %f2, %f3;", []),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r1};", []),
        ("mma.sync.m16n8k16.f32.f16.f16.f32 {%f1};", ["mma.sync.m16n8k16.f32.f16.f16.f32"]),
        (
            "{ .reg .pred p; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}; }",
            ["wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"],
        ),
        (
            "{ .reg .pred p; @p tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, p; }",
            ["tcgen05.mma.cta_group::1.kind::f16"],
        ),
        ("{ .reg .pred p; @p tcgen05.mma.cta_group::1.kind::i8 [%r1], %d1, %d2, %r2, p; }", []),
        ("atom.global.add.u32 %r1, [%d1], 1;\nred.global.max.f32 [%d1], %f1;", []),
        ("red.relaxed.gpu.global.add.f32 [%d1], %f1;", ["red.relaxed.gpu.global.add.f32"]),
        ("mov.u64 %d1, %clock64;\nmov.u32 %r1, %tid.x;", ["%clock64"]),
    ],
)  # fmt: skip
def test_what_ptx_does_not_fix(body, found):
    other = ".visible .entry other(\n.param .u64 p)\n{\nsin.approx.f32 %f1, %f2;\n}\n"
    assert unfixed(other + kernel(body), "k") == found
    called = ".func (.param .b32 r) f(\n.param .b32 x)\n{\nlg2.approx.f32 %f1, %f2;\n}\n"
    assert unfixed(called + other + kernel(body), "k") == found
    assert "lg2.approx.f32" in unfixed(called + kernel(f"{body}\ncall (r), f, (x);"), "k")


def test_pairs():
    for pairs, length, window in (("full", 7, 3), ("causal", 7, 3), ("window", 7, 3), ("window", 3, 9)):
        seen = {"full": length, "causal": length, "window": window}[pairs]
        counted = sum(pairs == "full" or 0 <= n - m <= seen for n in range(length) for m in range(length))
        assert Shape(2, 3, length, 64, pairs, window).attending == counted
        assert Shape(2, 3, length, 64, pairs, window).operations == 4 * 2 * 3 * 64 * counted
