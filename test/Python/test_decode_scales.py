# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Caches of 8-bit floats, with scales of heads and of pages, against float64 on the numbers that the caches stand for;
tokens that are written into them."""

import math

import pytest
import torch
import weft
from test_decode import LENGTHS, both_paged, drawn, near, paged, reference
from weft.attention import append, decode

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def scales(generator, *shape):
    return torch.rand(shape, generator=generator) * 2 + 0.1


def narrow(x, scale, kind):
    """Numbers over a scale as 8-bit floats, and what these stand for."""
    bits = (x.float() / scale).to(kind)
    return bits, bits.double() * scale.double()


def of_heads(generator, k, v, kind):
    """Keys and values [B, Hkv, M, D] of 8 bits with scales of heads, and what they stand for."""
    k_scale, v_scale = scales(generator, k.shape[1]), scales(generator, k.shape[1])
    k8, wide_k = narrow(k, k_scale[:, None, None], kind)
    v8, wide_v = narrow(v, v_scale[:, None, None], kind)
    return k8, v8, {"k_scale": k_scale, "v_scale": v_scale}, wide_k, wide_v


def bytes_of(cache):
    return cache.view(torch.uint8)


@pytest.mark.parametrize("kind", [E4M3, E5M2], ids=["e4m3", "e5m2"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_scales_of_heads(kind, dtype, seed):
    """In pages and not: the same bits, NaN behind the lengths, several queries."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator, n=2, dtype=dtype)
    k8, v8, options, wide_k, wide_v = of_heads(generator, k, v, kind)
    for b, length in enumerate(LENGTHS):
        bytes_of(k8)[b, :, length:] = bytes_of(v8)[b, :, length:] = 0x7F
    out, lse = decode(q, k8, v8, seqused_k=LENGTHS, return_lse=True, **options)
    expected, its_lse = reference(q, wide_k, wide_v, LENGTHS)
    at_most = 4e-3 if dtype == torch.float16 else 3e-2
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=at_most)
    torch.testing.assert_close(lse.double(), its_lse, rtol=0, atol=at_most)
    keys, values, table = (
        each.view(kind) if each.dtype == torch.uint8 else each
        for each in both_paged_bytes(bytes_of(k8), bytes_of(v8), LENGTHS, 16, generator)
    )
    assert torch.equal(decode(q, keys, values, block_table=table, seqused_k=LENGTHS, **options), out)


def both_paged_bytes(k, v, lengths, page, generator):
    """Bytes in pages, 0x7f where no sequence has any: a NaN of both kinds."""
    keys, values, table = both_paged(k.half(), v.half(), lengths, page, generator)
    return *(each.nan_to_num(nan=0x7F).to(torch.uint8) for each in (keys, values)), table


@pytest.mark.parametrize("page", [1, 16, 64])
def test_scales_of_pages(page, seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    keys, values, table = both_paged(k, v, LENGTHS, page, generator)
    options, wide = {}, []
    narrowed = []
    for name, pages in (("k_scale", keys), ("v_scale", values)):
        scale = scales(generator, len(pages), 2)
        stored, stands_for = narrow(pages, scale[:, None, :, None], E4M3)
        scale[[number for number in range(len(pages)) if number not in table]] = math.nan
        options[name] = scale
        narrowed.append(stored)
        rows = torch.zeros(3, 2, table.shape[1] * page, 64, dtype=torch.float64)
        for b, length in enumerate(LENGTHS):
            for m in range(int(length)):
                rows[b, :, m] = stands_for[table[b, m // page], m % page]
        wide.append(rows)
    out = decode(q, *narrowed, block_table=table, seqused_k=LENGTHS, **options)
    near(out, reference(q, *wide, LENGTHS)[0])


def test_without_scales(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    one = torch.ones(())
    (k8, wide_k), (v8, wide_v) = narrow(k, one, E4M3), narrow(v, one, E4M3)
    near(decode(q, k8, v8, seqused_k=LENGTHS), reference(q, wide_k, wide_v, LENGTHS)[0])


def test_scales_of_caches_of_16_bits(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    k_scale = scales(generator, 2)
    out = decode(q, k, v, seqused_k=LENGTHS, k_scale=k_scale)
    near(out, reference(q, k.double() * k_scale[:, None, None].double(), v, LENGTHS)[0])


def test_pattern_score_mod_and_sink(seed):
    """The scale comes before a score_mod; a sink has none."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    k8, v8, options, wide_k, wide_v = of_heads(generator, k, v, E4M3)
    sink = torch.randn(4, generator=generator)
    options |= {"score_mod": lambda s, b, h, n, m: 0.5 * s, "sink": sink}
    out = decode(q, k8, v8, weft.window(40, 0), seqused_k=LENGTHS, **options)
    window = lambda p, m: (m <= p) & (m >= p - 40)  # noqa: E731
    near(out, reference(q, wide_k, wide_v, LENGTHS, window, scale=0.5 / 8, sink=sink)[0])


@pytest.mark.parametrize("kind", [E4M3, E5M2], ids=["e4m3", "e5m2"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bfloat16], ids=["f16", "f32", "bf16"])
def test_all_bits_of_8_convert(kind, dtype):
    """NaN, infinities and both zeros too, in every place of a word; no number depends on its neighbours."""
    numbers = torch.cat([torch.arange(256), torch.arange(256).flip(0), torch.arange(256).roll(1)])
    v = numbers.to(torch.uint8).view(kind).reshape(1, 1, -1, 16)
    rows, wanted = weft.Program(lambda x: x.to(dtype))(v), v.to(dtype)
    torch.testing.assert_close(rows, wanted, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(rows.signbit() | rows.isnan(), wanted.signbit() | wanted.isnan())


def test_every_number_of_8_bits(seed):
    """All 256, NaN apart, reach the product as they are: keys of one channel each."""
    for kind in (E4M3, E5M2):
        numbers = torch.arange(256).to(torch.uint8).view(kind)
        numbers = numbers[numbers.float().isfinite()]
        v = numbers[None, None, :, None].expand(1, 1, -1, 16).contiguous()
        q, k = torch.zeros(1, 1, 1, 16).half(), torch.zeros(1, 1, len(numbers), 16).half()
        rows = weft.Program(lambda x: x.to(torch.float32))(v)
        assert torch.equal(rows, v.float())
        out = decode(q, k.to(kind), v, weft.full())
        torch.testing.assert_close(out[0, 0, 0].double(), v[0, 0].double().mean(0), rtol=1e-3, atol=1e-3 * 448)


@weft.program
def two_domains(q, k, table, lengths, far, counts, scale):
    keys, far = weft.paged(k, table, lengths).to(q.dtype), (far.to(torch.float32) * scale).to(q.dtype)
    domains = weft.domain(keys, weft.window(50, 0)), weft.domain(far, count=counts)
    return weft.softmax(q, *domains) @ (keys, far)


def test_in_programs(seed):
    """8-bit floats are tensors of programs: converted, and scaled by any tensor."""
    generator = torch.Generator().manual_seed(seed)
    q, k, _ = drawn(generator)
    k2, scale = torch.randn(3, 2, 20, 64, generator=generator), scales(generator, 2, 1, 1)
    pages, table = paged(k, LENGTHS, 16, generator)
    pages, (k2, wide2) = pages.to(E4M3), narrow(k2, scale, E4M3)

    out = two_domains(q, pages, table, LENGTHS, k2, torch.full((3,), 20, dtype=torch.int32), scale)
    wide = k.to(E4M3).double()
    for b, length in enumerate(map(int, LENGTHS)):
        for h in range(4):
            keys = torch.cat([wide[b, h // 2, max(0, length - 51) : length], wide2[b, h // 2]])
            near(out[b, h, 0], (q[b, h, 0].double() @ keys.T / 8).softmax(0) @ keys)


def test_append_divides_and_rounds(seed):
    generator = torch.Generator().manual_seed(seed)
    new = torch.randn(2, 2, 3, 40, generator=generator).half()
    new[0, 0, 0, :3] = torch.tensor([1e4, -1e4, 0.001])
    k_scale, v_scale = scales(generator, 6, 2), scales(generator, 2)
    k_cache, v_cache = (torch.zeros(6, 4, 2, 40).to(E4M3) for _ in range(2))
    table = torch.tensor([[5, 1], [0, 3]], dtype=torch.int32)
    lengths = torch.tensor([6, 3], dtype=torch.int32)
    append(k_cache, v_cache, new, new, seqused_k=lengths, block_table=table, k_scale=k_scale, v_scale=v_scale)
    for b, length in enumerate(map(int, lengths)):
        for i in range(3):
            m = length - 3 + i
            page, row = int(table[b, m // 4]), m % 4
            for cache, scale in ((k_cache, k_scale[page]), (v_cache, v_scale)):
                expected = (new[b, :, i].float() / scale[:, None]).clamp(-448, 448).to(E4M3)
                assert torch.equal(bytes_of(cache)[page, row], bytes_of(expected))


def test_decode_writes_first(seed):
    generator = torch.Generator().manual_seed(seed)
    q, k, v = drawn(generator)
    k8, v8, options, _, _ = of_heads(generator, k, v, E4M3)
    new = {}
    for name, cache, scale in (("k_new", k8, "k_scale"), ("v_new", v8, "v_scale")):
        last = torch.stack([cache[b, :, int(length) - 1].float() for b, length in enumerate(LENGTHS)])
        new[name] = (last * options[scale][:, None])[:, :, None]
    expected = decode(q, k8, v8, seqused_k=LENGTHS, **options)
    for b, length in enumerate(map(int, LENGTHS)):
        bytes_of(k8)[b, :, length - 1] = bytes_of(v8)[b, :, length - 1] = 0x7F
    assert torch.equal(decode(q, k8, v8, seqused_k=LENGTHS, **options, **new), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k_scale": torch.ones(3)}, "'k_scale'"),
        ({"v_scale": torch.ones(7, 2)}, "'v_scale'.*each page"),
        ({"k_scale": torch.ones(8, 2, 1)}, "'k_scale'"),
        ({"v_scale": torch.ones(2).half()}, "'v_scale'.*float32"),
    ],
)
def test_refusals(change, message):
    q, pages = torch.zeros(3, 4, 1, 32), torch.zeros(8, 16, 2, 32).to(E4M3)
    options = {"block_table": torch.zeros(3, 4, dtype=torch.int32), "seqused_k": LENGTHS} | change
    with pytest.raises(Exception, match=message):
        decode(q, pages, pages, **options)


def test_no_gradients_of_8_bits():
    q, k = torch.zeros(1, 1, 1, 32), torch.zeros(1, 1, 8, 32).to(E4M3).requires_grad_()
    with pytest.raises(weft.Error, match=r"'k_cache'.*no gradient"):
        decode(q, k, k.detach()).sum().backward()
    q.requires_grad_()
    decode(q, k.detach(), k.detach()).sum().backward()
    assert q.grad is not None and not q.grad.any()
