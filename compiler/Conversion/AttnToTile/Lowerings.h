// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The kernels that attn-to-tile knows how to write, beside those of attention.
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"

namespace weft {

/// Where values of a program are, once stored: arguments as they are, others in results of launches.
using StoredValues = llvm::DenseMap<mlir::Value, mlir::Value>;

/// What a kernel over rows of one row space ([B, H, N, ...]) makes: row-local values, and parts of sums of such to
/// single numbers (RowSums.h).
struct RowRoots {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<attn::SumOp> sums;

  /// The values, and what is summed up.
  llvm::SmallVector<mlir::Value> pulled() const {
    llvm::SmallVector<mlir::Value> all(values);
    for (attn::SumOp sum : sums)
      all.push_back(sum.getSource());
    return all;
  }
};

/// Makes `roots` by one kernel over tiles of rows, launched before `anchor`.
void lowerRows(mlir::Operation *anchor, const RowRoots &roots, StoredValues &stored);

/// The same for roots that need the row before each row, which is then carried along; false where they do not.
bool walkRows(mlir::Operation *anchor, const RowRoots &roots, StoredValues &stored);

/// What a kernel of row-local values needs of its tiles.
struct RowNeeds {
  int64_t widest;  ///< channels of a chunk: few where rows are summed up, so that a row is few lanes'
  bool neighbours; ///< other rows than the tile's, next to it
};
RowNeeds needsOf(mlir::ValueRange roots, const StoredValues &stored);

/// Rows that follow one another, the last one of `length` again in the place of those past it, so that nothing is
/// loaded under a mask.
RowTile clampedRows(TileBuilder &b, RowTile rows, mlir::Value length);

/// Stores a map of any shape by a kernel over its elements in row-major order. It is launched before `anchor`, where
/// what it reads is stored.
mlir::LogicalResult lowerFlatMap(attn::MapOp op, mlir::Operation *anchor, StoredValues &stored);

/// Stores a sum. That of all tokens of [B, H, N, D] is kept as `sumParts` partial sums, which whoever reads it adds.
mlir::LogicalResult lowerSum(attn::SumOp op, StoredValues &stored);
inline constexpr int64_t sumParts = 8;
/// Adds these, for readers that would not, before `anchor`.
void addTokenParts(mlir::Operation *anchor, mlir::Value sum, StoredValues &stored);
/// Whether the sum is one over all tokens of each batch, or of all; row-local sources allowed. Any other needs its
/// source stored.
bool sumsTokens(attn::SumOp op);
bool sumsTokensOfBatches(attn::SumOp op);

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

/// A product with a weight (LowerHeadConv.cpp, LowerLinear.cpp): stores `roots`, its result or what is computed from it
/// element by element. Its source is pulled element by element.
mlir::LogicalResult lowerHeadConv(attn::HeadConvOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);
mlir::LogicalResult lowerLinear(attn::LinearOp op, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);
/// The gradients of their weights; both operands are pulled element by element.
mlir::LogicalResult lowerHeadConvWeightGrad(attn::HeadConvWeightGradOp op, StoredValues &stored);
mlir::LogicalResult lowerLinearWeightGrad(attn::LinearWeightGradOp op, StoredValues &stored);
/// Stores means over heads, by a kernel over elements, which is launched before `anchor`, where what it reads is
/// stored.
mlir::LogicalResult lowerMeanHeads(attn::MeanHeadsOp op, mlir::Operation *anchor, StoredValues &stored);

} // namespace weft
