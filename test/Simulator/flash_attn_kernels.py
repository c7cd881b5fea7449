# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's kernels as its package compiles them when a test runs, with no GPU, and how they are launched.

It needs flash-attn-4 4.0.0b36, which brings a compiler of 300 MB: in this Python, or in one that WEFT_FLASH_ATTN_PYTHON
names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import weft.simulator as simulator
from corpus.case import from_bfloat, to_bfloat

PYTHON = os.environ.get("WEFT_FLASH_ATTN_PYTHON", sys.executable)
#: Compiles for fake tensors of a device that is not there, and leaves the PTX in a folder.
COMPILE = """
import sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

torch.cuda._lazy_init = lambda: None
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.get_device_capability = lambda *device: (int(sys.argv[4]) // 10, 0)
import cutlass
from flash_attn.cute.interface import _flash_attn_bwd, _flash_attn_fwd


class Info:
    def __init__(self, *device):
        pass

    def get_device_multiprocessor_count(self):
        return 132


cutlass.utils.HardwareInfo = Info

with FakeTensorMode(allow_non_fake_inputs=True):
    shape = (1, int(sys.argv[5]), 2, int(sys.argv[1]))
    q, k, v, out, dout = (torch.empty(shape, dtype=torch.bfloat16, device="cuda") for _ in range(5))
    if sys.argv[2] == "forward":
        _flash_attn_fwd(q, k, v, causal=sys.argv[3] == "causal")
    else:
        lse = torch.empty(1, 2, shape[1], dtype=torch.float32, device="cuda")
        _flash_attn_bwd(q, k, v, out, dout, lse, causal=False)
"""


def settings_of(capability: int) -> dict[str, str]:
    return {
        "FLASH_ATTENTION_ARCH": f"sm_{capability}",
        "CUTE_DSL_ARCH": f"sm_{capability}a",
        "FLASH_ATTENTION_NUM_SMS": "132",
        "FLASH_ATTENTION_FAKE_TENSOR": "1",
        "CUTE_DSL_KEEP_PTX": "1",
    }


def compiler(once, capability: int) -> Callable[..., str]:
    """What gives the PTX of one kernel of a pass, by a part of its file's name."""
    known = subprocess.run([PYTHON, "-c", "import flash_attn.cute"], capture_output=True, text=True)
    if known.returncode:
        pytest.skip("no flash-attn-4 in this Python: pip install flash-attn-4==4.0.0b36")

    def ptx_of(dimension: int, pass_: str, kernel: str, mask: str = "full") -> str:
        def make(place: Path) -> None:
            settings = {**os.environ, **settings_of(capability), "CUTE_DSL_DUMP_DIR": str(place)}
            command = [
                PYTHON,
                "-c",
                COMPILE,
                str(dimension),
                pass_,
                mask,
                str(capability),
                "512" if capability == 100 else "256",
            ]
            result = subprocess.run(command, env=settings, cwd=place, capture_output=True, text=True, timeout=300)
            assert list(place.glob("*.ptx")), result.stderr[-2000:]

        name = f"flash_attn_4.{capability}.{pass_}.{mask}.{dimension}"
        return next(once(name, make).glob(f"*{kernel}*.ptx")).read_text()

    return ptx_of


def launch(
    ptx: str, grid: tuple[int, ...], args: list, seed: int, cluster: int = 1, known: str = "(?!)"
) -> simulator.Report:
    """Launches the one kernel of a text with the arguments of its parameters in order; where None is, with zeros. What
    `known` is found in may be found."""
    entry, declared = re.search(r"\.entry\s+(\w+)\s*\((.*?)\)", ptx, re.S).groups()
    threads = int(re.search(r"\.reqntid (\d+)", ptx)[1])
    parameters = declared.split(",\n")
    sizes = [int(found[1]) if (found := re.search(r"\[(\d+)\]", each)) else 4 for each in parameters]
    given = [*args, *[None] * (len(sizes) - len(args))]
    whole = [np.void(bytes(size)) if each is None else each for each, size in zip(given, sizes, strict=True)]
    report = simulator.launch(ptx, entry, grid, threads, whole, shared=227 * 1024, seed=seed, cluster=cluster)
    found = [str(finding) for finding in report.findings if not re.search(known, str(finding))]
    assert not found, found
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


def gradients(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, do: np.ndarray, scale: float
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """({"dq", "dk", "dv"}, lse, delta) of a full attention [batch, heads, length, channels] in float64; lse and delta
    [batch, heads, length, 1]."""
    scores = q @ k.transpose(0, 1, 3, 2) * scale
    lse = np.log(np.exp(scores).sum(-1, keepdims=True))
    p = np.exp(scores - lse)
    dp = do @ v.transpose(0, 1, 3, 2)
    delta = (p * dp).sum(-1, keepdims=True)
    ds = p * (dp - delta) * scale
    return {"dq": ds @ k, "dk": ds.transpose(0, 1, 3, 2) @ q, "dv": p.transpose(0, 1, 3, 2) @ do}, lse, delta
