# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention over ranks that share a sequence: processes of this machine that talk by gloo, held against one process in
float64; what they send, counted."""

import math

import pytest
import ring_support
import torch
import weft
from ring_support import CASES, on_ranks
from weft import distributed

#: of the largest number, or of 1: in float32, and in bfloat16
LIMIT, COARSE = 2e-6, 3e-2


def judged(ranks, names, seed, folder):
    found = on_ranks(ranks, ring_support.computed, names, seed, folder=folder)
    for name in names:
        case, layout = CASES[name], CASES[name].held(ranks)
        given = case.tensors(seed)
        wanted = ring_support.reference(case, given, case.matrix())
        limit = LIMIT if case.dtype == torch.float32 else COARSE
        for key in ("out", "lse", "q", "k", "v"):
            parts = [each[name][key] for each in found]
            whole = [layout.unshard(x) for x in (zip(*parts, strict=True) if isinstance(parts[0], list) else [parts])]
            for x, y in zip(whole, wanted[key] if isinstance(wanted[key], list) else [wanted[key]], strict=True):
                assert x.dtype == (torch.float32 if key == "lse" else case.dtype)
                finite = y.isfinite()
                difference = (x.double() - y)[finite].abs().max() / max(1.0, y[finite].abs().max())
                assert x.isfinite().eq(y.isfinite()).all(), (name, key)
                assert difference <= limit, (name, key, difference)
        for key in ("sink", "table"):
            if given[key] is not None:
                share = sum(each[name][key][0].double() for each in found)
                scale = max(1.0, wanted[key][0].abs().max())
                if key == "sink":  # its terms cancel: each brings its own rounding, and the sum may be near 0
                    scale = max(scale, wanted["sink's terms"].max())
                difference = (share - wanted[key][0]).abs().max() / scale
                assert difference <= limit, (name, key, difference, scale)
        assert all(each[name]["same"] for each in found), f"{name}: bits differ from run to run"
        texts = {text for each in found for text in each[name]["texts"]}
        # one for each domain's pattern; a second one where merged outputs are of another type
        forms = case.domains * (1 if case.dtype == torch.float32 else 2)
        assert len(texts) == forms, f"{name}: {len(texts)} forms"
    return found


def test_three_ranks_are_as_one(seed, tmp_path):
    judged(3, list(CASES), seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_ranks_are_as_one(ranks, seed, tmp_path):
    judged(ranks, list(CASES), seed, tmp_path)


def refusals(rank):
    """What calls that cannot be made say here, and that the group works afterwards."""
    said = {}
    q = torch.zeros(1, 2, 4, 8)

    def refused(name, *arguments, **keywords):
        try:
            distributed.attend(*arguments, **keywords)
            said[name] = "nothing"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"

    def raises(score, b, h, n, m):
        return {}["absent"] if rank else score

    refused("shapes", *[torch.zeros(1, 2, 4 + 4 * rank, 8)] * 3)
    refused("types", *[q.half() if rank else q] * 3)
    refused("patterns", q, q, q, weft.causal() if rank else weft.full())
    same = torch.zeros(8, dtype=torch.int32)
    refused("ids of others", q, q, q, weft.document(torch.arange(8, dtype=torch.int32) if rank else same, same))
    refused("one rank", q, q, q.double() if rank else q)
    refused("rotate", q, q, q, rotate="round")
    refused("odd", *[torch.zeros(1, 2, 3, 8)] * 3, layout="head-tail")
    refused("layout", q, q, q, layout=distributed.layout("consecutive", 3))
    refused("ids", q, q, q, weft.document(torch.zeros(4, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)))
    refused("heads", torch.zeros(1, 3, 4, 8), q, q)
    refused("starts", q, q, q, cu_seqlens=torch.tensor([0, 4], dtype=torch.int32))
    refused("packed grid", q, q, q, weft.neighbourhood(8, 3), cu_seqlens=torch.tensor([0, 8], dtype=torch.int32))
    refused("sink", q, q, q, sink=torch.zeros(3))
    refused("no tensor", q.numpy(), q, q)
    refused("group", q, q, q, group=3)
    refused("score_mod of one rank", q, q, q, score_mod=lambda s, b, h, n, m: s.absent() if rank else s)
    refused("score_mod that raises", q, q, q, score_mod=raises)
    refused("gradients", q.clone().requires_grad_(rank == 0), q, q)
    with torch.no_grad():
        refused("no gradients", q.clone().requires_grad_(rank == 0), q, q)
    refused("nothing wrong", q, q, q)
    return said


def windows(rank, w, rotate):
    """What this rank sends for a window of w tokens to the left, 8 tokens a rank, and what its keys and values have."""
    q, k, v = torch.randn(3, 1, 2, 8, 8).unbind(0)
    with distributed.counting() as traffic:
        distributed.attend(q, k, v, weft.window(w, 0), rotate=rotate)
    return traffic.sent, traffic.received, 4 * (k.numel() + v.numel())


def sharded(rank):
    """What sharded tensors give, and tensors that torch's context_parallel shards, beside one process."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.tensor.experimental import context_parallel

    mesh = init_device_mesh("cpu", (2,))
    whole = torch.randn(3, 1, 2, 16, 8, generator=torch.Generator().manual_seed(1)).unbind(0)
    wanted = weft.attention.attend(*whole, weft.causal())
    q, k, v = (distribute_tensor(x, mesh, [Shard(2)]).requires_grad_() for x in whole)
    out = distributed.attend(q, k, v, weft.causal())
    found = {"placements": out.placements == q.placements, "DTensor": (out.full_tensor() - wanted).abs().max()}
    out.to_local().square().sum().backward()
    leaves = [x.clone().requires_grad_() for x in whole]
    weft.attention.attend(*leaves, weft.causal()).square().sum().backward()
    for name, x, leaf in zip("qkv", (q, k, v), leaves, strict=True):
        found[name] = (x.grad.full_tensor() - leaf.grad).abs().max()
    try:
        distributed.attend(q, k.redistribute(mesh, [Shard(1)]), v)
    except ValueError as error:
        found["other"] = str(error)
    q, k, v = (x.chunk(2, 2)[rank].clone().requires_grad_() for x in whole)
    (gradient,) = torch.autograd.grad(distributed.attend(q, k, v).sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match=r"expected gradients of first order"):
        gradient.square().sum().backward()
    q, k, v = (x.clone() for x in whole)
    expected = wanted.clone()
    with context_parallel(mesh, buffers=[q, k, v, expected], buffer_seq_dims=[2, 2, 2, 2]):
        out = distributed.attend(q, k, v, weft.causal(), mesh, layout="head-tail")
        found["context_parallel"] = (out - expected).abs().max()
    return {**found, **replaced(mesh, whole)}


def replaced(mesh, whole):
    """What torch's own function gives where Weft takes its place: inside context_parallel, and of sharded tensors."""
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.functional import scaled_dot_product_attention

    found = {}
    for name, pattern, keywords in [
        ("is_causal", None, {"is_causal": True}),
        ("scale", None, {"scale": 0.5}),
        ("pattern", weft.window(5, 0), {}),
    ]:
        leaves = [x.clone().requires_grad_() for x in whole]
        whole_pattern = weft.causal() if "is_causal" in keywords else pattern
        wanted = weft.attention.attend(*leaves, whole_pattern, scale=keywords.get("scale"))
        wanted.square().sum().backward()
        shared = [x.clone() for x in whole]
        compared = [wanted.detach().clone(), *(x.grad.clone() for x in leaves)]
        with (
            context_parallel(mesh, buffers=[*shared, *compared], buffer_seq_dims=[2] * 7),
            distributed.sdpa(pattern=pattern),
        ):
            own = [x.detach().clone().requires_grad_() for x in shared]
            # looked up as a model does: context_parallel has put another in its place
            out = torch.nn.functional.scaled_dot_product_attention(*own, **keywords)
            out.square().sum().backward()
            for what, x, y in zip(("out", *"qkv"), (out, *(x.grad for x in own)), compared, strict=True):
                found[f"replaced, {name}, {what}"] = (x - y).abs().max()
    wanted = weft.attention.attend(*whole, weft.causal())
    q, k, v = (distribute_tensor(x, mesh, [Shard(2)]) for x in whole)
    with distributed.sdpa("consecutive"):
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
        found["replaced, DTensor"] = (out.full_tensor() - wanted).abs().max()
        plain = scaled_dot_product_attention(*whole, is_causal=True)  # torch's, as these are not sharded
        found["not replaced"] = (plain - wanted).abs().max()
        for message, keywords in [("attn_mask", {"attn_mask": q}), ("dropout_p=0.5", {"dropout_p": 0.5})]:
            with pytest.raises(ValueError, match=message):
                scaled_dot_product_attention(q, k, v, **keywords)
        with pytest.raises(ValueError, match="give enable_gqa=True"):
            scaled_dot_product_attention(q, distribute_tensor(whole[1][:, :1], mesh, [Shard(2)]), v)
    return found


def two_ranks(rank):
    return (refusals(rank), sharded(rank)), {
        (w, rotate): windows(rank, w, rotate) for w in (0, 1, 8, 9) for rotate in ("ring", "all-to-all")
    }


def test_refusals_shards_and_windows_on_two_ranks(tmp_path):
    ((first, parts), sent), ((second, _), _) = found = on_ranks(2, two_ranks, folder=tmp_path)
    assert parts.pop("placements")
    assert "expected 'k' to be sharded as 'q' is, (Shard(dim=2),), but got (Shard(dim=1),)" in parts.pop("other")
    assert all(difference <= LIMIT for difference in parts.values()), parts
    expected = {
        "shapes": "expected the same on all ranks, but rank 0 has q, k, v [1, 2, 4, 8] float32",
        "types": "expected the same on all ranks",
        "patterns": "expected the same on all ranks",
        "ids of others": "expected the same on all ranks",
        "rotate": "expected 'rotate' among ring, all-gather, all-to-all, but got 'round'",
        "odd": "expected 'q' of a length that 2 runs divide, but got 3",
        "layout": "expected a layout of 2 ranks, but got one of 3",
        "ids": "expected query ids of 8 tokens, or [1, 8], but got [4]",
        "heads": "expected 'k' [1, Hkv, M, 8], Hkv a divisor of 3, but got [1, 2, 4, 8]",
        "starts": "expected 'cu_seqlens' to rise from 0 to the whole's 8 tokens, but got [0, 4]",
        "packed grid": "expected a pattern of positions in packed sequences, but got weft.neighbourhood",
        "sink": "expected 'sink' [2], but got [3]",
        "no tensor": "expected 'q' to be a tensor of torch's, but got 'ndarray'",
        "group": "expected 'group' to be a group of torch.distributed, but got 'int'",
        "gradients": "expected the same on all ranks",
        "no gradients": "nothing",
        "nothing wrong": "nothing",
    }
    for name, text in expected.items():
        assert text in first[name], (name, first[name])
        assert text in second[name], (name, second[name])
    assert "expected a call that all ranks can make, but rank 1 has TypeError: expected 'v' of" in first["one rank"]
    assert "expected 'v' of the queries' floating-point type torch.float32, but got torch.float64" in second["one rank"]
    for name, text in [("score_mod of one rank", "but got '.absent'"), ("score_mod that raises", "KeyError: 'absent'")]:
        assert "expected a call that all ranks can make, but rank 1 has" in first[name] and text in first[name], first
        assert second[name].startswith(("UnknownAttribute", "KeyError")), second[name]

    for w, rotate in sent:
        each = found[0][1][w, rotate][2]
        total = sum(traffic[w, rotate][0] for _, traffic in found)
        # rank 1 alone has a neighbour on its left
        assert total == min(1, math.ceil(w / 8)) * each, (w, rotate)
        assert total == sum(traffic[w, rotate][1] for _, traffic in found)


def eight_ranks(rank):
    return {
        (w, rotate): windows(rank, w, rotate) for w in (5, 8, 17) for rotate in ("ring", "all-to-all", "all-gather")
    }


@pytest.mark.slow
def test_a_window_sends_as_many_neighbours_as_it_is_long(tmp_path):
    found = on_ranks(8, eight_ranks, folder=tmp_path)
    for w in (5, 8, 17):
        for rotate in ("ring", "all-to-all"):
            for rank, traffic in enumerate(found):
                _, received, each = traffic[w, rotate]
                assert received == min(rank, math.ceil(w / 8)) * each, (w, rotate, rank)
        assert all(traffic[w, "all-gather"][1] <= 7 * traffic[w, "all-gather"][2] for traffic in found)
