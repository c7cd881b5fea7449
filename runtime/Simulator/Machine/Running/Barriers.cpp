// Part of Weft. SPDX-License-Identifier: Apache-2.0
// bar, barrier (PTX ISA 9.7.13.1), and bar.warp.sync (9.7.13.2).
#include "runtime/Simulator/Machine/Running/Barriers.h"
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

bool tracksOrder(const Block &block) { return block.grid->options.checks.races; }

bool isComplete(const Block &block, const Barrier &barrier) {
  if (barrier.arrivedThreads == 0)
    return false;
  if (barrier.expected)
    return barrier.arrivedThreads >= barrier.expected;
  // The last warps mostly arrive last: they say it soonest.
  for (size_t i = block.warps.size(); i-- > 0;)
    if (block.warps[i].live & ~barrier.lanes[i])
      return false;
  return true;
}

const char *kindName(uint8_t reduction) {
  static constexpr const char *names[] = {"no reduction", "'.red.popc'", "'.red.and'", "'.red.or'"};
  return names[reduction];
}

/// A count that is not given is the whole block's, in whole warps.
uint32_t countOf(const Block &block, uint32_t threads) {
  return threads ? threads : uint32_t(block.warps.size()) * laneCount;
}

void writeReduction(Warp &warp, const Record &record, uint32_t mask, const Barrier &barrier) {
  const auto &form = *static_cast<const BarrierForm *>(record.aux);
  if (form.reduction == BarrierForm::Popc) {
    uint32_t values[laneCount];
    std::fill_n(values, laneCount, barrier.count);
    commit(warp.reg<uint32_t>(record.op[0]), values, mask);
  } else if (form.reduction != BarrierForm::None) {
    bool value = form.reduction == BarrierForm::And ? barrier.all : barrier.count != 0;
    commitPredicate(warp.predicate(record.op[0]), value ? ~0u : 0, mask);
  }
}

/// Lets everybody who waits at a complete barrier go on.
void release(Block &block, unsigned number) {
  Barrier &barrier = block.barriers[number];
  uint32_t stamp = 0;
  bool order = tracksOrder(block);
  auto waitsHere = [&](const Fragment &f) { return f.state == FragmentState::AtBarrier && f.barrier == number; };
  if (order) {
    for (Warp &warp : block.warps)
      if (std::any_of(warp.fragments.begin(), warp.fragments.end(), waitsHere))
        stamp = std::max(stamp, block.shadow.now(warp.index));
    for (Warp &warp : block.warps)
      if (std::any_of(warp.fragments.begin(), warp.fragments.end(), waitsHere))
        barrier.joined[warp.index] = stamp;
  }
  for (Warp &warp : block.warps) {
    bool took = false;
    for (Fragment &fragment : warp.fragments) {
      if (!waitsHere(fragment))
        continue;
      fragment.state = FragmentState::Ready;
      writeReduction(warp, warp.kernel->code[fragment.pc - 1], fragment.mask, barrier);
      took = true;
    }
    if (took && order) {
      block.shadow.acquire(warp.index, barrier.joined, stamp);
      joinOrder(block.grid->order, warp.order, barrier.order);
    }
  }
  barrier.reset();
}

/// Ends the block with a finding where a warp may not arrive at a barrier as it does. True where it may; those who come
/// first set what the others must agree on.
bool agrees(Warp &warp, uint32_t mask, const BarrierForm &form, uint32_t number, uint32_t threads) {
  Block &block = *warp.block;
  auto refuse = [&](const std::string &what, std::string other = {}) {
    report(warp, FindingKind::BarrierMismatch, firstLane(mask), what, std::move(other));
    abortBlock(block);
    return false;
  };
  if (number >= block.barriers.size() || threads % laneCount || (!form.waits && !threads))
    return refuse(
        format("expected a barrier from 0 to 15 and a multiple of 32 threads, but got barrier {} and {} threads",
               number, threads));
  Barrier &barrier = block.barriers[number];
  if (barrier.arrivedThreads == 0) {
    barrier.expected = threads;
    barrier.reduction = form.reduction;
    barrier.firstPc = warp.here();
    barrier.lanes.assign(block.warps.size(), 0);
    return true;
  }
  if (barrier.reduction != form.reduction)
    return refuse(format("arrives at barrier {} with {}, while others wait there with {}", number,
                         kindName(form.reduction), kindName(barrier.reduction)),
                  siteName(warp, barrier.firstPc));
  if (countOf(block, barrier.expected) != countOf(block, threads))
    return refuse(format("arrives at barrier {} for {} threads, while others wait for {}", number,
                         threads ? std::to_string(threads) : "all",
                         barrier.expected ? std::to_string(barrier.expected) : "all"),
                  siteName(warp, barrier.firstPc));
  // Lanes that wait cannot come again; a bar.arrive may come round before the others have caught up. Whoever waits
  // where it arrived before has given itself the first turn, as warpgroups do that take turns.
  if (!form.waits && (barrier.lanes[warp.index] & mask))
    return refuse(format("arrives at barrier {} a second time before it is complete", number),
                  siteName(warp, barrier.firstPc));
  return true;
}

/// Counts the lanes in, with what they bring to the reduction and what they know of memory.
void arrive(Warp &warp, const Record &record, uint32_t mask, Barrier &barrier) {
  const auto &form = *static_cast<const BarrierForm *>(record.aux);
  barrier.lanes[warp.index] |= mask;
  // Whole warps count, as the hardware has it.
  barrier.arrivedThreads += form.aligned && mask == warp.live ? laneCount : unsigned(__builtin_popcount(mask));
  if (form.reduction != BarrierForm::None) {
    uint32_t holds = warp.predicate(record.op[3]) ^ (form.negated ? ~0u : 0u);
    barrier.count += unsigned(__builtin_popcount(holds & mask));
    barrier.all &= (mask & ~holds) == 0;
  }
  ++warp.worker->counters.barriers;
  warp.worker->changed = true;
  if (tracksOrder(*warp.block)) {
    warp.block->shadow.release(warp.index, barrier.joined);
    fenceReads(warp);
    joinOrder(warp.block->grid->order, barrier.order, warp.order);
  }
}

/// Lets the lanes of `mask` wait, and the rest of the fragment, whose guard was false, go on.
void wait(Warp &warp, uint32_t mask, uint32_t number) {
  Block &block = *warp.block;
  if (uint32_t rest = warp.mask & ~mask) {
    warp.fragments.push_back({warp.pc, rest, warp.join, FragmentState::Ready, 0});
    warp.mask = mask;
  }
  const bool complete = isComplete(block, block.barriers[number]);
  warp.worker->costs[warp.here()].waits += !complete;
  warp.fragments.push_back({warp.pc, warp.mask, warp.join, FragmentState::AtBarrier, uint8_t(number)});
  warp.mask = 0;
  if (complete)
    release(block, number);
  if (!resume(warp))
    warp.stop();
}

} // namespace

void recheckBarriers(Block &block) {
  for (unsigned i = 0; i < block.barriers.size(); ++i)
    if (isComplete(block, block.barriers[i]))
      release(block, i);
}

void runBarrier(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const BarrierForm *>(record.aux);
  Block &block = *warp.block;
  // Without the check lanes arrive as they come, which hardware since Volta lets pass.
  if (form.aligned && block.grid->options.checks.barriers && !gather(warp, mask, warp.live))
    return;
  unsigned lane = firstLane(mask);
  uint32_t number = warp.reg<uint32_t>(record.op[1])[lane];
  uint32_t threads = record.op[2] == noRef ? 0 : warp.reg<uint32_t>(record.op[2])[lane];
  if (!agrees(warp, mask, form, number, threads))
    return;
  arrive(warp, record, mask, block.barriers[number]);
  if (form.waits)
    return wait(warp, mask, number);
  if (tracksOrder(block))
    block.shadow.advance(warp.index);
  if (isComplete(block, block.barriers[number]))
    release(block, number);
}

} // namespace weft::simulator::machine
