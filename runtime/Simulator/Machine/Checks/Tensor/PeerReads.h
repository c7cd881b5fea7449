// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shared memory of the other block of a pair, which tcgen05.mma.cta_group::2 reads.
#pragma once

#include "runtime/Simulator/Machine/State/Cluster.h"

#include <span>

namespace weft::simulator::machine {

/// beginEngineRead of pieces of 16 bytes of the other block's shared memory.
bool beginPeerRead(Warp &warp, unsigned lane, Block &peer, std::span<const uint32_t> pieces);

} // namespace weft::simulator::machine
