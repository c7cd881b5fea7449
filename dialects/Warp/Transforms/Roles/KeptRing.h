// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A producer's ring that is to outlive an iteration of a loop around its own.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {

struct KeptRing {
  MbarrierInitOp init;
  MbarrierInvalOp end;
  BarrierOp begun;                          ///< behind the init
  llvm::SetVector<mlir::Operation *> lives; ///< allocations of it and of its tiles, and their ends

  /// Adds the allocation of `shared`, which stands in one of `blocks`, and its ends. False where there is none such.
  bool addLife(mlir::Value shared, llvm::ArrayRef<mlir::Block *> blocks);
  /// Rings of a loop lie among one another in the order of their allocations.
  void orderLives();
  /// Whether shared memory holds all of it from `first` to `last`, of the kernel's block or a loop's, beside what lives
  /// there, and as many blocks as before: one where the producer leaves its registers to the others.
  bool fits(mlir::Operation *first, mlir::Operation *last, const TargetInfo &target);
  /// Moves what begins the ring before the outer loop, and what ends it behind.
  void moveOut(mlir::scf::ForOp outer);
};

} // namespace weft::warp
