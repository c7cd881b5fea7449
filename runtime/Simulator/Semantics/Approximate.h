// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The approximate functions (PTX ISA 9.7.3, .approx), each within the error that PTX states. The bits are ours: PTX
// leaves them open. Branch-free, without fused operations (so the same bits on every machine), and vectorisable.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace weft::simulator::semantics {

/// `condition ? a : b` on bits, which vectorisers keep free of branches.
WEFT_LANE float choose(bool condition, float a, float b) { return condition ? a : b; }

/// PTX ISA "ex2.approx" of f32: 2 to the power a, to 2 ulp. Subnormals are kept unless `flushed`.
WEFT_LANE float ex2Approx(float a, bool flushed = false) {
  // 2^a = 2^whole * 2^part with |part| <= 1/2. Beyond [-151, 129] the result is 0 or infinity in any case.
  const float low = a > -151.0f ? a : -151.0f, x = low < 129.0f ? low : 129.0f;
  const float shifted = x + 0x1.8p23f; // rounds to an integer, held in the low bits
  const float part = x - (shifted - 0x1.8p23f);
  const int32_t whole = int32_t(std::bit_cast<uint32_t>(shifted) - 0x4b400000u);
  // The Taylor series of 2^part - 1 around 0, whose eighth term is below 2^-25.
  float sum = 1.5252734e-5f;
  sum = sum * part + 1.5403530e-4f;
  sum = sum * part + 1.3333558e-3f;
  sum = sum * part + 9.6181291e-3f;
  sum = sum * part + 5.5504109e-2f;
  sum = sum * part + 2.4022651e-1f;
  sum = sum * part + 6.9314718e-1f;
  const float mantissa = sum * part + 1.0f;
  // Two factors, since 2^whole alone may be subnormal or infinite.
  const int32_t half = whole >> 1;
  const float first = std::bit_cast<float>(uint32_t(127 + half) << 23);
  const float second = std::bit_cast<float>(uint32_t(127 + whole - half) << 23);
  const float result = flush(mantissa * first * second, flushed);
  return a != a ? std::bit_cast<float>(0x7fffffffu) : result;
}

/// log2 of a positive normal f64, to about 2^-50.
WEFT_LANE double log2Positive(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  // The exponent is chosen so that the mantissa lies in [sqrt(1/2), sqrt(2)).
  const uint64_t offset = bits - 0x3fe6a09e667f3bcd;
  const int64_t exponent = int64_t(offset) >> 52;
  const double mantissa = std::bit_cast<double>(bits - (uint64_t(exponent) << 52));
  // ln m = 2 atanh(z) with z = (m - 1) / (m + 1), |z| < 0.172; the terms left out are below 2^-45.
  const double z = (mantissa - 1.0) / (mantissa + 1.0), square = z * z;
  double sum = 1.0 / 15;
  sum = sum * square + 1.0 / 13;
  sum = sum * square + 1.0 / 11;
  sum = sum * square + 1.0 / 9;
  sum = sum * square + 1.0 / 7;
  sum = sum * square + 1.0 / 5;
  sum = sum * square + 1.0 / 3;
  sum = sum * square + 1.0;
  return double(int32_t(exponent)) + 2.885390081777926814719849362 * z * sum;
}

/// PTX ISA "lg2.approx" of f32: absolute error 2^-22 in (0.5, 2), relative error 2^-22 elsewhere.
WEFT_LANE float lg2Approx(float a, bool flushed = false) {
  const float x = flush(a, flushed);
  const float infinity = std::bit_cast<float>(0x7f800000u), nan = std::bit_cast<float>(0x7fffffffu);
  const float result = float(log2Positive(double(x)));
  return x > 0 ? (x < infinity ? result : infinity) : x == 0 ? -infinity : nan;
}

/// Sine and cosine, to about 2^-40 while |x| < 2^28.
struct SineCosine {
  double sine, cosine;
};
WEFT_LANE SineCosine sineCosine(double x) {
  const double turns = x * 0.63661977236758134308 + 0x1.8p52; // nearest multiple of pi/2, in the low bits
  const double count = turns - 0x1.8p52;
  const uint64_t quadrant = std::bit_cast<uint64_t>(turns);
  const double part = x - count * 0x1.921fb5p0; // few enough bits for an exact product
  const double rest = part - count * (0x4.442dp-28 + 0x1.8469898cc517p-48);
  // Past the range where that holds anything in [-1, 1] will do.
  const double angle = rest > 1.0 ? 1.0 : rest < -1.0 ? -1.0 : rest, square = angle * angle;
  double sine = 1.0 / 6227020800;
  sine = sine * square - 1.0 / 39916800;
  sine = sine * square + 1.0 / 362880;
  sine = sine * square - 1.0 / 5040;
  sine = sine * square + 1.0 / 120;
  sine = sine * square - 1.0 / 6;
  sine = sine * square * angle + angle;
  double cosine = 1.0 / 479001600;
  cosine = cosine * square - 1.0 / 3628800;
  cosine = cosine * square + 1.0 / 40320;
  cosine = cosine * square - 1.0 / 720;
  cosine = cosine * square + 1.0 / 24;
  cosine = cosine * square - 0.5;
  cosine = cosine * square + 1.0;
  const double s = quadrant & 1 ? cosine : sine, c = quadrant & 1 ? sine : cosine;
  return {quadrant & 2 ? -s : s, (quadrant + 1) & 2 ? -c : c};
}

/// Whether an f32 is neither infinite nor NaN.
WEFT_LANE bool isFinite(float a) { return (std::bit_cast<uint32_t>(a) & 0x7f800000) != 0x7f800000; }

/// PTX ISA "sin.approx" and "cos.approx" of f32: absolute error 2^-20.5 in [-2 pi, 2 pi]; NaN for infinity.
WEFT_LANE float sinApprox(float a, bool flushed = false) {
  const float x = flush(a, flushed), result = x == 0 ? x : float(sineCosine(double(x)).sine);
  return isFinite(x) ? flush(result, flushed) : std::bit_cast<float>(0x7fffffffu);
}
WEFT_LANE float cosApprox(float a, bool flushed = false) {
  const float x = flush(a, flushed), result = float(sineCosine(double(x)).cosine);
  return isFinite(x) ? result : std::bit_cast<float>(0x7fffffffu);
}

/// PTX ISA "tanh.approx" of f32: relative error 2^-11. Here tanh x = (e - 1) / (e + 1) with e = 2^(2 x log2(e)) in f64.
WEFT_LANE float tanhApprox(float a) {
  const float magnitude = abs(a), bounded = magnitude < 10.0f ? magnitude : 10.0f;
  const double exponent = double(bounded) * 2.8853900817779268; // at most 28.9
  const double shifted = exponent + 0x1.8p52, part = (exponent - (shifted - 0x1.8p52)) * 0.69314718055994531;
  double sum = 1.0 / 40320;
  sum = sum * part + 1.0 / 5040;
  sum = sum * part + 1.0 / 720;
  sum = sum * part + 1.0 / 120;
  sum = sum * part + 1.0 / 24;
  sum = sum * part + 1.0 / 6;
  sum = sum * part + 0.5;
  sum = sum * part + 1.0;
  const double scale = std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023) << 52);
  const double less = scale * (sum * part) + (scale - 1.0); // e - 1, which keeps its precision near zero
  const float result = magnitude < 0x1p-12f ? magnitude : float(less / (less + 2.0));
  return a != a ? std::bit_cast<float>(0x7fffffffu) : copysign(a, result);
}

/// PTX ISA "rcp.approx" (1 ulp), "rsqrt.approx" (relative error 2^-22.9) and "sqrt.approx" (2^-23) of f32.
WEFT_LANE float rcpApprox(float a, bool flushed = false) { return rcp(a, {.flush = flushed}); }
WEFT_LANE float rsqrtApprox(float a, bool flushed = false) {
  const float x = flush(a, flushed);
  return canonicalNaN(float(1.0 / squareRoot(double(x))));
}
WEFT_LANE float sqrtApprox(float a, bool flushed = false) { return sqrt(a, {.flush = flushed}); }

/// PTX ISA "div.approx" of f32 (2 ulp): for |b| in (2^126, 2^128) it is 0, or NaN where a is infinite.
WEFT_LANE float divApprox(float a, float b, bool flushed = false) {
  const float y = flush(b, flushed), quotient = div(a, y, {.flush = flushed});
  const float magnitude = abs(y);
  const bool isHuge = magnitude > 0x1p126f && isFinite(y);
  const float zero = copysign(quotient, 0.0f);
  return isHuge && quotient == quotient ? (isFinite(a) ? zero : std::bit_cast<float>(0x7fffffffu)) : quotient;
}

/// PTX ISA "div.full" of f32 (2 ulp over the whole range).
WEFT_LANE float divFull(float a, float b, bool flushed = false) { return div(a, b, {.flush = flushed}); }

/// PTX ISA "rcp.approx.ftz.f64" and "rsqrt.approx.ftz.f64": gross approximations, from the upper 32 bits of a to the
/// upper 32 bits of the result, whose lower ones are zero. Subnormals are flushed.
WEFT_LANE double upperHalf(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value) & 0xffffffff00000000;
  return std::bit_cast<double>((bits & infinityBits<double>) == 0 ? bits & signBit<double> : bits);
}
WEFT_LANE double grossResult(double value) {
  return value != value ? std::bit_cast<double>(0x7fffffff00000000) : upperHalf(value);
}
WEFT_LANE double rcpGross(double a) { return grossResult(1.0 / upperHalf(a)); }
WEFT_LANE double rsqrtGross(double a) { return grossResult(1.0 / squareRoot(upperHalf(a))); }

/// PTX ISA "rsqrt.approx.f64".
WEFT_LANE double rsqrtApprox(double a) { return 1.0 / squareRoot(a); }

/// PTX ISA "ex2.approx" and "tanh.approx" of f16 and bf16: the f32 function, rounded once.
template <typename F> WEFT_LANE uint16_t ex2ApproxHalf(uint16_t a, bool flushed = false) {
  return flushHalf<F>(F::narrow(ex2Approx(F::widen(flushHalf<F>(a, flushed)))), flushed);
}
template <typename F> WEFT_LANE uint16_t tanhApproxHalf(uint16_t a) { return F::narrow(tanhApprox(F::widen(a))); }

// What f32's functions may give at worst: of the numbers within the error that PTX states, the farthest below the exact
// result or above it, as the argument's bits decide.

/// A unit in the last place of an f32 as large as `value`.
inline double ulpOf(double value) { return std::ldexp(1.0, std::max(std::ilogb(value), -126) - 23); }

/// The last f32 before `exact` and `bound` part from one another, above or below by a bit of `key`. Where `close`, the
/// result that PTX has for the argument alone, is zero or no finite number, it stays: so are the results PTX lists.
inline float farthest(float close, double exact, double bound, uint32_t key) {
  if (close == 0 || !isFinite(close) || !std::isfinite(exact))
    return close;
  key = (key ^ key >> 16) * 0x7feb352du; // every bit of it counts
  key = (key ^ key >> 15) * 0x846ca68bu;
  const double limit = key >> 31 ? exact + bound : exact - bound;
  const float nearest = float(limit);
  const bool isBeyond = key >> 31 ? double(nearest) > limit : double(nearest) < limit;
  const float found = isBeyond ? std::nextafterf(nearest, float(exact)) : nearest;
  return isFinite(found) ? found : close;
}

/// The bits of an argument that decide: its mantissa, and whether its exponent is even. Functions that scale with powers of
/// two, or of four, do so exactly.
constexpr uint32_t mantissaBits = 0x7fffff, withParity = 0xffffff;

// Each takes the close result and the arguments. The unit interpolates between the entries of a table: what is an entry
// itself, whole powers of two and their inverses, comes out exact, which PTX says of 0 and 1 alone.

inline float ex2Farthest(float close, float a) {
  const double exact = std::exp2(double(a));
  return a == std::trunc(a) ? close : farthest(close, exact, 2 * ulpOf(exact), std::bit_cast<uint32_t>(a));
}
inline float lg2Farthest(float close, float a) {
  const double exact = std::log2(double(a)), error = 0x1p-22;
  if (exact == std::trunc(exact))
    return close;
  return farthest(close, exact, a > 0.5f && a < 2.0f ? error : error * std::fabs(exact), std::bit_cast<uint32_t>(a));
}
/// Beyond 100 pi PTX states no error, and the result stays.
inline float turned(float close, double exact, float a) {
  constexpr double pi = 3.14159265358979323846;
  const double size = std::fabs(double(a));
  const double error = size <= 2 * pi ? 0x1p-20 / std::sqrt(2.0) : size <= 100 * pi ? std::exp2(-14.7) : 0.0;
  return error == 0 || a == 0 ? close : farthest(close, exact, error, std::bit_cast<uint32_t>(a));
}
inline float sinFarthest(float close, float a) { return turned(close, std::sin(double(a)), a); }
inline float cosFarthest(float close, float a) { return turned(close, std::cos(double(a)), a); }
inline float tanhFarthest(float close, float a) {
  const double exact = std::tanh(double(a));
  return isFinite(a) ? farthest(close, exact, 0x1p-11 * std::fabs(exact), std::bit_cast<uint32_t>(a)) : close;
}
inline float rcpFarthest(float close, float a) {
  const double exact = 1.0 / double(a);
  const uint32_t key = std::bit_cast<uint32_t>(a) & mantissaBits;
  return key == 0 ? close : farthest(close, exact, ulpOf(exact), key);
}
inline float rsqrtFarthest(float close, float a) {
  const double exact = 1.0 / std::sqrt(double(a));
  const uint32_t key = std::bit_cast<uint32_t>(a) & withParity;
  return std::ilogb(exact) == std::log2(exact) ? close : farthest(close, exact, std::exp2(-22.9) * exact, key);
}
inline float sqrtFarthest(float close, float a) {
  const double exact = std::sqrt(double(a));
  const uint32_t key = std::bit_cast<uint32_t>(a) & withParity;
  return std::ilogb(exact) == std::log2(exact) ? close : farthest(close, exact, 0x1p-23 * exact, key);
}
inline float divFarthest(float close, float a, float b) {
  const double exact = double(a) / double(b);
  const uint32_t divisor = std::bit_cast<uint32_t>(b) & mantissaBits;
  const uint32_t key = (std::bit_cast<uint32_t>(a) & mantissaBits) * 0x9e3779b9u ^ divisor;
  return divisor == 0 ? close : farthest(close, exact, 2 * ulpOf(exact), key);
}

} // namespace weft::simulator::semantics
