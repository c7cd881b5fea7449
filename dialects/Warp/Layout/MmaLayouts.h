// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The fragment layouts of matrix instructions, tiled over registers and warps.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// How many warps split the rows and the columns of a product; powers of two.
struct WarpGrid {
  unsigned rows = 1, columns = 1;
};

/// Which operand of a product.
enum class MmaOperand { A, B };

/// Part of one instruction's fragment: `count` bits of `dim` (registers or lanes) that walk on along `axis`.
struct FragmentBits {
  InDim dim;
  unsigned axis, count;
};

/// How a family of matrix instructions spreads its operands over a warp, lowest bits first: the accumulator [M, N], A
/// [M, K] and B [K, N]. Of A and B these come behind the neighbours along K that share a register of 32 bits. What
/// registers hold besides is further instructions' fragments.
struct MmaFragments {
  llvm::ArrayRef<FragmentBits> accumulator, a, b;
};

/// The fragments of the instructions of `shape` = [m, n, k], for any k; nullptr for a shape that none has.
const MmaFragments *fragmentsOf(llvm::ArrayRef<int32_t> shape);
/// Those of `mma.sync.m16n8k*` and of `mma.sync.m8n8k4` of f64 (PTX ISA 9.7.14.5).
const MmaFragments &fragments16x8();
const MmaFragments &fragments8x8();

/// The layout of an accumulator [M, N], any element type. Each warp owns a contiguous range of rows and of columns;
/// inside it registers walk along the columns first. Warp bits: rows first, then columns; a warp past the end of the
/// tensor repeats it.
LinearLayout mmaAccLayout(llvm::ArrayRef<int64_t> shape, WarpGrid warps,
                          const MmaFragments &fragments = fragments16x8());

/// The layout of operand A [M, K] or B [K, N] of elements of `elementBits` (8, 16, 32 or 64) bits: a register of 32 bits
/// holds 32 / elementBits neighbours along K. A repeats over the warps that split columns, B over those that split rows. For 16-bit
/// elements, m16n8k* and one warp column, A's layout is the accumulator's of the same shape.
///
/// Of a batch of products, whose rows lie one after another in A and in the accumulator, and whose columns in B, each warp
/// has those columns that its rows are multiplied by: `warps.rows` are a multiple of the batch or divide it.
LinearLayout mmaOperandLayout(MmaOperand operand, llvm::ArrayRef<int64_t> shape, WarpGrid warps, unsigned elementBits,
                              const MmaFragments &fragments = fragments16x8(), unsigned batch = 1);

/// A layout of a product's operand or accumulator in which neighbours along `axis`, of 16 that a warp has there, are in one
/// lane, in registers of two instructions (of one, along M) of which it otherwise has elements 8 apart: the rows, or columns,
/// of the product are taken in another order. Elements of 8 bits that are neighbours along M or N come from memory so.
LinearLayout interleaved(const LinearLayout &layout, unsigned axis);

/// A layout of an operand of 16-bit elements in which `neighbours` along K, its `axis`, are in a lane: 4, 8 or 16, of which
/// it otherwise has two, and two others 8 apart, and so on. K has four times as many places or more. Both operands of a
/// product are taken in that order of K. Elements that were of 8 bits, or of 4, come from memory so, a word of them at once.
LinearLayout byWordsAlongK(const LinearLayout &layout, unsigned axis, unsigned neighbours);

/// The most that it may be along a K of a size, a power of two of 16 or more.
inline unsigned mostNeighboursAlongK(int64_t size) { return std::min<int64_t>(16, size / 4); }

} // namespace weft::warp
