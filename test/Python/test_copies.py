# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What models hold of Weft, programs, kernels and libraries, is copied and pickled with them, as functions are."""

import copy
import pickle

import pytest
import torch
import weft
import weft.language as wl


@weft.program
def attend(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.jit
def kernel(x, n, BLOCK: wl.constexpr):
    wl.store(x + wl.arange(0, BLOCK), 1.0, mask=wl.arange(0, BLOCK) < n)


@weft.autotune([weft.Config({"BLOCK": 16})], key=["n"])
@weft.jit
def tuned(x, n, BLOCK: wl.constexpr):
    wl.store(x, 1.0)


@weft.heuristics({"BLOCK": lambda arguments: 16})
@weft.jit
def chosen(x, n, BLOCK: wl.constexpr):
    wl.store(x, 1.0)


class Layer(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor, self.plain, self.kernels = factor, attend, [kernel, tuned, chosen]
        self.own = self.scaled

    @weft.program
    def scaled(self, q, k, v):
        return (weft.softmax(q, k, scale=self.factor) @ v) * self.factor


def pickled(x):
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("made", [attend, kernel, tuned, chosen, Layer.scaled])
def test_what_is_decorated_is_itself(made, again):
    assert again(made) is made


@pytest.mark.parametrize("again", [copy.deepcopy, pickled])
def test_an_objects_program_is_that_of_the_copy(again, seed):
    torch.manual_seed(seed)
    layer = Layer(0.5)
    other = again(layer)
    assert other.plain is attend and other.kernels == [kernel, tuned, chosen]
    other.factor = 2.0
    q, k, v = (torch.randn(1, 1, 9, 16) for _ in range(3))
    for one in (layer, other):
        wanted = torch.softmax(q @ k.mT * one.factor, -1) @ v * one.factor
        torch.testing.assert_close(one.own(q, k, v), wanted, atol=1e-5, rtol=0)


def test_libraries_are_opened_again_where_they_lie(tmp_path):
    signature = "q:fp32[B,H,N,16], k:fp32[B,H,N,16], v:fp32[B,H,N,16]"
    library = attend.compile("sm_80", signature, out=tmp_path / "lib")
    program = library.programs["attend"]
    assert copy.deepcopy([library, program]) == [library, program]
    q, k, v = (torch.randn(1, 1, 9, 16) for _ in range(3))
    assert torch.equal(pickled(library).run("attend", q, k, v), program(q, k, v))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: weft.program(lambda q: q),
            pickle.PicklingError,
            "expected a global of module 'test_copies' to pickle",
        ),
        (lambda: attend.compile("sm_80", "q:fp32[1,1,N,16], k:fp32[1,1,N,16], v:fp32[1,1,N,16]"), TypeError, "out=DIR"),
    ],
)
def test_what_no_name_leads_to_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        pickle.dumps(make())
