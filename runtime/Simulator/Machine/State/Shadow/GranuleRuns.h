// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Granules side by side that engines read and write together: mostly all in one state, so that what is to be said of
// one is said of all. Of a buffer of 16 KiB that a copy filled and the products of one warpgroup read:
//
//   granules of 16 bytes   0 .. 1023   written by the copy, read by the products' engine: one question instead of 1,024
#pragma once

#include "runtime/Simulator/Machine/State/SharedShadow.h"

namespace weft::simulator::machine {

/// The bits of a granule that matter to a question, as ones.
struct GranuleMask {
  uint32_t words[sizeof(Granule) / 4] = {};
};

/// The first granule after `first` that is not as it in the bits of `mask`, or `end`.
Granule *endOfAlike(Granule *first, Granule *end, const GranuleMask &mask);
/// Makes all granules one.
void fillGranules(Granule *first, Granule *end, const Granule &value);
/// Leaves the bits of `keep`, and sets those of `set`.
void changeGranules(Granule *first, Granule *end, const GranuleMask &keep, const Granule &set);

} // namespace weft::simulator::machine
