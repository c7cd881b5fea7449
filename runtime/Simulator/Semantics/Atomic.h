// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What `atom` and `red` store (PTX ISA 9.7.13 "atom", "red"): the new value from the old one and the operands.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Half.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weft::simulator::semantics {

/// The operations of `atom` and `red`. Inc and Dec are of u32; And, Or and Xor of bits.
enum class AtomicOp : uint8_t { Exchange, Add, Min, Max, Inc, Dec, And, Or, Xor };

/// The value an integer operation leaves; T is the type, uint32_t for the bits of .b32.
template <std::integral T> WEFT_LANE T atomicResult(AtomicOp op, T old, T operand) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
  case AtomicOp::Exchange:
    return operand;
  case AtomicOp::Add:
    return T(U(old) + U(operand));
  case AtomicOp::Min:
    return operand < old ? operand : old;
  case AtomicOp::Max:
    return operand > old ? operand : old;
  case AtomicOp::Inc:
    return old >= operand ? T(0) : T(old + 1);
  case AtomicOp::Dec:
    return old == 0 || old > operand ? operand : T(old - 1);
  case AtomicOp::And:
    return old & operand;
  case AtomicOp::Or:
    return old | operand;
  case AtomicOp::Xor:
    return old ^ operand;
  }
  return old;
}

/// PTX ISA "atom.cas": `value` where memory holds `compare`.
template <std::integral T> WEFT_LANE T atomicCompareAndSwap(T old, T compare, T value) {
  return old == compare ? value : old;
}

/// PTX ISA "atom.add" of f32 and f64. f32 in global memory flushes subnormals, in shared memory it does not.
WEFT_LANE float atomicAdd(float old, float operand, bool isGlobal) { return add(old, operand, {.flush = isGlobal}); }
WEFT_LANE double atomicAdd(double old, double operand) { return old + operand; }

/// PTX ISA "atom.add.noftz" of f16 and bf16, one element or both of a pair.
template <typename F> WEFT_LANE uint16_t atomicAddHalf(uint16_t old, uint16_t operand) {
  return addHalf<F>(old, operand);
}
template <typename F> WEFT_LANE uint32_t atomicAddHalf2(uint32_t old, uint32_t operand) {
  return pack16(addHalf<F>(low16(old), low16(operand)), addHalf<F>(high16(old), high16(operand)));
}

/// PTX ISA "red.min.noftz" and "red.max.noftz" of f16 and bf16.
template <typename F, bool Max> WEFT_LANE uint16_t atomicMinMaxHalf(uint16_t old, uint16_t operand) {
  return minMaxHalf<F, Max>(old, operand, {});
}

} // namespace weft::simulator::semantics
