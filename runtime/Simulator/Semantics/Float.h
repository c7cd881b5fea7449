// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic (PTX ISA 9.7.3 "Floating-Point Instructions") for one lane.
//
// Round to nearest even is plain code that vectorises; the directed roundings are functions of Rounded.h. An f32 NaN
// result is 0x7fffffff; f64 keeps payloads as the host does.
#pragma once

#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Simulator/Semantics/Lane.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weft::simulator::semantics {

/// The bits of T, and its sign and smallest normal number as bits.
template <typename T> using FloatBits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <typename T> inline constexpr FloatBits<T> signBit = FloatBits<T>(1) << (sizeof(T) * 8 - 1);
template <typename T> inline constexpr FloatBits<T> smallestNormalBits = FloatBits<T>(1) << (sizeof(T) == 4 ? 23 : 52);
template <typename T>
inline constexpr FloatBits<T> infinityBits = FloatBits<T>(sizeof(T) == 4 ? 0xff : 0x7ff) << (sizeof(T) == 4 ? 23 : 52);

/// Subnormals become zeros of their sign when `flush` (.ftz).
WEFT_LANE float flush(float value, bool flush) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return flush && (bits & 0x7f800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : value;
}
WEFT_LANE double flush(double value, bool) { return value; }

/// Clamped to [0, 1], NaN to +0 (.sat).
template <std::floating_point T> WEFT_LANE T saturate(T value) {
  return value > T(0) ? (value < T(1) ? value : T(1)) : T(0);
}

/// An f32's NaN made canonical; an f64's kept.
WEFT_LANE float canonical(float value) { return canonicalNaN(value); }
WEFT_LANE double canonical(double value) { return value; }

/// The modifiers of an operation that rounds to nearest.
struct FloatOptions {
  bool flush = false;    ///< .ftz, f32 only
  bool saturate = false; ///< .sat
};

/// `value` after the steps that follow every f32 or f64 operation.
template <typename T> WEFT_LANE T finish(T value, FloatOptions options) {
  const T result = flush(canonical(value), options.flush);
  return options.saturate ? saturate(result) : result;
}

/// PTX ISA "add", "sub", "mul" with .rn.
template <std::floating_point T> WEFT_LANE T add(T a, T b, FloatOptions options = {}) {
  return finish(flush(a, options.flush) + flush(b, options.flush), options);
}
template <std::floating_point T> WEFT_LANE T sub(T a, T b, FloatOptions options = {}) {
  return finish(flush(a, options.flush) - flush(b, options.flush), options);
}
template <std::floating_point T> WEFT_LANE T mul(T a, T b, FloatOptions options = {}) {
  return finish(flush(a, options.flush) * flush(b, options.flush), options);
}

/// a * b + c with one rounding: one instruction where the caller is compiled for it, else the C library's.
WEFT_LANE double fusedMultiplyAdd(double a, double b, double c) { return __builtin_fma(a, b, c); }
WEFT_LANE float fusedMultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// PTX ISA "fma" and "mad" with .rn.
template <std::floating_point T> WEFT_LANE T fma(T a, T b, T c, FloatOptions options = {}) {
  return finish(fusedMultiplyAdd(flush(a, options.flush), flush(b, options.flush), flush(c, options.flush)), options);
}

/// The square root, rounded to nearest even.
WEFT_LANE float squareRoot(float a) { return __builtin_elementwise_sqrt(a); }
WEFT_LANE double squareRoot(double a) { return __builtin_elementwise_sqrt(a); }

/// PTX ISA "div", "rcp" and "sqrt" with .rn.
template <std::floating_point T> WEFT_LANE T div(T a, T b, FloatOptions options = {}) {
  return finish(flush(a, options.flush) / flush(b, options.flush), options);
}
template <std::floating_point T> WEFT_LANE T rcp(T a, FloatOptions options = {}) { return div(T(1), a, options); }
template <std::floating_point T> WEFT_LANE T sqrt(T a, FloatOptions options = {}) {
  return finish(squareRoot(flush(a, options.flush)), options);
}

/// PTX ISA "abs" and "neg": the sign bit; with .ftz subnormals are flushed.
template <std::floating_point T> WEFT_LANE T abs(T a, bool flushed = false) {
  return std::bit_cast<T>(std::bit_cast<FloatBits<T>>(flush(a, flushed)) & ~signBit<T>);
}
template <std::floating_point T> WEFT_LANE T neg(T a, bool flushed = false) {
  return std::bit_cast<T>(std::bit_cast<FloatBits<T>>(flush(a, flushed)) ^ signBit<T>);
}

/// PTX ISA "copysign": b with the sign of a.
template <std::floating_point T> WEFT_LANE T copysign(T a, T b) {
  using U = FloatBits<T>;
  return std::bit_cast<T>(U((std::bit_cast<U>(a) & signBit<T>) | (std::bit_cast<U>(b) & ~signBit<T>)));
}

template <bool Max, typename T> WEFT_LANE T minMax(T a, T b, MinMaxOptions options) {
  using U = FloatBits<T>;
  const U sign = options.xorSign ? (std::bit_cast<U>(a) ^ std::bit_cast<U>(b)) & signBit<T> : U(0);
  const T x = options.xorSign ? abs(a, options.flush) : flush(a, options.flush);
  const T y = options.xorSign ? abs(b, options.flush) : flush(b, options.flush);
  const bool xNaN = x != x, yNaN = y != y;
  // Equal values differ at most in sign: -0 is below +0.
  const U equal = Max ? std::bit_cast<U>(x) & std::bit_cast<U>(y) : std::bit_cast<U>(x) | std::bit_cast<U>(y);
  const T number = x == y ? std::bit_cast<T>(equal) : ((Max ? x > y : x < y) && !xNaN) || yNaN ? x : y;
  const bool isNaN = options.propagateNaN ? xNaN || yNaN : xNaN && yNaN;
  const U nan = sizeof(T) == 4 ? U(0x7fffffff) : U(0x7fffffffffffffff);
  return std::bit_cast<T>(isNaN ? nan : U(std::bit_cast<U>(number) | sign));
}

/// PTX ISA "min" and "max": a NaN loses, unless .NaN; -0 is below +0.
template <std::floating_point T> WEFT_LANE T min(T a, T b, MinMaxOptions options = {}) {
  return minMax<false>(a, b, options);
}
template <std::floating_point T> WEFT_LANE T max(T a, T b, MinMaxOptions options = {}) {
  return minMax<true>(a, b, options);
}

/// What `testp` asks.
enum class FloatClass : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

/// PTX ISA "testp".
template <std::floating_point T> WEFT_LANE bool testp(FloatClass test, T a) {
  const auto magnitude = std::bit_cast<FloatBits<T>>(a) & ~signBit<T>;
  switch (test) {
  case FloatClass::Finite:
    return magnitude < infinityBits<T>;
  case FloatClass::Infinite:
    return magnitude == infinityBits<T>;
  case FloatClass::Number:
    return magnitude <= infinityBits<T>;
  case FloatClass::NotANumber:
    return magnitude > infinityBits<T>;
  case FloatClass::Normal:
    return magnitude >= smallestNormalBits<T> && magnitude < infinityBits<T>;
  case FloatClass::Subnormal:
    return magnitude > 0 && magnitude < smallestNormalBits<T>;
  }
  return false;
}

} // namespace weft::simulator::semantics
