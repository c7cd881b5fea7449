# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs run: results and gradients against float64 formulas, on torch tensors and NumPy arrays; caches, libraries,
explanations. Small sizes; the mechanisms' whole grids are in tests of their own."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft
from weft.compiler.targets import target_of
from weft.programs import compiled, running
from weft.runtime.devices import device_for
from weft.runtime.first_order import beside
from weft.testing import mixers
from weft.testing.accuracy import hold
from weft.testing.attention import Domain, attention
from weft.testing.judge import judge
from weft.testing.sema import sema as sema_formula


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "weft-cache"))


@pytest.fixture
def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape, dtype=torch.float16: torch.randn(shape, generator=generator).to(dtype)


def causal_mask(n, m):
    return torch.arange(n)[:, None] + (m - n) >= torch.arange(m)


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def gated(q, k, v, gain, gate):
    q = weft.rms_norm(q, gain)
    return weft.silu(gate) * (weft.softmax(q, k, weft.causal()) @ v)


def gated_formula(q, k, v, gain, gate, form):
    q = mixers.rms_norm(q, gain)
    mask = causal_mask(q.shape[2], k.shape[2])
    out = attention(q, [Domain(k, v, mask)], form=form)[0]
    wide = gate if gate.dtype == torch.float64 else gate.float()
    return (torch.nn.functional.silu(wide) * out).to(out.dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_a_program_and_its_gradients(draw, dtype):
    def once():
        tensors = {
            "q": draw(2, 4, 37, 32, dtype=dtype),
            "k": draw(2, 2, 45, 32, dtype=dtype),
            "v": draw(2, 2, 45, 64, dtype=dtype),
            "gain": draw(4, 32, dtype=dtype),
            "gate": draw(2, 4, 37, 64, dtype=dtype),
        }
        return judge(gated, gated_formula, tensors, products_as_given=False)

    hold(once)


def test_any_strides_and_numpy(draw):
    q, k, v = (draw(2, 41, 3, 40)[..., :32].transpose(1, 2) for _ in range(3))
    reference = attention(q.double(), [Domain(k.double(), v.double(), causal_mask(41, 41))])[0]
    of_torch, of_numpy = causal(q, k, v), causal(q.numpy(), k.numpy(), v.numpy())
    assert isinstance(of_torch, torch.Tensor) and isinstance(of_numpy, np.ndarray)
    assert (of_torch - reference).abs().max() < 3e-3
    assert np.array_equal(of_torch.numpy(), of_numpy)
    swapped = causal(q.mT.contiguous().mT, k, v)  # the last axis is not contiguous: copied
    assert torch.equal(swapped, of_torch)


def test_inputs_among_the_results_and_results_twice(draw):
    @weft.program
    def several(x, y):
        z = x + y
        return {"x": x, "pair": (z, z), "less": x < y}

    x, y = draw(1, 2, 5, 16), draw(1, 2, 5, 16)
    given = several(x, y)
    assert given["x"] is x and given["pair"][0] is given["pair"][1]
    assert torch.equal(given["less"], x < y)
    assert torch.equal(given["pair"][0], x + y)


@pytest.mark.parametrize("name", ["silu", "relu", "sigmoid", "tanh", "gelu"])
def test_functions_of_elements_and_their_derivatives(draw, name):
    plain = getattr(torch.nn.functional, name)
    x = draw(2, 3, 7, 16, dtype=torch.float32).requires_grad_()
    y = getattr(weft, name)(x)
    assert (y - plain(x)).abs().max() < 1e-5
    g = torch.randn_like(y)
    mine, theirs = torch.autograd.grad(y, x, g)[0], torch.autograd.grad(plain(x), x, g)[0]
    assert (mine - theirs).abs().max() < 1e-5


def test_gradcheck(draw):
    q, k, v = (draw(1, 2, 6, 16, dtype=torch.float32).requires_grad_() for _ in range(3))
    # kernels compute in float32: steps and tolerances are those of its accuracy
    assert torch.autograd.gradcheck(causal, (q, k, v), eps=1e-2, atol=2e-3, rtol=2e-3)


def test_gradients_lie_where_their_inputs_do():
    """A program takes tensors of the host beside a GPU's, and all its results lie on the GPU."""
    found, none = beside([torch.ones(3), None], [torch.empty(3, device="meta"), torch.ones(2)])
    assert found.device.type == "meta" and none is None


def test_forward_and_backward_by_hand(draw):
    q, k, v = (draw(1, 2, 20, 32) for _ in range(3))
    out, saved = causal.forward(q, k, v)
    gradient = draw(1, 2, 20, 32)
    by_name = causal.backward(saved, gradient)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    theirs = torch.autograd.grad(causal(*leaves), leaves, gradient)
    assert list(by_name) == ["q", "k", "v"]
    assert torch.equal(out, causal(q, k, v))
    for mine, other in zip(by_name.values(), theirs, strict=True):
        assert torch.equal(mine, other)
    zeros = causal.backward(saved, None)
    assert all(not x.any() for x in zeros.values())
    for wrong in ("gradient", [1.0], 1.0):
        with pytest.raises(TypeError, match="expected gradients that are arrays, or None for zero, but got"):
            causal.backward(saved, wrong)
    with pytest.raises(TypeError, match="expected what 'forward' gave beside its result, but got None"):
        causal.backward(None, gradient)


def test_only_wanted_gradients(draw):
    q, k, v = (draw(1, 2, 20, 32) for _ in range(3))
    k.requires_grad_()
    causal(q, k, v).sum().backward()
    assert k.grad is not None and q.grad is None
    ir = causal.trace(causal.bind((q, k, v), {}, selective=True)).plain
    assert ir.count("attn.constant") == 2


def test_captured_tensors_have_gradients(draw):
    slopes = draw(2, dtype=torch.float32).requires_grad_()
    q, k, v = (draw(1, 2, 20, 32, dtype=torch.float32) for _ in range(3))

    def mod(s, b, h, n, m):
        return s - slopes[h] * (n - m)

    out = weft.attention.attend(q, k, v, weft.causal(), score_mod=mod)
    (mine,) = torch.autograd.grad(out.sum(), slopes)
    distance = torch.arange(20)[:, None] - torch.arange(20)
    wide = slopes.detach().double().requires_grad_()
    scores = (q.double() @ k.double().mT) / 32**0.5 - wide[:, None, None] * distance
    plain = scores.masked_fill(~causal_mask(20, 20), -torch.inf).softmax(-1) @ v.double()
    (theirs,) = torch.autograd.grad(plain.sum(), wide)
    assert (out - plain).abs().max() < 1e-5
    # sums of 400 terms in float32, of distances up to 20
    assert (mine - theirs).abs().max() < 1e-5 * distance.abs().sum()


def test_attend_with_bias_sink_and_lse(draw):
    def formula(q, k, v, bias, sink, form):
        mask = causal_mask(q.shape[2], k.shape[2])
        return attention(q, [Domain(k, v, mask)], bias=bias, sink=sink, form=form)

    def mine(q, k, v, bias, sink):
        return weft.attention.attend(q, k, v, weft.causal(), bias=bias, sink=sink, return_lse=True)

    def once():
        q, k, v = draw(1, 2, 33, 32), draw(1, 2, 50, 32), draw(1, 2, 50, 32)
        tensors = {"q": q, "k": k, "v": v, "bias": draw(1, 2, 33, 50), "sink": draw(2, dtype=torch.float32)}
        return judge(mine, formula, tensors, names=("out", "lse"))

    hold(once)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 16},
        {"window": 16, "rope_values": True, "scale": 1.0},
        {"window": 24, "rope": False, "mean": False},
        {"window": (3, 4), "grid": (7, 9)},
        {"window": (3, 4), "grid": (7, 9), "rope_2d": "flat"},
    ],
    ids=str,
)
def test_sema(draw, options):
    grid = options.get("grid")
    count = 50 if grid is None else grid[0] * grid[1]
    kernel = (3,) if grid is None else (3, 3)

    def mine(q, k, v, weight, bias):
        return weft.attention.sema(q, k, v, weight, bias, **options)

    def formula(q, k, v, weight, bias, form):
        return sema_formula(q, k, v, weight, bias, form=form, **options)

    def once():
        tensors = {
            "q": draw(1, 4, count, 32),
            "k": draw(1, 2, count, 32),
            "v": draw(1, 2, count, 32),
            "weight": draw(64, 1, *kernel),
            "bias": draw(64),
        }
        return judge(mine, formula, tensors, products_as_given=False)

    hold(once)


def test_matrices_of_mixers(draw):
    q, k = draw(1, 2, 12, 16), draw(1, 2, 12, 16)
    softmax = weft.softmax(q, k, weft.causal())
    scores = (q.double() @ k.double().mT) / 4
    dense = scores.masked_fill(~causal_mask(12, 12), -torch.inf).softmax(-1)
    assert (softmax.matrix() - dense).abs().max() < 2e-3
    assert ((softmax + weft.mean()).matrix() - dense - 1 / 12).abs().max() < 2e-3
    gate = draw(1, 2, 12, 1)
    assert ((weft.diag(gate) @ softmax).matrix() - gate.double() * dense).abs().max() < 4e-3
    taps = draw(3, 32)
    matrix = weft.toeplitz(taps, centred=True).matrix(12, heads=2)
    assert matrix.shape == (1, 2, 16, 12, 12)
    reference = mixers.toeplitz_matrix(taps.float(), 12, centred=True).view(2, 16, 12, 12)
    assert torch.equal(matrix[0], reference)
    near, far = weft.softmax(q, weft.domain(k), weft.domain(k[:, :, :5])).matrix()
    assert near.shape[3] == 12 and far.shape[3] == 5
    assert ((near.sum(-1) + far.sum(-1)) - 1).abs().max() < 2e-3
    assert np.allclose(weft.mean(causal=True).matrix(9)[0, 0], np.tri(9) / np.arange(1, 10)[:, None])


def test_compiled_forms_are_kept_on_disk(draw):
    q = draw(1, 1, 20, 48)
    first = causal(q, q, q)
    compiled._compiled.clear()
    traced = causal.trace(causal.bind((q, q, q), {}))
    again = compiled.compiled(traced, "sm_80", False)
    assert again.cached
    assert torch.equal(first, causal(q, q, q))


def test_inference_after_training_compiles_nothing(draw, monkeypatch):
    """The form with the backward serves; its kernels of the program itself are those of the forward alone."""
    q, k, v, gate = (draw(1, 2, 40, 32).requires_grad_() for _ in range(4))
    gain = torch.ones(2, 32).requires_grad_()
    program = weft.program(gated.fn)
    program(q, k, v, gain, gate).sum().backward()
    with monkeypatch.context() as without, torch.no_grad():
        without.setattr(compiled, "_compile", None)
        without.setenv("WEFT_CACHE", "0")
        found = program(q, k, v, gain, gate)
    arrays = [q, k, v, gain, gate]
    traced = program.trace(program.bind(tuple(arrays), {}))
    alone = compiled.compiled(traced, target_of(device_for(tuple(arrays))), False)
    assert [plan["name"] for plan in alone.info["programs"]] == ["gated"]
    assert torch.equal(found, running.run(alone, "", [each.detach() for each in arrays])[0])
    both = compiled.compiled(traced, alone.target, True)
    grids = [[each["grid"] for each in form.plan()["variants"][0]["launches"]] for form in (alone, both)]
    assert grids[0] == grids[1]


def test_explain(draw):
    q = draw(2, 3, 100, 64)
    found = causal.explain(q, q, q)
    forward = found.parts[0]
    assert forward.name == "causal" and len(forward.launches) == 1
    assert forward.launches[0].reads == 3 * 2 * 3 * 100 * 64 * 2 and forward.launches[0].writes == q.numel() * 2
    assert [part.name for part in found.parts] == ["causal", "causal.forward", "causal.backward"]
    assert "attend" in str(found) and "q, k, v -> out" in str(found)


PROGRAM = """
import weft

@weft.program
def local(q: "fp16[B,2*Hkv,N,64]:16", k: "fp16[B,Hkv,N,64]:16", v: "fp16[B,Hkv,N,64]:16", *, w=32):
    return (weft.softmax(q, k, weft.block_window(w)) + weft.mean()) @ v
"""


def weft_command(*arguments):
    return subprocess.run([sys.executable, "-m", "weft.cli", *arguments], capture_output=True, text=True, check=False)


def test_the_command_line(tmp_path):
    file = tmp_path / "local.py"
    file.write_text(PROGRAM)
    made = weft_command("compile", str(file), "--target", "sm_80,sm_90a", "-o", str(tmp_path / "lib"))
    assert made.returncode == 0, made.stderr
    manifest = json.loads((tmp_path / "lib" / "manifest.json").read_text())
    assert [p["name"] for p in manifest["programs"]] == ["local", "local.forward", "local.backward"]
    assert {v["target"] for v in manifest["programs"][0]["variants"]} == {"sm_80", "sm_90a"}
    shown = weft_command("explain", str(file), "--sizes", "B=1,Hkv=2,N=128", "--json")
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(shown.stdout)["parts"][0]["launches"]) == 2
    missing = weft_command("explain", str(file))
    assert missing.returncode == 1 and "expected the sizes B, Hkv, N" in missing.stderr
    drawn = weft_command("draw", "causal() & window(16, 0)", "-n", "64", "-o", str(tmp_path / "p.svg"))
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "p.svg").read_text().startswith("<svg")


def test_a_library_of_a_program_runs(draw, tmp_path):
    text = "fp16[B,2*Hkv,N,32]", "fp16[B,Hkv,N,32]", "fp16[B,Hkv,N,64]"
    signature = ", ".join(f"{name}:{each}" for name, each in zip("qkv", text, strict=True))
    library = weft.compile(causal, "sm_80", signature, tmp_path / "lib")
    q, k, v = draw(2, 4, 33, 32), draw(2, 2, 33, 32), draw(2, 2, 33, 64)
    assert torch.equal(library.run("causal", q, k, v), causal(q, k, v))
    in_memory = causal.compile("sm_80", signature, differentiate=False)
    assert list(in_memory.programs) == ["causal"]
    assert torch.equal(in_memory.run("causal", q, k, v), causal(q, k, v))


def test_the_ir_after_each_stage(draw):
    q = draw(1, 1, 20, 32)
    assert "attn.apply" in causal.ir(q, q, q)
    attn = causal.ir(q, q, q, stage="attn")
    assert "attn.attend_backward" in attn and "@causal.backward" in attn
    assert "attn.launch" in causal.ir(q, q, q, stage="launches")
    assert ".entry" in causal.ir(q, q, q, stage="ptx")
    with pytest.raises(ValueError, match="expected a stage among attn, launches"):
        causal.ir(q, q, q, stage="nonsense")


def test_packed_sequences(draw):
    starts = torch.tensor([0, 10, 10, 70], dtype=torch.int32)
    q, k, v = (draw(1, 4, 70, 32) for _ in range(3))
    out = weft.attention.attend(q, k, v, weft.causal(), cu_seqlens_q=starts, cu_seqlens_k=starts)
    for begin, end in ((0, 10), (10, 70)):
        part = [x[:, :, begin:end].double() for x in (q, k, v)]
        reference = attention(part[0], [Domain(part[1], part[2], causal_mask(end - begin, end - begin))])[0]
        assert (out[:, :, begin:end] - reference).abs().max() < 3e-3
