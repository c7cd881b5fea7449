// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Binders shared by the arithmetic families: pick an executor by the type a row's slot has.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Table.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Simulator/Semantics/Rounded.h"

namespace weft::simulator::machine {

/// One bit of Record::imm per modifier that lane functions read at run time.
enum ModifierBit : uint32_t {
  FlushBit = 1,
  SaturateBit = 2,
  ReluBit = 4,
  PropagateNaNBit = 8,
  XorSignBit = 16,
  FiniteBit = 32
};

/// The bits of the modifiers that `b` has, under their usual slot names (ftz, sat, relu, nan, xorsign, satfinite).
inline uint32_t modifierBits(const Binding &b) {
  return (b.has("ftz") ? FlushBit : 0) | (b.has("sat") ? SaturateBit : 0) | (b.has("relu") ? ReluBit : 0) |
         (b.has("NaN") ? PropagateNaNBit : 0) | (b.has("xorsign") ? XorSignBit : 0) |
         (b.has("satfinite") ? FiniteBit : 0);
}

namespace detail {
template <auto F, typename R, typename T, size_t... I> Executor repeated(std::index_sequence<I...>) {
  return lanes<F, R, std::conditional_t<I == I, T, T>...>;
}
template <auto F, typename R, typename T, size_t... I> Executor repeatedWith(std::index_sequence<I...>) {
  return lanesWith<F, R, std::conditional_t<I == I, T, T>...>;
}
} // namespace detail

/// R = F(T, ... N times).
template <auto F, typename R, typename T, size_t N> Executor repeated() {
  return detail::repeated<F, R, T>(std::make_index_sequence<N>{});
}
template <auto F, typename R, typename T, size_t N> Executor repeatedWith() {
  return detail::repeatedWith<F, R, T>(std::make_index_sequence<N>{});
}

/// Binds T = F(T, ... N times) for the integer type of slot "type".
template <auto F, size_t N> void bindInteger(Binding &b) {
  switch (b.type()) {
  case ptx::Type::U16:
    b.record.run = repeated<F, uint16_t, uint16_t, N>();
    break;
  case ptx::Type::S16:
    b.record.run = repeated<F, int16_t, int16_t, N>();
    break;
  case ptx::Type::U32:
    b.record.run = repeated<F, uint32_t, uint32_t, N>();
    break;
  case ptx::Type::S32:
    b.record.run = repeated<F, int32_t, int32_t, N>();
    break;
  case ptx::Type::U64:
    b.record.run = repeated<F, uint64_t, uint64_t, N>();
    break;
  default:
    b.record.run = repeated<F, int64_t, int64_t, N>();
    break;
  }
}

/// Binds T = F(T, ... N times) for the width of slot "type", its sign being of no account.
template <auto F, size_t N> void bindBits(Binding &b) {
  switch (ptx::typeBits(b.type())) {
  case 16:
    b.record.run = repeated<F, uint16_t, uint16_t, N>();
    break;
  case 32:
    b.record.run = repeated<F, uint32_t, uint32_t, N>();
    break;
  default:
    b.record.run = repeated<F, uint64_t, uint64_t, N>();
    break;
  }
}

/// Binds one executor.
template <auto F, typename R, typename... A> void bindLanes(Binding &b) { b.record.run = lanes<F, R, A...>; }

/// Binds one executor that reads the modifiers' bits.
template <auto F, typename R, typename... A> void bindLanesWith(Binding &b) {
  b.record.imm = modifierBits(b);
  b.record.run = lanesWith<F, R, A...>;
}

/// The rounding direction of an instruction, as its binder put it into Record::imm.
constexpr unsigned roundingShift = 8;
inline semantics::Rounding rounding(uint32_t bits) { return semantics::Rounding(bits >> roundingShift & 7); }

/// Puts the modifiers and the direction of the slot "rnd" into Record::imm; gives the direction.
inline semantics::Rounding bindRounding(Binding &b) {
  std::string_view direction = b.modifier("rnd");
  semantics::Rounding mode = direction == "rz"   ? semantics::Rounding::Zero
                             : direction == "rm" ? semantics::Rounding::Down
                             : direction == "rp" ? semantics::Rounding::Up
                                                 : semantics::Rounding::NearestEven;
  b.record.imm = modifierBits(b) | uint32_t(mode) << roundingShift;
  return mode;
}

} // namespace weft::simulator::machine
