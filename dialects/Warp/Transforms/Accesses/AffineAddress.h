// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pointers as sums, in which it can be seen that two accesses do not meet.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace weft::warp {

/// What a loop counts by: iterations, its own steps where these are no constant, or as many as there are programs in an
/// iteration. The last two are some whole number of times one, which may be more than iterations.
enum class CountedBy : unsigned { Iterations, Steps, Programs };

/// Symbols, coordinates and counts of iterations, each times a constant.
struct AffineSum {
  using Terms = llvm::SmallMapVector<mlir::Value, int64_t, 4>;
  using Count = std::pair<mlir::Value, unsigned>; // a loop's induction variable, and `CountedBy`

  Terms symbols;                                      // scalars, the same in every thread
  llvm::SmallMapVector<Count, int64_t, 4> iterations; // 0, 1, ...
  llvm::SmallVector<int64_t, 2> axes;
  int64_t constant = 0;

  /// How much it counts up along an axis.
  int64_t along(size_t axis) const { return axis < axes.size() ? axes[axis] : 0; }
  /// Whether it is the same for all elements and in all iterations.
  bool isFixed() const;
};

/// A scalar or tensor of pointers or integers as such a sum, and of such sums times strides that are no constants: a
/// matrix's rows times its width. Pointers count in elements. Index arithmetic is taken not to wrap, as by the pointer
/// analysis.
struct AffineAddress : AffineSum {
  /// By the stride, a scalar from outside of loops.
  llvm::SmallMapVector<mlir::Value, AffineSum, 1> strided;
};

/// `value` as such a sum; none for what is not one.
std::optional<AffineAddress> affineAddressOf(mlir::Value value);

/// Whether a value is made once a program.
bool isOutsideOfLoops(mlir::Value value);

/// What an index is less than where a mask is true: a scalar from outside of loops, or, where that is null, a constant.
struct IndexBound {
  AffineSum index;
  mlir::Value end;
  int64_t constant = 0;
};
llvm::SmallVector<IndexBound, 2> boundsOf(mlir::Value mask);

} // namespace weft::warp
