// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/AccessShape.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

namespace weft::simulator::machine {
namespace {

constexpr unsigned sectorBytes = 32;

/// Whether each address less the first is what `apart` says.
[[gnu::always_inline]] inline bool liesBody(const uint64_t *addresses, const uint64_t *apart) {
  const uint64_t first = addresses[0];
  uint64_t different = 0;
  for (unsigned i = 0; i < laneCount; ++i)
    different |= (addresses[i] - first) ^ apart[i];
  return different == 0;
}

#if defined(__x86_64__)
WEFT_WIDEST_LANES bool liesWidest(const uint64_t *addresses, const uint64_t *apart) {
  return liesBody(addresses, apart);
}
WEFT_WIDE_LANES bool liesWide(const uint64_t *addresses, const uint64_t *apart) { return liesBody(addresses, apart); }
#endif
bool liesNarrow(const uint64_t *addresses, const uint64_t *apart) { return liesBody(addresses, apart); }

} // namespace

bool AccessShape::fits(const uint64_t *addresses, unsigned bytes) const {
  static const auto best = WEFT_BEST_LANES(lies);
  return bytes == bytes_ && addresses[0] % sectorBytes == inSector_ && best(addresses, apart_);
}

void AccessShape::measure(const uint64_t *addresses, unsigned bytes, const AddressPattern &pattern) {
  for (unsigned i = 0; i < laneCount; ++i)
    apart_[i] = addresses[i] - addresses[0];
  const uint64_t first = addresses[0] & windowOffsetMask;
  low_ = pattern.low - first;
  high_ = pattern.high - first;
  inSector_ = uint32_t(addresses[0] % sectorBytes);
  bytes_ = bytes <= sectorBytes ? bytes : 0; // wider ones are not aligned where one of them is
  contiguous_ = pattern.contiguous;
}

} // namespace weft::simulator::machine
