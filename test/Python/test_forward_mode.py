# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Forward mode: tangents against float64, by the accuracy rule of gradients; against the backward of every mechanism,
<J x, y> = <x, Jᵀ y>; and what torch asks of a function that has them."""

import functools

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import weft
from weft.attention import attend, gau, sas, sema, sfa
from weft.testing import accuracy, attention, masks
from weft.testing.attention import Domain
from weft.testing.sas import expansion_shapes

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def capped(q, k, v, slopes):
    def score_mod(s, b, h, n, m):
        return 3 * weft.tanh(s / 3) - slopes[h] * (n - m)

    return weft.softmax(q, k, weft.causal(), score_mod=score_mod) @ v


def formula(q, k, v, slopes=None, *, form="scaled scores"):
    def score_mod(s, b, h, n, m):
        return 3 * torch.tanh(s / 3) - slopes[h] * (n - m)

    domain = Domain(k, v, masks.causal(q.shape[2], k.shape[2]))
    return attention(q, [domain], score_mod=None if slopes is None else score_mod, form=form)[0]


def tangent(f, arrays, tangents):
    return torch.func.jvp(f, tuple(arrays), tuple(tangents))[1]


CASES = {
    "causal": (causal, [(2, 4, 70, 32), (2, 2, 70, 32), (2, 2, 70, 48)], ["f16", "f32"]),
    "one row": (causal, [(1, 1, 1, 16), (1, 1, 1, 16), (1, 1, 1, 16)], ["f16"]),
    "score_mod": (capped, [(1, 2, 45, 32), (1, 2, 45, 32), (1, 2, 45, 32), (2,)], ["bf16"]),
}


@pytest.mark.parametrize(("case", "dtype"), [(name, d) for name, (*_, types) in CASES.items() for d in types])
def test_tangents(case, dtype, seed, held):
    generator = torch.Generator().manual_seed(seed)
    program, shapes, _ = CASES[case]

    def draw(shape):
        return torch.randn(shape, generator=generator).to(torch.float32 if len(shape) == 1 else DTYPES[dtype])

    def judged():
        arrays, tangents = [draw(s) for s in shapes], [draw(s) for s in shapes]
        exact = tangent(formula, [x.double() for x in arrays], [x.double() for x in tangents])
        plain = [
            tangent(functools.partial(formula, form=form), arrays, tangents)
            for form in ("scaled scores", "scaled query")
        ]
        return {"tangent": accuracy(tangent(program, arrays, tangents), exact, plain, gradient=True)}

    held("forward mode", judged)


# ---- Every mechanism: forward mode and reverse mode are one derivative


def rows(*heads, tokens=40, size=32):
    return [(1, each, tokens, size) for each in heads]


STARTS = torch.tensor([0, 13, 13, 40], dtype=torch.int32)
JOINS = torch.arange(40).remainder(3).eq(0).expand(1, 2, 40).contiguous()
EXPANDED = {x: expansion_shapes(2, 4, 16, 16 if x != "v" else None, 3) for x in "qkv"}
EXPANSION = [(x, name) for x in "qkv" for name in EXPANDED[x]]


def expanded(q, k, v, *weights):
    given = {x: {} for x in "qkv"}
    for (x, name), weight in zip(EXPANSION, weights, strict=True):
        given[x][name] = weight
    return sas(q, k, v, given["q"], given["k"], given["v"], kernel=3)


def composed(q, k, v, taps):
    near = weft.toeplitz(taps, centred=True)
    return (weft.softmax(weft.rope(q), weft.rms_norm(k), weft.window(5, 0)) + weft.mean() + near) @ v


slow = pytest.mark.slow
MECHANISMS = {
    "groups, window, sink": (
        lambda q, k, v, sink: attend(q, k, v, weft.window(9, 0), sink=sink), [*rows(4, 2, 2), (4,)]
    ),
    "lse": (lambda q, k: attend(q, k, k, weft.causal(), return_lse=True)[1], rows(2, 2)),
    "listed blocks": (lambda q, k, v: attend(q, k, v, weft.strided(3) | weft.window(2, 2)), rows(2, 2, 2)),
    "packed": (
        lambda q, k, v: attend(q, k, v, weft.causal(), cu_seqlens_q=STARTS, cu_seqlens_k=STARTS), rows(2, 2, 2)
    ),
    "composite": (weft.program(composed), [*rows(2, 2, 2), (3, 64)]),
    "SEMA": (
        lambda q, k, v, w, b: sema(q, k, v, window=16, lepe_weight=w, lepe_bias=b), [*rows(2, 2, 2), (64, 1, 3), (64,)]
    ),
    "SFA": (lambda q, k, v, gain: sfa(q, k, v, decisions=JOINS, k_gain=gain), [*rows(2, 2, 2), (2, 32)]),
    "SAS": (expanded, [*rows(2, 2, 2, size=16), *(EXPANDED[x][name] for x, name in EXPANSION)]),
    "GAU": (lambda u, v, g, a, b: gau(u, v, g, a, b, a, b), [*rows(1), *rows(1, 1, size=48), (32,), (32,)]),
    "one channel": (causal, [*rows(2, 2), (1, 2, 40, 1)]),
    "wide values": (causal, [*rows(1, 1), (1, 1, 40, 272)]),
    "SEMA on a grid": (
        lambda q, k, v, w: sema(q, k, v, window=(4, 4), grid=(7, 7), lepe_weight=w),
        [*rows(2, 2, 2, tokens=49), (64, 1, 3, 3)],
    ),
    "SFA, staggered": (
        lambda q, k, v: sfa(q, k, v, decisions=JOINS, value_offset=1, value_merge="last", rope=True), rows(2, 2, 2)
    ),
}  # fmt: skip
EARLY = {"groups, window, sink", "composite", "SEMA", "SAS"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in EARLY else [slow]) for n in MECHANISMS])
def test_forward_mode_is_the_transpose_of_the_backward(name, seed):
    generator = torch.Generator().manual_seed(seed)
    f, shapes = MECHANISMS[name]
    arrays, tangents = (tuple(torch.randn(s, generator=generator) for s in shapes) for _ in range(2))
    if name == "SAS":  # whose scores would be in the hundreds, and exponentials of them as much less precise
        arrays = tuple(x if x.dim() == 4 else x / 4 for x in arrays)
    out, changes = torch.func.jvp(f, arrays, tangents)
    again, transposed = torch.func.vjp(f, *arrays)
    torch.testing.assert_close(out, again)
    given = torch.randn(out.shape, generator=generator)
    forward = (changes.double() * given).sum()
    backward = sum((x.double() * g).sum() for x, g in zip(tangents, transposed(given), strict=True))
    assert abs(forward - backward) <= 1e-5 * changes.double().norm() * given.norm()


# ---- torch's own ways to it


@pytest.fixture
def qkv(seed):
    torch.manual_seed(seed)
    return [torch.randn(1, 2, 24, 16) for _ in range(3)]


def close(found, wanted):
    return torch.testing.assert_close(found.double(), wanted.double(), atol=2e-5, rtol=2e-5)


def test_dual_tensors(qkv):
    """Of some inputs, of those that a score_mod reads, and beside inputs that require gradients."""
    q, k, v = qkv
    slopes, change = torch.rand(2), torch.randn(2)
    wanted = tangent(
        lambda k, s: formula(q.double(), k, v.double(), s), (k.double(), slopes.double()), (v.double(), change.double())
    )

    with forward_ad.dual_level():
        s = forward_ad.make_dual(slopes, change)

        def mod(score, b, h, n, m):
            return 3 * weft.tanh(score / 3) - s[h] * (n - m)

        found = attend(q.clone().requires_grad_(), forward_ad.make_dual(k, v), v, weft.causal(), score_mod=mod)
        close(forward_ad.unpack_dual(found).tangent, wanted)
    with torch.no_grad(), forward_ad.dual_level():
        found = capped(q, forward_ad.make_dual(k, v), v, forward_ad.make_dual(slopes, change))
        close(forward_ad.unpack_dual(found).tangent, wanted)


def test_inputs_without_tangents_cost_nothing(qkv):
    """The operator has tangents of those inputs alone that have one, and gives the results too: no other runs."""
    q, k, v = qkv
    calls = []

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            calls.append((operator.name(), len(args)))
            return operator(*args, **(kwargs or {}))

    with Seen():
        torch.func.jvp(lambda v: causal(q, k, v), (v,), (q,))
    assert [count for name, count in calls if "tangent_2" in name] == [4]
    assert [name for name, _ in calls if name.startswith("weft::")] == [name for name, _ in calls if "tangent" in name]


def test_directions_are_a_batch(qkv):
    """`jacfwd` and `vmap` of `jvp`."""
    q, k, v = qkv
    directions = torch.randn(3, *q.shape)
    found = torch.vmap(lambda t: tangent(lambda q: causal(q, k, v), (q,), (t,)))(directions)
    for each, direction in zip(found, directions, strict=True):
        close(each, tangent(lambda q: formula(q, k.double(), v.double()), (q.double(),), (direction.double(),)))


SIGNATURE = ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv")


@pytest.mark.parametrize("call", ["differentiable", "run"])
def test_libraries_with_tangents(qkv, tmp_path, call):
    """The same as of the program, of some inputs and of all; gradients of gradients where there is a backward."""
    causal.compile("sm_80", SIGNATURE, tmp_path / "library", differentiate=call == "differentiable", tangents=True)
    library = weft.load(tmp_path / "library")
    opened = library.differentiable("causal") if call == "differentiable" else functools.partial(library.run, "causal")
    along = [torch.randn_like(x) for x in qkv]
    for given in (slice(0, 3), slice(2, 3)):

        def some(f, given=given):
            return torch.func.jvp(lambda *x: f(*[*qkv[: given.start], *x]), tuple(qkv[given]), tuple(along[given]))

        for mine, wanted in zip(some(opened), some(causal), strict=True):
            torch.testing.assert_close(mine, wanted)
    if call == "differentiable":

        def second(f):
            leaves = [x.clone().requires_grad_() for x in qkv]
            first = torch.autograd.grad(f(*leaves).square().sum(), leaves, create_graph=True)
            return torch.autograd.grad(sum(x.square().sum() for x in first), leaves)

        for mine, wanted in zip(second(opened), second(causal), strict=True):
            # a query that sees one key has no gradient: what is left of it is of the others' size
            torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6 * float(wanted.abs().max() + 10))


def test_libraries_without_tangents_refuse(qkv):
    q, k, v = qkv
    library = causal.compile("sm_80", SIGNATURE)
    program = library.differentiable("causal")
    with pytest.raises(
        NotImplementedError, match="'causal': expected a program that has its tangent, but got one of a library"
    ):
        torch.func.jvp(lambda q: program(q, k, v), (q,), (k,))
    with forward_ad.dual_level(), pytest.raises(NotImplementedError, match="one of a library"):
        program(forward_ad.make_dual(q, k), k, v)


@pytest.mark.parametrize("way", ["torch.func", "dual tensors"])
def test_gradients_of_tangents(qkv, way):
    """Of a product with J w in the inputs and in w, beside gradients of the results."""
    along, weights = [torch.randn_like(x) for x in qkv], torch.randn_like(qkv[0])

    def both(f, tensors, along):
        if way == "torch.func":
            return torch.func.jvp(f, tuple(tensors), tuple(along))
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(*map(forward_ad.make_dual, tensors, along)))

    def gradients(f, kind):
        leaves = [x.to(kind).requires_grad_() for x in (*qkv, *along)]
        out, change = both(f, leaves[:3], leaves[3:])
        return torch.autograd.grad(out.square().sum() + (weights * change).sum(), leaves)

    for found, wanted in zip(gradients(causal, torch.float32), gradients(formula, torch.float64), strict=True):
        close(found, wanted)


def test_tangents_of_tangents_are_refused(qkv):
    q, k, v = qkv

    def twice(q):
        return tangent(lambda q: causal(q, k, v), (q,), (k,))

    with pytest.raises(NotImplementedError, match="'causal': expected derivatives of first or second order"):
        tangent(twice, (q,), (v,))
