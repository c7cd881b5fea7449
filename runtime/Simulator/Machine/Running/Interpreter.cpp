// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/Checks/ProductRegisters.h"
#include "runtime/Simulator/Machine/Checks/Tensor/LoadRegisters.h"
#include "runtime/Simulator/Machine/Running/Barriers.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Running/Clusters.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/Running/Warpgroups.h"
#include "runtime/Support/Format.h"
#include "targets/Target.h"

#include <algorithm>
#include <bit>

namespace weft::simulator::machine {
namespace {

/// Records that a warp runs before it is another's turn.
constexpr int64_t longTurn = 1 << 15;
/// The same for a warp that may be spinning.
constexpr int64_t shortTurn = 256;

uint64_t nextRandom(uint64_t &state) {
  // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// What is followed from record to record.
void watch(Warp &warp, const Record &record, uint32_t mask) {
  if (warp.products && mask)
    watchProducts(warp, record);
  if (warp.loadsTensor && mask)
    watchLoads(warp, record);
  if (warp.anyPoison)
    trackPoison(warp, record, mask);
}

/// The loop: everything about an instruction was settled when it was decoded.
void runTurn(Warp &warp) {
  const Record *code = warp.kernel->code.data();
  uint64_t *executed = warp.worker->executed.data();
  uint64_t *threads = warp.worker->executedThreads.data();
  while (warp.budget > 0) {
    uint32_t at = warp.pc++;
    const Record &record = code[at];
    --warp.budget;
    uint32_t mask = warp.mask;
    if (record.guard != noRef) {
      uint32_t predicate = warp.predicate(record.guard);
      mask &= record.guardNegated ? ~predicate : predicate;
    }
    ++executed[at];
    threads[at] += mask == ~0u ? laneCount : unsigned(__builtin_popcount(mask));
    if (warp.watched)
      watch(warp, record, mask);
    if (mask)
      record.run(warp, record, mask);
  }
}

uint32_t clusterSpecial(const std::string &name, const Block &block) {
  const Dim3 &extent = block.grid->shape.cluster, &grid = block.grid->shape.grid;
  if (name == "%cluster_ctarank")
    return block.rank;
  if (name == "%cluster_nctarank")
    return uint32_t(extent.volume());
  if (name == "%is_explicit_cluster")
    return block.grid->shape.cluster.volume() != 1 || block.grid->kernel->info.requiredCluster.x;
  const auto axis = size_t(name.back() - 'x');
  const uint32_t blocks = axis == 0 ? extent.x : axis == 1 ? extent.y : extent.z;
  if (name.starts_with("%cluster_ctaid"))
    return block.coordinates[axis] % blocks;
  if (name.starts_with("%cluster_nctaid"))
    return blocks;
  if (name.starts_with("%clusterid"))
    return block.coordinates[axis] / blocks;
  return (axis == 0 ? grid.x : axis == 1 ? grid.y : grid.z) / blocks; // %nclusterid
}

uint32_t special(const std::string &name, const Warp &warp, uint32_t lane) {
  const Grid &grid = *warp.block->grid;
  const Dim3 &block = grid.shape.block, &extent = grid.shape.grid;
  uint32_t thread = warp.index * laneCount + lane;
  auto axis = [&](const Dim3 &dims) { return name.back() == 'x' ? dims.x : name.back() == 'y' ? dims.y : dims.z; };
  if (name.starts_with("%tid"))
    return name.back() == 'x'   ? thread % block.x
           : name.back() == 'y' ? thread / block.x % block.y
                                : thread / block.x / block.y;
  if (name.starts_with("%ntid"))
    return axis(block);
  if (name.starts_with("%ctaid"))
    return warp.block->coordinates[size_t(name.back() - 'x')];
  if (name.starts_with("%nctaid"))
    return axis(extent);
  if (name.find("cluster") != std::string::npos)
    return clusterSpecial(name, *warp.block);
  if (name == "%laneid")
    return lane;
  if (name == "%warpid")
    return warp.index;
  if (name == "%nwarpid" || name == "%nsmid")
    return 64;
  if (name == "%lanemask_eq")
    return 1u << lane;
  if (name == "%lanemask_lt")
    return (1u << lane) - 1;
  if (name == "%lanemask_le")
    return (2u << lane) - 1;
  if (name == "%lanemask_ge")
    return ~((1u << lane) - 1);
  if (name == "%lanemask_gt")
    return ~((2u << lane) - 1);
  if (name == "%dynamic_smem_size")
    return grid.shape.sharedBytes;
  if (name.starts_with("%reserved_smem_offset"))
    return grid.sharedBytes -
           (name.ends_with("end") || name.ends_with("cap") ? 0 : grid.options.target->reservedSharedBytes);
  if (name == "%envreg1")
    return uint32_t(grid.workspace >> 32);
  if (name == "%envreg2")
    return uint32_t(grid.workspace);
  if (name == "%total_smem_size" || name == "%aggr_smem_size")
    return grid.sharedBytes;
  return 0;
}

void startWarp(Block &block, Warp &warp, uint32_t index, Worker &worker) {
  const Grid &grid = *block.grid;
  const Kernel &kernel = *grid.kernel;
  warp.block = &block;
  warp.worker = &worker;
  warp.kernel = &kernel;
  warp.index = index;
  uint32_t threads = std::min<uint32_t>(laneCount, grid.threadsPerBlock - index * laneCount);
  warp.live = threads == laneCount ? ~0u : (1u << threads) - 1;
  warp.mask = warp.live;
  warp.pc = 0;
  warp.join = -1;
  warp.spins = 0;
  warp.starved = 0;
  warp.meetings = 0;
  warp.clusterArrived = warp.clusterPassed = 0;
  warp.metRanks = 1u << block.rank;
  warp.order = {};
  warp.fragments.clear();
  warp.joins.clear();
  warp.async.copies.clear();
  warp.registers.resize(kernel.registerBytes + 64);
  auto start = reinterpret_cast<uintptr_t>(warp.registers.data());
  warp.base[0] = warp.registers.data() + (64 - start % 64) % 64;
  if (!kernel.maybeUninitialised.empty()) // a value that is the same in every run
    std::memset(warp.base[0], 0, kernel.registerBytes);
  warp.base[1] = const_cast<std::byte *>(grid.constants.data());
  warp.local.resize(size_t(kernel.localBytes) * laneCount);
  warp.stackTop.fill(kernel.stackStart);
  warp.stackMost.fill(kernel.stackStart);
  for (std::vector<uint32_t> &saved : warp.calls)
    saved.clear();
  warp.localWritten.assign(grid.options.checks.uninitialised ? warp.local.size() : 0, 0);
  for (const SpecialSlot &slot : kernel.specials) {
    for (uint32_t lane = 0; lane < laneCount; ++lane)
      if (slot.wide) // what counts nothing, and no graph, are 0
        warp.reg<uint64_t>(slot.ref)[lane] = slot.name == "%gridid";
      else
        warp.reg<uint32_t>(slot.ref)[lane] = special(slot.name, warp, lane);
  }
  warp.anyPoison = false;
  warp.products = kernel.usesProducts ? makeProducts(warp) : nullptr;
  warp.loadsTensor = false;
  warp.watched = kernel.usesProducts && grid.options.checks.async;
  if (grid.options.checks.uninitialised)
    for (uint32_t i = 0; i < kernel.entryUninitialised; ++i)
      poisonRegister(warp, kernel.maybeUninitialised[i].slot, ~0u,
                     block.origins.add({Origin::Register, Origin::nowhere, Origin::nowhere, i}));
}

bool canRun(const Warp &warp) {
  if (warp.mask)
    return true;
  for (const Fragment &fragment : warp.fragments)
    if (fragment.state == FragmentState::Ready)
      return true;
  return false;
}

std::string waitingFor(const Warp &warp) {
  std::string text;
  if (warp.mask) {
    text = format("warp {} lanes {:#x} at {}", warp.index, warp.mask, siteName(warp, warp.pc));
    if (warp.awaited != ~0u)
      text += " for " + mbarrierState(*warp.block, warp.awaited);
  }
  for (const Fragment &fragment : warp.fragments) {
    if (!text.empty())
      text += ", ";
    uint32_t pc = fragment.state == FragmentState::AtBarrier ? fragment.pc - 1 : fragment.pc;
    text += format("warp {} lanes {:#x} at {}", warp.index, fragment.mask, siteName(warp, pc));
  }
  return text;
}

/// No warp can run: says who waits for what, and ends the block.
void reportStuck(Block &block) {
  for (Warp &warp : block.warps)
    for (const Fragment &fragment : warp.fragments) {
      if (fragment.state != FragmentState::AtSync)
        continue;
      warp.pc = fragment.pc + 1;
      uint32_t missing = warp.live & ~fragment.mask;
      report(warp, FindingKind::DivergentAligned, firstLane(fragment.mask),
             format("executes it with lanes {:#x} only, while lanes {:#x} of the warp are elsewhere", fragment.mask,
                    missing),
             waitingFor(warp));
      return abortBlock(block);
    }
  std::string all;
  Warp *first = nullptr;
  uint32_t pc = 0, lane = 0;
  bool counted = false;
  for (Warp &warp : block.warps)
    for (const Fragment &fragment : warp.fragments) {
      if (!first) {
        first = &warp;
        pc = fragment.pc;
        lane = firstLane(fragment.mask);
      }
      counted |= fragment.state == FragmentState::AtBarrier && block.barriers[fragment.barrier].expected;
    }
  if (!first)
    return abortBlock(block);
  for (Warp &warp : block.warps) {
    std::string text = waitingFor(warp);
    if (!text.empty() && all.size() < 1000)
      all += (all.empty() ? "" : "; ") + text;
  }
  first->pc = pc;
  std::string message = "waits for a barrier that is never complete";
  for (unsigned i = 0; i < 16; ++i)
    if (const Barrier &barrier = block.barriers[i]; barrier.arrivedThreads)
      message += format("; barrier {}: {} threads of {} arrived", i, barrier.arrivedThreads,
                        barrier.expected ? std::to_string(barrier.expected) : "all");
  report(*first, counted ? FindingKind::BarrierMismatch : FindingKind::Deadlock, lane, message, all);
  abortBlock(block);
}

/// Whether the launch may go on after `used` more records; ends the block where it may not.
bool withinLimit(Warp &warp, int64_t used) {
  Grid &grid = *warp.block->grid;
  if (grid.instructionsLeft.fetch_sub(used + 1) > used)
    return true;
  if (warp.live) {
    uint32_t at = warp.mask || warp.fragments.empty() ? warp.pc : warp.fragments.front().pc;
    uint32_t lanes = warp.mask ? warp.mask : warp.live;
    warp.pc = at + 1;
    report(warp, FindingKind::Deadlock, firstLane(lanes),
           format("still runs after {} warp instructions of the launch", grid.options.maximumInstructions));
  }
  abortBlock(*warp.block);
  return false;
}

} // namespace

void reportSpinning(Block &block) {
  std::string all;
  Warp *first = nullptr;
  for (Warp &warp : block.warps) {
    if (!warp.live)
      continue;
    if (!first || (first->awaited == ~0u && warp.awaited != ~0u))
      first = &warp;
    if (std::string text = waitingFor(warp); !text.empty() && all.size() < 1000)
      all += (all.empty() ? "" : "; ") + text;
  }
  if (first && waitsAtCluster(block) && !first->mask) {
    auto at = std::find_if(block.warps.begin(), block.warps.end(), [](const Warp &warp) {
      return std::any_of(warp.fragments.begin(), warp.fragments.end(),
                         [](const Fragment &fragment) { return fragment.state == FragmentState::AtCluster; });
    });
    auto fragment = std::find_if(at->fragments.begin(), at->fragments.end(),
                                 [](const Fragment &each) { return each.state == FragmentState::AtCluster; });
    at->pc = fragment->pc + 1;
    report(*at, FindingKind::Deadlock, firstLane(fragment->mask),
           "waits for a barrier that is never complete; " + clusterState(*block.cluster), all);
  } else if (first) {
    const uint32_t lanes = first->mask ? first->mask : first->live;
    const bool atMbarrier = first->awaited != ~0u;
    // A spinning warp stops at the instruction behind the wait, or anywhere in its loop.
    const uint32_t pc = first->pc;
    first->pc = atMbarrier ? pc : pc + 1;
    if (atMbarrier)
      report(*first, FindingKind::MbarrierMisuse, firstLane(lanes),
             "waits for ever for " + mbarrierState(block, first->awaited));
    report(*first, FindingKind::Deadlock, firstLane(lanes),
           "spins for ever: nothing that it waits for happens any more, and every other warp waits or spins too", all);
  }
  abortBlock(block);
}

void abortBlock(Block &block) {
  block.aborted = true;
  block.liveWarps = 0;
  for (Warp &warp : block.warps) {
    warp.live = warp.mask = 0;
    warp.budget = 0;
    warp.fragments.clear();
  }
}

namespace {

/// Prepares a block, whose place in the grid is set, to run.
void startBlock(Block &block, Worker &worker) {
  Grid &grid = *worker.grid;
  const Dim3 &extent = grid.shape.grid;
  block.index =
      block.coordinates[0] + uint64_t(extent.x) * (block.coordinates[1] + uint64_t(extent.y) * block.coordinates[2]);
  block.remoteReads.clear();
  block.lastRemote.clear();
  block.origins.clear();
  block.shared.assign(grid.sharedBytes, std::byte{0xA5});
  const Checks &checks = grid.options.checks;
  if (checks.races || checks.async || checks.uninitialised)
    block.shadow.reset(grid.sharedBytes, grid.kernel->sharedGranule,
                       grid.warpsPerBlock +
                           (grid.kernel->usesEngines ? (grid.warpsPerBlock + 3) / 4 + engineClocks : 0));
  block.warps.resize(grid.warpsPerBlock);
  block.engines = grid.kernel->usesEngines ? makeEngines(block, grid.options.seed) : nullptr;
  if (block.engines) {
    block.engines->port.block = &block;
    block.engines->port.worker = &worker;
  }
  for (Barrier &barrier : block.barriers)
    barrier.reset();
  for (uint32_t i = 0; i < grid.warpsPerBlock; ++i)
    startWarp(block, block.warps[i], i, worker);
  block.liveWarps = grid.warpsPerBlock;
  block.aborted = false;
  block.turns = 0;
  block.arrivals.clear();
  block.mbarriers.clear();
  worker.random = grid.options.seed ^ (block.index * 0x9E3779B97F4A7C15u);
}

std::array<uint32_t, 3> coordinatesIn(const Dim3 &extent, uint64_t index) {
  return {uint32_t(index % extent.x), uint32_t(index / extent.x % extent.y), uint32_t(index / extent.x / extent.y)};
}

} // namespace

void startCluster(Cluster &cluster, Worker &worker, uint64_t index) {
  const Dim3 &grid = worker.grid->shape.grid, &extent = worker.grid->shape.cluster;
  const std::array<uint32_t, 3> at = coordinatesIn({grid.x / extent.x, grid.y / extent.y, grid.z / extent.z}, index);
  cluster.blocks.resize(extent.volume());
  cluster.arrived = 0;
  cluster.joined.assign(cluster.blocks.size(), 0);
  cluster.released = 0;
  for (uint32_t rank = 0; rank < cluster.blocks.size(); ++rank) {
    if (!cluster.blocks[rank])
      cluster.blocks[rank] = std::make_unique<Block>();
    Block &block = *cluster.blocks[rank];
    const std::array<uint32_t, 3> in = coordinatesIn(extent, rank);
    block.grid = worker.grid;
    block.cluster = &cluster;
    block.clusterIndex = uint32_t(index);
    block.rank = rank;
    block.coordinates = {at[0] * extent.x + in[0], at[1] * extent.y + in[1], at[2] * extent.z + in[2]};
    startBlock(block, worker);
  }
}

BlockState runCluster(Cluster &cluster, uint64_t turns) {
  BlockState state = BlockState::Done;
  for (const auto &block : cluster.blocks)
    if (block->liveWarps && runBlock(*block, turns) == BlockState::Running)
      state = BlockState::Running;
  return state;
}

/// Whether a warp that ran `used` more records counts as spinning: long rounds of a loop take several turns.
static bool spinsAfter(Warp &warp, int64_t used) {
  warp.spins = warp.spun ? longTurn : warp.spins - std::min(warp.spins, used);
  return warp.spins > 0;
}

BlockState runBlock(Block &block, uint64_t turns) {
  bool shuffled = block.grid->options.seed != 0, limited = block.grid->options.maximumInstructions != 0;
  while (block.liveWarps) {
    bool progress = false, spins = true;
    block.warps[0].worker->changed = false;
    size_t count = block.warps.size();
    uint64_t &random = block.warps[0].worker->random;
    size_t first = shuffled ? nextRandom(random) % count : 0;
    for (size_t i = 0; i < count && block.liveWarps; ++i) {
      Warp &warp = block.warps[i + first < count ? i + first : i + first - count];
      if (!warp.live)
        continue;
      if (!warp.mask && !resume(warp))
        continue;
      progress = true;
      const int64_t longest = warp.spun ? shortTurn : longTurn;
      warp.spun = false;
      warp.awaited = ~0u;
      int64_t turn = shuffled ? int64_t(1 + nextRandom(random) % 200) : longest;
      if (limited)
        turn = std::min(turn, int64_t(std::min<uint64_t>(block.grid->options.maximumInstructions, longTurn)));
      warp.budget = turn;
      warp.unused = 0;
      runTurn(warp);
      if (limited && !withinLimit(warp, turn - warp.unused))
        break;
      spins &= spinsAfter(warp, turn - warp.unused);
      if (!warp.live) {
        if (block.liveWarps) {
          --block.liveWarps;
          recheckBarriers(block);
          recheckCluster(*block.cluster);
        }
        continue;
      }
      rotate(warp);
    }
    block.idle = progress && spins && !block.warps[0].worker->changed;
    if (!block.idle && progress)
      block.grid->changes.fetch_add(1, std::memory_order_relaxed);
    if (!progress && block.liveWarps) {
      // Lanes at a join wait for speed only: they go on before anything is called stuck, but not past lanes that are at
      // a warp-wide instruction without them.
      bool freed = false;
      for (Warp &warp : block.warps)
        freed |= !waitsForLanes(warp) && releaseWaiting(warp);
      if (!freed && std::none_of(block.warps.begin(), block.warps.end(), canRun)) {
        if (waitsAtCluster(block)) { // for other blocks
          block.idle = true;
          return BlockState::Running;
        }
        reportStuck(block);
        break;
      }
    }
    if (block.liveWarps && (++block.turns % std::max<uint64_t>(turns, 1) == 0 || block.idle))
      return BlockState::Running;
  }
  return BlockState::Done;
}

} // namespace weft::simulator::machine
