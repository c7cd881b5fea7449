# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The families of transformers' that have an interface for attention and take ids or images: a small model of each by
Weft beside itself in eager attention.
"""

import re

import pytest
import torch

transformers = pytest.importorskip("transformers")

from tiny_models import inputs_of, model_of  # noqa: E402
from weft.integrations import transformers as integration  # noqa: E402

pytestmark = [pytest.mark.ecosystem, pytest.mark.slow]
# Over the largest number: some roundings of float32 in either of the two. Eager attention's own are up to 2e-5 here,
# beside float64.
LIMIT = 5e-5

NAMES = """
afmoe aimv2 aimv2_vision_model albert altclip apertus arcee aria aria_text audioflamingo3 axk1 axk2 aya_vision bamba
bart beam beit bert bert-generation bigbird_pegasus biogpt bitnet blenderbot blenderbot-small camembert chinese_clip
chinese_clip_vision_model clip clip_text_model clip_vision_model clipseg cohere cohere2 cohere2_moe cohere2_vision
cosmos3_omni ctrl cwm deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 deepseek_vl deepseek_vl_hybrid deit diffllama
dinov2 dinov2_with_registers dinov3_vit distilbert doge dpt electra embedding_gemma2 embedding_gemma2_text ernie
ernie4_5 ernie4_5_moe esm eurobert evolla exaone4 exaone4_5 exaone_moe flex_olmo flint fuyu gemma gemma2 gemma3
gemma3_text gemma3n_text gemma4 gemma4_text gemma4_unified gemma4_unified_text glm glm4 glm4_moe glm4_moe_lite
glm_moe_dsa glmasr got_ocr2 gpt2 gpt_bigcode gpt_neox gpt_oss granite granite_docling granite_docling_text
granite_speech granite_speech_plus granite_swa granitemoe granitemoe_swa granitemoeshared gte helium higgs_audio_v2
hrm_text hubert hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 hyperclovax hyperclovax_vision_v2 idefics2 idefics3 ijepa
inkling_mm_model inkling_text internvl internvl_vision jais2 jamba jetmoe jina_embeddings_v3 kimi_k25 kolibri1
kosmos-2.5 laguna layoutlm lfm2 lfm2_vl lfm3 lfm3_vl lighton_ocr llama llama4_text llava llava_next llava_next_video
llava_onevision longt5 m2m_100 marian markuplm mbart mellum metaclip_2 mimo_v2_flash minicpm3 minimax minimax_m2
minimax_m3_vl minimax_m3_vl_text ministral ministral3 mistral mistral3 mistral_large4 mistral_large4_text mixtral mlcd
mlcd_vision_model mllama modernbert modernbert-decoder modernvbert molmo2_text moshi moss_transcribe_diarize mt5
muse_glimmer muse_glimmer_text muse_spark_text musicflamingo nanochat nemotron_h neomme nllb-moe nomic_bert olmo olmo2
olmo3 olmoe openai_privacy_filter opt ovis2 owlv2 paligemma pegasus pegasus_x persimmon phi phi3 phi4_multimodal
phimoe pixio pixtral plbart qianfan_ocr qianfan_ocr_vision qwen2 qwen2_audio qwen2_moe qwen3 qwen3_asr qwen3_moe
qwen3_vl qwen3_vl_moe qwen3_vl_moe_text qwen3_vl_text radio roberta roberta-prelayernorm roc_bert sam3_vit_model
sapiens2 seamless_m4t seamless_m4t_v2 seed_oss segformer sew siglip siglip_vision_model smollm3 smolvlm solar_open
splinter stablelm starcoder2 swin switch_transformers t5 t5gemma t5gemma2 tipsv2 tipsv2_text_model tipsv2_vision_model
ultrabert ultravbert umt5 unispeech vaultgemma video_llama_3 video_llava vipllava vit vit_msn voxtral wav2vec2
wav2vec2-conformer whisper xlm-roberta xlm-roberta-xl youtu zamba2
"""
FAMILIES = re.findall(r"\S+", NAMES)


class Counted:
    """Weft's attention, and how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, *given, **more):
        self.calls += 1
        return integration.attention(*given, **more)


@pytest.fixture
def counted():
    integration.register()
    made = Counted()
    transformers.AttentionInterface.register("weft", made)
    yield made
    integration.register()


def numbers(out, seen):
    """The first result that has gradients, without what was computed of padding."""
    found = next(each for each in out.to_tuple() if isinstance(each, torch.Tensor) and each.requires_grad)
    return found[seen.bool()] if seen is not None and found.shape[:2] == seen.shape else found


def error(ours, wanted):
    return float((ours - wanted).abs().max() / wanted.abs().max().clamp(min=1e-3))


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family, seed, counted):
    """The result and gradients of all parameters; and ids that are generated, where the model does."""
    model = model_of(family, seed)
    given = inputs_of(model, torch.Generator().manual_seed(seed))
    found = []
    for name in ("eager", "weft"):
        model.set_attn_implementation(name)
        model.zero_grad()
        out = numbers(model(**given), given.get("attention_mask"))
        (out * torch.linspace(-1, 1, out.numel()).reshape(out.shape)).sum().backward()
        grads = {each: p.grad.clone() for each, p in model.named_parameters() if p.grad is not None}
        found.append((out.detach(), grads))
    (wanted, exact), (ours, grads) = found
    assert counted.calls > 0 and grads.keys() == exact.keys()
    exact = {name: each for name, each in exact.items() if each.numel()}
    largest = max(float(each.abs().max()) for each in exact.values())
    worst = max(float((grads[each] - exact[each]).abs().max()) for each in exact) / largest
    print(f"{family}: {error(ours, wanted):.1e}, gradients {worst:.1e}")
    assert max(error(ours, wanted), worst) <= LIMIT
