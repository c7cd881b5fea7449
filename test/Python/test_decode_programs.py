# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Pages in programs, with score_mods and several domains; shapes of serving: latent attention, trees of guessed tokens,
shared prefixes; tokens written into caches."""

import functools
import itertools
import math

import pytest
import torch
import weft
from test_decode import LENGTHS, both_paged, drawn, near, reference
from weft.attention import append, decode


def test_latent_attention(seed):
    """One key head of 576 channels, whose first 512 are the values, for more query heads than a tile has rows."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.tensor([130, 33], dtype=torch.int32)
    q, k, _ = drawn(generator, batch=2, heads=48, kv=1, most=130, size=576)
    pages, _, table = both_paged(k, k, lengths, 64, generator)
    plain = decode(q, k, k[..., :512], seqused_k=lengths)
    near(plain, reference(q, k, k[..., :512], lengths)[0])
    assert torch.equal(decode(q, pages, pages[..., :512], block_table=table, seqused_k=lengths), plain)


def test_a_tree_of_guessed_tokens(seed):
    """Each of several last tokens sees the sequence before them and its own ancestors among them."""
    generator = torch.Generator().manual_seed(seed)
    n, parents = 5, [-1, 0, 0, 1, 2]
    tree = torch.eye(n, dtype=torch.bool)
    for token in range(n):
        if parents[token] >= 0:
            tree[token] |= tree[parents[token]]
    lengths = torch.tensor([150, 40, 5], dtype=torch.int32)
    q, k, v = drawn(generator, n=n, most=150)
    sees = tree.to(torch.int32)

    def ancestors(b, h, i, m):
        begin = lengths[b] - n
        return (m < begin) | (sees[i, weft.maximum(m - begin, 0)] == 1)

    keys, values, table = both_paged(k, v, lengths, 16, generator)
    out = decode(q, keys, values, weft.mask(ancestors), block_table=table, seqused_k=lengths)

    for b, length in enumerate(map(int, lengths)):
        allowed = torch.cat([torch.ones(n, length - n, dtype=torch.bool), tree], 1)
        one = slice(b, b + 1)
        near(out[one], reference(q[one], k[one], v[one], lengths[one], lambda p, m, a=allowed: a)[0])


def test_a_prefix_that_sequences_share(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, batch=2, most=200)
    k[1, :, :128], v[1, :, :128] = k[0, :, :128], v[0, :, :128]
    lengths = torch.tensor([200, 150], dtype=torch.int32)
    rows = q.transpose(0, 2)
    shared, shared_lse = decode(rows, k[:1, :, :128], v[:1, :, :128], weft.full(), return_lse=True)
    own, own_lse = decode(q, k[:, :, 128:], v[:, :, 128:], seqused_k=lengths - 128, return_lse=True)
    out, lse = weft.merge(shared.transpose(0, 2), shared_lse.transpose(0, 2), own, own_lse)
    expected, its_lse = reference(q, k, v, lengths)
    near(out, expected)
    near(lse, its_lse)


@weft.program
def two_domains(q, k, v, table, lengths, k2, v2, table2, lengths2):
    first = weft.domain(weft.paged(k, table, lengths), weft.window(50, 0))
    second = weft.domain(weft.paged(k2, table2, lengths2))
    softmax = weft.softmax(q, first, second, score_mod=lambda s, b, h, n, m: s - 0.01 * m, splits=0)
    return softmax @ (weft.paged(v, table, lengths), weft.paged(v2, table2, lengths2))


def test_several_domains_in_pages(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, batch=3)
    _, k2, v2 = drawn(generator, batch=3, most=60)
    lengths2 = torch.tensor([0, 60, 33], dtype=torch.int32)
    one, two = both_paged(k, v, LENGTHS, 16, generator), both_paged(k2, v2, lengths2, 8, generator)
    out = two_domains(q, *one, LENGTHS, *two, lengths2)
    for b in range(3):
        for h in range(4):
            scores = []
            for keys, length, window in ((k, int(LENGTHS[b]), 50), (k2, int(lengths2[b]), None)):
                m = torch.arange(length)
                score = q[b, h].double() @ keys[b, h // 2, :length].double().T / 8 - 0.01 * m
                scores.append(score if window is None else score.masked_fill(m < length - 1 - window, -math.inf))
            weights = torch.cat(scores, 1).softmax(1)
            values = torch.cat([v[b, h // 2, : LENGTHS[b]], v2[b, h // 2, : lengths2[b]]]).double()
            near(out[b, h], weights @ values)


def test_pages_as_a_whole_have_zeros_behind_the_end(seed):
    generator = torch.Generator().manual_seed(seed)
    _, k, _ = drawn(generator)
    pages, _, table = both_paged(k, k, LENGTHS, 16, generator)
    whole = weft.paged(pages, table, LENGTHS)
    for b, length in enumerate(LENGTHS):
        assert torch.equal(whole[b, :, :length], k[b, :, :length]) and not whole[b, :, length:].any()


@weft.program
def of_heads_lengths(q, k, v, own_k, own_v, ones, table, lengths):
    """Tokens' own keys, and units in pages, of which each head has as many as it has."""
    itself = weft.domain(own_k, weft.window(0, 0), count=ones)
    softmax = weft.softmax(q, itself, weft.domain(weft.paged(k, table, lengths)), splits=0)
    return softmax @ (own_v, weft.paged(v, table, lengths))


def paged_by_head(cache, lengths, page, generator):
    """A cache in pages where heads have lengths [B, Hkv] of their own; what none has is NaN."""
    cache = cache.clone()
    for b in range(len(cache)):
        for h, length in enumerate(lengths[b]):
            cache[b, h, length:] = math.nan
    return both_paged(cache, cache, lengths.amax(1), page, generator)[::2]


@pytest.mark.parametrize("page", [8, 64])
def test_units_in_pages(page, seed):
    """SFA's: a token attends to itself and to merged units, of which heads have different numbers."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    own_k, own_v = (torch.randn(3, 2, 1, 64, generator=generator).half() for _ in range(2))
    lengths = torch.tensor([[300, 41], [0, 97], [1, 64]], dtype=torch.int32)
    state = generator.get_state()
    keys, table = paged_by_head(k, lengths, page, generator)
    generator.set_state(state)
    values, _ = paged_by_head(v, lengths, page, generator)
    out = of_heads_lengths(q, keys, values, own_k, own_v, torch.ones_like(lengths), table, lengths)
    for b in range(3):
        for h in range(4):
            length = int(lengths[b, h // 2])
            rows_k = torch.cat([own_k[b, h // 2], k[b, h // 2, :length]]).double()
            rows_v = torch.cat([own_v[b, h // 2], v[b, h // 2, :length]]).double()
            near(out[b, h, 0], (q[b, h, 0].double() @ rows_k.T / 8).softmax(0) @ rows_v)


@weft.program
def merged_from_pages(q, pages_k, pages_v, table, lengths, joins):
    """SFA over keys in pages: they are normalised and merged where they are read."""
    k, v = weft.paged(pages_k, table, lengths), weft.paged(pages_v, table, lengths)
    k_hat = weft.rms_norm(k.to("fp32"))
    units = weft.merge_units(joins, k_hat, v, max_joins=3, modes=("sum", "mean"), to=q.dtype)
    keys, merged = units.merged
    itself = weft.domain(k_hat.to(q.dtype), weft.window(0, 0))
    return weft.softmax(weft.rms_norm(q.to("fp32")).to(q.dtype), itself, weft.domain(keys, units.seen)) @ (v, merged)


@pytest.mark.parametrize("page", [1, 16, 64])
def test_sfa_over_pages(page, seed):
    """Units merged from keys and values in pages, for prefill: the bits of a contiguous cache."""
    generator = torch.Generator().manual_seed(seed)
    _, k, v = drawn(generator, batch=2, most=128)
    q = torch.randn(2, 4, 128, 64, generator=generator).half()
    joins = torch.rand(2, 2, 128, generator=generator) < 0.5
    lengths = torch.tensor([128, 128], dtype=torch.int32)
    keys, values, table = both_paged(k, v, lengths, page, generator)
    contiguous = [each.transpose(1, 2).reshape(-1, 128, 2, 64) for each in (k, v)]
    whole = torch.arange(2, dtype=torch.int32)[:, None]
    expected = merged_from_pages(q, *contiguous, whole, lengths, joins)
    assert torch.equal(merged_from_pages(q, keys, values, table, lengths, joins), expected)
    plain = weft.attention.sfa(q, k, v, decisions=joins, max_joins=3, value_merge="mean", eps=1e-6)
    torch.testing.assert_close(expected, plain, rtol=0, atol=2e-3)


@weft.program
def packed(q, k, v, starts, *, splits):
    return weft.softmax(q, k, weft.window(90, 0), cu_seqlens=starts, splits=splits) @ v


@weft.program
def alone(q, k, v, *, splits):
    return weft.softmax(q, k, weft.window(90, 0), splits=splits) @ v


@pytest.mark.parametrize("splits", [0, 3])
def test_packed_sequences_share_out_their_keys(splits, seed):
    """Each has the bits that it has alone."""
    generator = torch.Generator().manual_seed(seed)
    bounds = [0, 210, 210, 227, 339, 340]
    q, k, v = (torch.randn(1, heads, 340, 32, generator=generator).half() for heads in (4, 2, 2))
    out = packed(q, k, v, torch.tensor(bounds, dtype=torch.int32), splits=splits)
    for begin, end in itertools.pairwise(bounds):
        if begin < end:
            q1, k1, v1 = (each[:, :, begin:end] for each in (q, k, v))
            assert torch.equal(out[:, :, begin:end], alone(q1, k1, v1, splits=splits))
            n, m = torch.arange(end - begin)[:, None], torch.arange(end - begin)
            seen = (m <= n) & (m >= n - 90)
            scores = q1.double() @ k1.double().repeat_interleave(2, 1).mT / math.sqrt(32)
            weights = scores.masked_fill(~seen, -math.inf).softmax(-1)
            near(out[:, :, begin:end], weights @ v1.double().repeat_interleave(2, 1))


def test_keys_in_pages_have_no_gradients():
    pages = torch.zeros(2, 16, 1, 32, requires_grad=True)
    q, table = torch.zeros(1, 1, 1, 32), torch.zeros(1, 2, dtype=torch.int32)
    with pytest.raises(Exception, match="paged"):
        decode(q, pages, pages, block_table=table, seqused_k=torch.ones(1, dtype=torch.int32)).sum().backward()


@pytest.mark.parametrize("where", ["contiguous", "pages", "slots"])
def test_append(where, seed):
    """New tokens take the rows after those that a sequence has, or those of their slots; nothing else changes."""
    generator = torch.Generator().manual_seed(seed)
    batch, kv, n, size, page = 3, 2, 2, 40, 8
    new = torch.randn(batch, kv, n, size, generator=generator).half()
    lengths = torch.tensor([20, 9, 1], dtype=torch.int32)  # the last has but one of its two tokens
    expected = torch.randn(batch, kv, 24, size, generator=generator).half()
    cache = expected.clone()
    for b, length in enumerate(map(int, lengths)):
        for i in range(n):
            if length - n + i >= 0:
                expected[b, :, length - n + i] = new[b, :, i]
    if where == "contiguous":
        append(cache, cache.clone(), new, new, seqused_k=lengths)
        assert torch.equal(cache, expected)
        return
    table = torch.randperm(12, generator=generator)[:9].reshape(3, 3).to(torch.int32)
    pages = torch.zeros(12, page, kv, size, dtype=torch.float16)
    pages[table.flatten().long()] = cache.transpose(1, 2).reshape(9, page, kv, size)
    slots = None
    if where == "slots":
        positions = lengths[:, None] - n + torch.arange(n)
        slots = torch.where(
            positions < 0, -1, table.gather(1, positions.clamp(0).long() // page) * page + positions % page
        )
    append(pages, pages.clone(), new, new, seqused_k=lengths, block_table=table, slot_mapping=slots)
    got = pages[table.flatten().long()].reshape(3, 24, kv, size).transpose(1, 2)
    assert torch.equal(got, expected)


def test_append_turns_keys(seed):
    generator = torch.Generator().manual_seed(seed)
    new = torch.randn(1, 2, 3, 32, generator=generator)
    cache, values = torch.zeros(1, 2, 12, 32), torch.zeros(1, 2, 12, 32)
    append(cache, values, new, new, seqused_k=torch.tensor([12], dtype=torch.int32), rope_base=10000.0)
    padded = torch.zeros(1, 2, 12, 32)
    padded[:, :, 9:] = new
    torch.testing.assert_close(cache[:, :, 9:], weft.rope(padded)[:, :, 9:], rtol=0, atol=2e-6)
    assert torch.equal(values[:, :, 9:], new)


@pytest.mark.parametrize("strided", ["block_table", "seqused_k", "one length"])
def test_append_reads_tables_by_their_strides(strided, seed):
    """A transposed table of pages, and lengths that are a column of something or one number for all."""
    generator = torch.Generator().manual_seed(seed)
    new = torch.randn(2, 2, 1, 8, generator=generator)
    table = torch.randperm(10, generator=generator)[:6].reshape(2, 3).to(torch.int32)
    lengths = torch.tensor([9, 6], dtype=torch.int32)
    if strided == "block_table":
        table = table.t().contiguous().t()
    elif strided == "seqused_k":
        lengths = torch.stack([lengths, lengths - 1], 1)[:, 0]
    else:
        lengths = lengths[:1].expand(2)
    pages = torch.zeros(10, 4, 2, 8)
    expected = pages.clone()
    for b, length in enumerate(map(int, lengths)):
        expected[table[b, (length - 1) // 4], (length - 1) % 4] = new[b, :, 0]
    append(pages, pages.clone(), new, new, seqused_k=lengths, block_table=table)
    assert torch.equal(pages, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v_new": torch.zeros(1, 2, 1, 8)}, r"'v_new' \[B, Hkv, N, Dv\] = \[1, 2, 3, any\], but got \[1, 2, 1, 8\]"),
        ({"k_new": torch.zeros(1, 2, 3, 7), "k_cache": torch.zeros(1, 2, 16, 7)}, "even size with 'rope_base'.*got 7"),
        ({"seqused_k": torch.ones(1, dtype=torch.uint32)}, r"'seqused_k' \[B\] of int32, but got torch.uint32"),
        ({"v_cache": torch.zeros(1, 1, 16, 8).expand(1, 2, 16, 8)}, "'v_cache' whose rows are apart.*contiguous"),
    ],
)
def test_append_refuses(change, message):
    given = {name: torch.zeros(1, 2, tokens, 8) for name, tokens in
             (("k_cache", 16), ("v_cache", 16), ("k_new", 3), ("v_new", 3))}  # fmt: skip
    with pytest.raises(ValueError, match=message):
        append(**{**given, "seqused_k": torch.tensor([9], dtype=torch.int32), "rope_base": 100.0, **change})


def test_append_is_seen_by_autograd(seed):
    """A backward that kept the cache as it was refuses to go on, as after torch's own writes in place."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, dtype=torch.float32)
    new = torch.randn(3, 2, 1, 64, generator=generator)
    out = decode(q.requires_grad_(), k, v, seqused_k=LENGTHS)
    append(k, v, new, new, seqused_k=LENGTHS)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    with torch.inference_mode():
        kept = k.clone(), v.clone()
        append(*kept, new, new, seqused_k=LENGTHS)
    assert torch.equal(kept[0], k)


def test_what_is_written_passes_no_gradient_on(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, dtype=torch.float32)
    new = torch.randn(3, 2, 1, 64, generator=generator)
    asks = new.clone().requires_grad_()
    for given in ((k, v, asks, new), (k, v, new, asks), (k.clone().requires_grad_(), v, new, new)):
        for call in (append, functools.partial(_decoded, q)):
            with pytest.raises(ValueError, match=r"expected '[kv]_(new|cache)' without gradients"):
                call(*given, seqused_k=LENGTHS)
    with torch.no_grad():
        append(k, v, asks, asks, seqused_k=LENGTHS)
    decode(q.requires_grad_(), k, v, seqused_k=LENGTHS).sum().backward()
    assert q.grad.isfinite().all()


def _decoded(q, k, v, k_new, v_new, **options):
    return decode(q, k, v, k_new=k_new, v_new=v_new, **options)


def test_what_writes_is_between_graphs(seed):
    """torch.compile breaks its graph around it, and says why where it may not."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    new = torch.randn(3, 2, 1, 64, generator=generator).half()

    def step(q, k, v):
        append(k, v, new * 2, new, seqused_k=LENGTHS)
        return decode(q * 2, k, v, seqused_k=LENGTHS, k_new=new, v_new=new) + k.sum()

    held = k.clone(), v.clone()
    expected = step(q, *held)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(step, backend="eager")(q, k, v), expected)
    assert torch.equal(k, held[0]) and torch.equal(v, held[1])
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="writes into its arguments in place"):
        torch.compile(step, backend="eager", fullgraph=True)(q, k, v)


def test_decode_writes_first(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    keys, values, table = both_paged(k, v, LENGTHS, 16, generator)
    new = [torch.stack([x[b, :, int(length) - 1] for b, length in enumerate(LENGTHS)])[:, :, None] for x in (k, v)]
    expected = decode(q, keys, values, block_table=table, seqused_k=LENGTHS)
    for pages in (keys, values):
        for b, length in enumerate(map(int, LENGTHS)):
            pages[table[b, (length - 1) // 16], (length - 1) % 16] = math.nan
    options = {"block_table": table, "seqused_k": LENGTHS, "k_new": new[0], "v_new": new[1]}
    assert torch.equal(decode(q, keys, values, **options), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seqused_k": None}, "seqused_k"),
        ({"seqused_k": torch.zeros(3)}, "int32"),
        ({"block_table": torch.zeros(3, 4, dtype=torch.int64)}, "block_table"),
        ({"num_splits": 0}, "num_splits"),
        ({"slot_mapping": torch.zeros(3, 1)}, "k_new"),
    ],
)
def test_refusals(change, message):
    q, pages = torch.zeros(3, 4, 1, 32), torch.zeros(8, 16, 2, 32)
    options = {"block_table": torch.zeros(3, 4, dtype=torch.int32), "seqused_k": LENGTHS} | change
    with pytest.raises(Exception, match=message):
        decode(q, pages, pages, **options)
