// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Bit fields, shifts, logic and byte permutes (PTX ISA 9.7.1 and 9.7.8) for one lane.
#pragma once

#include "runtime/Simulator/Semantics/Lane.h"

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace weft::simulator::semantics {

/// PTX ISA "shl": an amount beyond the width gives zero.
template <std::unsigned_integral T> WEFT_LANE T shl(T a, uint32_t amount) {
  constexpr uint32_t width = sizeof(T) * 8;
  return amount >= width ? T(0) : T(a << (amount & (width - 1)));
}

/// PTX ISA "shr": arithmetic for signed T; an amount beyond the width leaves only copies of the sign, or zeros.
template <std::integral T> WEFT_LANE T shr(T a, uint32_t amount) {
  constexpr uint32_t width = sizeof(T) * 8;
  if constexpr (std::is_signed_v<T>)
    return T(a >> (amount < width ? amount : width - 1));
  else
    return amount >= width ? T(0) : T(a >> (amount & (width - 1)));
}

/// PTX ISA "shf": the 64-bit value high:low shifted; .l gives the high word, .r the low one. `wrap` takes the amount
/// modulo 32 (.wrap), otherwise it stops at 32 (.clamp).
WEFT_LANE uint32_t shfLeft(uint32_t low, uint32_t high, uint32_t amount, bool wrap) {
  const uint32_t n = wrap ? amount & 31 : amount < 32 ? amount : 32;
  return uint32_t(((uint64_t(high) << 32 | low) << n) >> 32);
}
WEFT_LANE uint32_t shfRight(uint32_t low, uint32_t high, uint32_t amount, bool wrap) {
  const uint32_t n = wrap ? amount & 31 : amount < 32 ? amount : 32;
  return uint32_t((uint64_t(high) << 32 | low) >> n);
}

/// PTX ISA "lop3": bit i of the table is the result for a, b, c = bits 2, 1, 0 of i.
WEFT_LANE uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint8_t table) {
  const auto minterm = [&](unsigned i) {
    return (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c) & -uint32_t(table >> i & 1);
  };
  return minterm(0) | minterm(1) | minterm(2) | minterm(3) | minterm(4) | minterm(5) | minterm(6) | minterm(7);
}

/// PTX ISA "cnot": one if a is zero, else zero.
template <std::unsigned_integral T> WEFT_LANE T cnot(T a) { return a == 0; }

/// PTX ISA "popc", "clz" (the width for zero) and "brev".
template <std::unsigned_integral T> WEFT_LANE uint32_t popc(T a) { return uint32_t(std::popcount(a)); }
template <std::unsigned_integral T> WEFT_LANE uint32_t clz(T a) { return uint32_t(std::countl_zero(a)); }
WEFT_LANE uint32_t brev(uint32_t a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  a = (a >> 8 & 0x00ff00ff) | (a & 0x00ff00ff) << 8;
  return a >> 16 | a << 16;
}
WEFT_LANE uint64_t brev(uint64_t a) { return uint64_t(brev(uint32_t(a))) << 32 | brev(uint32_t(a >> 32)); }

/// PTX ISA "bfind": the position of the most significant bit that is no sign bit, or how far to shift left to bring
/// it to the top (.shiftamt); 0xffffffff where there is none.
template <std::integral T> WEFT_LANE uint32_t bfind(T a, bool shiftAmount = false) {
  using U = std::make_unsigned_t<T>;
  const U bits = std::is_signed_v<T> && a < T(0) ? U(~U(a)) : U(a);
  const uint32_t zeros = uint32_t(std::countl_zero(bits));
  return bits == 0 ? ~0u : shiftAmount ? zeros : uint32_t(sizeof(T) * 8 - 1) - zeros;
}

/// PTX ISA "fns": the position of the n-th set bit of mask from `base`, upwards for n > 0, downwards for n < 0, the
/// base itself for n = 0; 0xffffffff where there is none.
WEFT_LANE uint32_t fns(uint32_t mask, uint32_t base, int32_t n) {
  if (n == 0)
    return base < 32 && mask >> base & 1 ? base : ~0u;
  const int32_t step = n > 0 ? 1 : -1;
  int64_t left = n > 0 ? n : -int64_t(n);
  for (int64_t at = base; at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --left == 0)
      return uint32_t(at);
  return ~0u;
}

/// PTX ISA "bfe": `length` bits of a from `position`, both taken modulo 256. Signed T extends the field's top bit,
/// or a's own top bit where the field passes it; a length of zero gives zero.
template <std::integral T> WEFT_LANE T bfe(T a, uint32_t position, uint32_t length) {
  using U = std::make_unsigned_t<T>;
  constexpr uint32_t width = sizeof(T) * 8;
  const uint32_t pos = position & 0xff, len = length & 0xff;
  if (len == 0)
    return T(0);
  const uint32_t top = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
  const bool sign = std::is_signed_v<T> && (U(a) >> top & 1);
  const U field = shr(U(a), pos), mask = len >= width ? U(~U(0)) : U((U(1) << (len & (width - 1))) - 1);
  const uint32_t valid = pos >= width ? 0 : width - pos; // bits above a's own are copies of the sign
  const U known = valid >= width ? U(~U(0)) : U((U(1) << (valid & (width - 1))) - 1);
  return T((field & mask & known) | (sign ? U(~(mask & known)) : U(0)));
}

/// PTX ISA "bfi": b with `length` bits from `position` replaced by a's low bits.
template <std::unsigned_integral T> WEFT_LANE T bfi(T a, T b, uint32_t position, uint32_t length) {
  constexpr uint32_t width = sizeof(T) * 8;
  const uint32_t pos = position & 0xff, len = length & 0xff;
  const T ones = len >= width ? T(~T(0)) : T((T(1) << (len & (width - 1))) - 1);
  const T mask = shl(ones, pos);
  return T((b & ~mask) | (shl(a, pos) & mask));
}

/// PTX ISA "bmsk": `length` ones from `position`; amounts clamp at 32, or wrap modulo 32.
WEFT_LANE uint32_t bmsk(uint32_t position, uint32_t length, bool wrap) {
  const uint32_t pos = wrap ? position & 31 : position, len = wrap ? length & 31 : length;
  return shl(len >= 32 ? ~0u : (1u << (len & 31)) - 1, pos);
}

/// PTX ISA "szext": a sign- or zero-extended from `bits` bits; amounts clamp at 32, or wrap modulo 32.
template <typename T> WEFT_LANE T szext(T a, uint32_t bits, bool wrap) {
  const uint32_t n = wrap ? bits & 31 : bits;
  if (n == 0)
    return T(0);
  return n >= 32 ? a : T(T(uint32_t(a) << (32 - n)) >> (32 - n));
}

/// How `prmt` reads its selector.
enum class PermuteMode : uint8_t { Index, Forward4, Backward4, Replicate8, EdgeLeft, EdgeRight, Replicate16 };

/// The four selectors of `prmt` in its default mode that `mode` with selector `control` stands for.
WEFT_LANE uint32_t permuteSelector(PermuteMode mode, uint32_t control) {
  const uint32_t n = control & 3;
  const auto four = [](uint32_t b3, uint32_t b2, uint32_t b1, uint32_t b0) {
    return b3 << 12 | b2 << 8 | b1 << 4 | b0;
  };
  switch (mode) {
  case PermuteMode::Index:
    return control & 0xffff;
  case PermuteMode::Forward4:
    return four(n + 3, n + 2, n + 1, n);
  case PermuteMode::Backward4:
    return four((n + 5) & 7, (n + 6) & 7, (n + 7) & 7, n);
  case PermuteMode::Replicate8:
    return four(n, n, n, n);
  case PermuteMode::EdgeLeft:
    return four(3, n > 2 ? n : 2, n > 1 ? n : 1, n);
  case PermuteMode::EdgeRight:
    return four(n, n < 2 ? n : 2, n < 1 ? n : 1, 0);
  case PermuteMode::Replicate16:
    return n & 1 ? four(3, 2, 3, 2) : four(1, 0, 1, 0);
  }
  return 0;
}

/// PTX ISA "prmt": each nibble of the selector picks a byte of b:a; its top bit replicates that byte's sign.
WEFT_LANE uint32_t prmt(uint32_t a, uint32_t b, uint32_t control, PermuteMode mode = PermuteMode::Index) {
  const uint32_t selector = permuteSelector(mode, control);
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t nibble = selector >> i * 4;
    const uint32_t byte = uint32_t(bytes >> (nibble & 7) * 8) & 0xff;
    result |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << i * 8;
  }
  return result;
}

} // namespace weft::simulator::semantics
