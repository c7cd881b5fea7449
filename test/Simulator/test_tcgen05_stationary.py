# Part of Weft. SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 -- instructions of one step stand on one line
"""tcgen05.mma.ws: of 32 and 64 rows the columns of D are divided among the lanes; against float64."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_kernels as tensor
import weft.simulator as simulator
from operand_images import along_k, along_rows, encode
from tensor_kernels import AFTER, alloc, commit, dealloc, kernel, wait
from test_tcgen05 import KINDS, a_in_tensor_memory, copy_in, read_out
from weft.compiler.ptxas import assemble, find_tool

SHAPES = [(m, n) for m in (32, 64, 128) for n in (64, 128, 256)]


def stationary(text: str) -> str:
    return text.replace("tcgen05.mma.cta_group", "tcgen05.mma.ws.cta_group")


def divided(rows: np.ndarray) -> np.ndarray:
    """D's rows as lanes have them (PTX ISA 9.7.16.10.5, layouts D, E and G): parts of the columns, one below another."""
    return np.concatenate(np.split(rows, 128 // len(rows), 1))


def product(kind, m, n, result="f32", *, majors="kk", span=128, in_tensor=False, seed=0, tail="", more=0, after=""):
    """D = A0 B0 + A1 B1; the expected D, what it is, and the report."""
    random = np.random.default_rng(m + n + seed)
    size = {"f16": 2, "bf16": 2, "tf32": 4}.get(kind, 1)
    k = 32 // size
    a, a_bits = encode(kind, random.integers(0, 8, (m, 2 * k)))
    b, b_bits = encode(kind, random.integers(0, 8, (n, 2 * k)))
    images = [
        (along_k if major == "k" else along_rows)(bits.reshape(-1, 64), span)
        for major, bits in zip(majors, (a_bits, b_bits), strict=True)
    ]
    base = -(-images[0].data.size // 1024) * 1024
    memory = np.zeros(base + -(-images[1].data.size // 16) * 16, np.uint8)
    memory[: images[0].data.size], memory[base : base + images[1].data.size] = images[0].data, images[1].data
    in_lanes = np.concatenate([a_bits.reshape(m, 64)] * (128 // m))
    columns = n * m // 128
    shape = tensor.instruction(m, n, kind, kind, result, turned=(majors[0] != "k", majors[1] != "k")) | more
    body = copy_in(memory.size) + alloc(512) + (a_in_tensor_memory(columns) if in_tensor else "")
    for step in range(2):
        left = f"[%t{5 + step}]" if in_tensor else images[0].descriptor(0, step, tensor.descriptor)
        right = images[1].descriptor(base, step, tensor.descriptor)
        body += f"setp.eq.u32 %p3, 1, {step};\n"
        body += stationary(tensor.multiply(KINDS.get(kind, "f8f6f4"), left, right, shape, tail=tail))
    body += after + commit() + wait(0, "%r3", "V") + AFTER + read_out(columns) + dealloc(512)
    text = kernel(body, parameters=".param .u64 x, .param .u64 y, .param .u64 z", shared=memory.size)
    y = np.full((128, columns), 0xFFFFFFFF, np.uint32)
    report = simulator.launch(text, "k", 1, 128, [memory, y, in_lanes], seed=seed)
    found = {"f16": y.astype(np.uint16).view(np.float16), "s32": y.view(np.int32)}.get(result, y.view(np.float32))
    return divided(a @ b.T), found.astype(np.float64), report, text, 2 * m * n * k


def right(*arguments, **options) -> str:
    expected, found, report, text, macs = product(*arguments, **options)
    assert not report.findings, [str(finding) for finding in report.findings]
    assert not report.advisories, [str(finding) for finding in report.advisories]
    np.testing.assert_array_equal(found, expected)
    assert report.counters["tcgen05_mma"] == 2 and report.counters["mma_macs"] == macs
    return text


@pytest.mark.parametrize("in_tensor", [False, True], ids=["shared", "tensor"])
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_shapes(m, n, in_tensor):
    """An A in tensor memory lies in the lanes of each part."""
    text = right("f16", m, n, in_tensor=in_tensor, seed=n % 3, tail=", 0" if m == 64 else "")
    if find_tool("ptxas"):
        assemble(text, "sm_100a")


@pytest.mark.parametrize(
    ("kind", "result"),
    [("bf16", "f32"), ("f16", "f16"), ("tf32", "f32"), ("e4m3", "f32"), ("e5m2", "f16"), ("s8", "s32")],
)
@pytest.mark.parametrize("m", [32, 64])
def test_types(kind, result, m):
    right(kind, m, 64, result)


@pytest.mark.parametrize("majors", ["kn", "mk", "mn"])
@pytest.mark.parametrize("span", [32, 128])
def test_majors(majors, span):
    right("bf16", 64, 128, majors=majors, span=span)


@pytest.mark.parametrize("collector", ["b0::fill", "b3::lastuse"])
def test_collectors_of_b(collector):
    assert f"collector::{collector}" in right_with_collector(collector)


def right_with_collector(collector: str) -> str:
    original = tensor.multiply
    tensor.multiply = lambda kind, *rest, **options: original(f"{kind}.collector::{collector}", *rest, **options)
    try:
        return right("f16", 64, 64)
    finally:
        tensor.multiply = original


OTHER = tensor.multiply("f16", tensor.descriptor(0, 16, 1024, 128), tensor.descriptor(8192, 16, 1024, 128), tensor.instruction(64, 64, "f16", "f16"))  # fmt: skip
#: What is wrong with a product of 64 rows and columns: the finding, and options of `product`.
PLANTS = {
    "rows": ("tensor-operands", {"more": 32 >> 4 << 24}),
    "columns": ("tensor-operands", {"more": 32 >> 3 << 17}),
    "reserved bits": ("tensor-operands", {"more": 1 << 29}),
    "shift of B": ("unsupported", {"more": 1 << 30}),
    "columns of zeros": ("unsupported", {"tail": ", 1"}),
    "D of a product whose B is not stationary": ("tensor-race", {"after": "mov.pred %p3, %p4;\n" + OTHER}),
}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_bug_is_found(name):
    kind, options = PLANTS[name]
    for seed in (0, 2):
        report = product("f16", 64, 64, seed=seed, **options)[2]
        assert kind in {finding.kind for finding in report.findings}, list(map(str, report.findings))


@pytest.mark.parametrize("form", ["mma.ws.cta_group::2.kind::f16", "mma.ws.cta_group::1.kind::mxf8f6f4"])
def test_forms_that_the_isa_does_not_have_are_refused(form):
    with pytest.raises(simulator.SimulatorError, match=r"expected"):
        simulator.launch(kernel(f"tcgen05.{form} [%t0], %d5, %d6, %t3, %p3;"), "k", 1, 128, [np.zeros(1, np.uint32)])
