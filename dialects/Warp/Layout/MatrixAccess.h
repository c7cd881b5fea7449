// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reading a tile in shared memory by `ldmatrix`, and writing it by `stmatrix`.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"
#include "dialects/Warp/Layout/ScratchLayout.h"

namespace weft::warp {

/// A read by `ldmatrix` (PTX ISA 9.7.14.5.15): 8 rows of 16 bytes make a matrix, of which lane l receives 4 bytes of
/// row l / 4, or, transposed, the 2-byte elements of rows 2 (l mod 4) and the next in column l / 4. Lane 8 j + i gives
/// the address of row i of matrix j.
struct MatrixAccess {
  bool transposed = false;
  /// Register bits inside one 32-bit word, from bit 0 on.
  unsigned packedBits = 0;
  /// The register bits, at most two, that tell the matrices of one instruction apart.
  llvm::SmallVector<unsigned, 2> matrixBits;
  /// Offset, in elements, of each bit of the lane that gives an address: three bits for the row, then one for each of
  /// `matrixBits`.
  llvm::SmallVector<uint32_t, 5> laneOffsets;
  /// The first register of each instruction's first matrix. Registers that repeat others are left out.
  llvm::SmallVector<uint32_t> first;

  /// 1, 2 or 4.
  unsigned matrices() const { return 1u << matrixBits.size(); }
  /// The first register of the word that the instruction beginning at `start` delivers for matrix `index`.
  uint32_t registerAt(uint32_t start, unsigned index) const;
};

/// How `ldmatrix` reads a tensor whose places lie at `offsets` (from register, lane and warp to elements of
/// `elementBits` bits), if it can. The lowest `together` register bits above a word are told apart by one instruction
/// where they can be: it delivers into neighbouring registers, and that is where a matrix instruction takes the 4 words
/// of an operand A (2 bits) or the 2 of a B (1 bit) from. Words that come from different instructions have to be moved
/// there.
std::optional<MatrixAccess> matrixAccess(const LinearLayout &offsets, unsigned elementBits, unsigned together = 0);

/// A read of 8-bit elements, neighbours along the other axis than a matrix instruction takes them, by `ldmatrix.trans`: of
/// two neighbours as one element of 16 bits, which are parted in registers.
struct PairedAccess {
  /// From register, lane and warp to places in pairs, without the register bit that tells the two apart.
  LinearLayout pairs;
  MatrixAccess matrices;
  unsigned pairBit;
};
std::optional<PairedAccess> pairedAccess(const LinearLayout &offsets, unsigned elementBits);

/// How `stmatrix`, which is `ldmatrix` backwards, writes what `access` does piece by piece, where that takes fewer instructions. No
/// two lanes or warps may hold one element.
std::optional<MatrixAccess> matrixStore(const SharedAccess &access, unsigned elementBits);

/// The wavefronts that one warp's whole read needs.
Wavefronts wavefrontsOf(const MatrixAccess &access, const LinearLayout &offsets, unsigned elementBytes);

} // namespace weft::warp
