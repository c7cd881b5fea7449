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

/// Whether each lane's bytes lie in one sector, none below that of the lane before; and lanes that begin another one.
struct SectorRuns {
  bool ascending;
  uint32_t starts;
};
[[gnu::always_inline]] inline SectorRuns sectorRunsBody(const uint64_t *addresses, unsigned bytes) {
  uint64_t sectors[laneCount], crossing = 0, descending = 0;
  for (unsigned i = 0; i < laneCount; ++i) {
    sectors[i] = addresses[i] >> 5;
    crossing |= sectors[i] ^ (addresses[i] + bytes - 1) >> 5;
  }
  uint32_t starts = 1;
  for (unsigned i = 1; i < laneCount; ++i) {
    descending |= uint64_t(sectors[i] < sectors[i - 1]);
    starts |= uint32_t(sectors[i] != sectors[i - 1]) << i;
  }
  return {!crossing && !descending, starts};
}

template <typename T> [[gnu::always_inline]] inline void addBody(const T *base, T offset, uint64_t *addresses) {
  for (unsigned i = 0; i < laneCount; ++i)
    addresses[i] = T(base[i] + offset);
}

[[gnu::always_inline]] inline void maskBody(const uint64_t *addresses, uint64_t keep, uint64_t *kept) {
  for (unsigned i = 0; i < laneCount; ++i)
    kept[i] = addresses[i] & keep;
}

#if defined(__x86_64__)
WEFT_WIDEST_LANES AddressPattern patternWidest(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
WEFT_WIDEST_LANES void add64Widest(const uint64_t *base, uint64_t offset, uint64_t *addresses) {
  addBody(base, offset, addresses);
}
WEFT_WIDEST_LANES void add32Widest(const uint32_t *base, uint32_t offset, uint64_t *addresses) {
  addBody(base, offset, addresses);
}
WEFT_WIDEST_LANES void maskWidest(const uint64_t *addresses, uint64_t keep, uint64_t *kept) {
  maskBody(addresses, keep, kept);
}
WEFT_WIDEST_LANES BanksUsed banksWidest(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}
WEFT_WIDEST_LANES SectorRuns sectorRunsWidest(const uint64_t *addresses, unsigned bytes) {
  return sectorRunsBody(addresses, bytes);
}
WEFT_WIDE_LANES AddressPattern patternWide(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
WEFT_WIDE_LANES void add64Wide(const uint64_t *base, uint64_t offset, uint64_t *addresses) {
  addBody(base, offset, addresses);
}
WEFT_WIDE_LANES void add32Wide(const uint32_t *base, uint32_t offset, uint64_t *addresses) {
  addBody(base, offset, addresses);
}
WEFT_WIDE_LANES void maskWide(const uint64_t *addresses, uint64_t keep, uint64_t *kept) {
  maskBody(addresses, keep, kept);
}
WEFT_WIDE_LANES BanksUsed banksWide(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}
WEFT_WIDE_LANES SectorRuns sectorRunsWide(const uint64_t *addresses, unsigned bytes) {
  return sectorRunsBody(addresses, bytes);
}
#endif
AddressPattern patternNarrow(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  return patternBody(addresses, mask, bytes);
}
void add64Narrow(const uint64_t *base, uint64_t offset, uint64_t *addresses) { addBody(base, offset, addresses); }
void add32Narrow(const uint32_t *base, uint32_t offset, uint64_t *addresses) { addBody(base, offset, addresses); }
void maskNarrow(const uint64_t *addresses, uint64_t keep, uint64_t *kept) { maskBody(addresses, keep, kept); }
BanksUsed banksNarrow(const uint64_t *offsets, uint32_t mask, unsigned shift) {
  return banksBody(offsets, mask, shift);
}
SectorRuns sectorRunsNarrow(const uint64_t *addresses, unsigned bytes) { return sectorRunsBody(addresses, bytes); }

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

void addAddresses(const uint64_t *base, uint64_t offset, uint64_t *addresses) {
  static const auto best = WEFT_BEST_LANES(add64);
  best(base, offset, addresses);
}

void addAddresses(const uint32_t *base, uint32_t offset, uint64_t *addresses) {
  static const auto best = WEFT_BEST_LANES(add32);
  best(base, offset, addresses);
}

void maskAddresses(const uint64_t *addresses, uint64_t keep, uint64_t *kept) {
  static const auto best = WEFT_BEST_LANES(mask);
  best(addresses, keep, kept);
}

AddressPattern patternOf(const uint64_t *addresses, uint32_t mask, unsigned bytes) {
  static const auto best = WEFT_BEST_LANES(pattern);
  return best(addresses, mask, bytes);
}

Wavefronts sharedWavefronts(const uint64_t *offsets, uint32_t mask, unsigned bytes, bool contiguous) {
  if (contiguous && bytes <= 16) { // all banks in each pass, or less than one
    const unsigned passes = bytes <= 4 ? 1 : bytes / 4;
    return {passes, passes};
  }
  static const auto banksUsed = WEFT_BEST_LANES(banks);
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
  if (mask == ~0u) {
    static const auto best = WEFT_BEST_LANES(sectorRuns);
    if (const SectorRuns runs = best(addresses, bytes); runs.ascending)
      return unsigned(__builtin_popcount(runs.starts));
  }
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
