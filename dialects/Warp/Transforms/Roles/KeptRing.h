// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A producer's ring that is to outlive an iteration of a loop around its own.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {

struct KeptRing {
  virtual ~KeptRing() = default;

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
  /// Lets the ring go on from an iteration of `outer`, which is changed, to the next: branches alone stand between them.
  virtual void keep(mlir::scf::ForOp &outer) = 0;

protected:
  /// Moves what begins the ring before the outer loop, and what ends it behind.
  void moveOut(mlir::scf::ForOp outer);
};

/// The ring that `init` makes, of whichever form; null, with the reason, where it can not go on.
std::unique_ptr<KeptRing> findKeptRing(MbarrierInitOp init, llvm::StringRef &hindrance);
/// A ring whose loop waits for a tile and frees it in each iteration (PlainRing.cpp).
std::unique_ptr<KeptRing> findPlainRing(MbarrierInitOp init, llvm::StringRef &hindrance);
/// A ring whose loop's second products run beside the next iteration's (LateRing.cpp); null where it is no such ring.
std::unique_ptr<KeptRing> findLateRing(MbarrierInitOp init);

} // namespace weft::warp
