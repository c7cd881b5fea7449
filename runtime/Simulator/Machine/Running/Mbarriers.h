// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The 64 bits of an mbarrier object (PTX ISA 9.7.13.15), which are opaque to programs. Here:
//
//   bits  0-19  arrivals expected in each phase
//   bits 20-39  arrivals pending in this one
//   bits 40-47  a mark of initialised objects
//   bits 48-63  the phase
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {
namespace mbarrier {

inline constexpr uint64_t countMask = (1u << 20) - 1;
inline constexpr uint64_t mark = uint64_t{0xB7} << 40;
inline constexpr uint64_t markMask = uint64_t{0xff} << 40;
inline constexpr unsigned phaseShift = 48;

inline uint64_t expected(uint64_t object) { return object & countMask; }
inline uint64_t pending(uint64_t object) { return object >> 20 & countMask; }
inline uint64_t phase(uint64_t object) { return object >> phaseShift; }
inline uint64_t make(uint64_t expected, uint64_t pending, uint64_t phase) {
  return expected | pending << 20 | mark | phase << phaseShift;
}

/// `count` arrivals; the phase ends with the last.
inline uint64_t arrivals(uint64_t object, uint64_t count, bool drop) {
  uint64_t want = expected(object) - (drop ? 1 : 0), left = pending(object) - count;
  return left ? make(want, left, phase(object)) : make(want, want, phase(object) + 1);
}

} // namespace mbarrier

/// What is known of an mbarrier that lanes wait for, for messages.
std::string mbarrierState(const Block &block, uint32_t offset);

} // namespace weft::simulator::machine
