// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What of its place (batch, head, query, key) a pattern depends on.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// What of its place a pattern depends on, and in how large steps.
struct Dependence {
  bool batch = false, head = false;
  int64_t rowStep = 0,
          columnStep = 0; ///< the pattern is one value in aligned cells of so many queries and keys; 0: everywhere
};

/// Whether something is so of a pattern, or of a part of it.
bool anyPart(mlir::Attribute pattern, llvm::function_ref<bool(mlir::Attribute)> isSo);

/// Whether something is so of a mask in a pattern.
bool anyMask(mlir::Attribute pattern, const Attend &attend, llvm::function_ref<bool(mlir::Region &)> isSo);

Dependence dependenceOf(mlir::Attribute pattern, const Attend &attend);

/// Whether heads that share keys, `packed` neighbours each, are not to be in one tile: their pattern asks for the head
/// by a formula (`per_head`, a mask that reads it), or by spans that differ among them, and so their blocks have little
/// in common. Lists and bitmaps of blocks by head do not: those that share keys often have the same
/// (weft.select_blocks), and a tile of several heads walks what one of them needs (BlockLists.h).
bool tellsHeadsApart(mlir::Attribute pattern, const Attend &attend, int64_t packed);

/// Whether a mask reads an element of each pair in the kernels of attention: those of pairs that are kept as bits do not.
bool masksReadPairs(const Attend &attend);

/// Whether a mask or a score_mod does: a block of them is in registers beside the scores.
bool readsPairs(const Attend &attend);

} // namespace weft
