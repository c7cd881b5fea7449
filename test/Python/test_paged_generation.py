# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Hugging Face's models generate over a cache in pages what they generate by eager attention."""

import pytest
import torch

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


def test_padding_is_refused(seed):
    model = model_of("Llama", seed)
    cache = PagedCache(model.config, batch=2, tokens=16)
    model.set_attn_implementation("weft_paged")
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]])
    with pytest.raises(ValueError, match="without padding"):
        model.generate(torch.ones(2, 3, dtype=torch.long), attention_mask=mask, past_key_values=cache, max_new_tokens=2)


def test_more_than_there_is_room_for(seed):
    model = model_of("Llama", seed)
    cache = PagedCache(model.config, batch=1, tokens=4)
    model.set_attn_implementation("weft_paged")
    with pytest.raises(ValueError, match="at most 4 tokens of 1 sequences"):
        model.generate(torch.ones(1, 3, dtype=torch.long), past_key_values=cache, max_new_tokens=4)
