// Part of Weft. SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic (PTX ISA 9.7.4 "Half Precision Floating-Point Instructions"), scalar and packed.
//
// Values travel as their 16 bits. Every operation widens to f32, where f16 and bf16 sums and products are exact or
// round so that the second rounding is harmless (24 >= 2 * 11 + 2), and narrows once; fma goes through f64, where
// the product is exact and the sum is rounded to odd. All of it is branch-free.
#pragma once

#include "runtime/Simulator/Semantics/Lane.h"

#include <bit>
#include <cstdint>

namespace weft::simulator::semantics {

/// f16 bits to the f32 of the same value. A NaN keeps its payload.
WEFT_LANE float halfToFloat(uint16_t half) {
  const uint32_t bits = half;
  const float scaled = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f; // normalises subnormals too
  const uint32_t special = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | (bits & 0x8000) << 16);
}

/// f32 to f16 bits, to nearest even; overflow to infinity, NaN to 0x7fff (PTX ISA "cvt" .rn.f16.f32).
WEFT_LANE uint16_t floatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  // Adding 0.5 aligns a subnormal f16's last bit with the last bit of an f32 in [0.5, 1).
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t normal = (magnitude + 0xc8000fff + (magnitude >> 13 & 1)) >> 13;
  uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7c00 : result;
  result |= bits >> 16 & 0x8000;
  return uint16_t(magnitude > 0x7f800000 ? 0x7fff : result);
}

/// bf16 bits to the f32 of the same value.
WEFT_LANE float bfloatToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// f32 to bf16 bits, to nearest even, NaN to 0x7fff (PTX ISA "cvt" .rn.bf16.f32).
WEFT_LANE uint16_t floatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return uint16_t(value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The f16 format, for the templates below.
struct HalfFormat {
  static constexpr uint16_t one = 0x3c00, infinity = 0x7c00, nan = 0x7fff, smallestNormal = 0x0400;
  static constexpr bool exactProducts = true; ///< in f32
  WEFT_LANE static float widen(uint16_t bits) { return halfToFloat(bits); }
  WEFT_LANE static uint16_t narrow(float value) { return floatToHalf(value); }
};

/// The bf16 format.
struct BfloatFormat {
  static constexpr uint16_t one = 0x3f80, infinity = 0x7f80, nan = 0x7fff, smallestNormal = 0x0080;
  static constexpr bool exactProducts = false;
  WEFT_LANE static float widen(uint16_t bits) { return bfloatToFloat(bits); }
  WEFT_LANE static uint16_t narrow(float value) { return floatToBfloat(value); }
};

/// Subnormals become zeros of their sign when `flush` (.ftz).
template <typename F> WEFT_LANE uint16_t flushHalf(uint16_t value, bool flush) {
  return flush && (value & 0x7fff) < F::smallestNormal ? value & 0x8000 : value;
}

/// NaN, for either format.
template <typename F> WEFT_LANE bool isNaNHalf(uint16_t value) { return (value & 0x7fff) > F::infinity; }

/// Clamped to [0, 1], NaN to +0 (.sat).
template <typename F> WEFT_LANE uint16_t saturateHalf(uint16_t value) {
  const uint16_t clamped = value > F::one ? F::one : value; // a negative value's bits are large and caught below
  return (value & 0x8000) || isNaNHalf<F>(value) ? 0 : clamped;
}

/// Below: the last steps of an operation, from an f32 that holds the result before its one harmful rounding.
template <typename F> WEFT_LANE uint16_t finishHalf(float value, bool flush, bool saturate) {
  const uint16_t result = flushHalf<F>(F::narrow(value), flush);
  return saturate ? saturateHalf<F>(result) : result;
}

/// PTX ISA "add" (half), and "sub".
template <typename F> WEFT_LANE uint16_t addHalf(uint16_t a, uint16_t b, bool flush = false, bool saturate = false) {
  return finishHalf<F>(F::widen(flushHalf<F>(a, flush)) + F::widen(flushHalf<F>(b, flush)), flush, saturate);
}
template <typename F> WEFT_LANE uint16_t subHalf(uint16_t a, uint16_t b, bool flush = false, bool saturate = false) {
  return finishHalf<F>(F::widen(flushHalf<F>(a, flush)) - F::widen(flushHalf<F>(b, flush)), flush, saturate);
}

/// PTX ISA "mul" (half).
template <typename F> WEFT_LANE uint16_t mulHalf(uint16_t a, uint16_t b, bool flush = false, bool saturate = false) {
  const float x = F::widen(flushHalf<F>(a, flush)), y = F::widen(flushHalf<F>(b, flush));
  // A product of f16 is exact in f32; one of bf16 may fall below f32's subnormals.
  return finishHalf<F>(F::exactProducts ? x * y : toOddFloat(double(x) * double(y), -0.0), flush, saturate);
}

/// PTX ISA "fma" (half): one rounding. `relu` clamps a negative result to +0 and keeps NaN canonical (.relu).
template <typename F>
WEFT_LANE uint16_t fmaHalf(uint16_t a, uint16_t b, uint16_t c, bool flush = false, bool saturate = false,
                           bool relu = false) {
  const double product = double(F::widen(flushHalf<F>(a, flush))) * double(F::widen(flushHalf<F>(b, flush)));
  const float exact = toOddFloat(product, double(F::widen(flushHalf<F>(c, flush))));
  const uint16_t result = finishHalf<F>(exact, flush, saturate);
  return relu && (result & 0x8000) && !isNaNHalf<F>(result) ? 0 : result;
}

/// What a bulk copy with that fill mode puts outside of a tensor, in every 16 bits: PTX's OOB NaN. Its bits are not
/// documented; these are what GPUs were seen to write.
constexpr uint16_t outsideNaN = 0x7ff7;

/// PTX ISA "fma" (half) with .oob: 0 where an operand is OOB NaN, whose sign does not count.
template <typename F> WEFT_LANE uint16_t fmaOutsideHalf(uint16_t a, uint16_t b, uint16_t c, bool relu) {
  const auto isOutside = [](uint16_t value) { return (value & 0x7fff) == outsideNaN; };
  return isOutside(a) || isOutside(b) || isOutside(c) ? 0 : fmaHalf<F>(a, b, c, false, false, relu);
}

/// PTX ISA "neg" and "abs" (half): the sign bit only, NaN included.
WEFT_LANE uint16_t negHalf(uint16_t a) { return a ^ 0x8000; }
WEFT_LANE uint16_t absHalf(uint16_t a) { return a & 0x7fff; }

/// A total order of 16-bit floats that are no NaN, with -0 below +0.
WEFT_LANE int32_t orderHalf(uint16_t a) { return a & 0x8000 ? ~int32_t(a & 0x7fff) : int32_t(a); }

/// How min and max treat NaN and signs.
struct MinMaxOptions {
  bool flush = false;        ///< .ftz
  bool propagateNaN = false; ///< .NaN: a NaN operand gives the canonical NaN, else the other operand wins
  bool xorSign = false;      ///< .xorsign.abs: by magnitude, with the product of the signs
};

template <typename F, bool Max> WEFT_LANE uint16_t minMaxHalf(uint16_t a, uint16_t b, MinMaxOptions options) {
  const uint16_t sign = options.xorSign ? (a ^ b) & 0x8000 : 0, mask = options.xorSign ? 0x7fff : 0xffff;
  const uint16_t x = flushHalf<F>(a, options.flush) & mask, y = flushHalf<F>(b, options.flush) & mask;
  const bool xNaN = isNaNHalf<F>(x), yNaN = isNaNHalf<F>(y);
  const bool takeX = Max ? orderHalf(x) >= orderHalf(y) : orderHalf(x) <= orderHalf(y);
  const uint16_t number = (takeX && !xNaN) || yNaN ? x : y;
  const bool isNaN = options.propagateNaN ? xNaN || yNaN : xNaN && yNaN;
  return isNaN ? F::nan : number | sign;
}

/// PTX ISA "min" and "max" (half).
template <typename F> WEFT_LANE uint16_t minHalf(uint16_t a, uint16_t b, MinMaxOptions options = {}) {
  return minMaxHalf<F, false>(a, b, options);
}
template <typename F> WEFT_LANE uint16_t maxHalf(uint16_t a, uint16_t b, MinMaxOptions options = {}) {
  return minMaxHalf<F, true>(a, b, options);
}

/// The two halves of a packed register.
WEFT_LANE uint16_t low16(uint32_t packed) { return uint16_t(packed); }
WEFT_LANE uint16_t high16(uint32_t packed) { return uint16_t(packed >> 16); }
WEFT_LANE uint32_t pack16(uint16_t low, uint16_t high) { return low | uint32_t(high) << 16; }

/// `operation` on each half: what the .f16x2 and .bf16x2 forms do.
template <typename Operation> WEFT_LANE uint32_t eachHalf(Operation operation, uint32_t a) {
  return pack16(operation(low16(a)), operation(high16(a)));
}
template <typename Operation> WEFT_LANE uint32_t eachHalf(Operation operation, uint32_t a, uint32_t b) {
  return pack16(operation(low16(a), low16(b)), operation(high16(a), high16(b)));
}
template <typename Operation> WEFT_LANE uint32_t eachHalf(Operation operation, uint32_t a, uint32_t b, uint32_t c) {
  return pack16(operation(low16(a), low16(b), low16(c)), operation(high16(a), high16(b), high16(c)));
}

} // namespace weft::simulator::semantics
