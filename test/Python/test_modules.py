# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The modules of weft.nn against plain PyTorch layers of the same parameters: results, every gradient, and what a
module is expected to live through."""

import copy
import doctest
import io
import pickle
import subprocess
import sys

import pytest
import torch
import weft
from module_samples import REFUSED_SIZES, REFUSED_TENSORS, SAMPLES
from torch.func import functional_call
from torch.nn.utils import parametrize, prune
from torch.utils.checkpoint import checkpoint
from weft.testing import judge

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@pytest.fixture(params=SAMPLES)
def sample(request):
    return SAMPLES[request.param]


@pytest.fixture
def generator(seed):
    torch.manual_seed(seed)  # parameters are drawn from the global one
    return torch.Generator().manual_seed(seed)


def twins(sample):
    """The module, and the plain layer with its state."""
    module, plain = sample.module(), sample.plain()
    plain.load_state_dict(module.state_dict(), strict=True)
    return module, plain


def drawn(sample, generator, batch=2, tokens=None):
    return torch.randn(batch, tokens or sample.tokens, sample.dim, generator=generator)


def gradients(module, x, d_out, call=None):
    """The result, and the gradients of x and of every parameter."""
    x = x.clone().requires_grad_()
    module.zero_grad()
    out = (call or module)(x)
    out.backward(d_out.to(out.dtype))
    return {"out": out.detach(), "x": x.grad, **{name: each.grad for name, each in module.named_parameters()}}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("dtype", ["f32", "f16", pytest.param("bf16", marks=pytest.mark.slow)])
def test_results_and_gradients(sample, dtype, generator, held):
    """By the rule: as near to float64 as plain operations of the same type are."""
    module, plain = sample.module(), sample.plain()

    def draw():
        tensors = {"x": drawn(sample, generator)}
        for name, each in module.named_parameters():  # what begins as 0 or 1 is something else
            moved = 0.1 * torch.randn(each.shape, generator=generator) if each.dim() == 1 else 0
            tensors[name] = each.detach() + moved
        names = list(tensors)[1:]

        def called(layer, x, values, **options):
            return functional_call(layer, dict(zip(names, values, strict=True)), (x,), options | sample.given(2))

        return judge(
            lambda x, *values: called(module, x, values),
            lambda x, *values, form: called(plain, x, values, form=form),
            {name: each.to(TYPES[dtype]) for name, each in tensors.items()},
            generator=generator,
            products_as_given=False,
            gradients=dtype == "f32" or not sample.bends,
            parameters=names,
        )

    held("modules", draw)


def test_state_and_copies(sample, generator):
    module, plain = twins(sample)
    x, d_out = drawn(sample, generator), drawn(sample, generator)
    expected = gradients(module, x, d_out)
    for name, value in gradients(plain, x, d_out).items():
        torch.testing.assert_close(expected[name], value, rtol=1e-4, atol=2e-5, msg=lambda text, n=name: f"{n}: {text}")
    stored = io.BytesIO()
    torch.save(module.state_dict(), stored)
    other = sample.module()
    other.load_state_dict(torch.load(io.BytesIO(stored.getvalue()), weights_only=True), strict=True)
    for each in (other, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert_equal(gradients(each, x, d_out), expected)


def too_large(draws):
    """Of what was drawn, {name: (error, the plain layer's)} each time, those whose largest errors are too far apart."""
    most = {name: [max(each[name][i] for each in draws) for i in range(2)] for name in draws[0]}
    return {
        name: (error, plain)
        for name, (error, plain) in most.items()
        if not error <= (2 if name == "out" else 3) * plain + 1e-5
    }


@pytest.mark.parametrize("dtype", ["f16", pytest.param("bf16", marks=pytest.mark.slow)])
def test_autocast(sample, dtype, generator):
    """Operands are cast; results are of autocast's type, gradients of the parameters'. The errors of a parameter's few
    elements are random numbers: where one draw's are far apart, the largest of more draws are compared, as
    `weft.testing.hold` does."""
    module, plain = twins(sample)

    def casting(layer):
        def call(x):
            with torch.autocast("cpu", TYPES[dtype]):
                return layer(x, **sample.given(2))

        return call

    def draw():
        x, d_out = drawn(sample, generator), drawn(sample, generator)
        found = gradients(module, x, d_out, casting(module))
        expected = gradients(plain, x, d_out, casting(plain))
        exact = gradients(plain, x, d_out, lambda x: plain(x, **sample.given(2)))
        names = ["out"] if sample.bends else list(found)
        for name in names:
            assert found[name].dtype == (TYPES[dtype] if name == "out" else torch.float32), name
        return {
            name: [float((each[name].float() - exact[name]).abs().max()) for each in (found, expected)]
            for name in names
        }

    draws = [draw()]
    for count in (9, 36):
        if too_large(draws):
            draws += [draw() for _ in range(count - len(draws))]
    assert not too_large(draws), (len(draws), too_large(draws))


def test_modes(sample, generator):
    """Without gradients, in eval, in inference mode and under checkpointing: what it is otherwise, bit for bit."""
    module = sample.module()
    x, d_out = drawn(sample, generator), drawn(sample, generator)
    expected = gradients(module, x, d_out)
    with torch.no_grad():
        out = module(x)
        assert not out.requires_grad and torch.equal(out, expected["out"])
    with torch.inference_mode():
        assert torch.equal(module(x), expected["out"])
    assert_equal(gradients(module.eval(), x, d_out), expected)
    module.train()
    for reentrant in (True, False):
        recomputed = gradients(module, x, d_out, lambda x, r=reentrant: checkpoint(module, x, use_reentrant=r))
        assert_equal(recomputed, expected)


def test_meta(sample, generator):
    """Shapes without memory, of gradients too."""
    module = sample.module().to("meta")
    found = gradients(module, drawn(sample, generator).to("meta"), drawn(sample, generator).to("meta"))
    assert found["out"].shape == (2, sample.tokens, sample.dim)
    assert all(each.is_meta and each.shape == module.get_parameter(name).shape for name, each in found.items()
               if name not in ("out", "x"))  # fmt: skip


def test_memory_after_meta(sample):
    """As FSDP and others make large models: on "meta", then empty, then each part's reset_parameters."""
    module = sample.module().to("meta").to_empty(device="cpu")
    for parameter in module.parameters():
        torch.nn.init.constant_(parameter, torch.nan)
    for part in module.modules():
        if list(part.parameters(recurse=False)):
            part.reset_parameters()
    assert all(parameter.isfinite().all() for parameter in module.parameters())


def test_some_parameters_frozen(sample, generator):
    module = sample.module()
    x, d_out = drawn(sample, generator), drawn(sample, generator)
    expected = gradients(module, x, d_out)
    names = [name for name, _ in module.named_parameters()]
    for name, each in module.named_parameters():
        each.requires_grad_(names.index(name) % 2 == 0)
    found = gradients(module, x, d_out)
    for name in names:
        if names.index(name) % 2 == 0:
            torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-5)
        else:
            assert found[name] is None


def pruned(layer, name):
    prune.l1_unstructured(layer, name, amount=0.5)


def weight_norm(layer, name):
    torch.nn.utils.weight_norm(layer, name)


def parametrized(layer, name):
    parametrize.register_parametrization(layer, name, torch.nn.Tanh())


CHANGES = {
    "pruning": pruned,
    "weight norm, by a hook": weight_norm,
    "weight norm": torch.nn.utils.parametrizations.weight_norm,
    "parametrization": parametrized,
}


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_are_made_anew(sample, change, generator):
    """What makes a layer's weight of other parameters, at each of its calls, goes on as these change."""
    module, plain = twins(sample)
    x, d_out = drawn(sample, generator), drawn(sample, generator)
    for layers in (module, plain):
        for each in list(layers.modules()):
            if isinstance(getattr(each, "weight", None), torch.nn.Parameter) and each.weight.dim() > 1:
                CHANGES[change](each, "weight")
    plain.load_state_dict(module.state_dict())
    names = {name for name, _ in plain.named_parameters()}
    for _ in range(2):  # as an optimizer changes them
        found, expected = (
            gradients(each, x, d_out, lambda x, f=each: f(x, **sample.given(2))) for each in (module, plain)
        )
        assert found.keys() == expected.keys() == names | {"out", "x"}
        for name, value in expected.items():
            if sample.bends and name != "out":
                continue
            torch.testing.assert_close(
                found[name], value, rtol=1e-3, atol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
            )
        with torch.no_grad():
            for name, each in module.named_parameters():
                each.mul_(0.7)
                plain.get_parameter(name).mul_(0.7)


class Adapted(torch.nn.Module):
    """A linear map and one of low rank beside it, as adapters have it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.down = torch.nn.Parameter(torch.randn(2, inner.in_features) / 4)
        self.up = torch.nn.Parameter(torch.randn(inner.out_features, 2) / 4)

    def forward(self, x):
        return self.inner(x) + x @ self.down.T @ self.up.T


def test_adapters_around_linear_maps(sample, generator):
    module = sample.module()
    merged = copy.deepcopy(module)
    maps = [name for name, each in module.named_children() if type(each) is torch.nn.Linear]
    for name in maps:
        adapted = Adapted(getattr(module, name))
        setattr(module, name, adapted)
        with torch.no_grad():
            getattr(merged, name).weight += adapted.up @ adapted.down
    x, d_out = drawn(sample, generator), drawn(sample, generator)
    more = sample.given(2)
    found = gradients(module, x, d_out, lambda x: module(x, **more))
    expected = gradients(merged, x, d_out, lambda x: merged(x, **more))
    torch.testing.assert_close(found["out"], expected["out"], rtol=1e-4, atol=2e-5)
    assert maps and all(found[f"{name}.{part}"].any() for name in maps for part in ("down", "up"))


@pytest.mark.parametrize(
    ("name", "place"),
    [("sema", "lepe"), ("gau with convolutions", "conv_g"), ("sas", "q_expand.linear1")],
)
def test_layers_whose_weights_kernels_take(name, place, generator):
    """A hook is called, with the weights; another layer in the place is refused."""
    module = SAMPLES[name].module()
    x = drawn(SAMPLES[name], generator)
    holder, _, last = place.rpartition(".")
    part, seen = module.get_submodule(place), []
    expected = module(x)
    hook = part.register_forward_hook(lambda layer, given, result: seen.append(result))
    assert torch.equal(module(x), expected)
    assert len(seen) == 1 and seen[0][0] is part.weight
    hook.remove()
    part.register_forward_hook(lambda layer, given, result: (0 * result[0], result[1]))
    assert not torch.equal(module(x), expected)
    setattr(module.get_submodule(holder), last, torch.nn.Sequential(part))
    with pytest.raises(TypeError, match=f"expected '{last}' to be the layer that it was made with.*'Sequential'"):
        module(x)


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_batches(sample, batch, generator):
    """Each sequence gets what it gets alone."""
    module = sample.module()
    x = drawn(sample, generator, batch).requires_grad_()
    out = module(x)
    assert out.shape == x.shape
    out.sum().backward()
    assert x.grad.shape == x.shape
    for i in range(batch):
        torch.testing.assert_close(out[i], module(x[i : i + 1])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name, sample in SAMPLES.items() if sample.packs])
def test_packed_sequences(name, generator):
    """One after another, lengths of zero among them: what each gives alone."""
    sample = SAMPLES[name]
    module = sample.module()
    lengths = [17, 0, 1, 40]
    starts = torch.tensor([0, 17, 17, 18, 58], dtype=torch.int32)
    x, d_out = drawn(sample, generator, 1, 58), drawn(sample, generator, 1, 58)
    found = gradients(module, x, d_out, lambda x: module(x, starts))
    parts = zip(x.split(lengths, 1), d_out.split(lengths, 1), strict=True)
    alone = [gradients(module, part, d_part) for part, d_part in parts if part.shape[1]]
    for key, value in found.items():
        each = [a[key] for a in alone]
        wanted = torch.cat(each, 1) if key in ("out", "x") else sum(each[1:], each[0])
        torch.testing.assert_close(value, wanted, rtol=1e-4, atol=2e-5, msg=lambda text, n=key: f"{n}: {text}")


def test_gradients_by_differences(sample, generator):
    """Along random directions of x and of all parameters, by differences of the forward alone."""
    module = sample.module()
    if isinstance(module, weft.nn.SAS):
        pytest.skip("steps over the bends of its ReLUs: test_sas.py keeps away from them")
    x, d_out = drawn(sample, generator, 1), drawn(sample, generator, 1)
    tensors = {"x": x} | {name: each.detach() for name, each in module.named_parameters()}
    slopes = gradients(module, x, d_out, lambda x: module(x, **sample.given(1)))
    directions = {name: torch.randn(each.shape, generator=generator) for name, each in tensors.items()}

    def at(names, step):
        moved = {name: each + step * directions[name] if name in names else each for name, each in tensors.items()}
        with torch.no_grad():
            parameters = {name: each for name, each in moved.items() if name != "x"}
            out = functional_call(module, parameters, (moved["x"],), sample.given(1))
        return float((out.double() * d_out).sum())

    for names, step in ((["x"], 1e-2), ([name for name in tensors if name != "x"], 2e-3)):
        ends = [at(names, factor * step) for factor in (1, -1, 2, -2)]
        slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
        terms = torch.cat([(slopes[name].double() * directions[name]).flatten() for name in names])
        assert abs(float(terms.sum()) - slope) <= 5e-3 * float(terms.norm()), (names, float(terms.sum()), slope)


@pytest.mark.parametrize("case", REFUSED_SIZES)
def test_refused_sizes(case):
    make, message = REFUSED_SIZES[case]
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize("case", REFUSED_TENSORS)
def test_refused_tensors(case):
    name, call, message = REFUSED_TENSORS[case]
    with pytest.raises((TypeError, ValueError)) as caught:
        call(SAMPLES[name].module())
    assert message in str(caught.value)


def test_initial_values_are_torchs(seed):
    """The linear maps and the convolution draw as torch's own layers do, in the order of their names."""
    torch.manual_seed(seed)
    module = weft.nn.SEMA(32, 2, window=8)
    torch.manual_seed(seed)
    own = [torch.nn.Linear(32, 32) for _ in range(4)] + [torch.nn.Conv1d(32, 32, 3, groups=32)]
    for mine, theirs in zip(module.children(), own, strict=True):
        assert torch.equal(mine.weight, theirs.weight) and torch.equal(mine.bias, theirs.bias)


def test_made_of_a_type(sample):
    module = sample.module(dtype=torch.bfloat16)
    assert {each.dtype for each in module.parameters()} == {torch.bfloat16}
    meta = sample.module(device="meta")
    assert {each.device.type for each in meta.parameters()} == {"meta"}


@pytest.mark.parametrize("name", weft.nn.__all__)
def test_documented_example(name):
    module = getattr(weft.nn, name)
    found = doctest.DocTestFinder(recurse=False).find(module, name, globs={"torch": torch, "weft": weft})
    assert sum(len(each.examples) for each in found) >= 2
    for each in found:
        failed = doctest.DocTestRunner(verbose=False).run(each)
        assert failed.failed == 0


def test_nothing_needs_torch_before_it_is_used():
    code = "import weft, sys; weft.nn; assert 'SEMA' in dir(weft.nn); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_name():
    with pytest.raises(AttributeError, match=r"weft\.nn.*Sema"):
        _ = weft.nn.Sema


def test_sas_expands_to_a_size_that_kernels_have():
    """By half, and to a multiple of 8."""
    assert [weft.nn.SAS(size, 1).expanded_size for size in (8, 16, 24, 40, 64)] == [16, 24, 40, 64, 96]
    assert weft.nn.SAS(48, 2, kernel=1)(torch.randn(1, 5, 48)).isfinite().all()
