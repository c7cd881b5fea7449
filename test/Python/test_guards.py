# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a function that torch.compile compiled reads beside its arguments: where that changed, it is compiled again, and
never computes with what was there before."""

import os
import types

import pytest
import torch
import weft
from weft.attention import attend

pytestmark = pytest.mark.filterwarnings("ignore")
N, FACTORS = 24, (1.0, 0.5, 2.0, 1.0)


class Holder:
    pass


PLACE, PLACES = Holder(), [None]
SETTINGS = types.ModuleType("settings")


@pytest.fixture
def qkv(seed):
    torch.manual_seed(seed)
    torch._dynamo.reset()
    return [torch.randn(1, 2, N, 16) for _ in range(3)]


def reference(q, k, v, factor=1.0, mask=None):
    scores = q.double() @ k.double().mT / 4 * factor
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v.double()


def close(found, wanted):
    torch.testing.assert_close(found.double(), wanted, atol=3e-5, rtol=3e-5)


# ---- Numbers


class Scorer:
    held = 1.0

    def __call__(self, s, b, h, n, m):
        return s * self.held

    def method(self, s, b, h, n, m):
        return s * self.held

    @classmethod
    def of_class(cls, s, b, h, n, m):
        return s * cls.held

    @property
    def doubled(self):
        return 2 * self.held


def outside(s, b, h, n, m):
    return s * PLACE.held


def helped(s):
    return s * PLACE.held


@weft.program
def program(q, k, v):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * PLACE.held) @ v


@weft.program
def given(q, k, v, holder):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * holder["held"].held) @ v


def numbers():
    """Functions of q, k, v, and whose ``held`` they read."""
    local, scorer, kind = Holder(), Scorer(), type("Kind", (), {"held": 1.0})
    settings = SETTINGS
    return {
        "object": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * local.held), local),
        "global object": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * PLACE.held), PLACE),
        "class": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * kind.held), kind),
        "property": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * scorer.doubled / 2), scorer),
        "module": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * settings.held), settings),
        "global module": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * SETTINGS.held), SETTINGS),
        "callable": (lambda q, k, v: attend(q, k, v, score_mod=scorer), scorer),
        "method": (lambda q, k, v: attend(q, k, v, score_mod=scorer.method), scorer),
        "class method": (lambda q, k, v: attend(q, k, v, score_mod=Scorer.of_class), Scorer),
        "function": (lambda q, k, v: attend(q, k, v, score_mod=outside), PLACE),
        "helper": (lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: helped(s)), PLACE),
        "program": (lambda q, k, v: program(q, k, v), PLACE),
        "program's argument": (lambda q, k, v: given(q, k, v, {"held": local}), local),
        "FlexAttention": (
            lambda q, k, v: weft.flex_attention(q, k, v, lambda s, b, h, n, m: s * local.held),
            local,
        ),
    }


@pytest.mark.parametrize("name", numbers())
def test_numbers(qkv, name):
    function, holder = numbers()[name]
    compiled = torch.compile(function, backend="eager", fullgraph=True)
    try:
        for factor in FACTORS:
            holder.held = factor
            close(compiled(*qkv), reference(*qkv, factor))
    finally:
        Scorer.held = 1.0


def test_what_cannot_be_compared_breaks_the_graph(qkv):
    """(os.environ is an object of Python's own, of which no copy can be compared.)"""

    def function(q, k, v):
        return attend(q, k, v, score_mod=lambda s, b, h, n, m: s * float(os.environ["WEFT_TEST_FACTOR"]))

    compiled = torch.compile(function, backend="eager")
    for factor in FACTORS:
        os.environ["WEFT_TEST_FACTOR"] = str(factor)
        close(compiled(*qkv), reference(*qkv, factor))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="no copy can be compared: it reads "):
        torch.compile(function, backend="eager", fullgraph=True)(*qkv)


def test_ranges_and_slices_around_a_function(qkv):
    steps, part = range(1, 9, 2), slice(1, 3)
    function = lambda s, b, h, n, m: s * (steps[1] + part.stop)  # noqa: E731
    compiled = torch.compile(lambda q, k, v: attend(q, k, v, score_mod=function), backend="eager", fullgraph=True)
    close(compiled(*qkv), reference(*qkv, 6.0))


# ---- Tensors


def outside_table(s, b, h, n, m):
    return s * PLACE.held[h]


class Table(Holder):
    def method(self, s, b, h, n, m):
        return s * self.held[h]


@weft.program
def program_table(q, k, v):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * PLACES[0][h]) @ v


def with_default(s, b, h, n, m, table=torch.ones(2)):  # noqa: B008
    return s * table[h]


def tables():
    """Functions that read a table, and what puts another one in its place."""
    local, table, inner = Holder(), Table(), Holder()
    inner.inner = Holder()

    def place(tensor):
        PLACES[0] = tensor

    def default(tensor):
        with_default.__defaults__ = (tensor,)

    def put(holder):
        return lambda tensor: setattr(holder, "held", tensor)

    return {
        "object": (
            lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * local.held[h]),
            put(local),
        ),
        "object of an object": (
            lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * inner.inner.held[h]),
            put(inner.inner),
        ),
        "global list": (
            lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: s * PLACES[0][h]),
            place,
        ),
        "method": (lambda q, k, v: attend(q, k, v, score_mod=table.method), put(table)),
        "function": (lambda q, k, v: attend(q, k, v, score_mod=outside_table), put(PLACE)),
        "default": (lambda q, k, v: attend(q, k, v, score_mod=with_default), default),
        "program": (lambda q, k, v: program_table(q, k, v), place),
    }


@pytest.mark.parametrize("name", tables())
def test_tables(qkv, name):
    """Another tensor, other numbers in the same one, and one with gradients."""
    function, put = tables()[name]
    put(torch.ones(2))
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    for factor in FACTORS:
        table = torch.full((2,), factor)
        put(table)
        close(compiled(*qkv), reference(*qkv, factor))
    table.fill_(0.25)
    close(compiled(*qkv), reference(*qkv, 0.25))
    table = torch.tensor([0.5, 1.5], requires_grad=True)
    put(table)
    compiled(*qkv).square().sum().backward()
    wanted = table.detach().double().requires_grad_()
    reference(*qkv, wanted[:, None, None]).square().sum().backward()
    torch.testing.assert_close(table.grad.double(), wanted.grad, atol=1e-3, rtol=1e-3)


# ---- Patterns


def documents(size):
    return (torch.arange(N) // size).to(torch.int32)[None]


def patterns():
    """Functions that read a pattern of documents, and what makes that of documents of another size."""
    local, made = Holder(), weft.mask(lambda b, h, n, m: PLACES[0][n] == PLACES[0][m])

    def pattern(size):
        local.held = weft.document(documents(size), documents(size))

    def ids(size):
        PLACES[0] = documents(size)[0]

    return {
        "object": (lambda q, k, v: attend(q, k, v, local.held), pattern),
        "mask made outside": (lambda q, k, v: attend(q, k, v, made), ids),
        "mask made inside": (
            lambda q, k, v: attend(q, k, v, weft.mask(lambda b, h, n, m: PLACES[0][n] == PLACES[0][m])),
            ids,
        ),
    }


@pytest.mark.parametrize("name", patterns())
def test_patterns(qkv, name):
    function, put = patterns()[name]
    put(3)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    for size in (3, 5, 7, 3):
        put(size)
        ids = documents(size)[0]
        close(compiled(*qkv), reference(*qkv, mask=ids[:, None] == ids[None]))


# ---- Functions of this package, which have their code in common


def test_operations(qkv):
    compiled = torch.compile(lambda q: PLACE.held(q), backend="eager", fullgraph=True)
    for operation in (weft.exp, weft.tanh, weft.relu, weft.exp):
        PLACE.held = operation
        assert torch.equal(compiled(qkv[0]), operation(qkv[0]))


def scaled(factor):
    @weft.program
    def attention(q, k, v):
        return weft.softmax(q, k, scale=factor / 4) @ v

    return attention.compile("sm_80", ", ".join(f"{name}:fp32[B,H,N,16]:16" for name in "qkv"))


@pytest.mark.parametrize("differentiable", [True, False])
def test_programs_of_libraries(qkv, differentiable):
    libraries = {factor: scaled(factor) for factor in set(FACTORS)}
    get = weft.runtime.Library.differentiable if differentiable else weft.runtime.Library.program
    programs = {factor: get(library, "attention") for factor, library in libraries.items()}
    compiled = torch.compile(lambda q, k, v: PLACE.held(q, k, v), backend="eager", fullgraph=True)
    for factor in FACTORS:
        PLACE.held = programs[factor]
        close(compiled(*qkv), reference(*qkv, factor))
