// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Values that nothing wrote: followed through copies and arithmetic, reported where they matter.
#pragma once

#include "runtime/Simulator/Machine/Warp.h"

namespace weft::simulator::machine {

/// Marks lanes of a register as unwritten.
void poisonRegister(Warp &warp, Ref ref, uint32_t mask);

/// The lanes of a register that hold what nothing wrote; 0 for immediates.
inline uint32_t poisonOf(const Warp &warp, Ref ref) {
  return !warp.anyPoison || (ref & constantRef) || (ref >> 2) >= warp.poison.size() ? 0 : warp.poison[ref >> 2];
}

/// Before a record runs on a warp that has poisoned registers: reports a poisoned guard of a branch, address, or value
/// on its way to global memory, and marks the destinations. Returns the lanes to run.
uint32_t trackPoison(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
