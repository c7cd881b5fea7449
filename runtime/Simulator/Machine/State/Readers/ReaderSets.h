// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reads of a granule of shared memory by several warps at different clocks: of each warp the first and the last.
//
// Neighbours mostly have the same readers, so granules share what is remembered: a set is made of another by one more
// read, and two granules that come from one set by the same read have the same set again. A set never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

/// The clocks of a warp's reads since the last write; 0 where it has none.
struct WarpReads {
  uint32_t first = 0, last = 0;
};

/// The sets of one block, by number; 0 is the empty one.
class ReaderSets {
public:
  /// Forgets everything: sets of `readers` warps.
  void reset(uint32_t readers);

  const WarpReads &of(uint16_t set, uint32_t reader) const { return reads_[size_t(set) * readers_ + reader]; }
  /// The clock of the earliest read of a set.
  uint32_t earliest(uint16_t set) const;
  /// The set with one more read; there must be room for it.
  uint16_t with(uint16_t set, uint32_t reader, uint32_t clock);

  /// Whether there may be no room for the sets that one granule asks for.
  bool full() const { return count() + readers_ + 2 > limit_; }
  /// Whether it is worth a look which sets are in use: not where most were, a short while ago.
  bool isWorthKeeping() { return wait_ == 0 || --wait_ == 0; }
  /// Keeps the sets that are in use and gives the new number of each. Makes room for more where most of them are; where
  /// there is none left, `full` stays true.
  std::vector<uint16_t> keep(const std::vector<bool> &used);

  size_t count() const { return reads_.size() / readers_; }

private:
  static constexpr size_t fewSets = 1024, mostSets = 1 << 16; ///< a number has 16 bits
  uint32_t readers_ = 1;
  size_t limit_ = fewSets, wait_ = 0;
  std::vector<WarpReads> reads_;                ///< by set and reader
  std::unordered_map<uint64_t, uint16_t> next_; ///< of a set, a reader and a clock
  uint64_t lastKey_ = 0;                        ///< of the step that was asked for last, which neighbours ask for again
  uint16_t lastSet_ = 0;
};

} // namespace weft::simulator::machine
