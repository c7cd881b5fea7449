# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Hugging Face's models generate over a cache in pages what they generate by eager attention."""

import pytest
import torch
import weft

transformers = pytest.importorskip("transformers")

from generation import decided  # noqa: E402
from test_transformers import model_of  # noqa: E402
from weft.serving.transformers import PagedCache  # noqa: E402

pytestmark = pytest.mark.ecosystem


@pytest.mark.parametrize("family", ["Llama", "Mistral"])
def test_generation(family, seed):
    model = model_of(family, seed)
    ids = torch.randint(2, 61, (2, 5))
    options = {"do_sample": False, "max_new_tokens": 64 if family == "Llama" else 16}
    told = model.generate(ids, **options, output_logits=True, return_dict_in_generate=True)
    expected = told.sequences[:, : ids.shape[1] + decided(told.logits)]
    cache = PagedCache(model.config, batch=2, tokens=80, page=8)
    model.set_attn_implementation("weft_paged")
    found = model.generate(ids, past_key_values=cache, **options)
    assert torch.equal(found[:, : expected.shape[1]], expected)
    assert cache.get_seq_length() == 5 + options["max_new_tokens"] - 1


def test_beams(seed):
    """Sequences that go on as others did take what those have in their pages."""
    model = model_of("Llama", seed)
    ids = torch.randint(2, 61, (2, 5))
    options = {"do_sample": False, "num_beams": 3, "max_new_tokens": 12, "pad_token_id": 0}
    expected = model.generate(ids, **options)
    cache = PagedCache(model.config, batch=6, tokens=20, page=4)
    model.set_attn_implementation("weft_paged")
    assert torch.equal(model.generate(ids, past_key_values=cache, **options), expected)


def test_guesses(seed):
    """Tokens that were guessed and refused are forgotten again."""
    model = model_of("Llama", seed)
    ids = torch.randint(2, 61, (1, 5)).repeat(1, 3)
    options = {"do_sample": False, "prompt_lookup_num_tokens": 3, "max_new_tokens": 12}
    expected = model.generate(ids, **options)
    cache = PagedCache(model.config, batch=1, tokens=40, page=4)
    model.set_attn_implementation("weft_paged")
    assert torch.equal(model.generate(ids, past_key_values=cache, **options), expected)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"position_bias": torch.zeros(1)}, "position_bias"),
        ({"sinks": torch.zeros(1)}, "sinks"),
        ({"indices": torch.zeros(1)}, "indices"),
        ({"block_indices": torch.zeros(1)}, "block_indices"),
        ({"is_causal": False}, "is_causal=False"),
    ],
)
def test_what_would_change_a_result_is_refused(more, message, seed):
    model = model_of("Llama", seed)
    cache = PagedCache(model.config, batch=1, tokens=4)
    new = torch.randn(1, 2, 1, 8)
    cache.update(new, new, 0)
    with pytest.raises((ValueError, weft.CompilationError), match=message):
        cache.attention(model.model.layers[0].self_attn, torch.randn(1, 4, 1, 8), new, new, None, **more)


def test_padding_is_refused(seed):
    model = model_of("Llama", seed)
    cache = PagedCache(model.config, batch=2, tokens=16)
    model.set_attn_implementation("weft_paged")
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    with pytest.raises(ValueError, match="without padding"):
        model.generate(torch.ones(2, 3, dtype=torch.long), attention_mask=mask, past_key_values=cache, max_new_tokens=2)


def test_caches_of_latents_are_refused(seed):
    """DeepSeek V3 caches what keys and values are made of, here of the sizes that keys and values have."""
    sizes = {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "kv_lora_rank": 24, "v_head_dim": 8}
    model = model_of("DeepseekV3", seed, **sizes)
    cache = PagedCache(model.config, batch=1, tokens=20)
    model.set_attn_implementation("weft_paged")
    with pytest.raises(ValueError, match="attends to the keys that it caches, of 1 heads of 24, but got 4 heads of 24"):
        model.generate(torch.randint(2, 61, (1, 5)), past_key_values=cache, max_new_tokens=4, do_sample=False)


def test_more_than_there_is_room_for(seed):
    model = model_of("Llama", seed)
    cache = PagedCache(model.config, batch=1, tokens=4)
    model.set_attn_implementation("weft_paged")
    with pytest.raises(ValueError, match="at most 4 tokens of 1 sequences"):
        model.generate(torch.ones(1, 3, dtype=torch.long), past_key_values=cache, max_new_tokens=4)
