// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Addresses.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

template <bool AllLanes>
[[gnu::always_inline]] inline AddressPattern patternOfLanes(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  const uint64_t any = addresses[firstLane(mask)];
  uint64_t low = any, high = any, bits = 0, apart = 0;
  for (unsigned i = 0; i < laneCount; ++i) {
    const uint64_t address = AllLanes || (mask >> i & 1) ? addresses[i] : any;
    low = std::min(low, address);
    high = std::max(high, address);
    bits |= address;
    if (AllLanes)
      apart |= address ^ (any + uint64_t(i) * bytes);
  }
  return {low, high, bits, AllLanes && apart == 0};
}

[[gnu::always_inline]] inline AddressPattern patternBody(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return mask == ~0u ? patternOfLanes<true>(addresses, mask, bytes) : patternOfLanes<false>(addresses, mask, bytes);
}

struct BanksUsed {
  uint32_t eighths[4]; ///< the groups of banks, as bits, of the mask's lanes among each eight
  uint32_t repeats;    ///< lanes whose words are those of the lane before
};
[[gnu::always_inline]] inline BanksUsed banksBody(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  const uint32_t banks = (128u >> shift) - 1;
  BanksUsed result{};
  uint32_t groups[laneCount];
  for (unsigned i = 0; i < laneCount; ++i)
    groups[i] = uint32_t(offsets[i] >> shift);
  for (unsigned i = 1; i < laneCount; ++i)
    result.repeats |= uint32_t(groups[i] == groups[i - 1]) << i;
  for (unsigned part = 0; part < 4; ++part) {
    uint32_t used = 0;
    for (unsigned i = 8 * part; i < 8 * part + 8; ++i)
      used |= (mask >> i & 1) << (groups[i] & banks);
    result.eighths[part] = used;
  }
  return result;
}

#if defined(__x86_64__)
WEFT_WIDEST_LANES AddressPattern patternWidest(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
WEFT_WIDEST_LANES BanksUsed banksWidest(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}
WEFT_WIDE_LANES AddressPattern patternWide(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
WEFT_WIDE_LANES BanksUsed banksWide(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}
#endif
AddressPattern patternNarrow(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
BanksUsed banksNarrow(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}

/// Passes of lanes that share banks, or words: as many as the bank with the most words has.
unsigned passes(const uint64_t *offsets, uint32_t phase, unsigned shift) {
  const uint32_t banks = (128u >> shift) - 1;
  uint32_t words[32][laneCount]; // of each bank, so many as `count` says
  unsigned count[32] = {}, most = 0;
  eachLane(phase, [&](unsigned lane) {
    const auto word = uint32_t(offsets[lane] >> shift);
    uint32_t *const found = words[word & banks];
    unsigned &here = count[word & banks];
    if (std::find(found, found + here, word) != found + here)
      return;
    found[here++] = word;
    most = std::max(most, here);
  });
  return most;
}

} // namespace

AddressPattern patternOf(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
#if defined(__x86_64__)
  static const auto best = hostIsWidest() ? patternWidest : hostIsWide() ? patternWide : patternNarrow;
  return best(addresses, mask, bytes);
#else
  return patternNarrow(addresses, mask, bytes);
#endif
}

Wavefronts sharedWavefronts(const uint64_t *offsets, uint32_t mask, unsigned bytes) {
#if defined(__x86_64__)
  static const auto banksUsed = hostIsWidest() ? banksWidest : hostIsWide() ? banksWide : banksNarrow;
#else
  const auto banksUsed = banksNarrow;
#endif
  const unsigned shift = bytes <= 4 ? 2 : bytes == 8 ? 3 : 4; // of a group of banks that an access takes whole
  const unsigned parts = bytes <= 4 ? 4 : bytes == 8 ? 2 : 1; // eights of lanes of a phase
  const BanksUsed banks = banksUsed(offsets, mask, shift);
  Wavefronts result;
  for (unsigned part = 0; part < 4; part += parts) {
    const uint32_t phase = mask & (parts == 4 ? ~0u : ((1u << 8 * parts) - 1) << 8 * part);
    if (!phase)
      continue;
    uint32_t used = 0;
    for (unsigned i = part; i < part + parts; ++i)
      used |= banks.eighths[i];
    ++result.ideal;
    // A group of banks for each lane, or for each run of lanes, is the rule; anything else is counted exactly. A lane
    // before the phase's first does not share its pass.
    const uint32_t different = phase & ~(banks.repeats & phase << 1);
    result.taken += __builtin_popcount(used) == __builtin_popcount(different) ? 1 : passes(offsets, different, shift);
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
