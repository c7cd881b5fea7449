// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/EngineWrites.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/State/Shadow/GranuleRuns.h"

#include <algorithm>
#include <optional>

namespace weft::simulator::machine {
namespace {

/// The bytes of a copy where they lie one after another, whatever the order of its runs, which have no byte in common.
std::optional<SharedRange> stretchOf(std::span<const BulkRun> runs) {
  uint32_t begin = ~0u, end = 0, bytes = 0;
  for (const BulkRun &run : runs) {
    begin = std::min(begin, run.shared);
    end = std::max(end, run.shared + run.bytes);
    bytes += run.bytes;
  }
  return end - begin == bytes ? std::optional<SharedRange>({begin, bytes}) : std::nullopt;
}

/// The granules of a stretch that has all bytes of each; none of another.
std::span<Granule> granulesOf(SharedShadow &shadow, const std::optional<SharedRange> &stretch) {
  const uint32_t inner = (1u << shadow.shift()) - 1;
  if (!stretch || ((stretch->begin | stretch->bytes) & inner))
    return {};
  return {&shadow.at(stretch->begin), stretch->bytes >> shadow.shift()};
}

/// What `isOver` looks at: clocks, warps and flags.
constexpr GranuleMask whoAndWhen = {{~0u, 0, 0xffe0, 0xffff00ff, ~0u, ~0u, 0, 0}};
static_assert(laneCount == 32 && offsetof(Granule, writeThread) == 8 && offsetof(Granule, flags) == 12 &&
              offsetof(Granule, later) == 14 && offsetof(Granule, read) == 16);

/// Whether all that was done to a granule happened before what the warp does now, and nobody complains of a write by an
/// engine: writers that engines do not see yet, and other blocks, are left to those who look at granules one by one.
bool isOver(const Warp &warp, const Granule &g) {
  const Checks &checks = warp.block->grid->options.checks;
  if (g.flags & (Granule::Pending | Granule::RemoteReads | Granule::RemoteWrite))
    return false;
  if (g.writeClock && checks.async && !isEngine(*warp.block, g.writeThread))
    return false;
  if (!checks.races)
    return true;
  if (g.writeClock && !happenedBefore(warp, g.writeThread / laneCount, g.writeClock))
    return false;
  for (uint32_t rest = g.read.warps; rest; rest &= rest - 1) {
    const unsigned reader = firstLane(rest);
    if (!happenedBefore(warp, reader, warp.block->shadow.readsOf(g, reader).last))
      return false;
  }
  return true;
}

/// Begins a write of whole granules that nobody complains of; false, with nothing changed, where somebody may.
bool beginQuietly(Warp &warp, unsigned lane, std::span<const BulkRun> runs) {
  const std::optional<SharedRange> stretch = stretchOf(runs);
  SharedShadow &shadow = warp.block->shadow;
  const std::span<Granule> granules = granulesOf(shadow, stretch);
  Granule *begin = granules.data(), *end = begin + granules.size();
  uint8_t flags = 0;
  for (Granule *g = begin; g != end; g = endOfAlike(g, end, whoAndWhen)) {
    if (!isOver(warp, *g))
      return false;
    flags |= g->flags;
  }
  if (begin == end || ((flags & Granule::EngineReads) && warp.block->grid->options.checks.async &&
                       !areEnginesDone(warp, *warp.block, *stretch)))
    return false;
  Granule written;
  written.writeClock = shadow.now(warp.index);
  written.writePc = warp.here();
  written.writeThread = uint16_t(warp.index * laneCount + lane);
  written.flags = Granule::Pending;
  fillGranules(begin, end, written);
  return true;
}

template <typename Visit> void eachGranule(SharedShadow &shadow, const BulkRun &run, Visit visit) {
  for (Granule *g = &shadow.at(run.shared), *end = &shadow.at(run.shared + run.bytes - 1) + 1; g != end; ++g)
    visit(*g);
}

} // namespace

void beginEngineWrite(Warp &warp, unsigned lane, Block &target, std::span<const BulkRun> runs, bool reduces) {
  if (!tracksShared(warp))
    return;
  if (&target == warp.block && !reduces && beginQuietly(warp, lane, runs))
    return;
  if (&target == warp.block && warp.block->grid->options.checks.async)
    for (const BulkRun &run : runs)
      adviseFence(warp, lane, run);
  for (const BulkRun &run : runs)
    shadowWrite(warp, lane, clusterAddress(target, run.shared), run.bytes, nullptr, reduces);
  for (const BulkRun &run : runs) // once all of it is written, for runs may share a granule
    eachGranule(target.shadow, run, [](Granule &g) { g.flags |= Granule::Pending; });
}

void endEngineWrite(Block &block, uint32_t engine, uint32_t pc, std::span<const BulkRun> runs, bool reduces) {
  if (!tracksShared(block.warps[0]))
    return;
  Granule set;
  set.writeClock = block.shadow.now(engine);
  set.writePc = pc;
  set.writeThread = uint16_t(engine * laneCount);
  set.flags = reduces ? Granule::Atomic : 0;
  constexpr uint32_t gone = Granule::Pending | Granule::RemoteWrite | Granule::Atomic;
  constexpr GranuleMask keep = {{0, 0, 0xffff0000, ~gone, ~0u, ~0u, ~0u, ~0u}};
  auto change = [&](Granule *first, Granule *end) { changeGranules(first, end, keep, set); };
  if (const std::span<Granule> granules = granulesOf(block.shadow, stretchOf(runs)); !granules.empty())
    return change(granules.data(), granules.data() + granules.size());
  for (const BulkRun &run : runs)
    change(&block.shadow.at(run.shared), &block.shadow.at(run.shared + run.bytes - 1) + 1);
}

} // namespace weft::simulator::machine
