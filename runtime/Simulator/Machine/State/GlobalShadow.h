// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Who touched global memory last, in any block of a launch: what finds races that shared memory's shadow cannot see.
// Kept by pages that are made when they are touched first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::simulator::machine {

/// One access: which thread, and at which clock of its warp. 0 is none.
struct Stamp {
  uint64_t bits = 0;

  Stamp() = default;
  Stamp(uint64_t block, uint32_t warp, uint32_t lane, uint32_t clock)
      : bits(block << 40 | uint64_t(warp) << 35 | uint64_t(lane) << 30 | (clock & 0x3fff'ffffu)) {}
  explicit operator bool() const { return bits != 0; }
  uint32_t block() const { return uint32_t(bits >> 40); }
  uint32_t warp() const { return uint32_t(bits >> 35) & 31; }
  uint32_t lane() const { return uint32_t(bits >> 30) & 31; }
  uint32_t clock() const { return uint32_t(bits) & 0x3fff'ffffu; }
  /// Of another lane, this being lane 0's.
  Stamp ofLane(unsigned lane) const {
    Stamp other = *this;
    other.bits |= uint64_t(lane) << 30;
    return other;
  }
  bool sameThread(Stamp other) const { return bits >> 30 == other.bits >> 30; }
  bool sameWarp(Stamp other) const { return bits >> 35 == other.bits >> 35; }
};

/// The instruction of an access, and what it orders.
struct AccessPlace {
  uint32_t pc : 24 = 0;
  uint32_t order : 8 = 0; ///< OrderBits
  bool operator==(const AccessPlace &) const = default;
};
/// Instructions that an AccessPlace can tell apart; those of longer kernels are not looked at.
inline constexpr uint32_t maximumPlaces = 1u << 24;

/// The last accesses to one granule of global memory: a write, and the reads since, by different warps. Two stand here,
/// the others in a list.
struct GlobalGranule {
  Stamp write, read[2];
  AccessPlace writeAt, readAt[2];
  uint32_t readLanes : 2 = 0; ///< bit i: several lanes of the warp of read[i] did
  uint32_t more : 30 = 0;     ///< a list of MoreReaders; none where there are not two
};
static_assert(sizeof(GlobalGranule) == 40, "ten bytes for each of memory");

/// A piece of memory's shadow, and the lock that it is changed under.
struct GlobalPage {
  static constexpr unsigned shift = 12;
  explicit GlobalPage(size_t granules) : granules(granules) {}
  std::vector<GlobalGranule> granules;
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
};

class GlobalShadow {
public:
  /// Blocks that a stamp can tell apart; grids of more are not tracked.
  static constexpr uint64_t maximumBlocks = 1u << 24;

  /// For allocations of these sizes, accessed in granules of 2^shift bytes.
  void reset(const std::vector<uint64_t> &sizes, unsigned shift);
  unsigned shift() const { return shift_; }
  bool tracks() const { return !tables_.empty(); }
  /// The page that holds a byte of an allocation, its lock not taken; null where there is no memory for more.
  GlobalPage *page(size_t allocation, uint64_t offset);
  /// Forgets what happened to a range.
  void forget(size_t allocation, uint64_t offset, uint64_t bytes);

private:
  struct Table {
    std::unique_ptr<std::atomic<GlobalPage *>[]> pages;
    size_t count = 0;
    Table() = default;
    Table(Table &&) = default;
    ~Table();
  };
  unsigned shift_ = 2;
  std::vector<Table> tables_;
  std::atomic<uint64_t> pages_{0};
};

} // namespace weft::simulator::machine
