// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/SharedShadow.h"

#include <algorithm>

namespace weft::simulator::machine {

void SharedShadow::reset(uint32_t bytes, unsigned shift, uint32_t warps) {
  shift_ = shift;
  warps_ = warps;
  granules_.assign((bytes >> shift) + 1, Granule{});
  clocks_.assign(size_t(warps) * warps, 0);
  own_.assign(warps, 1);
  lanes_.assign(warps, {});
  sets_.reset(std::min(warps, 32u));
}

void SharedShadow::addReader(Granule &g, uint32_t warp, uint32_t clock) {
  const uint32_t reader = warp & 31, bit = 1u << reader;
  if (g.read.warps == bit) {
    g.later = std::max(g.later, uint16_t(std::min<uint32_t>(clock - g.read.clock, UINT16_MAX)));
    return;
  }
  if (g.later || g.read.clock != clock)
    addToSet(g, reader, clock);
  g.read.warps |= bit;
}

/// Of reads at different clocks.
void SharedShadow::addToSet(Granule &g, uint32_t reader, uint32_t clock) {
  if (sets_.full() && sets_.isWorthKeeping())
    keepUsedSets();
  const uint32_t latest = std::max(g.readUntil(), clock);
  if (sets_.full()) { // the earliest of all is what is left to remember
    g.read.clock = std::min(clock, g.later && !g.hasOneReader() ? sets_.earliest(g.later) : g.read.clock);
    g.later = 0;
    return;
  }
  g.later = sets_.with(setOf(g), reader, clock);
  g.read.clock = latest;
}

/// The set of a granule's readers, which is made where they read at one clock, or one of them alone.
uint16_t SharedShadow::setOf(const Granule &g) {
  if (g.later && !g.hasOneReader())
    return g.later;
  uint16_t set = 0;
  for (uint32_t rest = g.read.warps; rest; rest &= rest - 1)
    set = sets_.with(set, uint32_t(std::countr_zero(rest)), g.read.clock);
  return g.later ? sets_.with(set, uint32_t(std::countr_zero(g.read.warps)), g.readUntil()) : set;
}

void SharedShadow::keepUsedSets() {
  auto hasSet = [](const Granule &g) { return g.read.warps && !g.hasOneReader() && g.later; };
  std::vector<bool> used(sets_.count());
  for (const Granule &g : granules_)
    if (hasSet(g))
      used[g.later] = true;
  const std::vector<uint16_t> numbers = sets_.keep(used);
  ++renumbered_;
  for (Granule &g : granules_)
    if (hasSet(g))
      g.later = numbers[g.later];
}

void SharedShadow::syncLanes(uint32_t warp, uint32_t mask) {
  constexpr unsigned lanes = 32;
  std::vector<uint32_t> &known = lanes_[warp];
  known.resize(lanes * lanes);
  uint32_t joined[lanes] = {};
  for (unsigned lane = 0; lane < lanes; ++lane)
    for (unsigned other = 0; other < lanes && (mask >> lane & 1); ++other)
      joined[other] = std::max(joined[other], known[lane * lanes + other]);
  const uint32_t now = own_[warp]++;
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (mask >> lane & 1)
      joined[lane] = now;
  for (unsigned lane = 0; lane < lanes; ++lane)
    if (mask >> lane & 1)
      std::copy_n(joined, lanes, known.begin() + lane * lanes);
}

void SharedShadow::release(uint32_t warp, std::vector<uint32_t> &joined) {
  joined.resize(warps_, 0);
  for (uint32_t other = 0; other < warps_; ++other)
    joined[other] = std::max(joined[other], clocks_[warp * warps_ + other]);
  joined[warp] = std::max(joined[warp], now(warp));
}

void SharedShadow::acquire(uint32_t warp, const std::vector<uint32_t> &joined, uint32_t stamp) {
  for (uint32_t other = 0; other < warps_; ++other)
    clocks_[warp * warps_ + other] = std::max(clocks_[warp * warps_ + other], joined[other]);
  clocks_[warp * warps_ + warp] = std::max(clocks_[warp * warps_ + warp], stamp);
  own_[warp] = std::max(own_[warp], stamp + 1);
}

} // namespace weft::simulator::machine
