# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""On a GPU, or on the tests' driver whose GPU is the simulator: kernels, programs and libraries run as users run them
there, and are right. `make gpu` runs these."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from weft import native
from weft.testing import Demonstration, attention, masks
from weft.testing import sema as sema_formula
from weft.testing.attention import Domain

GPU = native.load("_runtime").cuda_device_count() > 0
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not GPU, reason="needs a GPU")]
on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a PyTorch with CUDA")


@pytest.fixture(autouse=True)
def on_the_gpu(monkeypatch, seed):
    monkeypatch.setenv("WEFT_DEVICE", "cuda:0")
    torch.manual_seed(seed)


@weft.jit
def scale_add(x, y, z, n, a, BLOCK: wl.constexpr):
    offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    inside = offsets < n
    wl.store(z + offsets, a * wl.load(x + offsets, mask=inside) + wl.load(y + offsets, mask=inside), mask=inside)


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def heads(randn, length=100, head=64):
    return {name: randn(1, 2, length, head) for name in ("q", "k", "v")}


def formula(q, k, v, *, form):
    return attention(q, [Domain(k, v, masks.causal(q.shape[2], k.shape[2]))], form=form)[0]


def test_a_kernel():
    x, y = np.random.default_rng().integers(-99, 99, (2, 1000)).astype(np.float32)
    z = np.full(1000, np.nan, np.float32)
    scale_add[(weft.cdiv(1000, 256),)](x, y, z, 1000, 3.0, BLOCK=256)
    assert np.array_equal(z, 3 * x + y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_attention(dtype):
    Demonstration("causal attention", causal, formula, heads).judged(dtype)


def test_sema():
    def program(q, k, v, weight):
        return weft.attention.sema(q, k, v, weight, window=32)

    def expected(*tensors, form):
        return sema_formula(*tensors, window=32, form=form)

    def inputs(randn):
        return heads(randn, 80) | {"weight": randn(128, 1, 3)}

    Demonstration("SEMA", program, expected, inputs, {"products_as_given": False}).judged(torch.float16)


def test_a_library(tmp_path):
    signature = "q:fp16[B,H,N,64], k:fp16[B,H,M,64], v:fp16[B,H,M,64]"
    library = weft.compile(causal, "sm_80,sm_90a", signature, tmp_path / "made")
    q, k, v = (np.random.default_rng().standard_normal((1, 2, 48, 64)).astype(np.float16) for _ in range(3))
    out = library.program("causal").run([q, k, v], device="cuda:0", poison=True)[0]
    exact = formula(*(torch.from_numpy(x).double() for x in (q, k, v)), form="scaled scores")
    assert np.abs(out - exact.numpy()).max() < 4e-3


@on_cuda
def test_tensors_on_the_gpu():
    """Gradients and streams of PyTorch's, and the same bits as from the host."""
    q, k, v = (torch.randn(1, 2, 300, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    with torch.cuda.stream(torch.cuda.Stream()):
        out = weft.attention.attend(q, k, v, weft.causal())
        gradients = torch.autograd.grad(out.float().square().sum(), (q, k, v))
    plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = torch.autograd.grad(plain.float().square().sum(), (q, k, v))
    torch.cuda.synchronize()
    for mine, theirs in zip((out, *gradients), (plain, *expected), strict=True):
        assert (mine - theirs).float().norm() <= 1e-2 * theirs.float().norm()
    host = weft.attention.attend(*(x.detach().cpu() for x in (q, k, v)), weft.causal())
    assert torch.equal(host, out.detach().cpu())


@on_cuda
def test_a_graph_of_cuda():
    """What was warmed is captured and replayed on other numbers in the same memory."""
    q, k, v = (torch.randn(1, 2, 256, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    side = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            weft.attention.attend(q, k, v, weft.causal())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        out = weft.attention.attend(q, k, v, weft.causal())
    q.copy_(torch.randn_like(q))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, weft.attention.attend(q, k, v, weft.causal()))
