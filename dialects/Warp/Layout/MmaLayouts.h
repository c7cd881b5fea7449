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

/// The layout of an accumulator [M, N] of `mma.sync.m16n8k*` (PTX ISA 9.7.14.5: C and D fragments), any element type.
/// Each warp owns a contiguous range of rows and of columns; inside it registers walk along the columns first. Warp
/// bits: rows first, then columns; a warp past the end of the tensor repeats it.
LinearLayout mmaAccLayout(llvm::ArrayRef<int64_t> shape, WarpGrid warps);

/// The layout of operand A [M, K] or B [K, N] of elements of `elementBits` (8, 16 or 32) bits: the instruction's k is
/// 256 / elementBits. A repeats over the warps that split columns, B over those that split rows. For 16-bit elements
/// and one warp column, A's layout is the accumulator's of the same shape.
LinearLayout mmaOperandLayout(MmaOperand operand, llvm::ArrayRef<int64_t> shape, WarpGrid warps, unsigned elementBits);

} // namespace weft::warp
