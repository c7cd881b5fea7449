# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tile kernels beside Triton's on one source, by benchmarks/beside_triton.py: right, and no more than Triton takes."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest
from weft.compiler.ptxas import find_tool

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton"),
    pytest.mark.skipif(not (find_tool("ptxas") and find_tool("cuobjdump")), reason="needs ptxas and cuobjdump"),
]
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "beside_triton.py"
#: at most this times Triton's warp instructions; and of the hottest loop, for each matrix instruction
MOST = {
    "matmul 128x128x32 NT f16": (0.67, 0.73),
    "persistent matmul f16": (0.66, 0.70),
    "int8 matmul, columns of B contiguous": (0.34, 0.25),
    "int8 matmul, columns of A and rows of B contiguous": (0.36, 0.28),
    "attention D 64 causal f16": (0.88, 0.86),
    "states of chunks f16": (0.62, 0.66),
    "softmax backward f16, 4 rows a program": (0.86, None),
    "merging of attention's parts f32": (0.32, None),
    "add bf16": (0.42, None),
    "fp8 e5m2 matmul": (0.71, 0.79),
    "sort of rows f32": (0.92, None),
    "cumulative sums of rows f32": (0.72, None),
    "transpose f16": (0.83, None),
    "transpose f32": (0.58, None),
    "transpose int8": (0.42, None),
    "gather within rows f32": (0.48, None),
    "rotary embedding of pairs, loaded twice, f16": (0.86, None),
    "sums of sorted segments f32": (0.92, None),
    "selective state space, step by step, f16": (0.91, None),
    "products of rows with rows, unaligned, bf16": (0.87, 0.78),
    "norms of heads by 64-bit strides f16": (1.0, None),
    "chunks of a decaying sum, all of it float32, bf16": (0.62, None),
    "two numbers of 4 bits a byte, with scales of groups, to f32": (0.98, None),
    "merging of parts of which some are empty, stages asked for, f32": (0.95, None),
}


#: the same for sm_90a, whose warpgroups multiply; and whether no figure is above Triton's
HOPPER = {
    "matmul 128x128x32 NT f16": (0.76, 0.82, True),
    "matmul tf32": (0.92, 1.04, False),  # rounded, where Triton truncates
    "products of rows with rows, unaligned, bf16": (0.75, 0.61, True),
    "int8 matmul, rows of B contiguous": (0.80, 0.64, True),  # by instructions of single warps
    "attention D 64 causal f16": (0.90, 0.90, True),
    "matmul f32 in three tf32": (1.0, 0.85, True),
    "e4m3 matmul with scales of blocks, 7 rows": (0.90, 1.08, False),  # scales through shared memory, not in each warp
}

#: by target, those whose instructions older targets have not
OTHERS = {
    "sm_89": ["e4m3 matmul 64x64x64", "e4m3 matmul 64x64x64, rows of B contiguous"],
    "sm_120": ["e4m3 matmul 64x64x64", "softmax f32", "fp8 e5m2 matmul"],
}

#: those that take longest, or are much like others
SLOW = {
    "persistent matmul f16",
    "states of chunks f16",
    "fp8 e5m2 matmul",
    "sort of rows f32",
    "cumulative sums of rows f32",
    "selective state space, step by step, f16",
    "softmax backward f16, 4 rows a program",
}


def measured(folder, names, target="sm_80"):
    pattern = "^(" + "|".join(map(re.escape, names)) + ")$"
    out = folder / "rows.json"
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", pattern, "--json", out, "--processes", "1", "--target", target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert out.exists(), done.stdout + done.stderr
    return {row["name"]: row for row in json.loads(out.read_text())}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The figures of a kernel, measured with all others that are as slow."""
    known = {}

    def row(name):
        alike = [each for each in MOST if (each in SLOW) == (name in SLOW)]
        if name not in known:
            known.update(measured(tmp_path_factory.mktemp("beside"), alike))
        return known[name]

    return row


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=pytest.mark.slow) if each in SLOW else each for each in MOST]
)
def test_is_right_and_takes_no_more(rows, name):
    row = rows(name)
    assert not row["error"] and not row["peer_error"] and not row["findings"], row
    assert max(row["weft"]["off"].values()) <= 1
    assert max(row["triton"]["off"].values()) <= 1, "the judge is at fault, or Triton"
    ours, theirs = row["weft"], row["triton"]
    most, of_loop = MOST[name]
    assert ours["instructions"] <= most * theirs["instructions"]
    if of_loop is not None:
        assert ours["per_product"] <= of_loop * theirs["per_product"]
    for key in ("read", "written", "wavefronts", "spill_bytes", "exposed_loads"):
        assert ours[key] <= theirs[key], key


@pytest.fixture(scope="module")
def hopper_rows(tmp_path_factory):
    return measured(tmp_path_factory.mktemp("hopper"), list(HOPPER), "sm_90a")


@pytest.mark.parametrize("name", HOPPER)
def test_is_right_on_hopper(hopper_rows, name):
    row = hopper_rows[name]
    assert not row["error"] and not row["peer_error"] and not row["findings"], row
    assert max(row["weft"]["off"].values()) <= 1
    ours, theirs = row["weft"], row["triton"]
    most, of_loop, is_below = HOPPER[name]
    assert ours["instructions"] <= most * theirs["instructions"]
    assert ours["per_product"] <= of_loop * theirs["per_product"]
    for key in ("read", "written", "wavefronts", "spill_bytes", "exposed_loads"):
        assert ours[key] <= theirs[key] or not is_below, key


#: of which these figures are at most Triton's: what indices address is loaded ahead; vectors come as what they meet
#: wants them, exchanges that do not wait for one another share a barrier, and operands of multiply-adds are read a few
#: at a time; one warp copies what all would load, and operands of 8 bits are read as they lie; truths are counted under
#: predicates, and rows that lie far apart wait for nobody; what TF32 leaves of float32 is multiplied step by step;
#: what a loop adds up crosses lanes behind it, short loops are their iterations, products of widened numbers are
#: of 32 bits, and blocks of a row's columns do not meet the next row's; lanes go on where a run of memory ends, what
#: is stored otherwise than it is loaded is exchanged once, one thread waits for nobody, nor do blocks of rows in a
#: loop, and who asks for iterations in flight gets one
AT_MOST = {
    "GPTQ matmul, groups in any order, 5 rows f16": ("exposed_loads", "registers", "barriers", "read"),
    "attention of int8 scores D 64 f16": ("exposed_loads", "spill_bytes"),
    "states passed from chunk to chunk f32": ("barriers", "instructions", "read"),
    "convolution of tokens, 96 channels of 128, f32": ("barriers", "read"),
    "blocks rounded to int8 and turned bf16": ("instructions", "wavefronts", "barriers", "read"),
    "attention to pages of 16 rows, D 256 bf16": ("exposed_loads", "instructions", "wavefronts", "barriers"),
    "a step of a selective state space f32": ("barriers", "wavefronts", "read"),
    "what is kept of rows f32": ("instructions", "wavefronts", "barriers", "read", "written"),
    "batched product of small odd matrices f16": ("instructions", "per_product", "registers", "barriers"),
    "sums of powers of rows f32": ("instructions",),
    "AWQ matmul, 8 rows f16": ("instructions", "read", "wavefronts", "barriers", "registers"),
    "W4A16 matmul, 64 rows": ("instructions", "read", "wavefronts", "barriers", "registers"),
    "matmul of two numbers of 4 bits a byte, joined, 16 rows f16": (
        "instructions",
        "wavefronts",
        "barriers",
        "registers",
    ),
    "matmul of two numbers of 4 bits a byte, joined, 32 rows f16": ("instructions", "wavefronts", "barriers"),
    "matmul of bf16 and microscaled e2m1, 64 rows": ("instructions", "barriers", "registers"),
    "matmul of bf16 and microscaled e2m1, 16 rows": ("read", "wavefronts", "barriers", "registers"),
    "dot_scaled of bf16 and e2m1": ("instructions", "wavefronts", "barriers", "registers"),
    "W8A16 matmul, 16 rows f16": ("instructions", "read", "wavefronts", "barriers", "registers"),
    "the 50 likeliest of 4 000 kept f16": ("instructions", "wavefronts", "barriers"),
    "the likeliest 0.9 of 512 kept f32": ("instructions", "wavefronts", "barriers"),
    "weights of 4 bits unpacked f16": ("instructions", "barriers"),
    "matmul 64x64x64 TN f32 by multiply-adds": ("instructions", "wavefronts", "registers", "spill_bytes", "barriers"),
    "matmul f32 in three tf32": ("instructions", "per_product", "registers", "spill_bytes"),
    "forces between points of a plane f32": ("instructions", "read", "written", "barriers", "registers"),
    "means of the largest by counts of bins f32": ("instructions", "read", "barriers"),
    "sums over neighbours by a table f32": ("instructions", "read", "barriers", "registers"),
    "a sigmoid gate backward, rows in blocks bf16": ("instructions", "barriers", "registers"),
    "prompts behind a cache of pages, eight channels a key together, f16": ("instructions", "read", "wavefronts"),
    "steps of a state space by chunks, heads last, and their sums f16": ("instructions", "wavefronts", "barriers"),
    "tokens counted by expert, one by one, i32": ("instructions", "read", "barriers"),
    "gated silu of experts' tokens to int8 with scales of groups, stages asked for, bf16": (
        "instructions",
        "exposed_loads",
    ),
    "group norm and silu, channels last, groups of 10, f16": ("read", "barriers"),
    "sums of a long row, with and without its own element, f32": ("read", "written", "barriers"),
    "tokens placed by expert in tiles of 16, by sums of ones, i32": (
        "instructions",
        "written",
        "wavefronts",
        "barriers",
    ),
    "statistics of a batch's channels, three values merged at once, f16": (
        "instructions",
        "wavefronts",
        "barriers",
        "registers",
    ),
    "five steps of Newton-Schulz of 32x64 bf16": ("instructions", "wavefronts", "barriers", "registers"),
    "decoding of 4 shared heads together by batched products, D 32, f16": ("instructions", "wavefronts", "barriers"),
    "boxes that overlap, 64 bits a word, f32": ("instructions", "written", "wavefronts", "barriers", "registers"),
    "sums of a long row by tickets, looking back, i32": ("read", "written", "barriers", "exposed_loads"),
    "attention to listed blocks, whole or masked, by a while loop, D 64, f16": (
        "instructions",
        "barriers",
        "exposed_loads",
    ),
    "norms of tensors by their addresses, clipped in place, f16": ("instructions", "read"),
}


def test_waits_for_no_more(tmp_path):
    for name, row in measured(tmp_path, AT_MOST).items():
        assert not row["error"] and not row["peer_error"] and not row["findings"], row
        assert max(row["weft"]["off"].values()) <= 1
        for key in AT_MOST[name]:
            assert row["weft"][key] <= row["triton"][key], (name, key)


@pytest.mark.parametrize("target", OTHERS)
def test_is_right_on_gpus_of_ones_own(tmp_path, target):
    """Products of 8-bit floats by their own instructions; Triton's pairs of f32 and maxima of three run, too."""
    for row in measured(tmp_path, OTHERS[target], target).values():
        assert not row["error"] and not row["peer_error"] and not row["findings"], row
        assert max(row["weft"]["off"].values()) <= 1
        for key in ("instructions", "read", "written", "wavefronts", "barriers", "spill_bytes", "exposed_loads"):
            assert row["weft"][key] <= row["triton"][key], (row["name"], key)


def test_products_of_warpgroups_count_for_a_warp(monkeypatch):
    """m64n256k16 is 32 m16n8k16 for each of four warps."""
    counted = load_counted(monkeypatch)
    listing = importlib.import_module("weft.cycles.listing")

    def instruction(name, shape):
        return listing.Instruction(0, "", name, (shape,), "R24, gdesc[UR4], R24", None)

    assert counted._macs(instruction("HGMMA", "64x256x16")) == 32 * counted.MATRIX_MACS
    assert counted._macs(instruction("HMMA", "16816")) == counted.MATRIX_MACS
    assert counted._macs(instruction("IADD3", "X")) == 0


def load_counted(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module("tile_kernels.counted")


@pytest.mark.parametrize(
    "body, waits",
    [
        (["ld.global.b32 %r1, [%rd1];", "add.s32 %r2, %r1, 1;"], True),
        (["ld.global.b32 %r1, [%rd1];", "mov.b32 %r2, %r1;", "add.s32 %r3, %r2, 1;"], True),
        (["add.s32 %r2, %r1, 1;", "ld.global.b32 %r1, [%rd1];"], False),
        (["ld.global.b32 %r1, [%rd1];", "mma.sync.aligned.m16n8k16 {%f1};", "add.s32 %r2, %r1, 1;"], False),
        (["ld.global.v2.b32 {%r1, %r4}, [%rd1];", "add.s32 %r2, %r4, 1;"], True),
    ],
)
def test_loads_that_a_loop_waits_for(body, waits, monkeypatch):
    counted = load_counted(monkeypatch)
    text = "\n".join(["$L__1:", *body, "@%p1 bra $L__1;"])
    assert counted.exposed_loads(text) == waits
    assert counted.exposed_loads("\n".join(body)) == 0


@pytest.mark.parametrize("enters, waits", [("$L__2", True), ("$L__1", False)])
def test_an_iteration_begins_where_its_loop_is_entered(enters, waits, monkeypatch):
    """Code whose loop begins in its middle: what stands first uses the value in the same iteration."""
    lines = [f"bra.uni {enters};", "$L__1:", "add.s32 %r2, %r1, 1;", "$L__2:", "ld.global.b32 %r1, [%rd1];"]
    assert load_counted(monkeypatch).exposed_loads("\n".join([*lines, "@%p1 bra $L__1;"])) == waits
