# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches that are known again: in one step where nothing that tells kernels apart has changed, in no other case."""

import itertools
import random
import types

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from weft.compiler.known import Launches
from weft.runtime.descriptors import TensorDescriptor

FACTOR = wl.constexpr(2.0)


@weft.jit
def scale(x, y, n, factor, skip=None, BLOCK: wl.constexpr = 32, MODE: wl.constexpr = None):
    i = wl.arange(0, BLOCK)
    wl.store(y + i, wl.load(x + i, mask=i < n) * factor, mask=i < n)


@weft.jit
def by_global(x, y):
    i = wl.arange(0, 16)
    wl.store(y + i, wl.load(x + i) * FACTOR)


helpers = types.ModuleType("helpers")


@weft.jit
def twice(x):
    return x * 2


@weft.jit
def thrice(x):
    return x * 3


helpers.change = twice


@weft.jit
def by_module(x, y):
    i = wl.arange(0, 16)
    wl.store(y + i, helpers.change(wl.load(x + i)))


@pytest.fixture
def known(monkeypatch):
    """Whether each call was known."""
    found = []
    find = Launches.find

    def counted(self, args, keywords):
        launch = find(self, args, keywords)
        found.append(launch is not None)
        return launch

    monkeypatch.setattr(Launches, "find", counted)
    return found


def warm(call):
    for _ in range(3):
        call()


def test_calls_are_known_again(known):
    x, y = torch.arange(32.0), torch.zeros(32)
    warm(lambda: scale[(1,)](x, y, 32, 3.0))
    known.clear()
    for number in range(3):  # other tensors and numbers of the same kind
        x, y = torch.randn(40), torch.zeros(40)
        scale[(1,)](x, y, 16 * (number + 1) % 48, float(number))
        assert torch.equal(y[: 16 * (number + 1) % 48], x[: 16 * (number + 1) % 48] * number)
    assert known == [True] * 3
    known.clear()
    warm(lambda: scale[lambda at: (at["n"] // at["BLOCK"],)](x=x, y=y, n=32, factor=2.0, BLOCK=32, num_warps=1))
    assert known[-1] and torch.equal(y[:32], x[:32] * 2)


def variants():
    """Arguments of which each differs from the others of its place in what selects a kernel, or not at all."""
    base = torch.arange(48.0)
    views = [base, base[1:], base[4:], base.half(), base.half()[1:], base.to(torch.bfloat16), base.int()]
    arrays = [*views, base.numpy(), base.numpy()[1:], base.numpy().astype(np.float16), base.numpy().astype(np.int32)]
    numbers = [0, 1, 2, 16, 17, 31, 32, -16, 2**31, 2**31 + 16, 2**63, True, 1.0, np.int32(16), np.int64(1)]
    modes = [None, 1, True, 1.0, 0, False, 0.0, -0.0, "a", "b", 2**70, (1, 2), (1, True), float("nan"), np.int32(1)]
    return arrays, numbers, modes


def test_calls_that_differ_take_the_kernels_of_the_long_way(known, seed):
    """The kernel that a call takes is the one that ``warmup`` finds, which knows nothing of calls."""
    rng = random.Random(seed)
    arrays, numbers, modes = variants()
    calls = [(array, 16, 2.0, None) for array in arrays] + [(arrays[0], 16, 2.0, mode) for mode in modes]
    calls += [(arrays[0], number, 2.0, None) for number in numbers]
    calls += [(arrays[0], 16, factor, None) for factor in (1, 2, 16, True, np.float32(2))]
    for _, (x, n, factor, mode) in itertools.product(range(3), calls):
        y = torch.zeros(48) if rng.random() < 0.8 else torch.zeros(49)[1:]
        expected = scale.warmup(x, y, n, factor, MODE=mode, grid=(1,))
        given = {"MODE": mode, "num_warps": 4} if rng.random() < 0.5 else {"num_warps": 4, "MODE": mode}
        found = scale[(1,)](x, y, n, factor, **given)
        assert found.signature == expected.signature and found.ptx == expected.ptx, (x, n, factor, mode)
    assert known.count(True) > len(calls) // 2


def test_options_and_surroundings_tell_launches_apart(known, monkeypatch):
    x, y = torch.arange(32.0), torch.zeros(32)
    warm(lambda: scale[(1,)](x, y, 32, 3.0))
    assert known[-1]
    for warps in (1, 2, 4, 1):
        assert scale[(1,)](x, y, 32, 3.0, num_warps=warps).options.num_warps == warps
    assert scale[(1,)](x, y, 32, 3.0, num_stages=2).options.num_stages == 2
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    monkeypatch.setenv("WEFT_DEVICE", "simulator:sm_90a")
    assert scale[(1,)](x, y, 32, 3.0).target == "sm_90a"
    monkeypatch.delenv("WEFT_TARGET")
    monkeypatch.setenv("WEFT_DEVICE", "simulator")
    assert scale[(1,)](x, y, 32, 3.0).target != "sm_90a"
    monkeypatch.setattr(scale, "debug", True)
    assert scale[(1,)](x, y, 32, 3.0).options.debug


def test_what_a_kernel_reads_is_compared(known, monkeypatch):
    x, y = torch.arange(16.0), torch.zeros(16)
    for factor in (2.0, 3.0, 2.0, -1.0):
        monkeypatch.setitem(globals(), "FACTOR", wl.constexpr(factor))
        for _ in range(3):
            by_global[(1,)](x, y)
            assert torch.equal(y, x * factor)
        assert known[-1]


def test_what_is_refused_is_refused_once_a_call_is_known(known):
    x, y = torch.arange(32.0), torch.zeros(32)
    warm(lambda: scale[(1,)](x, y, 32, 3.0))
    assert known[-1]
    negated = torch.complex(x, x).conj().imag
    assert negated.is_neg()
    for wrong in (negated, x.to_sparse(), x.to("meta"), torch.nested.nested_tensor([x, x], layout=torch.jagged)):
        with pytest.raises((TypeError, ValueError, RuntimeError, weft.Error)):
            scale[(1,)](wrong, y, 32, 3.0)
    launch = lambda x: scale[(1,)](x, y, 32, 3.0) and x.sum()  # noqa: E731
    for transform in (torch.func.grad(launch), torch.vmap(launch)):
        with pytest.raises(TypeError, match=r"torch\.(func|vmap)"):
            transform(x if transform is not torch.vmap else x[None])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        with pytest.raises(TypeError, match="tangent"):
            scale[(1,)](dual, y, 32, 3.0)
    with pytest.raises(TypeError, match="expected an argument for 'factor'"):
        scale[(1,)](x, y, 32)
    with pytest.raises(TypeError, match="given twice"):
        scale[(1,)](x, y, 32, 3.0, n=3)
    assert not any(known[-7:])  # under a transform none is looked for


def test_defaults_of_arguments(known):
    x, y = torch.arange(32.0), torch.zeros(32)
    for block in (32, 16, 32):
        warm(lambda block=block: scale[(1,)](x, y.zero_(), 32, 3.0, BLOCK=block))
        assert torch.equal(y[:block], 3 * x[:block]) and not y[block:].any() and known[-1]
    warm(lambda: scale[(1,)](x, y.zero_(), 32, 3.0))
    assert torch.equal(y, 3 * x)


@weft.jit
def copy_block(x, y, row, factor, MODE: wl.constexpr = None):
    y.store([row, 0], x.load([row, 0]) * factor)


def test_attributes_of_modules_are_variables(known, monkeypatch):
    x, y = torch.arange(16.0), torch.zeros(16)
    warm(lambda: by_module[(1,)](x, y))
    assert known[-1] and torch.equal(y, x * 2)
    monkeypatch.setattr(helpers, "change", thrice)
    by_module[(1,)](x, y)
    assert not known[-1] and torch.equal(y, x * 3)
    by_module[(1,)](x, y)
    by_module[(1,)](x, y)
    assert known[-1]
    monkeypatch.setattr(helpers, "load", 1, raising=False)  # a name that the kernel has, of another object
    by_module[(1,)](x, y)
    assert not known[-1] and torch.equal(y, x * 3)


def described(array, block=(8, 8), padding="zero"):
    return TensorDescriptor.from_tensor(array, list(block), padding)


def test_calls_with_descriptors_are_known_again(known):
    x, y = torch.arange(256.0).reshape(16, 16), torch.zeros(16, 16)
    warm(lambda: copy_block[(1,)](described(x), described(y), 0, 2.0))
    known.clear()
    for number in range(3):
        x, y = torch.randn(16, 16), torch.zeros(16, 16)
        copy_block[(1,)](described(x), described(y), 0, float(number))
        assert torch.equal(y[:8, :8], x[:8, :8] * number) and not y[8:].any()
    assert known == [False, True] * 3  # by their parts
    warm(lambda: copy_block[(1,)](y=described(y), x=described(x), row=8, factor=1.0))
    assert known[-1] and torch.equal(y[8:, :8], x[8:, :8])


def test_descriptors_that_differ_take_the_kernels_of_the_long_way(known, seed):
    rng = random.Random(seed)
    base = torch.arange(20.0 * 64).reshape(20, 64)
    arrays = [base, base[:, :48], base[:, 1:], base[:17], base[:, ::2], base.half(), base.half()[:, 4:], base.int()]
    calls = [(described(array), 0, None) for array in arrays]
    calls += [(described(base, block), 0, None) for block in ((8, 8), (4, 8), (8, 16))]
    calls += [(described(base, padding="nan"), 0, None)]
    calls += [(described(base), row, mode) for row in (0, 1, 16) for mode in (None, 1, True, 1.0, (1, 2), "a")]
    for _, (x, row, mode) in itertools.product(range(4), calls):
        y = described(torch.zeros(20, 64, dtype=x.base.dtype), x.block_shape)
        expected = copy_block.warmup(x, y, row, 2, MODE=mode, grid=(1,))
        found = copy_block[(1,)](x, y, row, 2, **({"MODE": mode} if mode is not None or rng.random() < 0.5 else {}))
        assert found.signature == expected.signature and found.ptx == expected.ptx, (x, row, mode)
    assert known.count(True) > len(calls)
