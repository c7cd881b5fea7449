// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a kernel promises of its integers by `tile.assume`. Internal to the analysis.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "mlir/IR/Operation.h"

namespace weft {

/// The promises of a function. One holds for what its block and the blocks inside compute, be it before it or after it:
/// whoever gets into a block gets to its end.
class Assumptions {
public:
  explicit Assumptions(mlir::Operation *function);
  /// `info`, what is known about `value`, with what is promised of it where `user` stands.
  AxisInfo refined(mlir::Value value, AxisInfo info, mlir::Operation *user) const;

private:
  /// Bounds, and what divides the value.
  struct Promise {
    mlir::Block *block;
    IndexRange range;
    int64_t divisibility = 1;
  };
  void take(mlir::Value condition, mlir::Block *block);
  void takeComparison(mlir::Operation *op, mlir::Block *block);

  llvm::DenseMap<mlir::Value, llvm::SmallVector<Promise>> promises;
};

} // namespace weft
