# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Operators that torch's dispatcher runs without Python once their program is known (bindings/OperatorKernels.cpp):
they give what they gave before, and Python has its say again where something is asked for that needs it.
"""

import contextlib
from unittest import mock

import pytest
import torch
import weft
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from weft.programs import choices, recorded


@weft.program
def known_attention(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def reference(q, k, v):
    scores = (q.double() @ k.double().mT) * q.shape[-1] ** -0.5
    hidden = torch.ones(q.shape[-2], k.shape[-2]).tril() == 0
    return torch.softmax(scores.masked_fill(hidden, -torch.inf), -1) @ v.double()


def tensors(shape=(2, 2, 24, 16)):
    return [torch.randn(shape) for _ in range(3)]


@pytest.fixture(scope="module")
def operators():
    """(the operator for inference, the one with a backward), of which each has run."""
    made = []
    for differentiate in (False, True):
        with torch.no_grad():
            traced = known_attention.trace(known_attention.bind(tensors(), {}))
            found = recorded.operators_of(traced, tensors(), differentiate)
            found.forward(*tensors())
        made.append(found.forward)
    return made


@contextlib.contextmanager
def without_python():
    """Whoever asks Python to run a program fails."""
    with mock.patch.object(recorded._Runs, "__call__", side_effect=AssertionError("Python ran it")):
        yield


def check(given, inputs, atol=2e-6):
    given = given[0] if isinstance(given, tuple) else given
    torch.testing.assert_close(given.double(), reference(*inputs), rtol=0, atol=atol)


def test_known_programs_run_without_python(operators):
    for operator in operators:
        for shape in ((2, 2, 24, 16), (1, 1, 7, 16)):
            inputs = tensors(shape)
            with without_python():
                check(operator(*inputs), inputs)


def test_choices_are_asked_for_again(operators):
    inputs = tensors()
    choices.forget()
    with without_python(), pytest.raises(AssertionError, match="Python ran it"):
        operators[0](*inputs)
    check(operators[0](*inputs), inputs)
    with without_python():
        check(operators[0](*inputs), inputs)


def test_another_device_is_asked_for(operators, monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", "simulator:sm_80")
    inputs = tensors()
    with without_python(), pytest.raises(AssertionError, match="Python ran it"):
        operators[0](*inputs)
    check(operators[0](*inputs), inputs)


def test_arrays_that_kernels_do_not_take_are_copied(operators):
    q, k, v = tensors()
    inputs = [q.mT.contiguous().mT, torch.empty(k.numel() + 1)[1:].view(k.shape).copy_(k), v]
    check(operators[0](*inputs), (q, k, v))


def test_gradients_are_computed_or_refused(operators):
    inputs = [each.requires_grad_() for each in tensors()]
    result = operators[1](*inputs)[0]
    seed = torch.randn(result.shape)
    found = torch.autograd.grad(result, inputs, seed)
    expected = torch.autograd.grad(reference(*inputs), inputs, seed.double())
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=0, atol=2e-5)
    with pytest.raises(NotImplementedError, match="expected a form with a backward"):
        operators[0](*inputs).sum().backward()
    with torch.no_grad(), without_python():
        assert not operators[1](*inputs)[0].requires_grad


def test_modes_see_the_operator(operators):
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    inputs = tensors()
    with Log():
        operators[0](*inputs)
    assert operators[0] in seen
    with FakeTensorMode() as mode, without_python():
        fake = operators[0](*map(mode.from_tensor, inputs))
        assert fake.shape == inputs[0].shape and type(fake).__name__ == "FakeTensor"
    meta = operators[0](*(each.to("meta") for each in inputs))
    assert meta.is_meta
    batched = torch.vmap(operators[0])(*(each.unsqueeze(1) for each in inputs))
    check(batched.squeeze(1), inputs)


def test_views_that_are_negated_when_read_are_made_plain(operators):
    inputs = tensors()
    complex_values = torch.complex(torch.zeros_like(inputs[0]), -inputs[0])
    negated = complex_values.conj().imag  # reads as inputs[0], and lies in memory with the other sign
    assert negated.is_neg()
    check(operators[0](negated, *inputs[1:]), inputs)


def test_wrong_arguments_are_named(operators):
    q, k, v = tensors()
    with pytest.raises((weft.Error, TypeError, RuntimeError), match="k"):
        operators[0](q, k.half(), v)
