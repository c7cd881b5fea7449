// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reverse and forward mode over scalar ops (arith, math): for score_mod regions and the bodies of maps.
#pragma once

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"

namespace weft {

/// The gradient of one value, given at the start or found.
struct ScalarGradient {
  mlir::Value of;       ///< a value of floats
  mlir::Value gradient; ///< of the same type
};

/// Gradients by value; what is not there has gradient zero.
using ScalarGradients = llvm::DenseMap<mlir::Value, mlir::Value>;

/// Given gradients of values that `ops` compute (`seeds`; one value may occur several times), the gradients of the
/// values for which `isLeaf` holds: block arguments, or results of ops that are not looked into. `ops` are in order and
/// straight-line; what is written at `b`, after them, uses their results. Fails, with an error at the op, where a leaf
/// goes into an op without a derivative.
///
/// At ties, `maximumf(a, b)` and `minimumf(a, b)` give their gradient to b; |x| gives none at 0. Rounding to integers
/// and comparisons have derivative 0.
llvm::FailureOr<ScalarGradients> differentiateScalars(mlir::ImplicitLocOpBuilder &b,
                                                      llvm::ArrayRef<mlir::Operation *> ops,
                                                      llvm::ArrayRef<ScalarGradient> seeds,
                                                      llvm::function_ref<bool(mlir::Value)> isLeaf);

/// The tangents of the values that `ops` compute, by value, given those of leaves: `tangentOf` gives that of a block
/// argument, or of the result of an op that is not looked into; null is zero, which is what values have that are not in
/// the result. Otherwise as differentiateScalars.
llvm::FailureOr<ScalarGradients> lineariseScalars(mlir::ImplicitLocOpBuilder &b, llvm::ArrayRef<mlir::Operation *> ops,
                                                  llvm::function_ref<mlir::Value(mlir::Value)> tangentOf);

/// Erases those of `block`'s ops that nothing uses, its terminator excepted.
void eraseUnused(mlir::Block &block);

} // namespace weft
