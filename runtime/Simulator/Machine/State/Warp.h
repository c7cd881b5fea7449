// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The running state: warps, blocks and what a worker thread keeps for them.
#pragma once

#include "runtime/Simulator/Interface/Memory.h"
#include "runtime/Simulator/Machine/State/AccessShape.h"
#include "runtime/Simulator/Machine/State/DeviceHeap.h"
#include "runtime/Simulator/Machine/State/Findings.h"
#include "runtime/Simulator/Machine/State/GlobalShadow.h"
#include "runtime/Simulator/Machine/State/Order.h"
#include "runtime/Simulator/Machine/State/Origins.h"
#include "runtime/Simulator/Machine/State/Program.h"
#include "runtime/Simulator/Machine/State/ProxyFences.h"
#include "runtime/Simulator/Machine/State/Readers/MoreReaders.h"
#include "runtime/Simulator/Machine/State/SharedShadow.h"
#include "runtime/Simulator/Machine/State/TouchedSectors.h"

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

struct Block;
struct Cluster;
struct Worker;
struct Grid;
struct Engines;
struct Products;
class KnownPieces;

/// Where lanes that took different ways wait for each other: the immediate post-dominator of the branch.
struct Join {
  uint32_t pc = ~0u;
  uint32_t mask = 0; ///< lanes that will come, exited ones taken out
  uint32_t arrived = 0;
  int32_t parent = -1;
  bool used = false;
};

enum class FragmentState : uint8_t {
  Ready,
  AtSync,    ///< at a warp-wide instruction whose other lanes are not here
  AtBarrier, ///< arrived at a block barrier
  AtCluster, ///< waits at barrier.cluster
};

/// Lanes of a warp that run together.
struct Fragment {
  uint32_t pc = 0;
  uint32_t mask = 0;
  int32_t join = -1;
  FragmentState state = FragmentState::Ready;
  uint8_t barrier = 0;
};

/// A cp.async on its way: lanes, where from, where to.
struct AsyncCopy {
  uint32_t mask = 0; ///< lanes whose copy is not done
  uint32_t pc = 0;
  uint64_t sequence = 0; ///< in the order of issue
  uint8_t bytes = 0;
  uint8_t count[laneCount]; ///< bytes really copied, the rest is zero
  uint32_t to[laneCount];
  uint32_t group[laneCount]; ///< how many groups the lane had committed before
  uint64_t from[laneCount];
  uint32_t unwritten = 0; ///< lanes of which nothing wrote how many bytes they copy
  uint32_t origin = 0;    ///< of that number
};

/// A warp's copies in flight, oldest first.
struct AsyncQueue {
  std::vector<AsyncCopy> copies;
  uint32_t committed[laneCount] = {}; ///< groups per lane
  uint64_t issued = 0;
};

/// What is known of a byte of local memory.
enum LocalMark : uint8_t {
  localUnwritten,
  localWritten,
  localReturned, ///< of a function that has returned
};

/// Whether a warp's state came again while nothing else changed.
struct Recurrence {
  uint64_t since = ~uint64_t{0}; ///< the grid's changes when it was first looked at
  uint64_t looks = 0, kept = 0;  ///< a state that later ones are compared with
  bool recurs = false;
  uint64_t clockAt = ~uint64_t{0}; ///< the grid's changes when the warp last read a clock
};

struct Warp {
  std::byte *base[2] = {}; ///< registers, constant pool
  Block *block = nullptr;
  Worker *worker = nullptr;
  const Kernel *kernel = nullptr;
  uint32_t pc = 0;   ///< of the record after the one that runs
  uint32_t mask = 0; ///< lanes of the current fragment
  int32_t join = -1;
  int64_t budget = 0;     ///< records until another warp's turn
  int64_t unused = 0;     ///< what was left of the budget when an executor stopped the turn
  bool yielded = false;   ///< the current fragment was taken off, see `current`
  uint32_t awaited = ~0u; ///< the mbarrier that lanes waited for in vain when the turn ended
  bool spun = false;      ///< read memory in a way that a spin loop does, since the turn began
  int64_t spins = 0;      ///< for how many more records that counts as what the warp does

  uint32_t index = 0;              ///< in the block
  uint32_t live = 0;               ///< lanes that have not exited
  bool anyPoison = false;          ///< some register may hold what nothing wrote
  bool watched = false;            ///< something looks at each record before it runs: that, wgmma in the kernel, or
  bool loadsTensor = false;        ///< registers that a tcgen05.ld has written and that it has not read
  std::vector<uint32_t> poison;    ///< per slot, a bit per lane; empty while nothing can be poisoned
  std::vector<uint32_t> origins;   ///< per slot, what left a lane of it unwritten; as long as `poison`
  std::vector<Fragment> fragments; ///< all but the current one while it runs
  std::vector<Join> joins;
  AsyncQueue async;
  WarpOrder order;
  std::vector<std::byte> registers;
  std::vector<std::byte> local;
  std::vector<uint8_t> localWritten;                    ///< a LocalMark per byte of `local`, where checked
  std::array<uint32_t, laneCount> stackTop{};           ///< end of what calls and alloca took, in `local`
  std::array<uint32_t, laneCount> stackMost{};          ///< the furthest that it ever was
  std::array<std::vector<uint32_t>, laneCount> calls{}; ///< what called functions saved
  uint16_t meetings = 0;              ///< shuffles, votes and the like that all live lanes took part in
  uint32_t starved = 0;               ///< turns in which lanes waited for a spinning fragment
  std::shared_ptr<Products> products; ///< its wgmma, where the kernel has any
  Recurrence recurrence;
  uint32_t clusterArrived = 0; ///< lanes that have arrived at barrier.cluster, whose phase is not complete
  uint32_t clusterPassed = 0;  ///< lanes whose phase is complete, and that have not waited for it
  uint32_t metRanks = 0;       ///< blocks of the cluster that it knows to have begun

  template <typename T> T *reg(Ref ref) const { return reinterpret_cast<T *>(base[ref >> 31] + (ref & 0x7fff'ffffu)); }
  uint32_t &predicate(Ref ref) const { return *reg<uint32_t>(ref); }
  /// Ends the turn after the record that runs.
  void stop() {
    unused += budget;
    budget = 0;
  }
  /// The number of the record that is running.
  uint32_t here() const { return pc - 1; }
};

/// One of a block's 16 barriers (PTX ISA 9.7.13.1 "bar").
struct Barrier {
  uint32_t arrivedThreads = 0;
  uint32_t expected = 0; ///< threads; 0: every live thread of the block
  uint32_t firstPc = 0;
  uint8_t reduction = 0;        ///< what bar.red makes of its predicates, 0 for bar.sync and bar.arrive
  std::vector<uint32_t> lanes;  ///< per warp, lanes that arrived
  std::vector<uint32_t> joined; ///< clocks of all that arrived
  WarpOrder order;              ///< and what they knew
  uint32_t count = 0;           ///< threads whose bar.red predicate held
  bool all = true;              ///< whether it held for every thread

  /// As it was at first, without giving memory back.
  void reset();
};

inline void Barrier::reset() {
  arrivedThreads = expected = firstPc = count = 0;
  reduction = 0;
  lanes.clear();
  joined.clear();
  order = {};
  all = true;
}

/// A cp.async.mbarrier.arrive whose copies are on their way.
struct AsyncArrival {
  uint32_t warp, lane;
  uint32_t object;   ///< byte of shared memory
  uint64_t sequence; ///< copies that the lane issued before
  uint32_t pc;
};

/// A thread of a cluster's block that accessed shared memory of another.
struct RemoteAccess {
  uint32_t rank = 0, warp = 0, lane = 0, clock = 0, pc = 0;
  bool atomic = false;
};

/// What is known of an mbarrier besides its 64 bits, from mbarrier.init to mbarrier.inval.
struct MbarrierHistory {
  uint64_t object = 0; ///< as mbarrier instructions left it: other bits mean that something else was stored there
  uint32_t initPc = 0;
  bool ended = false;   ///< some phase did,
  RemoteAccess endedBy; ///< by an arrival of this lane or engine
  Moment caused = 0;    ///< what those knew that issued the copies that arrived here
  uint32_t initWarp = 0, initLane = 0, initClock = 0;
  bool initFenced = false;       ///< a fence.mbarrier_init, or fence.proxy.async, of its thread came after
  bool usedByCopies = false;     ///< bulk copies complete on it
  std::vector<uint64_t> counted; ///< by warp: the phase, plus 1, that it was last seen to wait for, or 0
  int64_t transactions = 0;      ///< bytes expected in this phase that have not come yet; below 0: came before
};

/// What one record cost, in the units of Counters.
struct RecordCost {
  uint64_t sectorsRead = 0, sectorsWritten = 0, sectorsIdeal = 0;
  uint64_t wavefronts = 0, wavefrontsIdeal = 0;
  uint64_t bytes = 0; ///< that lanes asked for in global memory
  uint64_t macs = 0, waits = 0, divergent = 0;

  void add(const RecordCost &other) {
    sectorsRead += other.sectorsRead;
    sectorsWritten += other.sectorsWritten;
    sectorsIdeal += other.sectorsIdeal;
    wavefronts += other.wavefronts;
    wavefrontsIdeal += other.wavefrontsIdeal;
    bytes += other.bytes;
    macs += other.macs;
    waits += other.waits;
    divergent += other.divergent;
  }
};

struct Block {
  Grid *grid = nullptr;
  Cluster *cluster = nullptr;
  uint32_t rank = 0, clusterIndex = 0; ///< in its cluster; of it in the grid
  std::array<uint32_t, 3> coordinates{};
  uint64_t index = 0;
  std::vector<std::byte> shared;
  SharedShadow shadow;
  std::vector<Warp> warps;
  std::array<Barrier, 16> barriers;
  uint32_t liveWarps = 0;
  bool aborted = false;
  uint64_t turns = 0;
  bool idle = false;                             ///< in its last round every warp spun and nothing changed
  std::vector<AsyncArrival> arrivals;            ///< at mbarriers, when copies are done
  OriginTable origins;                           ///< of values that nothing wrote
  std::map<uint32_t, MbarrierHistory> mbarriers; ///< by their byte of shared memory
  std::shared_ptr<Engines> engines;              ///< where the kernel uses any
  /// Reads by other blocks since the last write, by granule.
  std::unordered_map<uint32_t, std::vector<RemoteAccess>> remoteReads;
  std::map<uint32_t, RemoteAccess> lastRemote; ///< by rank and warp: what must be over when the block ends

  /// The clock of a warp, where clocks are kept.
  static uint32_t clockOf(const Warp &warp);
};

inline uint32_t Block::clockOf(const Warp &warp) {
  const SharedShadow &clocks = warp.block->shadow;
  return clocks.warps() ? clocks.now(warp.index) : 0;
}

/// What one worker thread counts and remembers.
struct Worker {
  Grid *grid = nullptr;
  Counters counters;
  std::vector<uint64_t> executed, executedThreads; ///< per record
  std::vector<RecordCost> costs;                   ///< likewise
  std::vector<uint8_t> raced;                      ///< likewise, races found in global memory
  std::vector<const Allocation *> lastAllocation;  ///< per record, where it accessed global memory last
  /// Per record, how its addresses in shared and in global memory lay; null until all lanes made it. In shared memory
  /// they are often permuted, for each warp differently.
  std::vector<std::unique_ptr<AccessShape[]>> sharedShapes, globalShapes;
  static constexpr unsigned sharedShapesOfRecord = 4, globalShapesOfRecord = 1;
  std::shared_ptr<KnownPieces> pieces; ///< of its products' operands, once there are any
  std::vector<Touched> touched;        ///< by allocation of the view, sectors that no worker had touched before
  FindingLog findings;
  std::map<uint64_t, std::string> output; ///< what blocks printed
  uint64_t random = 0;
  bool changed = false; ///< wrote memory, arrived at a barrier or ended lanes since it was cleared
};

/// One launch.
struct Grid {
  const Program *program = nullptr;
  const Kernel *kernel = nullptr;
  LaunchShape shape;
  LaunchOptions options;
  Memory *memory = nullptr;
  std::shared_ptr<const MemoryView> view;
  std::vector<std::byte> constants; ///< the pool with its addresses filled in
  std::vector<std::byte> parameters;
  std::shared_ptr<DeviceHeap> heap;
  OrderGraph order;
  GlobalShadow globalShadow;
  MoreReaders moreReaders;  ///< of granules of globalShadow
  bool ordersBlocks = true; ///< accesses of one block may be ordered before another's
  TouchedSectors touchedSectors;
  ProxyFences proxyFences;
  Address workspace = 0; ///< of the grid's barrier, where the kernel asks for it
  uint32_t sharedBytes = 0;
  uint32_t threadsPerBlock = 0, warpsPerBlock = 0;
  std::atomic<uint64_t> changes{0}; ///< rounds in which something happened that others may wait for
  std::atomic<uint32_t> working{0}; ///< workers that have blocks to run
  uint32_t workers = 0;             ///< all of them
  std::mutex spinMutex;
  struct Spinning {
    uint64_t since = 0;
    bool readsClocks = false;
  };
  /// Workers found to spin for ever unless `changes` goes on from there, or time does where they read clocks.
  std::map<const void *, Spinning> spinning;
  std::atomic<uint64_t> time{0};               ///< what clocks show besides what they count
  std::atomic<uint64_t> stillAt{~uint64_t{0}}; ///< clocks stand still while `changes` is that
  uint64_t movedAt = 0, moves = 0;          ///< `changes` when time was last moved on; how often since another change
  std::atomic<int64_t> instructionsLeft{0}; ///< where options.maximumInstructions sets a limit
};

/// The first lane of a mask that is not empty.
inline unsigned firstLane(uint32_t mask) { return unsigned(__builtin_ctz(mask)); }

/// Calls `body(lane)` for each lane of `mask`, in order.
template <typename Body> inline void eachLane(uint32_t mask, Body body) {
  for (; mask; mask &= mask - 1)
    body(firstLane(mask));
}

/// Whether an access of a warp of the same block, stamped with its clock, happened before what `warp` does now.
inline bool happenedBefore(const Warp &warp, uint32_t owner, uint32_t clock) {
  return warp.block->shadow.ordered(warp.index, owner, clock) || acquired(warp, owner, clock);
}
/// The same for lanes, which of one warp need not have met.
inline bool happenedBefore(const Warp &warp, unsigned lane, uint32_t owner, unsigned ownerLane, uint32_t clock) {
  return (owner == warp.index && warp.block->shadow.lanesOrdered(warp.index, lane, ownerLane, clock)) ||
         happenedBefore(warp, owner, clock);
}

} // namespace weft::simulator::machine
