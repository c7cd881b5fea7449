# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""`weft export --hf-kernel`: the folder as Hugging Face's kernels loads it, without a network."""

import json
import os
import subprocess
import sys

import pytest
import torch

kernels = pytest.importorskip("kernels")

import weft  # noqa: E402
from weft.cli.__main__ import main  # noqa: E402

pytestmark = pytest.mark.ecosystem

SOURCE = """
import weft

@weft.program
def attend(q: "fp32[B,H,N,16]:16", k: "fp32[B,H,N,16]:16", v: "fp32[B,H,N,16]:16", slopes: "fp32[H]"):
    return weft.softmax(q, k, weft.causal(), score_mod=lambda s, b, h, n, m: s - slopes[h] * (n - m)) @ v
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("export")
    (place / "attend.py").write_text(SOURCE)
    assert main(["compile", str(place / "attend.py"), "-o", str(place / "lib")]) == 0
    assert main(["export", "--hf-kernel", str(place / "lib"), str(place / "causal-alibi")]) == 0
    return place


def test_it_loads_and_has_gradients(folder, seed, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    kernel = kernels.get_local_kernel(folder / "causal-alibi", backend="cpu")
    assert kernel.__all__ == ["attend"]
    torch.manual_seed(seed)
    inputs = [torch.randn(1, 2, 30, 16) for _ in range(3)] + [torch.rand(2)]
    ours = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    q, k, v, slopes = exact
    distance = torch.arange(30)[:, None] - torch.arange(30)
    score = (q @ k.mT / 4 - slopes[:, None, None] * distance).masked_fill(distance < 0, -torch.inf)
    out, wanted = kernel.attend(*ours), score.softmax(-1) @ v
    torch.testing.assert_close(out.double(), wanted, rtol=1e-5, atol=1e-5)
    grads = torch.autograd.grad(out.square().sum(), ours)
    for found, right in zip(grads, torch.autograd.grad(wanted.square().sum(), exact), strict=True):
        torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)


def test_what_is_in_it(folder):
    for backend in ("cpu", "cuda"):
        variant = folder / "causal-alibi" / "build" / f"torch-{backend}"
        metadata = json.loads((variant / "metadata.json").read_text())
        assert metadata["name"] == "causal-alibi" and metadata["backend"] == {"type": backend}
        assert weft.load(variant / "library").manifest == weft.load(folder / "lib").manifest
        text = (variant / "__init__.py").read_text()
        assert "attend    with gradients" in text
        compile(text, "kernel", "exec")


def test_without_a_backward(folder, tmp_path, capsys):
    library = tmp_path / "forward"
    assert main(["compile", str(folder / "attend.py"), "-o", str(library), "--forward-only"]) == 0
    assert main(["export", "--hf-kernel", str(library), str(tmp_path / "made"), "--name", "forward-alone"]) == 0
    assert "kernel 'forward-alone', for torch-cpu and torch-cuda" in capsys.readouterr().out
    kernel = kernels.get_local_kernel(tmp_path / "made", backend="cpu")
    x = torch.randn(1, 2, 20, 16)
    assert kernel.attend(x, x, x, torch.zeros(2)).shape == (1, 2, 20, 16)
    assert main(["export", "--hf-kernel", str(library), str(tmp_path / "made")]) == 1
    assert "not there yet" in capsys.readouterr().err


def test_no_compiler_is_needed(folder):
    """Who loads the kernel imports no compiler."""
    program = f"""
import pathlib, sys, torch
from kernels import get_local_kernel
kernel = get_local_kernel(pathlib.Path({str(folder / "causal-alibi")!r}), backend="cpu")
x = torch.randn(1, 2, 20, 16)
print(kernel.attend(x, x, x, torch.zeros(2)).shape)
assert not any(name.endswith("_compiler") for name in sys.modules), "the compiler is loaded"
"""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "torch.Size([1, 2, 20, 16])\n", done.stderr
