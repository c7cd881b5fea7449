// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Whether what threads wrote to global memory in this launch may be read through another proxy.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// fence.proxy.async of a space that global memory is part of.
void fenceGlobalProxy(Warp &warp);

/// fence.proxy.tensormap::generic, .release and .acquire; the latter of a map.
void releaseMaps(Warp &warp);
void acquireMap(Warp &warp, Address map);

/// A lane's bulk copy reads a range of global memory: reported where a thread wrote it without a fence between.
void checkBulkRead(Warp &warp, unsigned lane, Address address, uint32_t bytes);
/// A lane's copy uses a map in global memory: reported where a thread wrote it without a release and an acquire between.
void checkMapUse(Warp &warp, unsigned lane, Address map);

} // namespace weft::simulator::machine
