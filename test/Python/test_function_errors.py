# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Each tensor of each function of weft.attention in turn is one that cannot be: the error names it, and says what was
expected and what came."""

import pytest
import torch
import weft

B, H, N, D = 2, 2, 20, 16


def zeros(*shape):
    return torch.zeros(*shape)


def expansion(many, wide=None):
    convolutions = {"conv1.weight": (many, H, 3), "conv1.bias": (many,)}
    convolutions |= {"conv2.weight": (many, many, 3), "conv2.bias": (many,)}
    linear = {"linear1.weight": (wide, D), "linear1.bias": (wide,), "linear2.weight": (wide, wide)}
    shapes = convolutions | (linear | {"linear2.bias": (wide,)} if wide else {})
    return {name: zeros(*shape) for name, shape in shapes.items()}


def heads(batch=B):
    return {name: zeros(batch, H, N, D) for name in "qkv"}


REFUSALS = (TypeError, ValueError, weft.CompilationError, weft.runtime.Error)
STARTS = torch.tensor([0, 5, N], dtype=torch.int32)
GAINS = {"q_gain": zeros(H, D), "k_gain": zeros(H, D)}
CALLS = {
    "attend": (weft.attention.attend, {**heads(), "bias": zeros(B, H, N, N), "sink": zeros(H)}, {}),
    "attend, packed": (weft.attention.attend, {**heads(1), "cu_seqlens_q": STARTS, "cu_seqlens_k": STARTS}, {}),
    "sema": (
        weft.attention.sema,
        {**heads(), "lepe_weight": zeros(H * D, 1, 3), "lepe_bias": zeros(H * D)},
        {"window": 8},
    ),
    "sema over a grid": (
        weft.attention.sema,
        {**heads(), "lepe_weight": zeros(H * D, 1, 3, 3), "lepe_bias": zeros(H * D)},
        {"window": (2, 2), "grid": (4, 5)},
    ),
    "sema, packed": (weft.attention.sema, {**heads(1), "cu_seqlens": STARTS}, {"window": 8}),
    "sfa": (weft.attention.sfa, {**heads(), **GAINS, "decisions": zeros(B, H, N).bool()}, {}),
    "sfa, packed": (weft.attention.sfa, {**heads(1), **GAINS, "cu_seqlens": STARTS}, {}),
    "sas": (
        weft.attention.sas,
        {**heads(), "q_expand": expansion(4, 24), "k_expand": expansion(4, 24), "v_expand": expansion(4)},
        {"kernel": 3},
    ),
    "sas, packed": (
        weft.attention.sas,
        {**heads(1), **{f"{name}_expand": expansion(4) for name in "qkv"}, "cu_seqlens": STARTS},
        {"kernel": 3},
    ),
    "peaa": (
        weft.attention.peaa,
        {"y": zeros(B, 4, N, D), "weight": zeros(8, H * D), "bias": zeros(8)},
        {"heads": H},
    ),
    "gau": (
        weft.attention.gau,
        {name: zeros(B, 1, N, D) for name in "uvg"}
        | {name: zeros(D) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")},
        {},
    ),
    "gau, packed": (
        weft.attention.gau,
        {name: zeros(1, 1, N, D) for name in "uvg"}
        | {name: zeros(D) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}
        | {"cu_seqlens": STARTS},
        {},
    ),
}
WRONG = {
    "a list": torch.Tensor.tolist,
    "a number": lambda x: 3,
    "more axes": lambda x: x[None],
    "double": torch.Tensor.double,
    "complex": lambda x: x.to(torch.complex64),
    "without data": lambda x: x.to("meta"),
    "sparse": torch.Tensor.to_sparse,
}


def changed(tensors, path, change):
    """The tensors with that of a path changed."""
    name, *rest = path
    return tensors | {name: changed(tensors[name], rest, change) if rest else change(tensors[name])}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", CALLS)
def test_the_tensor_is_named(call, wrong):
    function, tensors, options = CALLS[call]
    paths = [
        (name, *key) for name, x in tensors.items() for key in ([()] if torch.is_tensor(x) else [(key,) for key in x])
    ]
    for path in paths:
        with pytest.raises(REFUSALS) as caught:
            function(**changed(tensors, path, WRONG[wrong]), **options)
        said = str(caught.value).splitlines()[0]
        assert "expected" in said and "but got" in said, said
        assert path[-1] in said.replace(call, ""), (path, said)


@pytest.mark.parametrize(
    ("call", "path", "change", "message"),
    [
        ("sema", ("k",), lambda x: x[..., :8], r"'k' \[B, Hkv, N, D\] = \[2, any, 20, 16\], but got \[2, 2, 20, 8\]"),
        ("sfa", ("v",), lambda x: x[:, :1], r"'v' \[B, Hkv, N, Dv\] = \[2, 2, 20, any\], but got \[2, 1, 20, 16\]"),
        ("sfa", ("v",), torch.Tensor.half, "'v' of the type of 'q', fp32, but got fp16"),
        ("sfa", ("q",), lambda x: x[:, :1], "the heads of 'k' and 'v' to divide those of 'q', 1, but got 2"),
        ("sfa", ("k_gain",), lambda x: x[:1], r"'k_gain' \[Hkv, D\] = \[2, 16\], but got \[1, 16\]"),
        ("sema", ("lepe_weight",), lambda x: x[:16], r"'lepe_weight' .* = \[32, 1, any\], but got \[16, 1, 3\]"),
        ("sema", ("lepe_weight",), lambda x: x[..., :2], r"with an odd K, but got \[32, 1, 2\]"),
        ("sema over a grid", ("lepe_weight",), lambda x: x[..., :1], r"with an odd K, but got \[32, 1, 3, 1\]"),
        (
            "attend",
            ("bias",),
            lambda x: x[..., :9],
            r"'bias' \[2, 2, 20, 20\], or 1 .* but got \[2, 2, 20, 9\] of fp32",
        ),
        ("sas", ("q_expand", "conv1.weight"), torch.Tensor.half, "of the type of 'q', fp32, or fp32, but got fp16"),
        ("peaa", ("bias",), lambda x: x[:3], r"'bias' \[out\] = \[8\], but got \[3\]"),
    ],
)
def test_sizes_and_types(call, path, change, message):
    function, tensors, options = CALLS[call]
    with pytest.raises(REFUSALS, match=message):
        function(**changed(tensors, path, change), **options)
