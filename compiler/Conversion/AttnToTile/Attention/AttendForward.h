// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The forward kernel of attention, with its tangent or without.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// Writes the kernel of `op` and of what is computed from its results row by row, and its launch before `anchor`.
/// `roots` are the values to be stored: results of `op`, or row-local functions of them; `stored` gets them, and has
/// everything else that they need.
void lowerAttend(attn::AttendOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);

/// The same of an attention with its tangent, by one kernel.
void lowerAttend(attn::AttendTangentOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);

} // namespace weft
