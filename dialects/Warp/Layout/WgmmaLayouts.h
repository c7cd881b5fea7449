// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The layouts of matrix instructions of a warpgroup (wgmma, PTX ISA 9.7.15.5; tcgen05, 9.7.16.10.5): accumulators and A in
// registers, and tiles in shared memory as matrix descriptors describe them.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// Rows of an instruction whose sums are in registers, and of one whose sums are in the lanes of tensor memory.
constexpr unsigned wgmmaRows = 64, tensorRows = 128;

/// How many warpgroups split the rows and the columns of a product; powers of two. `m`: the rows of an instruction.
struct WarpgroupGrid {
  unsigned rows = 1, columns = 1, m = wgmmaRows;
};

/// The layout of an accumulator [M, N] of f32 or s32. An instruction's tile is 64 rows high: warp w of a group holds
/// rows 16 w to 16 w + 15 of it, as the accumulator of `mma.m16n8` lies. Registers walk on along N, then from tile to
/// tile along M; warpgroups own contiguous ranges, the bits of the rows first.
///
/// Of 128 rows, each thread holds one: that of its lane of tensor memory, as `tcgen05.ld.32x32b` loads it.
LinearLayout wgmmaAccLayout(llvm::ArrayRef<int64_t> shape, WarpgroupGrid groups);

/// The layout of A [M, K] in registers, of elements of `elementBits` (8, 16 or 32) bits. Repeats over the warpgroups
/// that split columns. For 16-bit elements and one column of warpgroups, the accumulator's of the same shape; of 128 rows,
/// for all elements.
LinearLayout wgmmaALayout(llvm::ArrayRef<int64_t> shape, WarpgroupGrid groups, unsigned elementBits);

/// The grid of warpgroups whose accumulator layout `layout` is, if it is one.
std::optional<WarpgroupGrid> wgmmaGridOf(const LinearLayout &layout);

/// The most bytes of a line of a tile that descriptors describe.
constexpr int64_t wgmmaLongestLine = 128;

/// The layout, in `offset`, of a tile [rows, columns] that descriptors describe: lines of up to `longestLine` bytes along
/// `contiguousAxis`, one after the other, with pieces of 16 bytes exchanged by the hardware's pattern; what is longer
/// than a line goes on in a panel of such lines behind. None where lines are shorter than 32 bytes or fewer than 8.
std::optional<LinearLayout> wgmmaTileLayout(llvm::ArrayRef<int64_t> shape, unsigned contiguousAxis,
                                            unsigned elementBytes, int64_t longestLine = wgmmaLongestLine);

/// The bytes of the lines of a tile whose neighbours lie along `contiguousAxis`; none where `layout` is not of
/// `wgmmaTileLayout`.
std::optional<int64_t> wgmmaLineBytes(const LinearLayout &layout, unsigned contiguousAxis, unsigned elementBytes);

/// How instructions find an operand in a tile of such a layout.
struct WgmmaOperand {
  bool turned;        ///< neighbours lie along M or N: the descriptor's transposition bit
  unsigned lineBytes; ///< 128, 64 or 32: the width of the swizzle
  int64_t panelBytes; ///< from a line to that which goes on where it ends
  unsigned elementBytes;

  /// Bytes from the tile's begin to the element at `outer` along M or N, and `inner` along K; both where a descriptor
  /// may begin: multiples of 8 and of the instruction's k, and of a whole line along M or N if turned.
  int64_t offset(int64_t outer, int64_t inner) const;
  /// The descriptor's bits but for the address (PTX ISA 9.7.15.5.1.2).
  uint64_t descriptor() const;
};

/// The operand that a tile is whose K axis is `innerAxis`; none where `layout` is not of `wgmmaTileLayout`.
std::optional<WgmmaOperand> wgmmaOperand(const LinearLayout &layout, unsigned innerAxis, unsigned elementBytes);

} // namespace weft::warp
