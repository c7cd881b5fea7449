// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Tensor/Allocations.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>

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

/// Whether the other block of a pair has come to its own part of what this warp is at: the `which`th of a kind. The
/// first to come counts itself.
bool meetsPeer(Warp &warp, size_t kind) {
  Block *peer = peerOf(*warp.block);
  if (!peer) {
    misuse(warp, "expected a cluster of an even number of blocks for '.cta_group::2'");
    return true;
  }
  uint64_t &mine = tensorOf(*warp.block).pairs[kind];
  uint64_t &theirs = tensorOf(*peer).pairs[kind];
  // Odd while a warp waits; both have then come equally often.
  if (mine % 2 == 0) {
    ++mine;
    warp.worker->changed = true;
  }
  if (theirs < mine)
    return false;
  ++mine;
  return true;
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

std::optional<uint32_t> allocateTensor(Warp &warp, uint32_t columns, bool pair) {
  TensorMemory &memory = tensorOf(*warp.block);
  if (!isCount(warp, columns))
    return 0;
  if (memory.relinquished != ~0u) {
    misuse(warp, "allocates after the block has relinquished its right to",
           format("it did at {}", siteName(warp, memory.relinquished)));
    return 0;
  }
  const std::optional<uint32_t> at = memory.place(columns, chance(warp, memory.allocations.size()));
  if (!at || (pair && !meetsPeer(warp, 0)))
    return std::nullopt;
  if (columns > memory.fewest)
    misuse(warp, format("allocates {} columns after {}: no allocation may be larger than one before", columns,
                        memory.fewest));
  memory.fewest = std::min(memory.fewest, columns);
  memory.allocations.push_back({*at, columns, warp.here()});
  warp.worker->changed = true;
  return *at;
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
  if (pair && !meetsPeer(warp, 1))
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
