// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Comparisons and selections (PTX ISA 9.7.5 and 9.7.6, "set", "setp", "selp", "slct") for one lane.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Half.h"

#include <concepts>
#include <cstdint>

namespace weft::simulator::semantics {

/// The comparison operators. Integers use the first six (.lo .ls .hi .hs are Lt .. Ge of an unsigned type); the
/// unordered ones are true, Eq .. Ge false, where an operand is NaN.
enum class Comparison : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, NaN };

/// a C b.
template <Comparison C, std::integral T> WEFT_LANE bool compare(T a, T b) {
  switch (C) {
  case Comparison::Eq:
    return a == b;
  case Comparison::Ne:
    return a != b;
  case Comparison::Lt:
    return a < b;
  case Comparison::Le:
    return a <= b;
  case Comparison::Gt:
    return a > b;
  case Comparison::Ge:
    return a >= b;
  default:
    return false;
  }
}

/// a C b; `flushed` is .ftz. The ordered Ne is false for NaN, unlike C++'s.
template <Comparison C, std::floating_point T> WEFT_LANE bool compare(T a, T b, bool flushed = false) {
  const T x = flush(a, flushed), y = flush(b, flushed);
  switch (C) {
  case Comparison::Eq:
    return x == y;
  case Comparison::Ne:
    return (x < y) | (x > y);
  case Comparison::Lt:
    return x < y;
  case Comparison::Le:
    return x <= y;
  case Comparison::Gt:
    return x > y;
  case Comparison::Ge:
    return x >= y;
  case Comparison::Equ:
    return !((x < y) | (x > y));
  case Comparison::Neu:
    return x != y;
  case Comparison::Ltu:
    return !(x >= y);
  case Comparison::Leu:
    return !(x > y);
  case Comparison::Gtu:
    return !(x <= y);
  case Comparison::Geu:
    return !(x < y);
  case Comparison::Num:
    return (x == x) & (y == y);
  case Comparison::NaN:
    return (x != x) | (y != y);
  }
  return false;
}

/// a C b for the 16-bit format F.
template <Comparison C, typename F> WEFT_LANE bool compareHalf(uint16_t a, uint16_t b, bool flushed = false) {
  return compare<C>(F::widen(flushHalf<F>(a, flushed)), F::widen(flushHalf<F>(b, flushed)));
}

/// How `set` and `setp` combine a comparison with a predicate operand.
enum class BoolOp : uint8_t { None, And, Or, Xor };

/// `compared` BoolOp `predicate`. The second destination of setp is `combine(op, !compared, predicate)`.
WEFT_LANE bool combine(BoolOp op, bool compared, bool predicate) {
  switch (op) {
  case BoolOp::None:
    return compared;
  case BoolOp::And:
    return compared && predicate;
  case BoolOp::Or:
    return compared || predicate;
  case BoolOp::Xor:
    return compared != predicate;
  }
  return false;
}

/// PTX ISA "set": all ones or zero as an integer, 1.0 or 0.0 as a float.
WEFT_LANE uint32_t setInteger(bool value) { return value ? 0xffffffffu : 0u; }
WEFT_LANE float setFloat(bool value) { return value ? 1.0f : 0.0f; }
/// Of a 16-bit destination: all ones, or the format's one.
WEFT_LANE uint16_t setInteger16(bool value) { return value ? 0xffff : 0; }
template <typename F> WEFT_LANE uint16_t setHalf(bool value) { return value ? F::one : 0; }

/// PTX ISA "selp".
template <typename T> WEFT_LANE T selp(T a, T b, bool predicate) { return predicate ? a : b; }

/// PTX ISA "slct": a where c >= 0, -0 included, else b; NaN gives b.
template <typename T> WEFT_LANE T slct(T a, T b, int32_t c) { return c >= 0 ? a : b; }
template <typename T> WEFT_LANE T slct(T a, T b, float c, bool flushed = false) {
  return flush(c, flushed) >= 0 ? a : b;
}

} // namespace weft::simulator::semantics
