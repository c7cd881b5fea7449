# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's kernels for Hopper, forward and backward, as its package compiles them when the test runs, with no
GPU: TMA, rings on mbarriers, roles with setmaxnreg, turns by named barriers, wgmma with A in registers, reductions in
bulk. Right against float64, no finding.

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
from flash_attn.cute.interface import _flash_attn_bwd, _flash_attn_fwd

with FakeTensorMode(allow_non_fake_inputs=True):
    shape = (1, 256, 2, int(sys.argv[1]))
    q, k, v, out, dout = (torch.empty(shape, dtype=torch.bfloat16, device="cuda") for _ in range(5))
    if sys.argv[2] == "forward":
        _flash_attn_fwd(q, k, v, causal=False)
    else:
        lse = torch.empty(1, 2, 256, dtype=torch.float32, device="cuda")
        _flash_attn_bwd(q, k, v, out, dout, lse, causal=False)
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

    def ptx_of(dimension: int, pass_: str, kernel: str) -> str:
        """The PTX of one kernel of a pass, by a part of its file's name."""

        def make(place: Path) -> None:
            settings = {**os.environ, **SETTINGS, "CUTE_DSL_DUMP_DIR": str(place)}
            command = [PYTHON, "-c", COMPILE, str(dimension), pass_]
            result = subprocess.run(command, env=settings, cwd=place, capture_output=True, text=True, timeout=300)
            assert list(place.glob("*.ptx")), result.stderr[-2000:]

        return next(once(f"flash_attn_4.{pass_}.{dimension}", make).glob(f"*{kernel}*.ptx")).read_text()

    return ptx_of


def launch(ptx: str, grid: tuple[int, ...], args: list, seed: int) -> simulator.Report:
    """Launches the one kernel of a text with the arguments of its parameters in order; where None is, with zeros."""
    entry, declared = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)", ptx, re.S).groups()
    threads = int(re.search(r"\.reqntid (\d+)", ptx)[1])
    parameters = declared.split(",\n")
    sizes = [int(found[1]) if (found := re.search(r"\[(\d+)\]", each)) else 4 for each in parameters]
    given = [*args, *[None] * (len(sizes) - len(args))]
    whole = [np.void(bytes(size)) if each is None else each for each, size in zip(given, sizes, strict=True)]
    report = simulator.launch(ptx, entry, grid, threads, whole, shared=227 * 1024, seed=seed)
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


def drawn(shape: tuple[int, ...], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """bf16 of [batch, length, heads, dimension] as bits, and as float64 of [batch, heads, length, dimension]."""
    bits = to_bfloat(random.standard_normal(shape))
    return bits, wide(bits)


def wide(bits: np.ndarray) -> np.ndarray:
    return from_bfloat(bits).astype(np.float64).transpose(0, 2, 1, 3)


def boxed(bits: np.ndarray, rows: int):
    """A map of a tensor whose boxes are of so many rows and 64 columns."""
    return simulator.tensor_map(bits.transpose(0, 2, 1, 3), (1, 1, rows, 64), "128B", "bf16")


def sizes_of(shape: tuple[int, ...]) -> np.void:
    batch, length, heads, dimension = shape
    return np.void(np.array([length, dimension, heads, batch], np.int32).tobytes())


def described(array: np.ndarray) -> tuple:
    """A tensor as CuTe passes it: pointer, sizes, strides in elements but for the contiguous dimension's; `array` has
    the kernel's order of dimensions."""
    strides = [stride // array.itemsize for stride in array.strides]
    return (array, *map(np.int32, array.shape), *(np.int64(stride) for stride in strides if stride != 1))


@pytest.mark.parametrize(("dimension", "rows", "columns"), [(64, 192, 128), (128, 128, 128)])
def test_forward(dimension, rows, columns, compiled):
    ptx = compiled(dimension, "forward", "flash_fwd")
    assert "wgmma.mma_async" in ptx and "setmaxnreg" in ptx
    shape = batch, length, heads, _ = 1, 384, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v) = (drawn(shape, random) for _ in range(3))
    scores = wide_q @ wide_k.transpose(0, 1, 3, 2) / np.sqrt(dimension)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide_v
    for seed in (0, 3):
        o = np.full(shape, 0x7FC0, np.uint16)
        maps = [boxed(x, count) for x, count in ((q, rows), (k, columns), (v, columns), (o, rows))]
        args = [*[sizes_of(shape)] * 4, *maps, np.float32(np.log2(np.e) / np.sqrt(dimension))]
        report = launch(ptx, (-(-length // rows), heads, batch), args, seed)
        np.testing.assert_allclose(wide(o), expected, atol=1e-2)
        assert report.counters["ring_waits"] > 0


@pytest.mark.parametrize(("dimension", "length", "rows", "columns"), [(64, 384, 128, 128), (128, 400, 80, 128)])
def test_backward(dimension, length, rows, columns, compiled):
    ptx = compiled(dimension, "backward", "flash_bwd_sm90")
    assert "wgmma.mma_async" in ptx and "setmaxnreg" in ptx and "cp.reduce.async.bulk" in ptx
    convert = compiled(dimension, "backward", "flash_bwd_postprocess")
    shape = batch, _, heads, _ = 1, length, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v), (do, wide_do) = (drawn(shape, random) for _ in range(4))
    scale = 1 / np.sqrt(dimension)
    scores = wide_q @ wide_k.transpose(0, 1, 3, 2) * scale
    lse = np.log(np.exp(scores).sum(-1, keepdims=True))
    p = np.exp(scores - lse)
    dp = wide_do @ wide_v.transpose(0, 1, 3, 2)
    delta = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - delta) * scale
    expected = {"dq": ds @ wide_k, "dk": ds.transpose(0, 1, 3, 2) @ wide_q, "dv": p.transpose(0, 1, 3, 2) @ wide_do}
    log2 = (lse[..., 0] * np.log2(np.e)).astype(np.float32)
    sums = delta[..., 0].astype(np.float32)
    for seed in (0, 3):
        dq, dk, dv = (np.full(shape, 0x7FC0, np.uint16) for _ in range(3))
        partial = np.zeros((batch, heads, length * dimension), np.float32)
        loads = [boxed(x, count) for x, count in ((q, rows), (k, columns), (v, columns), (do, rows))]
        args = [*[sizes_of(shape)] * 6, *loads, boxed(dk, columns), boxed(dv, columns)]
        args += [described(x.transpose(2, 1, 0)) for x in (log2, sums, partial)]
        args += [None] * 4 + [np.float32(scale * np.log2(np.e)), np.float32(scale)]
        launch(ptx, (-(-length // columns), heads, batch), args, seed)
        args = [described(partial), described(dq), np.float32(scale)]
        launch(convert, (-(-length // rows), heads, batch), args, seed)
        for name, got in (("dq", dq), ("dk", dk), ("dv", dv)):
            most = np.abs(expected[name]).max()
            np.testing.assert_allclose(wide(got), expected[name], atol=1e-2 * most, err_msg=name)
