# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.integrations.transformers: tiny models of every family, on random weights, beside transformers' own eager
attention: logits, gradients of all parameters, and generation."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

import weft  # noqa: E402
from generation import decided  # noqa: E402
from transformers.masking_utils import and_masks, or_masks  # noqa: E402
from weft.integrations.transformers import PatternMask, attention_mask, register  # noqa: E402

pytestmark = pytest.mark.ecosystem
# The largest difference from eager that a logit or a gradient of a mean of logits has, over the largest of its tensor
# where that is above 1.
LIMIT = 1e-6
# And over the model's largest gradient, which says more of small ones: a few roundings of float32 in either.
SHARE = 3e-6

COMMON = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
GROUPED = {**COMMON, "num_key_value_heads": 2, "head_dim": 16}
WINDOW = {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"]}
# The configuration of each family, as its class takes it.
FAMILIES = {
    "Llama": GROUPED,
    "Mistral": {**GROUPED, "sliding_window": 7},
    "Gemma2": {**GROUPED, **WINDOW, "attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 16},
    "GptOss": {**GROUPED, **WINDOW, "num_local_experts": 2, "num_experts_per_tok": 1},
    "Qwen2": {name: value for name, value in GROUPED.items() if name != "head_dim"},
    "Qwen3": {**GROUPED, **WINDOW, "use_sliding_window": True},
    "DeepseekV3": {
        **COMMON, "num_key_value_heads": 4, "moe_intermediate_size": 16, "q_lora_rank": 24, "kv_lora_rank": 16,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "n_group": 1,
        "topk_group": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_shared_experts": 1,
    },
}  # fmt: skip
ENCODERS = {"Bert": COMMON}


@pytest.fixture(autouse=True, scope="module")
def registered():
    register()


def model_of(family, seed, kind="ForCausalLM", **more):
    """A model of a family with weights drawn at random, in eval mode."""
    torch.manual_seed(seed)
    config = getattr(transformers, f"{family}Config")(**{**{**FAMILIES, **ENCODERS}[family], **more})
    config._attn_implementation = "eager"
    return getattr(transformers, f"{family}{kind}")(config).eval()


def by(model, implementation):
    """The model with another attention."""
    model.set_attn_implementation(implementation)
    return model


def close(ours, wanted, what):
    """Within LIMIT of the largest number of what is wanted, or of 1."""
    error = float((ours - wanted).detach().abs().max() / wanted.detach().abs().max().clamp(min=1.0))
    assert error <= LIMIT, f"{what}: {error:.2e}"
    return error


def both(model, run):
    """What a run gives by Weft and by eager, with every parameter's gradient of its sum times fixed weights."""
    found = []
    for name in ("weft", "eager"):
        by(model, name).zero_grad()
        logits = run(model)
        weights = torch.linspace(-1, 1, logits.numel()).reshape(logits.shape)
        (logits * weights).sum().div(logits.numel()).backward()
        grads = {each: p.grad.clone() for each, p in model.named_parameters() if p.grad is not None}
        found.append((logits.detach(), grads))
    return found


def compared(model, run, record_property, name):
    (ours, grads), (wanted, exact) = both(model, run)
    assert grads.keys() == exact.keys() and len(grads) > 5
    worst = close(ours, wanted, "logits")
    worst_gradient = max(close(grads[each], exact[each], each) for each in exact)
    largest = max(float(each.abs().max()) for each in exact.values())
    share = max(float((grads[each] - exact[each]).abs().max()) for each in exact) / largest
    assert share <= SHARE
    print(f"{name}: logits {worst:.1e}, gradients {worst_gradient:.1e}, of the largest gradient {share:.1e}")
    record_property("transformers", [name, worst, worst_gradient, share])


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients(family, seed, record_property):
    model = model_of(family, seed)
    ids = torch.randint(1, 61, (2, 21))
    compared(model, lambda model: model(ids).logits, record_property, family)


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
def test_an_encoder(padded, seed, record_property):
    model = model_of("Bert", seed, "ForMaskedLM")
    ids = torch.randint(1, 61, (2, 21))
    seen = torch.ones_like(ids)
    if padded:
        seen[0, 15:] = 0
    compared(model, lambda model: model(ids, attention_mask=seen).logits[seen.bool()], record_property, "Bert")


SEQ2SEQ = {
    "vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
# What is not as those above, such as learnt position biases, crossed attention, images, chunks: configuration and kind.
OTHERS = {
    "T5": (
        {"vocab_size": 61, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2, "dropout_rate": 0.0}
        | {"decoder_start_token_id": 0},
        "ForConditionalGeneration",
    ),
    "Bart": (SEQ2SEQ, "ForConditionalGeneration"),
    "Whisper": ({**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 32}, "ForConditionalGeneration"),
    "ViT": (
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
        | {"image_size": 32, "patch_size": 8},
        "ForImageClassification",
    ),
    "Llama4": (
        {**GROUPED, "num_hidden_layers": 4, "intermediate_size_mlp": 48, "attention_chunk_size": 6}
        | {"num_local_experts": 2, "num_experts_per_tok": 1},
        "ForCausalLM",
    ),
    "Gemma3": ({**GROUPED, "sliding_window": 5}, "ForCausalLM"),
    "GPT2": (
        {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2},
        "LMHeadModel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("family", OTHERS)
def test_other_families(family, seed, record_property):
    config, kind = OTHERS[family]
    torch.manual_seed(seed)
    of_text = f"{family}TextConfig" if family in ("Llama4", "Gemma3") else f"{family}Config"
    config = getattr(transformers, of_text)(**config)
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}{kind}")(config).eval()
    ids = torch.randint(3, 61, (2, 17))
    seen = (torch.arange(17) < torch.tensor([[17], [11]])).long()
    pictures, sounds = torch.randn(2, 3, 32, 32), torch.randn(2, 8, 64)
    run = {
        "T5": lambda m: m(input_ids=ids, attention_mask=seen, decoder_input_ids=ids[:, :9]).logits,
        "Bart": lambda m: m(input_ids=ids, attention_mask=seen, decoder_input_ids=ids[:, :9]).logits,
        "Whisper": lambda m: m(sounds, decoder_input_ids=ids).logits,
        "ViT": lambda m: m(pictures).logits,
    }.get(family, lambda m: m(ids).logits)
    compared(model, run, record_property, family)


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Gemma2"])
def test_packed_sequences(family, seed, record_property):
    """position_ids that start again are sequences of their own, by causal and window masks."""
    model = model_of(family, seed)
    ids = torch.randint(1, 61, (1, 23))
    places = torch.cat([torch.arange(9), torch.arange(3), torch.arange(11)])[None]
    compared(model, lambda m: m(ids, position_ids=places, use_cache=False).logits, record_property, f"{family}, packed")
    packed = by(model, "weft")(ids, position_ids=places, use_cache=False).logits
    close(packed[:, 12:], model(ids[:, 12:], use_cache=False).logits, "the last sequence alone")


@pytest.mark.parametrize("family", ["Llama", "Mistral"])
def test_left_padding(family, seed, record_property):
    model = model_of(family, seed)
    ids = torch.randint(1, 61, (2, 15))
    seen = torch.ones_like(ids)
    seen[1, :6] = 0

    def run(model):
        return model(ids, attention_mask=seen).logits[seen.bool()]

    compared(model, run, record_property, f"{family}, padded")


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", FAMILIES)
def test_greedy_generation(family, cache, seed):
    model = model_of(family, seed)
    ids = torch.randint(1, 61, (2, 9))
    seen = torch.ones_like(ids)
    seen[1, :4] = 0
    ids = torch.where(seen.bool(), ids, 0)
    given = {"max_new_tokens": 12, "do_sample": False, "cache_implementation": cache, "disable_compile": True}
    given |= {"output_logits": True, "return_dict_in_generate": True}
    ours, wanted = (by(model, name).generate(ids, attention_mask=seen, **given) for name in ("weft", "eager"))
    steps = decided(wanted.logits)
    assert torch.equal(ours.sequences[:, : 9 + steps], wanted.sequences[:, : 9 + steps])
    for step, (logits, exact) in list(enumerate(zip(ours.logits, wanted.logits, strict=True)))[: steps + 1]:
        close(logits, exact, f"logits of step {step}")


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("family", ["Llama", "Gemma2"])
def test_chunks_of_a_prompt(family, cache, seed):
    """A prompt in three parts, each after what the cache holds: the cache moves on before attention runs."""
    model = model_of(family, seed)
    ids = torch.randint(1, 61, (2, 16))
    found = []
    for name in ("weft", "eager"):
        by(model, name)
        kept = (
            transformers.StaticCache(config=model.config, max_cache_len=24)
            if cache == "static"
            else transformers.DynamicCache(config=model.config)
        )
        parts = [model(part, past_key_values=kept).logits.detach() for part in ids.split([5, 7, 4], 1)]
        found.append(torch.cat(parts, 1))
    close(*found, "logits")


# ---- Masks -----------------------------------------------------------------------------------------------------------


def mask_of(function=None, n=8, m=8, q_offset=0, kv_offset=0, seen=None):
    given = {} if function is None else {"mask_function": function}
    return attention_mask(
        2, n, m, q_offset=q_offset, kv_offset=kv_offset, attention_mask=seen, dtype=torch.float32, **given
    )


def test_masks_of_formulas_are_patterns():
    from transformers.masking_utils import bidirectional_mask_function, sliding_window_causal_mask_function

    window = sliding_window_causal_mask_function(4)
    assert mask_of().pattern == weft.causal()
    assert mask_of(n=1, m=8, q_offset=7).pattern == weft.causal()
    assert mask_of(window, n=2, m=5, q_offset=9, kv_offset=6).pattern == weft.window(3, None) & weft.causal()
    assert mask_of(bidirectional_mask_function).pattern == weft.full()
    seen = torch.ones(2, 8, dtype=torch.bool)
    assert mask_of(seen=seen).pattern == weft.causal()
    assert isinstance(mask_of(), PatternMask) and mask_of().shape == (2, 1, 8, 8)


@pytest.mark.parametrize("implementation", ["weft"])
def test_what_masks_say(implementation, seed):
    """Every mask function of transformers, whatever the offsets: pair by pair what its own sdpa mask says."""
    from transformers import masking_utils as hf

    generator = torch.Generator().manual_seed(seed)
    left = torch.tensor([0, 3])
    blocks = torch.tensor([[-1, 0, 0, -1, 1, 1, 1, -1] + [2] * 12] * 2)
    seen = torch.rand(2, 20, generator=generator) < 0.8
    functions = {
        "causal": hf.causal_mask_function,
        "window": hf.sliding_window_causal_mask_function(4),
        "both sides": hf.sliding_window_bidirectional_mask_function(3),
        "chunks": hf.chunked_causal_mask_function(4, left),
        "blocks": or_masks(hf.causal_mask_function, hf.blockwise_overlay(blocks)),
        "mine": and_masks(hf.causal_mask_function, lambda b, h, q, kv: (q - kv) % 2 == 0),
    }
    for name, function in functions.items():
        for n, m, q_offset, kv_offset in ((8, 8, 0, 0), (3, 9, 6, 0), (2, 6, 9, 5), (4, 12, 2, 0), (1, 20, 5, 0)):
            for offset in (q_offset, torch.tensor(q_offset)):
                found = attention_mask(2, n, m, offset, kv_offset, function, seen)
                wanted = hf.sdpa_mask(2, n, m, q_offset, kv_offset, function, seen, allow_is_causal_skip=False)
                matrix = torch.from_numpy(found.pattern.matrix(n, m, batch=2).copy())
                assert torch.equal(matrix, wanted.expand(2, 1, n, m)), (name, n, m, q_offset, kv_offset)


def test_a_step_of_generation_is_compiled_once(seed, monkeypatch):
    from weft.programs import compiled

    made = []
    build = compiled._build
    monkeypatch.setattr(compiled, "_build", lambda traced, *more: made.append(traced.text) or build(traced, *more))
    model = by(model_of("Llama", seed, num_hidden_layers=1), "weft")
    for cache in ("dynamic", "static"):
        ids = torch.randint(1, 61, (1, 5))
        model.generate(ids, max_new_tokens=4, do_sample=False, cache_implementation=cache, disable_compile=True)
        del made[:]
        model.generate(ids, max_new_tokens=9, do_sample=False, cache_implementation=cache, disable_compile=True)
        assert made == []


def test_dropout(seed):
    """In training: by torch's generator, so that a seed repeats it, and another draw is another."""
    model = by(model_of("Llama", seed, attention_dropout=0.3), "weft")
    ids = torch.randint(1, 61, (2, 12))
    plain = model(ids).logits.detach()
    found = []
    for each in (1, 1, 2):
        torch.manual_seed(each)
        model.train().zero_grad()
        logits = model(ids).logits
        logits.square().sum().backward()
        found.append((logits.detach(), model.model.layers[0].self_attn.q_proj.weight.grad.clone()))
    for first, again, other in zip(*found, strict=True):
        assert torch.equal(first, again) and not torch.allclose(first, other)
        assert bool(first.isfinite().all())
    assert not torch.allclose(found[0][0], plain)
    q, k = torch.randn(2, 4, 5, 16), torch.randn(2, 2, 5, 16)
    attend = transformers.AttentionInterface._global_mapping["weft"]
    torch.manual_seed(seed)
    drawn = torch.randint(-(2**31), 2**31 - 1, (2,)).int()
    torch.manual_seed(seed)
    ours, _ = attend(model.model.layers[0].self_attn, q, k, k, mask_of(n=5, m=5), dropout=0.4)
    wanted = weft.attention.attend(q, k, k, weft.causal(), dropout_p=0.4, dropout_seed=drawn)
    assert torch.equal(ours, wanted.transpose(1, 2))


def test_refusals(seed):
    model = by(model_of("Llama", seed), "weft")
    layer = model.model.layers[0].self_attn
    q, k = torch.zeros(1, 4, 3, 16), torch.zeros(1, 2, 8, 16)
    attend = transformers.AttentionInterface._global_mapping["weft"]
    with pytest.raises(weft.CompilationError, match="does not say which pairs attend"):
        attend(layer, q, k, k, None)
    with pytest.raises(weft.CompilationError, match=r"expected a mask \[B, H, N, M\]"):
        attend(layer, q, k, k, torch.ones(1, 8))
    with pytest.raises(weft.CompilationError, match="without 'output_attentions'"):
        attend(layer, q, k, k, None, output_attentions=True)
    strange = attention_mask(1, 3, 8, 5, 0, lambda b, h, q, kv: torch.stack([q, kv]).sum() > 3)
    with pytest.raises(weft.CompilationError, match=r"got 'torch\.stack'"):
        attend(layer, q, k, k, strange)
    with pytest.raises(ValueError, match="expected a name"):
        register(3)
