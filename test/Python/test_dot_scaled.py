# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``dot_scaled`` against float64, over formats and their packing; products of float64."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def e4m3(codes):
    sign, exponent, mantissa = codes >> 7, (codes >> 3) & 15, codes & 7
    small = exponent == 0
    value = np.where(small, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7))
    return np.where((exponent == 15) & (mantissa == 7), np.nan, np.where(sign == 1, -value, value))


def e5m2(codes):
    return (codes.astype(np.uint16) << 8).view(np.float16).astype(np.float64)


def drawn(generator, form, rows, columns, pack_axis):
    """A matrix as it is stored, and its values in float64."""
    if form == "e2m1":
        codes = generator.integers(0, 16, (rows, columns)).astype(np.uint8)
        first, second = (codes[0::2], codes[1::2]) if pack_axis == 0 else (codes[:, 0::2], codes[:, 1::2])
        return np.ascontiguousarray(first | (second << 4)), E2M1[codes]
    if form in ("e4m3", "e5m2"):
        codes = (generator.integers(0, 2, (rows, columns)) << 7 | generator.integers(0, 0x60, (rows, columns))).astype(
            np.uint8
        )
        return codes, (e4m3 if form == "e4m3" else e5m2)(codes)
    values = generator.standard_normal((rows, columns)).astype(np.float32)
    if form == "fp16":
        return values.astype(np.float16), values.astype(np.float16).astype(np.float64)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@weft.jit
def product(
    a, sa, b, sb, out,
    A: wl.constexpr, B: wl.constexpr, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, GROUP: wl.constexpr,
    A_K_PACK: wl.constexpr, B_K_PACK: wl.constexpr, AM: wl.constexpr, AK: wl.constexpr, BK: wl.constexpr,
    BN: wl.constexpr,
):  # fmt: skip
    x = wl.load(a + wl.arange(0, AM)[:, None] * AK + wl.arange(0, AK)[None, :])
    y = wl.load(b + wl.arange(0, BK)[:, None] * BN + wl.arange(0, BN)[None, :])
    groups = wl.arange(0, K // GROUP)[None, :]
    x_scale, y_scale = None, None
    if sa is not None:
        x_scale = wl.load(sa + wl.arange(0, M)[:, None] * (K // GROUP) + groups)
    if sb is not None:
        y_scale = wl.load(sb + wl.arange(0, N)[:, None] * (K // GROUP) + groups)
    acc = wl.full((M, N), 1.0, wl.float32)
    c = wl.dot_scaled(x, x_scale, A, y, y_scale, B, acc, lhs_k_pack=A_K_PACK, rhs_k_pack=B_K_PACK)
    wl.store(out + wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :], c)


def run(a_form, b_form, seed=0, scales=(True, True), k_pack=(True, True), extreme=None):
    m, n, k, group = 16, 32, 64, 32
    generator = np.random.default_rng(seed)
    a, a_values = drawn(generator, a_form, m, k, 1 if k_pack[0] else 0)
    b, b_values = drawn(generator, b_form, k, n, 0 if k_pack[1] else 1)
    sa, sb = (
        generator.integers(120, 134, (size, k // group)).astype(np.uint8) if used else None
        for size, used in zip((m, n), scales, strict=True)
    )
    if extreme is not None:
        sa[3, 1] = extreme
    out = np.full((m, n), np.nan, np.float32)
    kinds = {"bf16": "bf16", "fp16": "fp16"}
    signature = f"a:*{kinds.get(a_form, 'u8')}, b:*{kinds.get(b_form, 'u8')}, out:*fp32"
    for name, scale in (("sa", sa), ("sb", sb)):
        signature += f", {name}=None" if scale is None else f", {name}:*u8"
    sizes = {"M": m, "N": n, "K": k, "GROUP": group, "A_K_PACK": k_pack[0], "B_K_PACK": k_pack[1]}
    stored = {"AM": a.shape[0], "AK": a.shape[1], "BK": b.shape[0], "BN": b.shape[1]}
    kernel = product.compile(signature, constants={"A": a_form, "B": b_form, **sizes, **stored})
    given = {"a": a, "b": b, "sa": sa, "sb": sb, "out": out}
    arguments = [given[name] for name in kernel.signature.arguments]
    weft.simulator.launch(kernel.ptx, kernel.name, (1,), 128, arguments, shared=kernel.shared_bytes)
    for values, s, axis in ((a_values, sa, 1), (b_values, sb, 0)):
        if s is not None:
            factors = np.repeat(2.0 ** (s.astype(np.float64) - 127), group, 1)
            factors[np.repeat(s, group, 1) == 255] = np.nan
            values *= factors if axis == 1 else factors.T
    return out, a_values @ b_values + 1, np.abs(a_values) @ np.abs(b_values) + 1


@pytest.mark.parametrize(
    ("a_form", "b_form"),
    [("e2m1", "e2m1"), ("e2m1", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "bf16"), ("bf16", "e2m1"), ("fp16", "e4m3")],
)
def test_formats(a_form, b_form):
    out, wanted, size = run(a_form, b_form)
    assert (np.abs(out - wanted) <= 2**-21 * size).all()


@pytest.mark.parametrize(("scales", "k_pack"), [((False, True), (False, True)), ((True, False), (True, False))])
def test_operands_without_scales_and_packed_along_the_other_axis(scales, k_pack):
    out, wanted, size = run("e2m1", "e2m1", seed=3, scales=scales, k_pack=k_pack)
    assert (np.abs(out - wanted) <= 2**-21 * size).all()


@weft.jit
def one_scaled(a, sa, b, out, N: wl.constexpr, K: wl.constexpr):
    rows, columns, inner = wl.arange(0, 16), wl.arange(0, N), wl.arange(0, K)
    x = wl.load(a + rows[:, None] * K + inner[None, :])
    y = wl.load(b + inner[:, None] + columns[None, :] * K)
    scale = wl.load(sa + rows[:, None] * (K // 32) + wl.arange(0, K // 32)[None, :])
    wl.store(out + rows[:, None] * N + columns[None, :], wl.dot_scaled(x, scale, "bf16", y, None, "e4m3"))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("columns", [16, 64])
def test_8_bits_without_scales_beside_16(columns, target, monkeypatch):
    """They are transposed twice between the load and the product, which reads them from where copies put them."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    generator = np.random.default_rng(SEED)
    a, b = (torch.from_numpy(generator.integers(-7, 8, (n, 64)).astype(np.float32)) for n in (16, columns))
    scales = torch.from_numpy(generator.integers(125, 130, (16, 2)).astype(np.uint8))
    for warps in (4, 8):
        out = torch.full((16, columns), torch.nan)
        one_scaled[1,](a.bfloat16(), scales, b.to(torch.float8_e4m3fn), out, N=columns, K=64, num_warps=warps)
        exact = (a * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)) @ b.T
        assert torch.equal(out, exact)


def test_a_scale_that_is_no_number():
    out, wanted, _ = run("e4m3", "e4m3", seed=4, extreme=255)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(wanted))
    assert np.isnan(wanted).any() and not np.isnan(wanted).all()


@weft.jit
def asks(x, s, FORM: wl.constexpr):
    at = wl.arange(0, 32)
    tile = wl.load(x + at[:, None] * 32 + at[None, :])
    wl.store(x, wl.sum(wl.dot_scaled(tile, wl.load(s + at)[None, :], FORM, tile, None, "e4m3")).to(wl.uint8))


@pytest.mark.parametrize(
    ("form", "kind", "said"),
    [
        ("e3m2", "u8", "'e2m1' 'e4m3' 'e5m2' 'bf16' 'fp16'"),
        ("e4m3", "u8", "expected 'lhs_scale' of shape [32, 32 / group], but got"),
        ("bf16", "u8", "expected 'lhs' of 'dot_scaled' to have elements of bf16"),
        ("e2m1", "fp16", "expected 'lhs' of 'dot_scaled' to have elements of uint8"),
    ],
)
def test_what_does_not_fit_is_refused(form, kind, said):
    with pytest.raises(weft.CompilationError) as caught:
        asks.compile(f"x:*{kind}, s:*u8", constants={"FORM": form})
    assert said in str(caught.value)


@weft.jit
def double(a, b, out, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, ACC: wl.constexpr):
    x = wl.load(a + wl.arange(0, M)[:, None] * K + wl.arange(0, K)[None, :])
    y = wl.load(b + wl.arange(0, K)[:, None] * N + wl.arange(0, N)[None, :])
    at = out + wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :]
    c = wl.dot(x, y, wl.load(at)) if ACC else wl.dot(x, y)
    wl.store(at, c)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    "shape", [(16, 16, 16), (32, 16, 64), (8, 32, 4), (8, 8, 16), (1, 2, 2), (64, 128, 8), (128, 8, 32)]
)
def test_products_of_float64(shape, target):
    """By matrix instructions, sums of fused multiply-adds: as near as those are, for every size."""
    m, n, k = shape
    a, b, c = (rng.standard_normal(size) for size in ((m, k), (k, n), (m, n)))
    for acc in (False, True):
        out = c.copy() if acc else np.full((m, n), np.nan)
        constants = {"M": m, "N": n, "K": k, "ACC": acc}
        made = double.compile("a:*fp64:16, b:*fp64:16, out:*fp64:16", constants=constants, target=target)
        report = weft.simulator.launch(made.ptx, made.name, (1,), 128, [a, b, out], shared=made.shared_bytes)
        assert not report.findings
        wanted = a.astype(np.longdouble) @ b.astype(np.longdouble) + (c if acc else 0)
        scale = np.abs(a) @ np.abs(b) + np.abs(c)
        assert (np.abs(out - wanted) <= (max(k, 4) + 1) * 2.0**-53 * scale).all()
        assert report.counters["mma_macs"] >= m * n * k


@weft.jit
def long_double(a, b, c, N, K):
    m, n, k = wl.arange(0, 64), wl.arange(0, 64), wl.arange(0, 16)
    acc = wl.zeros((64, 64), wl.float64)
    for i in range(0, K, 16):
        x = wl.load(a + m[:, None] * K + i + k[None, :])
        y = wl.load(b + (i + k[:, None]) * N + n[None, :])
        acc = wl.dot(x, y, acc)
    wl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_operands_of_float64_are_staged(target):
    """Tiles of a loop are copied ahead to shared memory and read from it without bank conflicts."""
    a, b, c = rng.standard_normal((64, 96)), rng.standard_normal((96, 64)), np.full((64, 64), np.nan)
    made = long_double.compile("a:*fp64:16, b:*fp64:16, c:*fp64:16, N:i32:16, K:i32:16", target=target)
    report = weft.simulator.launch(made.ptx, made.name, (1,), 128, [a, b, c, 64, 96], shared=made.shared_bytes)
    assert not report.findings
    assert (np.abs(c - a @ b) <= 97 * 2.0**-52 * (np.abs(a) @ np.abs(b))).all()
    counters = report.counters
    assert "cp.async" in made.ptx and counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"]


@weft.jit
def products(
    a, sa, b, sb, out,
    A: wl.constexpr, B: wl.constexpr, N_BATCH: wl.constexpr, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr,
    AK: wl.constexpr, BK: wl.constexpr,
):  # fmt: skip
    each = wl.arange(0, N_BATCH)[:, None, None]
    rows, columns = wl.arange(0, M), wl.arange(0, N)
    groups = wl.arange(0, K // 32)[None, None, :]
    x = wl.load(a + (each * M + rows[None, :, None]) * AK + wl.arange(0, AK)[None, None, :])
    y = wl.load(b + (each * BK + wl.arange(0, BK)[None, :, None]) * N + columns[None, None, :])
    x_scale = wl.load(sa + (each * M + rows[None, :, None]) * (K // 32) + groups)
    y_scale = wl.load(sb + (each * N + columns[None, :, None]) * (K // 32) + groups)
    c = wl.dot_scaled(x, x_scale, A, y, y_scale, B)
    wl.store(out + (each * M + rows[None, :, None]) * N + columns[None, None, :], c)


@pytest.mark.parametrize(("a_form", "b_form"), [("e5m2", "e4m3"), ("e2m1", "e5m2"), ("e4m3", "e2m1")])
@pytest.mark.parametrize("count", [1, 2])
def test_batches(a_form, b_form, count):
    m, n, k = 16, 16, 64
    generator = np.random.default_rng(SEED)
    lefts = [drawn(generator, a_form, m, k, 1) for _ in range(count)]
    rights = [drawn(generator, b_form, k, n, 0) for _ in range(count)]
    sa = generator.integers(122, 132, (count, m, k // 32)).astype(np.uint8)
    sb = generator.integers(122, 132, (count, n, k // 32)).astype(np.uint8)
    a, b = (np.stack([stored for stored, _ in each]) for each in (lefts, rights))
    out = np.full((count, m, n), np.nan, np.float32)
    products[(1,)](
        a, sa, b, sb, out, A=a_form, B=b_form, N_BATCH=count, M=m, N=n, K=k, AK=a.shape[2], BK=b.shape[1]
    )  # fmt: skip
    x = np.stack([values for _, values in lefts]) * np.repeat(2.0 ** (sa.astype(float) - 127), 32, 2)
    y = np.stack([values for _, values in rights]) * np.repeat(2.0 ** (sb.astype(float) - 127), 32, 2).swapaxes(1, 2)
    np.testing.assert_allclose(out, x @ y, rtol=1e-5, atol=1e-5 * np.abs(x @ y).max())
