// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The values of a linearised function while it is written: those of the program, and their tangents.
#pragma once

#include "compiler/Differentiate/Gradients.h"

namespace weft {

/// Tangents by value of the program. A tangent has the type of its value. Everything is written at the end of the
/// linearised function, in the order of the program's ops.
class Tangents {
public:
  /// `linearised` has one block, whose first arguments are the program's.
  Tangents(mlir::func::FuncOp program, mlir::func::FuncOp linearised);

  mlir::ImplicitLocOpBuilder b; ///< writes at the end of the linearised function

  /// The tangent of `value`; null where it is zero.
  mlir::Value get(mlir::Value value) const { return tangents.lookup(value); }
  /// The same, as a tensor of zeros where it is zero.
  mlir::Value getOrZero(mlir::Value value);
  /// Says what the tangent of `value` is; null is zero.
  void set(mlir::Value value, mlir::Value tangent);
  /// Says that of the results of `op` it is the sum of what each of `terms` gives in their place.
  void setSum(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> terms);
  /// The sum of tensors of one type; null of none.
  mlir::Value sum(llvm::ArrayRef<mlir::Value> parts);
  /// Whether any value that `op` reads, elements in its regions too, has a tangent.
  bool reads(mlir::Operation *op) const;

  /// A value of the program in the linearised function: its op is cloned when it is first asked for.
  mlir::Value primal(mlir::Value value);
  llvm::SmallVector<mlir::Value> primals(mlir::ValueRange values);
  /// Says that `primal` is that value, so that its op is not cloned.
  void setPrimal(mlir::Value value, mlir::Value primal) { mapping.map(value, primal); }
  /// Makes the tensors that ops inside `region` read, values of the program, those of the linearised function.
  void usePrimals(mlir::Region &region);
  /// A copy of `op` with the tangent of operand `number` in that operand's place. Gives null where that is zero.
  mlir::Operation *cloneWithTangent(mlir::Operation *op, unsigned number);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> tangents;
  mlir::IRMapping mapping;
};

} // namespace weft
