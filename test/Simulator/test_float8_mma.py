# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""mma.sync of 8-bit floats: sm_89 has it, with sums of about 14 bits; on sm_90 it is float16's, with float32's sums."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import weft.simulator as simulator
from snippets import HEADER, kernel

TYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def text_of(target: str, k: int, a: str, b: str) -> str:
    """A at words 0 of x, B at 128, C at 192, D at 320, each register's 32 lanes together."""
    left, right = k // 8, k // 16
    loads = "".join(f"ld.global.u32 %r{i + 1}, [%d1+{128 * i}];\n" for i in range(left))
    loads += "".join(f"ld.global.u32 %r{i + 11}, [%d1+{128 * i + 512}];\n" for i in range(right))
    loads += "".join(f"ld.global.f32 %f{i}, [%d1+{128 * i + 768}];\n" for i in range(4))
    C, D = ("{" + ", ".join(f"%f{first + i}" for i in range(4)) + "}" for first in (0, 4))
    A, B = ("{" + ", ".join(f"%r{first + i}" for i in range(count)) + "}" for first, count in ((1, left), (11, right)))
    product = f"mma.sync.aligned.m16n8k{k}.row.col.f32.{a}.{b}.f32 {D}, {A}, {B}, {C};\n"
    stores = "".join(f"st.global.f32 [%d1+{128 * i + 1280}], %f{i + 4};\n" for i in range(4))
    version = HEADER.replace("sm_80", target).replace("8.0", "8.7")
    return kernel(loads + product + stores).replace(HEADER, version)


@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("a, b", [("e4m3", "e4m3"), ("e5m2", "e4m3")])
@pytest.mark.parametrize("target", ["sm_89", "sm_90a"])
def test_product(target, k, a, b):
    print("seed", torch.seed())
    left, right = torch.randn(16, k).to(TYPES[a]), torch.randn(8, k).to(TYPES[b])
    sums = torch.randn(16, 8)
    x = np.zeros(448, np.uint32)
    lane = np.arange(32)
    row, word = lane // 4, lane % 4
    words = [np.ascontiguousarray(m.view(torch.uint8).numpy()).view(np.uint32) for m in (left, right)]
    for i in range(k // 8):
        x[32 * i : 32 * i + 32] = words[0][row + 8 * (i % 2), word + 4 * (i // 2)]
    for i in range(k // 16):
        x[128 + 32 * i : 160 + 32 * i] = words[1][row, word + 4 * i]
    places = [(row + 8 * (i // 2), 2 * word + i % 2) for i in range(4)]
    for i, place in enumerate(places):
        x[192 + 32 * i : 224 + 32 * i] = sums.numpy().view(np.uint32)[place]
    report = simulator.launch(text_of(target, k, a, b), "k", 1, 32, [x])
    assert not report.findings, [str(finding) for finding in report.findings]
    found = np.zeros((16, 8), np.float32)
    for i, place in enumerate(places):
        found[place] = x[320 + 32 * i : 352 + 32 * i].view(np.float32)
    exact = left.double() @ right.double().T + sums.double()
    size = (left.double().abs() @ right.double().abs().T + sums.double().abs()).numpy()
    error = np.abs(found - exact.numpy()) / size
    assert error.max() <= (k + 2) * 2.0**-12 if target == "sm_89" else k * 2.0**-23
    assert (error.max() > 2.0**-20) == (target == "sm_89")
    if target == "sm_89":  # 13 places behind the point are left
        assert not (found.view(np.uint32) & 0x3FF).any()


def test_refused():
    with pytest.raises(simulator.SimulatorError, match=r"m16n8k32.*on 'sm_80'"):
        simulator.launch(text_of("sm_80", 32, "e4m3", "e4m3"), "k", 1, 32, [np.zeros(448, np.uint32)])
