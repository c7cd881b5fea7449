// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

void rememberObject(Block &block, const RemoteAccess &who, uint32_t offset, uint64_t before, uint64_t after) {
  auto known = block.mbarriers.find(offset);
  if (known == block.mbarriers.end())
    return;
  MbarrierHistory &history = known->second;
  history.object = after;
  if (mbarrier::phase(after) == mbarrier::phase(before))
    return;
  history.ended = true;
  history.endedBy = who;
}

bool knowsPhaseEnd(Warp &warp, Block &block, unsigned lane, const MbarrierHistory &history) {
  const RemoteAccess &last = history.endedBy;
  const Block &ender = *block.cluster->blocks[last.rank];
  if (&ender == warp.block ? (last.warp == warp.index && last.lane == lane) ||
                                 happenedBefore(warp, lane, last.warp, last.lane, last.clock)
                           : happenedBefore(warp, uint32_t(ender.index), last.warp, last.clock))
    return true;
  // A copy of another block that has arrived was issued after what its thread knew then.
  return block.grid->order.knows(warp.order.caused, uint32_t(ender.index), last.warp, last.clock);
}

void checkArrival(Warp &warp, Block &block, unsigned lane, uint32_t offset, uint64_t object) {
  auto known = block.mbarriers.find(offset);
  if (known == block.mbarriers.end() || !known->second.ended || !block.grid->options.checks.races ||
      knowsPhaseEnd(warp, block, lane, known->second))
    return;
  const RemoteAccess &last = known->second.endedBy;
  report(warp, FindingKind::MbarrierMisuse, lane,
         format("arrives in phase {} of an mbarrier that counts {} arrivals, and nothing orders that after the end of "
                "phase {}: either phase may end early",
                mbarrier::phase(object), mbarrier::expected(object), mbarrier::phase(object) - 1),
         last.warp < block.warps.size()
             ? format("warp {}, lane {} ended it at {}", last.warp, last.lane, siteName(warp, last.pc))
             : engineName(warp, last.pc) + " ended it");
}

void fenceInitialised(Warp &warp, uint32_t mask) {
  for (auto &[offset, history] : warp.block->mbarriers)
    history.initFenced |= history.initWarp == warp.index && (mask >> history.initLane & 1);
}

std::string mbarrierState(const Block &block, uint32_t offset) {
  using namespace mbarrier;
  uint64_t object = 0;
  if (uint64_t(offset) + 8 <= block.shared.size())
    std::memcpy(&object, block.shared.data() + offset, 8);
  if ((object & markMask) != mark)
    return format("what is no mbarrier at byte {} of shared memory", offset);
  std::string text = format("the mbarrier at byte {} of shared memory, which is in phase {} and has {} of {} arrivals",
                            offset, phase(object), expected(object) - pending(object), expected(object));
  if (auto known = block.mbarriers.find(offset); known != block.mbarriers.end() && known->second.transactions)
    text += known->second.transactions > 0
                ? format(", and of the bytes that it expects {} have not come", known->second.transactions)
                : format(", and {} bytes have come that it did not expect", -known->second.transactions);
  return text;
}

} // namespace weft::simulator::machine
