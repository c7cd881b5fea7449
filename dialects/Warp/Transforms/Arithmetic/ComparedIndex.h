// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a mask asks of a running index.
//
//   cmpi sle, (broadcast (addi (splat %begin), (make_range))), (broadcast %row)      %begin + i <= %row, along axis 1
#pragma once

#include "dialects/Warp/Transforms/Copies/IndexSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace weft::warp {

/// A comparison of begin + index along an axis with the sum of bounds.
struct ComparedIndex {
  IndexSum begin;
  /// i32, or tensors of 1 along the axis; whether they are subtracted
  llvm::SmallVector<std::pair<mlir::Value, bool>, 2> bounds;
  bool isUpper, isStrict;
};

/// What is one for all, as a scalar, or one for each row along an axis, of size 1 there; null where it is neither. Constants
/// are made by the builder.
mlir::Value boundAlong(mlir::Value bound, unsigned axis, mlir::OpBuilder &b);

/// The comparison that an op on i32 is along an axis of its operands; none where it is no such.
std::optional<ComparedIndex> comparedIndex(mlir::arith::CmpIOp op, unsigned axis, IndexForms &forms,
                                           mlir::OpBuilder &b);

} // namespace weft::warp
