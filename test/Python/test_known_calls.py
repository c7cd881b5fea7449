# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Calls of programs that are known again take the short way, and only those."""

from unittest import mock

import pytest
import torch
import weft
from weft.attention import attend
from weft.programs.program import Program

CAP = 20.0


@weft.program
def capped(q, k, v, *, factor=1.0, pattern=None):
    return weft.softmax(q, k, pattern, score_mod=lambda s, b, h, n, m: factor * CAP * weft.tanh(s / CAP)) @ v


def qkv(n=24):
    return [3 * torch.randn(1, 2, n, 16) for _ in range(3)]


def long_ways(call):
    """How often the program is looked up while ``call`` runs, and what it gives."""
    with mock.patch.object(Program, "trace", autospec=True, side_effect=Program.trace) as trace:
        result = call()
    return trace.call_count, result


@pytest.fixture(autouse=True)
def seeded(seed):
    torch.manual_seed(seed)


AGAIN = {
    "program": capped,
    "keywords": lambda q, k, v: capped(v=v, k=k, q=q, factor=0.5, pattern=weft.causal() & weft.window(5, 5)),
    "function": lambda q, k, v: attend(q, k, v, weft.window(4, 0), return_lse=True)[0],
}


@pytest.mark.parametrize("name", AGAIN)
@pytest.mark.parametrize("gradients", [False, True])
def test_known_again(name, gradients):
    f = AGAIN[name]
    f(*(each.requires_grad_(gradients) for each in qkv()))
    tensors = [each.requires_grad_(gradients) for each in qkv()]
    count, found = long_ways(lambda: f(*tensors))
    assert count == 0 and found.requires_grad == gradients
    with mock.patch("weft.programs.known.facts_of", return_value=None):
        wanted = f(*tensors)
    assert torch.equal(found, wanted)
    if gradients:
        pairs = (torch.autograd.grad(each.square().sum(), tensors) for each in (found, wanted))
        assert all(map(torch.equal, *pairs))


@pytest.mark.parametrize(
    "change", ["size", "type", "strides", "address", "gradients", "no_grad", "number", "pattern", "global"]
)
def test_other_facts_go_the_long_way(change, monkeypatch):
    q, k, v = (each.requires_grad_(change == "no_grad") for each in qkv())
    f = lambda *tensors: capped(*tensors, pattern=weft.causal())  # noqa: E731
    f(q, k, v)
    call = lambda: f(q, k, v)  # noqa: E731
    if change == "size":
        longer = qkv(25)
        call = lambda: f(*longer)  # noqa: E731
    elif change == "type":
        call = lambda: f(*(each.half() for each in (q, k, v)))  # noqa: E731
    elif change == "strides":
        q = q.transpose(1, 2).contiguous().transpose(1, 2)
    elif change == "address":
        q = torch.cat([q.flatten(), q.flatten()])[1 : 1 + q.numel()].reshape(q.shape)
    elif change == "gradients":
        k.requires_grad_()
    elif change == "number":
        call = lambda: capped(q, k, v, factor=0.5, pattern=weft.causal())  # noqa: E731
    elif change == "pattern":
        call = lambda: capped(q, k, v, pattern=weft.window(3, 0))  # noqa: E731
    elif change == "global":
        monkeypatch.setitem(globals(), "CAP", 2.0)
    elif change == "default":
        monkeypatch.setitem(capped.fn.__kwdefaults__, "factor", 0.5)
    with torch.set_grad_enabled(change != "no_grad"):
        count, found = long_ways(call)
        assert count == 1
        with mock.patch("weft.programs.known.facts_of", return_value=None):
            assert torch.equal(found, call())


def test_one_tensor_in_two_places():
    """Which of a call's tensors is which is found by where they stand, not by which they are."""
    q, k, v = qkv()
    weft.Program(capped.fn)(q, q, v)
    program = weft.Program(capped.fn)
    program(q, q, v)
    found = program(q, k, v)
    program(k, k, v)
    assert torch.equal(found, capped(q, k, v)) and torch.equal(program(q, q, v), capped(q, q, v))
    assert not torch.equal(found, program(q, q, v))


def test_what_is_no_plain_tensor_goes_the_long_way():
    q, k, v = qkv()
    wanted = capped(q, k, v)
    assert torch.equal(capped(torch._neg_view(-q), k, v), wanted)
    assert torch.equal(torch.vmap(capped)(q[None], k[None], v[None])[0], wanted)
    with torch.autocast("cpu", torch.bfloat16):
        assert capped(q, k, v).dtype == torch.bfloat16
    assert capped(q, k, v).dtype == torch.float32


def test_objects_have_programs_of_their_own():
    class Layer:
        def __init__(self, cap):
            self.cap = cap

        @weft.program
        def run(self, q, k, v):
            return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: self.cap * weft.tanh(s / self.cap)) @ v

    q, k, v = qkv()
    first, second = Layer(2.0), Layer(20.0)
    found = [each.run(q, k, v) for each in (first, second, first)]
    assert torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1])
    first.cap = 20.0
    assert torch.equal(first.run(q, k, v), found[1])


def test_choices_are_looked_up_again():
    from weft.programs import choices

    q, k, v = qkv()
    capped(q, k, v)
    assert long_ways(lambda: capped(q, k, v))[0] == 0
    choices.forget()
    assert long_ways(lambda: capped(q, k, v))[0] == 1
    assert long_ways(lambda: capped(q, k, v))[0] == 0
