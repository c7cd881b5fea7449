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
