// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Between which bounds integers lie: what each op does to the ranges of AxisInfo. Internal to the analysis.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "mlir/IR/Operation.h"

namespace weft {

/// The bounds of `result`, an integer that `op` makes of `operands`, taking index arithmetic not to wrap and divisors
/// whose sign is not known to be positive. None where the result is no integer.
IndexRange inferRange(mlir::Operation *op, llvm::ArrayRef<AxisInfo> operands, mlir::OpResult result);

/// What an induction variable takes that goes from `lower` up to `upper`, exclusively.
IndexRange rangeOfLoop(const IndexRange &lower, const IndexRange &upper);

/// `range`, without a bound wherever it has left `before`. Ranges of values that a loop carries grow with every round
/// over it; so they grow once.
IndexRange widened(const IndexRange &before, const IndexRange &range);

} // namespace weft
