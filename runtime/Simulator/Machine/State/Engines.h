// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What works beside the warps of a block on its shared memory, through the asynchronous proxy: the engine of bulk
// copies and the matrix units of warpgroups.
//
//   cp.async.bulk.tensor.2d ... [tile], [map, {x, y}], [full]    one BulkCopy, of a run for every 16 bytes of the box
//   fence.proxy.async                                            one ProxyFence: what it makes visible to engines
//   wgmma.mma_async ...                                          one PendingProduct, until its group is awaited
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

#include <deque>

namespace weft::simulator::machine {

/// Clocks of a block's shadow beside those of its warps: what was copied with an mbarrier counts as done by the clock
/// that the mbarrier's address chooses, so that waiting for one of them says nothing of the others.
inline constexpr uint32_t engineClocks = 16;

/// Bytes of shared memory.
struct SharedRange {
  uint32_t begin = 0, bytes = 0;
};

/// A stretch of bytes that a bulk copy moves.
struct BulkRun {
  uint32_t shared = 0; ///< byte of shared memory
  uint32_t bytes = 0;
  Address global = 0; ///< 0: outside of the tensor; loads fill it, stores leave it out
};

/// A load arrives in shared memory, of the block itself or of others of its cluster, and completes on an mbarrier
/// there; so does what a thread sends: bytes of its own block's shared memory (cp.async.bulk.shared::cluster), or of
/// its registers (st.async, red.async).
enum class BulkKind : uint8_t { Load, Store, Reduce };

/// A bulk copy that one thread issued. One that goes to several blocks is one for each of them.
struct BulkCopy {
  BulkKind kind = BulkKind::Load;
  Block *issuer = nullptr; ///< the block of that thread
  Block *target = nullptr; ///< where a load goes
  uint8_t parity = 0; ///< of .cta_group::2: rank of the one of a pair on whose mbarrier it completes, mod 2, plus 1
  SharedRange source; ///< of the issuer's shared memory, where a load is sent from there
  uint32_t destinations = 0; ///< ranks that a load goes to, a bit for each; 0: the issuer's own block
  Moment caused = 0;         ///< what the thread knew, of a load to another block
  uint32_t pc = 0, warp = 0, lane = 0;
  uint32_t object = 0; ///< the mbarrier that a load completes on
  uint64_t phase = 0;  ///< of it, at the issue
  uint32_t group = 0;  ///< how many bulk groups the thread had committed before
  uint32_t bytes = 0;  ///< that complete_tx counts: of the whole box, what is filled included
  std::vector<BulkRun> runs;
  std::array<std::byte, 16> fill{}; ///< 16 bytes of what lies outside of the tensor
  void (*reduce)(std::byte *to, const std::byte *from, uint32_t bytes) = nullptr;
  bool taken = false;              ///< a store has read shared memory:
  std::vector<std::byte> contents; ///< this; of st.async and red.async, the operand

  /// Comes from shared memory or registers.
  bool sent() const { return kind == BulkKind::Load && (source.bytes || !contents.empty()); }
};

/// A fence.proxy.async: what its lanes knew then is visible to engines from then on.
struct ProxyFence {
  uint32_t mask = 0, clock = 0;
  std::vector<uint32_t> known; ///< clocks of the block's warps
  Moment moment = 0;
};

/// The operands of a wgmma.mma_async that all four warps of a warpgroup must agree on.
struct GroupStep {
  uint32_t pc = 0;
  uint64_t a = 0, b = 0; ///< descriptors; a is 0 where the operand is in registers
  bool adds = false;     ///< scale-d
};

/// Four warps that execute wgmma together.
struct Warpgroup {
  std::deque<GroupStep> steps; ///< that not all of the warps have come to
  uint64_t first = 0;          ///< the number of steps[0]
  std::array<uint64_t, 4> done{};
  uint32_t reader = 0, over = 0; ///< whose clock says when the last one that is over had read, and that clock
  std::array<uint32_t, 4>
      loaded{}; ///< per warp, its clock when it issued the last one of that kind with A in registers
};

/// A write that engines may read for a lane of a warp.
struct VisibleWrite {
  uint32_t clock = 0; ///< never 0 of a write
  uint16_t thread = 0;
  uint8_t rank = 0, lane = 0;
  bool operator==(const VisibleWrite &) const = default;
};

struct TensorMemory;

struct Engines {
  std::shared_ptr<TensorMemory> tensor; ///< where the kernel has tcgen05
  Warp port;                            ///< stands for an engine where it releases what it did
  std::vector<BulkCopy> copies;
  std::vector<uint32_t> committed;                    ///< bulk groups per thread
  std::vector<std::vector<ProxyFence>> fences;        ///< per warp, oldest first
  std::vector<std::array<VisibleWrite, 256>> visible; ///< per warp, some of them
  std::vector<Warpgroup> groups;
  std::vector<uint32_t> registers; ///< per warp, that its threads have
  int64_t freeRegisters = 0;       ///< per thread of a warp, given back by setmaxnreg.dec
  uint64_t random = 0;             ///< what decides how early things happen; 0: as late as can be

  /// Whether something that may happen at any time happens now.
  bool early() {
    if (!random)
      return false;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random >> 40 & 1;
  }
};

/// Whether a thread of a granule is an engine.
inline bool isEngine(const Block &block, uint32_t thread) { return thread / laneCount >= block.warps.size(); }

/// The clock of copies that complete on an mbarrier.
inline uint32_t engineOf(const Block &block, uint32_t object) {
  return uint32_t(block.warps.size() + block.engines->groups.size()) + (object / 8) % engineClocks;
}

} // namespace weft::simulator::machine
