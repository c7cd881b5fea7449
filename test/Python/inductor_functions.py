# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Functions that torch.compile makes Triton kernels of, beside the same functions in float64 without it. Run by
``python -m weft.triton``; prints a line for each: its name, how many kernels were made, and an error for each result
and each gradient. Floats' are in units of the last place of their type: of the value, of 1 where it is less, and of the
largest value where gradients are compared; of other types it is how many values differ.

WEFT_TEST_PART names the group: "quick", "more", or "configurations", where inductor is told to write kernels otherwise.
"""

import math
import os

import torch
import torch._dynamo
import torch._inductor.config as config
import torch.nn.functional as F
from torch._inductor import metrics

config.cpu_backend = "triton"
config.force_disable_caches = True
config.fallback_random = True
torch.manual_seed(int(os.environ.get("WEFT_TEST_SEED", "0")))

int8, uint8, int32, int64 = torch.int8, torch.uint8, torch.int32, torch.int64
SPECIAL = torch.tensor([0, -0.0, 1, -1, math.inf, -math.inf, math.nan, 1e-40, 3e38, -3e38, 0.5, -2.5, 1.5, 2.5])


def floats(*shape, dtype=torch.float32, low=None, high=None):
    x = torch.randn(*shape) if low is None else torch.rand(*shape) * (high - low) + low
    return x.to(dtype)


def integers(*shape, dtype=int64, low=-100, high=100):
    return torch.randint(low, high, shape).to(dtype)


def truths(*shape):
    return torch.rand(*shape) > 0.5


# ---- Elementwise, views


def pointwise(x, y, z):
    joined = torch.cat([x.t().sin(), F.pad(y[::2, 1::3], (1, 2), value=2.5), z.expand(3, 13)], 0)
    return joined.roll(2, 1) + torch.arange(13), torch.where(x > 0, x, x.flip(1)), torch.tril(x[:, :9]) * 2


def activations(x):
    return F.gelu(x) + F.silu(x) + F.elu(x) + F.softplus(x) + F.mish(x), F.hardswish(x) + F.logsigmoid(x) + F.glu(x)[
        0, 0
    ]


def whole_numbers(x, y):
    y = torch.where(y == 0, 3, y)
    return x // y, x % y, torch.div(x, y, rounding_mode="trunc"), torch.fmod(x, y), x // 7, x % -16, torch.gcd(x, y)


def bits(x, y):
    return x & y, x | ~y, x ^ y, x << (y % 5).abs(), x >> (y % 5).abs(), x * y - x, x.clamp(3, 50), x**2


def not_numbers(x):
    y = x.flip(0)
    whole = x.clamp(-100, 100).nan_to_num().to(int32)
    found = torch.maximum(x, y), torch.fmin(x, y), torch.isinf(x), torch.signbit(x), x.clamp(-1, 1), x <= y, x.amax()
    return *found, x.nan_to_num(nan=7.0, posinf=9.0, neginf=-9.0), x.argmin(), whole, F.relu(x), torch.sign(x)


def many_turns(x, y):
    return x.sin(), x.cos(), torch.fmod(x, y), torch.remainder(x, -y), torch.fmod(y, x)


def special_functions(x):
    s = torch.special
    found = x.erf(), x.lgamma(), x.digamma(), x.erfinv(), s.i0(x), s.i1e(x), s.bessel_j0(x), s.bessel_y1(x), s.erfcx(x)
    return *found, s.ndtri(x), s.modified_bessel_k0(x), x.logit(), x.atanh(), x.expm1(), x.log1p(), x**-1.5


def casts(x):
    return x.half(), x.bfloat16(), x.double(), x.int(), x.to(int8), x.to(torch.float8_e4m3fn).float()


# ---- Memory by indices


def lookups(x, i, j, v):
    sorted_row = x[0].sort()[0]
    found = torch.bucketize(x[1], sorted_row), torch.bucketize(x[2], sorted_row, right=True)
    return *found, x[i] + 1, x.gather(1, j), x.index_add(0, i % 9, v), x.scatter_add(1, j, v[:9, :5])


def embedding(table, i):
    return F.embedding(i, table).sum(1) + table[i[:, 0]]


# ---- Along axes


def reductions(x):
    found = x.sum(0), x.mean((0, 1)), x.amax(1), x.argmax(1), x.argmin(0), (x > 2).any(1), x[:, :9].prod(1)
    return *found, *torch.var_mean(x, 1), x.norm(dim=0), x.logsumexp(1), x.norm(3, 1), torch.count_nonzero(x > 0, 0)


def softmaxes(x):
    return x.softmax(1), x.log_softmax(0), x.softmax(0)


def scans(x):
    return x.cumsum(1), x[:, :20].cumprod(1), x.logcumsumexp(1), *x.cummax(1), x.flatten().cumsum(0)


def sorts(x):
    return *x.sort(dim=1, stable=True), *x.topk(3), x.argsort(dim=0, stable=True, descending=True)


# ---- Layers


def norms(x, w, b):
    y = F.layer_norm(x, (x.shape[1],), w, b) + F.rms_norm(x, (x.shape[1],), w)
    return y, F.group_norm(x[:, :, None], 4), F.batch_norm(x, None, None, w, b, training=True)


def losses(x, t):
    y = F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=3), F.huber_loss(x, x.flip(0))
    return *y, F.kl_div(x.log_softmax(1), x.roll(1, 0).softmax(1), reduction="batchmean")


def pools(x):
    y = F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, (4, 5))
    return *y, F.interpolate(x, scale_factor=2, mode="nearest"), F.interpolate(x, size=(9, 7), mode="bilinear")


def windows(x, w):
    y = sum(F.pad(x, (3, 0))[:, :, i : i + 20] * w[:, i, None] for i in range(4))
    return y, F.pixel_shuffle(y.view(2, 4, 5, 6)[:, :, :4], 2), F.pad(x, (2, 2), mode="reflect")


def block(x, qkv, out, up, down, w):
    heads = (F.rms_norm(x, (32,), w) @ qkv).view(2, 12, 3, 4, 8).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(2, 12, 32)
    x = x + mixed @ out
    return x + F.gelu(F.layer_norm(x, (32,)) @ up) @ down


def attention(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf).softmax(-1) @ v


BLOCK = [floats(2, 12, 32), floats(32, 96), floats(32, 32), floats(32, 64), floats(64, 32), floats(32)]
LOOKUPS = [floats(9, 12), integers(20, low=-9, high=9), integers(9, 5, low=0, high=12), floats(20, 12)]

# Name: function, arguments, whether gradients are compared, options of inductor.
QUICK = {
    "pointwise": (pointwise, [floats(13, 13), floats(16, 31), floats(1, 13)], False, {}),
    "whole_numbers": (whole_numbers, [integers(80), integers(80, low=-9, high=9)], False, {}),
    "not_numbers": (not_numbers, [SPECIAL], False, {}),
    "many_turns": (many_turns, [floats(90, low=-1e30, high=1e30), floats(90, low=0.1, high=9)], False, {}),
    "lookups": (lookups, LOOKUPS, False, {}),
    "reductions": (reductions, [floats(9, 70)], False, {}),
    "scans": (scans, [floats(5, 70)], False, {}),
    "sorts": (sorts, [floats(5, 13)], False, {}),
    "attention": (attention, [floats(2, 2, 20, 16) for _ in range(3)], True, {}),
}
MORE = {
    "activations": (activations, [floats(6, 20)], True, {}),
    "whole_numbers_32": (
        whole_numbers,
        [integers(80, dtype=int32), integers(80, dtype=int32, low=-9, high=9)],
        False,
        {},
    ),
    "whole_numbers_8": (whole_numbers, [integers(80, dtype=int8), integers(80, dtype=int8, low=-9, high=9)], False, {}),
    "bits": (bits, [integers(80), integers(80, low=0)], False, {}),
    "bytes": (bits, [integers(80, dtype=uint8, low=0, high=256), integers(80, dtype=uint8, low=0)], False, {}),
    "special_functions": (special_functions, [floats(200, low=0.05, high=0.95)], False, {}),
    "casts": (casts, [floats(90)], False, {}),
    "embedding": (embedding, [floats(40, 8), integers(7, 3, low=0, high=40)], True, {}),
    "long_reductions": (reductions, [floats(3, 5000)], False, {}),
    "long_scans": (lambda x: (x.cumsum(0), x.logcumsumexp(0)), [floats(9000)], False, {}),
    "softmaxes": (softmaxes, [floats(9, 200)], True, {}),
    "softmaxes_16": (softmaxes, [floats(9, 200, dtype=torch.bfloat16)], False, {}),
    "norms": (norms, [floats(9, 100), floats(100), floats(100)], True, {}),
    "norms_64": (norms, [floats(*each, dtype=torch.float64) for each in ((9, 100), (100,), (100,))], True, {}),
    "losses": (losses, [floats(9, 10), integers(9, low=0, high=10)], True, {}),
    "pools": (pools, [floats(2, 3, 12, 13)], True, {}),
    "windows": (windows, [floats(2, 6, 20), floats(6, 4)], True, {}),
    "block": (block, [each / 4 for each in BLOCK], True, {}),
    "dynamic_softmaxes": (softmaxes, [floats(13, 37)], True, {"dynamic": True}),
    "dynamic_lookups": (lookups, LOOKUPS, False, {"dynamic": True}),
}
T = "triton."
KINDS = {
    "loops": {T + "persistent_reductions": False},
    "cooperative": {T + "cooperative_reductions": True, T + "force_cooperative_reductions": True},
    "blocks": {T + "use_block_ptr": True, T + "prefer_nd_tiling": True},
    "descriptors": {T + "use_tensor_descriptor": True, "assume_aligned_inputs": True, T + "prefer_nd_tiling": True},
    "tiles": {T + "prefer_nd_tiling": True, T + "max_tiles": 3, T + "tile_reductions": True},
    "tuned": {"max_autotune_pointwise": True, "coordinate_descent_tuning": True},
    "combined": {"combo_kernels": True, "benchmark_combo_kernel": False},
    "rounded": {"emulate_precision_casts": True},
}
CONFIGURATIONS = {
    f"{function.__name__}_{kind}": (function, arguments, False, options)
    for kind, options in KINDS.items()
    for function, arguments in (
        (pointwise, QUICK["pointwise"][1]),
        (reductions, [floats(5, 3000)]),
        (softmaxes, [floats(9, 300)]),
    )
}


def results(function, arguments, gradients, incoming=None):
    """A function's results, and the gradients of its arguments for the gradients of its results that come in."""
    given = [x.clone().requires_grad_() if gradients and x.is_floating_point() else x.clone() for x in arguments]
    made = function(*given)
    made = list(made) if isinstance(made, tuple) else [made]
    if not gradients:
        return made, []
    incoming = incoming or [torch.randn_like(each) for each in made]
    leaves = [x for x in given if x.requires_grad]
    incoming = [g.to(each.dtype) for g, each in zip(incoming, made, strict=True)]
    return [each.detach() for each in made] + list(torch.autograd.grad(made, leaves, incoming)), incoming


def error(found, wanted, of_largest):
    if found.shape != wanted.shape:
        return math.inf
    same = found == wanted
    if not found.is_floating_point():
        return int((~same).sum())
    same |= found.isnan() & wanted.isnan()
    size = wanted.double().abs()
    unit = torch.finfo(found.dtype).eps * (size.max() if of_largest else size).clamp(1)
    off = (found.double() - wanted.double()).abs() / unit
    return torch.where(same, 0, off.nan_to_num(nan=math.inf)).max().item()


def main():
    group = {"quick": QUICK, "more": MORE, "configurations": CONFIGURATIONS}[os.environ["WEFT_TEST_PART"]]
    for name, (function, arguments, gradients, options) in group.items():
        wide = [x.double() if x.is_floating_point() else x for x in arguments]
        _, incoming = results(function, arguments, gradients)
        wanted, _ = results(function, wide, gradients, incoming)
        torch._dynamo.reset()
        metrics.reset()
        dynamic = options.get("dynamic")
        with config.patch({key: value for key, value in options.items() if key != "dynamic"}):
            found, _ = results(torch.compile(function, dynamic=dynamic), arguments, gradients, incoming)
        errors = [error(a, b, gradients) for a, b in zip(found, wanted, strict=True)]
        print(name, metrics.generated_kernel_count, *errors, flush=True)


if __name__ == "__main__":
    main()
