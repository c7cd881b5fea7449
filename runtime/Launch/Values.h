// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The values of a launch, and the parameter bytes that a kernel reads them from.
#pragma once

#include "runtime/Library/Types.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace weft::launch {

/// A value as a caller gives it, before the signature says what it is to become. The C interface's `weft_value`.
struct Value {
  enum class Kind : int32_t { Address = 0, Integer = 1, Real = 2, Unsigned = 3 } kind = Kind::Integer;
  union {
    uint64_t address;
    int64_t integer = 0;
    double real;
    uint64_t unsignedInteger;
  };
  static Value ofAddress(uint64_t address);
  static Value ofInteger(int64_t integer);
  static Value ofReal(double real);
  static Value ofUnsigned(uint64_t integer);
  /// The integer that it is, where it is one that int64 has.
  std::optional<int64_t> asInteger() const;
};

/// Lays `values` out as the parameters of a kernel: in order, each at its natural alignment, little-endian, the whole
/// not padded. Integers must lie in the range of their type (u64 takes the bits of a signed one); reals are rounded to
/// nearest even; an integer is accepted where a real is wanted, nothing else is converted. InvalidArgument says which
/// argument, by its number from 0.
Result<std::vector<std::byte>> packParameters(std::span<const library::ArgumentType> types,
                                              std::span<const Value> values);

/// `value` rounded to nearest even as IEEE binary16; past its range, infinity.
uint16_t toHalf(double value);
/// `value` rounded to nearest even as bfloat16, once, from double.
uint16_t toBFloat(double value);

} // namespace weft::launch
