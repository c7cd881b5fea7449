# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Models of transformers' families made small: a configuration of any class, weights of which scores count, and inputs.

Sizes are set by the names that configurations have for them, so that a family takes no entry here unless its sizes have
to agree in a way of its own.
"""

import importlib
import re

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING, model_type_to_module_name

WORDS = 99
# Sizes by the whole name of a configuration's field; the first that matches counts.
SIZES = {
    r"(num_|n_)?(hidden_|encoder_|decoder_)?layers?|(num_|n_)(hidden_|encoder_|decoder_)?layers?|depth|num_blocks": 2,
    r".*(num_|n_)(key_value|kv)_heads|num_kv_heads": 2,
    r"n_heads?|num_heads|.*attention_heads": 4,
    r"hidden_size|d_model|embed_dim|n_embd|dim|embedding_size|encoder_hidden_size|hidden_dim|word_embed_proj_dim"
    r"|output_dim|out_hidden_size|projection_dim|decoder_hidden_size|vision_output_dim|pred_hidden_size": 64,
    r".*(intermediate_size|ffn_dim|d_ff|ffn_hidden_size|n_inner|inner_dim|intermediate_dim|mlp_dim)(_mlp)?": 48,
    r"qk_nope_head_dim|d_kv|kv_channels|.*head_dim": 16,
    r"vocab_size.*|.*_vocab_size": WORDS,
    r"max_position_embeddings|n_positions|max_(target|source)_positions|n_ctx": 128,
    r"image_size|input_size": 32,
    r"patch_size": 8,
    r"(num_|n_)(local_|routed_)?experts|moe_num_experts": 4,
    r"num_experts_per_tok(en)?|moe_topk|moe_k|top_k_experts|moe_top_k|index_n_heads": 2,
    r"q_lora_rank": 24,
    r"kv_lora_rank|mamba_d_state|state_size|ssm_state_size|linear_(key|value)_head_dim|num_mel_bins": 16,
    r"n_shared_experts|n_group|topk_group|first_k_dense_replace|mamba_n_groups|n_groups|max_window_layers": 1,
    r"sliding_window(_size)?|attention_window|local_attention|window_size|attention_chunk_size|chunk_size": 8,
    r"mamba_n_heads|mamba_num_heads|linear_num_value_heads": 4,
    r"mamba_d_head|mamba_head_dim": 32,
    r"linear_num_key_heads": 2,
    r"index_topk": 6,
    r"rotary_dim|num_queries|num_query_tokens": 8,
    r".*dropout.*|.*layerdrop|.*_pdrop|drop_path_rate": 0.0,
}
KINDS = ("SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MASKED_LM", "CAUSAL_LM")


def config_of(cls):
    """A small configuration of a class, those inside of it small too."""
    whole = vars(cls())
    given = {"pad_token_id": 0} if "pad_token_id" in whole else {}
    for name, value in whole.items():
        if isinstance(value, transformers.PretrainedConfig):
            given[name] = config_of(type(value)).to_dict()
        elif isinstance(value, int | float) and not isinstance(value, bool) and not name.startswith("_"):
            size = next((size for each, size in SIZES.items() if re.fullmatch(each, name)), None)
            if size is not None and value > 0:
                given[name] = size
            elif name.endswith(("_token_id", "_token_index")) and value >= WORDS:
                given[name] = WORDS - 2
    given |= _layers(whole) | _agreeing(whole)
    return cls(**given)


def _layers(whole):
    """Two layers, or one of each kind where there are more kinds."""
    kinds = {}
    for name in ("layer_types", "layers_block_type", "mlp_layer_types"):
        if isinstance(whole.get(name), list):
            kinds[name] = list(dict.fromkeys(whole[name]))
    count = max([2, *map(len, kinds.values())])
    names = [each for each in ("num_hidden_layers", "num_layers", "n_layer") if each in whole]
    return {name: (each * count)[:count] for name, each in kinds.items()} | dict.fromkeys(names, count)


def _agreeing(whole):
    """Sizes that have to agree with others."""
    given = {}
    if "kv_lora_rank" in whole and "num_key_value_heads" in whole:
        given["num_key_value_heads"] = 4
    if whole.get("head_dim", 0) is None:
        given["head_dim"] = 16
    if "num_kv_shared_layers" in whole:
        given["num_kv_shared_layers"] = 0
    if whole.get("vocab_size", 0) is None:
        given["vocab_size"] = WORDS
    if whole.get("num_experts_per_tok", 0) is None:
        given |= {"num_experts_per_tok": 2, "n_routed_experts": 4}
    if isinstance(whole.get("depths"), list | tuple) and isinstance(whole.get("num_heads"), list | tuple):
        given |= {"depths": [2, 2], "num_heads": [2, 4], "embed_dim": 32, "window_size": 4, "patch_size": 2}
        given["num_layers"] = 2
    if "attn_layer_indices" in whole:
        given["attn_layer_indices"] = [1]
    if "attn_layer_period" in whole:
        given |= {"attn_layer_period": 2, "attn_layer_offset": 1}
    return given


def class_of(family):
    """The class of a family's models that has most of it: a language model, or else the model itself."""
    tables = [f"MODEL_FOR_{kind}_MAPPING_NAMES" for kind in KINDS] + ["MODEL_MAPPING_NAMES"]
    found = next(filter(None, (getattr(modeling_auto, table).get(family) for table in tables)))
    place = model_type_to_module_name(family)
    module = importlib.import_module(f"transformers.models.{place}.modeling_{place}")
    return getattr(module, found if isinstance(found, str) else found[0])


def model_of(family, seed):
    """A small model of a family, in eager attention and eval mode."""
    torch.manual_seed(seed)
    config = config_of(CONFIG_MAPPING[family])
    config._attn_implementation = "eager"
    return spread(class_of(family)(config)).eval()


def spread(model):
    """The model with weights of which scores, masks and positions count, as those of a trained one do."""
    layers = (torch.nn.Linear, torch.nn.Conv2d, torch.nn.Embedding)
    with torch.no_grad():
        for each in model.modules():
            if isinstance(each, layers):
                embeds = isinstance(each, torch.nn.Embedding)
                each.weight.normal_(0, 0.7 if embeds else each.weight[0].numel() ** -0.5)
        for name, each in model.named_parameters():
            if re.search(r"sink|relative|bias_table|pos_embed|cls_token|latents", name):
                each.normal_(0, 0.5)
            elif ".experts." in name:
                each.normal_(0, each.shape[-1] ** -0.5)
    return model


def inputs_of(model, generator):
    """Ids padded on the left, an image, a decoder's ids: what the model takes."""
    ids = torch.randint(3, 90, (2, 17), generator=generator)
    if model.main_input_name == "pixel_values" and not hasattr(model.config, "text_config"):
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    if model.main_input_name == "input_values":
        return {"input_values": torch.randn(2, 4000, generator=generator)}
    seen = torch.ones_like(ids)
    seen[1, :5] = 0
    given = {"input_ids": ids * seen, "attention_mask": seen}
    if hasattr(model, "get_text_features"):  # of the token that ends the text
        given["input_ids"][:, -1] = WORDS - 2
        given["pixel_values"] = torch.randn(2, 3, 32, 32, generator=generator)
    return given | ({"decoder_input_ids": ids[:, :9]} if model.config.is_encoder_decoder else {})
