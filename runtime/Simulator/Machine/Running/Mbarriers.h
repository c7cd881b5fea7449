// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The 64 bits of an mbarrier object (PTX ISA 9.7.13.15), which are opaque to programs. Here:
//
//   bits  0-19  arrivals expected in each phase
//   bits 20-39  arrivals pending in this one
//   bits 40-47  a mark of initialised objects
//   bits 48-63  the phase
#pragma once

#include "runtime/Simulator/Machine/State/Cluster.h"

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

/// `count` arrivals, of those pending.
inline uint64_t arrivals(uint64_t object, uint64_t count, bool drop) {
  return make(expected(object) - (drop ? 1 : 0), pending(object) - count, phase(object));
}

} // namespace mbarrier

/// The key of what is released when a phase ends: those who wait for it learn of its arrivals, not of the next phase's.
inline uint64_t phaseKey(const Block &block, uint64_t object, uint64_t ended) {
  return sharedKey(block, uint32_t(object)) + 1 + (ended & 1);
}

/// An object after arrivals or transactions: in its next phase where none of either is left.
inline uint64_t settled(uint64_t object, int64_t transactions) {
  using namespace mbarrier;
  return pending(object) || transactions ? object : make(expected(object), expected(object), phase(object) + 1);
}

/// Remembers what an instruction or an engine made of an mbarrier, and who ended its phase if it did: a lane of a warp,
/// or an engine's clock.
void rememberObject(Block &block, const RemoteAccess &who, uint32_t offset, uint64_t before, uint64_t after);

/// fence.mbarrier_init, or a fence between proxies, by lanes that initialised mbarriers.
void fenceInitialised(Warp &warp, uint32_t mask);

/// Whether a lane knows that the last phase of an mbarrier that ended is over.
bool knowsPhaseEnd(Warp &warp, Block &block, unsigned lane, const MbarrierHistory &history);

/// Every arrival must know that the phase before its own is over, or it may count in that one: reported.
void checkArrival(Warp &warp, Block &block, unsigned lane, uint32_t offset, uint64_t object);

/// What is known of an mbarrier that lanes wait for, for messages.
std::string mbarrierState(const Block &block, uint32_t offset);

} // namespace weft::simulator::machine
