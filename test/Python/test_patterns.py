# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft's patterns against their definitions written a second time, in NumPy."""

import itertools

import numpy as np
import pytest
import weft
from weft.patterns.text import PAIR

RNG_SEED = int(np.random.SeedSequence().generate_state(1)[0])
RNG = np.random.default_rng(RNG_SEED)


@pytest.fixture(autouse=True)
def say_seed():
    print("seed", RNG_SEED)


def places(n, m):
    """Queries' positions as a column, keys as a row."""
    return np.arange(n)[:, None] + (m - n), np.arange(m)[None, :]


def neighbourhood_axis(size, kernel, dilation):
    """[size, size]: NATTEN's neighbourhood of each token of a line, from lists of the tokens of its residue."""
    belongs = np.zeros((size, size), bool)
    for query in range(size):
        line = list(range(query % dilation, size, dilation))
        start = min(max(line.index(query) - kernel // 2, 0), len(line) - kernel)
        belongs[query, line[start : start + kernel]] = True
    return belongs


STATIC = [
    (weft.full(), lambda p, m: (p == p) & (m == m)),
    (weft.causal(), lambda p, m: m <= p),
    (weft.window(5, 2), lambda p, m: (p - 5 <= m) & (m <= p + 2)),
    (weft.window(None, -1), lambda p, m: m <= p - 1),
    (weft.window(3, None), lambda p, m: p - 3 <= m),
    (weft.window(None, None), lambda p, m: (p == p) & (m == m)),
    (weft.block_window(4), lambda p, m: p // 4 == m // 4),
    (weft.prefix(5), lambda p, m: (m < 5) & (p == p)),
    (weft.prefix(5) | weft.causal(), lambda p, m: (m < 5) | (m <= p)),
    (weft.global_tokens(3), lambda p, m: (p < 3) | (m < 3)),
    (weft.strided(3), lambda p, m: (p - m) % 3 == 0),
    (weft.dilated(3, 2), lambda p, m: ((p - m) % 3 == 0) & (abs(p - m) <= 6)),
    (weft.causal().shift(2), lambda p, m: m - 2 <= p),
    (weft.window(6, 6) & ~weft.window(1, 1), lambda p, m: (abs(p - m) <= 6) & (abs(p - m) > 1)),
    (~weft.block_window(5), lambda p, m: p // 5 != m // 5),
    (weft.global_tokens(2) | weft.window(3, 0), lambda p, m: (p < 2) | (m < 2) | ((m <= p) & (m >= p - 3))),
    (weft.mask(lambda b, h, n, m: (n * m) % 3 == 1), None),
]


@pytest.mark.parametrize("pattern, belongs", STATIC, ids=[repr(p) for p, _ in STATIC])
@pytest.mark.parametrize("n, m", [(1, 1), (12, 12), (7, 15), (15, 7), (13, 1)])
def test_matrix(pattern, belongs, n, m):
    p, keys = places(n, m)
    expected = np.broadcast_to(belongs(p, keys), (n, m)) if belongs else np.arange(n)[:, None] * keys % 3 == 1
    found = pattern.matrix(n, m)
    assert found.dtype == bool and found.shape == (n, m)
    np.testing.assert_array_equal(found, expected)
    # Transposed, the roles of queries and keys are exchanged, lengths too.
    np.testing.assert_array_equal(pattern.transpose().matrix(m, n), expected.T)
    np.testing.assert_array_equal((~pattern).matrix(n, m), ~expected)


def classes(matrix, bm, bn):
    """What each block is: 0 empty, 1 partial, 2 full."""
    n, m = matrix.shape[-2:]
    rows = []
    for i in range(0, n, bm):
        parts = [matrix[..., i : i + bm, j : j + bn] for j in range(0, m, bn)]
        rows.append([part.any((-2, -1)).astype(int) + part.all((-2, -1)) for part in parts])
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


@pytest.mark.parametrize("pattern, _", STATIC, ids=[repr(p) for p, _ in STATIC])
def test_blocks_summary(pattern, _):
    for n, m in [(32, 32), (11, 29), (29, 11)]:
        bm, bn = (int(x) for x in RNG.integers(1, 9, 2))
        found = pattern.blocks_summary(n, m, bm, bn)
        np.testing.assert_array_equal(found, classes(pattern.matrix(n, m), bm, bn), err_msg=f"{n} {m} {bm} {bn}")


def test_summary_of_long_sequences_costs_no_matrix():
    n = 1 << 17
    found = (weft.causal() & weft.window(4096, 0)).blocks_summary(n, n, 128, 128)
    assert found.shape == (1024, 1024)
    assert (found > 0).sum(1).max() == 33 and (found == 2).sum(1).max() == 31


@pytest.mark.parametrize("grid, window", [((5, 7), (2, 3)), ((4, 4), (4, 2)), ((3, 8), (5, 3))])
def test_block_window_on_a_grid(grid, window):
    tokens = np.arange(grid[0] * grid[1])
    label = (tokens // grid[1] // window[0]) * 100 + tokens % grid[1] // window[1]
    found = weft.block_window(window, grid=grid).matrix(len(tokens))
    np.testing.assert_array_equal(found, label[:, None] == label[None, :])


@pytest.mark.parametrize(
    "shape, kernel, dilation",
    [(11, 3, 1), (11, 4, 2), ((5, 6), (3, 3), 1), ((6, 7), (3, 2), (2, 3)), ((3, 4, 5), (3, 1, 2), (1, 4, 2))],
)
def test_neighbourhood(shape, kernel, dilation):
    shapes = (shape,) if isinstance(shape, int) else shape
    kernels = (kernel,) * len(shapes) if isinstance(kernel, int) else kernel
    dilations = (dilation,) * len(shapes) if isinstance(dilation, int) else dilation
    expected = np.ones((1, 1), bool)
    for axis in zip(shapes, kernels, dilations, strict=True):
        expected = np.kron(expected, neighbourhood_axis(*axis))
    found = weft.neighbourhood(shape, kernel, dilation).matrix(int(np.prod(shapes)))
    np.testing.assert_array_equal(found, expected)
    assert (found.sum(1) == np.prod(kernels)).all()


def test_random_blocks():
    pattern = weft.random_blocks(seed=5, per_row=3, block=4)
    found = pattern.blocks_summary(64, 80, 4, 4)
    assert set(np.unique(found)) == {0, 2} and (found.sum(1) == 6).all()
    np.testing.assert_array_equal(found, pattern.blocks_summary(64, 80, 4, 4))
    assert (weft.random_blocks(6, 3, 4).blocks_summary(64, 80, 4, 4) != found).any()
    assert len({row.tobytes() for row in found}) > 8
    # With no more blocks than are asked for, all belong.
    assert weft.random_blocks(5, 3, 4).matrix(8, 12).all()
    # Evenly: every block is drawn about as often.
    often = (weft.random_blocks(1, 4, 1).matrix(4096, 16)).mean(0)
    np.testing.assert_allclose(often, 0.25, atol=0.03)


def test_tables():
    ids, keys = RNG.integers(0, 3, (2, 9)), RNG.integers(0, 3, (2, 14))
    expected = ids[:, None, :, None] == keys[:, None, None, :]
    np.testing.assert_array_equal(weft.document(ids, keys).matrix(9, 14), expected)
    np.testing.assert_array_equal(weft.document(ids[0], keys[0]).matrix(9, 14), expected[0, 0])

    index = np.argsort(RNG.random((2, 3, 4, 5)), -1).astype(np.int32)
    count = RNG.integers(0, 6, (2, 3, 4)).astype(np.int32)
    bits = np.zeros((2, 3, 4, 5), bool)
    for place in itertools.product(range(2), range(3), range(4)):
        bits[place][index[place][: count[place]]] = True
    expected = np.repeat(np.repeat(bits, 4, 2), 3, 3)[:, :, :15, :14]
    np.testing.assert_array_equal(weft.blocks(index, count, block=(4, 3)).matrix(15, 14), expected)
    np.testing.assert_array_equal(weft.block_bitmap(bits, block=(4, 3)).matrix(15, 14), expected)
    shifted = (weft.block_bitmap(bits, block=(4, 3)) & weft.causal()).shift(2).matrix(15, 14)
    p, m = places(15, 14)
    moved = np.concatenate([np.zeros((2, 3, 15, 2), bool), expected[..., :12]], -1)
    np.testing.assert_array_equal(shifted, moved & (m - 2 <= p))


def staircase(rng, batch, heads, n, m, empty=0.3):
    """Random bounds of a span that never fall, and what they say of keys, found from the matrix."""
    lower, upper = (np.sort(rng.integers(0, m + 1, (batch, heads, n)), -1) for _ in range(2))
    lower = np.minimum(lower, upper) if rng.random() < 0.5 else np.zeros_like(lower)
    if rng.random() < empty:
        upper[..., : rng.integers(0, n + 1)] = 0
        lower = np.minimum(lower, upper)
    keys = np.arange(m)
    matrix = (lower[..., None] <= keys) & (keys < upper[..., None])
    # Rows before a key's first have not come to it; those after its last are past it.
    first = (upper[..., None] <= keys).sum(-2)
    past = (lower[..., None] <= keys).sum(-2)
    return [x.astype(np.int32) for x in (lower, upper, first, np.maximum(past, first))], matrix


@pytest.mark.parametrize("n, m", [(1, 1), (12, 12), (7, 15), (15, 7), (40, 33)])
def test_span(n, m):
    for _ in range(8):
        tables, expected = staircase(RNG, 2, 3, n, m)
        pattern = weft.span(*tables)
        np.testing.assert_array_equal(pattern.matrix(n, m), expected)
        np.testing.assert_array_equal(pattern.transpose().matrix(m, n), expected.swapaxes(-1, -2))
        np.testing.assert_array_equal((~pattern).matrix(n, m), ~expected)
        p, keys = places(n, m)
        both = (pattern & weft.window(3, 2)).matrix(n, m)
        np.testing.assert_array_equal(both, expected & (p - 3 <= keys) & (keys <= p + 2))
        # Heads of queries share those of the tables.
        per_head = weft.per_head([weft.full()] * 6) & pattern
        np.testing.assert_array_equal(per_head.matrix(n, m), expected.repeat(2, 1))
        # Blocks: whole ones exactly, none missed; a gap between rows' keys may count as partial.
        bm, bn = (int(x) for x in RNG.integers(1, 9, 2))
        found, right = pattern.blocks_summary(n, m, bm, bn), classes(expected, bm, bn)
        np.testing.assert_array_equal(found == 2, right == 2)
        assert ((found == right) | ((found == 1) & (right == 0))).all()
        # The keys of neighbouring rows overlap or touch: no gap is left.
        lower, upper = (np.asarray(t) for t in tables[:2])
        if (lower[..., 1:] <= upper[..., :-1]).all() and (lower < upper).all():
            np.testing.assert_array_equal(found, right)


def test_torch_arrays():
    torch = pytest.importorskip("torch")
    ids = torch.tensor([0, 0, 1, 1, 2])
    found = weft.document(ids, ids).matrix(5)
    np.testing.assert_array_equal(found, ids.numpy()[:, None] == ids.numpy()[None, :])
    starts = torch.tensor([[1, 3], [0, 2]])
    found = weft.mask(lambda b, h, n, m: m >= starts[b, h]).matrix(3, 4, batch=2, heads=2)
    expected = np.arange(4) >= starts.numpy()[:, :, None, None]
    np.testing.assert_array_equal(found, np.broadcast_to(expected, (2, 2, 3, 4)))


def test_per_head():
    pattern = weft.per_head([weft.causal(), weft.window(1, 1), weft.causal()]) & weft.prefix(6)
    found = pattern.matrix(8)
    parts = [weft.causal(), weft.window(1, 1), weft.causal()]
    expected = np.stack([part.matrix(8) & (np.arange(8) < 6) for part in parts])[None]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pattern.blocks_summary(8, 8, 3, 2), classes(expected, 3, 2))


def test_mask_inside_shifts_and_transposes():
    table = RNG.integers(0, 2, (40, 40)).astype(bool)

    def asked(b, h, n, m):
        return table[n + 10, m + 10]

    n, m = np.arange(6)[:, None], np.arange(9)[None, :]
    pattern = weft.mask(asked)
    np.testing.assert_array_equal(pattern.shift(3).matrix(6, 9), table[n + 10, m + 7])
    np.testing.assert_array_equal(pattern.shift(3).transpose().matrix(6, 9), table[m + 10, n + 7])
    np.testing.assert_array_equal(pattern.transpose().shift(3).matrix(6, 9), table[m + 7, n + 10])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_elements_outside_of_an_array_are_the_nearest_as_in_kernels(kind):
    """What is computed is moved inside, an axis of 1 repeats, and numbers below 0 count from the end."""
    numbers = RNG.integers(0, 2, (1, 9)).astype(bool)
    table = pytest.importorskip("torch").tensor(numbers) if kind == "torch" else numbers
    n, m = np.arange(6)[:, None], np.arange(8)[None, :]
    for moved, place in (
        (lambda n, m: n - m, np.clip(n - m, 0, 8)),
        (lambda n, m: n + m, np.clip(n + m, 0, 8)),
        (lambda n, m: (n - m) * 2**20, np.where(n > m, 8, 0)),
    ):
        asked = weft.mask(lambda b, h, n, m, moved=moved: table[h, moved(n, m)])
        wanted = np.broadcast_to(numbers[0][place], (1, 2, 6, 8))
        np.testing.assert_array_equal(asked.matrix(6, 8, heads=2), wanted)
    with pytest.raises(weft.CompilationError, match="index 9 is out of bounds"):  # a whole axis of positions
        weft.mask(lambda b, h, n, m: table[h, m]).matrix(6, 12)
    last = weft.mask(lambda b, h, n, m: table[-1, -1] | (n < 0))
    assert (last.matrix(6, 8) == numbers[0, -1]).all()


def test_divisions_by_zero_are_by_one_as_in_kernels():
    n, m = np.arange(6)[:, None], np.arange(8)[None, :]
    for asked, wanted in (
        (lambda b, h, n, m: (n // m) % 2 == 0, n // np.maximum(m, 1) % 2 == 0),
        (lambda b, h, n, m: 7 // (m - 3) > n, 7 // np.where(m == 3, 1, m - 3) > n),
        (lambda b, h, n, m: 7 % (m - n) > 2, 7 % np.where(m == n, 1, m - n) > 2),
        (lambda b, h, n, m: (m + 5) % n > 1, (m + 5) % np.maximum(n, 1) > 1),
    ):
        np.testing.assert_array_equal(weft.mask(asked).matrix(6, 8), wanted)


def test_text_and_operands():
    q, k = np.zeros(4, np.int32), np.ones(4, np.int32)
    ask = lambda b, h, n, m: n >= m  # noqa: E731
    pattern = weft.document(q, k) & (weft.mask(ask) | weft.document(k, q)) & weft.block_window((7, 7), grid=(14, 14))
    operands, masks = ["first"], [None]
    assert pattern.lower(operands, masks) == (
        "#attn.and<#attn.document<queryIds = 1, keyIds = 2>, #attn.or<#attn.mask<1>, "
        "#attn.document<queryIds = 2, keyIds = 1>>, #attn.block_window<[7, 7], grid = [14, 14]>>"
    )
    assert operands[0] == "first" and operands[1] is q and operands[2] is k and len(operands) == 3
    assert masks == [None, (ask, PAIR)]


def test_what_masks_are_given():
    """By shifts and transposes around it, whose indices a mask is given, and which may lie outside of the sequence."""
    _, _, n, m = PAIR
    mask = weft.mask(lambda b, h, n, m: n >= m)
    seen = {
        mask.transpose(): (m, n),
        mask.shift(3): (n, m - 3),
        mask.transpose().shift(3): (m - 3, n),
        mask.shift(3).transpose(): (m, n - 3),
        (~mask & weft.causal()).shift(-2): (n, m - 2),
        weft.per_head([mask.shift(1)]): (n, m - 1),
    }
    for pattern, expected in seen.items():
        masks = []
        pattern.lower([], masks)
        assert masks[0][1][2:] == expected
    assert [index.moved for index in (n, n - 1)] == [False, True] and (m - 1).axis == 3


def test_values():
    assert weft.causal() == weft.causal() and hash(weft.window(1, 2)) == hash(weft.window(1, 2))
    assert weft.window(1, 2) != weft.window(2, 1)
    ids = np.zeros(4, np.int32)
    assert weft.document(ids, ids) == weft.document(ids, ids) != weft.document(ids, ids.copy())
    assert repr(~(weft.causal() & weft.window(3, None)).shift(1)) == "~(weft.causal() & weft.window(3, None)).shift(1)"
    assert ~~weft.causal() == weft.causal() == weft.causal().transpose().transpose()
    with pytest.raises(AttributeError):
        weft.causal()._parts = ()


def spans(lower, upper):
    return weft.span(*(np.array(x, np.int32)[None, None] for x in (lower, upper, [0, 0, 0], [0, 0, 0])))


ERRORS = [
    (lambda: weft.window("a", 1), "expected 'left' of weft.window to be an integer, but got 'str'"),
    (lambda: weft.strided(0), "expected 'step' of weft.strided to be from 1 to 1073741824, but got 0"),
    (lambda: weft.block_window((7, 7)), "expected a grid for a window of two sizes"),
    (lambda: weft.block_window((7, 7, 7)), "expected 1 or 2 sizes for 'w' of weft.block_window, but got 3"),
    (lambda: weft.neighbourhood(8, 5, 2), "expected kernel * dilation to be at most the axis' size 8, but got 5 * 2"),
    (lambda: weft.document(3, 4), "expected 'q_ids' of weft.document to be an array, but got 'int'"),
    (
        lambda: weft.blocks(np.zeros((2, 2)), np.zeros(2), block=4),
        "expected 4 axes for 'index' of weft.blocks, but got 2",
    ),
    (
        lambda: weft.span(np.zeros((1, 1, 4)), np.zeros((1, 4)), np.zeros((1, 1, 4)), np.zeros((1, 1, 4))),
        "expected 3 axes for 'upper' of weft.span, but got 2",
    ),
    (
        lambda: spans([0, 0, 0], [0, 2, 1]).matrix(3),
        "expected 'upper' never to fall along the sequence, but got 2 before 1",
    ),
    (lambda: spans([0, 0, 0], [0, 2, 4]).matrix(3), "expected 'upper' from 0 to 3, but got 4"),
    (lambda: spans([0, 0, 0], [0, 2, 3]).matrix(4, 3), "expected 'lower' of [1, 1, 4], or of heads"),
    (lambda: weft.mask(3), "expected a function of (b, h, n, m), but got 'int'"),
    (lambda: weft.per_head([]), "expected at least one pattern for weft.per_head"),
    (lambda: weft.per_head([3]), "expected patterns for weft.per_head, but got 'int'"),
    (lambda: bool(weft.causal()), "expected a truth, but got a pattern"),
    (lambda: weft.causal().matrix(-1), "expected 'n' of weft.matrix to be from 0"),
    (lambda: weft.causal().blocks_summary(4, 4, 0, 2), "expected 'bm' of weft.blocks_summary to be from 1"),
    (lambda: weft.document(np.zeros(4), np.zeros(4)).matrix(4), "expected integers or truths"),
    (lambda: weft.document(np.zeros(4, int), np.zeros(5, int)).matrix(4), "expected key ids of 4 tokens"),
    (lambda: weft.mask(lambda b, h, n, m: n + m).matrix(4), "expected a truth from the mask, but got int64"),
    (lambda: weft.mask(lambda b, h, n, m: n > 1 and m > 1).matrix(4), "expected a truth from the mask, but it raised"),
    (
        lambda: weft.per_head([weft.causal()] * 2).__and__(weft.per_head([weft.full()] * 3)).matrix(4),
        "expected a pattern for each of 3 heads, but got 2",
    ),
]


@pytest.mark.parametrize("make, message", ERRORS, ids=[m[:40] for _, m in ERRORS])
def test_errors(make, message):
    with pytest.raises(weft.CompilationError) as caught:
        make()
    assert message in str(caught.value)
    assert "test_patterns.py" in str(caught.value)  # at the user's line


def test_patterns_combine_with_patterns_only():
    with pytest.raises(TypeError):
        weft.causal() & 3
