// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registers of wgmma between its issue and the wait that retires it: who else touches them.
#pragma once

#include "runtime/Simulator/Machine/State/Products.h"
#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Before a record of a warp that has wgmma runs: reports accumulators that it touches and operands that it writes
/// while they are in flight, and remembers what it writes.
void watchProducts(Warp &warp, const Record &record);

/// A wgmma is about to be issued: reports registers that were written since the last wgmma.fence, and those that
/// another one in flight has in another shape; from now on its own are in flight.
void beginProduct(Warp &warp, const PendingProduct &product);

/// What is in flight after some wgmma were retired.
void forgetRetired(Warp &warp);

} // namespace weft::simulator::machine
