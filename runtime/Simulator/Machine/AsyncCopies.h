// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Copies in flight, for those that wait for them.
#pragma once

#include "runtime/Simulator/Machine/Warp.h"

namespace weft::simulator::machine {

/// Completes what lanes of `mask` await: all but their last `pending` groups; with `pending` ~0 everything.
void awaitCopies(Warp &warp, uint32_t mask, uint32_t pending);

} // namespace weft::simulator::machine
