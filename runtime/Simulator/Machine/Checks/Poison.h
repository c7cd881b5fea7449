// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Values that nothing wrote: followed through copies and arithmetic, reported where they matter.
//
// Per register and lane, and within a register per byte: a struct with padding travels in words of which some bytes
// were never written, elements that are narrower than a word several at a time. Arithmetic on such a word taints the
// bytes of its result that depend on them, where the instruction says which these are, and otherwise all.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// For each byte of a register the lanes in which nothing wrote it.
using BytePoison = std::array<uint32_t, 8>;

/// Marks lanes of a register as unwritten for a reason (see Origins.h), whole or by bytes.
void poisonRegister(Warp &warp, Ref ref, uint32_t mask, uint32_t origin);
void poisonBytes(Warp &warp, Ref ref, const BytePoison &bytes);

/// The lanes of a register that hold what nothing wrote; 0 for immediates.
inline uint32_t poisonOf(const Warp &warp, Ref ref) {
  return !warp.anyPoison || (ref & constantRef) || (ref >> 2) >= warp.poison.size() ? 0 : warp.poison[ref >> 2];
}
/// The same by bytes; not for predicates.
BytePoison bytePoisonOf(const Warp &warp, Ref ref);

/// A lane stores a register of which bytes are unwritten at a resolved place: what only the thread or block can read
/// back is marked there; so are single bytes of a word, which are padding as a rule. A whole element that reaches
/// others is reported.
void storeUnwritten(Warp &warp, unsigned lane, Ref ref, const std::byte *at, unsigned bytes, uint32_t unwritten);

/// Before a record runs on a warp that has poisoned registers: reports a poisoned guard of what reaches beyond
/// registers, a poisoned address, or value on its way to global memory, and marks the destinations.
void trackPoison(Warp &warp, const Record &record, uint32_t mask);

/// A byte of a register in one of a warp's lanes.
struct LaneByte {
  unsigned lane, byte;
};

/// Where byte `at` of 16 of a row lies of a matrix of 8 rows of eight 16-bit elements, as ldmatrix, stmatrix and
/// movmatrix distribute it (PTX ISA 9.7.14.5.15): a lane has two elements of a row or, transposed, of a column.
constexpr LaneByte matrixByte(unsigned row, unsigned at, bool transposed) {
  return transposed ? LaneByte{at / 2 * 4 + row / 2, row % 2 * 2 + at % 2} : LaneByte{row * 4 + at / 4, at % 4};
}

/// Marks the elements of mma.sync's result that an unwritten row, column or accumulator reaches, and those that
/// movmatrix moves; false where the instruction is another, or the shape one whose layout is not followed.
bool poisonProduct(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine
