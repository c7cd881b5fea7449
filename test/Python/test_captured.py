# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arrays from around a score_mod, a mask or a program, wherever they are kept, and functions of torch and NumPy there:
results and gradients against float64, twice, with other contents the second time."""

import functools
import random
import types

import numpy as np
import pytest
import torch
import weft

B, H, N, D = 2, 2, 12, 16
b, h = torch.arange(B)[:, None, None, None], torch.arange(H)[None, :, None, None]
n, m = torch.arange(N)[:, None], torch.arange(N)


@pytest.fixture
def qkv(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, B, H, N, D, generator=generator).unbind()


def attention(q, k, v, change):
    scores = change(q.double() @ k.double().mT / D**0.5)
    return scores.softmax(-1) @ v.double()


def agree(found, right, leaves, seed):
    """Results, and gradients of the leaves by a random cotangent."""
    assert (found - right).abs().max() < 2e-5
    if not leaves:
        return
    cotangent = torch.randn(right.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mine = torch.autograd.grad(found, leaves, cotangent.float())
    theirs = torch.autograd.grad(right, leaves, cotangent)
    for one, other in zip(mine, theirs, strict=True):
        assert (one - other).abs().max() <= 1e-4 * max(1.0, float(other.abs().max()))


# ---- Where arrays are kept


class Holder:
    def __init__(self, table):
        self.table = table

    @property
    def doubled(self):
        return self.table * 2

    def bias(self, s, b, h, n, m):
        return s - self.table[h] * (n - m)

    def __call__(self, s, b, h, n, m):
        return self.bias(s, b, h, n, m)


class Module(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Parameter(table.detach()) if table.requires_grad else table
        self.inner = torch.nn.Module()
        self.inner.register_buffer("scale", torch.tensor(1.0))

    def bias(self, s, b, h, n, m):
        return s - self.table[h] * (n - m) * self.inner.scale


TABLE = None


def read_global(s, b, h, n, m):
    return s - TABLE[h] * (n - m)


def read_by_helper(s, b, h, n, m):
    return read_global(s, b, h, n, m)


def kept_globally(table):
    global TABLE
    TABLE = table
    return read_global


def kept_by_a_helper(table):
    kept_globally(table)
    return read_by_helper


def nested(table):
    def read(h):
        return table[h]

    def mod(s, b, h, n, m):
        return s - read(h) * (n - m)

    return mod


KEPT = {
    "a closure": lambda t: lambda s, b, h, n, m: s - t[h] * (n - m),
    "a global": kept_globally,
    "a helper's global": kept_by_a_helper,
    "a nested function": nested,
    "an attribute": lambda t: (lambda o: lambda s, b, h, n, m: s - o.table[h] * (n - m))(Holder(t)),
    "a bound method": lambda t: Holder(t).bias,
    "an object that is called": Holder,
    "a partial": lambda t: functools.partial(lambda t, s, b, h, n, m: s - t[h] * (n - m), t),
    "a partial of a method": lambda t: functools.partial(Holder.bias, Holder(t)),
    "a default": lambda t: lambda s, b, h, n, m, t=t: s - t[h] * (n - m),
    "a dict": lambda t: (lambda d: lambda s, b, h, n, m: s - d["a"][0][h] * (n - m))({"a": [t]}),
    "a namespace": lambda t: (lambda o: lambda s, b, h, n, m: s - o.t[h] * (n - m))(types.SimpleNamespace(t=t)),
}
OF_TORCH = {
    "a parameter": lambda t: Module(t).bias,
    "a property": lambda t: (lambda o: lambda s, b, h, n, m: s - o.doubled[h] * 0.5 * (n - m))(Holder(t)),
    "what torch computes": lambda t: lambda s, b, h, n, m: s - (t * 1.0).view(-1)[h] * (n - m),
}


@pytest.mark.parametrize("kept", [*KEPT, *OF_TORCH])
def test_where_a_tensor_is_kept(qkv, seed, kept):
    q, k, v = qkv
    table = torch.tensor([0.25, -0.5], requires_grad=kept != "a parameter")
    mod = {**KEPT, **OF_TORCH}[kept](table)
    for _ in range(2):
        found = weft.attention.attend(q, k, v, weft.causal(), score_mod=mod)
        right = attention(q, k, v, lambda s: (s - table.double()[h] * (n - m)).masked_fill(m > n, -torch.inf))
        agree(found, right, [table] if table.requires_grad else [], seed)
        with torch.no_grad():
            table.mul_(-1.5)


@pytest.mark.parametrize("kept", KEPT)
def test_where_an_array_of_numpy_is_kept(qkv, kept):
    q, k, v = qkv
    table = np.array([0.25, -0.5], np.float32)
    mod = KEPT[kept](table)
    for _ in range(2):
        found = weft.attention.attend(q.numpy(), k.numpy(), v.numpy(), weft.causal(), score_mod=mod)
        change = torch.from_numpy(table.copy()).double()[h] * (n - m)
        right = attention(q, k, v, lambda s, c=change: (s - c).masked_fill(m > n, -torch.inf))
        agree(torch.from_numpy(found), right, [], 0)
        table *= -1.5


def test_in_a_program_and_its_mask(qkv, seed):
    q, k, v = qkv
    generator = torch.Generator().manual_seed(seed)
    slopes, gain = torch.rand(H, generator=generator), torch.randn(H, D, generator=generator)
    ids = torch.randint(0, 3, (B, N), generator=generator, dtype=torch.int32).sort().values
    number = torch.tensor(0.7)
    leaves = [x.requires_grad_() for x in (slopes, gain, number)]
    same = weft.mask(lambda b, h, n, m: ids[b, n] == ids[b, m])

    @weft.program
    def program(q, k, v):
        q = weft.rms_norm(torch.relu(q) + q * number, gain)
        return weft.softmax(q, k, same, score_mod=lambda s, b, h, n, m: s + slopes[h] * m) @ torch.tanh(v)

    for _ in range(2):
        x = (q.relu() + q * number).double()
        x = x / (x * x).mean(-1, keepdim=True).add(1e-6).sqrt() * gain.double()[:, None]
        apart = (ids[:, :, None] != ids[:, None])[:, None]
        bias = (slopes.double()[h] * m).masked_fill(apart, -torch.inf)
        right = attention(x, k, v.double().tanh(), lambda s, bias=bias: s + bias)
        agree(program(q, k, v), right, leaves, seed)
        with torch.no_grad():
            number.mul_(-2)
            ids.copy_(ids.flip(1).max() - ids.flip(1))


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_what_is_only_compared_has_no_gradient(qkv, seed, beside):
    """A tensor that decides, and enters no number, beside one that does."""
    gate, slope = (torch.randn(2).requires_grad_() for _ in range(2))

    def mod(score, b, h, n, m):
        return torch.where(gate[h] > 0.1, score * 2, score) + (slope[h] * (n - m) if beside else 0.0)

    ours = [x.clone().requires_grad_() for x in qkv]
    out = weft.attention.attend(*ours, score_mod=mod)
    found = torch.autograd.grad(out.square().sum(), (*ours, gate, slope), allow_unused=True)
    q, k, v, exact = (x.detach().double().requires_grad_() for x in (*qkv, slope))
    score = q @ k.mT / q.shape[3] ** 0.5
    score = torch.where(gate[:, None, None] > 0.1, score * 2, score)
    distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    score = score + exact[:, None, None] * distance if beside else score
    wanted = torch.autograd.grad((score.softmax(-1) @ v).square().sum(), (q, k, v, exact), allow_unused=True)
    assert found[3] is None
    for grad, right in zip((*found[:3], found[4]), wanted, strict=True):
        assert (grad is None) == (right is None)
        if right is not None:
            torch.testing.assert_close(grad.double(), right, rtol=1e-4, atol=1e-4)


def test_a_number_among_the_arguments(qkv, seed):
    """A tensor without axes is an input with a gradient; as an option it is a number, at the time of the call."""

    @weft.program
    def program(q, k, v, factor, scale):
        return weft.softmax(q * factor, k, scale=scale, score_mod=lambda s, b, h, n, m: s + factor) @ v

    q, k, v = qkv
    factor, scale = torch.tensor(0.5, requires_grad=True), torch.tensor(0.25)
    for _ in range(2):
        change = lambda s: s * D**0.5 * scale.double() + factor.double()  # noqa: E731
        agree(program(q, k, v, factor, scale), attention(q * factor, k, v, change), [factor], seed)
        with torch.no_grad():
            factor.mul_(3)
            scale.mul_(2)


def test_numpy_finds_no_scalar_where_only_python_looks(qkv):
    """An array that no name leads to is refused by NumPy itself: the error says what to do."""
    q, k, v = qkv
    tables = iter([np.ones(H, np.float32)] * 9)
    with pytest.raises(weft.CompilationError, match="expected an array that a name leads to"):
        weft.attention.attend(q, k, v, score_mod=lambda s, b, h, n, m: s + next(tables)[h])


# ---- Functions

#: a function of a score, as torch spells it; the reference is itself
OF_SCORES = {
    name: getattr(torch, name)
    for name in (
        *("abs", "ceil", "cos", "erf", "exp", "exp2", "floor", "neg", "positive", "relu", "round"),
        *("sigmoid", "sign", "sin", "square", "tanh", "trunc", "absolute", "negative"),
    )
} | {
    "log": lambda s: torch.log(s.abs() + 0.5),
    "log2": lambda s: torch.log2(s * s + 1),
    "reciprocal": lambda s: torch.reciprocal(s * s + 1),
    "sqrt": lambda s: torch.sqrt(s * s + 1),
    "rsqrt": lambda s: torch.rsqrt(s * s + 1),
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu tanh": lambda s: torch.nn.functional.gelu(s, approximate="tanh"),
    "clamp": lambda s: torch.clamp(s, -0.5, 0.75),
    "clamp min": lambda s: s.clamp(min=-0.5),
    "clip": lambda s: torch.clip(s, max=0.25),
    "where": lambda s: torch.where(s > 0, s, -0.5 * s),
    "where of tensors": lambda s: torch.where(s > 0, s, torch.tensor(-2.0)),
    "maximum": lambda s: torch.maximum(s, -2 * s),
    "minimum": lambda s: torch.minimum(s, torch.tensor(0.25)),
    "methods": lambda s: s.tanh() + s.abs().sqrt() + s.sigmoid().float(),
    "powers": lambda s: s**2 + s**3.0 + 2**s + torch.pow(s, 2) + (s * s + 1) ** -2,
    "add alpha": lambda s: torch.add(s, s * s, alpha=0.5) - torch.sub(s, 1.0, alpha=2),
    "div": lambda s: torch.div(s, 3) + s / 2 + 1 / (s * s + 1) + torch.true_divide(s, 7),
    "div floor": lambda s: torch.div(s, 0.3, rounding_mode="floor"),
    "remainder": lambda s: torch.remainder(s, 0.75) + s % -0.5,
    "comparisons": lambda s: torch.where(torch.logical_and(s > -1, torch.lt(s, 1)), s, torch.zeros_like(s)),
    "logic": lambda s: torch.where(~(s > 0) | torch.logical_not(s < 1) ^ (s >= 2), s, torch.full_like(s, 3)),
    "ones": lambda s: s + torch.ones_like(s) * 2,
    "new ones": lambda s: s * s.new_ones(()) * 2 + s.new_zeros([]) + s.new_full((), 0.5),
    "to": lambda s: s.to(torch.float32) + (s > 0).to(s.dtype) + (s * 3).to(torch.int32) + (s > 0).float() * 2,
    "rsub": lambda s: torch.rsub(s, 1) + (1 - s) * torch.tensor(0.5),
}  # fmt: skip
#: functions of NumPy, beside those of torch that they are
OF_NUMPY = {
    "exp": (np.exp, torch.exp),
    "where": (lambda s: np.where(s > 0, s, 0.0), lambda s: s.clamp(min=0)),
    "maximum": (lambda s: np.maximum(s, 0.25), lambda s: s.clamp(min=0.25)),
    "a number": (lambda s: np.float32(2) * s + s * np.float64(0.5) - np.int32(3), lambda s: 2.5 * s - 3),
    "abs and tanh": (lambda s: np.abs(np.tanh(s)), lambda s: s.tanh().abs()),
    "clip": (lambda s: np.clip(s, -0.5, 0.5), lambda s: s.clamp(-0.5, 0.5)),
    "logic": (
        lambda s: np.where(np.logical_or(s > 1, np.logical_not(s > 0)), s, -s),
        lambda s: torch.where((s > 1) | ~(s > 0), s, -s),
    ),
}  # fmt: skip


def of_scores(qkv, seed, function, reference):
    """A function of scores: a random mean of the function and of the score, so that bends show and jumps do not."""
    q, k, v = (x.clone().requires_grad_() for x in qkv)
    found = weft.attention.attend(q, k, v, score_mod=lambda s, b, h, n, m: function(s))
    right = attention(q, k, v, reference)
    distance = (found - right).abs().max()
    assert distance < 1e-3, distance
    cotangent = torch.randn(right.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    mine = torch.autograd.grad(found, (q, k, v), cotangent.float())
    theirs = torch.autograd.grad(right, (q, k, v), cotangent)
    for one, other in zip(mine, theirs, strict=True):
        assert (one - other).abs().max() <= 2e-3 * max(1.0, float(other.abs().max()))


def test_functions_of_torch(qkv, seed):
    """Five at a time, in a random order."""
    names = random.Random(seed).sample(list(OF_SCORES), len(OF_SCORES))
    for some in (names[at : at + 5] for at in range(0, len(names), 5)):
        print(some)
        function = lambda s, some=some: sum(0.3 * OF_SCORES[name](s) for name in some)  # noqa: E731
        of_scores(qkv, seed, function, function)


def test_functions_of_numpy(qkv, seed):
    ours, theirs = zip(*OF_NUMPY.values(), strict=True)
    of_scores(qkv, seed, lambda s: sum(f(s) for f in ours), lambda s: sum(f(s) for f in theirs))


#: functions of indices: what flex attention's examples do
OF_INDICES = {
    "alibi": lambda s, b, h, n, m: s + (m - n) * torch.exp2(-((h + 1) * 8.0 / H)),
    "distance": lambda s, b, h, n, m: s - torch.abs(n - m) * 0.125,
    "softcap": lambda s, b, h, n, m: torch.tanh(s / 2) * 2,
    "causal": lambda s, b, h, n, m: torch.where(n >= m, s, -float("inf")),
    "window": lambda s, b, h, n, m: torch.where(torch.logical_and(n >= m, n - m <= 3), s, -float("inf")),
    "tiles": lambda s, b, h, n, m: torch.where(torch.eq(n // 4, m // 4) & (n % 3 != 1) | (m == n), s, -float("inf")),
    "clamped": lambda s, b, h, n, m: s + torch.clamp(n - m, -2, 2) * torch.minimum(h, b + 1) * 0.5,
    "powers": lambda s, b, h, n, m: s + 0.01 * (n - m) ** 2 - 0.001 * torch.square(m) + torch.sign(n - m) * 0.1,
    "everyone": lambda s, b, h, n, m: torch.where(b.new_ones(size=(), dtype=torch.bool, device=b.device), s, 0.0),
}


@pytest.mark.parametrize("name", OF_INDICES)
def test_functions_of_indices(qkv, seed, name):
    mod = OF_INDICES[name]
    found = weft.attention.attend(*qkv, score_mod=mod)
    agree(found, attention(*qkv, lambda s: mod(s, b, h, n, m)), [], seed)


#: masks as flex attention has them, with the table of documents
MASKS = {
    "causal": lambda t: lambda b, h, n, m: n >= m,
    "documents": lambda t: lambda b, h, n, m: t[b, n] == t[b, m],
    "both": lambda t: lambda b, h, n, m: (t[b, n] == t[b, m]) & (torch.abs(n - m) <= 4),
    "logical": lambda t: lambda b, h, n, m: torch.logical_or(torch.logical_and(n >= m, t[b, n] == t[b, m]), n == m),
    "where": lambda t: lambda b, h, n, m: torch.where(n > 5, m > 2, n >= m),
    "ones": lambda t: lambda b, h, n, m: b.new_ones((), dtype=torch.bool) & (n >= m),
    "lengths": lambda t: lambda b, h, n, m: (m <= t[b, 0] + 3) | (m.abs() == n),
}


@pytest.mark.parametrize("array", ["torch", "NumPy"])
@pytest.mark.parametrize("name", MASKS)
def test_masks(qkv, seed, name, array):
    chosen = random.Random(seed)
    ids = torch.tensor([sorted(chosen.randrange(4) for _ in range(N)) for _ in range(B)], dtype=torch.int32)
    function = MASKS[name](ids if array == "torch" else ids.numpy())
    seen = MASKS[name](ids.long())(b, h, n, m).expand(B, H, N, N)
    found = weft.attention.attend(*qkv, weft.mask(function))
    agree(found, attention(*qkv, lambda s: s.masked_fill(~seen, -torch.inf)), [], seed)
    assert np.array_equal(weft.mask(function).matrix(N, batch=B, heads=H), seen.numpy())


# ---- Whole tensors

WHOLE = {
    "relu": torch.relu,
    "methods": lambda x: x.abs().sqrt() + x.tanh() * x.sigmoid(),
    "silu": torch.nn.functional.silu,
    "where": lambda x: torch.where(x > 0, x, 0.5 * x),
    "clamp": lambda x: torch.clamp(x, -1, 1) + torch.maximum(x, -x),
    "reals": lambda x: torch.exp2(x) - torch.log2(torch.abs(x) + 1) + 2 - x / 3,
    "ones": lambda x: x + torch.ones_like(x) - torch.zeros_like(x),
    "powers": lambda x: x**2 + x.square() + 1.5**x,
    "a tensor from around": lambda x: torch.arange(1.0, 17.0) * x + x / torch.arange(1.0, 17.0),
}


@pytest.mark.parametrize("name", WHOLE)
def test_functions_of_whole_tensors(qkv, seed, name):
    x = qkv[0].clone().requires_grad_()
    found = weft.Program(lambda x: WHOLE[name](x))(x)
    right = WHOLE[name](x)
    agree(found, right.double(), [x], seed)


REFUSED = {
    "transpose": (lambda q, k, v: weft.softmax(q, k.transpose(-1, -2)) @ v, "'.transpose'"),
    "mT": (lambda q, k, v: q @ k.mT, "'.mT'"),
    "softmax": (lambda q, k, v: torch.softmax(q, -1), "'torch.softmax'"),
    "matmul": (lambda q, k, v: torch.matmul(q, k), "'torch.matmul'"),
    "einsum": (lambda q, k, v: torch.einsum("bhnd,bhmd->bhnm", q, k), "'torch.einsum'"),
    "cat": (lambda q, k, v: torch.cat([q, k], 2), "'torch.cat'"),
    "slices": (lambda q, k, v: weft.softmax(q[..., :8], k) @ v, "an element of one"),
    "sum": (lambda q, k, v: q.sum(-1), "'.sum'"),
    "item": (lambda q, k, v: q * q.item(), "'.item'"),
    "in place": (lambda q, k, v: q.relu_(), "'.relu_'"),
    "an attribute": (lambda q, k, v: q.sigmod(), "'.sigmod'"),
    "of NumPy": (lambda q, k, v: np.linalg.norm(q), "'numpy.norm'"),
    "a reduction of NumPy": (lambda q, k, v: np.add.reduce(q), "'numpy.add.reduce'"),
    "of scores": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: torch.softmax(s, 0)) @ v,
        "'torch.softmax'",
    ),
    "a truth": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s if n > m else 0.0) @ v,
        "a number that is known now",
    ),
    "an item of a score": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s.item()) @ v,
        "'.item'",
    ),
    "a whole table": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * torch.ones(H)) @ v,
        r"a number, but got an array of shape \[2\]",
    ),
    "too few indices": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + torch.ones(H, N)[h]) @ v,
        "2 indices of a tensor of 2 axes, but got 1",
    ),
    "half a score": (
        lambda q, k, v: weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s.half()) @ v,
        "torch.float32, torch.int32 or torch.bool",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_programs_have_not_is_refused_at_its_line(qkv, name):
    function, message = REFUSED[name]
    with pytest.raises(weft.CompilationError, match=f"expected .*{message}") as caught:
        weft.Program(function)(*qkv)
    assert caught.value.position.file == __file__
    assert caught.value.position.line >= function.__code__.co_firstlineno


@weft.program
def from_either_end(q, k, v, table):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * table[3, m] + table[-2, n] + table[0, -1]) @ v


def test_numbers_as_indices_lie_inside_or_are_refused(qkv, seed):
    """Those below 0 count from the end. A form is for all tensors that have the elements, and a library says so."""
    for rows in (4, 7, 5):
        table = torch.randn(rows, N, generator=torch.Generator().manual_seed(seed))
        leaves = [x.clone().requires_grad_() for x in (*qkv, table)]
        exact = [x.detach().double().requires_grad_() for x in leaves]
        t = exact[3]
        right = attention(*exact[:3], lambda s, t=t: s * t[3] + t[-2][:, None] + t[0, -1])
        found = from_either_end(*leaves)
        torch.testing.assert_close(found.double(), right, atol=1e-4, rtol=1e-4)
        upstream = torch.ones_like(found).cumsum(-1)
        gradients = torch.autograd.grad(found, leaves, upstream)
        wanted = torch.autograd.grad(right, exact, upstream.double())
        for one, other in zip(gradients, wanted, strict=True):
            torch.testing.assert_close(one.double(), other, atol=2e-3, rtol=1e-3)
    for rows in (3, 0):
        with pytest.raises(weft.CompilationError, match="on axis 0 of a tensor, but got 3"):
            from_either_end(*qkv, torch.zeros(rows, N))
    signature = "q:fp32[B,H,N,16], k:fp32[B,H,N,16], v:fp32[B,H,N,16], table:fp32[T,N]"
    library = from_either_end.compile("sm_80", signature)
    with pytest.raises(weft.runtime.Error, match="axis 0 of a tensor to have an element 3, but got T = 3 for 4"):
        library.run("from_either_end", *qkv, torch.zeros(3, N))
