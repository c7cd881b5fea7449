# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SAS and PEAA end to end, and the ops they are made of: results and all gradients against float64, by the accuracy
rule; the reference itself against PyTorch's own layers."""

import functools
import math

import pytest
import torch
import weft
from weft.attention.sas import _sas, expand
from weft.programs.compiled import compiled
from weft.testing import drawn, judge, sas
from weft.testing.expansion import Expansion
from weft.testing.plans import counted
from weft.testing.sas import drawn_weights, expansion_shapes, with_dicts

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
TYPES = ["f16", pytest.param("bf16", marks=pytest.mark.slow), pytest.param("f32", marks=pytest.mark.slow)]
OPERANDS = ("q", "k", "v")


def inputs(
    randn, *, tokens, steady=True, head=32, wide=48, heads=2, many=6, kv_heads=None, kv_many=None, kernel=3, batch=1
):
    """q, k, v, and their weights by names such as "q conv1.weight"."""
    kv_heads, kv_many = kv_heads or heads, kv_many or many
    tensors = {name: randn(batch, heads if name == "q" else kv_heads, tokens, head) for name in OPERANDS}
    for name in OPERANDS:
        sizes = (heads, many) if name == "q" else (kv_heads, kv_many)
        shapes = expansion_shapes(*sizes, head, wide if name != "v" else None, kernel)
        tensors |= {f"{name} {key}": x for key, x in drawn_weights(randn, shapes, steady=steady).items()}
    return tensors


def check(seed, held, dtype, causal=True, gradients=True, **sizes):
    """In float32 a ReLU's operand that is within an error of 0 is next to impossible, and biases that keep it from
    there make scores near 300, whose LSE is right to 1.5e-5: weights recomputed from it do not sum to 1 as plain ones
    do."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"steady": dtype != torch.float32} | sizes
    draw = functools.partial(inputs, **sizes)
    names = list(drawn(draw, dtype, generator))
    mine = functools.partial(weft.attention.sas, kernel=sizes.get("kernel", 3), causal=causal)

    def judged():
        return judge(
            with_dicts(mine, names),
            with_dicts(functools.partial(sas.sas, causal=causal), names),
            drawn(draw, dtype, generator),
            generator=generator,
            gradients=gradients,
            products_as_given=False,
            parameters=[name for name in names if name not in OPERANDS],
            unseen=sas.unseen(names, steady=sizes["steady"]),
        )

    held("SAS", judged)


CASES = {
    "kernel 1": {"tokens": 63, "kernel": 1},
    "kernel 3": {"tokens": 65},
    "kernel 5": {"tokens": 40, "kernel": 5},
    "kernel 7": {"tokens": 24, "kernel": 7, "batch": 2},
    "grouped heads": {"tokens": 48, "heads": 4, "many": 12, "kv_heads": 2, "kv_many": 6},
    "one key head": {"tokens": 48, "heads": 4, "many": 12, "kv_heads": 1, "kv_many": 3},
    "fewer key heads, as many made": {"tokens": 33, "heads": 2, "many": 6, "kv_heads": 1},
    "one token": {"tokens": 1},
    # Of two tokens only one has a choice of keys: too few numbers for bounds relative to plain operations.
    "two tokens, width kept": {"tokens": 2, "wide": None, "batch": 32},
    "not causal": {"tokens": 40, "causal": False},
    "the paper's sizes": {"tokens": 20, "heads": 12, "many": 36, "head": 64, "wide": 96},
}
LARGE = {
    "113 tokens": {"tokens": 113, "heads": 4, "many": 12},
    "the paper's sizes, kernel 5": {"tokens": 65, "heads": 12, "many": 36, "head": 64, "wide": 96, "kernel": 5},
    "the larger model's": {"tokens": 33, "heads": 16, "many": 48, "head": 64, "wide": 96, "kernel": 7},
    "one head": {"tokens": 63, "heads": 1, "many": 3, "kernel": 1},
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_results(name, dtype, seed, held):
    check(seed, held, DTYPES[dtype], gradients=False, **CASES[name])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, dtype, seed, held):
    check(seed, held, DTYPES[dtype], **CASES[name])


@pytest.mark.parametrize("name", ["kernel 5", "grouped heads"])
def test_results_with_weights_of_any_kind(name, seed, held):
    """Results do not jump where a ReLU's derivative does."""
    check(seed, held, torch.float16, steady=False, gradients=False, **CASES[name])


def test_results_in_float32(seed, held):
    check(seed, held, torch.float32, gradients=False, tokens=17, heads=2, many=4, head=16, wide=24)


def test_gradients_in_float32(seed, held):
    check(seed, held, torch.float32, tokens=17, heads=2, many=4, head=16, wide=24)


def test_queries_and_keys_share_their_launches():
    """Expansions of one shape are one launch, and so is every step of their backward: the activations again, which are
    not kept of so few heads, linear maps, convolutions; v's are of their own, and sums of all parts one launch."""
    tensors = drawn(functools.partial(inputs, tokens=8), torch.float16)
    named = arguments_of(tensors)
    bound = _sas.bind([*named.values()], {"causal": True, "scale": None})
    form = compiled(_sas.trace(bound), "sm_80", True)
    launches = {each["name"]: each["variants"][0]["launches"] for each in form.info["programs"]}
    assert len(launches["_sas.forward"]) == 3
    assert len(launches["_sas.backward"]) <= 8
    used = {launch["kernel"] for program in launches.values() for launch in program}
    assert len(used) == len(form.info["kernels"]) <= 12


def test_the_backward_reads_each_value_once():
    """Of an expansion at the paper's sizes, for each token more: the linear maps (the middle, which the forward kept,
    and the gradient to the middle's), the convolutions (that and x to dx). Nothing else is in memory, and matrix
    instructions do little but what gradients of inputs and weights, and the other activations, take. (From 1,024
    tokens on all partial sums are 64.)"""
    heads, many, head, wide, kernel = 12, 36, 64, 96, 3
    shapes = expansion_shapes(heads, many, head, wide, kernel)
    weights = {name: torch.randn(shape).half() for name, shape in shapes.items()}
    found = {}
    for tokens in (1024, 2048):
        ran = counted(expand, torch.randn(1, heads, tokens, head).half(), weights, sample=2)["backward"]
        assert len(ran.launches) == 3
        found[tokens] = [
            sum(each.report.counters[name] * each.scale for each in ran.launches)
            for name in ("global_sectors_read", "global_sectors_written", "mma_macs")
        ]
    read, written, products = (after - before for before, after in zip(found[1024], found[2048], strict=True))
    least = 1024 * 2 * (2 * heads * head + 3 * many * head + many * wide)
    assert least <= 32 * (read + written) <= 1.05 * least
    done = Expansion(heads, many, head, wide, kernel).multiply_adds(1, 1024)
    needed = 3 * done - 1024 * many * (wide * wide + many * kernel * head)
    assert needed <= products <= 1.25 * needed


@pytest.mark.parametrize(("kernel", "kept"), [(1, 0), (3, 1), (7, 1)])
def test_the_middle_is_kept_where_computing_it_again_costs_more(kernel, kept):
    """What linear maps take of two convolutions costs 12, 36 and 84 multiply-adds for each byte written and read. The
    forward stores it on its way: it is one launch all the same."""
    heads, many, head, wide = 12, 36, 64, 96
    weights = {n: torch.randn(s).half() for n, s in expansion_shapes(heads, many, head, wide, kernel).items()}
    runs = counted(expand, torch.randn(1, heads, 64, head).half(), weights, sample=1)
    (forward,) = runs["forward"].launches
    assert len(runs["forward"].outputs) == 1 + kept
    assert len(runs["backward"].launches) == 4 - kept
    written = 32 * forward.report.counters["global_sectors_written"] * forward.scale
    assert written == 64 * 2 * many * (wide + kept * head)


def backward_at_five_taps(**options):
    """Launches with matrix products of an expansion's backward at the paper's sizes and 5 taps, linear maps first."""
    heads, many, head, wide, kernel = 12, 36, 64, 96, 5
    shapes = expansion_shapes(heads, many, head, wide, kernel)
    weights = {name: torch.randn(shape).half() for name, shape in shapes.items()}
    ran = counted(expand, torch.randn(1, heads, 256, head).half(), weights, **options)["backward"]
    return [each.report for each in ran.launches if each.report.counters["mma_macs"]]


def test_gradients_of_more_taps():
    """What a program of four tokens of the convolutions takes: all taps of the four heads that 36 leave over are rows
    of one product, and four warps, which take two tokens at a time, repeat next to nothing: eight of one token each
    made 29 % more multiply-adds."""
    convolutions = backward_at_five_taps(sample=1)[-1].counters
    assert convolutions["mma_macs"] == 6_176_768
    assert convolutions["shared_wavefronts"] <= 13_800


def test_signals_are_turned_without_conflicts():
    """Heads are rows in memory and columns of a convolution's products: on the way their elements of 16 bits are not
    stored one by one into one bank, nor are taps, which are neighbours in memory, stored apart."""
    for report in backward_at_five_taps(sample=1):
        counters, total = report.counters, report.profile.total()
        assert counters["shared_wavefronts"] <= 1.02 * total.shared_wavefronts_ideal
        moved = total.global_sectors_read + total.global_sectors_written
        assert moved <= 1.25 * total.global_sectors_ideal


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", LARGE)
def test_sas_larger(name, dtype, seed, held):
    check(seed, held, DTYPES[dtype], **LARGE[name])


# ---- PEAA


def aggregation(randn, *, tokens, groups, heads=2, head=32, out=40, batch=1, bias=True):
    tensors = {
        "y": randn(batch, groups * heads, tokens, head),
        "weight": randn(out, heads * head) / math.sqrt(heads * head),
    }
    return tensors | ({"bias": randn(out)} if bias else {})


def check_peaa(seed, held, dtype, heads=2, **sizes):
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(aggregation, heads=heads, **sizes)

    def formula(y, weight, bias=None, form=None):
        return sas.peaa(y, weight, bias, heads)

    def program(y, weight, bias=None):
        return weft.attention.peaa(y, weight, bias, heads)

    held(
        "PEAA",
        lambda: judge(program, formula, drawn(draw, dtype, generator), generator=generator, products_as_given=False),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_peaa(groups, dtype, seed, held):
    """The weight is [40, 64], and so neither square nor transposed."""
    check_peaa(seed, held, DTYPES[dtype], tokens=70, groups=groups, bias=groups != 2)


def test_peaa_square_and_large(seed, held):
    check_peaa(seed, held, torch.float16, tokens=33, groups=3, heads=12, head=64, out=768)


# ---- The ops alone


@weft.program
def convolved(x, weight, bias):
    return weft.head_conv(x, weight, bias)


@weft.program
def mapped(x, weight, bias):
    return weft.linear(x, weight, bias)


def check_op(seed, held, program, formula, dtype, draw):
    generator = torch.Generator().manual_seed(seed)
    held(
        program.__name__,
        lambda: judge(
            program,
            lambda *tensors, form: formula(*tensors),
            drawn(draw, dtype, generator),
            generator=generator,
            products_as_given=False,
        ),
    )


def layer(randn, *, x, weight):
    return {"x": randn(*x), "weight": randn(*weight) / math.sqrt(math.prod(weight[1:])), "bias": randn(weight[0])}


@pytest.mark.parametrize(
    "x, weight",
    [
        ((2, 3, 5, 16), (7, 3, 3)),
        ((1, 1, 9, 32), (1, 1, 1)),
        ((1, 20, 3, 80), (5, 20, 5)),
        ((1, 5, 4, 72), (70, 5, 3)),
        ((1, 4, 1, 8), (4, 4, 7)),
        # Pieces of 8 and 4 heads, whose gradients take 4 and 8 taps at once.
        ((2, 5, 6, 16), (12, 5, 5)),
        ((1, 4, 5, 32), (36, 4, 7)),
        ((1, 3, 4, 16), (8, 3, 15)),
    ],
    ids=str,
)
def test_head_conv(x, weight, seed, held):
    draw = functools.partial(layer, x=x, weight=weight)
    check_op(seed, held, convolved, sas.head_conv, torch.float16, draw)


@pytest.mark.parametrize(
    "x, weight",
    [
        ((2, 3, 67, 64), (96, 64)),
        ((3, 40, 16), (5, 16)),
        ((100, 24), (130, 24)),
        ((2, 1, 2, 3, 300), (20, 300)),
    ],
    ids=str,
)
def test_linear(x, weight, seed, held):
    draw = functools.partial(layer, x=x, weight=weight)
    check_op(seed, held, mapped, sas.linear, torch.float16, draw)


@weft.program
def mapped_inverses(x, weight, bias):
    return weft.linear(1.0 / x, weight, bias)


@weft.program
def convolved_inverses(x, weight, bias):
    return weft.head_conv(1.0 / x, weight, bias)


def test_tokens_that_do_not_exist_add_nothing(seed, held):
    """Gradients of weights are sums over tiles of tokens, of which the last is not whole: past the end 1/x is no
    number."""

    def draw(randn, **sizes):
        drawn_layer = layer(randn, **sizes)
        return drawn_layer | {"x": drawn_layer["x"].abs() + 1}

    check_op(
        seed,
        held,
        mapped_inverses,
        lambda x, *rest: sas.linear(1 / x, *rest),
        torch.float16,
        functools.partial(draw, x=(1, 2, 19, 16), weight=(16, 16)),
    )
    check_op(
        seed,
        held,
        convolved_inverses,
        lambda x, *rest: sas.head_conv(1 / x, *rest),
        torch.float16,
        functools.partial(draw, x=(1, 4, 3, 16), weight=(4, 4, 3)),
    )


def sectors(launches):
    """What launches read and write of memory, over what their accesses need."""
    totals = [launched.report.profile.total() for launched in launches]
    return sum(each.global_sectors_read + each.global_sectors_written for each in totals) / sum(
        each.global_sectors_ideal for each in totals
    )


def test_gradients_read_neighbours():
    """Parts of a weight's gradient are added up, and a weight is read the other way round, by whole sectors."""
    x, weight, bias = (torch.randn(shape).half() for shape in ((1, 36, 16, 64), (36, 36, 3), (36,)))
    launches = counted(convolved, x, weight, bias)["backward"].launches
    assert sectors([each for each in launches if each.kernel.startswith("sum")]) <= 1.25
    (kernel,) = [each for each in launches if each.kernel.startswith("expand_backward")]
    assert sectors([kernel]) <= 2


# ---- The reference


def test_the_reference_is_pytorchs_layers(seed):
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for kernel in (1, 3, 5, 7):
        x, w = randn(2, 4, 9, 16), drawn_weights(randn, expansion_shapes(4, 12, 16, 24, kernel), steady=False)
        flat = x.transpose(1, 2).flatten(0, 1)  # [B·N, H, D]
        x1 = torch.nn.functional.conv1d(flat, w["conv1.weight"], w["conv1.bias"], padding=kernel // 2)
        x2 = torch.nn.functional.conv1d(x1.relu(), w["conv2.weight"], w["conv2.bias"], padding=kernel // 2) + x1
        x3 = torch.nn.functional.linear(x2, w["linear1.weight"], w["linear1.bias"])
        x4 = torch.nn.functional.linear(x3.relu(), w["linear2.weight"], w["linear2.bias"]) + x3
        expected = x4.unflatten(0, (2, 9)).transpose(1, 2)
        torch.testing.assert_close(sas.expand(x, w), expected, rtol=1e-10, atol=1e-10)
    y, weight, bias = randn(2, 6, 5, 16), randn(20, 32), randn(20)
    groups = y.transpose(1, 2).reshape(2, 5, 3, 32)
    expected = torch.nn.functional.linear(groups, weight, bias).mean(2)
    torch.testing.assert_close(sas.peaa(y, weight, bias, 2), expected, rtol=1e-10, atol=1e-10)


# ---- What cannot be taken


def given(seed, **sizes):
    generator = torch.Generator().manual_seed(seed)
    return arguments_of(drawn(functools.partial(inputs, tokens=8, **sizes), torch.float32, generator))


def arguments_of(tensors):
    """sas's, by name."""
    named = {}
    with_dicts(lambda *arguments: named.update(zip(("q", "k", "v", *NAMES), arguments, strict=True)), list(tensors))(
        *tensors.values()
    )
    return named


NAMES = ("q_expand", "k_expand", "v_expand")


def test_every_weight_is_named_when_it_is_missing_or_wrong(seed):
    for name in NAMES:
        for key in given(seed)[name]:
            arguments = given(seed)
            del arguments[name][key]
            if not (key.startswith("linear") and name == "v_expand"):
                with pytest.raises(ValueError, match=f"expected {name} to have '{key}'"):
                    weft.attention.sas(**arguments, kernel=3)
            arguments = given(seed)
            arguments[name][key] = arguments[name][key][:-1]
            with pytest.raises(ValueError, match=f"expected {name}\\['{key}'\\] of shape .* but got"):
                weft.attention.sas(**arguments, kernel=3)
        arguments = given(seed)
        arguments[name]["linear3.weight"] = arguments[name]["conv1.weight"]
        with pytest.raises(ValueError, match=f"expected {name} to have .* only, but it has 'linear3.weight'"):
            weft.attention.sas(**arguments, kernel=3)


def test_what_else_is_wrong(seed):
    arguments = given(seed)
    with pytest.raises(ValueError, match="odd kernel of at least 1, but got 4"):
        weft.attention.sas(**arguments, kernel=4)
    with pytest.raises(ValueError, match=r"q_expand\['conv1.weight'\] of shape \[6, 2, 5\], but got \[6, 2, 3\]"):
        weft.attention.sas(**arguments, kernel=5)
    narrow = given(seed, wide=None)
    with pytest.raises(ValueError, match="q_expand and k_expand to one head size, but got 48 and 32"):
        weft.attention.sas(**arguments | {"k_expand": narrow["k_expand"]}, kernel=3)
    y, weight = torch.zeros(1, 6, 4, 16), torch.zeros(20, 32)
    with pytest.raises(ValueError, match="expected heads to divide the 6 heads of y, but got 4"):
        weft.attention.peaa(y, weight, None, 4)
    with pytest.raises(ValueError, match=r"expected weight \[out, heads\*D\] = \[out, 48\], but got \[20, 32\]"):
        weft.attention.peaa(y, weight, None, 3)
    with pytest.raises(weft.CompilationError, match="weight of the operand's type fp16, or fp32, but got bf16"):
        mapped(torch.zeros(3, 16).half(), torch.zeros(4, 16).bfloat16(), torch.zeros(4).half())


def test_finite_differences(seed):
    """fp32: directional derivatives of every input agree with differences of the formula in float64. Steady weights
    make keys that are nearly alike, and gradients that are left of large terms; these do not.
    """
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, steady=False, tokens=5, heads=2, many=4, head=16, wide=24)
    tensors = drawn(draw, torch.float32, generator)
    leaves = [x.requires_grad_() for x in tensors.values()]
    out = with_dicts(functools.partial(weft.attention.sas, kernel=3), list(tensors))(*leaves)
    d_out = torch.randn(out.shape, generator=generator)
    gradients = torch.autograd.grad(out, leaves, d_out)
    formula = with_dicts(sas.sas, list(tensors))
    exact, step = [x.detach().double() for x in leaves], 1e-7
    for i, (name, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        direction = torch.randn(gradient.shape, generator=generator).double()

        def at(t, i=i, direction=direction):
            return (formula(*(x + t * direction if i == j else x for j, x in enumerate(exact))) * d_out.double()).sum()

        slope = float((at(step) - at(-step)) / (2 * step))
        # A direction's derivative may be small by chance; its terms are not.
        size = float((gradient.double() * direction).norm())
        found = float((gradient.double() * direction).sum())
        left = 1e-4 if name in sas.unseen(tensors, steady=False) else 1e-6
        assert abs(found - slope) <= 1e-3 * size + left, (name, found, slope)
