# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What torch's tensors may be beside memory with strides: each kind comes out right, or is refused by name."""

import re

import numpy as np
import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import weft
import weft.language as wl
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor

pytestmark = pytest.mark.filterwarnings("ignore")
SHAPE = (1, 2, 24, 16)


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def reference(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)


@pytest.fixture
def qkv(seed):
    torch.manual_seed(seed)
    return [torch.randn(SHAPE) for _ in range(3)]


def close(found, wanted):
    return torch.testing.assert_close(found.double(), wanted.double(), atol=2e-5, rtol=2e-5)


# ---- Second order


def second_order(f, q):
    q = q.clone().requires_grad_()
    gradient, *_ = torch.autograd.grad(f(q).sum(), q, create_graph=True)  # an incoming gradient without a history
    return gradient, q


def forms(qkv):
    """The same attention as a program, a function, a module and an opened library."""
    _, k, v = qkv
    signature = ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv")
    library = attention.compile("sm_80", signature)
    module = weft.nn.Attention(32, 2, pattern=weft.causal())
    return {
        "program": lambda q: attention(q, k, v),
        "function": lambda q: weft.attention.attend(q, k, v, weft.causal()),
        "module": lambda q: module(q.reshape(1, 24, 32)),
        "library": lambda q: library.differentiable("attention")(q, k, v),
    }


@pytest.mark.parametrize("form", ("program", "function", "module"))
def test_second_order(qkv, form):
    """(test_second_order.py has more of it.)"""
    f = forms(qkv)[form]
    gradient, q = second_order(f, qkv[0])
    found = torch.autograd.grad(gradient.sum(), q)[0]
    step = 1e-2 * torch.ones_like(q)
    up, down = (second_order(f, q.detach() + each)[0].detach() for each in (step, -step))
    assert (found - (up - down) / 2e-2).abs().max() <= 2e-3 * max(1, found.abs().max())


def test_second_order_of_libraries_is_refused(qkv):
    gradient, q = second_order(forms(qkv)["library"], qkv[0])
    with pytest.raises(NotImplementedError, match=r"expected gradients of first order.*\n?.*create_graph=True"):
        gradient.pow(2).sum().backward(retain_graph=True)
    with pytest.raises(NotImplementedError, match="which this program has not"):
        torch.autograd.grad(gradient.sum(), q, allow_unused=True)


def test_first_order_under_create_graph(qkv):
    """Who asks for a graph and never goes through it twice gets the same gradient, and others' second order."""
    q, k, v = qkv
    gradient, leaf = second_order(lambda q: attention(q, k, v), q)
    plain = torch.autograd.grad(attention(leaf, k, v).sum(), leaf)[0]
    assert torch.equal(gradient, plain) and gradient.requires_grad and not plain.requires_grad
    x = torch.randn(SHAPE, requires_grad=True)
    cubed, *_ = torch.autograd.grad(x.pow(3).sum() + attention(leaf, k, v).sum(), x, create_graph=True)
    close(torch.autograd.grad(cubed.sum(), x)[0], 6 * x)


def test_gradients_of_some_inputs_under_create_graph(qkv):
    q, k, v = (x.clone() for x in qkv)
    k.requires_grad_()
    gradient, *_ = torch.autograd.grad(attention(q, k, v).sum(), k, create_graph=True)
    gradient.sum().backward()
    wanted = k.detach().double().requires_grad_()
    scores = (q.double() @ wanted.mT / 4).masked_fill(~torch.ones(24, 24, dtype=torch.bool).tril(), -torch.inf)
    first, *_ = torch.autograd.grad((scores.softmax(-1) @ v.double()).sum(), wanted, create_graph=True)
    close(k.grad, torch.autograd.grad(first.sum(), wanted)[0])


# ---- What is recorded or transformed around a call


def dual(q, k, v):
    """`Program.forward` leaves the graph to its caller, so that a tangent would be lost."""
    with forward_ad.dual_level():
        return attention.forward(forward_ad.make_dual(q, k), k, v)


REFUSED = {
    "forward mode": (dual, "'q' without a tangent, but got a dual tensor"),
    "nested": (lambda q, k, v: attention(torch.nested.nested_tensor([q[0], k[0]]), k, v), "of layout nested"),
    "jagged": (
        lambda q, k, v: attention(torch.nested.nested_tensor([q[0], k[0]], layout=torch.jagged), k, v),
        "of layout nested",
    ),
    "sparse": (
        lambda q, k, v: attention(q.to_sparse(), k, v),
        "'q' with strides, but got a tensor of layout sparse_coo",
    ),
    "sparse values": (lambda q, k, v: attention(q, k, v.to_sparse()), "'v' with strides"),
    "mkldnn": (lambda q, k, v: attention(q.to_mkldnn(), k, v), "of layout _mkldnn"),
    "meta queries": (
        lambda q, k, v: attention(q.to("meta"), k, v),
        "'q' on the CPU or a CUDA device, but got one on 'meta'",
    ),
    "meta keys": (lambda q, k, v: attention(q, k.to("meta"), v), "'k' on the CPU or a CUDA device"),
    "quantised": (
        lambda q, k, v: attention(torch.quantize_per_tensor(q, 0.1, 0, torch.qint8), k, v),
        "but got qint8",
    ),
    "complex": (lambda q, k, v: attention(q + 0j, k, v), "but got complex64"),
    "conjugate": (lambda q, k, v: attention((q + 0j).conj(), k, v), "but got complex64"),
    "float64": (lambda q, k, v: attention(q.double(), k, v), "but got float64"),
    "subclass": (lambda q, k, v: attention(TwoTensor(q, q), k, v), "but got a 'TwoTensor', whose operations"),
    "masked": (
        lambda q, k, v: attention(torch.masked.masked_tensor(q, q > 0), k, v),
        "but got a 'MaskedTensor', whose operations are its own",
    ),
    "masked array": (
        lambda q, k, v: attention(np.ma.masked_array(q.numpy(), q.numpy() > 0), k.numpy(), v.numpy()),
        "'q' to be a plain array, but got a masked one",
    ),
    "byte order": (lambda q, k, v: attention(q.numpy().astype(">f4"), k.numpy(), v.numpy()), "but got >f4"),
    "head size 0": (lambda q, k, v: attention(q[..., :0], k[..., :0], v), "expected a size of at least 1"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_by_name(qkv, kind):
    call, expected = REFUSED[kind]
    with pytest.raises(Exception, match=re.escape(expected)):
        call(*qkv)


@pytest.mark.parametrize("kind", ["nested", "meta queries", "masked"])
def test_functions_refuse_them_too(qkv, kind, monkeypatch):
    """Not only programs: what is given to a function of weft.attention, or is captured by a score_mod."""
    call, expected = REFUSED[kind]
    monkeypatch.setitem(globals(), "attention", lambda q, k, v: weft.attention.attend(q, k, v, weft.causal()))
    with pytest.raises(Exception, match=re.escape(expected)):
        call(*qkv)
    monkeypatch.setitem(globals(), "attention", lambda q, k, v: weft.attention.sema(q, k, v, window=8))
    with pytest.raises(Exception, match="expected"):
        call(*qkv)


def test_captured_tensors_are_asked_too(qkv):
    @weft.program
    def scaled(q, k, v):
        return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * slopes[h]) @ v

    slopes = torch.ones(2).to_sparse()
    with pytest.raises(weft.CompilationError, match="with strides, but got a tensor of layout sparse_coo"):
        scaled(*qkv)
    slopes = torch._neg_view(torch.ones(2))
    with pytest.raises(weft.CompilationError, match="a view that is negated"):
        scaled(*qkv)


@weft.jit
def doubled(x, y):
    at = wl.arange(0, 32)
    wl.store(y + at, 2 * wl.load(x + at))


def launched(x):
    y = torch.zeros(32)
    doubled[(1,)](x, y)
    return y


def directly(x):
    """As Triton's own launchers do."""
    y = torch.zeros(32)
    kernel = doubled.warmup(y, y, grid=(1,))
    kernel.run(1, 1, 1, 0, 0, None, None, None, None, x, y)
    return y


LAUNCHES = {
    "trace": (lambda x: torch.jit.trace(launched, x, check_trace=False), "outside of torch.jit.trace"),
    "make_fx": (lambda x: make_fx(launched)(x), "outside of make_fx or torch.export"),
    "functionalize": (lambda x: torch.func.functionalize(launched)(x), "one of a torch.func transform"),
    "vmap": (lambda x: torch.vmap(launched)(x[None]), "a batch of torch.vmap"),
    "masked array": (lambda x: launched(np.ma.masked_array(x.numpy(), x.numpy() > 0)), "but got a masked one"),
    "direct": (lambda x: directly(torch._neg_view(x)), "a view that is negated"),
    "direct, make_fx": (lambda x: make_fx(directly)(x), "outside of make_fx or torch.export"),
}


@pytest.mark.parametrize("kind", LAUNCHES)
def test_launches_that_would_be_missed(seed, kind):
    """Kernels write where no recorder looks: what is recorded would be without them. (The call is known by then.)"""
    torch.manual_seed(seed)
    x = torch.randn(32)
    for _ in range(2):
        assert torch.equal(launched(x), 2 * x)
    call, expected = LAUNCHES[kind]
    with pytest.raises((TypeError, weft.Error), match=re.escape(expected)):
        call(x)
    assert torch.equal(launched(x), 2 * x)


# ---- Right


class Labelled(torch.Tensor):
    pass


def overlapping(x):
    return x.flatten().as_strided(SHAPE, (0, 7, 3, 1))


def spread(x):
    return x.flatten()[:700].as_strided(SHAPE, (0, 7, 3, 5))


RIGHT = {
    "as they are": lambda x: x,
    "expanded": lambda x: x[:, :1, :1].expand(SHAPE),
    "overlapping": overlapping,
    "overlapping, last axis spread": spread,
    "transposed": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "flipped": lambda x: x.flip(2),
    "offset": lambda x: torch.cat([x.flatten(), x.flatten()])[3 : 3 + x.numel()].reshape(SHAPE),
    "negated view": lambda x: torch._neg_view(x),
    "imaginary part of a conjugate": lambda x: torch.complex(x, x).conj().imag,
    "plain subclass": lambda x: x.as_subclass(Labelled),
    "parameter": lambda x: torch.nn.Parameter(x.detach()),
}


@pytest.mark.parametrize("kind", RIGHT)
def test_right(qkv, kind):
    q, k, v = (RIGHT[kind](x) for x in qkv)
    with torch.no_grad():
        close(attention(q, k, v), reference(q, k, v))


BESIDE = {
    "rows from the last": lambda a: a[:, :, ::-1],
    "channels from the last": lambda a: a[..., ::-1],
    "read-only": lambda a: np.broadcast_to(a, a.shape),
    "column order": np.asfortranarray,
    "between elements": lambda a: np.frombuffer(b"." + a.tobytes(), np.uint8)[1:].view(np.float32).reshape(a.shape),
    "strides of parts of elements": lambda a: np.rec.fromarrays([a, a > 0], names="x, y").x,
}


@pytest.mark.parametrize("kind", BESIDE)
def test_arrays_of_numpy_beside_tensors(qkv, kind):
    """As arguments and around a score_mod: torch itself has no such tensors."""
    q, k, v = qkv
    array = BESIDE[kind](k.numpy())
    keys = torch.tensor(np.ascontiguousarray(array))
    close(attention(q, array, v), reference(q, keys, v))
    q.requires_grad_()
    close(attention(q, array, v), reference(q, keys, v))
    close(torch.func.vmap(lambda q: attention(q, array, v))(q[None])[0], reference(q, keys, v))
    table = BESIDE[kind](np.random.default_rng(0).random(SHAPE, dtype=np.float32))
    found = weft.attention.attend(q, k, v, score_mod=lambda s, b, h, n, m: s + table[b, h, m, 3])
    scores = q.double() @ k.double().mT / 4 + torch.tensor(np.ascontiguousarray(table)).double()[..., None, :, 3]
    close(found, scores.softmax(-1) @ v.double())


@pytest.mark.parametrize("kind", [kind for kind in RIGHT if kind not in ("parameter", "as they are")])
def test_gradients_through(qkv, kind):
    q, k, v = qkv
    found, wanted = (q.clone().requires_grad_() for _ in range(2))
    weights = torch.randn(SHAPE)
    (attention(RIGHT[kind](found), k, v) * weights).sum().backward()
    (reference(RIGHT[kind](wanted), k, v) * weights).sum().backward()
    close(found.grad, wanted.grad)


@pytest.mark.parametrize("kind", ["torch", "NumPy"])
def test_copies_have_rows_of_their_own(kind):
    """Rows with gaps may start at multiples of 16 bytes where those of the copy that kernels read do not."""
    x = torch.randn(1, 2, 16, 10)
    spaced = torch.stack([x, x], -1).flatten(3)[..., :20:2]
    assert spaced.stride() == (640, 320, 20, 2) and spaced.data_ptr() % 16 == 0
    found = attention(*3 * [spaced if kind == "torch" else spaced.numpy()])
    close(torch.as_tensor(found), reference(x, x, x))


GRADIENTS = {
    "expanded": lambda y, w: y.sum(),
    "negated": lambda y, w: (torch._neg_view(y) * w).sum(),
    "transposed": lambda y, w: (y.transpose(2, 3) * w.transpose(2, 3)).sum(),
    "of some rows": lambda y, w: (y * w)[:, :, 3:7].sum(),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_incoming_gradients(qkv, kind):
    q, k, v = qkv
    found, wanted = (q.clone().requires_grad_() for _ in range(2))
    weights = torch.randn(SHAPE)
    GRADIENTS[kind](attention(found, k, v), weights).backward()
    GRADIENTS[kind](reference(wanted, k, v), weights).backward()
    close(found.grad, wanted.grad)


def test_incoming_gradients_refused(qkv):
    q, k, v = qkv
    y = attention(q.clone().requires_grad_(), k, v)
    with pytest.raises(weft.CompilationError, match=r"'a gradient of attention'.*as torch.vmap makes them"):
        torch.autograd.grad(y, y.grad_fn.next_functions[0][0].variable, torch.stack([q, q]), is_grads_batched=True)


def of_nothing():
    """Programs that no test has compiled before, and the shapes that they take of [B, H, N, D]."""
    same = [lambda *s: s] * 3
    grouped = [lambda b, h, n, d: (b, 2 * h, n, d), *same[:2]]
    per_channel = [same[0], lambda b, h, n, d: (h, d)]
    return {
        "attention": (lambda q, k, v: weft.softmax(q, k, weft.causal()) @ v, same),
        "groups": (lambda q, k, v: weft.softmax(q, k) @ v, grouped),
        "score_mod": (lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: 2 * s) @ v, same),
        "window": (lambda q, k, v: weft.softmax(q, k, weft.window(3, 3)) @ v, same),
        "sum of mixers": (lambda q, k, v: (weft.softmax(q, k) + weft.mean()) @ v, same),
        "mean": (lambda v: weft.mean() @ v, same[:1]),
        "prefix mean": (lambda v: weft.mean(causal=True) @ v, same[:1]),
        "gate": (lambda g, v: weft.diag(g) @ v, same[:2]),
        "taps": (lambda w, v: weft.toeplitz(w) @ v, [lambda b, h, n, d: (3, h * d), same[0]]),
        "norm": (lambda x, g: weft.rms_norm(x, g, eps=1e-3), per_channel),
        "sum": (lambda x: weft.sum(x, 2), same[:1]),
        "linear": (lambda x, w: weft.linear(x, w), [same[0], lambda b, h, n, d: (8, d)]),
        "heads": (lambda x: weft.mean_heads(x, heads=1), same[:1]),
        "rope": (lambda x: weft.rope(x), same[:1]),
        "elements": (lambda x, y: weft.tanh(x) * y + x, same[:2]),
    }


@pytest.mark.parametrize("axis", range(4), ids="BHND")
@pytest.mark.parametrize("name", of_nothing())
def test_nothing_of_nothing(name, axis):
    """A program whose first call is one of empty tensors runs, or says what must not be empty."""
    function, shapes = of_nothing()[name]
    sizes = [1, 2, 24, 16]
    sizes[axis] = 0
    operands = [torch.zeros(shape(*sizes), requires_grad=True) for shape in shapes]
    try:
        y = weft.Program(function)(*operands)
    except weft.CompilationError as error:
        assert axis == 3 or (name, axis) == ("heads", 1)
        assert re.search("expected a size of at least 1 .* but got 0", str(error))
        return
    y.sum().backward()
    assert not y.isnan().any()
    assert all(x.grad is not None and x.grad.shape == x.shape and not x.grad.any() for x in operands if not y.numel())


def test_no_keys(qkv):
    q, k, v = qkv
    assert not weft.attention.attend(q, k[:, :, :0], v[:, :, :0]).any()
    assert weft.attention.attend(q[:, :, :0], k, v).shape == (1, 2, 0, 16)


@pytest.mark.slow  # torch's compiler takes its time
def test_compiled_around(qkv):
    """torch.compile breaks its graph at a call."""
    q, k, v = qkv
    found, wanted = (q.clone().requires_grad_() for _ in range(2))
    torch.compile(lambda q: attention(q * 2, k, v) * 2, backend="aot_eager")(found).sum().backward()
    (reference(wanted * 2, k, v) * 2).sum().backward()
    close(found.grad, wanted.grad)


def test_functional_call(qkv):
    module = weft.nn.Attention(32, 2)
    x = qkv[0].reshape(1, 24, 32)
    doubled = {name: 2 * p.detach() for name, p in module.named_parameters()}
    with torch.no_grad():
        found = torch.func.functional_call(module, doubled, (x,))
        module.load_state_dict(doubled)
        assert torch.equal(found, module(x))


def test_checkpoints_and_hooks_on_saved_tensors(qkv):
    q, k, v = qkv
    plain, kept, again = (q.clone().requires_grad_() for _ in range(3))
    attention(plain, k, v).sum().backward()
    with torch.autograd.graph.save_on_cpu():
        y = attention(kept, k, v)
    y.sum().backward()
    torch.utils.checkpoint.checkpoint(lambda q: attention(q, k, v), again, use_reentrant=False).sum().backward()
    assert torch.equal(plain.grad, kept.grad) and torch.equal(plain.grad, again.grad)


@pytest.mark.parametrize("changed", ["input", "result"])
def test_what_is_saved_may_not_change(qkv, changed):
    q, k, v = qkv
    x = q.clone().requires_grad_() * 1
    y = attention(x, k, v)
    (x if changed == "input" else y).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_results_in_tensors_of_the_caller_are_changes(qkv):
    """What a library's program wrote over is no longer what a backward kept."""
    library = attention.compile("sm_80", ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv"))
    out, weight = torch.zeros(SHAPE), torch.randn(SHAPE, requires_grad=True)
    before = (out * weight).sum()
    library.program("attention").run(qkv, [out])
    close(out, reference(*qkv))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.backward()
    with torch.inference_mode():
        library.program("attention").run(qkv, [torch.zeros(SHAPE)])
