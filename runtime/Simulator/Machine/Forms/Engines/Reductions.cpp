// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Forms/Engines/Reductions.h"
#include "runtime/Simulator/Semantics/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weft::simulator::machine {
namespace {

namespace sem = semantics;

enum class Operation : uint8_t { Add, Min, Max, Inc, Dec, And, Or, Xor };

/// 16-bit floating-point elements, by way of f32: the sum of two is exact there but for its last rounding.
struct F16 {
  uint16_t bits;
  float wide() const { return sem::halfToFloat(bits); }
  static F16 of(float value) { return {sem::floatToHalf(value)}; }
};
struct BF16 {
  uint16_t bits;
  float wide() const { return sem::bfloatToFloat(bits); }
  static BF16 of(float value) { return {sem::floatToBfloat(value)}; }
};
template <typename T> constexpr bool isHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;

/// Minima and maxima leave a number where the other is NaN.
template <typename T> T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  else
    return std::min(a, b);
}
template <typename T> T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  else
    return std::max(a, b);
}

template <Operation op, typename T> T combine(T a, T b) {
  if constexpr (isHalf<T>)
    return T::of(combine<op, float>(a.wide(), b.wide()));
  else if constexpr (op == Operation::Add && std::is_same_v<T, float>) {
    const float sum = a + b; // subnormal results are flushed
    return std::fpclassify(sum) == FP_SUBNORMAL ? std::copysign(0.0f, sum) : sum;
  } else if constexpr (op == Operation::Add)
    return T(a + b);
  else if constexpr (op == Operation::Min)
    return smaller(a, b);
  else if constexpr (op == Operation::Max)
    return larger(a, b);
  else if constexpr (op == Operation::Inc)
    return a >= b ? T(0) : T(a + 1);
  else if constexpr (op == Operation::Dec)
    return a == 0 || a > b ? b : T(a - 1);
  else if constexpr (op == Operation::And)
    return a & b;
  else if constexpr (op == Operation::Or)
    return a | b;
  else
    return a ^ b;
}

template <Operation op, typename T> void reduceAll(std::byte *to, const std::byte *from, uint32_t bytes) {
  for (uint32_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    a = combine<op, T>(a, b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

template <typename T> Reduction arithmetic(std::string_view name) {
  return name == "add"   ? reduceAll<Operation::Add, T>
         : name == "min" ? reduceAll<Operation::Min, T>
         : name == "max" ? reduceAll<Operation::Max, T>
                         : nullptr;
}

template <typename T> Reduction bitwise(std::string_view name) {
  return name == "and"   ? reduceAll<Operation::And, T>
         : name == "or"  ? reduceAll<Operation::Or, T>
         : name == "xor" ? reduceAll<Operation::Xor, T>
                         : nullptr;
}

template <typename T> Reduction whole(std::string_view name) {
  if (name == "inc" || name == "dec")
    return name == "inc" ? reduceAll<Operation::Inc, T> : reduceAll<Operation::Dec, T>;
  const Reduction bits = bitwise<T>(name);
  return bits ? bits : arithmetic<T>(name);
}

} // namespace

Reduction bulkReduction(std::string_view operation, ptx::Type type) {
  switch (type) {
  case ptx::Type::F16:
    return arithmetic<F16>(operation);
  case ptx::Type::BF16:
    return arithmetic<BF16>(operation);
  case ptx::Type::F32:
    return operation == "add" ? arithmetic<float>(operation) : nullptr;
  case ptx::Type::F64:
    return operation == "add" ? arithmetic<double>(operation) : nullptr;
  case ptx::Type::U32:
    return whole<uint32_t>(operation);
  case ptx::Type::S32:
    return arithmetic<int32_t>(operation);
  case ptx::Type::U64:
    return arithmetic<uint64_t>(operation);
  case ptx::Type::S64:
    return arithmetic<int64_t>(operation);
  case ptx::Type::B32:
    return bitwise<uint32_t>(operation);
  case ptx::Type::B64:
    return bitwise<uint64_t>(operation);
  default:
    return nullptr;
  }
}

Reduction tensorReduction(std::string_view operation, TensorType type) {
  const bool bits = operation == "and" || operation == "or" || operation == "xor";
  switch (type) {
  case TensorType::U32:
  case TensorType::S32:
    return bits                      ? bitwise<uint32_t>(operation)
           : type == TensorType::S32 ? arithmetic<int32_t>(operation)
                                     : whole<uint32_t>(operation);
  case TensorType::U64:
  case TensorType::S64:
    return bits                      ? bitwise<uint64_t>(operation)
           : type == TensorType::S64 ? arithmetic<int64_t>(operation)
                                     : arithmetic<uint64_t>(operation);
  case TensorType::F16:
    return bulkReduction(operation, ptx::Type::F16);
  case TensorType::BF16:
    return bulkReduction(operation, ptx::Type::BF16);
  case TensorType::F32:
  case TensorType::F32Flushed:
    return bulkReduction(operation, ptx::Type::F32);
  case TensorType::F64:
    return bulkReduction(operation, ptx::Type::F64);
  default:
    return nullptr;
  }
}

} // namespace weft::simulator::machine
