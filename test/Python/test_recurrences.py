# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linear recurrences: linear attention with decays and the delta rule, their states, and their gradients."""

import functools
import importlib.util
import math
import pathlib

import numpy as np
import pytest
import torch
import weft
from torch.nn import functional
from weft.testing import drawn, judge, poisoned, recurrences
from weft.testing.plans import counted

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


@weft.program
def linear(q, k, v, *log_decay):
    return weft.linear_attention(q, k, *log_decay) @ v


@weft.program
def delta(q, k, v, beta, *log_decay):
    return weft.delta_rule(q, k, beta, *log_decay) @ v


def linear_formula(q, k, v, log_decay=None, *, form):
    return recurrences.chunked(q, k, v, log_decay)[0]


def delta_formula(q, k, v, beta, log_decay=None, *, form):
    return recurrences.chunked(q, k, v, log_decay, beta)[0]


def inputs(randn, *, tokens, keys=64, values=64, heads=1, kv=1, batch=1, decay=None, beta=False):
    found = {
        "q": randn(batch, heads, tokens, keys),
        "k": randn(batch, kv, tokens, keys),
        "v": randn(batch, kv, tokens, values),
    }
    if beta:
        found["k"] = functional.normalize(found["k"].float(), dim=-1).to(found["k"].dtype)
        found["beta"] = randn(batch, heads, tokens, dtype=torch.float32).sigmoid()
    if decay:
        shape = (batch, heads, tokens, keys) if decay == "channel" else (batch, heads, tokens)
        found["log_decay"] = functional.logsigmoid(randn(*shape, dtype=torch.float32))
    return found


def check(seed, held, dtype="f16", **sizes):
    generator = torch.Generator().manual_seed(seed)
    draw = functools.partial(inputs, **sizes)
    program, formula = (delta, delta_formula) if sizes.get("beta") else (linear, linear_formula)
    rule = {"parameters": ("log_decay",), "generator": generator}  # a decay's gradient is a sum over tokens
    held("recurrence", lambda: judge(program, formula, drawn(draw, DTYPES[dtype], generator), **rule))


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("f16", {"tokens": 150, "heads": 2}),
        ("f16", {"tokens": 65, "heads": 2, "keys": 72, "values": 40, "decay": "token"}),
        ("bf16", {"tokens": 130, "decay": "token", "batch": 2}),
        ("f16", {"tokens": 64, "keys": 16, "values": 16, "decay": "channel"}),
        ("f32", {"tokens": 70, "keys": 32, "values": 32, "decay": "channel"}),
        ("f16", {"tokens": 1, "decay": "token"}),
    ],
)
def test_linear_attention(dtype, sizes, seed, held):
    check(seed, held, dtype, **sizes)


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    [
        ("f16", {"tokens": 130, "heads": 2}),
        ("bf16", {"tokens": 70, "decay": "token", "keys": 40, "values": 72}),
        ("f32", {"tokens": 66, "decay": "token", "keys": 32, "values": 16}),
        ("f32", {"tokens": 9, "decay": "token", "heads": 2}),
        ("f16", {"tokens": 9, "batch": 2, "heads": 4}),  # β's gradient: of what is rounded once
    ],
)
def test_delta_rule(dtype, sizes, seed, held):
    check(seed, held, dtype, beta=True, **sizes)


@pytest.mark.slow
@pytest.mark.parametrize("decay", [None, "token", "channel"])
@pytest.mark.parametrize(("keys", "values"), [(128, 128), (256, 64), (64, 200), (200, 72)])
def test_wide_heads(keys, values, decay, seed, held):
    check(seed, held, tokens=100, keys=keys, values=values, decay=decay)
    if decay != "channel":
        check(seed, held, tokens=100, keys=keys, values=values, decay=decay, beta=True)


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("decay", [None, "token", "channel"])
@pytest.mark.parametrize("beta", [False, True])
def test_the_references_are_one(decay, beta, seed):
    if beta and decay == "channel":
        return
    generator = torch.Generator().manual_seed(seed)
    x = drawn(
        functools.partial(inputs, tokens=100, keys=16, values=8, heads=4, kv=2, decay=decay, beta=beta),
        torch.float64,
        generator,
    )
    x = {name: tensor.double() for name, tensor in x.items()}
    q, k, v, log_decay, betas = (x.get(name) for name in ("q", "k", "v", "log_decay", "beta"))
    loop, last = recurrences.recurrence(q, k, v, log_decay, betas)
    by_chunks, state = recurrences.chunked(q, k, v, log_decay, betas)
    wide = v.repeat_interleave(2, 1)
    matrix = (
        recurrences.delta_rule_matrix(q, k, betas, log_decay)
        if beta
        else recurrences.linear_attention_matrix(q, k, log_decay)
    )
    for other in (by_chunks, matrix @ wide):
        torch.testing.assert_close(other, loop, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(state, last, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["token", "channel"])
def test_strong_decays_neither_overflow_nor_lose_what_follows(kind, seed):
    q, k, v = (draw(seed + i, 1, 1, 100, 32) for i in range(3))
    log_decay = -(draw(seed + 3, *((1, 1, 100) if kind == "token" else (1, 1, 100, 32))).abs() * 0.1)
    forgets = draw(seed + 4, *log_decay.shape) > 1.5
    log_decay = torch.where(forgets, -1e4, log_decay)
    log_decay[:, :, 40] = -math.inf
    with poisoned():
        out = weft.linear_attention(q, k, log_decay) @ v
    exact = recurrences.recurrence(q.double(), k.double(), v.double(), log_decay.double())[0]
    plain = recurrences.recurrence(q, k, v, log_decay)[0]
    assert (out - exact).abs().max() <= 2 * (plain - exact).abs().max() + 1e-5


@pytest.mark.parametrize("keys", [32, 128])
@pytest.mark.parametrize("kind", ["token", "channel", "gated delta"])
def test_gradients_of_strong_decays_in_a_ragged_chunk(kind, keys, seed):
    """What lies past the last token counts as 0, whatever decays would make of it."""
    q, k, v = (draw(seed + i, 1, 2, 100, keys).half() for i in range(3))
    if kind == "gated delta":
        k = functional.normalize(k.float(), dim=-1).half()
    betas = [draw(seed + 4, 1, 2, 100).sigmoid()] if kind == "gated delta" else []
    decay = -5 * draw(seed + 3, *((1, 2, 100, keys) if kind == "channel" else (1, 2, 100))).sigmoid()
    given = [x.requires_grad_() for x in (q, k, v, *betas, decay)]
    exact = [x.detach().double().requires_grad_() for x in given]
    along = draw(seed + 5, 1, 2, 100, keys)
    with poisoned():
        (delta if betas else linear)(*given).backward(along.half())
    wanted = recurrences.recurrence(*exact[:3], exact[-1], *exact[3:-1])[0]
    wanted.backward(along.double())
    for ours, its in zip(given, exact, strict=True):
        assert (ours.grad.double() - its.grad).norm() <= 5e-3 * its.grad.norm()


def test_growth_is_what_it_is(seed):
    q, k, v = (draw(seed + i, 1, 1, 70, 16) for i in range(3))
    log_decay = 0.2 * draw(seed + 3, 1, 1, 70)
    out = weft.linear_attention(q, k, log_decay) @ v
    exact = recurrences.recurrence(q.double(), k.double(), v.double(), log_decay.double())[0]
    plain = recurrences.recurrence(q, k, v, log_decay)[0]
    assert (out - exact).abs().max() <= 2 * (plain - exact).abs().max() + 1e-5
    assert not torch.isfinite(weft.linear_attention(q, k, torch.full_like(log_decay, 100.0)) @ v).all()


@weft.program
def resumed(q, k, v, beta, log_decay, state):
    rule = weft.delta_rule(q, k, beta, log_decay, initial_state=state)
    return rule @ v, rule.final_state(v)


def test_states_go_in_and_out_with_gradients(seed, held):
    generator = torch.Generator().manual_seed(seed)

    def states(randn):
        found = inputs(randn, tokens=70, keys=32, values=16, heads=2, decay="token", beta=True)
        return {**found, "state": randn(1, 2, 32, 16, dtype=torch.float32)}

    def formula(q, k, v, beta, log_decay, state, *, form):
        return recurrences.chunked(q, k, v, log_decay, beta, initial_state=state)

    held(
        "states",
        lambda: judge(
            resumed,
            formula,
            drawn(states, torch.float16, generator),
            names=("out", "final"),
            parameters=("log_decay",),
            generator=generator,
        ),
    )


@pytest.mark.parametrize("kind", ["linear", "channel", "delta"])
def test_token_by_token_is_the_whole(kind, seed):
    q, k, v = (draw(seed + i, 2, 2, 20, 16) for i in range(3))
    shape = (2, 2, 20, 16) if kind == "channel" else (2, 2, 20)
    log_decay, beta = functional.logsigmoid(draw(seed + 3, *shape)), draw(seed + 4, 2, 2, 20).sigmoid()

    def mixer(tokens, state):
        parts = [x[:, :, tokens] for x in (q, k, *([beta] if kind == "delta" else []), log_decay)]
        make = weft.delta_rule if kind == "delta" else weft.linear_attention
        return make(*parts, initial_state=state), v[:, :, tokens]

    state, outs = torch.zeros(2, 2, 16, 16), []
    for n in range(4):
        step, value = mixer(slice(n, n + 1), state)
        outs.append(step @ value)
        state = step.final_state(value)
    rest, value = mixer(slice(4, 20), state)
    out = torch.cat([*outs, rest @ value], 2)
    exact, last = recurrences.recurrence(
        q.double(), k.double(), v.double(), log_decay.double(), beta.double() if kind == "delta" else None
    )
    assert (out - exact).abs().max() < 1e-5 * max(1.0, float(exact.abs().max()))
    assert (rest.final_state(value) - last).abs().max() < 1e-5 * max(1.0, float(last.abs().max()))


@weft.program
def states_alone(q, k, v, w, beta):
    rule = weft.delta_rule(q, k, beta)
    return rule @ v, rule.final_state(w), weft.linear_attention(q, k).final_state(w)


def test_states_of_values_that_nothing_else_takes(seed):
    """They tell the values' channels by themselves, also beside the product with others."""
    make = functools.partial(inputs, tokens=70, keys=16, values=8, beta=True)
    q, k, v, beta = drawn(make, torch.float32, torch.Generator().manual_seed(seed)).values()
    tensors = [q, k, v, draw(seed, 1, 1, 70, 24), beta]
    mine, exact = ([t.detach().to(dtype).requires_grad_() for t in tensors] for dtype in (torch.float32, torch.float64))
    with poisoned():
        found = states_alone(*mine)
    q, k, v, w, beta = exact
    known = (recurrences.recurrence(q, k, v, None, beta)[0], recurrences.recurrence(q, k, w, None, beta)[1],
             recurrences.recurrence(q, k, w)[1])  # fmt: skip
    for one, other in zip(found, known, strict=True):
        assert (one - other).abs().max() < 2e-5
    for result in range(3):
        with poisoned():
            got = torch.autograd.grad(found[result].square().sum(), mine, allow_unused=True, retain_graph=True)
        wanted = torch.autograd.grad(known[result].square().sum(), exact, allow_unused=True, retain_graph=True)
        for a, b in zip(got, wanted, strict=True):
            zero = torch.zeros(())
            assert ((zero if a is None else a) - (zero if b is None else b)).abs().max() < 2e-4


@weft.program
def packed(q, k, v, beta, log_decay, state, cu_seqlens):
    rule = weft.delta_rule(q, k, beta, log_decay, initial_state=state, cu_seqlens=cu_seqlens)
    return rule @ v, rule.final_state(v)


def test_packed_sequences_are_apart(seed):
    bounds = torch.tensor([0, 70, 70, 75, 140], dtype=torch.int32)
    x = drawn(
        functools.partial(inputs, tokens=140, keys=16, values=16, decay="token", beta=True),
        torch.float32,
        torch.Generator().manual_seed(seed),
    )
    tensors = [*x.values(), draw(seed, 4, 1, 16, 16)]
    mine, exact = ([t.detach().to(dtype).requires_grad_() for t in tensors] for dtype in (torch.float32, torch.float64))
    with poisoned():
        found = packed(*mine, bounds)
    q, k, v, beta, log_decay, state = exact
    known = recurrences.recurrence(q, k, v, log_decay, beta, initial_state=state, cu_seqlens=bounds)
    weights = [draw(seed + 7 + i, *y.shape) for i, y in enumerate(known)]
    for results in (found, known):
        sum((y * w.to(y.dtype)).sum() for y, w in zip(results, weights, strict=True)).backward()
    for a, b in zip([*found, *(t.grad for t in mine)], [*known, *(t.grad for t in exact)], strict=True):
        assert not torch.isnan(a).any()
        torch.testing.assert_close(a.double(), b, rtol=2e-5, atol=2e-5)


def test_packed_linear_attention_by_channel(seed):
    bounds = np.array([0, 10, 90], np.int32)
    q, k, v = (draw(seed + i, 1, 1, 90, 16) for i in range(3))
    log_decay = functional.logsigmoid(draw(seed + 3, 1, 1, 90, 16))
    out = weft.linear_attention(q, k, log_decay, cu_seqlens=torch.from_numpy(bounds)) @ v
    exact = recurrences.recurrence(q, k, v, log_decay, cu_seqlens=torch.from_numpy(bounds))[0]
    torch.testing.assert_close(out, exact, rtol=1e-5, atol=1e-5)


@weft.program
def hybrid(q, k, v, gate, log_decay):
    near = weft.softmax(q, k, weft.window(16, 0))
    return weft.diag(gate) @ (near + weft.linear_attention(weft.rope(q), k, log_decay)) @ v


def test_a_window_and_a_recurrence_are_one_program(seed, held):
    generator = torch.Generator().manual_seed(seed)

    def tensors(randn):
        found = inputs(randn, tokens=100, keys=32, values=32, heads=2, kv=2, decay="token")
        return {**{name: found[name] for name in "qkv"}, "gate": randn(1, 2, 100), "log_decay": found["log_decay"]}

    def formula(q, k, v, gate, log_decay, *, form):
        mask = torch.as_tensor(weft.window(16, 0).matrix(100, 100))
        near = weft.testing.attention(q, [weft.testing.Domain(k, v, mask)], form=form)[0]
        turned = weft.testing.mixers.rope(q).to(q.dtype)
        far = recurrences.chunked(turned, k, v, log_decay)[0]
        return (gate[..., None].to(near.dtype) * (near + far)).to(v.dtype)

    held(
        "hybrid",
        lambda: judge(
            hybrid,
            formula,
            drawn(tensors, torch.float16, generator),
            parameters=("log_decay",),
            products_as_given=False,
            generator=generator,
        ),
    )


def test_matrices(seed):
    q, k = (draw(seed + i, 1, 2, 20, 16) for i in range(2))
    log_decay, beta = functional.logsigmoid(draw(seed + 3, 1, 2, 20)), draw(seed + 4, 1, 2, 20).sigmoid()
    k = functional.normalize(k, dim=-1)
    found = weft.linear_attention(q, k, log_decay).matrix()
    torch.testing.assert_close(found, recurrences.linear_attention_matrix(q, k, log_decay), rtol=1e-5, atol=1e-5)
    found = weft.delta_rule(q, k, beta, log_decay).matrix()
    torch.testing.assert_close(found, recurrences.delta_rule_matrix(q, k, beta, log_decay), rtol=1e-5, atol=1e-5)


X = torch.zeros(1, 2, 8, 16)
ROWS = torch.zeros(1, 2, 8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: weft.linear_attention(X, X.half()), "expected keys of the queries' type"),
        (lambda: weft.linear_attention(X, X[:, :, :4]), "expected queries and keys of one batch, length and head size"),
        (lambda: weft.linear_attention(X, X, ROWS[0]), r"expected 'log_decay' \[B, H, N\] or \[B, H, N, D\]"),
        (lambda: weft.linear_attention(X, X, ROWS[:, :, :4]), "expected 'log_decay' of the batch, heads and length"),
        (lambda: weft.delta_rule(X, X, ROWS, X), r"expected 'log_decay' \[B, H, N\], but got"),
        (lambda: weft.delta_rule(X, X, None), r"expected 'beta' \[B, H, N\], but got None"),
        (lambda: weft.delta_rule(X, X, ROWS.int()), "'beta'"),
        (lambda: weft.linear_attention(X, X, initial_state=X), r"expected 'initial_state' \[B, H, D, Dv\]"),
        (lambda: weft.linear_attention(X, X, initial_state=X.half()), "of float32"),
        (lambda: weft.linear_attention(torch.zeros(1, 1, 4, 257), torch.zeros(1, 1, 4, 257)), "at most 256 channels"),
        (lambda: weft.mean().final_state(X), "expected a mixer with a state"),
        (
            lambda: weft.linear_attention(X, X, cu_seqlens=torch.tensor([0, 8], dtype=torch.int32)).final_state(X),
            "expected an initial_state",
        ),
        (
            lambda: weft.linear_attention(X, X, initial_state=torch.zeros(1, 2, 16, 16)).matrix(),
            "begins with no state",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(weft.Error, match=message):
        make()


#: warp instructions at most, multiply-adds, and 32-byte sectors, forward and backward, of a head of 128 tokens and 64
#: channels in bf16, or 128 "wide"; of loops over chunks that load rows an iteration ahead, which costs 0.5 to 3 %
COSTS = {
    "linear": ((4760, 2097152, 2048), (14700, 5242880, 8192)),
    "token": ((9340, 2097152, 2080), (31460, 5242880, 8336)),
    "channel": ((47500, 4194304, 16512), (136800, 12582912, 32384)),
    "delta": ((30700, 5652480, 4144), (26700, 8388608, 10320)),
    "gated delta": ((36300, 5652480, 4208), (41800, 8388608, 10464)),
    "wide gated delta": ((58700, 12468224, 13824), (109900, 24117248, 41792)),
}


@pytest.mark.parametrize("kind", COSTS)
def test_what_it_costs(kind, seed):
    shape = (1, 1, 128, 128 if "wide" in kind else 64)
    q, k, v = (draw(seed + i, *shape).bfloat16() for i in range(3))
    numbers = {"channel": shape, "token": shape[:3], "gated delta": shape[:3], "wide gated delta": shape[:3]}
    decay = [-draw(seed + 3, *numbers[kind]).abs()] if kind in numbers else []
    betas = [draw(seed + 4, *shape[:3]).sigmoid()] if "delta" in kind else []
    runs = counted(delta if betas else linear, q, k, v, *betas, *decay, target="sm_80")
    for part, (instructions, products, sectors) in zip(("forward", "backward"), COSTS[kind], strict=True):
        run = runs[part]
        assert run.total("warp_instructions") <= instructions
        assert run.total("mma_macs") == products
        assert run.total("global_sectors_read") + run.total("global_sectors_written") == sectors
        conflicts = run.total("shared_wavefronts") - run.total("shared_wavefronts_ideal")
        assert conflicts == 0, "bank conflicts"


@pytest.mark.parametrize("make", [weft.linear_attention, lambda q, k: weft.delta_rule(q, k, ROWS)])
def test_tangents_are_refused_by_name(make):
    """No tangent is zero without a word."""
    with pytest.raises(NotImplementedError, match="recur"), torch.autograd.forward_ad.dual_level():
        make(torch.autograd.forward_ad.make_dual(X, torch.ones_like(X)), X) @ X


def naive(family, name):
    """A reference of flash-linear-attention's, from its file alone: the package loads Triton."""
    package = importlib.util.find_spec("fla")
    if package is None:
        pytest.skip("needs flash-linear-attention")
    path = pathlib.Path(package.submodule_search_locations[0], "ops", family, "naive.py")
    spec = importlib.util.spec_from_file_location(f"{family}_naive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.ecosystem
@pytest.mark.parametrize("kind", ["simple_gla", "gla", "delta_rule", "gated_delta_rule"])
def test_as_flash_linear_attention_has_them(kind, seed):
    x = drawn(
        functools.partial(
            inputs,
            tokens=70,
            keys=16,
            values=24,
            heads=2,
            kv=2,
            decay="channel" if kind == "gla" else "token",
            beta=True,
        ),
        torch.float32,
        torch.Generator().manual_seed(seed),
    )
    given = {"q": "q", "k": "k", "v": "v", "beta": "beta", "log_decay": "gk" if kind == "gla" else "g"}
    if not kind.endswith("delta_rule"):
        del given["beta"]
    if kind == "delta_rule":
        del given["log_decay"]
    mine, theirs = ({name: x[name].clone().requires_grad_() for name in given} for _ in range(2))
    rule = dict(mine)
    v = rule.pop("v")
    make = weft.delta_rule if kind.endswith("delta_rule") else weft.linear_attention
    out = make(rule.pop("q"), rule.pop("k"), **rule) @ v
    if kind == "delta_rule":
        wanted = naive(kind, "delta_rule_recurrence")(**theirs)[0]
    else:
        names = {"simple_gla": "naive_recurrent_simple_gla", "gla": "naive_recurrent_gla"}
        function = naive(kind, names.get(kind, "naive_recurrent_gated_delta_rule"))
        turned = {given[name]: tensor.transpose(1, 2) for name, tensor in theirs.items()}
        wanted = function(**turned)
        wanted = (wanted[0] if isinstance(wanted, tuple) else wanted).transpose(1, 2)
    along = draw(seed + 9, *out.shape)
    for result in (out, wanted):
        (result * along).sum().backward()
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)
    for name in given:
        torch.testing.assert_close(mine[name].grad, theirs[name].grad, rtol=1e-3, atol=1e-4)
