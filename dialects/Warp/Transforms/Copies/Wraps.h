// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Indices that are others from a matrix's end on, so that no load needs a mask.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"
#include <optional>

namespace weft::warp {

/// Indices as they are below a size, a scalar or a number.
struct Wrapped {
  mlir::Value index;
  mlir::OpFoldResult size;
};

/// What a comparison of signed integers says to be less, and than what; none of other predicates.
std::optional<std::pair<mlir::Value, mlir::Value>> lessAndMore(mlir::arith::CmpIOp compare);

/// What all elements of a vector are, if that is one scalar or number; else null.
mlir::OpFoldResult elementOf(mlir::Value vector);

/// What an op on vectors of integers wraps, by which its result is the index where 0 <= index < size: index % size,
/// (index < size ? index : other) and min(index, size - 1). None of other ops.
std::optional<Wrapped> wrappedBy(mlir::Operation *op);

} // namespace weft::warp
