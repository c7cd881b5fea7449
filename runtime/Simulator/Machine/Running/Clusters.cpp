// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Running/Clusters.h"
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>

namespace weft::simulator::machine {
namespace {

bool waitsHere(const Fragment &fragment) { return fragment.state == FragmentState::AtCluster; }

uint32_t liveThreads(const Cluster &cluster) {
  uint32_t threads = 0;
  for (const auto &block : cluster.blocks)
    for (const Warp &warp : block->warps)
      threads += uint32_t(std::popcount(warp.live));
  return threads;
}

/// Threads that have arrived and have not ended since.
uint32_t arrivedThreads(const Cluster &cluster) {
  uint32_t threads = 0;
  for (const auto &block : cluster.blocks)
    for (const Warp &warp : block->warps)
      threads += uint32_t(std::popcount(warp.live & warp.clusterArrived));
  return threads;
}

/// Ends the phase: those that wait go on, with what was released.
void complete(Cluster &cluster) {
  OrderGraph &graph = cluster.blocks[0]->grid->order;
  // By block first: moments of one block are joined into one.
  cluster.released = 0;
  for (Moment each : cluster.joined)
    cluster.released = graph.join(cluster.released, each);
  cluster.joined.assign(cluster.blocks.size(), 0);
  cluster.arrived = 0;
  for (const auto &block : cluster.blocks)
    for (Warp &warp : block->warps) {
      warp.clusterPassed |= std::exchange(warp.clusterArrived, 0u);
      for (Fragment &fragment : warp.fragments)
        if (waitsHere(fragment))
          fragment.state = FragmentState::Ready; // executes the wait again
    }
  cluster.blocks[0]->warps[0].worker->changed = true;
}

void acquire(Warp &warp, uint32_t mask, bool relaxed) {
  Cluster &cluster = *warp.block->cluster;
  warp.clusterPassed &= ~mask;
  warp.metRanks = (1u << cluster.blocks.size()) - 1;
  if (!warp.block->grid->options.checks.races)
    return;
  OrderGraph &graph = warp.block->grid->order;
  Moment &into = relaxed ? warp.order.unfenced[size_t(Scope::Cluster)] : warp.order.known;
  into = graph.join(into, cluster.released);
}

void wait(Warp &warp, const ClusterBarrierForm &form, uint32_t mask) {
  if (uint32_t without = mask & ~(warp.clusterArrived | warp.clusterPassed)) {
    report(warp, FindingKind::BarrierMismatch, firstLane(without),
           "waits at barrier.cluster without having arrived there");
    return abortBlock(*warp.block);
  }
  if (!(mask & warp.clusterArrived))
    return acquire(warp, mask, form.relaxed);
  if (uint32_t rest = warp.mask & ~mask) { // those whose guard is false go on
    warp.fragments.push_back({warp.pc, rest, warp.join, FragmentState::Ready, 0});
    warp.mask = mask;
  }
  --warp.worker->executed[warp.here()]; // it will run again
  warp.worker->executedThreads[warp.here()] -= unsigned(std::popcount(mask));
  ++warp.worker->costs[warp.here()].waits;
  suspend(warp, FragmentState::AtCluster, warp.here());
}

void arrive(Warp &warp, const ClusterBarrierForm &form, uint32_t mask) {
  Cluster &cluster = *warp.block->cluster;
  if (uint32_t twice = mask & (warp.clusterArrived | warp.clusterPassed)) {
    report(warp, FindingKind::BarrierMismatch, firstLane(twice),
           "arrives at barrier.cluster a second time without barrier.cluster.wait between",
           siteName(warp, cluster.firstPc));
    return abortBlock(*warp.block);
  }
  if (!cluster.arrived)
    cluster.firstPc = warp.here();
  cluster.arrived += uint32_t(std::popcount(mask));
  warp.clusterArrived |= mask;
  ++warp.worker->counters.clusterBarriers;
  warp.worker->changed = true;
  if (warp.block->grid->options.checks.races) {
    OrderGraph &graph = warp.block->grid->order;
    const Moment released = form.relaxed ? warp.order.fence[size_t(Scope::Cluster)] : snapshot(warp);
    Moment &joined = cluster.joined[warp.block->rank];
    joined = graph.join(joined, released);
  }
  recheckCluster(cluster);
}

} // namespace

void recheckCluster(Cluster &cluster) {
  if (cluster.arrived && arrivedThreads(cluster) == liveThreads(cluster))
    complete(cluster);
}

bool waitsAtCluster(const Block &block) {
  return std::any_of(block.warps.begin(), block.warps.end(), [](const Warp &warp) {
    return std::any_of(warp.fragments.begin(), warp.fragments.end(), waitsHere);
  });
}

std::string clusterState(const Cluster &cluster) {
  return format("barrier.cluster: {} threads of {} have arrived", arrivedThreads(cluster), liveThreads(cluster));
}

void runClusterBarrier(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const ClusterBarrierForm *>(record.aux);
  if (form.aligned && warp.block->grid->options.checks.barriers && !gather(warp, mask, warp.live))
    return;
  form.waits ? wait(warp, form, mask) : arrive(warp, form, mask);
}

} // namespace weft::simulator::machine
