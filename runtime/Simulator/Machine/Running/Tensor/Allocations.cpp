// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Tensor/Allocations.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace weft::simulator::machine {
namespace {

void misuse(Warp &warp, const std::string &what, std::string other = {}) {
  report(warp, FindingKind::TensorAllocation, firstLane(warp.mask), what, std::move(other));
}

bool isCount(Warp &warp, uint32_t columns) {
  if (isColumnCount(columns))
    return true;
  misuse(warp, format("expected a power of two from {} to {} as number of columns, but got {}", tensorUnit,
                      tensorColumns, columns));
  return false;
}

/// The other block of a pair; reported where there is none.
Block *expectPeer(Warp &warp) {
  Block *peer = peerOf(*warp.block);
  if (!peer)
    misuse(warp, "expected a cluster of an even number of blocks for '.cta_group::2'");
  return peer;
}

/// What a seed makes of the places that an allocation may have; the same for both blocks of a pair.
uint64_t chance(const Warp &warp, uint64_t which) {
  const uint64_t seed = warp.block->grid->options.seed;
  return seed ? (seed * 0x9E3779B97F4A7C15u ^ (warp.block->clusterIndex + 31 * which + 1) * 0xBF58476D1CE4E5B9u) >> 33
              : 0;
}

} // namespace

bool isColumnCount(uint64_t columns) {
  return std::has_single_bit(columns) && columns >= tensorUnit && columns <= tensorColumns;
}

namespace {

/// Allocates columns where they are free, in both blocks of a pair.
std::optional<uint32_t> takeColumns(Warp &warp, uint32_t columns, Block *peer) {
  TensorMemory &memory = tensorOf(*warp.block);
  const std::optional<uint32_t> at =
      memory.place(columns, chance(warp, memory.allocations.size()), peer ? &tensorOf(*peer) : nullptr);
  if (!at)
    return at;
  if (columns > memory.fewest)
    misuse(warp, format("allocates {} columns after {}: no allocation may be larger than one before", columns,
                        memory.fewest));
  for (Block *block : {warp.block, peer})
    if (block) {
      tensorOf(*block).fewest = std::min(tensorOf(*block).fewest, columns);
      tensorOf(*block).allocations.push_back({*at, columns, warp.here()});
    }
  warp.worker->changed = true;
  return at;
}

/// The same of both blocks of a pair at once, when both have come to it.
std::optional<uint32_t> takeTogether(Warp &warp, uint32_t columns) {
  TensorMemory &memory = tensorOf(*warp.block);
  if (memory.granted)
    return std::exchange(memory.granted, std::nullopt);
  Block *peer = expectPeer(warp);
  if (!peer)
    return takeColumns(warp, columns, nullptr);
  TensorMemory &theirs = tensorOf(*peer);
  if (!theirs.asked) {
    memory.asked = columns;
    return std::nullopt;
  }
  if (theirs.asked != columns)
    misuse(warp, format("allocates {} columns where the other block of its pair allocates {}", columns, theirs.asked));
  const std::optional<uint32_t> at = takeColumns(warp, columns, peer);
  if (at) {
    theirs.granted = at;
    theirs.asked = memory.asked = 0;
  }
  return at;
}

/// Whether the other block of a pair has come to as many deallocations.
bool freesTogether(Warp &warp) {
  const Block *peer = expectPeer(warp);
  uint64_t &mine = tensorOf(*warp.block).freed;
  warp.worker->changed |= mine % 2 == 0;
  mine |= 1;
  if (peer && tensorOf(*peer).freed < mine)
    return false;
  ++mine;
  return true;
}

} // namespace

std::optional<uint32_t> allocateTensor(Warp &warp, uint32_t columns, bool pair) {
  TensorMemory &memory = tensorOf(*warp.block);
  if (!isCount(warp, columns))
    return 0;
  if (memory.relinquished != ~0u) {
    misuse(warp, "allocates after the block has relinquished its right to",
           format("it did at {}", siteName(warp, memory.relinquished)));
    return 0;
  }
  return pair ? takeTogether(warp, columns) : takeColumns(warp, columns, nullptr);
}

bool freeTensor(Warp &warp, uint32_t address, uint32_t columns, bool pair) {
  TensorMemory &memory = tensorOf(*warp.block);
  if (!isCount(warp, columns))
    return true;
  auto known = std::ranges::find_if(memory.allocations, [&](const TensorAllocation &each) {
    return each.column == address && each.columns == columns;
  });
  if (known == memory.allocations.end()) {
    const TensorAllocation *other = memory.allocationOf({0xff, address & 0xffff, 1});
    misuse(warp, format("gives back {} columns at {:#x}, {}", columns, address,
                        other ? format("where {} columns at {} were allocated", other->columns, other->column)
                              : std::string("where nothing is allocated")));
    return true;
  }
  if (pair && !freesTogether(warp))
    return false;
  checkTensorFree(warp, *warp.block, {0xff, known->column, known->columns});
  memory.allocations.erase(known);
  warp.worker->changed = true;
  return true;
}

void relinquishTensor(Warp &warp) {
  uint32_t &at = tensorOf(*warp.block).relinquished;
  at = at == ~0u ? warp.here() : at;
}

void endTensor(Warp &warp, uint32_t mask) {
  TensorMemory &memory = tensorOf(*warp.block);
  const bool checks = warp.block->grid->options.checks.async, last = endsBlock(warp, mask);
  for (const TensorTransfer &transfer : memory.transfers)
    if (checks && transfer.stores && transfer.warp == warp.index && !(warp.live & ~mask))
      report(warp, FindingKind::ExitWithAsync, firstLane(mask), "ends while a tcgen05.st that it issued is in flight",
             siteName(warp, transfer.pc));
  if (!last)
    return;
  if (!memory.allocations.empty())
    misuse(
        warp,
        format("ends the block, which has not given back {} columns of tensor memory", memory.allocations[0].columns),
        format("they were allocated at {}", siteName(warp, memory.allocations[0].pc)));
  if (checks && !memory.operations.empty())
    report(warp, FindingKind::ExitWithAsync, firstLane(mask),
           "ends the block while a tcgen05.mma may still be in flight: no tcgen05.commit behind it was awaited",
           siteName(warp, memory.operations[0].pc));
}

} // namespace weft::simulator::machine
