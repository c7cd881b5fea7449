// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shared memory of other blocks of a cluster: who may access it when, and what is compared with what.
//
//   block 0:  st.shared.u32 [s], 5;              block 1:  mapa.shared::cluster.u32 %r1, s, 0;
//             barrier.cluster.arrive.release;              barrier.cluster.arrive; barrier.cluster.wait.acquire;
//             barrier.cluster.wait;                        ld.shared::cluster.u32 %r2, [%r1];    // block 0 has begun
//             barrier.cluster.arrive; .wait;               barrier.cluster.arrive; .wait;        // and has not ended
#pragma once

#include "runtime/Simulator/Machine/State/Cluster.h"

namespace weft::simulator::machine {

/// Whether a lane may access a byte of another block's shared memory: `target` exists, has begun and has not ended.
/// Reports it where not. Unless it is a copy's, whose mbarrier says when it is over, the access is remembered for the
/// block's end.
bool mayReach(Warp &warp, unsigned lane, Block *target, uint32_t address, const char *what, bool copies = false);

/// shadowRead and shadowWrite of another block's shared memory.
bool shadowReadRemote(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes, bool atomic);
void shadowWriteRemote(Warp &warp, unsigned lane, Block &target, uint32_t offset, unsigned bytes,
                       const std::byte *value, bool atomic);

/// Whether the last write of a granule of `block` happened before what a lane of any block of the cluster does now.
bool writeOrdered(const Warp &warp, unsigned lane, const Block &block, const Granule &granule);
/// A read by another block that a write of a granule of `block` is not ordered after, or null.
const RemoteAccess *unorderedRemoteRead(const Warp &warp, const Block &block, const Granule &granule, bool atomic);
/// "warp 1, lane 0 of block rank 1 wrote it at line 7".
std::string remoteSide(const Warp &warp, const char *did, uint32_t rank, uint32_t thread, uint32_t pc);

/// The last lanes of a block end: accesses of other blocks that nothing orders before that are reported.
void checkLastAccesses(Warp &warp);

} // namespace weft::simulator::machine
