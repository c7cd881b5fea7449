// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Copies in flight, for those that wait for them.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Completes what lanes of `mask` await: all but their last `pending` groups; with `pending` ~0 everything.
void awaitCopies(Warp &warp, uint32_t mask, uint32_t pending);

/// Completes the copies of a lane that it had issued by `sequence`.
void completeIssued(Warp &warp, unsigned lane, uint64_t sequence);

/// Completes the copies of lanes that end, as far as an mbarrier was told of them: they need no other wait.
void completeAnnounced(Warp &warp, uint32_t mask);

} // namespace weft::simulator::machine
