// Part of Weft. SPDX-License-Identifier: Apache-2.0
// barrier.cluster (PTX ISA 9.7.13.4): all threads of a cluster arrive, and those that wait go on when all have.
#pragma once

#include "runtime/Simulator/Machine/State/Cluster.h"

namespace weft::simulator::machine {

/// Record::aux of barrier.cluster.
struct ClusterBarrierForm {
  bool waits = false;   ///< .wait, else .arrive
  bool aligned = false; ///< all threads of a warp execute it together
  bool relaxed = false; ///< orders no memory
};

void runClusterBarrier(Warp &warp, const Record &record, uint32_t mask);

/// Threads of the cluster have ended: its barrier may be complete.
void recheckCluster(Cluster &cluster);

/// Whether lanes of the block wait at barrier.cluster.
bool waitsAtCluster(const Block &block);

/// "barrier.cluster: 64 threads of 128 have arrived".
std::string clusterState(const Cluster &cluster);

} // namespace weft::simulator::machine
