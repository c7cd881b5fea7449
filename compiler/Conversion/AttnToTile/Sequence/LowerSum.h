// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums over axes of whole tensors.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// Stores a sum. That of all tokens of [B, H, N, D] is kept as `sumParts` partial sums, which whoever reads it adds.
mlir::LogicalResult lowerSum(attn::SumOp op, StoredValues &stored);
inline constexpr int64_t sumParts = 8;
/// Adds these, for readers that would not, before `anchor`.
void addTokenParts(mlir::Operation *anchor, mlir::Value sum, StoredValues &stored);
/// Whether the sum is one over all tokens of each batch and head, or over those and more; row-local sources allowed. Any
/// other needs its source stored.
bool sumsTokens(attn::SumOp op);
bool sumsTokensAndMore(attn::SumOp op);

/// Stores `result`, one of `op`'s, as the sum of `parts` [parts, ...], in the order of the parts.
mlir::LogicalResult addParts(mlir::Operation *op, mlir::Value result, mlir::Value parts, StoredValues &stored);

} // namespace weft
