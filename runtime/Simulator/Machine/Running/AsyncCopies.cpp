// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/AsyncCopies.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"

#include <utility>

namespace weft::simulator::machine {
namespace {

/// What a copy reads in global memory, as of the instruction that issued it.
GlobalAccesses accessesOf(Warp &warp, const AsyncCopy &copy) {
  struct AtCopy {
    Warp &warp;
    uint32_t here;
    ~AtCopy() { warp.pc = here; }
  } at{warp, std::exchange(warp.pc, copy.pc + 1)};
  return GlobalAccesses(warp, warp.kernel->code[copy.pc]);
}

void complete(Warp &warp, const AsyncCopy &copy, unsigned lane, GlobalAccesses &accesses) {
  std::byte *to = warp.block->shared.data() + copy.to[lane];
  unsigned count = copy.count[lane];
  if (count)
    std::memcpy(to, reinterpret_cast<const std::byte *>(copy.from[lane]), count);
  std::memset(to + count, 0, copy.bytes - count);
  if (count && accesses.tracks())
    accesses.land(lane, copy.from[lane], count);
  if (!tracksShared(warp))
    return;
  SharedShadow &shadow = warp.block->shadow;
  const uint32_t now = shadow.now(warp.index);
  for (Granule *g = &shadow.at(copy.to[lane]), *end = &shadow.at(copy.to[lane] + copy.bytes - 1) + 1; g != end; ++g) {
    g->flags &= uint8_t(~Granule::Pending);
    g->writeClock = now;
    g->writePc = copy.pc;
    g->writeThread = uint16_t(warp.index * laneCount + lane);
  }
  if (copy.unwritten >> lane & 1) { // of how many bytes, nothing wrote
    markUnwritten(warp, to, copy.bytes, (1u << copy.bytes) - 1);
    rememberOrigin(warp, to, copy.bytes, (1u << copy.bytes) - 1, copy.origin);
  }
}

} // namespace

void awaitCopies(Warp &warp, uint32_t mask, uint32_t pending) {
  warp.worker->changed |= !warp.async.copies.empty();
  AsyncQueue &queue = warp.async;
  for (AsyncCopy &copy : queue.copies) {
    GlobalAccesses accesses = accessesOf(warp, copy);
    eachLane(copy.mask & mask, [&](unsigned lane) {
      if (pending != ~0u && uint64_t(copy.group[lane]) + pending >= queue.committed[lane])
        return;
      complete(warp, copy, lane, accesses);
      copy.mask &= ~(1u << lane);
    });
  }
  std::erase_if(queue.copies, [](const AsyncCopy &copy) { return copy.mask == 0; });
}

void completeIssued(Warp &warp, unsigned lane, uint64_t sequence) {
  for (AsyncCopy &copy : warp.async.copies)
    if ((copy.mask >> lane & 1) && copy.sequence < sequence) {
      GlobalAccesses accesses = accessesOf(warp, copy);
      complete(warp, copy, lane, accesses);
      copy.mask &= ~(1u << lane);
    }
  std::erase_if(warp.async.copies, [](const AsyncCopy &copy) { return copy.mask == 0; });
}

void completeAnnounced(Warp &warp, uint32_t mask) {
  for (const AsyncArrival &arrival : warp.block->arrivals)
    if (arrival.warp == warp.index && (mask >> arrival.lane & 1))
      completeIssued(warp, arrival.lane, arrival.sequence);
}

} // namespace weft::simulator::machine
