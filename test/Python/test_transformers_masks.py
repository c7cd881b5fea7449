# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.integrations.transformers: models that compute with their mask, drop it, or say beside it who attends."""

import ast
import pathlib

import pytest
import torch

transformers = pytest.importorskip("transformers")

import weft  # noqa: E402
from test_transformers import both, by, mask_of  # noqa: E402
from transformers.masking_utils import bidirectional_mask_function  # noqa: E402
from weft.integrations.transformers import PatternMask, attention, attention_mask, register  # noqa: E402

pytestmark = pytest.mark.ecosystem
# Over the largest logit, and the largest gradient: some roundings of float32 in either.
LIMIT = 5e-6

SIZES = {
    "vocab_size": 61, "hidden_size": 64, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
DECODER = {**SIZES, "num_key_value_heads": 2, "head_dim": 16}
EXPERTS = {"moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 2}
CHOSEN = {"index_topk": 6, "index_n_heads": 2, "index_head_dim": 16}
# Class of the model, its configuration, and what its attention does with the mask.
MODELS = {
    "looks for BlockMasks": ("Doge", "ForCausalLM", DECODER),
    "joins masks": ("T5Gemma2", "ForConditionalGeneration", {}),
    "chooses keys": (
        "DeepseekV32", "ForCausalLM",
        {**SIZES, **EXPERTS, **CHOSEN, "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 16}
        | {"qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 24, "n_group": 1, "topk_group": 1},
    ),
    "chooses blocks of keys": (
        "MiniMaxM3VL", "ForCausalLM",
        {**DECODER, "num_local_experts": 4, "num_experts_per_tok": 2, "dense_intermediate_size": 48}
        | {"shared_intermediate_size": 48, "rotary_dim": 8, "index_n_heads": 2, "index_head_dim": 16}
        | {"index_block_size": 3, "index_topk_blocks": 2, "layer_types": ["full_attention", "minimax_m3_sparse"]},
    ),
    "has sinks of each query": (
        "Inkling2", "ForCausalLM",
        {**DECODER, **EXPERTS, "unpadded_vocab_size": 61, "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2}
        | {"swa_head_dim": 16, "sliding_window_size": 8, "layer_types": ["hybrid_sliding", "hybrid"]},
    ),
    "adds keys to the mask's": (
        "DeepseekV4", "ForCausalLM",
        {**DECODER, **EXPERTS, **CHOSEN, "q_lora_rank": 24, "sliding_window": 8, "qk_rope_head_dim": 16}
        | {"layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"]}
        | {"mlp_layer_types": ["hash_moe", "moe"]},
    ),
    "adds masks to scores": (
        "BigBirdPegasus", "ForConditionalGeneration",
        {"vocab_size": 61, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
        | {"decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64}
        | {"attention_type": "original_full"},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def registered():
    register()


def spread(model):
    """The model with weights of which scores, masks and positions count."""
    with torch.no_grad():
        for name, each in model.named_parameters():
            if each.ndim > 1:
                each.copy_(torch.randn(each.shape) * (0.7 if "embed" in name else each[0].numel() ** -0.5))
            elif "sink" in name:
                each.copy_(torch.randn(each.shape))
    return model.eval()


def model_of(family, kind, given):
    config = {
        "MiniMaxM3VL": "MiniMaxM3VLTextConfig", "Inkling2": "Inkling2TextConfig",
    }.get(family, f"{family}Config")  # fmt: skip
    if family == "T5Gemma2":
        text = {**DECODER, "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]}
        vision = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
        vision |= {"image_size": 32, "patch_size": 8}
        given = {"encoder": {"text_config": text, "vision_config": vision}, "decoder": text, "vocab_size": 61}
    config = getattr(transformers, config)(**given)
    config._attn_implementation = "eager"
    where = __import__(f"transformers.models.{config.model_type.removesuffix('_text')}", fromlist=["x"])
    return spread(getattr(where, f"{family}{kind}")(config))


@pytest.mark.parametrize("padded", ["left", "right", None])
@pytest.mark.parametrize("kind", MODELS)
def test_models(kind, padded, seed):
    """Logits, and gradients of all parameters, beside eager attention."""
    if kind == "chooses blocks of keys" and padded == "left":
        pytest.skip("its indexer chooses among padding too, whose states are 0 here and means of values in eager")
    torch.manual_seed(seed)
    model = model_of(*MODELS[kind])
    ids = torch.randint(3, 61, (2, 17))
    seen = torch.ones_like(ids)
    if padded:
        seen[1, slice(5) if padded == "left" else slice(11, None)] = 0
    given = {"input_ids": ids, "attention_mask": seen}
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = ids[:, :9]

    def run(model):
        logits = model(**given).logits
        return logits if model.config.is_encoder_decoder else logits[seen.bool()]

    (ours, grads), (wanted, exact) = both(model, run)
    largest = max(float(each.abs().max()) for each in exact.values())
    worst = max(float((grads[each] - exact[each]).abs().max()) for each in exact) / largest
    error = float((ours - wanted).abs().max() / wanted.abs().max())
    print(f"{kind}, {padded}: logits {error:.1e}, gradients {worst:.1e}")
    assert max(error, worst) <= LIMIT


def test_no_mask_where_there_is_eager_attention_alone(seed):
    """BridgeTower's layers of images say is_causal and have no mask: eager attention, all that it has, sees all."""
    from transformers.models.bridgetower.modeling_bridgetower import BridgeTowerSelfAttention

    torch.manual_seed(seed)
    config = transformers.RobertaConfig(hidden_size=32, num_attention_heads=2)
    layer = BridgeTowerSelfAttention(config, is_causal=True)
    q, k, v = torch.randn(3, 2, 2, 9, 16)
    ours, _ = attention(layer, q, k, v, None)
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(ours.double(), wanted.transpose(1, 2), rtol=0, atol=2e-6)


def test_models_that_call_no_attention_are_told(seed):
    """CodeGen takes any attention's name, and computes its own: as ever, but not without a word."""
    from weft.integrations import transformers_masks

    sizes = {"vocab_size": 61, "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 32, "n_ctx": 32, "rotary_dim": 4}
    torch.manual_seed(seed)
    model = spread(transformers.CodeGenForCausalLM(transformers.CodeGenConfig(**sizes)))
    ids = torch.randint(3, 61, (1, 9))
    wanted = model(ids).logits
    transformers_masks._FOUND.clear()
    model.config._attn_implementation = "weft"
    with pytest.warns(UserWarning, match="'codegen' computes its own by no interface"):
        ours = model(ids).logits
    assert torch.equal(ours, wanted)


def test_masks_of_other_lengths(seed):
    """A mask of more keys is cut, as eager attention does; one of fewer, or of other queries, is refused, but where
    every pair attends: eager attention has no mask then."""
    torch.manual_seed(seed)
    q, k = torch.randn(2, 2, 5, 16), torch.randn(2, 2, 8, 16)
    layer = torch.nn.Identity()
    whole = mask_of(n=5, m=11, q_offset=4)
    ours, _ = attention(layer, q, k, k, whole)
    wide = whole.numbers()[..., :8]
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), k.double(), wide)
    torch.testing.assert_close(ours.double(), wanted.transpose(1, 2), rtol=0, atol=2e-6)
    every = mask_of(bidirectional_mask_function, n=5, m=5, seen=torch.ones(2, 5, dtype=torch.bool))
    ours, _ = attention(layer, q, k, k, every)
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), k.double())
    torch.testing.assert_close(ours.double(), wanted.transpose(1, 2), rtol=0, atol=2e-6)
    for n, m in ((5, 6), (4, 8)):
        with pytest.raises(weft.CompilationError, match=r"expected 'bias' \[2, 2, 5, 8\]"):
            attention(layer, q, k, k, mask_of(n=n, m=m))


def test_what_models_compute_with_masks():
    seen = torch.tensor([[True] * 8, [False] * 3 + [True] * 5])
    made = mask_of(seen=seen)
    wanted = (torch.ones(8, 8).tril().bool() & seen[:, None]).unsqueeze(1)
    lowest = torch.finfo(torch.float32).min
    scores = torch.randn(2, 3, 8, 8)
    added = scores + torch.zeros(2, 1, 8, 8).masked_fill(~wanted, lowest)
    other = torch.rand(2, 1, 8, 8) < 0.5
    assert made.dtype == torch.bool and made.ndim == made.dim() == 4 and made.size(3) == 8 and made.size() == made.shape
    assert made.to("cpu") is made.to(torch.bool) is made.contiguous() is made
    for ours, exact in (
        (made & other, wanted & other), (other & made, wanted & other), (other | made, wanted | other),
        (~made, ~wanted), (torch.cat([made, other], -1), torch.cat([wanted, other], -1)),
        (torch.where(made, 0.0, lowest), torch.where(wanted, 0.0, lowest)),
        (scores.masked_fill(made, 0.0), scores.masked_fill(wanted, 0.0)),
        (made.expand(-1, 3, -1, -1), wanted.expand(-1, 3, -1, -1)), (scores + made, added), (made + scores, added),
        (scores[:, :, 2:5, :6] + made[:, :, 2:5, :6], added[:, :, 2:5, :6]),
        (made[:, 0].numbers(), wanted[:, 0]),
    ):  # fmt: skip
        assert torch.equal(ours, exact)
    for doubtful in (
        lambda: made == 0, lambda: made.float(), lambda: made.to(torch.float32), lambda: scores * made,
        lambda: made[:, :, :4].float(), lambda: torch.eq(made, 0),
    ):  # fmt: skip
        with pytest.raises(weft.CompilationError, match="than of 0 and the lowest number"):
            doubtful()
    with pytest.raises(AttributeError, match="no attribute 'kv_num_blocks'"):
        made.kv_num_blocks  # noqa: B018


def test_parts_of_masks_are_masks(seed):
    """Gemma 4 hands the last rows of its mask to the last layers."""
    torch.manual_seed(seed)
    q, k = torch.randn(2, 2, 3, 16), torch.randn(2, 2, 8, 16)
    part = mask_of(seen=torch.tensor([[True] * 8, [False] * 3 + [True] * 5]))[:, :, -3:, :]
    assert isinstance(part, PatternMask) and part.pattern is None
    ours, _ = attention(torch.nn.Identity(), q, k, k, part)
    wanted = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), k.double(), part.numbers())
    torch.testing.assert_close(ours.double(), wanted.transpose(1, 2), rtol=0, atol=2e-6)


def test_a_static_cache_that_moved_on():
    """The numbers of a mask are of the offset that it was made for, though the cache adds to its own in place."""
    offset = torch.tensor(4)
    made = attention_mask(1, 2, 8, q_offset=offset)
    offset += 2
    assert torch.equal(made.numbers()[0, 0].sum(-1), torch.tensor([5, 6]))


@pytest.mark.parametrize("packed", [True, False])
def test_masks_of_compiled_models(packed, seed):
    """Padding, and sequences that position_ids pack, of each call, though the model is compiled once."""
    torch.manual_seed(seed)
    torch._dynamo.reset()
    sizes = {**DECODER, "num_hidden_layers": 1, "attn_implementation": "weft"}
    model = spread(transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)))
    compiled = torch.compile(model, backend="aot_eager")
    ids = torch.randint(3, 61, (2, 12))
    for first in (4, 7, 2):
        seen = torch.ones_like(ids)
        given = {"attention_mask": seen, "use_cache": False}
        if packed:
            given["position_ids"] = torch.cat([torch.arange(first), torch.arange(12 - first)])[None].expand(2, -1)
            given.pop("attention_mask")
        else:
            seen[1, :first] = 0
        ours = by(model, "weft") and compiled(ids, **given).logits
        wanted = by(model, "eager")(ids, **given).logits
        torch.testing.assert_close(ours[seen.bool()], wanted[seen.bool()], rtol=0, atol=1e-4)


def test_steps_of_compiled_models(seed):
    """Each step's mask is at its own place in a static cache, of window and whole, though the model is compiled."""
    torch.manual_seed(seed)
    torch._dynamo.reset()
    sizes = {**DECODER, "sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]}
    model = spread(transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**sizes)))
    ids = torch.randint(3, 61, (2, 16))

    def steps(name, forward):
        by(model, name)
        kept = transformers.StaticCache(config=model.config, max_cache_len=20)
        found = [model(ids[:, :9], past_key_values=kept).logits[:, -1]]
        return torch.stack(
            found + [forward(each, past_key_values=kept).logits[:, 0] for each in ids[:, 9:].split(1, 1)]
        )

    with torch.no_grad():
        wanted = steps("eager", model)
        ours = steps("weft", torch.compile(model, backend="aot_eager"))
    torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-4)


# ---- What models hand to their attention -----------------------------------------------------------------------------

# What says how long sequences are that a mask or the batch says too, or that only shapes what is computed otherwise.
HARMLESS = {
    "position_ids", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "deterministic",
    "module", "query", "key", "value",
}  # fmt: skip
REFUSED = {"output_attentions"}


def test_every_argument_of_attention_is_known():
    """What transformers' models hand to their attention by name, and what their eager attention takes."""
    import inspect

    known = HARMLESS | REFUSED | set(inspect.signature(attention).parameters)
    models = pathlib.Path(transformers.__file__).parent / "models"
    seen = {}
    for path in sorted(models.glob("*/modeling_*.py")):
        text = path.read_text()
        if "eager_attention_forward" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "attention_interface":
                names = [each.arg for each in node.keywords if each.arg]
            elif isinstance(node, ast.FunctionDef) and node.name == "eager_attention_forward":
                names = [each.arg for each in (*node.args.args, *node.args.kwonlyargs)]
            else:
                continue
            for each in names:
                seen.setdefault(each, path.name)
    assert len(seen) > 12
    assert {name: where for name, where in seen.items() if name not in known} == {}
