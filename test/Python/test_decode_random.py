# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random decoding steps against float64: caches contiguous and in pages, of 16 bits and of 8, with and without scales,
with any strides, of any head sizes, on targets that move and multiply tiles by other instructions. What lies behind a
sequence's end, and between rows of memory, is NaN."""

import math
import os
import random
import secrets
from dataclasses import dataclass

import pytest
import torch
import weft
from weft.attention import decode
from weft.testing import poisoned

TARGETS = ("sm_80", "sm_90a")
COUNT = int(os.environ.get("WEFT_DECODES", "6"))
FRESH = int(os.environ.get("WEFT_FUZZ_SEED", secrets.randbelow(10**9)))
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2

#: patterns, and who attends of queries at p and keys at m
PATTERNS = [
    (None, lambda p, m: m <= p),
    (weft.causal(), lambda p, m: m <= p),
    (weft.full(), lambda p, m: m >= 0),
    (weft.window(17, 0), lambda p, m: (m <= p) & (m >= p - 17)),
    (weft.window(100, None), lambda p, m: m >= p - 100),
    (weft.prefix(5) | weft.window(3, 0), lambda p, m: (m < 5) | ((m <= p) & (m >= p - 3))),
    (weft.strided(3) & weft.causal(), lambda p, m: (m <= p) & ((p - m) % 3 == 0)),
]
SCORES = [None, None, lambda s, b, h, n, m: 0.5 * s, lambda s, b, h, n, m: s - 0.01 * (h + 1) * m]


@dataclass
class Step:
    """What is decoded."""

    text: str
    q: torch.Tensor
    caches: list
    pattern: tuple
    options: dict
    wide: list  # what keys and values are, [B, Hkv, M, D] of float64
    lengths: torch.Tensor


def strided(x, layout):
    """The same numbers in other strides, NaN between them."""
    if layout == "heads inside":
        return x.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "gaps":
        room = torch.full((*x.shape[:-2], 2 * x.shape[-2] + 1, x.shape[-1] + 16), math.nan).to(x.dtype)
        view = room[..., 1::2, 16:]
        view.copy_(x)
        return view
    if layout == "unaligned":
        room = torch.full((x.numel() + 1,), math.nan).to(x.dtype)
        room[1:].copy_(x.reshape(-1))
        return room[1:].view(x.shape)
    if layout == "one batch":
        return x[:1].expand(x.shape)
    return x


def step(seed):
    """The random step of a seed."""
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    B, Hkv, group = rng.choice([1, 1, 2, 3, 5]), rng.choice([1, 1, 2, 3]), rng.choice([1, 2, 3, 4, 7, 8])
    n, room = rng.choice([1, 1, 1, 2, 3, 5, 17]), rng.choice([1, 2, 15, 16, 31, 33, 64, 97, 130, 200, 300, 420])
    D = rng.choice([8, 16, 24, 32, 40, 64, 64, 72, 80, 96, 128, 128, 160, 192, 256, 20, 33, 1])
    Dv = D if rng.random() < 0.7 else rng.choice([1, 8, 16, 48, 64, 128, 256])
    dtype = rng.choice([torch.float16, torch.bfloat16, torch.float16, torch.float32])
    kind = rng.choice([dtype, E4M3, E5M2, E4M3])
    shared = Dv <= D and rng.random() < 0.15  # latent attention: values are the keys' first channels
    is_paged = rng.random() < 0.4
    layout = rng.choice(["plain", "plain", "heads inside", "gaps", "unaligned", "one batch"])
    q = torch.randn(B, Hkv * group, n, D, generator=generator).to(dtype)
    k, v = (torch.randn(B, Hkv, room, size, generator=generator) for size in (D, Dv))
    if layout == "one batch":
        k, v = (x[:1].expand(x.shape) for x in (k, v))
    k, v = k.to(kind), v.to(kind)
    if shared:
        v = k[..., :Dv]
    lengths = torch.randint(0, room + 1, (B,), generator=generator, dtype=torch.int32)
    if rng.random() < 0.3:
        lengths[rng.randrange(B)] = room
    whole = not is_paged and rng.random() < 0.2
    if whole:
        lengths[:] = room
    wide = [k.double(), v.double()]
    options = {} if whole else {"seqused_k": lengths}
    if not whole and layout != "one batch":
        k, v = k.clone(), v.clone()
        for b, length in enumerate(lengths.tolist()):
            for x in (k, v):
                bits = x.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[x.element_size()])
                bits[b, :, length:] = {1: 0x7F, 2: 0x7FFF, 4: 0x7FFFFFFF}[x.element_size()]
        if shared:
            v = k[..., :Dv]
    if is_paged:
        page = rng.choice([1, 2, 8, 16, 16, 32, 64, 128, 256, 5])
        most = -(-room // page)
        free = rng.choice([0, 3])
        order = torch.randperm(B * most + free, generator=generator)[: B * most].reshape(B, most).to(torch.int32)
        pages = []
        for x in (k, v):
            held = torch.full((B * most + free, page, Hkv, x.shape[3]), math.nan).to(x.dtype)
            for b in range(B):
                for m in range(room):
                    held[order[b, m // page], m % page] = x[b, :, m]
            pages.append(held)
        k, v = pages
        if shared:
            v = k[..., :Dv]
        options["block_table"] = order
        layout = "pages of " + str(page)
    elif layout != "one batch":
        k = strided(k, layout)
        v = k[..., :Dv] if shared else strided(v, layout)
    for number, name in enumerate(("k_scale", "v_scale")):
        if kind != dtype and rng.random() < 0.6:
            by_page = is_paged and rng.random() < 0.4
            scale = torch.rand((len(k), Hkv) if by_page else (Hkv,), generator=generator) + 0.3
            options[name] = scale
            if by_page:
                rows = torch.arange(room) // page
                of_rows = scale[options["block_table"][:, rows].long()]  # [B, M, Hkv]
                wide[number] = wide[number] * of_rows.transpose(1, 2)[..., None].double()
            else:
                wide[number] = wide[number] * scale[:, None, None].double()
    options["num_splits"] = rng.choice([None, None, None, 1, 2, 3, 8])
    options["score_mod"] = rng.choice(SCORES)
    options["sink"] = torch.randn(Hkv * group, generator=generator) if rng.random() < 0.25 else None
    options["scale"] = rng.choice([None, None, 0.05])
    pattern = rng.choice(PATTERNS)
    text = (
        f"seed {seed}: B {B}, Hkv {Hkv}, group {group}, n {n}, room {room}, D {D}, Dv {Dv}, {dtype}, {kind}, {layout}, "
        f"shared {shared}, lengths {lengths.tolist()}, whole {whole}, pattern {PATTERNS.index(pattern)}, "
        f"{ {name: x for name, x in options.items() if not isinstance(x, torch.Tensor)} }, scales "
        f"{[name for name in options if name.endswith('_scale')]}, sink {options['sink'] is not None}"
    )
    return Step(text, q, [k, v], pattern, options, wide, lengths)


def exact(given):
    """The outputs and log-sum-exps in float64."""
    q = given.q.double()
    B, H, n, D = q.shape
    k, v = (x.repeat_interleave(H // x.shape[1], 1) for x in given.wide)
    M = k.shape[2]
    scale = given.options["scale"] if given.options["scale"] is not None else 1 / math.sqrt(D)
    scores = scale * (q @ k.mT)
    if given.options["score_mod"]:
        b, h, i, m = (
            torch.arange(size).view([-1 if axis == each else 1 for each in range(4)])
            for axis, size in enumerate((B, H, n, M))
        )
        scores = given.options["score_mod"](scores, b, h, i, m)
    lengths, m = given.lengths.long()[:, None, None, None], torch.arange(M)
    p = lengths - n + torch.arange(n)[:, None]
    seen = given.pattern[1](p, m) & (m < lengths)
    scores = scores.masked_fill(~seen, -math.inf)
    if given.options["sink"] is not None:
        scores = torch.cat([scores, given.options["sink"].double()[:, None, None].expand(B, H, n, 1)], 3)
    return scores.softmax(3).nan_to_num(0)[..., :M] @ v, scores.logsumexp(3)


def check(seed):
    given = step(seed)
    print(given.text)
    with poisoned():
        out, lse = decode(given.q, *given.caches, given.pattern[0], return_lse=True, **given.options)
    wanted, its_lse = exact(given)
    tolerance = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-5}[given.q.dtype]
    largest = max(1.0, float(wanted.abs().max()), *(float(x.abs().max()) for x in given.wide))
    torch.testing.assert_close(out.double(), wanted, rtol=0, atol=tolerance * largest)
    torch.testing.assert_close(lse.double(), its_lse, rtol=tolerance, atol=tolerance * largest)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", range(COUNT))
def test_random_steps(target, number, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", target)
    check(FRESH + number)
