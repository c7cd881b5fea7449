# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Philox against its published known answers and a reference in Python's integers, and the distributions made of it."""

import numpy as np
import weft
import weft.language as wl

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")

# kat_vectors of Random123, for philox4x32 with 10 rounds: counter, key, result
KNOWN = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
WORDS = {
    32: (0x9E3779B9, 0xBB67AE85, 0xD2511F53, 0xCD9E8D57),
    64: (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0xD2E7470EE14C6C93, 0xCA5A826395121157),
}


def reference(counter, key, bits=32, rounds=10):
    """Philox as the paper defines it: a round multiplies two words, and mixes halves, the others and the key."""
    low_mask = (1 << bits) - 1
    add_a, add_b, mul_a, mul_b = WORDS[bits]
    (a, b, c, d), (k, l) = counter, key
    for _ in range(rounds):
        first, second = a * mul_a, c * mul_b
        a, b, c, d = (second >> bits) ^ b ^ k, second & low_mask, (first >> bits) ^ d ^ l, first & low_mask
        k, l = (k + add_a) & low_mask, (l + add_b) & low_mask
    return [a, b, c, d]


def test_the_reference_has_the_known_answers():
    for counter, key, result in KNOWN:
        assert reference(counter, key) == result


@weft.jit
def words(seed, c, out, N: wl.constexpr, ROUNDS: wl.constexpr):
    at = wl.arange(0, N)
    found = wl.philox(
        seed, wl.load(c + at), wl.load(c + N + at), wl.load(c + 2 * N + at), wl.load(c + 3 * N + at), ROUNDS
    )
    for i in wl.static_range(4):
        wl.store(out + i * N + at, found[i])


def test_words_have_the_known_answers():
    n = 16
    for counter, key, result in KNOWN:
        c = np.repeat(np.array(counter, np.uint32)[:, None], n, 1)
        out = np.zeros((4, n), np.uint32)
        words[1,](np.uint64(key[1] << 32 | key[0]), c, out, N=n, ROUNDS=10)
        assert out.T.tolist() == [result] * n


def test_words_of_random_counters():
    for bits, dtype in ((32, np.uint32), (64, np.uint64)):
        for rounds in (10, 7):
            n = 32
            c = (
                rng.integers(0, 1 << bits, (4, n), dtype=dtype, endpoint=False)
                if bits == 32
                else rng.integers(0, (1 << 64) - 1, (4, n), dtype=dtype)
            )
            seed = int(rng.integers(1 << 62))
            out = np.zeros((4, n), dtype)
            words[1,](seed, c, out, N=n, ROUNDS=rounds)
            key = [seed & 0xFFFFFFFF, seed >> 32] if bits == 32 else [seed, 0]
            for column, got in zip(c.T.tolist(), out.T.tolist(), strict=True):
                assert got == reference(column, key, bits, rounds)


@weft.jit
def draw(seed, offsets, integers, uniform, normal, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    places = wl.load(offsets + at)
    wl.store(integers + at, wl.randint(seed, places))
    wl.store(uniform + at, wl.rand(seed, places))
    wl.store(normal + at, wl.randn(seed, places))


def test_distributions():
    n, seed = 4096, int(rng.integers(1 << 31))
    offsets = np.arange(n, dtype=np.int64) + (1 << 33)
    integers, uniform, normal = np.zeros(n, np.uint32), np.zeros(n, np.float32), np.zeros(n, np.float32)
    draw[n // 512,](seed, offsets, integers, uniform, normal, N=512)
    made = [reference([int(o) & 0xFFFFFFFF, int(o) >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]) for o in offsets]
    assert integers.tolist() == [words[0] for words in made]

    def spread(word):
        signed = np.array(word, np.uint32).view(np.int32)
        return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10)

    first, second = (spread([words[i] for words in made]) for i in (0, 1))
    np.testing.assert_array_equal(uniform, first)
    assert uniform.min() >= 0
    assert uniform.max() < 1
    exact = np.sqrt(-2 * np.log(np.maximum(first, 1e-7).astype(float))) * np.cos(
        6.283185307179586 * second.astype(float)
    )
    np.testing.assert_allclose(normal, exact, atol=1e-5)
    assert abs(normal.mean()) < 5 / np.sqrt(n)
    assert abs(normal.std() - 1) < 0.1


@weft.jit
def four(seed, out, N: wl.constexpr):
    at = wl.arange(0, N)
    a = wl.randint4x(seed, at)
    b = wl.rand4x(seed, at)
    c = wl.randn4x(seed, at)
    same = wl.uint_to_uniform_float(a[2]) == b[2]
    wl.store(out + at, same.to(wl.float32))
    wl.store(out + N + at, c[3])


def test_four_at_a_time():
    out = np.zeros((2, 64), np.float32)
    four[1,](7, out, N=64)
    assert (out[0] == 1).all()
    assert 0.5 < out[1].std() < 1.5
