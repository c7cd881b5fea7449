# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs run: from memory and from a library on disk, on torch tensors and NumPy arrays."""

import numpy as np
import pytest
import torch
import weft
from program_samples import compiled
from weft import runtime
from weft.runtime.program import describe


@pytest.fixture(scope="module")
def made():
    return compiled()


@pytest.fixture(scope="module")
def norm(made):
    ptx, info = made
    return runtime.Program.from_compiled(info, ptx)


def sample(seed, shape=(2, 5, 64)):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(np.float16), rng.standard_normal(64).astype(np.float32)


def check(y, total, x, gain):
    """Against the formula in float64: y rounds once to fp16, the total is a sum of 64 · N float32."""
    exact = 2 * np.asarray(x, np.float64) * np.asarray(gain, np.float64)
    assert np.abs(np.asarray(y, np.float64) - exact).max(initial=0) <= 2**-11 * np.abs(exact).max(initial=0) + 1e-7
    assert np.abs(np.asarray(total) - exact.sum((1, 2))).max(initial=0) <= 1e-4


def test_numpy_and_torch(norm, seed):
    x, gain = sample(seed)
    y, total = norm(x, gain, poison=True)
    assert (type(y), y.dtype, y.shape, total.shape) == (np.ndarray, np.float16, (2, 5, 64), (2,))
    check(y, total, x, gain)
    y, total = norm(torch.from_numpy(x), gain=torch.from_numpy(gain), poison=True)
    assert (type(y), y.dtype) == (torch.Tensor, torch.float16)
    check(y.numpy(), total.numpy(), x, gain)


def test_strides_of_inputs_and_outputs(norm, seed):
    x, gain = sample(seed, (5, 2, 128))
    x = x.transpose(1, 0, 2)[:, ::2, 64:]
    y = np.full((3, 2, 80), np.nan, np.float16).transpose(1, 0, 2)[:, :, :64]
    total = np.full(2, np.nan, np.float32)
    given = norm.run((x, gain), (y, total))
    assert given[0] is y
    assert given[1] is total
    check(y, total, x, gain)


@pytest.mark.parametrize("shape", [(0, 5, 64), (2, 0, 64), (0, 0, 64), (1, 1, 64)])
def test_empty_and_single(norm, seed, shape):
    x, gain = sample(seed, shape)
    y, total = norm(x, gain, poison=True)
    assert y.shape == shape
    check(y, total, x, gain)


def test_one_shape_after_another(norm, seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        x, gain = sample(seed, (*rng.integers(1, 9, 2), 64))
        check(*norm(x, gain, poison=True), x, gain)


def misaligned(x):
    store = np.zeros(x.size + 8, np.float16)
    start = (16 - store.ctypes.data % 16) // 2 % 8 + 1
    view = store[start : start + x.size].reshape(x.shape)
    view[:] = x
    return view


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, g: (x,), r"expected 2 arguments \(x, gain\), but got 1"),
        (lambda x, g: (x.astype(np.float32), g), "argument 'x': expected elements of fp16, but got fp32"),
        (lambda x, g: (x.astype(np.float64), g), "'x': expected elements of bool.* but got the format 'd'"),
        (lambda x, g: (torch.from_numpy(x).double(), g), "'x': expected elements of bool.* but got torch.float64"),
        (lambda x, g: ("x", g), "'x': expected a torch tensor or a NumPy array, but got 'str'"),
        (lambda x, g: (x[0], g), r"argument 'x': expected 3 axes, \[B, N, 64\], but got 2: \[5, 64\]"),
        (lambda x, g: (x, g[:32]), "argument 'gain': expected size 64 on axis 0, but got 32"),
        (lambda x, g: (np.tile(x, 2)[:, :, ::2], g), "argument 'x': expected the last axis to be contiguous"),
        (lambda x, g: (misaligned(x), g), "argument 'x': expected an address that is a multiple of 16 bytes"),
        (lambda x, g: (np.pad(x, ((0, 0), (0, 0), (0, 4)))[:, :, :64], g), "that of axis 0 is 680 bytes"),
    ],
)
def test_inputs_refused(norm, seed, change, message):
    with pytest.raises(runtime.Error, match=message) as caught:
        norm.run(change(*sample(seed)))
    assert caught.value.status == "invalid argument"


def test_outputs_refused(norm, seed):
    x, gain = sample(seed)
    y, total = np.empty((2, 5, 64), np.float16), np.empty(2, np.float32)
    for outputs, message in [
        ((y,), "expected 2 outputs, but got 1"),
        ((y[:1], total), r"output 'y': expected shape \[2, 5, 64\], but got \[1, 5, 64\]"),
        ((y, np.empty(2, np.float16)), "output 'total': expected elements of fp32, but got fp16"),
        ((np.lib.stride_tricks.as_strided(y, strides=(0, 128, 2)), total), "output 'y': expected elements that do not"),
        ((x, total), "output 'y': expected memory of its own, but it shares some with argument 'x'"),
    ]:
        with pytest.raises(runtime.Error, match=message):
            norm.run((x, gain), outputs)
    with pytest.raises(TypeError, match="expected 'gain' by name after 1 arguments by position, but got 'gains'"):
        norm(x, gains=gain)


def test_library(made, tmp_path, seed):
    ptx, info = made
    manifest, files = describe(info, ptx, "sm_80")
    runtime.write_library(tmp_path / "lib", manifest["kernels"], files, manifest["programs"])
    library = weft.load(tmp_path / "lib")
    assert list(library.programs) == ["norm"]
    assert "norm(x: fp16[B, N, 64], gain: fp32[64]) -> (y: fp16[B, N, 64], total: fp32[B])" in repr(
        library.programs["norm"]
    )
    x, gain = sample(seed)
    check(*library.run("norm", x, gain), x, gain)
    with pytest.raises(KeyError, match="has no program 'norms': it has 'norm'"):
        library.run("norms", x)


def test_forward_and_backward_of_a_library(example, tmp_path, seed):
    signature = "q:fp32[B,H,N,64], k:fp32[B,H,M,64], v:fp32[B,H,M,64]"
    weft.compile(example("patterns/causal").causal, "sm_80", signature, tmp_path / "lib")
    library = weft.load(tmp_path / "lib")
    assert list(library.programs) == ["causal", "causal.forward", "causal.backward"]
    torch.manual_seed(seed)
    q, k, v, gradient = (torch.randn(1, 2, 70, 64) for _ in range(4))
    exact = [each.double().requires_grad_() for each in (q, k, v)]
    y = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True)
    y.backward(gradient.double())
    assert (library.run("causal", q, k, v, poison=True).double() - y).abs().max() < 1e-5
    out, lse = library.run("causal.forward", q, k, v, poison=True)
    assert (out.double() - y).abs().max() < 1e-5
    gradients = library.run("causal.backward", q, k, v, out, lse, gradient, poison=True)
    assert library.programs["causal.backward"].gradients_of == [0, 1, 2]
    for got, wanted in zip(gradients, exact, strict=True):
        assert (got.double() - wanted.grad).abs().max() < 2e-5


def test_a_plan_that_does_not_hold_together_is_refused(made):
    ptx, info = made
    program = info["programs"][0]
    variant = program["variants"][0]
    launches = list(reversed(variant["launches"]))
    broken = {**info, "programs": [{**program, "variants": [{**variant, "launches": launches}]}]}
    with pytest.raises(runtime.Error, match=r"programs\[0\].variants\[0\].launches\[0\].arguments: tensor 5 is read"):
        runtime.Library.from_compiled(broken, ptx)


def test_wrong_target(made, seed):
    ptx, info = made
    program = runtime.Program.from_compiled(info, ptx)
    with pytest.raises(runtime.Error, match="is compiled for sm_80, and none of these runs on") as caught:
        program(*sample(seed), device="simulator:sm_75")
    assert caught.value.status == "wrong target"
