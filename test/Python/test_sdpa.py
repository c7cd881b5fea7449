# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.integrations.sdpa: torch's scaled_dot_product_attention by Weft while it is active, against float64, and torch's
own before and after."""

import functools
import subprocess
import sys

import pytest
import torch
from torch.nn.attention import SDPBackend, current_flash_attention_impl, list_flash_attention_impls, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from weft.integrations import sdpa
from weft.testing import Domain, attention, drawn, judge
from weft.testing.attention import FORMS

D = 16


@pytest.fixture
def active():
    sdpa.activate()
    yield
    sdpa.restore()


@pytest.fixture
def calls(monkeypatch):
    """How often Weft computed a forward or a backward."""
    made = []
    run = sdpa.running.run
    monkeypatch.setattr(sdpa.running, "run", lambda form, part, arrays: made.append(part) or run(form, part, arrays))
    return made


def flash(*tensors, **options):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return scaled_dot_product_attention(*tensors, **options)


def formula(q, k, v, mask=None, *, form, is_causal=False, scale=None):
    """Attention by its formula; is_causal counts from the first query and the first key."""
    allowed = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril() if is_causal else mask
    return attention(q, [Domain(k, v, allowed)], scale=scale, form=form)[0]


def test_the_formula_is_torchs(seed):
    q, k, v = (torch.randn(1, 2, n, D, dtype=torch.float64) for n in (30, 50, 50))
    for options in ({}, {"is_causal": True}, {"scale": 0.3}):
        with sdpa_kernel(SDPBackend.MATH):
            wanted = scaled_dot_product_attention(q, k, v, **options)
        torch.testing.assert_close(formula(q, k, v, form=FORMS[1], **options), wanted)


def inputs(n, m, randn, heads=2, groups=2, masked=False):
    tensors = {"q": randn(2, heads, n, D), "k": randn(2, groups, m, D), "v": randn(2, groups, m, D)}
    return tensors | ({"mask": torch.rand(n, m) < 0.6} if masked else {})


CASES = {
    "full": (50, 70, {}),
    "causal": (70, 70, {"is_causal": True}),
    "causal, more keys": (40, 70, {"is_causal": True}),
    "causal, fewer keys": (70, 40, {"is_causal": True}),
    "scaled": (33, 33, {"scale": 0.4}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_cases(name, dtype, seed, held, active, calls):
    n, m, options = CASES[name]
    generator = torch.Generator().manual_seed(seed)

    def draw():
        tensors = drawn(functools.partial(inputs, n, m), dtype, generator)
        by_torch = functools.partial(formula, **options)
        return judge(functools.partial(flash, **options), by_torch, tensors, generator=generator)

    held("scaled_dot_product_attention", draw)
    assert calls[:2] == ["", ".backward"]


def test_a_mask(seed, held, active, calls):
    generator = torch.Generator().manual_seed(seed)

    def call(q, k, v, mask):
        return flash(q, k, v, attn_mask=mask)

    def draw():
        tensors = drawn(functools.partial(inputs, 50, 70, masked=True), torch.float32, generator)
        return judge(call, formula, tensors, generator=generator)

    held("scaled_dot_product_attention", draw)
    assert calls[:2] == ["", ".backward"]


def test_strides_are_torchs(active, seed):
    """Queries as [B, N, H, D] in memory give results so: what follows was compiled for that."""
    q, k, v = (torch.randn(2, 30, 4, D).transpose(1, 2).requires_grad_() for _ in range(3))
    out = flash(q, k, v, is_causal=True)
    ours = (out, *torch.autograd.grad(out.sum(), (q, k, v)))
    sdpa.restore()
    wanted = flash(q, k, v, is_causal=True)
    wanted = (wanted, *torch.autograd.grad(wanted.sum(), (q, k, v)))
    assert [x.stride() for x in ours] == [x.stride() for x in wanted]
    torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5)


def test_nothing_changes_on_import_and_after_restore(calls):
    q, k, v = (torch.randn(1, 2, 20, D) for _ in range(3))
    assert sdpa.NAME in list_flash_attention_impls() and current_flash_attention_impl() is None
    before = flash(q, k, v)
    assert calls == []
    sdpa.activate()
    assert current_flash_attention_impl() == "weft"
    ours = flash(q, k, v)
    assert calls == [""] and not torch.equal(ours, before)
    sdpa.restore()
    sdpa.restore()
    assert torch.equal(flash(q, k, v), before) and calls == [""]
    assert current_flash_attention_impl() is None


def test_what_weft_does_not_take_is_torchs(active, calls):
    shapes = {"float64": (1, 2, 20, D), "12": (1, 2, 20, 12)}
    for word, shape in shapes.items():
        dtype = torch.float64 if word == "float64" else torch.float32
        q, k, v = (torch.randn(shape, dtype=dtype).requires_grad_() for _ in range(3))
        assert word in sdpa.objection(q, k, v)
        out = flash(q, k, v, is_causal=True)
        grads = torch.autograd.grad(out.sum(), (q, k, v))
        sdpa.restore()
        wanted = flash(q, k, v, is_causal=True)
        assert torch.equal(out, wanted)
        torch.testing.assert_close(grads, torch.autograd.grad(wanted.sum(), (q, k, v)))
        sdpa.activate()
    assert calls == []
    assert "dropout_p=0.1" in sdpa.objection(q, k, v, 0.1)


def test_as_on_a_gpu(seed):
    """The functions for GPUs, called here on a CPU's tensors: what they give has the form that torch's kernels give."""
    generator = torch.Generator().manual_seed(seed)
    tensors = drawn(functools.partial(inputs, 30, 50), torch.float32, generator)
    q, k, v = tensors.values()
    out, lse, starts, ends, n, m, state, offset, debug = sdpa.forward_on_cuda(q, k, v, 0.0, True)
    assert (starts, ends, n, m) == (None, None, 30, 50)
    assert state.shape == (2,) and state.dtype == offset.dtype == torch.uint64 and debug.numel() == 0
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    wanted = formula(*leaves, form=FORMS[1], is_causal=True)
    grad = torch.randn(out.shape, generator=generator)
    found = sdpa.backward_on_cuda(grad, q, k, v, out, lse, None, None, n, m, 0.0, True, state, offset)
    exact = torch.autograd.grad(wanted, leaves, grad.double())
    torch.testing.assert_close((out, *found), tuple(x.float() for x in (wanted, *exact)), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match=r"dropout_p=0\.5, and torch has no kernel"):
        sdpa.forward_on_cuda(q, k, v, 0.5)


@pytest.mark.slow
def test_activated_by_torch_and_compiled(seed):
    """In a process of its own: torch's compiler keeps what it made."""
    program = """
import torch, weft.integrations.sdpa
from torch.nn.attention import activate_flash_attention_impl
from torch.nn.functional import scaled_dot_product_attention as attend
torch.manual_seed(3)
q, k, v = (torch.randn(1, 2, 24, 16).requires_grad_() for _ in range(3))
grads = lambda f: torch.autograd.grad(f(q, k, v, is_causal=True).square().sum(), (q, k, v))
before = grads(attend)
activate_flash_attention_impl("weft")
compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
for found in (grads(attend), grads(compiled)):
    torch.testing.assert_close(found, before, rtol=1e-4, atol=1e-5)
print("compiled")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "compiled\n", done.stderr
