# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Values in the place of others, as users of FlexAttention and of paged caches give them: the error says where they
belong, in the words of the call."""

import pytest
import torch
import weft
from torch.nn.attention.flex_attention import create_block_mask
from weft.attention import attend, decode

Q = torch.randn(1, 2, 32, 16)
STARTS = torch.tensor([0, 12, 32], dtype=torch.int32)
IDS = torch.zeros(32, dtype=torch.int32)


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def refused(call):
    with pytest.raises(weft.CompilationError) as caught:
        call()
    text = str(caught.value)
    assert "#attn" not in text and "attn." not in text, text
    return text


@pytest.mark.parametrize("given", [create_block_mask(causal, None, None, 32, 32, device="cpu"), weft.causal()])
@pytest.mark.parametrize("call", [weft.flex_attention, lambda q, k, v, mod: attend(q, k, v, score_mod=mod)])
def test_masks_are_no_score_mods(call, given):
    text = refused(lambda: call(Q, Q, Q, given))
    assert f"to be a function of (score, b, h, n, m), but got '{type(given).__name__}'" in text
    assert "'block_mask' of weft.flex_attention, 'pattern' elsewhere" in text


def test_tensors_are_no_score_mods():
    text = refused(lambda: weft.flex_attention(Q, Q, Q, torch.zeros(32, 32)))
    assert "lambda score, b, h, n, m: score + bias[b, h, n, m]" in text


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        (create_block_mask(causal, None, None, 32, 32, device="cpu"), "weft.flex_attention(q, k, v, block_mask=...)"),
        (causal, "weft.mask(f) makes one"),
        (weft.causal, "weft.causal(...) makes one: call it"),
        (torch.ones(32, 32, dtype=torch.bool), "attend(..., bias=mask) takes a bool tensor"),
        (3, "weft.causal(), weft.window(left, right), ... make patterns"),
    ],
)
def test_what_is_no_pattern(given, remedy):
    text = refused(lambda: attend(Q, Q, Q, given))
    assert f"expected a pattern, but got '{type(given).__name__}'" in text and remedy in text


@pytest.mark.parametrize("pattern", [weft.document(IDS, IDS), ~weft.document(IDS, IDS) & weft.causal()])
def test_documents_beside_starts(pattern):
    program = weft.program(lambda q, k, v, s: weft.softmax(q, k, pattern, cu_seqlens=s) @ v)
    for call in (
        lambda: attend(Q, Q, Q, pattern, cu_seqlens_q=STARTS, cu_seqlens_k=STARTS),
        lambda: program(Q, Q, Q, STARTS),
    ):
        text = refused(call)
        assert "expected cu_seqlens or weft.document, but got both" in text and "leave out cu_seqlens" in text


@pytest.mark.parametrize("pages", [(40, 16, 2, 16), (1, 16, 3, 16)], ids=["another batch", "other heads"])
def test_pages_without_their_table(pages):
    cache = torch.randn(*pages)
    text = refused(lambda: decode(Q[:, :, :1], cache, cache, seqused_k=torch.tensor([9], dtype=torch.int32)))
    assert f"but got {list(pages)} of fp32" in text and "are read by 'block_table' [B, most pages] of int32" in text


@pytest.mark.parametrize(
    "made",
    [
        lambda g, a, v: (g * a) @ v,
        lambda g, a, v: (g - a) @ v,
        lambda g, a, v: weft.exp(a) @ v,
        lambda g, a, v: weft.where(g > 0, a, 0) @ v,
    ],
    ids=["product", "difference", "exponential", "choice"],
)
def test_mixers_have_no_numbers(made):
    program = weft.program(lambda q, k, v, g: made(g, weft.softmax(q, k), v))
    text = refused(lambda: program(Q, Q, Q, Q[..., :1]))
    assert "but got a mixer, which has no numbers before it is applied" in text and "weft.diag(g) @ A" in text


def test_tensors_are_not_added_to_mixers():
    program = weft.program(lambda q, k, v: (weft.softmax(q, k) + v) @ v)
    text = refused(lambda: program(Q, Q, Q))
    assert "expected a mixer on the right of '+', but got [1, 2, 32, 16] of fp32" in text and "A @ v + x" in text


@pytest.mark.parametrize(
    ("name", "value", "here"),
    [
        ("is_causal", True, "pattern=weft.causal(), whose last query is at the last key,"),
        ("attn_mask", None, "bias, of numbers or of bool,"),
        ("window_size", (4, 0), "pattern=weft.window(left, right), None for no bound,"),
        ("softmax_scale", 0.1, "scale"),
    ],
)
def test_arguments_as_torch_and_flash_attention_call_them(name, value, here):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        attend(Q, Q, Q, **{name: value})
    assert str(caught.value).endswith(f"; '{name}' is {here} here")


@pytest.mark.parametrize(
    ("sizes", "said"),
    [((3, None), "for 1 batches or for 1, but got one for 3"), ((None, 4), "for 2 heads or for 1, but got one for 4")],
)
def test_block_masks_of_other_batches_and_heads(sizes, said):
    mask = create_block_mask(lambda b, h, i, j: i >= j + b + h, *sizes, 32, 32, device="cpu")
    text = refused(lambda: weft.flex_attention(Q, Q, Q, None, mask))
    assert f"expected 'block_mask' {said}" in text and "=None where it is the same for all" in text


@pytest.mark.parametrize("drawn", [lambda s: s + torch.rand(()), lambda s: torch.nn.functional.dropout(s, 0.5)])
def test_random_numbers_of_score_mods(drawn):
    """A number that torch draws while the function is traced would be the same for every pair, in silence."""
    text = refused(lambda: weft.flex_attention(Q, Q, Q, lambda s, b, h, n, m: drawn(s)))
    assert "expected no random numbers in a mask or a score_mod, but got 'torch." in text and "dropout_p" in text


def test_softmax_along_an_axis():
    text = refused(lambda: weft.softmax(Q, -1))
    assert "expected keys to be a tensor, but got 'int'" in text and "torch.softmax, outside of programs" in text


def test_gradients_of_pages():
    pages, table = torch.randn(4, 16, 2, 16, requires_grad=True), torch.arange(4, dtype=torch.int32)[None]
    lengths = torch.tensor([40], dtype=torch.int32)
    with pytest.raises(weft.CompilationError) as caught:
        decode(Q[:, :, :1], pages, pages, block_table=table, seqused_k=lengths)
    text = str(caught.value)
    assert "has no derivative" in text and "use .detach(), or run under torch.no_grad()" in text
