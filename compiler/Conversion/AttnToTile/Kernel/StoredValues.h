// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where a program's values are once kernels have made them.
#pragma once

#include "mlir/IR/ValueRange.h"
#include "llvm/ADT/DenseMap.h"

namespace weft {

/// The tensors that hold a program's values: arguments hold themselves, results of launches what their kernels made. A
/// value that is not here is computed by whoever reads it.
///
///   %m = attn.prefix_mean %x           record(%m, %0): readers of %m load from %0
///   %0 = attn.launch @prefix_mean(%x)
class StoredValues {
public:
  bool contains(mlir::Value value) const { return tensors.contains(value); }
  /// The tensor that holds `value`; null where none does.
  mlir::Value find(mlir::Value value) const { return tensors.lookup(value); }
  /// The tensor that holds `value`, which its reader has seen to (`ProgramKernels::store`).
  mlir::Value at(mlir::Value value) const;
  /// Whether `value` is stored as partial sums over tokens, which its readers add.
  bool isInParts(mlir::Value value) const;

  void record(mlir::Value value, mlir::Value tensor) { tensors[value] = tensor; }
  /// The same of each of `values`, by the first of `made`. What a kernel makes beside them comes after.
  void record(mlir::ValueRange values, mlir::ValueRange made);
  /// Records tensors that a kernel made as values of the program.
  void recordAsValues(mlir::ValueRange made) { record(made, made); }
  /// Records that `value` is held where `other` was, which is no value of the program any more.
  void recordInsteadOf(mlir::Value value, mlir::Value other);

private:
  llvm::DenseMap<mlir::Value, mlir::Value> tensors;
};

} // namespace weft
