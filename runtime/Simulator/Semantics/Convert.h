// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Conversions (PTX ISA 9.7.9.21 "cvt", 9.7.9.22 "cvt.pack") for one lane.
//
// The conversions that compiled code runs in its loops (f32 to and from f16 and bf16 to nearest even, in Half.h; f32
// to f64; integers to nearest) are plain code. Everything else goes through one function, roundToFormat, that rounds
// an exact f64 to any narrower format in any direction.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Integer.h"
#include "runtime/Simulator/Semantics/Rounded.h"

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>

namespace weft::simulator::semantics {

/// A binary floating-point format narrower than f64.
struct FloatFormat {
  int fraction;         ///< bits after the leading one
  int smallestExponent; ///< of a normal number
  double largest;       ///< finite value
};

inline constexpr FloatFormat formatF32{23, -126, 0x1.fffffep127};
inline constexpr FloatFormat formatTF32{10, -126, 0x1.ffcp127};
inline constexpr FloatFormat formatF16{10, -14, 65504};
inline constexpr FloatFormat formatBF16{7, -126, 0x1.fep127};
inline constexpr FloatFormat formatE4M3{3, -6, 448};
inline constexpr FloatFormat formatE5M2{2, -14, 57344};

/// PTX ISA "cvt" .rni .rzi .rmi .rpi: `value` rounded to an integral value of the same type; -0 and NaN stay.
template <std::floating_point T> WEFT_LANE T roundToIntegral(Rounding rounding, T value) {
  switch (rounding) {
  case Rounding::NearestEven:
    return __builtin_elementwise_roundeven(value);
  case Rounding::Zero:
    return __builtin_elementwise_trunc(value);
  case Rounding::Down:
    return __builtin_elementwise_floor(value);
  case Rounding::Up:
    return __builtin_elementwise_ceil(value);
  case Rounding::NearestAway:
    return __builtin_elementwise_round(value);
  }
  return value;
}

/// 2 to the power `exponent`, which is one of a normal f64.
WEFT_LANE double powerOfTwo(int exponent) { return std::bit_cast<double>(uint64_t(1023 + exponent) << 52); }

/// `value` rounded to a value of `format`. One that is too large becomes infinity or the largest finite number, as
/// IEEE 754 has it for the direction; with `finite` (.satfinite) always the latter. NaN and infinity stay, but
/// `finite` clamps infinity too.
WEFT_LANE double roundToFormat(double value, const FloatFormat &format, Rounding rounding, bool finite = false) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const double magnitude = std::bit_cast<double>(bits & ~signBit<double>);
  if (value != value || magnitude == 0)
    return value;
  const bool negative = bits >> 63;
  const double sign = negative ? -1.0 : 1.0, infinity = std::numeric_limits<double>::infinity();
  if (magnitude == infinity)
    return finite ? sign * format.largest : value;
  const int exponent = int(bits >> 52 & 0x7ff) - 1023;
  const int last = (exponent < format.smallestExponent ? format.smallestExponent : exponent) - format.fraction;
  // The scaled value has fewer than 64 bits before the point: exponent - last <= fraction.
  const double scaled = value * powerOfTwo(-last < 1023 ? -last : 1023);
  const double rounded = roundToIntegral(rounding, scaled) * powerOfTwo(last);
  if (std::bit_cast<double>(std::bit_cast<uint64_t>(rounded) & ~signBit<double>) <= format.largest)
    return rounded;
  const bool toLargest = finite || rounding == Rounding::Zero || rounding == (negative ? Rounding::Up : Rounding::Down);
  return sign * (toLargest ? format.largest : infinity);
}

/// The modifiers of a conversion to a floating-point format.
struct ConvertOptions {
  Rounding rounding = Rounding::NearestEven;
  bool flush = false;     ///< .ftz: subnormal f32 input and result
  bool saturate = false;  ///< .sat: to [0, 1], NaN to +0
  bool satfinite = false; ///< .satfinite: to the largest finite number, NaN to the canonical one
  bool relu = false;      ///< .relu: negative to +0, NaN to the canonical one
};

/// Negative numbers become +0 when `relu`.
WEFT_LANE double applyRelu(double value, bool relu) { return relu && value <= 0 ? 0.0 : value; }

/// PTX ISA "cvt" .f32.f64, and any exact f64 to f32.
WEFT_LANE float convertToFloat(double value, ConvertOptions options = {}) {
  const double rounded =
      options.rounding == Rounding::NearestEven ? value : roundToFormat(value, formatF32, options.rounding);
  return finish(float(rounded), {options.flush, options.saturate});
}

/// PTX ISA "cvt" .f64.f32, .f64.f16: exact; a NaN keeps no payload.
WEFT_LANE double convertToDouble(float value, ConvertOptions options = {}) {
  const double wide = flush(value, options.flush);
  return options.saturate ? saturate(wide) : wide;
}

/// PTX ISA "cvt" .f16 from f32, f64 or an exact f64.
WEFT_LANE uint16_t convertToHalf(double value, ConvertOptions options = {}) {
  const double rounded = roundToFormat(applyRelu(value, options.relu), formatF16, options.rounding, options.satfinite);
  const uint16_t result = floatToHalf(float(rounded));
  return options.saturate ? saturateHalf<HalfFormat>(result) : result;
}

/// PTX ISA "cvt" .bf16 from f32 or an exact f64.
WEFT_LANE uint16_t convertToBfloat(double value, ConvertOptions options = {}) {
  const double rounded = roundToFormat(applyRelu(value, options.relu), formatBF16, options.rounding, options.satfinite);
  const uint16_t result = floatToBfloat(float(rounded));
  return options.saturate ? saturateHalf<BfloatFormat>(result) : result;
}

/// PTX ISA "cvt" .tf32.f32 (.rna, .rn, .rz): an f32 whose low 13 bits are zero; NaN is canonical.
WEFT_LANE uint32_t convertToTF32(float value, ConvertOptions options = {.rounding = Rounding::NearestAway}) {
  const double rounded =
      roundToFormat(applyRelu(double(value), options.relu), formatTF32, options.rounding, options.satfinite);
  return std::bit_cast<uint32_t>(canonicalNaN(float(rounded)));
}

/// An exact value of an 8-bit format as its bits. `bias` is the exponent's.
WEFT_LANE uint8_t encode8(double value, const FloatFormat &format, int bias, uint8_t nan) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const uint8_t sign = uint8_t(bits >> 56 & 0x80);
  const double magnitude = std::bit_cast<double>(bits & ~signBit<double>);
  if (value != value)
    return nan;
  if (magnitude < powerOfTwo(format.smallestExponent))
    return uint8_t(sign | uint8_t(magnitude * powerOfTwo(format.fraction - format.smallestExponent)));
  const uint32_t exponent = uint32_t(int(bits >> 52 & 0x7ff) - 1023 + bias);
  const uint32_t fraction = uint32_t(bits >> (52 - format.fraction)) & ((1u << format.fraction) - 1);
  return uint8_t(sign | exponent << format.fraction | fraction);
}

/// PTX ISA "cvt" .e4m3x2 and .e5m2x2, one element: to nearest even, always .satfinite.
WEFT_LANE uint8_t convertToE4M3(double value, bool relu = false) {
  return encode8(roundToFormat(applyRelu(value, relu), formatE4M3, Rounding::NearestEven, true), formatE4M3, 7, 0x7f);
}
WEFT_LANE uint8_t convertToE5M2(double value, bool relu = false) {
  return encode8(roundToFormat(applyRelu(value, relu), formatE5M2, Rounding::NearestEven, true), formatE5M2, 15, 0x7f);
}

/// PTX ISA "cvt" .f16x2.e4m3x2 and .f16x2.e5m2x2, one element: exact.
WEFT_LANE uint16_t halfFromE5M2(uint8_t bits) { return (bits & 0x7f) > 0x7c ? 0x7fff : uint16_t(bits << 8); }
WEFT_LANE uint16_t halfFromE4M3(uint8_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f; // rebiased from 7 to 127
  return magnitude == 0x7f ? 0x7fff : uint16_t(floatToHalf(value) | (bits & 0x80) << 8);
}

/// PTX ISA "cvt" from a float to integer T: rounded, then clamped. NaN gives 0, or for f64 sources and 64-bit
/// results the top bit alone. f16 sources pass through f32, which is exact.
template <std::integral T, std::floating_point From>
WEFT_LANE T convertToInteger(Rounding rounding, From value, bool flushed = false) {
  const From input = flush(value, flushed);
  constexpr bool is64 = sizeof(From) == 8 || sizeof(T) == 8;
  if (input != input)
    return is64 ? T(std::make_unsigned_t<T>(1) << (sizeof(T) * 8 - 1)) : T(0);
  const From rounded = roundToIntegral(rounding, input);
  constexpr From low = From(std::numeric_limits<T>::min());
  constexpr From above = From(std::numeric_limits<T>::max() / 2 + 1) * 2; // one past the largest, a power of two
  if (rounded >= above)
    return std::numeric_limits<T>::max();
  return rounded <= low ? std::numeric_limits<T>::min() : T(rounded);
}

/// An integer as an f64 that rounds to any format of at most 52 bits, in any direction, as the integer itself does:
/// bits that an f64 has no room for leave a trace in its last bit.
template <std::integral T> WEFT_LANE double integerToOddDouble(T value) {
  if constexpr (sizeof(T) < 8) {
    return double(value);
  } else {
    const bool negative = value < T(0);
    const uint64_t magnitude = negative ? uint64_t(0) - uint64_t(value) : uint64_t(value);
    const uint64_t sticky = (magnitude & 0x7ff) != 0;
    const double result = magnitude >> 53 ? double(magnitude >> 11 | sticky) * 2048.0 : double(magnitude);
    return negative ? -result : result;
  }
}

/// PTX ISA "cvt" from integer T to f32 and f64 in any direction. To nearest is one conversion of the host.
template <std::integral T> WEFT_LANE float integerToFloat(Rounding rounding, T value) {
  if (rounding == Rounding::NearestEven)
    return float(value);
  return float(roundToFormat(integerToOddDouble(value), formatF32, rounding));
}
template <std::integral T> WEFT_LANE double integerToDouble(Rounding rounding, T value) {
  const double near = double(value);
  if (sizeof(T) < 8 || rounding == Rounding::NearestEven)
    return near;
  const auto exact = __int128(value), back = __int128(near);
  const auto bits = std::bit_cast<uint64_t>(near);
  const bool isAbove = back > exact, isBelow = back < exact, negative = near < 0;
  const bool wantBelow = rounding == Rounding::Down || (rounding == Rounding::Zero && !negative);
  if (isAbove && wantBelow)
    return std::bit_cast<double>(negative ? bits + 1 : bits - 1);
  return std::bit_cast<double>(isBelow && !wantBelow ? (negative ? bits - 1 : bits + 1) : bits);
}

/// PTX ISA "cvt" between integers: clamped with .sat, else the low bits.
template <std::integral T, std::integral From> WEFT_LANE T convertInteger(From value, bool saturate) {
  if (!saturate)
    return T(value);
  if constexpr (std::is_signed_v<From>) {
    const int64_t wide = value;
    if constexpr (std::is_same_v<T, uint64_t>)
      return wide < 0 ? 0 : uint64_t(wide);
    else
      return clampTo<T>(wide);
  } else {
    const uint64_t wide = value, high = uint64_t(std::numeric_limits<T>::max());
    return wide > high ? std::numeric_limits<T>::max() : T(wide);
  }
}

/// PTX ISA "cvt.pack.sat": a and b, clamped to `bits` (16, 8, 4 or 2) signed or unsigned bits, above the low part of
/// c: d = (c << 2 * bits) | a << bits | b. With 16 bits c is not used.
WEFT_LANE uint32_t convertPack(int32_t a, int32_t b, uint32_t c, unsigned bits, bool isSigned) {
  const int32_t high = isSigned ? (1 << (bits - 1)) - 1 : (1 << bits) - 1, low = isSigned ? -high - 1 : 0;
  const uint32_t mask = (1u << bits) - 1;
  const auto field = [&](int32_t value) { return uint32_t(value < low ? low : value > high ? high : value) & mask; };
  return (bits < 16 ? c << 2 * bits : 0) | field(a) << bits | field(b);
}

} // namespace weft::simulator::semantics
