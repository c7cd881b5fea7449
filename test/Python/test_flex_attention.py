# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.flex_attention on mods and masks as users write them: forward, log-sum-exp and all gradients, those of captured
tensors too, against the formula in float64, whose forward is torch's own flex_attention."""

import functools
import math

import pytest
import torch
import torch.nn.attention.flex_attention as torch_flex
import weft
from flex_samples import SAMPLES, causal_mask
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn.attention.flex_attention import and_masks, or_masks
from weft.attention import block_masks
from weft.programs import compiled
from weft.testing import Domain, attention, drawn, judge

D = 16


def block_mask(sample, mask_mod):
    if mask_mod is None:
        return None
    sizes = (sample.batch, sample.heads, sample.n, sample.m)
    return torch_flex.create_block_mask(mask_mod, *sizes, device="cpu", BLOCK_SIZE=sample.block)


class ByScalars(torch.overrides.TorchFunctionMode):
    """x[i] of a scalar tensor i is an element, where torch.vmap would ask i for its number."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(each, torch.Tensor) for each in index):
                return torch.ops.aten.index(args[0], [torch.as_tensor(each) for each in index])
        return function(*args, **(kwargs or {}))


def everywhere(function, places, score=None):
    """A function of scalars at every pair: torch maps it over batch, heads, queries and keys."""
    arguments = (*([score] if score is not None else []), *places)
    first = () if score is None else (0,)
    for axis in (3, 2, 1, 0):
        inner = [None] * 4
        inner[axis] = 0
        function = torch.vmap(function, in_dims=(*first, *inner))
    with ByScalars():
        return function(*arguments)


def dense(q, k, v, score_mod, mask_mod, scale=None):
    """Attention and its log-sum-exp by whole matrices, in the precision of q, or float32."""
    kind = torch.float64 if q.dtype == torch.float64 else torch.float32
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    places = [torch.arange(size) for size in (*q.shape[:3], k.shape[2])]
    score = (q @ k.mT).to(kind) * (1 / math.sqrt(q.shape[3]) if scale is None else scale)
    score = score if score_mod is None else everywhere(score_mod, places, score).to(kind)
    if mask_mod is not None:
        score = score.masked_fill(~everywhere(mask_mod, places).expand(score.shape), -math.inf)
    most = score.detach().amax(-1, keepdim=True).clamp(min=-1e30)
    weights = torch.exp(score - most)
    total = weights.sum(-1, keepdim=True)
    some = total > 0
    out = (weights / torch.where(some, total, 1.0)).to(q.dtype) @ v
    lse = torch.where(some, torch.log(torch.where(some, total, 1.0)) + most, -math.inf)
    return out, lse[..., 0]


def inputs_of(sample, randn):
    groups = sample.groups or sample.heads
    return {
        "q": randn(sample.batch, sample.heads, sample.n, D),
        "k": randn(sample.batch, groups, sample.m, D),
        "v": randn(sample.batch, groups, sample.m, D),
        **sample.draw(randn, sample),
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_samples(name, seed, held):
    sample = SAMPLES[name]
    generator = torch.Generator().manual_seed(seed)

    def attend(q, k, v, *captured):
        score_mod, mask_mod = sample.make(*captured)
        given = {"scale": sample.scale, "enable_gqa": sample.groups is not None, "return_lse": True}
        return weft.flex_attention(q, k, v, score_mod, block_mask(sample, mask_mod), **given)

    def formula(q, k, v, *captured, form):
        return dense(q, k, v, *sample.make(*captured), scale=sample.scale)

    def draw():
        tensors = drawn(functools.partial(inputs_of, sample), torch.float32, generator)
        return judge(attend, formula, tensors, names=("out", "lse"), generator=generator)

    held("flex_attention", draw)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_reference_is_torchs(name, seed, monkeypatch):
    """The formula's forward is what torch's flex_attention computes of the same mods, in float64."""
    monkeypatch.setattr(torch_flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    sample = SAMPLES[name]
    generator = torch.Generator().manual_seed(seed)
    tensors = drawn(functools.partial(inputs_of, sample), torch.float32, generator)
    q, k, v, *captured = (x.double() if x.dtype.is_floating_point else x for x in tensors.values())
    score_mod, mask_mod = sample.make(*captured)
    given = {"scale": sample.scale, "enable_gqa": sample.groups is not None}
    request = torch_flex.AuxRequest(lse=True)
    out, aux = torch_flex.flex_attention(q, k, v, score_mod, block_mask(sample, mask_mod), return_aux=request, **given)
    found = dense(q, k, v, score_mod, mask_mod, sample.scale)
    torch.testing.assert_close(found, (out, aux.lse), rtol=1e-12, atol=1e-12)


# ---- BlockMasks ----------------------------------------------------------------------------------------------------


def drawn_qkv(seed, n=70, m=70, heads=2, groups=2, batch=2):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((batch, heads, n, D), (batch, groups, m, D), (batch, groups, m, D))
    return [torch.randn(shape, generator=generator) for shape in shapes]


def tables(generator, batch, heads, rows, columns):
    """Blocks drawn at random: how many of each row of blocks, and which."""
    count = torch.randint(0, columns + 1, (batch, heads, rows), generator=generator, dtype=torch.int32)
    return count, torch.rand(batch, heads, rows, columns, generator=generator).argsort(-1).int()


def listed(count, index, rows, columns):
    """The pairs of the listed blocks, of rows x columns pairs each."""
    found = torch.zeros(*count.shape, index.shape[-1], dtype=torch.bool)
    for place in torch.cartesian_prod(*map(torch.arange, count.shape)).tolist():
        found[tuple(place)][index[tuple(place)][: count[tuple(place)]].long()] = True
    return found.repeat_interleave(rows, 2).repeat_interleave(columns, 3)


@pytest.mark.parametrize("full", [False, True], ids=["partial", "partial and full"])
@pytest.mark.parametrize("mod", [None, causal_mask], ids=["no mask_mod", "mask_mod"])
@pytest.mark.parametrize("batch, heads", [(2, 2), (1, 1)])
def test_tables(mod, full, batch, heads, seed):
    """What tables say counts, beside a mask_mod and without one: full blocks are whole, of partial ones it is asked."""
    generator = torch.Generator().manual_seed(seed)
    rows, columns, n, m = 16, 8, 70, 60
    partial = tables(generator, batch, heads, 5, 8)
    whole = tables(generator, batch, heads, 5, 8) if full else (None, None)
    given = torch_flex.BlockMask.from_kv_blocks(
        *partial, *whole, BLOCK_SIZE=(rows, columns), mask_mod=mod, seq_lengths=(n, m)
    )
    allowed = listed(*partial, rows, columns)[:, :, :n, :m]
    if mod is not None:
        allowed = allowed & mod(0, 0, torch.arange(n)[:, None], torch.arange(m))
    if full:
        allowed = allowed | listed(*whole, rows, columns)[:, :, :n, :m]
    q, k, v = drawn_qkv(seed, n, m)
    out, lse = weft.flex_attention(q, k, v, block_mask=given, return_lse=True)
    places = allowed.expand(2, 2, n, m)
    wanted = dense(q.double(), k.double(), v.double(), None, lambda b, h, i, j: places[b, h, i, j])
    torch.testing.assert_close((out.double(), lse.double()), wanted, rtol=1e-5, atol=1e-5)


def test_what_return_aux_gives(seed):
    q, k, v = drawn_qkv(seed)
    out, lse = weft.flex_attention(q, k, v, return_lse=True)
    again, aux = weft.flex_attention(q, k, v, return_aux=torch_flex.AuxRequest(lse=True))
    assert isinstance(aux, torch_flex.AuxOutput) and aux.max_scores is None
    assert torch.equal(out, again) and torch.equal(lse, aux.lse)
    assert torch.equal(weft.flex_attention(q, k, v, kernel_options={"BLOCK_M": 64}), out)
    alone, aux = weft.flex_attention(q, k, v, return_aux=torch_flex.AuxRequest())
    assert torch.equal(alone, out) and aux.lse is None


def test_keys_of_one_batch(seed):
    q, k, v = drawn_qkv(seed)
    k, v = k[:1].requires_grad_(), v[:1].requires_grad_()
    ours = torch.autograd.grad(weft.flex_attention(q, k, v, block_mask=weft.causal()).square().sum(), (k, v))
    wanted = dense(q.double(), k.double().expand(2, -1, -1, -1), v.double().expand(2, -1, -1, -1), None, causal_mask)
    found = torch.autograd.grad(wanted[0].square().sum(), (k, v))
    torch.testing.assert_close(ours, found, rtol=1e-4, atol=1e-4)


def test_in_a_program_it_is_part_of_it(seed):
    slopes = torch.rand(2)

    @weft.program
    def twice(q, k, v):
        mod = lambda s, b, h, i, j: s - slopes[h] * (i - j).abs()  # noqa: E731
        return weft.flex_attention(q * 2.0, k, v, mod)

    q, k, v = drawn_qkv(seed)
    found = twice(q, k, v)
    wanted = weft.flex_attention(q * 2.0, k, v, lambda s, b, h, i, j: s - slopes[h] * (i - j).abs())
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types(dtype, seed, held):
    """A score is float32 whatever the operands are, and what is captured may be of any real type."""
    generator = torch.Generator().manual_seed(seed)

    def mod_of(slopes):
        return lambda score, b, h, q_idx, kv_idx: score - slopes[h].to(score.dtype) * (q_idx - kv_idx)

    def attend(q, k, v, slopes):
        return weft.flex_attention(q, k, v, mod_of(slopes), block_mask(SAMPLES["causal"], causal_mask))

    def formula(q, k, v, slopes, form):
        allowed = torch.ones(70, 70, dtype=torch.bool).tril()
        return attention(q, [Domain(k, v, allowed)], score_mod=mod_of(slopes), form=form)[0]

    def inputs(randn):
        q, k, v = (randn(2, 2, 70, D) for _ in range(3))
        return {"q": q, "k": k, "v": v, "slopes": randn(2).abs()}

    held(
        "flex_attention, half types",
        lambda: judge(attend, formula, drawn(inputs, dtype, generator), generator=generator),
    )


# ---- Compiled once -------------------------------------------------------------------------------------------------


@pytest.fixture
def forms(monkeypatch):
    """The texts of the programs that are compiled while it lasts."""
    made = []
    build = compiled._build

    def counted(traced, *more):
        made.append(traced.text)
        return build(traced, *more)

    monkeypatch.setattr(compiled, "_build", counted)
    return made


def test_other_tensors_and_lengths_are_one_form(forms, seed):
    """A mod with other numbers in its tensors, of other lengths, is compiled once, forward with backward."""

    def call(n, slope, lengths):
        slopes = torch.full((2,), slope, requires_grad=True)
        starts = torch.tensor(lengths)

        def mod(score, b, h, q_idx, kv_idx):
            return score - 0.731 * slopes[h] * (q_idx - kv_idx)

        given = torch_flex.create_block_mask(
            lambda b, h, q_idx, kv_idx: (q_idx >= kv_idx) & (kv_idx >= starts[b]), 2, None, n, n, "cpu", BLOCK_SIZE=16
        )
        q, k, v = drawn_qkv(seed, n, n)
        return torch.autograd.grad(weft.flex_attention(q, k, v, mod, given).sum(), slopes)[0]

    first = call(50, 0.5, [0, 5])
    assert len(set(forms)) == len(forms) == 1
    again = call(50, 0.25, [3, 1])
    assert not torch.equal(first, again)
    call(90, 0.125, [7, 1])
    assert len(forms) == 1


def test_a_mask_of_formulas_keeps_its_blocks():
    """Causal masks and windows of create_block_mask are weft's patterns: no list of blocks, and no table is read."""
    n = 64
    query = torch.empty(1, 1, n, 16, device="meta")
    for mask, pattern in (
        (causal_mask, weft.causal()),
        (and_masks(causal_mask, lambda b, h, q, kv: q - kv <= 9), weft.causal() & weft.window(9, None)),
        (or_masks(causal_mask, lambda b, h, q, kv: kv < 7), weft.causal() | weft.prefix(7)),
    ):
        given = torch_flex.create_block_mask(mask, None, None, n, n, "cpu", BLOCK_SIZE=16)
        assert block_masks.pattern(given, query, n) == pattern
    given.kv_num_blocks -= 1  # a table that says less than its mask_mod
    assert block_masks.pattern(given, query, n) != pattern


def whole(function=None):
    """In torch's compiler as one graph."""
    torch.compiler.reset()
    return torch.compile(function or weft.flex_attention, fullgraph=True, backend="aot_eager")


EARLY = {
    "causal",
    "alibi of a tensor of slopes",
    "padding, a length each batch",
    "document and causal, of positions in it",
}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in EARLY else [pytest.mark.slow]) for n in SAMPLES])
def test_within_torchs_compiler(name, seed):
    """torch.compile(weft.flex_attention, fullgraph=True), as users of torch's write it: the same numbers, of BlockMasks
    too, and gradients of what mods read."""
    sample = SAMPLES[name]
    tensors = drawn(functools.partial(inputs_of, sample), torch.float32, torch.Generator().manual_seed(seed))
    leaves = [x.requires_grad_() for x in tensors.values() if x.is_floating_point()]
    q, k, v, *captured = tensors.values()
    score_mod, mask_mod = sample.make(*captured)
    options = {"scale": sample.scale, "enable_gqa": sample.groups is not None}
    given = (q, k, v, score_mod, block_mask(sample, mask_mod))
    found, wanted = (call(*given, **options) for call in (whole(), weft.flex_attention))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
    gradients = [torch.autograd.grad(out.sin().sum(), leaves) for out in (found, wanted)]
    for mine, each in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, each, atol=2e-5, rtol=2e-5)


def test_one_graph_for_other_masks(seed, forms):
    """A BlockMask of other tables and documents takes no new graph; one whose tables no longer are those of its
    mask_mod does. One that the function makes is part of the graph."""
    q, k, v = (x.detach() for x in drawn_qkv(seed))
    counted = CompileCounterWithBackend("aot_eager")
    torch.compiler.reset()
    attend = torch.compile(lambda q, mask: weft.flex_attention(q, k, v, None, mask), fullgraph=True, backend=counted)

    def made(mask_mod):
        return torch_flex.create_block_mask(mask_mod, None, None, 70, 70, "cpu", BLOCK_SIZE=16)

    def check(mask):
        torch.testing.assert_close(attend(q, mask), weft.flex_attention(q, k, v, None, mask))

    documents = torch.zeros(70, dtype=torch.int64)

    def same(b, h, q_idx, kv_idx):
        return documents[q_idx] == documents[kv_idx]

    for seed in range(3):
        documents = torch.randint(3, (70,), generator=torch.Generator().manual_seed(seed)).sort().values
        check(made(and_masks(same, causal_mask)))
    assert counted.frame_count == 1
    causal = made(causal_mask)
    forms.clear()
    attend(q, causal)
    assert ["#attn.causal" in text and "mask" not in text for text in forms] == [True]
    check(made(causal_mask))
    assert counted.frame_count == 2
    causal.kv_num_blocks.zero_()
    causal.full_kv_num_blocks.zero_()
    assert not attend(q, causal).any() and counted.frame_count == 3

    def inside(q, ids):
        return weft.flex_attention(q, k, v, None, made(lambda b, h, q_idx, kv_idx: ids[q_idx] == ids[kv_idx]))

    torch.testing.assert_close(whole(inside)(q, documents), inside(q, documents))


# ---- What is refused -----------------------------------------------------------------------------------------------


def refused(*words, **given):
    """A call that is refused with these words, at a line of this file."""
    q, k, v = (torch.zeros(1, 2, 16, D) for _ in range(3))
    with pytest.raises(weft.CompilationError) as error:
        weft.flex_attention(given.pop("query", q), given.pop("key", k), given.pop("value", v), **given)
    said = str(error.value)
    assert "test_flex_attention.py" in said
    for word in words:
        assert word in said, said


@pytest.mark.parametrize("size", [1, 7])
def test_head_sizes_may_be_any(size, seed):
    q, k, v = (torch.randn(1, 2, 33, size, generator=torch.Generator().manual_seed(seed + i)) for i in range(3))
    found = weft.flex_attention(q, k, v)
    expected = (q.double() @ k.double().mT / math.sqrt(size)).softmax(-1) @ v.double()
    assert (found - expected).abs().max() < 2e-6


def test_refusals():
    four, table = torch.zeros(1, 4, 16, D), torch.zeros(3)
    refused("as many heads", "enable_gqa=True", query=four)
    refused("'query' [B, H, N, D]", query=torch.zeros(16, D))
    refused("fp32", "float64", query=torch.zeros(1, 2, 16, D).double())
    refused("max_scores", return_aux=torch_flex.AuxRequest(max_scores=True))
    refused("return_lse", return_lse=True, return_aux=torch_flex.AuxRequest(lse=True))
    refused("kernel_options", "BLOCK_Q", kernel_options={"BLOCK_Q": 3})
    refused("BlockMask", "create_block_mask", block_mask=torch.ones(16, 16, dtype=torch.bool))
    refused("a score, but got a truth", score_mod=lambda s, b, h, i, j: i >= j)
    refused("'score_mod' to be a function of", score_mod=lambda s, i, j: s)
    refused("'torch.softmax'", score_mod=lambda s, b, h, i, j: torch.softmax(s, -1))
    refused("known now", score_mod=lambda s, b, h, i, j: s if i > j else -s)
    refused("at most", "indices", score_mod=lambda s, b, h, i, j: s + table[h, i])
    refused("as long as its index runs", score_mod=lambda s, b, h, i, j: s + table[i])
    refused("32 bits", score_mod=lambda s, b, h, i, j: s + torch.tensor([2**40])[0 * h])


def test_refused_block_masks():
    made = torch_flex.create_block_mask(causal_mask, None, None, 64, 64, "cpu", BLOCK_SIZE=16)
    refused("for 16 queries, but got one for 64", block_mask=made)
    refused("sliced", "assign its mask_mod", block_mask=made[:, :, 0:1])
    alone = torch_flex.BlockMask.from_kv_blocks(made.kv_num_blocks[0, 0], made.kv_indices[0, 0], BLOCK_SIZE=4)
    refused("[B, H, blocks of queries", block_mask=alone)
