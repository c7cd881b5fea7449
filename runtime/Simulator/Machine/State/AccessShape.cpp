// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/AccessShape.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

namespace weft::simulator::machine {
namespace {

constexpr unsigned sectorBytes = 32;

typedef uint64_t Words __attribute__((vector_size(64)));

/// Whether each address less the first is what `apart` says; `places` are as far apart. In vectors, as a compiler would
/// treat the first lane apart.
[[gnu::always_inline]] inline bool liesBody(const uint64_t *addresses, const uint64_t *apart, uintptr_t place,
                                            std::byte **places) {
  const uint64_t first = addresses[0];
  Words different = {};
  for (unsigned i = 0; i < laneCount; i += 8) {
    Words here, there;
    std::memcpy(&here, addresses + i, sizeof here);
    std::memcpy(&there, apart + i, sizeof there);
    different |= (here - there) ^ first;
    there += place;
    std::memcpy(static_cast<void *>(places + i), &there, sizeof there);
  }
  return __builtin_reduce_or(different) == 0;
}

#if defined(__x86_64__)
WEFT_WIDEST_LANES bool liesWidest(const uint64_t *addresses, const uint64_t *apart, uintptr_t place,
                                  std::byte **places) {
  return liesBody(addresses, apart, place, places);
}
WEFT_WIDE_LANES bool liesWide(const uint64_t *addresses, const uint64_t *apart, uintptr_t place, std::byte **places) {
  return liesBody(addresses, apart, place, places);
}
#endif
bool liesNarrow(const uint64_t *addresses, const uint64_t *apart, uintptr_t place, std::byte **places) {
  return liesBody(addresses, apart, place, places);
}

} // namespace

bool AccessShape::fits(const uint64_t *addresses, unsigned bytes, uintptr_t first, std::byte **places) const {
  static const auto best = WEFT_BEST_LANES(lies);
  return bytes == bytes_ && addresses[0] % sectorBytes == inSector_ && best(addresses, apart_, first, places);
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
