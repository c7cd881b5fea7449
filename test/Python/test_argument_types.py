# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arguments whose type decides what they mean: each is taken for what torch takes it for, or refused by name."""

import numpy as np
import pytest
import torch
import weft
from weft import patterns

B, H, N, D = 1, 2, 24, 16
attend, sema, sfa, sas, gau, peaa = (
    getattr(weft.attention, name) for name in ("attend", "sema", "sfa", "sas", "gau", "peaa")
)


@pytest.fixture
def qkv(seed):
    torch.manual_seed(seed)
    return [torch.randn(B, H, N, D) for _ in range(3)]


def reference(q, k, v, seen=None, bias=None, scale=None):
    """Attention in float64 over the pairs that are ``seen``; a row that sees none gives 0."""
    scores = (q.double() @ k.double().transpose(2, 3)) * (D**-0.5 if scale is None else scale)
    scores = scores if bias is None else scores + bias.double()
    scores = scores if seen is None else scores.masked_fill(~seen, -torch.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    return weights @ v.double(), torch.logsumexp(scores, -1)


def close(found, wanted):
    torch.testing.assert_close(found.double(), wanted.double(), atol=2e-5, rtol=2e-5)


# ---- A bias of truths says who attends


@pytest.mark.parametrize("shape", [(B, H, N, N), (1, N, N), (N, N), (1, N), (N, 1), (N,)])
def test_bool_bias(qkv, shape):
    seen = torch.rand(shape) > 0.4
    found, lse = attend(*qkv, bias=seen, return_lse=True)
    wanted, wanted_lse = reference(*qkv, seen=seen)
    close(found, wanted)
    close(lse, wanted_lse)
    assert not torch.equal(found, attend(*qkv, bias=seen.float()))


def test_bool_bias_of_rows_that_see_nothing(qkv):
    seen = torch.rand(H, N, N) > 0.5
    seen[:, 3:9] = False
    found = attend(*qkv, bias=seen)
    assert not found[:, :, 3:9].any()
    close(found, reference(*qkv, seen=seen)[0])


def test_bool_bias_beside_the_rest(qkv):
    """With a pattern, a score_mod and fewer key heads, forward and backward; torch's attn_mask is the reference."""
    q, k, v = (x.requires_grad_() for x in (qkv[0], qkv[1][:, :1].clone(), qkv[2][:, :1].clone()))
    seen = torch.rand(N, N) > 0.3
    weights = torch.randn(B, H, N, D)
    out = attend(q, k, v, weft.window(9, 2), score_mod=lambda s, b, h, n, m: s + 0.1 * (n - m), bias=seen)
    (out * weights).sum().backward()
    found = [x.grad for x in (q, k, v)]
    for x in (q, k, v):
        x.grad = None
    places = torch.arange(N)
    band = (places[:, None] - places <= 9) & (places - places[:, None] <= 2)
    far = 0.1 * (places[:, None] - places)
    wanted = reference(q, k.expand(B, H, N, D), v.expand(B, H, N, D), seen=seen & band, bias=far)[0]
    (wanted * weights.double()).sum().backward()
    close(out, wanted)
    for gradient, x in zip(found, (q, k, v), strict=True):
        close(gradient, x.grad)


def test_bool_bias_is_attn_mask(qkv):
    q, k, v = qkv
    seen = torch.rand(N, N) > 0.4
    seen[:, 0] = True
    close(attend(q, k, v, bias=seen), torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen))
    found = attend(q.numpy(), k.numpy(), v.numpy(), bias=seen.numpy())
    close(torch.from_numpy(found), attend(q, k, v, bias=seen))


# ---- Numbers from around


def test_a_learnt_number_of_a_score_mod(qkv):
    learnt = torch.tensor(0.5, requires_grad=True)
    found = attend(*qkv, score_mod=lambda s, b, h, n, m: s * learnt)
    wanted = (((qkv[0] @ qkv[1].mT).double() / D**0.5 * learnt.double()).softmax(-1)) @ qkv[2].double()
    close(found, wanted)
    close(*(torch.autograd.grad((each**2).sum(), learnt)[0] for each in (found, wanted)))


@pytest.mark.parametrize("number", [0.5, np.float32(0.5), np.float64(0.5), np.float16(0.5), torch.tensor(0.5)])
def test_numbers_of_every_kind(qkv, number):
    """NumPy's scalars and 0-d tensors are numbers: 0.5 of an index is no 0."""
    close(attend(*qkv, scale=number), reference(*qkv, scale=0.5)[0])
    places = torch.arange(N)
    far = 0.5 * (places[:, None] - places)
    close(attend(*qkv, score_mod=lambda s, b, h, n, m: s + (n - m) * number), reference(*qkv, bias=far)[0])
    close(attend(*qkv, score_mod=lambda s, b, h, n, m: s + number * (n - m)), reference(*qkv, bias=far)[0])
    close(weft.where(qkv[0] > 0, number, 0), torch.where(qkv[0] > 0, 0.5, 0.0))


def truths(*shape):
    return torch.ones(shape, dtype=torch.bool)


def integers(*shape, to=torch.int32):
    return torch.ones(shape, dtype=to)


LEARNT = torch.tensor(0.5, requires_grad=True)
IDS = torch.arange(N) // 8
EXPANSION = {"conv1.weight": torch.ones(4, 2, 3), "conv1.bias": torch.ones(4), "conv2.weight": torch.ones(4, 4, 3)}
INDEX, COUNT, BITS = integers(B, H, 3, 3), integers(B, H, 3), truths(B, H, 3, 3)

# What is called, and what the error says: expected ..., but got ...
REFUSED = {
    "bias of int32": (lambda q, k, v: attend(q, k, v, bias=integers(N, N)), "'bias' of .* but got int32"),
    "bias of int8": (lambda q, k, v: attend(q, k, v, bias=integers(N, N, to=torch.int8)), "'bias' of .* but got int8"),
    "bias of float64": (lambda q, k, v: attend(q, k, v, bias=torch.ones(N, N).double()), "'bias' .* but got float64"),
    "bias of complex": (lambda q, k, v: attend(q, k, v, bias=torch.ones(N, N) + 0j), "'bias' .* but got complex64"),
    "bias a number": (lambda q, k, v: attend(q, k, v, bias=1.0), "'bias' .* but got 'float'"),
    "sink of bool": (lambda q, k, v: attend(q, k, v, sink=truths(H)), "'sink' of .* but got int1"),
    "sink of int32": (lambda q, k, v: attend(q, k, v, sink=integers(H)), "'sink' of .* but got int32"),
    "operands of int32": (lambda q, k, v: attend(q.int(), k.int(), v.int()), "queries of .* but got int32"),
    "queries of int32": (lambda q, k, v: attend(q.int(), k, v), "queries of .* but got int32"),
    "operands of bool": (lambda q, k, v: attend(q > 0, k > 0, v > 0), "queries of .* but got int1"),
    "values of int32": (lambda q, k, v: weft.mean() @ v.int(), "values of .* but got int32"),
    "scale True": (lambda q, k, v: attend(q, k, v, scale=True), "'scale' to be a number, but got True"),
    "scale text": (lambda q, k, v: attend(q, k, v, scale="0.5"), "'scale' to be a number, but got '0.5'"),
    "scale complex": (lambda q, k, v: attend(q, k, v, scale=1j), "'scale' to be a number, but got 1j"),
    "scale a tensor": (
        lambda q, k, v: attend(q, k, v, scale=torch.ones(1)),
        "'scale' to be a number, but got 'Tensor'",
    ),
    "scale learnt": (lambda q, k, v: attend(q, k, v, scale=LEARNT), "'scale' .* requires gradients"),
    "eps learnt": (lambda q, k, v: weft.rms_norm(q, eps=LEARNT), "'eps' .* requires gradients"),
    "threshold learnt": (lambda q, k, v: sfa(q, k, v, similarity_threshold=LEARNT), "requires gradients"),
    "score_mod gives truths": (
        lambda q, k, v: attend(q, k, v, score_mod=lambda s, b, h, n, m: n >= m),
        "'score_mod' to give a score, but got a truth",
    ),
    "mask gives integers": (
        lambda q, k, v: attend(q, k, v, weft.mask(lambda b, h, n, m: n - m)),
        "'mask' to give a truth, but got i32",
    ),
    "mask gives reals": (
        lambda q, k, v: attend(q, k, v, weft.mask(lambda b, h, n, m: (n - m) * 1.0)),
        "'mask' to give a truth, but got f32",
    ),
    "mask a tensor": (lambda q, k, v: attend(q, k, v, truths(N, N)), "a pattern, but got 'Tensor'"),
    "mask a function": (lambda q, k, v: attend(q, k, v, lambda b, h, n, m: n >= m), "a pattern, but got 'function'"),
    "keys a pattern": (lambda q, k, v: weft.softmax(q, weft.causal()), "keys to be a tensor, but got 'Pattern'"),
    "per_head of 3": (lambda q, k, v: attend(q, k, v, weft.per_head([weft.causal()] * 3)), "3, as queries have heads"),
    "per_head of 1": (lambda q, k, v: attend(q, k, v, weft.per_head([weft.causal()])), "1, as queries have heads"),
    "per_head within": (
        lambda q, k, v: weft.softmax(q, k, ~weft.per_head([weft.causal()] * 3) & weft.prefix(4)),
        "3, as queries have heads",
    ),
    "ids of int64": (lambda q, k, v: attend(q, k, v, weft.document(IDS, IDS)), "'q_ids' .* int32, but got int64"),
    "ids of float32": (
        lambda q, k, v: attend(q, k, v, weft.document(IDS.int(), IDS / 3)),
        "'k_ids' .* int32, but got fp32",
    ),
    "index of bool": (
        lambda q, k, v: attend(q, k, v, weft.blocks(BITS, COUNT, block=8)),
        "'index' .* int32, but got int1",
    ),
    "count of int64": (
        lambda q, k, v: attend(q, k, v, weft.blocks(INDEX, COUNT.long(), block=8)),
        "'count' .* int32, but got int64",
    ),
    "bits of int32": (
        lambda q, k, v: attend(q, k, v, weft.block_bitmap(INDEX, block=8)),
        "'bits' .* bool, but got int32",
    ),
    "span of float32": (
        lambda q, k, v: attend(q, k, v, weft.span(*[torch.zeros(B, H, N)] * 4)),
        "'lower' .* int32, but got fp32",
    ),
    "count of a domain": (
        lambda q, k, v: weft.softmax(q, weft.domain(k, count=torch.ones(B, H))) @ v,
        r"a count \[B, Hkv\] or \[B\] of int32",
    ),
    "starts of int64": (
        lambda q, k, v: sema(q, k, v, window=8, cu_seqlens=torch.tensor([0, N])),
        "'cu_seqlens' .* of int32, but got torch.int64",
    ),
    "starts of bool": (
        lambda q, k, v: weft.softmax(q, k, cu_seqlens=torch.tensor([False, True])) @ v,
        "cu_seqlens .*int32, but got .*int1",
    ),
    "starts of attend": (
        lambda q, k, v: attend(q, k, v, cu_seqlens_q=torch.tensor([0.0, N]), cu_seqlens_k=torch.tensor([0.0, N])),
        "'cu_seqlens_q' .* int32 .* fp32",
    ),
    "window True": (lambda q, k, v: sema(q, k, v, window=True), "'window' to be an integer, but got True"),
    "window 8.7": (lambda q, k, v: sema(q, k, v, window=8.7), "'window' to be an integer, but got 8.7"),
    "window of rope 8.9": (lambda q, k, v: weft.rope(q, window=8.9), "'window' to be an integer, but got 8.9"),
    "flag of text": (lambda q, k, v: sema(q, k, v, window=8, rope="no"), "'rope' to be True or False, but got 'no'"),
    "flag of sfa": (lambda q, k, v: sfa(q, k, v, rope=1), "'rope' to be True or False, but got 1"),
    "return_lse of text": (lambda q, k, v: attend(q, k, v, return_lse="no"), "'return_lse' to be True or False"),
    "deterministic 0": (lambda q, k, v: attend(q, k, v, deterministic=0), "'deterministic' to be True or False"),
    "causal of text": (lambda q, k, v: weft.mean("no"), "'causal' to be True or False, but got 'no'"),
    "taps of int32": (lambda q, k, v: weft.toeplitz(integers(3, H * D)), "taps of .* but got int32"),
    "dilation 1.5": (lambda q, k, v: weft.toeplitz(torch.ones(3, H * D), dilation=1.5), "'dilation' .* but got 1.5"),
    "centred of text": (lambda q, k, v: weft.toeplitz(torch.ones(3, H * D), centred="no"), "'centred' .* but got 'no'"),
    "gate of bool": (lambda q, k, v: weft.diag(q > 0), "a gate of .* but got int1"),
    "rope of int32": (lambda q, k, v: weft.rope(q.int()), "of fp16, bf16 or fp32, but got int32"),
    "rms_norm of int32": (lambda q, k, v: weft.rms_norm(q.int()), "of fp16, bf16 or fp32, but got int32"),
    "gain of bool": (lambda q, k, v: weft.rms_norm(q, truths(H, D)), "a gain of .* but got int1"),
    "mean_heads of int32": (lambda q, k, v: weft.mean_heads(q.int()), "of fp16, bf16 or fp32, but got int32"),
    "heads True": (lambda q, k, v: weft.mean_heads(q, True), "'heads' to be an integer, but got True"),
    "bias of linear": (lambda q, k, v: weft.linear(q, torch.ones(4, D), truths(4)), "a bias of .* but got int1"),
    "bias of head_conv": (lambda q, k, v: weft.head_conv(q, torch.ones(2, 2, 3), integers(2)), "a bias of .* int32"),
    "shift by True": (lambda q, k, v: weft.shift(q, True), "'by' to be an integer, but got True"),
    "axis True": (lambda q, k, v: weft.sum(q, True), "'axis' to be an integer, but got True"),
    "64 bits": (lambda q, k, v: weft.abs(integers(1, 1, 2, 16, to=torch.int64) << 40), "32 bits .* but got int64"),
    "64 bits in a mask": (
        lambda q, k, v: attend(q, k, v, weft.mask(lambda b, h, n, m: IDS[n] == IDS[m])),
        "32 bits .* but got int64",
    ),
    "decisions of uint8": (
        lambda q, k, v: sfa(q, k, v, decisions=integers(B, H, N, to=torch.uint8)),
        "decisions of bool, but got torch.uint8",
    ),
    "max_joins True": (lambda q, k, v: sfa(q, k, v, max_joins=True), "'max_joins' to be an integer, but got True"),
    "value_offset True": (lambda q, k, v: sfa(q, k, v, value_offset=True), "'value_offset' .* but got True"),
    "similarity_heads True": (lambda q, k, v: sfa(q, k, v, similarity_heads=True), "similarity_heads .* but got True"),
    "kernel True": (
        lambda q, k, v: sas(q, k, v, EXPANSION, EXPANSION, EXPANSION, kernel=True),
        "'kernel' to be an integer, but got True",
    ),
    "causal of sas": (
        lambda q, k, v: sas(q, k, v, EXPANSION, EXPANSION, EXPANSION, kernel=3, causal="no"),
        "'causal' to be True or False, but got 'no'",
    ),
    "weights of int32": (
        lambda q, k, v: sas(q, k, v, EXPANSION | {"conv2.bias": integers(4)}, EXPANSION, EXPANSION, kernel=3),
        r"q_expand\['conv2.bias'\]' of float16.* but got int32",
    ),
    "heads of peaa": (lambda q, k, v: peaa(q, torch.ones(4, D), None, True), "'heads' to be an integer, but got True"),
    "kappa of int32": (
        lambda q, k, v: gau(q[:, :1], v[:, :1], v[:, :1], *[integers(D)] * 4),
        "'kappa_q' of floating-point numbers, but got int32",
    ),
    "cache of int32": (
        lambda q, k, v: weft.attention.decode(q, k.int(), v, seqused_k=integers(B)),
        "type int32, but got fp32",
    ),
    "lengths of int64": (
        lambda q, k, v: weft.attention.decode(q, k, v, seqused_k=integers(B, to=torch.int64)),
        "int32.*but got .*int64",
    ),
    "table of float32": (
        lambda q, k, v: weft.attention.decode(q, k, v, block_table=torch.ones(B, 2), seqused_k=integers(B)),
        "int32.*but got .*",
    ),
    "splits of attend True": (lambda q, k, v: attend(q, k, v, splits=True), "'splits' .* but got True"),
    "splits True": (
        lambda q, k, v: weft.attention.decode(q, k, v, seqused_k=integers(B), num_splits=True),
        "'num_splits' .* but got True",
    ),
    "scales of float16": (
        lambda q, k, v: weft.attention.decode(q, k, v, seqused_k=integers(B), k_scale=torch.ones(H).half()),
        "'k_scale' .*float32, but got .*fp16",
    ),
    "scales of float16 in append": (
        lambda q, k, v: weft.attention.append(q, k, v, v, seqused_k=integers(B), v_scale=torch.ones(H).half()),
        "'v_scale' of float32, but got torch.float16",
    ),
    "queries of 8 bits": (
        lambda q, k, v: weft.attention.decode(q.to(torch.float8_e4m3fn), k, v, seqused_k=integers(B)),
        "caches of 8-bit floats, as queries of fp8e4nv have, but got fp32",
    ),
    "a result of 8 bits": (lambda q, k, v: weft.Program(lambda x: x.to(torch.float8_e5m2))(q), "but got fp8e5"),
    "8 bits to compute on": (lambda q, k, v: weft.rope(q.to(torch.float8_e4m3fn)), "but got fp8e4nv"),
    "lengths of float32 in append": (
        lambda q, k, v: weft.attention.append(q, k, v, v, seqused_k=torch.ones(B)),
        "int32.*but got .*",
    ),
    "lse of int32": (lambda q, k, v: weft.merge(q, integers(B, H, N), v, q[..., 0]), "but got .* int32"),
    "decays of int32": (
        lambda q, k, v: weft.linear_attention(q, k, integers(B, H, N)) @ v,
        "but got int32",
    ),
    "beta of bool": (lambda q, k, v: weft.delta_rule(q, k, truths(B, H, N)) @ v, "but got int1"),
    "state of float16": (
        lambda q, k, v: weft.linear_attention(q, k, initial_state=torch.ones(B, H, D, D).half()) @ v,
        "fp32.*but got fp16|float32.*but got .*16",
    ),
    "left True": (lambda q, k, v: weft.window(True, 1), "'left' of weft.window to be an integer, but got 'bool'"),
    "n 3.0": (lambda q, k, v: weft.prefix(3.0), "'n' of weft.prefix to be an integer, but got 'float'"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_by_name(qkv, kind):
    call, expected = REFUSED[kind]
    with pytest.raises((weft.Error, TypeError, ValueError), match=f"expected .*{expected}"):
        call(*qkv)


def test_every_public_function_is_here():
    """A function added to weft.attention is to be asked the same questions."""
    asked = {"attend", "flex_attention", "sema", "sfa", "sas", "gau", "peaa", "decode", "append"}
    assert set(weft.attention.__all__) == asked


def test_ids_that_32_bits_do_not_hold_on_the_host():
    ids = np.arange(4) << 32
    with pytest.raises(weft.Error, match="integers of 32 bits in a pattern's arrays, but got 0 to 12884901888"):
        patterns.document(ids, ids).matrix(4)
    assert patterns.document(ids >> 32, ids >> 32).matrix(4).sum() == 4


@pytest.mark.parametrize("flag", ["mean", "rope", "rope_values"])
def test_modules_ask_too(flag):
    module = weft.nn.SEMA(32, 2, window=8, **{flag: "no"})
    with pytest.raises(weft.CompilationError, match=f"'{flag}' to be True or False, but got 'no'"):
        module(torch.randn(1, 24, 32))
