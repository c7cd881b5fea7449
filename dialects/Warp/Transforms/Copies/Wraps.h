// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Indices that are others from a matrix's end on, so that no load needs a mask.
#pragma once

#include "mlir/IR/Value.h"
#include <optional>

namespace weft::warp {

/// Indices as they are below a size, a scalar.
struct Wrapped {
  mlir::Value index, size;
};

/// What an op on vectors of integers wraps, by which its result is the index where 0 <= index < size: index % size,
/// (index < size ? index : other) and min(index, size - 1). None of other ops.
std::optional<Wrapped> wrappedBy(mlir::Operation *op);

} // namespace weft::warp
