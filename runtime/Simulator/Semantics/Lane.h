// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What every per-lane function shares. They are always inlined: a loop over 32 lanes then vectorises for whatever
// instruction set its own file is compiled for, and no copy compiled for one set is ever linked in for another.
#pragma once

#include <bit>
#include <cstdint>

/// Marks a function of one lane's values.
#define WEFT_LANE [[gnu::always_inline]] constexpr

namespace weft::simulator::semantics {

/// Any f32 NaN becomes 0x7fffffff, the only one that f32 arithmetic gives (PTX ISA 9.7.3 "Floating-Point"). On bits:
/// compilers hold all NaNs of an f32 expression for equal.
WEFT_LANE float canonicalNaN(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits);
}

/// `a + b` in f64, rounded to odd: inexact sums get an odd last bit, so that a later rounding to half the bits or
/// less is as if it were the only one.
WEFT_LANE double addToOdd(double a, double b) {
  const double sum = a + b, part = sum - a;
  const double error = (a - (sum - part)) + (b - part); // exact (two-sum), unless something is not finite
  const auto bits = std::bit_cast<uint64_t>(sum);
  const auto toward = std::bit_cast<uint64_t>(error) ^ bits; // top bit: the error shrinks the magnitude
  const bool isInexact = error != 0 && error == error && (bits & 1) == 0;
  return std::bit_cast<double>(isInexact ? (toward >> 63 ? bits - 1 : bits + 1) : bits);
}

/// `a + b` as an f32 rounded to odd, for a result that is narrowed to 16 bits afterwards. The operands are f64 that
/// hold exact products or widened values.
WEFT_LANE float toOddFloat(double a, double b) {
  const double sum = addToOdd(a, b);
  const float near = float(sum);
  const double back = near;
  const auto bits = std::bit_cast<uint32_t>(near);
  const bool isInexact = back != sum && sum == sum && (bits & 1) == 0;
  const bool isLarger = (back < 0 ? -back : back) > (sum < 0 ? -sum : sum);
  return std::bit_cast<float>(isInexact ? (isLarger ? bits - 1 : bits + 1) : bits);
}

} // namespace weft::simulator::semantics
