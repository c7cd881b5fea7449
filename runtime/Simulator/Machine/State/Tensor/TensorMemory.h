// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensor memory of sm_100 (PTX ISA 9.7.16.1) and what tensor cores do there: 128 lanes of 512 columns of 32 bits for
// each block. Who touched it last is kept for 16 lanes of a column at a time, which is how instructions reach it.
//
//   tcgen05.alloc                      one TensorAllocation
//   tcgen05.ld, .st                    one TensorTransfer, until tcgen05.wait::ld or ::st of its warp
//   tcgen05.mma                        one TensorOperation, until a commit behind it has completed
//   tcgen05.commit                     one TensorCommit, until it has arrived at its mbarrier
#pragma once

#include "runtime/Simulator/Machine/State/Products.h"
#include "runtime/Simulator/Machine/State/Tensor/InstructionDescriptor.h"
#include "runtime/Simulator/Machine/State/Warp.h"

#include <deque>

namespace weft::simulator::machine {

inline constexpr uint32_t tensorLanes = 128, tensorColumns = 512;
/// Lanes of a group, of which a range has some.
inline constexpr uint32_t tensorGroupLanes = 16, tensorGroups = tensorLanes / tensorGroupLanes;
/// Columns are allocated in multiples of this.
inline constexpr uint32_t tensorUnit = 32;

/// Columns of some groups of lanes.
struct TensorRange {
  uint8_t groups = 0; ///< a bit for each
  uint32_t column = 0, columns = 0;

  bool overlaps(const TensorRange &other) const {
    return (groups & other.groups) && column < other.column + other.columns && other.column < column + columns;
  }
  bool operator==(const TensorRange &) const = default;
};

/// An access that is over, as of a clock of a warp or an engine.
struct TensorStamp {
  uint32_t clock = 0; ///< 0: none
  uint32_t owner = 0;
  uint32_t pc = 0;
  uint32_t block = 0; ///< of the owner, by its index in the grid
  bool used = false;  ///< a load that its warp has not awaited, but whose registers it has read
  // Of tensor cores:
  uint32_t thread = 0;   ///< that issued it, plus 1
  uint32_t issued = 0;   ///< the clock of its warp then
  uint64_t pipeline = 0; ///< see pipelineOf
  bool operator==(const TensorStamp &) const = default;
};

/// What is known of one column of a group of lanes.
struct TensorRegion {
  uint16_t written = 0; ///< lanes that something wrote
  TensorStamp write;    ///< the last
  TensorStamp reads[2]; ///< since then; of more, those that nothing orders are kept
};

struct TensorAllocation {
  uint32_t column = 0, columns = 0, pc = 0;
};

/// A tcgen05.ld or .st of a warp that it has not awaited.
struct TensorTransfer {
  bool stores = false;
  uint32_t warp = 0, pc = 0;
  TensorRange ranges[2];
  std::vector<std::pair<uint32_t, uint32_t>> values; ///< of a store that is on its way: cells and what they will hold
  std::vector<Ref> unread;                           ///< of a load: registers that nothing has read since
  bool used = false;                                 ///< all of them were read
};

/// Which rows of shared memory tcgen05.cp brings to which lanes (PTX ISA 9.7.16.9.2).
enum class TensorCopyShape : uint8_t { None, Rows128, Rows64Apart, Rows64Beside, Rows32 };

/// Record::aux of tcgen05.mma and tcgen05.cp.
struct TensorForm {
  TensorKind kind = TensorKind::F16;
  bool aInTensor = false;
  bool pair = false;                            ///< .cta_group::2
  bool stationary = false;                      ///< .ws
  unsigned scale = 0;                           ///< scale-input-d
  unsigned block = 0;                           ///< elements along K that a scale is of; 0 without scales
  TensorCopyShape copy = TensorCopyShape::None; ///< of tcgen05.cp
  uint32_t parts = 2;                           ///< of 16 bytes in each row that it copies
  /// Scales of a row.
  unsigned scales() const { return block ? (isPacked(kind) ? 64u : 32u) / block : 0; }
};

/// One tcgen05.mma of a thread.
struct TensorOperation {
  const TensorForm *form = nullptr;
  uint32_t pc = 0, warp = 0, lane = 0;
  uint32_t clock = 0;  ///< of the warp when it was issued
  uint64_t number = 0; ///< among those of the block
  InstructionDescriptor shape;
  uint32_t d = 0, a = 0;           ///< addresses in tensor memory
  uint32_t scaleA = 0, scaleB = 0; ///< likewise
  bool adds = true;                ///< enable-input-d
  std::array<uint32_t, 8> disabled{};
  std::shared_ptr<const TensorPieces> aPieces, bPieces;
  TensorRange write;                ///< D
  std::array<TensorRange, 3> reads; ///< A, where it is in tensor memory; its scales, and those of B
  bool computed = false;

  const char *name() const { return form->copy == TensorCopyShape::None ? "tcgen05.mma" : "tcgen05.cp"; }
};

/// What operations have in common whose D is read and written in the order of their issue (PTX ISA 9.7.16.6.2): address and
/// shape, how many blocks they are of, and whether B is stationary.
inline constexpr uint64_t copyPipeline = 2; ///< of tcgen05.cp, which comes before a product of its thread
inline uint64_t pipelineOf(const TensorOperation &operation) {
  if (operation.form->copy != TensorCopyShape::None)
    return copyPipeline;
  return uint64_t(operation.d) << 32 | operation.shape.m << 12 | operation.form->stationary << 11 |
         operation.shape.n << 2 | operation.form->pair << 1 | 1;
}

/// A tcgen05.commit whose arrival has not come.
struct TensorCommit {
  uint32_t pc = 0, warp = 0, lane = 0;
  uint64_t end = 0; ///< operations of the thread before this number
  Block *target = nullptr;
  uint32_t object = 0; ///< the mbarrier, in the target's shared memory
  Moment caused = 0;   ///< what the thread knew
  Moment done = 0;     ///< that the operations are over, once they are
  bool finished = false;
};

/// What tcgen05.fence has ordered for a warp.
struct TensorFences {
  std::vector<uint32_t> before; ///< its clocks at fence::before_thread_sync, ascending
  std::vector<uint32_t> known;  ///< at the last fence::after_thread_sync
  Moment moment = 0;            ///< likewise
};

struct TensorMemory {
  std::vector<uint32_t> cells;       ///< by lane, then column
  std::vector<TensorRegion> regions; ///< by group of lanes, then column
  /// Ranges that were written last, of which no part was read since: products add to one D again and again. Their
  /// regions say so when they are settled.
  struct Written {
    TensorRange range;
    TensorStamp write;
  };
  std::vector<Written> unsettled; ///< none overlaps another
  std::vector<TensorAllocation> allocations;
  uint32_t relinquished = ~0u;     ///< where the block gave up its right to allocate
  uint32_t fewest = tensorColumns; ///< columns of the smallest allocation so far
  uint32_t asked = 0;              ///< columns that a warp waits for with .cta_group::2, until the other block comes
  std::optional<uint32_t> granted; ///< what the other block, having come, has allocated for it
  uint64_t freed = 0;              ///< deallocations with .cta_group::2, twice; odd while a warp waits
  std::vector<TensorTransfer> transfers;
  std::deque<TensorOperation> operations;
  uint64_t issued = 0;
  std::vector<TensorCommit> commits;
  std::map<uint32_t, Moment> done;  ///< by thread: its last commit that has what it waits for
  std::vector<TensorFences> fences; ///< per warp
  KnownTensorPieces pieces;

  explicit TensorMemory(size_t warps);
  uint32_t &cell(uint32_t lane, uint32_t column) { return cells[lane * tensorColumns + column]; }
  TensorRegion &region(uint32_t group, uint32_t column) { return regions[group * tensorColumns + column]; }
  /// The write that all regions of just this range have and none of them does yet; null where there is none.
  Written *unsettledIn(const TensorRange &range);
  /// Brings the regions of a range up to date.
  void settle(const TensorRange &range);
  /// The allocation that has all columns of a range; null where none does.
  const TensorAllocation *allocationOf(const TensorRange &range) const;
  /// The column of a free place of that many columns, the `which`th of them, free in `other` too; none where there is none.
  std::optional<uint32_t> place(uint32_t columns, uint64_t which, const TensorMemory *other = nullptr) const;
  /// Calls `visit(region)` for each that a range has.
  template <typename Visit> void eachRegion(const TensorRange &range, Visit visit) {
    for (uint32_t group = 0; group < tensorGroups; ++group)
      for (uint32_t i = 0; (range.groups >> group & 1) && i < range.columns; ++i)
        visit(region(group, range.column + i), group, range.column + i);
  }
};

} // namespace weft::simulator::machine
