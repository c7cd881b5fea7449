// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sectors of 32 bytes that a launch reads and writes, each counted once: what memory gives to, and takes from, a cache
// that holds all of them.
//
//   allocation of 160 bytes   |  0  |  1  |  2  |  3  |  4  |
//   block 0 reads              ---------------
//   block 1 reads                    ------------------        read: 5, written: 0
#pragma once

#include "runtime/Simulator/Interface/Memory.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace weft::simulator::machine {

/// Of one allocation, sectors read and sectors written.
struct Touched {
  uint64_t read = 0, written = 0;
};

/// One bit a sector and direction for all allocations of a view. Workers mark at the same time; the one that is first
/// counts the sector.
class TouchedSectors {
public:
  static constexpr unsigned shift = 5;

  /// The sectors that an allocation, of at least one byte, lies in.
  static uint64_t count(const Allocation &allocation) {
    return ((allocation.end() - 1) >> shift) - (allocation.base >> shift) + 1;
  }

  /// Whether anything is counted: after `reset`.
  bool counts() const { return view_ != nullptr; }

  /// Throws std::bad_alloc where there is no memory for marks, which take memory only where they are set.
  void reset(std::shared_ptr<const MemoryView> view) {
    view_ = std::move(view);
    starts_.clear();
    uint64_t sectors = 0;
    for (const Allocation &allocation : view_->allocations()) {
      starts_.push_back(sectors);
      if (allocation.live)
        sectors += count(allocation);
    }
    for (Marks *marks : {&read_, &written_}) {
      marks->reset(static_cast<Marked *>(std::calloc(sectors / 64 + 1, sizeof(Marked)))); // zeros: none is set
      if (!*marks)
        throw std::bad_alloc();
    }
  }

  /// Marks the sectors of [low, low + bytes), which lies in the allocation, and counts those that were not marked in
  /// `counts`, the worker's own, by allocation.
  void mark(const Allocation &allocation, uint64_t low, uint64_t bytes, bool reads, bool writes,
            std::vector<Touched> &counts) {
    markEach(allocation, 1, &low, bytes, reads, writes, counts);
  }

  /// The same of `bytes` from the address of each lane of a mask on.
  void markEach(const Allocation &allocation, uint32_t mask, const uint64_t *lows, uint64_t bytes, bool reads,
                bool writes, std::vector<Touched> &counts) {
    const size_t index = size_t(&allocation - view_->allocations().data());
    const uint64_t start = starts_[index] - (allocation.base >> shift); // of address 0: modulo 2^64
    if (reads)
      counts[index].read += set(read_.get(), start, mask, lows, bytes);
    if (writes)
      counts[index].written += set(written_.get(), start, mask, lows, bytes);
  }

private:
  using Marked = std::atomic<uint64_t>; ///< 64 sectors
  struct Free {
    void operator()(Marked *marks) const { std::free(marks); }
  };
  using Marks = std::unique_ptr<Marked, Free>;

  static uint64_t set(Marked *marks, uint64_t start, uint32_t mask, const uint64_t *lows, uint64_t bytes) {
    uint64_t fresh = 0;
    for (; mask; mask &= mask - 1) {
      const uint64_t low = lows[__builtin_ctz(mask)];
      const uint64_t first = start + (low >> shift), last = start + ((low + bytes - 1) >> shift);
      for (uint64_t i = first / 64; i <= last / 64; ++i) {
        uint64_t bits = ~uint64_t{0};
        bits &= i == first / 64 ? bits << first % 64 : bits;
        bits &= i == last / 64 ? ~uint64_t{0} >> (63 - last % 64) : bits;
        if (bits & ~marks[i].load(std::memory_order_relaxed))
          fresh += uint64_t(__builtin_popcountll(bits & ~marks[i].fetch_or(bits, std::memory_order_relaxed)));
      }
    }
    return fresh;
  }

  std::shared_ptr<const MemoryView> view_;
  std::vector<uint64_t> starts_; ///< by allocation, of its marks
  Marks read_, written_;
};

} // namespace weft::simulator::machine
