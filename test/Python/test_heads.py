# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Heads that share keys: patterns, score_mods, operands and sums of mixers that differ from head to head, forward and
backward, against float64; any number of query heads over any number of key heads that divides it."""

import numpy as np
import pytest
import weft
from weft.testing import poisoned

torch = pytest.importorskip("torch")

COUNTS = (1, 2, 3, 4, 6, 8)
GROUPED = [(h, k) for h in COUNTS for k in COUNTS if h % k == 0 and h > k]
D = 16


@pytest.fixture
def rng(seed):
    torch.manual_seed(seed)
    return np.random.default_rng(seed)


def choose(rng, options):
    return options[rng.integers(len(options))]


def over(x, heads):
    """Heads of x, each for its group of ``heads``."""
    return x.repeat_interleave(heads // x.shape[1], 1)


def softmax(q, k, allowed=None, mod=lambda s: s, sink=None):
    """The weights [B, H, N, M]; 0 in rows that attend to nothing."""
    score = mod(q @ over(k, q.shape[1]).mT / q.shape[-1] ** 0.5)
    if allowed is not None:
        score = score.masked_fill(~allowed, -torch.inf)
    sinks = (
        torch.full_like(score[..., :1], -torch.inf) if sink is None else sink[:, None, None].expand_as(score[..., :1])
    )
    top = torch.maximum(score.amax(-1, keepdim=True), sinks).clamp(min=-1e30).detach()
    weights = torch.exp(score - top)
    total = weights.sum(-1, keepdim=True) + torch.exp(sinks - top)
    return weights / torch.where(total > 0, total, 1.0)


def agree(program, formula, tensors, what):
    """Results and the gradients of all floating tensors are those of the formula in float64."""
    leaves = [name for name, x in tensors.items() if x.dtype.is_floating_point]
    with poisoned():
        given = {n: x.clone().requires_grad_() if n in leaves else x for n, x in tensors.items()}
        out = program(**given)
        gradient = torch.randn(out.shape)
        found = torch.autograd.grad(out, [given[n] for n in leaves], gradient, allow_unused=True)
    doubles = {n: x.double().requires_grad_() if n in leaves else x for n, x in tensors.items()}
    exact = formula(**doubles)
    wanted = torch.autograd.grad(exact, [doubles[n] for n in leaves], gradient.double(), allow_unused=True)
    for name, mine, right in zip(["out", *leaves], [out, *found], [exact, *wanted], strict=True):
        if mine is None or right is None:  # a tensor that the drawn program does not read
            assert mine is None or (right is None and not mine.any()), (what, name)
            continue
        error = (mine.double() - right).abs()
        limit = 2e-5 * (1 + right.abs().max())
        assert mine.shape == right.shape and bool((error <= limit).all()), (
            what,
            name,
            float(error.detach().nan_to_num(9e9).max()),
        )


def pattern_by_head(rng, kind, heads, groups, n, m):
    rows, columns = int(choose(rng, (8, 16, 32))), int(choose(rng, (8, 16, 64)))
    bits = torch.tensor(rng.random((1, heads, -(-n // rows), -(-m // columns))) < 0.5)
    bitmap = weft.block_bitmap(bits, block=(rows, columns))
    limit = torch.tensor(rng.integers(-1, m + 1, heads), dtype=torch.int32)
    by_table = weft.mask(lambda b, h, n, m: m <= limit[h])
    index = torch.tensor(np.argsort(rng.random((1, heads, -(-n // 16), -(-m // 16))), -1), dtype=torch.int32)
    count = torch.tensor(rng.integers(0, m // 16 + 2, (1, heads, -(-n // 16))), dtype=torch.int32)
    upper = torch.tensor(np.sort(rng.integers(0, m + 1, (1, groups, n)), -1), dtype=torch.int32)
    key = torch.arange(m, dtype=torch.int32)
    first = (upper[..., None] <= key).sum(-2, dtype=torch.int32)
    span = weft.span(torch.zeros_like(upper), upper, first, torch.full((1, groups, m), n, dtype=torch.int32))
    each = [choose(rng, [weft.causal(), weft.window(5, 2), weft.strided(3), weft.full()]) for _ in range(heads)]
    return {
        "bitmap": bitmap,
        "blocks": weft.blocks(index, count, block=16),
        "blocks, shifted": weft.blocks(index, count, block=16).shift(3) | weft.window(2, 2),
        "mask of a table": by_table,
        "mask of the head": weft.mask(lambda b, h, n, m: (n + m + h) % 3 > 0),
        "bitmap and mask": bitmap & ~by_table,
        "bitmap or causal": bitmap | weft.causal(),
        "spans": span,
        "spans and strides": span & weft.strided(2),
        "per head": weft.per_head(each),
        "bitmap per head": weft.per_head([*each[1:], bitmap]),
    }[kind]


KINDS = [
    *("bitmap", "blocks", "blocks, shifted", "mask of a table", "mask of the head", "bitmap and mask"),
    *("bitmap or causal", "spans", "spans and strides", "per head", "bitmap per head"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_patterns(rng, kind):
    heads, groups = choose(rng, GROUPED)
    n, m = choose(rng, [(70, 70), (21, 90), (45, 33)])
    pattern = pattern_by_head(rng, kind, heads, groups, n, m)
    allowed = torch.tensor(pattern.matrix(n, m, heads=heads))
    allowed = over(allowed, heads) if allowed.dim() == 4 else allowed
    slopes, sink = torch.randn(heads), torch.randn(heads)
    by_head = bool(rng.integers(2))

    @weft.program
    def attend(q, k, v, slopes, sink):
        mod = (lambda s, b, h, n, m: s * slopes[h] + h) if by_head else None
        return weft.softmax(q, k, pattern, score_mod=mod, sink=sink) @ v

    def formula(q, k, v, slopes, sink):
        h = torch.arange(heads)[:, None, None]
        mod = (lambda s: s * slopes[:, None, None] + h) if by_head else (lambda s: s)
        return softmax(q, k, allowed, mod, sink) @ over(v, heads)

    tensors = {"q": torch.randn(1, heads, n, D), "k": torch.randn(1, groups, m, D), "v": torch.randn(1, groups, m, D)}
    agree(attend, formula, {**tensors, "slopes": slopes, "sink": sink}, (kind, heads, groups, n, m, by_head))


def operands(heads, groups, n):
    """Programs with a tensor that the heads of a group do not share, and the same in torch."""
    rms = lambda x, g: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g[:, None]  # noqa: E731
    shapes = [(heads, 1, D), (1, heads, 1, D), (heads, 1, 1), (1, heads, n, 1), (heads, n, D), (D,), (1, heads, 1, 1)]
    for shape in shapes:
        yield f"queries {shape}", shape, lambda q, w: q * weft.sigmoid(w), lambda q, w: q * w.sigmoid()
    yield "squares", (heads, 1, D), lambda q, w: q * (w * w + w), lambda q, w: q * (w * w + w)
    yield "gain", (heads, D), lambda q, w: weft.rms_norm(q, w), rms
    yield "mean", (1, heads, n, D), lambda q, w: q + weft.mean() @ w, lambda q, w: q + w.mean(2, keepdim=True)
    yield (
        *("mean of few", (1, groups, n, D), lambda q, w: weft.diag(q) @ weft.mean() @ w),
        lambda q, w: q * over(w.mean(2, keepdim=True), heads),
    )


@pytest.mark.parametrize("after", [False, True], ids=["queries", "results"])
def test_operands(rng, after):
    batch = int(rng.integers(1, 3))
    for number in range(4):
        heads, groups = choose(rng, GROUPED)
        n = int(choose(rng, (5, 33, 70)))
        name, shape, mine, right = choose(rng, list(operands(heads, groups, n)))
        if len(shape) == 4:
            shape = (batch, *shape[1:])

        @weft.program
        def attend(q, k, v, w):
            if after:
                return mine(weft.softmax(q, k, weft.causal()) @ v, w)  # noqa: B023
            return weft.softmax(mine(q, w), k, weft.causal()) @ v  # noqa: B023

        def formula(q, k, v, w):
            causal = torch.ones(n, n, dtype=torch.bool).tril()  # noqa: B023
            if after:
                return right(softmax(q, k, causal) @ over(v, heads), w)  # noqa: B023
            return softmax(right(q, w), k, causal) @ over(v, heads)  # noqa: B023

        tensors = {"q": torch.randn(batch, heads, n, D), "w": torch.randn(shape)}
        tensors |= {name: torch.randn(batch, groups, n, D) for name in "kv"}
        agree(attend, formula, tensors, (number, name, heads, groups, n))


def term(rng, heads, n):
    """A mixer of some number of heads with at most ``heads``, and the same in torch: of the tensors a and b."""
    own = choose(rng, [h for h in COUNTS if heads % h == 0])
    keys = choose(rng, [h for h in COUNTS if own % h == 0])
    x, y = torch.randn(1, own, n, D), torch.randn(1, keys, n, D)
    number, channel = torch.randn(1, own, n, 1), torch.randn(1, own, n, D)
    return choose(
        rng,
        [
            (own, keys, x, y, lambda a, b: weft.softmax(a, b), lambda a, b, v: softmax(a, b) @ over(v, own)),
            (own, None, number, y, lambda a, b: weft.diag(a), lambda a, b, v: a * over(v, own)),
            (own, None, channel, y, lambda a, b: weft.diag(a), lambda a, b, v: a * over(v, own)),
            (
                *(own, keys, x, y, lambda a, b: weft.diag(a) @ weft.softmax(a, b)),
                lambda a, b, v: a * (softmax(a, b) @ over(v, own)),
            ),
            (
                own,
                None,
                number,
                y,
                lambda a, b: weft.diag(a) @ weft.mean(),
                lambda a, b, v: a * over(v.mean(2, True), own),
            ),
        ],
    )


@pytest.mark.parametrize("number", range(4))
def test_sums_of_mixers(rng, number):
    n = int(choose(rng, (5, 31, 70)))
    heads = choose(rng, (2, 4, 6, 8))
    while True:
        first, second = term(rng, heads, n), term(rng, heads, n)
        most, fewest = max(first[0], second[0]), min(first[0], second[0])
        values = [t[1] for t in (first, second) if t[1]]  # a softmax's are its keys'
        if most > fewest and most % fewest == 0 and len(set(values)) < 2 and not fewest % (values or [1])[0]:
            break
    few = values[0] if values else choose(rng, [h for h in COUNTS if fewest % h == 0])

    @weft.program
    def mixed(a, b, c, d, v):
        return (first[4](a, b) + second[4](c, d) + weft.mean()) @ v

    def formula(a, b, c, d, v):
        return over(first[5](a, b, v), most) + over(second[5](c, d, v), most) + over(v.mean(2, True), most)

    tensors = {"a": first[2], "b": first[3], "c": second[2], "d": second[3], "v": torch.randn(1, few, n, D)}
    agree(mixed, formula, tensors, (first[:2], second[:2], few, n))


def test_two_group_sizes(rng):
    """Two attentions over the same query heads, whose groups differ."""
    heads = choose(rng, (4, 6, 8))
    few, fewer = 2, 1
    n = int(choose(rng, (9, 40)))

    @weft.program
    def twice(q, k, v, k2, v2):
        return weft.softmax(weft.softmax(q, k) @ v, k2) @ v2

    def formula(q, k, v, k2, v2):
        return softmax(softmax(q, k) @ over(v, heads), k2) @ over(v2, heads)

    shapes = {"q": heads, "k": few, "v": few, "k2": fewer, "v2": fewer}
    agree(twice, formula, {x: torch.randn(1, h, n, D) for x, h in shapes.items()}, (heads, n))


def test_products_of_mixers(rng):
    """What one attention gives has the queries' heads, more than the keys of the next one."""
    few, group = choose(rng, ((1, 5), (2, 2), (2, 3)))
    heads, n = few * group, int(choose(rng, (9, 40)))

    @weft.program
    def products(q, k, v, q2, k2):
        a, b = weft.softmax(q, k, weft.causal()), weft.softmax(q2, k2)
        return (a @ b + b @ weft.mean() @ a) @ v

    def formula(q, k, v, q2, k2):
        v = over(v, heads)
        a, b = softmax(q, k, torch.ones(n, n, dtype=torch.bool).tril()), softmax(q2, k2)
        return a @ b @ v + b @ (a @ v).mean(2, True).expand(1, heads, n, D)

    shapes = {"q": heads, "k": few, "v": few, "q2": heads, "k2": 1}
    agree(products, formula, {x: torch.randn(1, h, n, D) for x, h in shapes.items()}, (few, group, n))


def test_values_of_more_heads_than_counted_keys():
    q, k, v = torch.randn(1, 4, 9, D), torch.randn(1, 2, 9, D), torch.randn(1, 4, 9, D)
    with pytest.raises(weft.CompilationError, match="expected values that fit the mixer"):
        weft.softmax(q, weft.domain(k, count=torch.tensor([3], dtype=torch.int32))) @ (v,)


@pytest.mark.parametrize("captures", [False, True])
def test_domains_of_different_groups(rng, captures):
    """Keys of one softmax that serve groups of different sizes: with counts, a bias by head, and what has lists."""
    heads, groups = 12, [int(h) for h in rng.choice([1, 2, 3, 4, 6, 12], 3)]
    n = int(choose(rng, (9, 40, 70)))
    sizes = [n, int(choose(rng, (1, 7, 33))), int(choose(rng, (5, 20)))]
    patterns = [choose(rng, [weft.causal(), weft.full()]), weft.full(), choose(rng, [weft.full(), weft.strided(2)])]
    counts = [
        torch.tensor(rng.integers(0, m + 1, (1, g)), dtype=torch.int32) for m, g in zip(sizes, groups, strict=True)
    ]
    allowed = torch.zeros(1, heads, n, sum(sizes), dtype=torch.bool)
    for domain, (pattern, count) in enumerate(zip(patterns, counts, strict=True)):
        begin = sum(sizes[:domain])
        for h, c in enumerate(over(count, heads)[0].tolist()):  # as if the counted keys were all
            allowed[0, h, :, begin : begin + c] = torch.tensor(pattern.matrix(n, c))

    @weft.program
    def attend(q, k1, k2, k3, v1, v2, v3, slopes, counted):
        domains = [weft.domain(k, p, count=c) for k, p, c in zip((k1, k2, k3), patterns, counted, strict=True)]
        mod = (lambda s, b, h, n, m: s * slopes[h]) if captures else None
        return weft.softmax(q, *domains, score_mod=mod) @ (v1, v2, v3)

    def formula(q, k1, k2, k3, v1, v2, v3, slopes, counted):
        keys, values = (torch.cat([over(x, heads) for x in each], 2) for each in ((k1, k2, k3), (v1, v2, v3)))
        return softmax(q, keys, allowed, lambda s: s * slopes[:, None, None] if captures else s) @ values

    tensors = {"q": torch.randn(1, heads, n, D)}
    for name in "kv":
        tensors |= {f"{name}{i + 1}": torch.randn(1, groups[i], sizes[i], D) for i in range(3)}
    tensors["slopes"] = torch.rand(heads) + 0.5
    agree(
        lambda **x: attend(**x, counted=tuple(counts)),
        lambda **x: formula(**x, counted=None),
        tensors,
        (groups, n, sizes),
    )


def of_positions(kind, n, m, heads, limits):
    """A pattern of a sequence's own positions, on tensors of rows and columns."""
    ranks = torch.arange(n)[:, None] + m - n, torch.arange(m)
    p, key = ranks
    each = torch.arange(heads)[:, None, None]
    return {
        "strided": (p - key) % 3 == 0,
        "dilated or window": (((p - key) % 2 == 0) & ((p - key).abs() <= 6)) | (key == p),
        "strides below": ((p - key) % 3 != 0) & (key <= p),
        "windows, shifted": (p // 5 == (key - 2) // 5) | ((p - key) % 4 == 0),
        "mask": ((torch.arange(n)[:, None] + 2 * key) % 5 < 3) & (key <= p),
        "mask of a table": (key <= limits[:, None, None]) | (p == key) | (each < 0),
    }[kind]


PACKED = {
    "strided": weft.strided(3),
    "dilated or window": weft.dilated(2, 3) | weft.window(0, 0),
    "strides below": ~weft.strided(3) & weft.causal(),
    "windows, shifted": (weft.block_window(5) | weft.strided(4).shift(-2)).shift(2),
    "mask": weft.mask(lambda b, h, n, m: (n + 2 * m) % 5 < 3) & weft.causal(),
    "mask of a table": None,
}


@pytest.mark.parametrize("kind", PACKED)
def test_packed_sequences_without_formulas(rng, kind):
    """Each sequence has the pattern of its own positions, and masks are given those."""
    heads, groups = choose(rng, [*GROUPED, (2, 2)])
    lengths = [int(x) for x in rng.choice([0, 1, 7, 31, 64, 90], 4)]
    starts = torch.tensor(np.concatenate([[0], np.cumsum(lengths)]), dtype=torch.int32)
    total = int(starts[-1])
    limits = torch.tensor(rng.integers(0, 60, heads), dtype=torch.int32)
    pattern = PACKED[kind]
    if kind == "mask of a table":
        pattern = weft.mask(lambda b, h, n, m: m <= limits[h]) | weft.window(0, 0)
    allowed = torch.zeros(heads, total, total, dtype=torch.bool)
    for begin, length in zip(starts.tolist(), lengths, strict=False):
        place = slice(begin, begin + length)
        allowed[:, place, place] = of_positions(kind, length, length, heads, limits)

    @weft.program
    def attend(q, k, v, starts):
        return weft.softmax(q, k, pattern, cu_seqlens=starts) @ v

    def formula(q, k, v, starts):
        return softmax(q, k, allowed) @ over(v, heads)

    tensors = {"q": torch.randn(1, heads, total, D)}
    tensors |= {name: torch.randn(1, groups, total, D) for name in "kv"}
    agree(attend, formula, tensors | {"starts": starts}, (kind, heads, groups, lengths))


def test_tables_of_all_tokens_are_refused_beside_starts():
    ids, starts = torch.zeros(8, dtype=torch.int32), torch.tensor([0, 3, 8], dtype=torch.int32)
    q = torch.randn(1, 1, 8, D)
    with pytest.raises(weft.Error, match=r"cu_seqlens or weft.document, but got both(.|\n)*leave out cu_seqlens"):
        weft.softmax(q, q, weft.document(ids, ids), cu_seqlens=starts) @ q
