// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a lowering, or who writes a kernel, knows of a loop, for the passes that schedule it.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace weft::tile {

/// On an `scf.for`: it has about as few iterations as are in flight at once, so that work for ones that it has not counts.
inline constexpr llvm::StringLiteral fewIterationsAttrName = "tile.few_iterations";
/// How many iterations of a loop shall stand one after another (i32).
inline constexpr llvm::StringLiteral unrollFactorAttrName = "tile.unroll_factor";

/// On an `scf.for`: copies of its loops are to be made by warps of their own wherever they can be, also where blocks that
/// share a multiprocessor would hide them.
inline constexpr llvm::StringLiteral warpSpecializeAttrName = "tile.warp_specialize";

/// On an `arith.select` in a loop over columns, rows along its first axis: a row that the condition has nowhere leaves what
/// the loop carries of it as it was.
inline constexpr llvm::StringLiteral leavesRowsAttrName = "tile.leaves_rows";

/// On what wraps indices (`warp::wrappedBy`), whose result is the index where that is less than the size, also below 0: what is
/// computed of elements whose index is no less than the size is not stored, so that these may bring anything.
inline constexpr llvm::StringLiteral wrapsUnreadAttrName = "tile.wraps_unread";

} // namespace weft::tile
