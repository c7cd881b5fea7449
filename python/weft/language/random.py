# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random numbers by counting: Philox4x32-10 and its form of 64 bits (Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", SC 2011). The same bits as Triton's for the same seed and offset.

    noise = wl.randn(seed, offsets)
"""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import cast, convert, reread
from .emit import builtin
from .literals import is_number, scalar_constant, to_tensor
from .maths import cos, log, maximum, sin, sqrt, umulhi, where
from .operators import add, compare, invert, mul, shr, xor
from .shapes import constant_int
from .types import float32, int32, int64, uint32, uint64, unwrap
from .value import tensor

# Weyl increments of the key and multipliers of the rounds, for words of 32 and of 64 bits (table 2 of the paper).
_WORDS = {
    32: (uint32, 0x9E3779B9, 0xBB67AE85, 0xD2511F53, 0xCD9E8D57),
    64: (uint64, 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B, 0xD2E7470EE14C6C93, 0xCA5A826395121157),
}
ROUNDS = 10
_TWO_PI = 6.283185307179586


def _integer(value: Any, what: str, name: str) -> tensor:
    found = to_tensor(value, f"{what} of '{name}'")
    if not found.dtype.is_int() or found.dtype.is_bool():
        raise errors.needs_integers(f"{what} of {name}", found.dtype, "cast it with .to(wl.int32)")
    return found


def _word(value: Any, kind: Any) -> tensor:
    """A value's low bits as a word."""
    value = unwrap(value)
    if is_number(value):
        return scalar_constant(int(value) & (2**kind.primitive_bitwidth - 1), kind)
    return convert(value, kind)


@builtin
def philox_impl(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: int = ROUNDS) -> tuple[tensor, ...]:
    """The four words of a counter after rounds of Philox, under a key of two words; uint32 or uint64."""
    width = to_tensor(c0, "a word of 'philox_impl'").dtype.primitive_bitwidth
    if width not in _WORDS:
        raise errors.needs_integers("philox_impl", to_tensor(c0).dtype, "pass uint32 or uint64 words")
    kind, key_a, key_b, round_a, round_b = _WORDS[width]
    a, b = scalar_constant(round_a, kind), scalar_constant(round_b, kind)
    words = [_word(each, kind) for each in (c0, c1, c2, c3)]
    low, high = _word(k0, kind), _word(k1, kind)
    for _ in range(constant_int(n_rounds, "'n_rounds'")):
        first, second = words[0], words[2]
        words = [
            xor(xor(umulhi(b, second), words[1]), low),
            mul(b, second),
            xor(xor(umulhi(a, first), words[3]), high),
            mul(a, first),
        ]
        low, high = add(low, scalar_constant(key_a, kind)), add(high, scalar_constant(key_b, kind))
    return tuple(words)


@builtin
def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: int = ROUNDS) -> tuple[tensor, ...]:
    """Four random words for a counter of four words of 32 or 64 bits, under a seed of 64 bits; unsigned."""
    counter = [_integer(each, "a word of the counter", "philox") for each in (c0, c1, c2, c3)]
    width = counter[0].dtype.primitive_bitwidth
    if width not in _WORDS:
        raise errors.needs_integers("the counter of philox", counter[0].dtype, "cast it to 32 or 64 bits")
    key = convert(_integer(seed, "the seed", "philox"), uint64)
    words = [reread(each, _WORDS[width][0]) for each in counter]
    if width == 64:
        return philox_impl(*words, key, scalar_constant(0, uint64), n_rounds)
    return philox_impl(*words, convert(key, uint32), convert(shr(key, 32), uint32), n_rounds)


@builtin
def randint4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tuple[tensor, ...]:
    """Four blocks of random uint32, one of each counter: the cheapest way to many.

    seed: a scalar integer, of which 64 bits count. offset: a block of integers of 32 or 64 bits, the counters.
    """
    places = _integer(offset, "the offset", "randint4x")
    low = convert(places, uint32)
    none = mul(low, scalar_constant(0, uint32))
    high = convert(shr(places, 32), uint32) if places.dtype.primitive_bitwidth > 32 else none
    return philox(seed, low, high, none, none, n_rounds)


@builtin
def randint(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tensor:
    """A block of random uint32, one for each offset. (Triton's text says int32; its values are unsigned too.)"""
    return randint4x(seed, offset, n_rounds)[0]


@builtin
def uint_to_uniform_float(x: Any) -> tensor:
    """Integers of 32 or 64 bits as float32 evenly spread over [0, 1)."""
    value = _integer(x, "the argument", "uint_to_uniform_float")
    wide = value.dtype.primitive_bitwidth == 64
    signed = reread(value, int64 if wide else int32)
    # (2^23 - 1) / 2^23 / 2^31 as float32: the greatest factor that keeps the product below 1
    scale = 1.0842020432385337e-19 if wide else 4.6566127342e-10
    folded = where(compare("<", signed, 0), invert(signed), signed)
    return mul(cast(folded, float32), scalar_constant(scale, float32))


@builtin
def rand(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tensor:
    """A block of random float32 evenly spread over [0, 1), one for each offset.

    wl.store(y + at, wl.rand(42, at))
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@builtin
def rand4x(seed: Any, offsets: Any, n_rounds: int = ROUNDS) -> tuple[tensor, ...]:
    """Four blocks of random float32 evenly spread over [0, 1)."""
    return tuple(uint_to_uniform_float(each) for each in randint4x(seed, offsets, n_rounds))


@builtin
def pair_uniform_to_normal(u1: Any, u2: Any) -> tuple[tensor, tensor]:
    """Two independent numbers of the standard normal distribution, of two evenly spread over [0, 1) (Box and
    Muller)."""
    angle = mul(scalar_constant(_TWO_PI, float32), u2)
    radius = sqrt(mul(scalar_constant(-2.0, float32), log(maximum(1.0e-7, u1))))
    return mul(radius, cos(angle)), mul(radius, sin(angle))


@builtin
def randn(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tensor:
    """A block of random float32 of the standard normal distribution, one for each offset."""
    first, second, _, _ = rand4x(seed, offset, n_rounds)
    return pair_uniform_to_normal(first, second)[0]


@builtin
def randn4x(seed: Any, offset: Any, n_rounds: int = ROUNDS) -> tuple[tensor, ...]:
    """Four blocks of random float32 of the standard normal distribution."""
    u = rand4x(seed, offset, n_rounds)
    return (*pair_uniform_to_normal(u[0], u[1]), *pair_uniform_to_normal(u[2], u[3]))


__all__ = [
    "pair_uniform_to_normal",
    "philox",
    "philox_impl",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "randn4x",
    "uint_to_uniform_float",
]
