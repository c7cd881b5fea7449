# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch.vmap of programs: the axis becomes part of the batch, in one run; where entries are not apart, one run each."""

import functools

import pytest
import torch
import weft
from weft import native
from weft.attention import attend
from weft.runtime.program import Program, forget_operators

pytestmark = pytest.mark.filterwarnings("ignore")
COUNT = 3


@pytest.fixture(autouse=True)
def fresh(seed):
    torch.manual_seed(seed)


@pytest.fixture
def runs(monkeypatch):
    """The names of the programs whose kernels are launched."""
    found = []
    queue, direct = Program.queue, Program.direct

    def queued(self, *args, **options):
        found.append(self.name)
        return queue(self, *args, **options)

    def in_one_step(self, *args):
        results = direct(self, *args)
        found.extend([self.name] * (results is not None))
        return results

    kernels = native.load("_runtime").OperatorKernel
    monkeypatch.setattr(kernels, "learn", lambda self, program, ordinal: None)  # each run is asked for in Python
    forget_operators()
    monkeypatch.setattr(Program, "queue", queued)
    monkeypatch.setattr(Program, "direct", in_one_step)
    return found


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def biased(q, k, v, bias, slopes):
    score = lambda s, b, h, n, m: s * slopes[h] + bias[b, h, n, m]  # noqa: E731
    return weft.softmax(q, k, weft.window(9, 3), score_mod=score) @ v


@weft.program
def summed(q, k, v):
    return weft.sum(weft.softmax(q, k) @ v, axis=0)


@weft.program
def numbered(q, k, v):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * (b + 1)) @ v


@weft.program
def pinned(q, k, v, bias):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + bias[0, h, n, m]) @ v


def qkv(batch=2, n=20):
    return [torch.randn(batch, 2, n, 16) for _ in range(3)]


def mapped(shape, dim):
    """A random tensor whose axis ``dim`` vmap goes over; of the shape itself where that is None."""
    return torch.randn(shape) if dim is None else torch.randn(COUNT, *shape).movedim(0, dim)


def one_by_one(f, tensors, dims):
    return [
        f(*(t if dim is None else t.select(dim, i) for t, dim in zip(tensors, dims, strict=True))) for i in range(COUNT)
    ]


def loss(f):
    return lambda *tensors: torch.sin(f(*tensors)).sum()


@pytest.mark.parametrize("dims", [(0, 0, 0), (4, 1, 2), (None, 3, -1), (0, None, None)])
@pytest.mark.parametrize("out_dim", [0, 2, -1])
def test_folds_any_axis(runs, dims, out_dim):
    tensors = [mapped((2, 2, 20, 16), dim) for dim in dims]
    expected = one_by_one(causal, tensors, dims)
    runs.clear()
    found = torch.vmap(causal, in_dims=dims, out_dims=out_dim)(*tensors)
    assert len(runs) == 1
    assert torch.equal(found, torch.stack(expected, out_dim))


def test_folds_gradients(runs):
    dims = (0, None, 1)
    tensors = [mapped((2, 2, 20, 16), dim) for dim in dims]
    gradient = torch.func.grad(loss(causal), argnums=(0, 1, 2))
    expected = one_by_one(gradient, tensors, dims)
    runs.clear()
    found = torch.vmap(gradient, in_dims=dims)(*tensors)
    assert runs == ["causal.forward", "causal.backward"]
    for number, each in enumerate(found):
        assert torch.equal(each, torch.stack([row[number] for row in expected]))


def test_folds_nested(runs):
    q, k, v = torch.randn(COUNT, 4, 2, 2, 20, 16), torch.randn(2, 4, 2, 20, 16), torch.randn(2, 2, 20, 16)
    found = torch.vmap(torch.vmap(causal, in_dims=(0, 1, None)), in_dims=(0, None, None))(q, k, v)
    assert len(runs) == 1
    for i in range(COUNT):
        for j in range(4):
            assert torch.equal(found[i, j], causal(q[i, j], k[:, j], v))


def test_folds_operands_of_one_batch(runs):
    """What vmap does not go over, and what all entries of the batch share, is spread."""
    shapes = (1, 2, 20, 16), (1, 2, 20, 16), (1, 2, 20, 16), (1, 2, 20, 20), (2,)
    for dims in ((0, 0, 0, None, None), (0, None, None, 0, None), (None, None, None, 1, None)):
        tensors = [mapped(shape, dim) for shape, dim in zip(shapes, dims, strict=True)]
        expected = one_by_one(biased, tensors, dims)
        runs.clear()
        assert torch.equal(torch.vmap(biased, in_dims=dims)(*tensors), torch.stack(expected))
        assert len(runs) == 1
    q, k, v = (torch.randn(COUNT, 2, 2, 20, 16) for _ in range(3))
    bias, slopes = torch.randn(1, 2, 20, 20), torch.randn(2)
    expected = [biased(*each, bias, slopes) for each in zip(q, k, v, strict=True)]
    runs.clear()
    assert torch.equal(torch.vmap(biased, in_dims=(0, 0, 0, None, None))(q, k, v, bias, slopes), torch.stack(expected))
    assert len(runs) == 1


def test_maps_what_has_no_gradients():
    """Pages and 8-bit floats, which no gradients are asked of."""
    pages = torch.randn(3, 6, 4, 2, 16)
    table, lengths = torch.tensor([[0, 1], [2, 3]], dtype=torch.int32), torch.tensor([7, 8], dtype=torch.int32)
    q = torch.randn(2, 4, 1, 16)

    def over(pages):
        return weft.attention.decode(q, pages, pages, block_table=table, seqused_k=lengths)

    assert torch.equal(torch.vmap(over)(pages), torch.stack([over(each) for each in pages]))
    narrow = [torch.randn(3, 1, 2, 20, 32).to(torch.float8_e4m3fn) for _ in "qkv"]
    found = torch.vmap(lambda q, k, v: weft.attention.attend(q, k, v))(*narrow)
    assert torch.equal(found, torch.stack([weft.attention.attend(*each) for each in zip(*narrow, strict=True)]))


def test_folds_functions_and_libraries(runs, tmp_path):
    q, k, v = (torch.randn(COUNT, *each.shape) for each in qkv(n=16))
    f = functools.partial(attend, pattern=weft.causal())
    expected = one_by_one(f, (q, k, v), (0, 0, 0))
    runs.clear()
    assert torch.equal(torch.vmap(f)(q, k, v), torch.stack(expected))
    assert len(runs) == 1
    dims = ["q:fp32[B,H,N,16]", "k:fp32[B,H,N,16]", "v:fp32[B,H,N,16]"]
    program = causal.compile(signature=", ".join(dims), out=tmp_path / "l").differentiable("causal")
    expected = one_by_one(causal, (q, k, v), (0, 0, 0))
    runs.clear()
    assert torch.equal(torch.vmap(program)(q, k, v), torch.stack(expected))
    assert len(runs) == 1


@pytest.mark.parametrize(
    "f, dims",
    [
        (summed, (0, 0, 0)),  # the results have no batch
        (numbered, (0, 0, 0)),  # an entry's result depends on its number
        (pinned, (0, 0, 0, 0)),  # every entry reads the first
        (biased, (0, 0, 0, None, 0)),  # what is mapped has no batch
    ],
)
def test_runs_one_by_one_where_entries_are_not_apart(runs, f, dims):
    shapes = {4: [(2, 2, 20, 20)], 5: [(2, 2, 20, 20), (2,)]}.get(len(dims), [])
    tensors = [mapped(shape, dim) for shape, dim in zip([(2, 2, 20, 16)] * 3 + shapes, dims, strict=True)]
    expected = one_by_one(f, tensors, dims)
    runs.clear()
    assert torch.equal(torch.vmap(f, in_dims=dims)(*tensors), torch.stack(expected))
    assert len(runs) == COUNT


def test_gradients_of_what_entries_share_are_apart(runs):
    """The gradient of slopes is a sum over the batch: each entry of vmap has its own."""
    tensors = [torch.randn(COUNT, 2, 2, 20, 16) for _ in range(3)]
    bias, slopes = torch.randn(2, 2, 20, 20), torch.randn(2)
    gradient = torch.func.grad(loss(biased), argnums=4)
    dims = (0, 0, 0, None, None)
    expected = one_by_one(gradient, (*tensors, bias, slopes), dims)
    runs.clear()
    assert torch.equal(torch.vmap(gradient, in_dims=dims)(*tensors, bias, slopes), torch.stack(expected))
    assert runs.count("biased.forward") == 1 and runs.count("biased.backward") == COUNT


def test_grids_that_would_not_fit_are_not_folded():
    """A grid has 65535 blocks along its last axes: the rule asks the plan, whose launches say how many there are."""
    from weft.runtime import batching

    plan = {
        "batch": "B",
        "inputs": [{"name": "x", "type": "fp32", "dims": ["B", "H", "N", "16"]}],
        "variants": [{"launches": [{"grid": ["cdiv(N, 64)", "H", "B"]}]}],
    }
    seen = []

    def call(x):
        seen.append(tuple(x.shape))
        return x

    for count, expected in ((5, [(5 * 13107, 1, 1, 16)]), (6, [(13107, 1, 1, 16)] * 6)):
        seen.clear()
        x = torch.zeros(count, 13107, 1, 1, 16)
        found, dim = batching.batched(call, plan, count, (0,), (x,))
        assert (seen, found.shape, dim) == (expected, x.shape, 0)
