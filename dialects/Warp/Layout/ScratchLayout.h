// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The layout in shared memory through which a tensor goes from one distributed layout to another.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// How registers of a distributed tensor access a tile in shared memory, in pieces of neighbouring elements.
struct SharedAccess {
  /// Offset, in elements, of each register, lane and warp bit.
  LinearLayout offsets;
  /// The register bits whose elements lie side by side, lowest first: a piece is 2^size elements, at most 16 bytes.
  llvm::SmallVector<unsigned, 4> pieceBits;
  unsigned pieceElements() const { return 1u << pieceBits.size(); }
  /// The pieces of a lane's registers.
  unsigned pieces() const { return offsets.size(InDim::Register) / pieceElements(); }
  /// Those of them that repeat no others.
  unsigned distinctPieces() const { return pieces() >> llvm::popcount(offsets.freeBits()[InDim::Register]); }
};

/// How a tensor in layout `registers` accesses a tile in layout `shared` (over offset) of elements of `elementBytes`;
/// `shared` must hold every element.
SharedAccess accessOf(const LinearLayout &registers, const LinearLayout &shared, unsigned elementBytes);

/// The wavefronts that one warp's whole access needs, all registers counted.
Wavefronts wavefrontsOf(const SharedAccess &access, unsigned elementBytes);

/// The instructions that a lane's whole access takes: its pieces, and what puts elements of one word together, or takes
/// them apart, that are no neighbours both in registers and in memory.
unsigned instructionsOf(const SharedAccess &access, unsigned elementBytes);

/// A bijective layout over offset that `source` writes to and `result` reads from in wide pieces and without bank
/// conflicts, as far as there is one: the widest piece goes to the lowest offsets; rows that share banks are spanned by
/// sums of one direction of each side's lanes, which neither side's lanes walk along ("Linear Layouts", section 5.4).
///
/// Where matrix instructions take the result, the words of one operand are told apart by `operandBits` bits of the
/// register, which follow those within a word. Pieces are then read that are of one operand, in order, or of several
/// whole ones: others would be put together anew, register by register, for every instruction.
LinearLayout scratchLayout(const LinearLayout &source, const LinearLayout &result, unsigned elementBytes,
                           unsigned operandBits = 0);

} // namespace weft::warp
