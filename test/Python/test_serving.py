# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Decoding as vLLM and FlashInfer call it: what they hand over, as recorded, against float64."""

import importlib.metadata
import math
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from test_decode import both_paged, near, reference
from weft.serving import flashinfer, rows, vllm

ROOT = Path(__file__).resolve().parents[2]


def step(generator, queries, lengths, page, heads=4, kv=2, size=32, padding=0):
    """A step of vLLM: metadata as its runner builds it, with ``padding`` tokens past the last; queries, new keys and
    values, a cache that has all but the new ones, and the whole caches."""
    batch, most = len(lengths), max(lengths)
    k, v = (torch.randn(batch, kv, most, size, generator=generator).half() for _ in range(2))
    keys, values, table = both_paged(k, v, torch.tensor(lengths), page, generator)
    starts = torch.tensor([0, *queries], dtype=torch.int32).cumsum(0).to(torch.int32)
    slots, new_k, new_v = [], [], []
    for b, (count, length) in enumerate(zip(queries, lengths, strict=True)):
        for m in range(length - count, length):
            where, row = int(table[b, m // page]), m % page
            slots.append(where * page + row)
            new_k.append(k[b, :, m].clone())
            new_v.append(v[b, :, m].clone())
            keys[where, row] = values[where, row] = math.nan
    common = SimpleNamespace(
        query_start_loc=starts, query_start_loc_cpu=starts, seq_lens=torch.tensor(lengths, dtype=torch.int32),
        num_reqs=batch, num_actual_tokens=sum(queries), max_query_len=max(queries), max_seq_len=most,
        block_table_tensor=table, slot_mapping=torch.tensor(slots, dtype=torch.int64), causal=True,
    )  # fmt: skip
    q = torch.randn(sum(queries) + padding, heads, size, generator=generator).half()
    rest = torch.full((padding, kv, size), math.nan).half()
    return common, q, torch.cat([torch.stack(new_k), rest]), torch.cat([torch.stack(new_v), rest]), keys, values, k, v


@pytest.mark.parametrize("queries", [[1, 1, 1], [1, 3, 2], [20, 1, 5]], ids=["decoding", "guesses", "prefill beside"])
def test_vllm_step(queries, seed):
    generator = torch.Generator().manual_seed(seed)
    lengths = [20, 33, 7]
    common, q, key, value, keys, values, k, v = step(generator, queries, lengths, 16, padding=2)
    builder = vllm.Backend.get_builder_cls()(None, ["layer"], None, "cpu")
    metadata = builder.build(common_prefix_len=0, common_attn_metadata=common)
    assert isinstance(metadata, vllm.Backend.get_metadata_cls())
    impl = vllm.Backend.get_impl_cls()(4, 32, 32**-0.5, num_kv_heads=2, sliding_window=12)
    cache = torch.stack([keys, values])
    assert cache.shape == vllm.Backend.get_kv_cache_shape(keys.shape[0], 16, 2, 32)
    output = torch.full((len(q), 4 * 32), 7.0).half()
    impl.forward(None, q, key, value, cache, metadata, output)
    first = 0
    for b, count in enumerate(queries):
        rows = q[first : first + count].transpose(0, 1)[None]
        one = slice(b, b + 1)
        expected, _ = reference(rows, k[one], v[one], [lengths[b]], lambda p, m: (m <= p) & (m > p - 12))
        near(output[first : first + count].reshape(count, 4, 32).transpose(0, 1)[None], expected)
        first += count
    assert (output[first:] == 7).all()


@pytest.mark.parametrize("queries", [[1, 1, 1], [20, 1, 5]], ids=["decoding", "prefill beside"])
def test_vllm_step_of_8_bits(queries, seed):
    """kv_cache_dtype="fp8": bytes, and one scale of a layer's keys and one of its values."""
    generator = torch.Generator().manual_seed(seed)
    lengths, kind = [20, 33, 7], torch.float8_e4m3fn
    common, q, key, value, keys, values, k, v = step(generator, queries, lengths, 16)
    layer = SimpleNamespace(_k_scale=torch.tensor(0.03), _v_scale=torch.tensor(0.02))
    wide = []
    for x, scale in ((k, layer._k_scale), (v, layer._v_scale)):
        wide.append((x.float() / scale).to(kind).double() * scale.double())
    cache = torch.stack([(keys.float() / layer._k_scale).to(kind), (values.float() / layer._v_scale).to(kind)])
    metadata = vllm.MetadataBuilder(None, ["layer"], None, "cpu").build(0, common)
    impl = vllm.Impl(4, 32, 32**-0.5, num_kv_heads=2, kv_cache_dtype="fp8")
    output = torch.full((len(q), 4 * 32), 7.0).half()
    impl.forward(layer, q, key, value, cache.view(torch.uint8), metadata, output)
    first = 0
    for b, count in enumerate(queries):
        rows, one = q[first : first + count].transpose(0, 1)[None], slice(b, b + 1)
        expected, _ = reference(rows, wide[0][one], wide[1][one], [lengths[b]])
        near(output[first : first + count].reshape(count, 4, 32).transpose(0, 1)[None], expected)
        first += count


def test_vllm_profiling_run():
    impl = vllm.Impl(2, 16, 1.0)
    output = torch.ones(3, 32)
    assert not impl.forward(None, torch.ones(3, 2, 16), None, None, None, None, output).any()


def test_vllm_refusals():
    assert vllm.Backend.validate_configuration(128, torch.bfloat16, "auto") == []
    assert vllm.Backend.validate_configuration(128, torch.bfloat16, "fp8_e4m3") == []
    reasons = vllm.Backend.validate_configuration(100, torch.float32, "int8", use_mla=True)
    assert len(reasons) == 4
    for options in ({"kv_cache_dtype": "int8"}, {"alibi_slopes": [1.0]}, {"attn_type": "encoder"}):
        with pytest.raises(NotImplementedError, match="expected"):
            vllm.Impl(2, 16, 1.0, **options)


def test_vllm_entry_point():
    """The package says where vLLM finds the backend."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["vllm.general_plugins"]
    point = importlib.metadata.EntryPoint("weft", said["weft"], "vllm.general_plugins")
    assert point.load() is vllm.register


def test_rows_come_back(seed):
    torch.manual_seed(seed)
    starts, packed = torch.tensor([0, 2, 2, 5], dtype=torch.int32), torch.randn(5, 3, 4)
    assert torch.equal(rows.packed(rows.padded(packed, starts, 3), starts, 5), packed)


@pytest.mark.parametrize("page", [1, 16])
def test_flashinfer_trace(page, seed):
    """gqa_paged_decode_h32_kv8_d128_ps1 and _ps16, at fewer tokens: the definition's inputs and outputs."""
    generator = torch.Generator().manual_seed(seed)
    lengths = [40, 1, 100]
    q = torch.randn(3, 32, 128, generator=generator).bfloat16()
    k, v = (torch.randn(3, 8, 100, 128, generator=generator).bfloat16() for _ in range(2))
    keys, values, table = both_paged(k, v, torch.tensor(lengths), page, generator)
    counts = [-(-length // page) for length in lengths]
    given = {
        "q": q, "k_cache": keys, "v_cache": values, "sm_scale": 0.1,
        "kv_indptr": torch.tensor([0, *counts]).cumsum(0).to(torch.int32),
        "kv_indices": torch.cat([table[b, :count] for b, count in enumerate(counts)]),
    }  # fmt: skip
    if page > 1:
        given["kv_last_page_len"] = torch.tensor([(n - 1) % page + 1 for n in lengths], dtype=torch.int32)
    got = flashinfer.gqa_paged_decode(**given)
    expected, lse = reference(q[:, :, None], k, v, lengths, scale=0.1)
    torch.testing.assert_close(got["output"].double(), expected[:, :, 0], rtol=0, atol=2e-2)
    torch.testing.assert_close(got["lse"].double(), lse[:, :, 0] / math.log(2), rtol=0, atol=1e-3)


def test_flashinfer_latent_trace(seed):
    """mla_paged_decode_h16_ckv512_kpe64_ps1, at fewer tokens."""
    generator = torch.Generator().manual_seed(seed)
    q, rope = (torch.randn(2, 16, size, generator=generator).bfloat16() for size in (512, 64))
    cache, pe = (torch.randn(50, 1, size, generator=generator).bfloat16() for size in (512, 64))
    starts = torch.tensor([0, 30, 50], dtype=torch.int32)
    order = torch.randperm(50, generator=generator).to(torch.int32)
    got = flashinfer.mla_paged_decode(q, rope, cache, pe, starts, order, sm_scale=0.05)
    for b in range(2):
        own = order[starts[b] : starts[b + 1]].long()
        latent = cache[own, 0].double()
        scores = (q[b].double() @ latent.T + rope[b].double() @ pe[own, 0].double().T) * 0.05
        torch.testing.assert_close(got["output"][b].double(), scores.softmax(-1) @ latent, rtol=0, atol=3e-2)
        torch.testing.assert_close(got["lse"][b].double(), scores.logsumexp(-1) / math.log(2), rtol=0, atol=1e-3)
