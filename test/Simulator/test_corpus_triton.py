# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that Triton compiled for sm_80, without a GPU, held to their references with every check on."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest
from test_corpus import check

triton = pytest.importorskip("triton", reason="no Triton on this machine")
from corpus.triton_cases import CASES, TritonCase  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402


def compile_case(case: TritonCase):
    """The kernel for sm_80; buffers are aligned to 16 bytes, sizes may be anything."""
    signature = {name: case.types.get(name, "constexpr") for name in case.kernel.arg_names}
    constants = {(case.kernel.arg_names.index(name),): value for name, value in case.constants.items()}
    divisible = {
        (case.kernel.arg_names.index(name),): [["tt.divisibility", 16]]
        for name, type in case.types.items()
        if type.startswith("*")
    }
    source = ASTSource(case.kernel, signature, constants, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 80, 32), options=dict(case.options))


def parameter_count(ptx: str) -> int:
    """How many parameters the entry has: Triton adds scratch buffers of its own."""
    return len(re.findall(r"\.param", re.search(r"\.entry\s+\w+\s*\((.*?)\)", ptx, re.S).group(1)))


@pytest.mark.parametrize("seed", [0, 12345], ids=["ordered", "interleaved"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_triton(case: TritonCase, seed: int) -> None:
    kernel = compile_case(case)
    ptx = kernel.asm["ptx"]
    launch = case.prepare(np.random.default_rng(zlib.crc32(case.id.encode())))
    launch.args += [np.uint64(0)] * (parameter_count(ptx) - len(launch.args))
    launch.shared = kernel.metadata.shared
    check(ptx, kernel.metadata.name, launch, seed=seed)
