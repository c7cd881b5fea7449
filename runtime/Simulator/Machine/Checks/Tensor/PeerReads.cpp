// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Tensor/PeerReads.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/State/Engines.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

/// Whether a fence.proxy.async of a warp of its block covers a write, and the reader knows of it.
bool isFenced(const Warp &warp, const Block &peer, const Granule &g) {
  const uint32_t writer = g.writeThread / laneCount;
  const auto &fences = peer.engines->fences;
  for (uint32_t other = 0; other < fences.size(); ++other)
    for (const ProxyFence &fence : fences[other])
      if (fence.known[writer] >= g.writeClock && happenedBefore(warp, uint32_t(peer.index), other, fence.clock))
        return true;
  return false;
}

} // namespace

bool beginPeerRead(Warp &warp, unsigned lane, Block &peer, std::span<const uint32_t> pieces) {
  if (!tracksShared(warp))
    return false;
  const Checks &checks = warp.block->grid->options.checks;
  bool unwritten = false;
  auto place = [&](uint32_t piece) {
    return format("reads 16 bytes at byte {} of shared memory of block rank {}", piece, peer.rank);
  };
  auto side = [&](const Granule &g) { return remoteSide(warp, "wrote", peer.rank, g.writeThread, g.writePc); };
  for (const uint32_t piece : pieces)
    for (Granule *g = &peer.shadow.at(piece), *end = &peer.shadow.at(piece + 15) + 1; g != end; ++g) {
      unwritten |= (g->writeClock == 0 && !(g->flags & Granule::Pending)) || g->poisoned;
      if (g->flags & Granule::Pending) {
        if (checks.async)
          report(warp, FindingKind::AsyncUnwaited, lane, place(piece) + ", which a copy may still write",
                 format("it was issued at {}", siteName(warp, g->writePc)));
      } else if (g->writeClock && !writeOrdered(warp, lane, peer, *g)) {
        if (checks.races)
          report(warp, FindingKind::SharedRace, lane, place(piece) + ", and nothing orders that after a write",
                 side(*g));
      } else if (g->writeClock && checks.async && !(g->flags & Granule::RemoteWrite) &&
                 !isEngine(peer, g->writeThread) && !isFenced(warp, peer, *g)) {
        report(warp, FindingKind::MissingProxyFence, lane,
               place(piece) + " through the asynchronous proxy, and no fence.proxy.async lies between that and a write",
               side(*g));
      }
      g->flags |= Granule::EngineReads;
    }
  return unwritten && checks.uninitialised;
}

} // namespace weft::simulator::machine
