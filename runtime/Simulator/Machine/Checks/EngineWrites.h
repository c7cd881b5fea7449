// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Shared memory that engines write: like a write by the thread that asked for it, on its way until it has arrived.
#pragma once

#include "runtime/Simulator/Machine/State/Engines.h"

#include <span>

namespace weft::simulator::machine {

/// A copy into shared memory of a block of the cluster is issued: like a write, which is on its way from now on.
/// Those that reduce do not mind one another.
void beginEngineWrite(Warp &warp, unsigned lane, Block &target, std::span<const BulkRun> runs, bool reduces = false);
/// It has arrived, as of the clock of an engine.
void endEngineWrite(Block &block, uint32_t engine, uint32_t pc, std::span<const BulkRun> runs, bool reduces = false);

} // namespace weft::simulator::machine
