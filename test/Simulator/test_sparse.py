# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""mma.sp and mma.sp::ordered_metadata: every shape and type against float64, what metadata may not say, and which forms
there are.
"""

from __future__ import annotations

import re
import subprocess

import numpy as np
import pytest
import sparse_operands as operands
import weft.simulator as simulator
from snippets import HEADER, kernel, line_of
from weft.compiler.ptxas import find_tool

#: Type of A, type of B, k, type of C and D, how many selectors there are.
FORMS = [
    ("f16", "f16", 16, "f32", 4), ("f16", "f16", 16, "f16", 4), ("f16", "f16", 32, "f32", 2), ("f16", "f16", 32, "f16", 2),
    ("bf16", "bf16", 16, "f32", 4), ("bf16", "bf16", 32, "f32", 2), ("tf32", "tf32", 8, "f32", 4), ("tf32", "tf32", 16, "f32", 2),
    *[(a, b, k, "s32", count) for a in ("s8", "u8") for b in ("s8", "u8") for k, count in ((32, 2), (64, 1))],
    *[(a, b, k, "s32", count) for a in ("s4", "u4") for b in ("s4", "u4") for k, count in ((64, 2), (128, 1))],
    *[(a, b, 64, "f32", 1) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")],
]  # fmt: skip
ACCUMULATORS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}
LANES = np.arange(32)


def vector(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}"


def text_of(name: str, target: str, left: int, right: int, sums: int, selector: int = 0) -> str:
    """A at words 0 of x, B at 128, C at 256, metadata at 384, D at 448: each register's 32 lanes together."""
    loads = ""
    for first, count, at in ((1, left, 0), (5, right, 128), (10, sums, 256), (9, 1, 384)):
        loads += "".join(f"ld.global.b32 %r{first + i}, [%d1+{128 * i + 4 * at}];\n" for i in range(count))
    registers = f"{vector(15, sums)}, {vector(1, left)}, {vector(5, right)}, {vector(10, sums)}"
    stores = "".join(f"st.global.b32 [%d1+{128 * i + 4 * 448}], %r{15 + i};\n" for i in range(sums))
    text = kernel(loads + f"{name} {registers}, %r9, {selector};\n" + stores)
    return text.replace(HEADER, HEADER.replace("sm_80", target).replace("8.0", "8.7"))


def named(a: str, b: str, k: int, d: str, kind: str = "sp", more: str = "") -> str:
    return f"mma.{kind}.sync.aligned.m16n8k{k}.row.col{more}.{d}.{a}.{b}.{d}"


def places(sums: int, width: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of D by register and its parts."""
    row, column = LANES // 4, LANES % 4 * 2
    if width == 16:
        return [(row + 8 * (i // 2), column + i % 2) for i in range(4)]
    return [(row + 8 * (i // 2), column + i % 2) for i in range(sums)]


def run(form: tuple, *, kind: str, selector: int, target: str = "sm_80", more: str = "", seed: int = 0):
    """Launches one instruction on random operands; gives D, and what float64 makes of it."""
    a, b, k, d, _ = form
    random = np.random.default_rng(seed)
    left = operands.sparse(random, a, 16, k, ordered=kind != "sp")
    right, right_bytes = operands.encode(b, random.integers(0, 8, (8, k)))
    sums = random.integers(-4, 5, (16, 8)).astype(ACCUMULATORS[d])
    fragments = [operands.fragment(left.stored), operands.fragment(right_bytes)]
    width = sums.itemsize * 8
    count = 2 if width == 16 else 4
    at = places(count, width)
    x = np.zeros(576, np.uint32)
    x[: fragments[0].size], x[128 : 128 + fragments[1].size] = fragments[0].reshape(-1), fragments[1].reshape(-1)
    held = np.stack([sums[place] for place in at])  # [element, lane]
    if width == 16:
        held = np.ascontiguousarray(held.reshape(2, 2, 32).transpose(0, 2, 1))
    x[256 : 256 + 32 * count] = held.view(np.uint32).reshape(-1)
    x[384:416] = operands.metadata(random, a, left.indices, selector)
    text = text_of(named(a, b, k, d, kind, more), target, len(fragments[0]), len(fragments[1]), count, selector)
    report = simulator.launch(text, "k", 1, 32, [x])
    assert not report.findings, [str(finding) for finding in report.findings]
    assert report.counters["mma_macs"] == 16 * 8 * k // 2
    result = x[448 : 448 + 32 * count].view(sums.dtype)
    result = result.reshape(2, 32, 2).transpose(0, 2, 1).reshape(4, 32) if width == 16 else result.reshape(4, 32)
    found = np.zeros((16, 8))
    for i, place in enumerate(at):
        found[place] = result[i]
    return found, left.whole @ right.T + sums


@pytest.mark.parametrize("kind", ["sp", "sp::ordered_metadata"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form[:4])))
def test_products(form, kind):
    targets = ("sm_89", "sm_90a") if form[0].startswith("e") else ("sm_80",)
    for target in targets:
        for selector in range(form[4]):
            for seed in range(3):
                found, expected = run(form, kind=kind, selector=selector, target=target, seed=seed)
                np.testing.assert_array_equal(found, expected)


def test_saturation():
    x = np.zeros(576, np.uint32)
    x[:128], x[128:256] = 0x7F7F7F7F, 0x7F7F7F7F
    x[256:384], x[384:416] = 2**31 - 5, 0x44444444
    for more, expected in (("", (2**31 - 5 + 32 * 127 * 127) % 2**32), (".satfinite", 2**31 - 1)):
        simulator.launch(text_of(named("s8", "s8", 64, "s32", more=more), "sm_80", 4, 4, 4), "k", 1, 32, [x])
        assert (x[448:] == expected).all()


def test_what_is_not_stored_is_not_multiplied():
    """Infinities of B that no stored element meets reach no sum."""
    x = np.zeros(576, np.uint32)
    x[:64], x[384:416] = 0x3C003C00, 0x44444444  # ones at 0 and 1 of each four
    x[128:192] = np.where(LANES % 2, 0x7C007C00, 0x3C003C00)[None].repeat(2, 0).reshape(-1)
    x[256:384] = 0
    report = simulator.launch(text_of(named("f16", "f16", 16, "f32"), "sm_80", 2, 2, 4), "k", 1, 32, [x])
    assert not report.findings and (x[448:].view(np.float32) == 8).all()


@pytest.mark.parametrize(
    ("kind", "form", "bits", "message"),
    [
        ("sp", FORMS[0], 0b0101, r"0b0101.*elements from 4 on of row 9 of A: expected two indices that differ"),
        ("sp", FORMS[0], 0b0000, "two indices that differ"),
        ("sp::ordered_metadata", FORMS[0], 0b0001, r"0b0001.*two indices that ascend"),
        ("sp::ordered_metadata", FORMS[3], 0b1010, "two indices that ascend"),
        ("sp", FORMS[6], 0b1001, r"0b1001.*from 2 on of row 9 of A: expected 0b0100 or 0b1110"),
        ("sp", FORMS[8], 0b1111, r"from 20 on of row 1 of A"),
    ],
)
def test_metadata_that_are_none(kind, form, bits, message):
    a, b, k, d, _ = form
    left, right = k * operands.BITS[a] // 128, k * operands.BITS[a] // 128
    x = np.zeros(576, np.uint32)
    x[384:416] = 0x44444444
    x[384 + 4] ^= (0x4 ^ bits) << 20
    text = text_of(named(a, b, k, d, kind), "sm_80", left, right, 2 if d == "f16" else 4)
    (finding,) = simulator.launch(text, "k", 1, 32, [x]).findings
    assert finding.kind == "sparse-metadata" and finding.lane == 4 and finding.line == line_of(text, "mma.")
    assert re.search(message, finding.message), finding.message
    x[384 + 4] = 0x44444444
    assert not simulator.launch(text, "k", 1, 32, [x]).findings


def test_metadata_that_nothing_wrote():
    """They reach the rows that they are for; other lanes' registers may hold anything, or nothing."""
    text = text_of(named("f16", "f16", 16, "f32"), "sm_80", 2, 2, 4, 1)
    load = next(line for line in text.splitlines() if "ld.global.b32 %r9" in line)
    some = "and.b32 %r30, %r0, 3; setp.eq.u32 %p1, %r30, {}; @%p1 " + load
    x = np.zeros(576, np.uint32)
    x[384:416] = 0x44444444
    assert not simulator.launch(text.replace(load, some.format(1)), "k", 1, 32, [x]).findings
    report = simulator.launch(text.replace(load, some.format(2)), "k", 1, 32, [x])
    assert {finding.kind for finding in report.findings} == {"uninitialised"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("%r9, 0", "%r9, 4"), r"line \d+.*expected a sparsity selector of 0 to 3, the one of four threads"),
        (("%r9, 0", "%r9, %r8"), "expected a sparsity selector of 0 to 3"),
        ((", %r9, 0", ", %r9"), "expected the six operands d, a, b, c, metadata and selector, but got 5"),
        (("{%r1, %r2}", "{%r1, %r2, %r3, %r4}"), "expected 2 registers, but got 4"),
        (("m16n8k16", "m16n8k8"), r"m16n8k8.*not supported"),
        (("f16.f16.f32 ", "f16.bf16.f32 "), "expected"),
        (("mma.sp", "mma.sp::unordered"), "sp::unordered"),
        (("%r9, 0", "%d0, 0"), "expected a 32-bit register"),
    ],
)
def test_refused(change, message):
    text = text_of(named("f16", "f16", 16, "f32"), "sm_80", 2, 2, 4)
    assert change[0] in text
    with pytest.raises(simulator.SimulatorError, match=message):
        simulator.launch(text.replace(*change), "k", 1, 32, [np.zeros(576, np.uint32)])


def candidates():
    """Instructions of every pair of types of one width with every k and selector; the text and its operands' counts."""
    for a, bits in operands.BITS.items():
        for b in (each for each, width in operands.BITS.items() if width == bits):
            for k in (8, 16, 32, 64, 128):
                words = k * bits // 128
                if not 1 <= words <= 4 or k * bits < 256:
                    continue
                for d in ("f32", "f16", "s32"):
                    for selector in range(5):
                        yield named(a, b, k, d), words, words, 2 if d == "f16" else 4, selector


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a"])
def test_forms_are_those_that_ptxas_takes(target, tmp_path):
    """But for selectors that PTX leaves undefined, of which ptxas takes two of one form."""
    ptxas = find_tool("ptxas")
    if ptxas is None:
        pytest.skip("no ptxas on this machine")
    forms = list(candidates())
    bodies = [
        text_of(name, target, *rest).replace(".entry k(", f".entry k{i}(") for i, (name, *rest) in enumerate(forms)
    ]
    header = bodies[0][: bodies[0].index(".visible")]
    bodies = [body[len(header) :] for body in bodies]
    path = tmp_path / "forms.ptx"
    path.write_text(header + "".join(bodies))
    result = subprocess.run([ptxas, "-arch", target, "-o", "/dev/null", path], capture_output=True, text=True)
    wrong = {int(line) for line in re.findall(r"line (\d+); (?:error|fatal)", result.stderr)}
    lines = path.read_text().splitlines()
    at = [number for number, line in enumerate(lines, 1) if line.startswith("mma.")]
    taken = {i for i, number in enumerate(at) if number not in wrong}
    assert len(at) == len(forms) and taken
    decoded = set()
    for i, body in enumerate(bodies):
        try:
            simulator.launch(header + body, f"k{i}", 1, 32, [np.zeros(576, np.uint32)], checks="none")
            decoded.add(i)
        except simulator.SimulatorError as error:
            assert "line" in str(error)
    odd = {
        i for i, (name, *_, selector) in enumerate(forms) if "k32.row.col.f32.f16.f16" in name and selector in (2, 3)
    }
    assert [forms[i] for i in sorted(taken - decoded)] == [forms[i] for i in sorted(odd)] and not decoded - taken
