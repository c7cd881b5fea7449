# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What kernels compute, against NumPy: the language's meaning where it is easy to get wrong. On the default device."""

import operator
import re

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
few = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def run(kernel, *args, grid=(1,), **options):
    kernel[grid](*args, **options)


def bf16(values):
    """float32 rounded to bfloat16, as bits; to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def drawn(name, seed, size=64):
    """Numbers of a type: any bits, small ones, and those at its ends, of floats infinities and NaN too."""
    random, kind = np.random.default_rng(seed), np.dtype(name)
    any_bits = random.integers(0, 256, size * kind.itemsize, np.uint8).view(kind)
    small = random.integers(0, 9, size).astype(kind) - kind.type(4 if kind.kind != "u" else 0)
    if kind.kind == "f":
        ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, np.finfo(kind).tiny, np.finfo(kind).max], kind)
    else:
        ends = np.array([np.iinfo(kind).min, np.iinfo(kind).max, np.iinfo(kind).max - 1, 0, 1], kind)
    return np.choose(random.integers(0, 4, size), [any_bits, any_bits, small, random.choice(ends, size)])


def number_arrays(name):
    return st.integers(0, 2**32 - 1).map(lambda seed: drawn(name, seed))


# ---- Integers


@weft.jit
def divide(x, y, quotient, rest, N: wl.constexpr):
    at = wl.arange(0, N)
    a, b = wl.load(x + at), wl.load(y + at)
    wl.store(quotient + at, a // b)
    wl.store(rest + at, a % b)


@pytest.mark.parametrize("name", INTEGERS)
@few
@given(data=st.data())
def test_division_is_cs(name, data):
    a, b = data.draw(number_arrays(name)), data.draw(number_arrays(name))
    b[b == 0] = 1
    if np.dtype(name).kind == "i":
        b[(b == -1) & (a == np.iinfo(name).min)] = 1
    quotient, rest = np.empty_like(a), np.empty_like(a)
    run(divide, a, b, quotient, rest, N=64)
    expected = [abs(int(p)) // abs(int(q)) * (-1 if (p < 0) != (q < 0) else 1) for p, q in zip(a, b, strict=True)]
    assert quotient.tolist() == expected
    assert rest.tolist() == [int(p) - int(q) * e for p, q, e in zip(a, b, expected, strict=True)]


@weft.jit
def arithmetic(x, y, results, N: wl.constexpr):
    at = wl.arange(0, N)
    a, b = wl.load(x + at), wl.load(y + at)
    wl.store(results + at, a + b)
    wl.store(results + N + at, a - b)
    wl.store(results + 2 * N + at, a * b)
    wl.store(results + 3 * N + at, a & b)
    wl.store(results + 4 * N + at, a | b)
    wl.store(results + 5 * N + at, a ^ b)
    wl.store(results + 6 * N + at, ~a)
    wl.store(results + 7 * N + at, wl.minimum(a, b))
    wl.store(results + 8 * N + at, wl.maximum(a, b))
    wl.store(results + 9 * N + at, -a)


@pytest.mark.parametrize("name", INTEGERS)
@few
@given(data=st.data())
def test_integer_arithmetic_wraps(name, data):
    a, b = data.draw(number_arrays(name)), data.draw(number_arrays(name))
    results = np.full((10, 64), 77, name)
    run(arithmetic, a, b, results, N=64)
    with np.errstate(over="ignore"):
        expected = [a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, np.minimum(a, b), np.maximum(a, b), -a]
    assert np.array_equal(results, np.stack(expected))


@weft.jit
def compare(x, y, results, N: wl.constexpr):
    at = wl.arange(0, N)
    a, b = wl.load(x + at), wl.load(y + at)
    wl.store(results + at, a < b)
    wl.store(results + N + at, a <= b)
    wl.store(results + 2 * N + at, a > b)
    wl.store(results + 3 * N + at, a >= b)
    wl.store(results + 4 * N + at, a == b)
    wl.store(results + 5 * N + at, a != b)


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
@few
@given(data=st.data())
def test_comparisons(name, data):
    """Signed, unsigned, and floats with infinities and values that are no number."""
    a, b = data.draw(number_arrays(name)), data.draw(number_arrays(name))
    b[::3] = a[::3]
    results = np.empty((6, 64), np.bool_)
    run(compare, a, b, results, N=64)
    operators = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
    assert np.array_equal(results, np.stack([op(a, b) for op in operators]))


@weft.jit
def shift(x, y, left, right, N: wl.constexpr):
    at = wl.arange(0, N)
    a, b = wl.load(x + at), wl.load(y + at)
    wl.store(left + at, a << b)
    wl.store(right + at, a >> b)


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts(name, seed):
    rng = np.random.default_rng(seed)
    info = np.iinfo(name)
    a = rng.integers(info.min, info.max, 64, name, endpoint=True)
    b = rng.integers(0, info.bits, 64).astype(name)
    left, right = np.empty_like(a), np.empty_like(a)
    run(shift, a, b, left, right, N=64)
    assert np.array_equal(left, a << b) and np.array_equal(right, a >> b)


def test_mixed_widths_and_signs():
    @weft.jit
    def kernel(a, b, wide, unsigned, N: wl.constexpr):
        at = wl.arange(0, N)
        x, y = wl.load(a + at), wl.load(b + at)
        wl.store(wide + at, x.to(wl.int64) * y)
        wl.store(unsigned + at, (x + y) // 2)

    a = np.array([-5, -1, 0, 7] * 4, np.int32)
    b = np.array([1, 3, 2**32 - 1, 2**31] * 4, np.uint32)
    wide, unsigned = np.empty(16, np.int64), np.empty(16, np.uint32)
    run(kernel, a, b, wide, unsigned, N=16)
    assert np.array_equal(wide, a.astype(np.int64) * b)
    assert np.array_equal(unsigned, (a.view(np.uint32) + b) // 2)


# ---- Floats


@weft.jit
def convert(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at).to(y.dtype.element_ty))


@pytest.mark.parametrize("target", INTEGERS + FLOATS)
@pytest.mark.parametrize("source", INTEGERS + FLOATS)
def test_casts(source, target, seed):
    rng = np.random.default_rng(seed)
    low = -100 if np.dtype(source).kind != "u" and np.dtype(target).kind != "u" else 0
    x = (rng.random(64) * (100 - low) + low).astype(source)
    y = np.empty(64, target)
    run(convert, x, y, N=64)
    assert np.array_equal(y, x.astype(target))


@weft.jit
def round_to_bf16(x, y: wl.pointer_type(wl.bfloat16), z, N: wl.constexpr):
    at = wl.arange(0, N)
    narrow = wl.load(x + at).to(wl.bfloat16)
    wl.store(y + at, narrow)
    wl.store(z + at, narrow + narrow * 0.5)


def test_bf16_rounds_to_nearest_even(seed):
    x = np.random.default_rng(seed).standard_normal(256, dtype=np.float32)
    x[:4] = [1 + 2.0**-8, 1 + 3 * 2.0**-8, np.inf, -0.0]
    y, z = np.empty(256, np.uint16), np.empty(256, np.float32)
    run(round_to_bf16, x, y, z, N=256)
    assert np.array_equal(y, bf16(x))
    narrow = from_bf16(y)
    assert np.array_equal(z, from_bf16(bf16(narrow + from_bf16(bf16(narrow * np.float32(0.5))))))


def nearest(value: int, places: int) -> float:
    """The float of so many places that is nearest to an integer, of two the one whose last place is even."""
    drop = max(abs(value).bit_length() - places, 0)
    kept, rest = divmod(abs(value), 1 << drop)
    half = (1 << drop) >> 1
    kept += rest > half or (rest == half and bool(drop) and kept % 2 == 1)
    return float(np.copysign(float(kept << drop), value))


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(("target", "places"), [("bfloat16", 8), ("float16", 11), ("float32", 24)])
def test_integers_are_rounded_once(source, target, places, seed):
    """Beside the middles between two floats, which a rounding on the way would reach."""
    rng = np.random.default_rng(seed)
    facts = np.iinfo(source)
    drawn = [int(rng.integers(0, 1 << 62)) >> int(rng.integers(0, 62)) for _ in range(200)]
    middles = [(2 * m + 1) << s for m, s in zip(rng.integers(128, 256, 104).tolist(), range(104), strict=True)]
    numbers = [n + d for n in [*drawn, *middles] for d in (-1, 0, 1)] * 2
    signs = [1] * (len(numbers) // 2) + [-1 if facts.min else 1] * (len(numbers) // 2)
    values = [n * s for n, s in zip(numbers, signs, strict=True) if facts.min <= n * s <= facts.max]
    values = (values * 2048)[:2048]
    y = np.empty(2048, {"bfloat16": np.uint16}.get(target, target))
    run(narrow_to, np.array(values, source), y, TYPE=getattr(wl, target), N=2048)
    given = from_bf16(y) if target == "bfloat16" else y
    wanted = np.array([nearest(value, places) for value in values])
    with np.errstate(over="ignore"):
        wanted = wanted.astype(np.float16) if target == "float16" else wanted
    assert np.array_equal(given.astype(np.float64), wanted.astype(np.float64))


@weft.jit
def narrow_to(x, y, TYPE: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    narrow = wl.load(x + at).to(TYPE)
    wl.store(y + at, narrow.to(wl.uint16, bitcast=True) if wl.bfloat16 == TYPE else narrow)


@weft.jit
def through_8_bits(x, y, mask, TYPE: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    value = wl.load(x + at)
    wl.store(y + at, value.to(TYPE).to(wl.int32))
    wl.store(mask + at, (value > 3).to(TYPE).to(wl.uint8))


@pytest.mark.parametrize("size", [1, 64])
@pytest.mark.parametrize("source", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize(("target", "places", "most"), [("float8e4nv", 4, 448), ("float8e5", 3, 57344)])
def test_integers_and_8_bit_floats(source, target, places, most, size, seed):
    facts = np.iinfo(source)
    x = np.random.default_rng(seed).integers(max(facts.min, -most), min(facts.max, most) + 1, size).astype(source)
    y, mask = np.full(size, 77, np.int32), np.full(size, 77, np.uint8)
    run(through_8_bits, x, y, mask, TYPE=getattr(wl, target), N=size)
    assert y.tolist() == [int(nearest(int(value), places)) for value in x]
    assert mask.tolist() == (x > 3).tolist()


@weft.jit
def widened(x, y, TYPE: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at).to(TYPE).to(wl.float32))


@pytest.mark.parametrize("machine", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("source", ["int8", "uint8"])
@pytest.mark.parametrize("target", ["float16", "bfloat16"])
def test_every_integer_of_8_bits(source, target, machine):
    """Four of a word at once."""
    x, y = np.arange(256).astype(source), np.full(256, 77, np.float32)
    signature = f"x:*{'i' if source == 'int8' else 'u'}8:16, y:*fp32:16, N=256"
    made = widened.compile(signature, {"TYPE": getattr(wl, target)}, machine, num_warps=2)
    report = weft.simulator.launch(made.ptx, made.name, 1, 64, [x, y], shared=made.shared_bytes)
    assert report.findings == []
    assert np.array_equal(y, x.astype(np.float32))
    if (source, target) != ("uint8", "bfloat16"):
        assert "cvt.rn.f16" not in made.ptx and "cvt.rn.bf16" not in made.ptx


@weft.jit
def magnitudes(x, y, z, N: wl.constexpr):
    at = wl.arange(0, N)
    value = wl.abs(wl.load(x + at))
    wl.store(y + at, value)
    wl.store(z + at, value.to(wl.float32))


@pytest.mark.parametrize("machine", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("kind", "begin"),
    [(kind, begin) for kind in ("fp16", "bf16") for begin in range(4)] + [("fp8e4nv", 0), ("fp8e5", 0)],
)
def test_every_absolute_value_of_narrow_floats(kind, begin, machine):
    """The bits without the sign, of what is no number, too; and the same of float32."""
    bits, sign, count = (np.uint8, 0x80, 256) if kind.startswith("fp8") else (np.uint16, 0x8000, 1 << 14)
    x = (np.arange(count) * 4 + begin if count > 256 else np.arange(256)).astype(bits)
    y, z = np.full(count, 77, bits), np.full(count, 77, np.float32)
    made = magnitudes.compile(f"x:*{kind}:16, y:*{kind}:16, z:*fp32:16, N={count}", {}, machine, num_warps=4)
    report = weft.simulator.launch(made.ptx, made.name, 1, 128, [x, y, z], shared=made.shared_bytes)
    assert report.findings == []
    assert np.array_equal(y, x & ~bits(sign))
    if count > 256:
        wide = (y.astype(np.uint32) << 16).view(np.float32) if kind == "bf16" else y.view(np.float16).astype(np.float32)
        assert np.array_equal(z, wide, equal_nan=True)
        assert "cvt.rn" not in made.ptx


@weft.jit
def of_halves(x, y, z, N: wl.constexpr):
    at = wl.arange(0, N)
    a, b = wl.load(x + at), wl.load(y + at)
    wl.store(z + at, a + b)
    wl.store(z + N + at, a - b)
    wl.store(z + 2 * N + at, a * b)
    wl.store(z + 3 * N + at, -a)
    wl.store(z + 4 * N + at, wl.maximum(a, b))
    wl.store(z + 5 * N + at, wl.minimum(a, wl.full((N,), 0.5, a.dtype)))


@pytest.mark.parametrize("machine", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("size", [1024, 96, 32])
@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_arithmetic_of_halves(kind, size, machine, seed):
    """Rounded once, of numbers of all sizes, infinities and none; by pairs where a thread has neighbours."""
    random = np.random.default_rng(seed)
    x, y = (random.integers(0, 1 << 16, size).astype(np.uint16) for _ in range(2))
    special = [0, 0x8000, 0x7C00, 0x7F80, 0xFF80, 0x7FFF, 1, 0x8001]
    x[:8], y[3:11] = special, special
    z = np.full(6 * size, 77, np.uint16)
    made = of_halves.compile(f"x:*{kind}:16, y:*{kind}:16, z:*{kind}:16, N={size}", {}, machine, num_warps=2)
    report = weft.simulator.launch(made.ptx, made.name, 1, 64, [x, y, z], shared=made.shared_bytes)
    assert report.findings == []
    wide = from_bf16 if kind == "bf16" else lambda bits: bits.view(np.float16).astype(np.float32)
    a, b, found = wide(x), wide(y), wide(z).reshape(6, size)
    with np.errstate(all="ignore"):
        sums = [a + b, a - b, a * b, -a, np.fmax(a, b), np.fmin(a, np.float32(0.5))]
        exact = [wide(bf16(v) if kind == "bf16" else v.astype(np.float16).view(np.uint16)) for v in sums]
    for ours, theirs in zip(found, exact, strict=True):
        assert np.array_equal(ours, theirs, equal_nan=True)
    if size == 1024:
        assert set(re.findall(r"\b((?:add|sub|mul|fma|max|min)\.[\w.]*f16\w*)", made.ptx)) <= {
            f"{name}.{kind.replace('fp', 'f')}x2" for name in ("add", "sub", "mul", "max", "min", "fma.rn")
        }


FUNCTIONS = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "abs": np.abs,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


@weft.jit
def apply(x, y, FUNCTION: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, getattr(wl, FUNCTION)(wl.load(x + at)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, seed):
    x = (np.random.default_rng(seed).random(256) * 8 + 0.01).astype(np.float32)
    y = np.empty_like(x)
    run(apply, x, y, FUNCTION=name, N=256)
    exact = FUNCTIONS[name](x.astype(np.float64))
    assert np.all(np.abs(y - exact) <= 4e-6 * np.maximum(np.abs(exact), 0.25))


def test_where_minimum_and_maximum_pass_over_nan():
    @weft.jit
    def kernel(x, y, z, N: wl.constexpr):
        at = wl.arange(0, N)
        a, b = wl.load(x + at), wl.load(y + at)
        wl.store(z + at, wl.maximum(a, b))
        wl.store(z + N + at, wl.minimum(a, b))
        wl.store(z + 2 * N + at, wl.where(at % 2 == 0, a, -1))
        wl.store(z + 3 * N + at, wl.clamp(b, -0.5, 0.5))

    x = np.array([1, np.nan, -2, np.inf] * 4, np.float32)
    y = np.array([np.nan, 3, 5, -np.inf] * 4, np.float32)
    z = np.empty((4, 16), np.float32)
    run(kernel, x, y, z, N=16)
    assert np.array_equal(z[0], np.fmax(x, y)) and np.array_equal(z[1], np.fmin(x, y))
    assert np.array_equal(z[2], np.where(np.arange(16) % 2 == 0, x, -1), equal_nan=True)
    finite = ~np.isnan(y)
    assert np.array_equal(z[3][finite], np.clip(y, -0.5, 0.5)[finite])


# ---- Memory


def test_masks_and_other():
    @weft.jit
    def kernel(x, y, n, N: wl.constexpr):
        at = wl.arange(0, N)
        wl.store(y + at, wl.load(x + at, mask=at < n, other=-7), mask=at < n + 2)

    x, y = np.arange(16, dtype=np.int32), np.full(16, 99, np.int32)
    run(kernel, x[:5], y, 5, N=16)
    assert y.tolist() == [0, 1, 2, 3, 4, -7, -7] + [99] * 9


def test_strided_two_dimensional_access(seed):
    @weft.jit
    def kernel(x, y, stride_x, stride_y, rows, columns, M: wl.constexpr, N: wl.constexpr):
        i, j = wl.arange(0, M)[:, None], wl.arange(0, N)[None, :]
        inside = (i < rows) & (j < columns)
        wl.store(y + j * stride_y + i, wl.load(x + i * stride_x + j, mask=inside), mask=inside)

    x = np.random.default_rng(seed).standard_normal((13, 50), dtype=np.float32)
    y = np.zeros((50, 13), np.float32)
    run(kernel, x, y, 50, 13, 13, 50, M=16, N=64)
    assert np.array_equal(y, x.T)


@weft.jit
def numbers_of_all_bits(x, y, VALUE: wl.constexpr, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    kind = x.dtype.element_ty
    wl.store(y + at, wl.load(x + at, mask=at < 1, other=VALUE))
    wl.store(y + BLOCK + at, wl.full((BLOCK,), VALUE, kind))
    wl.store(y + 2 * BLOCK, VALUE)


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ("int32", 0xFFFFFFFF, -1),
        ("int32", 0x80000000, -(2**31)),
        ("uint32", -1, 0xFFFFFFFF),
        ("int8", 0xF0, -16),
        ("uint8", -128, 128),
        ("int64", 2**64 - 2, -2),
        ("uint64", -1, 2**64 - 1),
        ("int16", 7, 7),
    ],
)
def test_numbers_fill_the_bits_of_what_they_are_stored_to(kind, value, held):
    x, y = np.zeros(1, kind), np.zeros(17, kind)
    numbers_of_all_bits[(1,)](x, y, VALUE=value, BLOCK=8)
    assert y.tolist() == [0] + [held] * 16


@pytest.mark.parametrize(("kind", "value"), [("int8", 256), ("uint8", -129), ("int32", 2**32)])
def test_numbers_of_more_bits_do_not_fit(kind, value):
    with pytest.raises(weft.CompilationError, match=f"a number that fits {kind}, but got {value}"):
        numbers_of_all_bits[(1,)](np.zeros(1, kind), np.zeros(17, kind), VALUE=value, BLOCK=8)


def test_scalar_loads_and_stores():
    @weft.jit
    def kernel(x, y, i):
        wl.store(y + i, wl.load(x + i) * 2 + wl.num_programs(0) * 100)

    x, y = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    run(kernel, x, y, 3, grid=(5,))
    assert y.tolist() == [0, 0, 0, 506, 0, 0, 0, 0]


def test_atomics(seed):
    @weft.jit
    def kernel(x, total, most, least, count, N: wl.constexpr):
        at = wl.program_id(0) * N + wl.arange(0, N)
        value = wl.load(x + at)
        wl.atomic_add(total + at % 4, value)
        wl.atomic_max(most, wl.max(value, 0))
        wl.atomic_min(least, wl.min(value, 0))
        wl.atomic_add(count + at * 0, 1, mask=value > 0)

    x = np.random.default_rng(seed).integers(-100, 100, 512).astype(np.float32)
    total, most, least, count = (
        np.zeros(4, np.float32),
        np.full(1, -np.inf, np.float32),
        np.full(1, np.inf, np.float32),
        np.zeros(1, np.int32),
    )
    run(kernel, x, total, most, least, count, grid=(4,), N=128)
    assert np.array_equal(total, x.reshape(-1, 4).sum(0))
    assert (most[0], least[0], count[0]) == (x.max(), x.min(), (x > 0).sum())


@weft.jit
def add_by_atomics(x, y, old, n, shift, K: wl.constexpr, N: wl.constexpr, M: wl.constexpr):
    row, column = wl.arange(0, N)[:, None], wl.arange(0, M)[None, :]
    mask = (row < n) & (column < K)
    before = wl.atomic_add(y + shift + row * K + column, wl.load(x + row * K + column, mask=mask), mask=mask)
    wl.atomic_add(y + shift + row * K + column, 1.0, mask=mask, sem="relaxed")
    wl.store(old + row * K + column, before, mask=mask)


@pytest.mark.parametrize("device", ["simulator", "simulator:sm_90a"])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("columns, shift", [(64, 0), (64, 1), (48, 0), (33, 0)])
def test_atomics_of_neighbours(columns, shift, kind, device, seed, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("WEFT_DEVICE", device)
    kind, numbers = getattr(torch, kind), torch.Generator().manual_seed(seed)
    x = torch.randint(-8, 8, (13, columns), generator=numbers).to(kind)
    start = torch.randint(-8, 8, (13 * columns + shift,), generator=numbers).to(kind)
    y, old = start.clone(), torch.full_like(x, float("nan"))
    run(add_by_atomics, x, y, old, 13, shift, K=columns, N=16, M=64)
    assert torch.equal(old.flatten(), start[shift:])
    assert torch.equal(y[shift:], start[shift:] + x.flatten() + 1)
    assert torch.equal(y[:shift], start[:shift])


# ---- Shapes, reductions, products


@weft.jit
def reduce_all(x, sums, most, where_most, least, products, AXIS: wl.constexpr, M: wl.constexpr, N: wl.constexpr):
    i, j = wl.arange(0, M)[:, None], wl.arange(0, N)[None, :]
    a = wl.load(x + i * N + j)
    at = wl.arange(0, N if AXIS == 0 else M)
    wl.store(sums + at, wl.sum(a, AXIS))
    wl.store(most + at, wl.max(a, AXIS))
    wl.store(where_most + at, wl.argmax(a, AXIS))
    wl.store(least + at, a.min(AXIS))
    wl.store(products + i * N + j, a - wl.max(a, AXIS, keep_dims=True))


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(16, 16), (4, 128), (128, 2), (1, 64), (64, 64)], ids=str)
def test_reductions(shape, axis, warps, seed):
    x = np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float32)
    outs = [np.empty(shape[1 - axis], kind) for kind in (np.float32, np.float32, np.int32, np.float32)]
    rest = np.empty(shape, np.float32)
    run(reduce_all, x, *outs, rest, AXIS=axis, M=shape[0], N=shape[1], num_warps=warps)
    sums, most, where_most, least = outs
    assert (
        np.array_equal(sums, x.sum(axis)) and np.array_equal(most, x.max(axis)) and np.array_equal(least, x.min(axis))
    )
    assert np.array_equal(where_most, x.argmax(axis))
    assert np.array_equal(rest, x - x.max(axis, keepdims=True))


@weft.jit
def both(a, b):
    return a & b


@weft.jit
def either(a, b):
    return a | b


@weft.jit
def decide(x, results, N: wl.constexpr):
    at = wl.program_id(0) * N + wl.arange(0, N)
    truths, mine = wl.load(x + at) != 0, results + wl.program_id(0) * 5
    wl.store(mine, wl.reduce(truths, 0, both).to(wl.int32))
    wl.store(mine + 1, wl.reduce(truths, 0, either).to(wl.int32))
    wl.store(mine + 2, wl.max(truths, 0).to(wl.int32))
    wl.store(mine + 3, wl.min(truths, 0).to(wl.int32))
    wl.store(mine + 4, wl.xor_sum(truths, 0).to(wl.int32))


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("size", [4, 32, 128, 1024])
def test_reductions_of_truths(size, warps, seed):
    """None true, all, one or all but one anywhere, and any."""
    rng, rows = np.random.default_rng(seed), 40
    x = rng.integers(0, 2, (rows, size)).astype(np.int8)
    x[:8], x[8:16] = 0, 1
    for row in range(1, 16):
        x[row, rng.integers(size)] = int(row < 8)
    x[8] = 1
    results = np.full((rows, 5), 9, np.int32)
    run(decide, x, results, grid=(rows,), N=size, num_warps=warps)
    wanted = [x.all(1), x.any(1), x.any(1), x.all(1), x.sum(1) % 2]
    np.testing.assert_array_equal(results, np.stack(wanted, 1))


@weft.jit
def scan_all(x, sums, backwards, AXIS: wl.constexpr, M: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :]
    a = wl.load(x + at)
    wl.store(sums + at, wl.cumsum(a, AXIS))
    wl.store(backwards + at, wl.associative_scan(a, AXIS, wl.maximum, reverse=True))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(8, 8), (2, 256), (128, 4)], ids=str)
def test_scans(shape, axis, seed):
    x = np.random.default_rng(seed).integers(-50, 50, shape).astype(np.int32)
    sums, backwards = np.empty_like(x), np.empty_like(x)
    run(scan_all, x, sums, backwards, AXIS=axis, M=shape[0], N=shape[1])
    assert np.array_equal(sums, x.cumsum(axis))
    assert np.array_equal(backwards, np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis))


@weft.jit
def gather_all(
    x, index, y, rows, AXIS: wl.constexpr, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, L: wl.constexpr
):
    a = wl.load(x + wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :])
    at = wl.arange(0, K)[:, None] * L + wl.arange(0, L)[None, :]
    wl.store(y + at, wl.gather(a, wl.load(index + at), AXIS))
    # One index for a whole row: (7 i + 3) mod M.
    row = wl.broadcast_to((wl.arange(0, M)[:, None] * 7 + 3) % M, M, N)
    picked = a.gather(row, 0)
    wl.store(rows + wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :], picked)


@weft.jit
def gather_rows(x, index, y, M: wl.constexpr, N: wl.constexpr):
    at = wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :]
    wl.store(y + at, wl.gather(wl.load(x + at), wl.load(index + at), 0))


@pytest.mark.parametrize("shape", [(64, 32), (16, 16), (128, 2), (80, 32)], ids=str)
def test_gather_outside_of_the_axis_reads_some_element(shape, seed):
    """Not the memory beside the block: `run` finds none of that, nor of what nobody wrote."""
    random = np.random.default_rng(seed)
    x = random.integers(1, 100, shape).astype(np.float32)
    index = random.integers(-(2**31), 2**31, shape).astype(np.int32)
    index[::2] = random.integers(0, shape[0], index[::2].shape)
    y = np.full(shape, np.nan, np.float32)
    run(gather_rows, x, index, y, M=shape[0], N=shape[1])
    inside = (index >= 0) & (index < shape[0])
    assert np.array_equal(y[inside], np.take_along_axis(x, np.where(inside, index, 0), 0)[inside])
    assert np.isin(y[~inside], [0, *x.flat]).all()


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.float64], ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    "shape, axis, size",
    [((16, 16), 0, 16), ((64, 32), 0, 8), ((4, 64), 0, 128), ((8, 128), 1, 32), ((128, 2), 1, 16), ((1, 64), 1, 64)],
    ids=str,
)
def test_gather(shape, axis, size, dtype, warps, seed):
    random = np.random.default_rng(seed)
    x = random.integers(-100, 100, shape).astype(dtype)
    picked = (size, shape[1]) if axis == 0 else (shape[0], size)
    index = random.integers(0, shape[axis], picked).astype(np.int64 if warps == 4 else np.int32)
    y, rows = np.full(picked, 101, dtype), np.full(shape, 101, dtype)
    run(gather_all, x, index, y, rows, AXIS=axis, M=shape[0], N=shape[1], K=picked[0], L=picked[1], num_warps=warps)
    assert np.array_equal(y, np.take_along_axis(x, index, axis))
    assert np.array_equal(rows, x[(np.arange(shape[0]) * 7 + 3) % shape[0]])


def test_gather_of_a_product(seed):
    """From the layout of a product's result, in a loop, whose next iteration writes what this one reads."""

    @weft.jit
    def kernel(x, y, N: wl.constexpr):
        i, j = wl.arange(0, N)[:, None], wl.arange(0, N)[None, :]
        a = wl.load(x + i * N + j)
        total = wl.zeros((N, N), wl.float32)
        for step in range(1, 4):
            total += wl.gather(wl.dot(a, a) * step, (i + step + j * 0) % N, 0)
        wl.store(y + i * N + j, total)

    N = 32
    x = np.random.default_rng(seed).integers(-3, 4, (N, N)).astype(np.float16)
    y = np.full((N, N), np.nan, np.float32)
    run(kernel, x, y, N=N)
    product = x.astype(np.float32) @ x.astype(np.float32)
    assert np.array_equal(y, sum(step * np.roll(product, -step, 0) for step in (1, 2, 3)))


def test_shape_operations(seed):
    @weft.jit
    def kernel(x, y, N: wl.constexpr):
        at = wl.arange(0, N)
        a = wl.load(x + at)
        wl.store(y + at, wl.trans(a.reshape(4, N // 4)).reshape(N))
        wl.store(y + N + at, wl.permute(a.reshape(2, 4, N // 8), 2, 0, 1).ravel())
        even, odd = wl.split(a.reshape(N // 2, 2))
        wl.store(y + 2 * N + at, wl.cat(even, odd))
        wl.store(y + 3 * N + at, wl.interleave(odd, even))
        wl.store(y + 4 * N + at, (a.reshape(N // 4, 4) + wl.arange(0, 4)[None, :]).ravel())

    x = np.random.default_rng(seed).integers(0, 100, 64).astype(np.int32)
    y = np.empty((5, 64), np.int32)
    run(kernel, x, y, N=64)
    assert np.array_equal(y[0], x.reshape(4, 16).T.ravel())
    assert np.array_equal(y[1], x.reshape(2, 4, 8).transpose(2, 0, 1).ravel())
    assert np.array_equal(y[2], np.concatenate([x[::2], x[1::2]]))
    assert np.array_equal(y[3], np.stack([x[1::2], x[::2]], 1).ravel())
    assert np.array_equal(y[4], (x.reshape(16, 4) + np.arange(4)).ravel())


@weft.jit
def product(a, b, c, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, PRECISION: wl.constexpr):
    i, j, k = wl.arange(0, M), wl.arange(0, N), wl.arange(0, K)
    x = wl.load(a + i[:, None] * K + k[None, :])
    y = wl.load(b + k[:, None] * N + j[None, :])
    wl.store(c + i[:, None] * N + j[None, :], wl.dot(x, y, input_precision=PRECISION))


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
@pytest.mark.parametrize("shape", [(16, 16, 16), (64, 32, 16), (32, 128, 64)], ids=str)
def test_products_of_float32(shape, precision, seed):
    rng = np.random.default_rng(seed)
    M, N, K = shape
    a, b = rng.standard_normal((M, K), dtype=np.float32), rng.standard_normal((K, N), dtype=np.float32)
    c = np.empty((M, N), np.float32)
    run(product, a, b, c, M=M, N=N, K=K, PRECISION=precision)
    exact = a.astype(np.float64) @ b
    relative = np.linalg.norm(c - exact) / np.linalg.norm(exact)
    assert relative < (2.0**-10 if precision == "tf32" else 1e-6)


@pytest.mark.parametrize("shape", [(16, 16, 16), (64, 32, 128), (128, 64, 32)], ids=str)
def test_products_of_float16(shape, seed):
    rng = np.random.default_rng(seed)
    M, N, K = shape
    a, b = rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)
    c = np.empty((M, N), np.float32)
    run(product, a, b, c, M=M, N=N, K=K, PRECISION=None)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert np.linalg.norm(c - exact) / np.linalg.norm(exact) < 1e-6


# ---- Control flow


def test_loops_and_branches():
    @weft.jit
    def kernel(x, n):
        a, b = wl.program_id(0) + n, 36
        while b != 0:
            a, b = b, a % b
        steps = 0
        value = wl.program_id(0) + 1
        while value > 1:
            if value % 2 == 0:  # noqa: SIM108
                value = value // 2
            else:
                value = 3 * value + 1
            steps += 1
        total = 0
        for i in range(wl.program_id(0), -5, -2):
            for j in range(i):
                total += i * j
        wl.store(x + wl.program_id(0) * 3, a)
        wl.store(x + wl.program_id(0) * 3 + 1, steps)
        wl.store(x + wl.program_id(0) * 3 + 2, total)

    def collatz(value):
        return 0 if value == 1 else 1 + collatz(value // 2 if value % 2 == 0 else 3 * value + 1)

    x = np.zeros((30, 3), np.int32)
    run(kernel, x, 12, grid=(30,))
    assert x[:, 0].tolist() == [np.gcd(i + 12, 36) for i in range(30)]
    assert x[:, 1].tolist() == [collatz(i + 1) for i in range(30)]
    assert x[:, 2].tolist() == [sum(i * j for i in range(p, -5, -2) for j in range(i)) for p in range(30)]


@weft.jit
def category(value):
    if value < 3:
        return 10
    if value < 6:
        return 20 + value
    return 30


def test_early_returns():
    @weft.jit
    def kernel(x, n):
        p = wl.program_id(0)
        if p >= n:
            return
        if p == 4:
            wl.store(x + p, -1)
            return
        wl.store(x + p, category(p))

    x = np.zeros(10, np.int32)
    run(kernel, x, 8, grid=(10,))
    assert x.tolist() == [10, 10, 10, 23, -1, 25, 30, 30, 0, 0]


def test_blocks_through_branches_and_loops(seed):
    @weft.jit
    def kernel(x, y, n, flag, N: wl.constexpr):
        at = wl.arange(0, N)
        a = wl.load(x + at)
        if flag > 0:
            a = a * 2
            shift = wl.max(a, 0)
        else:
            shift = wl.sum(a, 0)
        for i in range(n):
            a += wl.load(x + (at + i) % N) + shift
            if i % 2 == 1:
                a = -a
        wl.store(y + at, a if flag != 2 else a + 1)

    x = np.random.default_rng(seed).integers(-9, 9, 128).astype(np.float32)
    for flag in (0, 1, 2):
        y, a = np.empty_like(x), x * (2 if flag else 1)
        run(kernel, x, y, 5, flag, N=128)
        shift = a.max() if flag else a.sum()
        for i in range(5):
            a = a + np.roll(x, -i) + shift
            a = -a if i % 2 else a
        assert np.array_equal(y, a + (flag == 2))


def test_integers_that_are_one_and_none_select_kernels_of_their_own():
    @weft.jit
    def kernel(x, n, bias):
        value = n * 10
        if bias is not None:
            value += wl.load(bias)
        wl.store(x, value)

    x = np.zeros(1, np.int32)
    for n, bias, expected in (
        (1, None, 10),
        (2, None, 20),
        (16, np.full(1, 5, np.int32), 165),
        (1, np.full(1, 7, np.int32), 17),
    ):
        run(kernel, x, n, bias)
        assert x[0] == expected


@weft.jit
def single(x, y, z):
    first = wl.load(x + wl.arange(0, 1)[:, None]).item()
    total = wl.sum(wl.load(x + wl.arange(0, 8)), 0, keep_dims=True).item()
    eighth = (first * 2).to(wl.float8e5).to(wl.float32)
    narrow = wl.item(wl.full((1, 1), eighth, wl.float32).to(wl.float8e5))
    if first > 0:
        wl.store(y, total)
    wl.store(y + 1, first)
    wl.store(y + 2, narrow.to(wl.float32))
    wl.store(z, wl.item(wl.load(x + wl.arange(0, 1)) > 1.0).to(wl.int32))


@pytest.mark.parametrize("first", [3.0, -0.0, float("nan"), -64.0])
def test_the_one_element_of_a_block(first):
    x, y, z = np.arange(8, dtype=np.float32), np.full(3, 9, np.float32), np.full(1, 9, np.int32)
    x[0] = first
    run(single, x, y, z)
    wanted = np.float32([x.sum() if first > 0 else 9, first, 2 * first])
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(np.signbit(y[1:]), np.signbit(wanted[1:]))
    assert z[0] == (first > 1)

    @weft.jit
    def two(x):
        wl.store(x, wl.load(x + wl.arange(0, 2)).item())

    with pytest.raises(weft.CompilationError, match=r"as many elements as \[2\] for 'item'"):
        two.compile("x:*fp32")


def test_three_dimensional_grids_and_grid_functions():
    @weft.jit
    def kernel(x, BLOCK: wl.constexpr):
        at = (wl.program_id(2) * wl.num_programs(1) + wl.program_id(1)) * wl.num_programs(0) + wl.program_id(0)
        wl.store(x + at, at * BLOCK)

    x = np.zeros(24, np.int32)
    run(kernel, x, grid=lambda meta: (2, 3, weft.cdiv(meta["BLOCK"], 2)), BLOCK=8)
    assert np.array_equal(x, np.arange(24) * 8)


def test_empty_grids_launch_nothing():
    x = np.zeros(16, np.int32)
    assert divide[(0,)](x, x, x, x, N=16) is None
    assert not x.any()


def test_torch_tensors_are_used_in_place():
    torch = pytest.importorskip("torch")
    x = torch.arange(64, dtype=torch.float32)
    y = torch.zeros(64, dtype=torch.bfloat16)
    run(convert, x, y, N=64)
    assert torch.equal(y, x.to(torch.bfloat16))
