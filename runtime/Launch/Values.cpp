// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Values.h"

#include "runtime/Support/Format.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace weft::launch {
namespace {

using library::ArgumentType;
using library::ScalarKind;

/// Rounds to a binary floating-point format of `mantissa` stored bits and the given exponent bias, to nearest even.
uint16_t roundTo(double value, int mantissa, int bias) {
  uint64_t bits = std::bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 63 << 15);
  int exponentMask = 2 * bias + 1;
  if (std::isnan(value))
    return sign | exponentMask << mantissa | 1 << (mantissa - 1);
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  // The unit in the last place at this magnitude; subnormals share that of the smallest normal number.
  int exponent = std::isinf(value) ? bias + 1 : std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias)
    return sign | exponentMask << mantissa;
  double units = std::nearbyint(std::ldexp(magnitude, mantissa - exponent));
  // units holds the hidden bit where the number is normal; a carry runs into the exponent as it should
  int stored = static_cast<int>(units) + ((exponent + bias - 1) << mantissa);
  return sign | static_cast<uint16_t>(std::min(stored, exponentMask << mantissa));
}

std::string_view kindName(Value::Kind kind) {
  switch (kind) {
  case Value::Kind::Address:
    return "an address";
  case Value::Kind::Integer:
  case Value::Kind::Unsigned:
    return "an integer";
  case Value::Kind::Real:
    return "a real number";
  }
  return "a value of no kind that there is";
}

/// The parameter's bits in the low bytes of a word.
Result<uint64_t> encodeReal(const ArgumentType &type, double real) {
  if (type.kind == ScalarKind::BFloat)
    return toBFloat(real);
  if (type.bits == 16)
    return toHalf(real);
  return type.bits == 32 ? std::bit_cast<uint32_t>(static_cast<float>(real)) : std::bit_cast<uint64_t>(real);
}

Result<uint64_t> encodeInteger(const ArgumentType &type, const Value &value) {
  bool isSigned = type.kind == ScalarKind::Signed;
  if (type.bits == 64 && (!isSigned || value.asInteger()))
    return value.unsignedInteger; // as it is; of a signed one the bits
  uint64_t high = UINT64_MAX >> (64 - type.bits + (isSigned ? 1 : 0));
  int64_t low = isSigned ? -static_cast<int64_t>(high) - 1 : 0;
  std::optional<int64_t> integer = value.asInteger();
  if (integer && *integer >= low && (*integer < 0 || static_cast<uint64_t>(*integer) <= high))
    return static_cast<uint64_t>(*integer);
  return failure(StatusCode::InvalidArgument,
                 weft::format("expected '{}' ({} to {}), but got {}", type.spelling, low, high,
                              integer ? std::to_string(*integer) : std::to_string(value.unsignedInteger)));
}

Result<uint64_t> encode(const ArgumentType &type, const Value &value) {
  bool real = type.kind == ScalarKind::Float || type.kind == ScalarKind::BFloat;
  if (type.pointer && value.kind == Value::Kind::Address)
    return value.address;
  if (!type.pointer && real && value.kind == Value::Kind::Real)
    return encodeReal(type, value.real);
  bool isUnsigned = value.kind == Value::Kind::Unsigned, integer = isUnsigned || value.kind == Value::Kind::Integer;
  if (!type.pointer && real && integer)
    return encodeReal(type,
                      isUnsigned ? static_cast<double>(value.unsignedInteger) : static_cast<double>(value.integer));
  if (!type.pointer && !real && integer)
    return encodeInteger(type, value);
  return failure(StatusCode::InvalidArgument,
                 weft::format("expected '{}', but got {}", type.spelling, kindName(value.kind)));
}

} // namespace

Value Value::ofAddress(uint64_t address) {
  Value value;
  value.kind = Kind::Address;
  value.address = address;
  return value;
}
Value Value::ofInteger(int64_t integer) {
  Value value;
  value.kind = Kind::Integer;
  value.integer = integer;
  return value;
}
Value Value::ofReal(double real) {
  Value value;
  value.kind = Kind::Real;
  value.real = real;
  return value;
}

Value Value::ofUnsigned(uint64_t integer) {
  Value value;
  value.kind = Kind::Unsigned;
  value.unsignedInteger = integer;
  return value;
}
std::optional<int64_t> Value::asInteger() const {
  bool is = kind == Kind::Integer || (kind == Kind::Unsigned && unsignedInteger <= uint64_t(INT64_MAX));
  return is ? std::optional(integer) : std::nullopt;
}

uint16_t toHalf(double value) { return roundTo(value, 10, 15); }
uint16_t toBFloat(double value) { return roundTo(value, 7, 127); }

Result<std::vector<std::byte>> packParameters(std::span<const ArgumentType> types, std::span<const Value> values) {
  if (types.size() != values.size())
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected {} arguments, but got {}", types.size(), values.size()));
  std::vector<std::byte> bytes;
  bytes.reserve(types.size() * 8);
  for (size_t i = 0; i < types.size(); ++i) {
    Result<uint64_t> word = encode(types[i], values[i]);
    if (!word)
      return failure(word.error().code, weft::format("argument {}: {}", i, word.error().message));
    size_t width = types[i].parameterBytes();
    size_t at = (bytes.size() + width - 1) / width * width;
    bytes.resize(at + width);
    std::memcpy(bytes.data() + at, &*word, width);
  }
  return bytes;
}

} // namespace weft::launch
