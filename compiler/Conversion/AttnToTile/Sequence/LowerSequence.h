// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels that walk the whole sequence: means, convolutions of many taps, gradients of taps, merging.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

mlir::LogicalResult lowerPrefixMean(attn::PrefixMeanOp op, StoredValues &stored);
mlir::LogicalResult lowerSequenceMean(attn::SequenceMeanOp op, StoredValues &stored);
mlir::LogicalResult lowerTapsGrad(attn::ConvolveTapsGradOp op, StoredValues &stored);

/// Merges tokens by a kernel over stretches of them; sources are computed on the way, and stored what of them is
/// `along`: maps of sources. `sums` are of what is known of tokens once they are numbered.
mlir::LogicalResult lowerMergeUnits(attn::MergeUnitsOp op, llvm::ArrayRef<mlir::Value> along,
                                    llvm::ArrayRef<attn::SumOp> sums, StoredValues &stored);
/// What a merge says of each token: its unit, the units it sees, and whether it is joined.
llvm::SmallVector<mlir::Value, 4> tokenTablesOf(attn::MergeUnitsOp op);

/// Stores a convolution whose taps are many, and the gradient of such taps.
mlir::LogicalResult lowerLongConvolve(attn::ConvolveOp op, StoredValues &stored);
mlir::LogicalResult lowerLongTapsGrad(attn::ConvolveTapsGradOp op, StoredValues &stored);

} // namespace weft
