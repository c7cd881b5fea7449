# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs as operators of torch: what records, transforms or compiles torch's operations sees them, and gives the same
numbers as a plain call.
"""

import functools

import pytest
import torch
import weft
from torch._dynamo.testing import CompileCounterWithBackend
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import opcheck
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from weft.attention import attend, sas, sema
from weft.runtime.operators import Operators, Plans, recorded_by

pytestmark = pytest.mark.filterwarnings("ignore")
LENGTHS = (24, 40, 17, 33, 48, 9, 25, 31, 64, 12)


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@pytest.fixture(autouse=True)
def fresh(seed):
    torch.manual_seed(seed)
    torch._dynamo.reset()


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


def qkv(n, heads=2, kv_heads=None, d=16):
    return leaf(2, heads, n, d), leaf(2, kv_heads or heads, n, d), leaf(2, kv_heads or heads, n, d)


def gradients(f, tensors):
    """The result of ``f`` and its gradients, with weights that are the same for each call."""
    out = f(*tensors)
    weights = torch.cos(torch.arange(out.numel(), dtype=torch.float32)).reshape(out.shape)
    wanted = [each for each in tensors if each.requires_grad]
    return out, torch.autograd.grad((out.float() * weights).sum(), wanted)


def same(found, expected, rtol=2e-6):
    """Equal up to what another order of torch's own operations around a program may change."""
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        torch.testing.assert_close(a, b, rtol=rtol, atol=rtol * float(b.detach().abs().max()))


# ---- torch.compile

TABLE = torch.randn(2)
WINDOW = weft.window(5, 0)


class Cap:
    value = 20.0


CAP = Cap()


def soft_cap(s, b, h, n, m):
    return CAP.value * weft.tanh(s / CAP.value)


def inner_mod(q, k, v):
    slopes = TABLE * 2
    pattern = weft.causal() & weft.window(7, 3)
    return attend(q, k, v, pattern, score_mod=lambda s, b, h, n, m: s - slopes[h] * (n - m))


@weft.program
def structured(parts, *, scale):
    return {"out": weft.softmax(parts["q"], parts["k"], WINDOW, scale=scale) @ parts["v"]}


COMPILED = {
    "program": (attention, qkv),
    "pattern from around": (lambda q, k, v: attend(q, k, v, WINDOW), qkv),
    "pattern made inside": (lambda q, k, v: attend(q, k, v, weft.causal()), qkv),
    "groups of heads": (lambda q, k, v: attend(q, k, v, weft.causal()), lambda n: qkv(n, 4, 2)),
    "score_mod made inside": (inner_mod, qkv),
    "score_mod of a global": (lambda q, k, v: attend(q, k, v, score_mod=soft_cap), qkv),
    "table from around": (
        lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s + TABLE[h] * (n - m)),
        qkv,
    ),
    "captured gradient": (
        lambda q, k, v, t: attend(q, k, v, score_mod=lambda s, b, h, n, m: s + t[h, m % 8]),
        lambda n: (*qkv(n), leaf(2, 8)),
    ),
    "documents": (
        lambda q, k, v, ids: attend(q, k, v, weft.document(ids, ids) & weft.causal()),
        lambda n: (*qkv(n), torch.randint(0, 3, (2, n), dtype=torch.int32)),
    ),
    "dictionary": (lambda q, k, v: structured({"q": q, "k": k, "v": v}, scale=0.5)["out"], qkv),
    "two results": (lambda q, k, v: functools.reduce(torch.mul, _with_lse(q, k, v)), qkv),
    "sema": (lambda q, k, v: sema(q, k, v, window=8), qkv),
    "sas": (lambda q, k, v, *w: sas(q, k, v, *_expansions(w), kernel=3), lambda n: (*qkv(n), *_weights())),
    "partial": (lambda q, k, v: attend(q, k, v, score_mod=functools.partial(_scaled, factor=0.5)), qkv),
}


def _scaled(s, b, h, n, m, factor):
    return s * factor


def _with_lse(q, k, v):
    out, lse = attend(q, k, v, weft.causal(), return_lse=True)
    return out, lse[..., None]


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_whole(name):
    """Without a graph break, forward and backward, over ten lengths: at most two graphs."""
    f, make = COMPILED[name]
    backend = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(f, fullgraph=True, dynamic=True, backend=backend)
    for n in LENGTHS:
        tensors = make(n)
        same(gradients(compiled, tensors), gradients(f, tensors))
    assert backend.frame_count <= 2


def test_compiled_by_inductor():
    f = lambda q, k, v: attend(q.sin(), k, v, weft.causal()).relu()  # noqa: E731
    compiled = torch.compile(f, fullgraph=True, dynamic=True)
    for n in (24, 33):
        tensors = qkv(n)
        same(gradients(compiled, tensors), gradients(f, tensors), rtol=2e-5)


@pytest.mark.parametrize("module", [weft.nn.Attention, weft.nn.SEMA], ids=["Attention", "SEMA"])
def test_modules_compile(module):
    made = module(64, 4, **({"pattern": weft.causal(), "rope": True} if module is weft.nn.Attention else {"window": 8}))
    compiled = torch.compile(made, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (24, 33, 17):
        x = leaf(2, n, 64)
        same(gradients(compiled, [x]), gradients(made, [x]))


def test_what_a_call_reads_is_guarded():
    """A compiled function is compiled again where a pattern, a global, an attribute or a closure changed."""
    tensors = [4 * each.detach() for each in qkv(24)]
    capped = torch.compile(COMPILED["score_mod of a global"][0], fullgraph=True, backend="eager")
    before = capped(*tensors)
    CAP.value = 2.0
    try:
        after = capped(*tensors)
        assert torch.equal(after, attend(*tensors, score_mod=soft_cap)) and not torch.equal(before, after)
    finally:
        CAP.value = 20.0
    pattern = weft.window(3, 0)
    factor = 1.0

    def f(q, k, v):
        return attend(q, k, v, pattern, score_mod=lambda s, b, h, n, m: s * factor)

    compiled = torch.compile(f, fullgraph=True, backend="eager")
    found = [compiled(*tensors)]
    pattern = weft.window(9, 0)
    found.append(compiled(*tensors))
    factor = 0.25
    found.append(compiled(*tensors))
    pattern = weft.window(3, 0)
    factor = 1.0
    found.append(compiled(*tensors))
    assert torch.equal(found[0], found[3])
    assert not any(torch.equal(a, b) for a, b in ((found[0], found[1]), (found[1], found[2]), (found[0], found[2])))
    factor = 0.25
    assert torch.equal(compiled(*tensors), f(*tensors))


def test_equal_patterns_are_one_graph():
    backend = CompileCounterWithBackend("eager")
    compiled = torch.compile(attend, fullgraph=True, dynamic=True, backend=backend)
    q, k, v = (each.detach() for each in qkv(24))
    for _ in range(3):
        assert torch.equal(compiled(q, k, v, weft.window(4, 0)), attend(q, k, v, weft.window(4, 0)))
    assert backend.frame_count == 1


def test_what_cannot_be_compiled_breaks_the_graph():
    f = lambda q, k, v: (weft.softmax(q, k, weft.causal()) @ v.sin()).cos()  # noqa: E731
    tensors = qkv(24)
    same(gradients(torch.compile(f, backend="aot_eager"), tensors), gradients(f, tensors))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"inside of a function that @weft\.program"):
        torch.compile(f, backend="eager", fullgraph=True)(*tensors)


def test_mistakes_are_told_as_without_torch_compile():
    q, k, v = qkv(24)
    with pytest.raises(Exception, match=r"expected equal sizes|expected queries and keys"):
        torch.compile(attention, backend="eager", fullgraph=True)(q, k[..., :8], v)


# ---- torch.export, and what records operations


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = weft.nn.Attention(32, 2, pattern=weft.causal(), rope=True)

    def forward(self, x):
        return self.attention(x).relu()


@pytest.mark.parametrize("strict", [False, True])
def test_exported_with_symbolic_sizes(strict):
    model = Model().eval()
    dims = {0: torch.export.Dim("batch", min=2, max=64), 1: torch.export.Dim("length", min=2, max=512)}
    with torch.no_grad():
        found = torch.export.export(model, (torch.randn(2, 24, 32),), dynamic_shapes=(dims,), strict=strict)
        for batch, n in ((2, 24), (3, 17), (5, 40)):
            x = torch.randn(batch, n, 32)
            torch.testing.assert_close(found.module()(x), model(x), rtol=1e-6, atol=1e-6)
    assert any("torch.ops.weft" in str(node.target) or "weft." in str(node.target) for node in found.graph.nodes)


def fake(q, k, v):
    with FakeTensorMode(allow_non_fake_inputs=True):
        return attention(q, k, v)


def fake_operands(q, k, v):
    mode = FakeTensorMode()
    return attention(*(mode.from_tensor(x) for x in (q, k, v)))


SHAPES = {
    "FakeTensorMode": fake,
    "FakeTensor": fake_operands,
    "meta": lambda q, k, v: attention(q.to("meta"), k.to("meta"), v.to("meta")),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_shapes_without_data(kind):
    q, k, v = (each.detach() for each in (leaf(2, 4, 24, 16), leaf(2, 2, 40, 16), leaf(2, 2, 40, 8)))
    found, wanted = SHAPES[kind](q, k, v), attention(q, k, v)
    assert (found.shape, found.dtype, found.stride()) == (wanted.shape, wanted.dtype, wanted.stride())


def test_shapes_of_the_hosts_tensors_beside_a_devices():
    """Results lie on the device, wherever among the inputs the host's tensors are; gradients where their inputs do."""
    on_host, on_device = torch.randn(1, 2, 24, 16), torch.empty(1, 2, 24, 16, device="meta")
    called = []
    with recorded_by(lambda made, tensors: called.append(made) or made.run_forward(tensors)):
        attention(on_device, on_device, on_device)
    assert called[0].run_forward([on_host, on_device, on_device])[0].device.type == "meta"
    made = Operators("f", "f", Plans({}, {"gradients_of": [2, 0]}, 1), None, None, None)
    found = made.by_input([torch.ones(2), torch.zeros(2)], [on_device, on_host, on_host])
    assert [None if each is None else each.device.type for each in found] == ["meta", None, "cpu"]
    assert torch.equal(found[2], torch.ones(2))


RECORDED = {
    "torch.jit.trace": lambda q, k, v: torch.jit.trace(lambda *x: attention(*x), (q, k, v), check_trace=False),
    "make_fx": lambda q, k, v: make_fx(attention)(q, k, v),
    "pre_dispatch": lambda q, k, v: make_fx(attention, pre_dispatch=True)(q, k, v),
}


@pytest.mark.parametrize("kind", RECORDED)
def test_recorded(kind):
    first, second = ([each.detach() for each in qkv(24)] for _ in range(2))
    assert torch.equal(RECORDED[kind](*first)(*second), attention(*second))


# ---- torch.func


def loss(q, k, v):
    return attention(q, k, v).square().sum()


def test_func_grad():
    q, k, v = qkv(24)
    found = torch.func.grad(loss, argnums=(0, 1, 2))(q.detach(), k.detach(), v.detach())
    assert all(map(torch.equal, found, torch.autograd.grad(loss(q, k, v), (q, k, v))))


def test_func_vjp_and_jacrev():
    q, k, v = (each.detach() for each in qkv(8))
    out, vjp = torch.func.vjp(attention, q, k, v)
    given = torch.randn_like(out)
    leaves = [each.clone().requires_grad_() for each in (q, k, v)]
    wanted = torch.autograd.grad(attention(*leaves), leaves, given)
    assert all(map(torch.equal, vjp(given), wanted))
    rows = torch.func.jacrev(lambda q: attention(q, k, v).sum((1, 2, 3)))(q)
    for number, row in enumerate(rows):
        alone = torch.func.grad(lambda q, number=number: attention(q, k, v).sum((1, 2, 3))[number])(q)
        torch.testing.assert_close(row, alone)


@pytest.mark.parametrize("dims", [(0, None, None), (None, 1, 1), (2, 2, 2)])
def test_vmap(dims):
    plain = [each.detach() for each in qkv(24)]
    tensors = [
        each if dim is None else torch.stack([each, each.flip(2), each * 2], dim)
        for each, dim in zip(plain, dims, strict=True)
    ]
    found = torch.vmap(attention, in_dims=dims)(*tensors)
    rows = torch.vmap(torch.func.grad(loss), in_dims=dims)(*tensors)
    for number in range(3):
        each = [t if dim is None else t.select(dim, number) for t, dim in zip(tensors, dims, strict=True)]
        assert torch.equal(found[number], attention(*each))
        assert torch.equal(rows[number], torch.func.grad(loss)(*each))


def test_functionalize():
    q, k, v = (each.detach() for each in qkv(24))
    assert torch.equal(torch.func.functionalize(attention)(q, k, v), attention(q, k, v))


def test_func_grad_of_a_compiled_function():
    q, k, v = (each.detach() for each in qkv(24))
    f = lambda q, k, v: torch.func.grad(loss)(q, k, v)  # noqa: E731
    torch.testing.assert_close(torch.compile(f, backend="aot_eager", fullgraph=True)(q, k, v), f(q, k, v))


# ---- Autocast, checkpoints


@pytest.mark.parametrize("compiled", [False, True])
def test_autocast_as_torch_does(compiled):
    q, k, v = qkv(24)
    ours = lambda q, k, v: attend(q, k, v)  # noqa: E731
    ours = torch.compile(ours, backend="aot_eager", fullgraph=True) if compiled else ours
    theirs = torch.nn.functional.scaled_dot_product_attention
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, wanted = ours(q, k, v), theirs(q, k, v)
    assert found.dtype == wanted.dtype == torch.bfloat16
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)
    given = torch.randn_like(found)
    pairs = (torch.autograd.grad(each, (q, k, v), given) for each in (found, wanted))
    for a, b in zip(*pairs, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=5e-2, atol=5e-2)


def test_checkpoints():
    """Computed again in the backward, or kept by a policy that knows programs by their operators."""
    f = lambda q, k, v: attend(q.sin(), k, v, weft.causal()).cos()  # noqa: E731
    tensors = qkv(24)
    expected = gradients(f, tensors)
    same(gradients(lambda *x: checkpoint(f, *x, use_reentrant=False), tensors), expected, rtol=0)
    seen = []

    def policy(context, operator, *args, **keywords):
        mine = operator.namespace == "weft"
        seen.append((mine, context.is_recompute))
        return CheckpointPolicy.MUST_SAVE if mine else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    kept = gradients(lambda *x: checkpoint(f, *x, use_reentrant=False, context_fn=contexts), tensors)
    same(kept, expected, rtol=0)
    assert (True, False) in seen


def test_the_profiler_names_programs():
    q, k, v = (each.detach() for each in qkv(24))
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    compiled(q, k, v)
    with torch.profiler.profile() as profile:
        compiled(q, k, v)
    assert "weft::attention" in {each.name for each in profile.events()}


# ---- Libraries


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    out = tmp_path_factory.mktemp("library") / "attention"
    attention.compile("sm_80", ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv"), out)
    return weft.load(out)


def test_a_library_compiles_whole(library):
    f = library.differentiable("attention")
    backend = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(lambda q, k, v: f(q, k, v).cos(), fullgraph=True, dynamic=True, backend=backend)
    for n in LENGTHS:
        tensors = qkv(n)
        same(gradients(compiled, tensors), gradients(lambda *x: f(*x).cos(), tensors))
    assert backend.frame_count <= 2


def test_a_library_without_gradients(library):
    program = library.program("attention")
    tensors = [each.detach() for each in qkv(24)]
    compiled = torch.compile(lambda q, k, v: program(q, k, v=v), fullgraph=True, dynamic=True, backend="aot_eager")
    assert torch.equal(compiled(*tensors), program(*tensors))
    assert torch.equal(torch.vmap(program)(*(t[None] for t in tensors))[0], program(*tensors))
    assert program(*(t.to("meta") for t in tensors)).shape == tensors[0].shape


def test_a_librarys_operators_are_called_the_same_in_every_process(library):
    again = weft.load(library.path)
    assert again.program("attention").identity == library.program("attention").identity
    saved = torch.export.export(_Library(library), tuple(each.detach() for each in qkv(24)))
    names = [str(node.target) for node in saved.graph.nodes if "weft" in str(node.target)]
    assert names == [f"weft.attention_{again.program('attention').identity}_inference.default"]


class _Library(torch.nn.Module):
    def __init__(self, library):
        super().__init__()
        self.program = library.program("attention")

    def forward(self, q, k, v):
        return self.program(q, k, v)


def test_what_does_not_fit_a_library_is_told_without_data_too(library):
    """On meta tensors and under vmap, as kernels tell it."""
    f = library.differentiable("attention")
    q, k, v = (each.detach().to("meta") for each in qkv(24))
    with pytest.raises(ValueError, match=r"argument 'q': expected 4 axes, \[B, H, N, 16\], but got 3: \[2, 24, 16\]"):
        f(q[0], k[0], v[0])
    with pytest.raises(ValueError, match="argument 'k': expected size N = 24 on axis 2, but got 23"):
        f(q, k[:, :, :23], v)
    with pytest.raises(ValueError, match="argument 'v': expected elements of fp32, but got fp16"):
        f(q, k, v.half())
    with pytest.raises(ValueError, match="argument 'q': expected 4 axes"):
        torch.vmap(f)(*qkv(24))


# ---- Results that depend on no input that has gradients


@weft.program
def larger(x, y):
    return x > y


@weft.program
def steps(x, count):
    return weft.where(count > 1, 1.0, 0.0).to("fp32")


TRANSFORMS = {
    "plain": lambda f: f,
    "grad": lambda f: lambda x, y: torch.func.vjp(lambda x: (x, f(x, y)), x, has_aux=True)[2],
    "jvp": lambda f: lambda x, y: torch.func.jvp(lambda x: f(x, y), (x,), (x,))[0],
    "vmap": lambda f: torch.vmap(f),
    "vmap of grad": lambda f: torch.vmap(lambda x, y: torch.func.vjp(lambda x: (x, f(x, y)), x, has_aux=True)[2]),
    "compile": lambda f: torch.compile(f, fullgraph=True, backend="aot_eager"),
    "make_fx": lambda f: lambda x, y: make_fx(f)(x, y)(x, y),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", [larger, steps], ids=["truths", "of integers"])
def test_results_without_gradients(program, transform):
    """Of inputs that require gradients, or that a transform goes over."""
    x, y = leaf(3, 4), (torch.arange(12, dtype=torch.int32).view(3, 4) if program is steps else torch.randn(3, 4))
    expected = (y > 1).float() if program is steps else x > y
    assert torch.equal(TRANSFORMS[transform](program)(x, y), expected)
    found = program(x, y)
    if program is steps:
        (found.sum() + x.sum()).backward()
        assert torch.equal(x.grad, torch.ones(3, 4))
        assert torch.equal(torch.func.grad(lambda x: (steps(x, y) * x).sum())(x), expected)
        return
    assert not found.requires_grad and not torch.func.jvp(larger, (x, y), (x, y))[1].any()
    with pytest.raises(weft.CompilationError, match="expected 'larger' to have a result of floats"):
        larger.forward(x.detach(), y)


def test_maps_over_integers_ask_for_no_gradients():
    q, k, v = (each.detach() for each in qkv(9))
    seeds = torch.randint(99, (3, 2), dtype=torch.int32)

    def dropped(seed):
        return attend(q, k, v, dropout_p=0.5, dropout_seed=seed)

    assert torch.equal(torch.vmap(dropped)(seeds), torch.stack([dropped(each) for each in seeds]))


# ---- opcheck


@weft.program
def with_loss(q, k, v, g):
    return weft.softmax(q, k) @ v, weft.sum(q * weft.sigmoid(g), 3)


@weft.program
def counted(q, k, v, count):
    pattern = weft.mask(lambda b, h, n, m: m < count[b])
    return weft.softmax(q, k, pattern) @ v


def _starts(n):
    return torch.tensor([0, n // 3, n], dtype=torch.int32)


def _weights():
    """Of three expansions of 2 heads to 4."""
    return [leaf(*shape) for _ in range(3) for shape in ((4, 2, 3), (4,), (4, 4, 3), (4,))]


def _expansions(weights):
    names = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias")
    return [dict(zip(names, weights[first : first + 4], strict=True)) for first in (0, 4, 8)]


CHECKED = {
    "attend": COMPILED["pattern made inside"],
    "groups": COMPILED["groups of heads"],
    "sema": COMPILED["sema"],
    "sas": (lambda q, k, v, *w: sas(q, k, v, *_expansions(w), kernel=3), lambda n: (*qkv(n), *_weights())),
    "sinks": (lambda q, k, v, sink: attend(q, k, v, sink=sink), lambda n: (*qkv(n), leaf(2))),
    "bias": (lambda q, k, v, bias: attend(q, k, v, bias=bias), lambda n: (*qkv(n), leaf(2, 2, n, n))),
    "captured bias": COMPILED["captured gradient"],
    "documents": COMPILED["documents"],
    "packed": (
        lambda q, k, v, s: attend(q[:1], k[:1], v[:1], weft.causal(), cu_seqlens_q=s, cu_seqlens_k=s),
        lambda n: (*qkv(n), _starts(n)),
    ),
    "several results": (with_loss, lambda n: (*qkv(n), leaf(2, 2, n, 16))),
    "integers": (counted, lambda n: (*qkv(n), torch.tensor([n, n // 2], dtype=torch.int32))),
    "no gradients": (attention, lambda n: tuple(each.detach() for each in qkv(n))),
    "mean": (weft.Program(lambda v: weft.mean(causal=True) @ v), lambda n: (leaf(2, 2, n, 16),)),
}


def operator_of(f, tensors):
    """The operator that a call of one program goes through, and what it is called with."""
    calls = []

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator.namespace == "weft":
                calls.append((operator, args))
            return operator(*args, **(kwargs or {}))

    with Seen():
        f(*tensors)
    ((operator, args),) = calls
    return operator, tuple(each.detach().requires_grad_(each.requires_grad) for each in args)


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    f, make = CHECKED[name]
    operator, args = operator_of(f, make(24))
    found = opcheck(operator, args)
    assert set(found.values()) == {"SUCCESS"} and len(found) == 4
