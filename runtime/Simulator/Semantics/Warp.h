// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Exchanges between the lanes of a warp (PTX ISA 9.7.9.6 "shfl.sync", 9.7.13 "vote.sync", "match.sync",
// "redux.sync", "elect.sync"). Values come as 32 lanes; masks have bit i for lane i.
#pragma once

#include "runtime/Simulator/Semantics/Float.h"
#include "runtime/Simulator/Semantics/Lane.h"

#include <bit>
#include <cstdint>

namespace weft::simulator::semantics {

/// The modes of `shfl`.
enum class ShuffleMode : uint8_t { Up, Down, Butterfly, Index };

/// Which lane a lane of `shfl` reads, and its predicate: false where the lane fell out of its segment and reads
/// itself.
struct ShuffleSource {
  uint8_t lane;
  bool inRange;
  constexpr bool operator==(const ShuffleSource &) const = default;
};

/// PTX ISA "shfl.sync": `b` is the lane or distance, `c` the clamp (bits 4:0) and segment mask (bits 12:8).
WEFT_LANE ShuffleSource shuffleSource(ShuffleMode mode, uint32_t lane, uint32_t b, uint32_t c) {
  const int32_t self = int32_t(lane), by = int32_t(b & 31), clamp = int32_t(c & 31), segment = int32_t(c >> 8 & 31);
  const int32_t last = (self & segment) | (clamp & ~segment), first = self & segment;
  int32_t source = 0;
  switch (mode) {
  case ShuffleMode::Up:
    source = self - by;
    break;
  case ShuffleMode::Down:
    source = self + by;
    break;
  case ShuffleMode::Butterfly:
    source = self ^ by;
    break;
  case ShuffleMode::Index:
    source = first | (by & ~segment);
    break;
  }
  const bool inRange = mode == ShuffleMode::Up ? source >= last : source <= last;
  return {uint8_t(inRange ? source : self), inRange};
}

/// PTX ISA "vote.sync" over the lanes of `members`; `predicates` has a bit for each lane.
WEFT_LANE bool voteAll(uint32_t predicates, uint32_t members) { return (predicates & members) == members; }
WEFT_LANE bool voteAny(uint32_t predicates, uint32_t members) { return (predicates & members) != 0; }
WEFT_LANE bool voteUni(uint32_t predicates, uint32_t members) {
  return voteAll(predicates, members) || !voteAny(predicates, members);
}
WEFT_LANE uint32_t voteBallot(uint32_t predicates, uint32_t members) { return predicates & members; }

/// PTX ISA "match.any.sync": the members whose value equals lane's.
template <typename T> WEFT_LANE uint32_t matchAny(const T *values, uint32_t lane, uint32_t members) {
  uint32_t equal = 0;
  for (uint32_t other = 0; other < 32; ++other)
    equal |= uint32_t(values[other] == values[lane]) << other;
  return equal & members;
}

/// PTX ISA "match.all.sync": the members where all hold one value (the predicate is true), else zero.
template <typename T> WEFT_LANE uint32_t matchAll(const T *values, uint32_t members) {
  if (members == 0)
    return 0;
  return matchAny(values, uint32_t(std::countr_zero(members)), members) == members ? members : 0;
}

/// What `redux` does.
enum class Reduction : uint8_t { Add, Min, Max, And, Or, Xor };

/// PTX ISA "redux.sync": T is uint32_t or int32_t; `members` is not empty.
template <typename T> WEFT_LANE T redux(Reduction reduction, const T *values, uint32_t members) {
  const uint32_t first = uint32_t(std::countr_zero(members)) & 31;
  T result = values[first];
  for (uint32_t lane = first + 1; lane < 32; ++lane) {
    if (!(members >> lane & 1))
      continue;
    const T value = values[lane];
    switch (reduction) {
    case Reduction::Add:
      result = T(uint32_t(result) + uint32_t(value));
      break;
    case Reduction::Min:
      result = value < result ? value : result;
      break;
    case Reduction::Max:
      result = value > result ? value : result;
      break;
    case Reduction::And:
      result &= value;
      break;
    case Reduction::Or:
      result |= value;
      break;
    case Reduction::Xor:
      result ^= value;
      break;
    }
  }
  return result;
}

/// PTX ISA "redux.sync.{min,max}{.abs}{.NaN}.f32": a NaN loses, and stands where all are NaN, unless it is to
/// propagate; -0 is below +0. `members` is not empty.
WEFT_LANE float reduxFloat(bool greatest, bool magnitudes, bool propagateNaN, const float *values, uint32_t members) {
  const MinMaxOptions options{false, propagateNaN, false};
  const uint32_t first = uint32_t(std::countr_zero(members)) & 31;
  float result = values[first];
  for (uint32_t lane = first; lane < 32; ++lane) { // the first with itself, which makes its NaN canonical
    if (!(members >> lane & 1))
      continue;
    const float value = magnitudes ? abs(values[lane]) : values[lane];
    const float before = lane == first ? value : result;
    result = greatest ? max(before, value, options) : min(before, value, options);
  }
  return result;
}

/// PTX ISA "elect.sync": the lane that is elected, here the lowest member.
WEFT_LANE uint32_t elect(uint32_t members) { return uint32_t(std::countr_zero(members)); }

} // namespace weft::simulator::semantics
