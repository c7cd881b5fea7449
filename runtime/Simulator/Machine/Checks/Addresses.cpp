// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Addresses.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

[[gnu::always_inline]] inline AddressPattern patternBody(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  const uint64_t any = addresses[firstLane(mask)];
  uint64_t low = any, high = any, bits = 0, apart = 0;
  for (unsigned i = 0; i < laneCount; ++i) {
    const uint64_t address = (mask >> i & 1) ? addresses[i] : any;
    low = std::min(low, address);
    high = std::max(high, address);
    bits |= address;
    apart |= addresses[i] ^ (addresses[0] + uint64_t(i) * bytes);
  }
  return {low, high, bits, mask == ~0u && apart == 0};
}

/// The group of banks of each lane of the mask as a bit, and of the lanes of each phase together.
[[gnu::always_inline]] inline void banksBody(const uint64_t *offsets, uint32_t mask, unsigned shift,
                                             uint32_t *eighths) {
  const uint32_t banks = (128u >> shift) - 1;
  for (unsigned part = 0; part < 4; ++part) {
    uint32_t used = 0;
    for (unsigned i = 8 * part; i < 8 * part + 8; ++i)
      used |= (mask >> i & 1) << (uint32_t(offsets[i] >> shift) & banks);
    eighths[part] = used;
  }
}

#if defined(__x86_64__)
WEFT_WIDE_LANES AddressPattern patternWide(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
WEFT_WIDE_LANES void banksWide(const uint64_t *offsets, uint32_t mask, unsigned shift, uint32_t *eighths) {
  banksBody(offsets, mask, shift, eighths);
}
#endif
AddressPattern patternNarrow(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
void banksNarrow(const uint64_t *offsets, uint32_t mask, unsigned shift, uint32_t *eighths) {
  banksBody(offsets, mask, shift, eighths);
}

/// Passes of lanes that share banks, or words.
unsigned passes(const uint64_t *offsets, uint32_t phase, unsigned shift) {
  const uint32_t banks = (128u >> shift) - 1;
  uint32_t groups[32];
  unsigned count = 0;
  eachLane(phase, [&](unsigned lane) { groups[count++] = uint32_t(offsets[lane] >> shift); });
  std::sort(groups, groups + count);
  count = unsigned(std::unique(groups, groups + count) - groups);
  unsigned perBank[32] = {}, most = 0;
  for (unsigned i = 0; i < count; ++i)
    most = std::max(most, ++perBank[groups[i] & banks]);
  return most;
}

} // namespace

AddressPattern patternOf(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
#if defined(__x86_64__)
  static const auto best = hostIsWide() ? patternWide : patternNarrow;
  return best(addresses, mask, bytes);
#else
  return patternNarrow(addresses, mask, bytes);
#endif
}

Wavefronts sharedWavefronts(const uint64_t *offsets, uint32_t mask, unsigned bytes) {
#if defined(__x86_64__)
  static const auto banksUsed = hostIsWide() ? banksWide : banksNarrow;
#else
  const auto banksUsed = banksNarrow;
#endif
  const unsigned shift = bytes <= 4 ? 2 : bytes == 8 ? 3 : 4; // of a group of banks that an access takes whole
  const unsigned parts = bytes <= 4 ? 4 : bytes == 8 ? 2 : 1; // eights of lanes of a phase
  uint32_t eighths[4];
  banksUsed(offsets, mask, shift, eighths);
  Wavefronts result;
  for (unsigned part = 0; part < 4; part += parts) {
    const uint32_t phase = mask & (parts == 4 ? ~0u : ((1u << 8 * parts) - 1) << 8 * part);
    if (!phase)
      continue;
    uint32_t used = 0;
    for (unsigned i = part; i < part + parts; ++i)
      used |= eighths[i];
    ++result.ideal;
    // A group of banks for each lane is the rule; anything else is counted exactly.
    result.taken += __builtin_popcount(used) == __builtin_popcount(phase) ? 1 : passes(offsets, phase, shift);
  }
  return result;
}

unsigned globalSectors(const uint64_t *addresses, uint32_t mask, unsigned bytes, bool contiguous) {
  if (contiguous)
    return unsigned(((addresses[laneCount - 1] + bytes - 1) >> 5) - (addresses[0] >> 5)) + 1;
  uint64_t sectors[laneCount * 2];
  unsigned count = 0;
  bool sorted = true;
  eachLane(mask, [&](unsigned lane) {
    uint64_t first = addresses[lane] >> 5, last = (addresses[lane] + bytes - 1) >> 5;
    for (uint64_t sector = first; sector <= last && count < laneCount * 2; ++sector) {
      if (count && sectors[count - 1] == sector)
        continue;
      sorted &= !count || sectors[count - 1] < sector;
      sectors[count++] = sector;
    }
  });
  if (!sorted) {
    std::sort(sectors, sectors + count);
    count = unsigned(std::unique(sectors, sectors + count) - sectors);
  }
  return count;
}

} // namespace weft::simulator::machine
