# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's forward kernel for Hopper, as its package compiles it when the test runs, with no GPU: TMA, rings
on mbarriers, roles with setmaxnreg, turns by named barriers, wgmma with A in registers. Right against float64, no
finding.

It needs flash-attn-4 4.0.0b36, which brings a compiler of 300 MB: in this Python, or in one that WEFT_FLASH_ATTN_PYTHON
names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import weft.simulator as simulator
from corpus.case import from_bfloat, to_bfloat

pytestmark = pytest.mark.ecosystem
PYTHON = os.environ.get("WEFT_FLASH_ATTN_PYTHON", sys.executable)
#: Compiles for fake tensors of a device that is not there, and leaves the PTX in a folder.
COMPILE = """
import sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

torch.cuda._lazy_init = lambda: None
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.get_device_capability = lambda *device: (9, 0)
from flash_attn.cute.interface import _flash_attn_fwd

with FakeTensorMode(allow_non_fake_inputs=True):
    q, k, v = (torch.empty(1, 256, 2, int(sys.argv[1]), dtype=torch.bfloat16, device="cuda") for _ in "qkv")
    _flash_attn_fwd(q, k, v, causal=False)
"""
SETTINGS = {
    "FLASH_ATTENTION_ARCH": "sm_90",
    "CUTE_DSL_ARCH": "sm_90a",
    "FLASH_ATTENTION_NUM_SMS": "132",
    "FLASH_ATTENTION_FAKE_TENSOR": "1",
    "CUTE_DSL_KEEP_PTX": "1",
}


@pytest.fixture(scope="session")
def compiled(once):
    known = subprocess.run([PYTHON, "-c", "import flash_attn.cute"], capture_output=True, text=True)
    if known.returncode:
        pytest.skip("no flash-attn-4 in this Python: pip install flash-attn-4==4.0.0b36")

    def ptx_of(dimension: int) -> str:
        def make(place: Path) -> None:
            settings = {**os.environ, **SETTINGS, "CUTE_DSL_DUMP_DIR": str(place)}
            command = [PYTHON, "-c", COMPILE, str(dimension)]
            result = subprocess.run(command, env=settings, cwd=place, capture_output=True, text=True, timeout=300)
            assert list(place.glob("*.ptx")), result.stderr[-2000:]

        return next(once(f"flash_attn_4.{dimension}", make).glob("*.ptx")).read_text()

    return ptx_of


def argument(parameter: str, lengths: np.void, maps: list, scale: np.float32):
    """The argument for a parameter of the kernel by its declaration: lengths, a map, the scale, or what is unused."""
    size = int(found[1]) if (found := re.search(r"\[(\d+)\]", parameter)) else 0
    if size == 128:
        return maps.pop(0)
    if size == 16:
        return lengths
    if ".f32" in parameter:
        return scale
    return np.void(bytes(size)) if size else np.uint32(0)


@pytest.mark.parametrize(("dimension", "rows", "columns"), [(64, 192, 128), (128, 128, 128)])
def test_forward(dimension, rows, columns, compiled):
    ptx = compiled(dimension)
    assert "wgmma.mma_async" in ptx and "setmaxnreg" in ptx
    entry, declared = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)", ptx, re.S).groups()
    threads = int(re.search(r"\.reqntid (\d+)", ptx)[1])
    batch, length, heads = 1, 384, 2
    random = np.random.default_rng(dimension)
    q, k, v = (to_bfloat(random.standard_normal((batch, length, heads, dimension))) for _ in range(3))
    wide = [from_bfloat(x).astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 1, 3, 2) / np.sqrt(dimension)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide[2]
    for seed in (0, 3):
        o = np.full(q.shape, 0x7FC0, np.uint16)
        maps = [
            simulator.tensor_map(x.transpose(0, 2, 1, 3), (1, 1, count, 64), "128B", "bf16")
            for x, count in ((q, rows), (k, columns), (v, columns), (o, rows))
        ]
        lengths = np.void(np.array([length, dimension, heads, batch], np.int32).tobytes())
        scale = np.float32(np.log2(np.e) / np.sqrt(dimension))
        args = [argument(each, lengths, maps, scale) for each in declared.split(",\n")]
        grid = (-(-length // rows), heads, batch)
        report = simulator.launch(ptx, entry, grid, threads, args, shared=226 * 1024, seed=seed)
        assert not report.findings, [str(finding) for finding in report.findings]
        got = from_bfloat(o).astype(np.float64).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(got, expected, atol=1e-2)
        assert report.counters["ring_waits"] > 0
