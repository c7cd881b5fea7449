// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the 32 addresses of an access have in common, found in one pass over all lanes.
//
// What one pass writes the next reads in whole vectors, which a processor forwards from stores of the same width alone:
// so passes over lanes are all compiled for the widest vectors that the host has.
#pragma once

#include "runtime/Simulator/Machine/State/AccessShape.h"

#include <cstdint>

namespace weft::simulator::machine {

/// The lanes' addresses, of 64 or of 32 bits: base + offset.
void addAddresses(const uint64_t *base, uint64_t offset, uint64_t *addresses);
void addAddresses(const uint32_t *base, uint32_t offset, uint64_t *addresses);
/// The bits of addresses that `keep` has.
void maskAddresses(const uint64_t *addresses, uint64_t keep, uint64_t *kept);

/// Of the lanes of a mask, which must not be empty.
AddressPattern patternOf(const uint64_t *addresses, uint32_t mask, unsigned bytes);

/// `contiguous`: all lanes access memory one after another.
Wavefronts sharedWavefronts(const uint64_t *offsets, uint32_t mask, unsigned bytes, bool contiguous = false);

/// Different 32-byte sectors that the lanes touch.
unsigned globalSectors(const uint64_t *addresses, uint32_t mask, unsigned bytes, bool contiguous);

} // namespace weft::simulator::machine
