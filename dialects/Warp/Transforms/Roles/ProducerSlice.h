// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What of a kernel a warp must run that only does what `warp.produce` holds: these regions, the control flow around
// them, and what either is computed from.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"

namespace weft::warp {

class ProducerSlice {
public:
  /// The slice of `roots`: ops that the producer runs, and what it runs of ops whose regions it runs in part.
  explicit ProducerSlice(mlir::func::FuncOp kernel) : kernel(kernel) {}

  /// Adds an op that the producer runs with all that is inside; false where one warp alone cannot compute what it
  /// needs, and `hindrance` says why.
  bool add(mlir::Operation *root);
  llvm::StringRef hindrance() const { return reason; }
  /// The first op that the producer needs, in the kernel's block.
  bool contains(mlir::Operation *op) const { return ops.contains(op); }

  /// Emits the program at `b`: what stands in `warp.produce` without that op.
  void emit(mlir::OpBuilder &b) const;

private:
  bool fail(llvm::StringRef why) {
    reason = why;
    return false;
  }
  bool needValue(mlir::Value value);
  bool needCarried(mlir::Operation *op, unsigned index);
  bool needControl(mlir::Operation *op);
  bool needAround(mlir::Operation *op);
  bool mayLoad(mlir::Operation *load);
  void emitBlock(mlir::Block &block, mlir::OpBuilder &b, mlir::IRMapping &mapping) const;
  void emitFor(mlir::Operation *op, mlir::OpBuilder &b, mlir::IRMapping &mapping) const;
  void emitIf(mlir::Operation *op, mlir::OpBuilder &b, mlir::IRMapping &mapping) const;
  llvm::SmallVector<unsigned> carriedOf(mlir::Operation *op) const;

  mlir::func::FuncOp kernel;
  llvm::DenseSet<mlir::Operation *> ops, roots;
  llvm::DenseSet<std::pair<mlir::Operation *, unsigned>> carried; // results of loops and branches
  llvm::StringRef reason;
};

/// Behind the parameters that launches add, which each program of a kernel names: where they begin.
void setBehindAdded(mlir::func::FuncOp kernel, mlir::OpBuilder &b);

} // namespace weft::warp
