// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where a program's values are once kernels have made them.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace weft {

/// Where values of a program are stored: arguments as they are, others in results of launches. What is not here is
/// computed by whoever reads it.
using StoredValues = llvm::DenseMap<mlir::Value, mlir::Value>;

} // namespace weft
