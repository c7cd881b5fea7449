// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.alloc, .dealloc and .relinquish_alloc_permit (PTX ISA 9.7.16.7). A block has a multiprocessor's tensor memory to
// itself: others of the grid do not wait for it.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"

namespace weft::simulator::machine {

/// Whether so many columns may be allocated.
bool isColumnCount(uint64_t columns);

/// The address of so many columns; none where a warp must come again: until others have given theirs back, or until the
/// other block of a pair has come to it too. Misuse, reported, gives an address too.
std::optional<uint32_t> allocateTensor(Warp &warp, uint32_t columns, bool pair);

/// False where the warp must come again, until the other block of a pair has come to it too.
bool freeTensor(Warp &warp, uint32_t address, uint32_t columns, bool pair);

void relinquishTensor(Warp &warp);

/// The last lanes of a block end: what it has not given back is reported, and what tensor cores still do.
void endTensor(Warp &warp, uint32_t mask);

} // namespace weft::simulator::machine
