# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The types that atomics take, which are Triton's, and what those do that no atomic of PTX takes as they are."""

import numpy as np
import pytest
import torch
import weft.triton as triton
import weft.triton.language as tl
from weft.compiler.diagnostics import CompilationError

NARROW, SHORT = ("i1", "i8", "fp8e5"), ("i16", "u16", "fp16", "bf16")
WIDE = ("i32", "u32", "fp32", "i64", "u64", "fp64")
#: by operation, the types that Triton 3.9 compiles it for; for a load and a store those that both compile
TAKEN = {
    "add": {*WIDE, "fp16", "bf16"},
    **{kind: {*WIDE} for kind in ("max", "min", "and", "or", "xor", "xchg", "store")},
    **{kind: {*WIDE, *SHORT} for kind in ("cas", "load")},
    "poll": {"i16", "u16", "i32", "u32", "i64", "u64"},
}


@triton.jit
def operated(p, q, KIND: tl.constexpr):
    at = tl.arange(0, 32)
    v = tl.load(q + at)
    if KIND == "load":
        tl.store(q + at, tl.atomic_load(p + at))
    elif KIND == "store":
        tl.atomic_store(p + at, v)
    elif KIND == "poll":
        tl.store(q + at, tl.atomic_poll(p + at, v).to(q.dtype.element_ty))
    elif KIND == "cas":
        tl.store(q + at, tl.atomic_cas(p + at, v, v))
    elif KIND == "add":
        tl.store(q + at, tl.atomic_add(p + at, v))
    elif KIND == "max":
        tl.store(q + at, tl.atomic_max(p + at, v))
    elif KIND == "min":
        tl.store(q + at, tl.atomic_min(p + at, v))
    elif KIND == "and":
        tl.store(q + at, tl.atomic_and(p + at, v))
    elif KIND == "or":
        tl.store(q + at, tl.atomic_or(p + at, v))
    elif KIND == "xor":
        tl.store(q + at, tl.atomic_xor(p + at, v))
    else:
        tl.store(q + at, tl.atomic_xchg(p + at, v))


@pytest.mark.parametrize("kind", TAKEN)
def test_types_that_atomics_take(kind):
    for name in (*NARROW, *SHORT, *WIDE):
        if name in TAKEN[kind] or (kind == "poll" and name in ("fp16", "bf16", "fp32", "fp64")):  # more than Triton
            operated.compile(f"p:*{name}, q:*{name}, KIND='{kind}'", target="sm_90a")
            continue
        with pytest.raises(CompilationError, match=r"expected a type that 'atomic_\w+' takes, but got") as caught:
            operated.compile(f"p:*{name}, q:*{name}, KIND='{kind}'", target="sm_90a")
        assert "hold others in int32 or float32" in str(caught.value.remedy)


@pytest.mark.parametrize("kind", ["and", "or", "xor"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_of_floats_are_combined(kind, dtype, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(32).astype(dtype) for _ in range(2))
    bits = np.uint32 if dtype == np.float32 else np.uint64
    combine = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[kind]
    before, wanted = x.copy(), combine(x.view(bits), y.view(bits))
    operated[(1,)](x, y, kind)
    np.testing.assert_array_equal(x.view(bits), wanted)
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_loads_of_16_bits(dtype, seed):
    torch.manual_seed(seed)
    x = (torch.randn(32) * 100).to(dtype)
    before, y = x.clone(), torch.zeros_like(x)
    operated[(1,)](x, y, "load")
    assert torch.equal(y, before) and torch.equal(x, before)


@triton.jit
def handed_over(flag, x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    if tl.program_id(0) == 1:
        tl.store(x + at, at * 3)
        tl.atomic_cas(flag, 0, 7, sem="release")
        tl.atomic_cas(flag + 1 + at, 0, at.to(tl.int16) + 1, sem="release")
    else:
        tl.atomic_poll(flag, 7)
        found = tl.atomic_poll(flag + 1 + at, at.to(tl.int16) + 1)
        tl.store(y + at, tl.where(found, tl.load(x + at, volatile=True), -1))


def test_a_flag_of_16_bits_is_waited_for():
    flag, x, y = np.zeros(65, np.int16), np.zeros(64, np.int32), np.zeros(64, np.int32)
    handed_over[(2,)](flag, x, y, N=64)
    np.testing.assert_array_equal(y, 3 * np.arange(64))
