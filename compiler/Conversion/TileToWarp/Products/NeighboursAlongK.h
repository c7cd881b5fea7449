// Part of Weft. SPDX-License-Identifier: Apache-2.0
// In which order of K a product's operands are best taken: several numbers that are cut out of one word of memory are
// one thread's, if its fragments have them all.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Conversion/TileToWarp/LayoutRules.h"

namespace weft {

/// Has a thread have more neighbours along K of both operands of a product of single warps than the two of a register:
/// where both come from words of more, or one does, the other is loaded along K, and no other warp computes the same,
/// or need with warps split otherwise, if `mayRegrid`. That other operand's elements are then read by as many.
void takeWordsAlongK(tile::DotOp dot, DotPlan &plan, const AxisAnalysis &axes, bool mayRegrid);

} // namespace weft
