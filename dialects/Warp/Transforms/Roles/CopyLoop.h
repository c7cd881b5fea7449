// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A loop whose ring bulk copies fill, as `warp-pipeline` leaves it.
//
//   warp.mbarrier_init %ring                   warp.mbarrier_init %ring
//   scf.if { copies }                          scf.if { copies }
//   warp.barrier                               warp.barrier
//   scf.for {                                  scf.if %any {
//     warp.mbarrier_wait %full                   warp.mbarrier_wait %full    the first iteration
//     warp.barrier                               warp.barrier
//     scf.if { copies }                          scf.if { copies }
//     use                                        use
//   }                                            scf.for {
//                                                  warp.wgmma_wait           products of the iteration before
//                                                  warp.mbarrier_wait %full
//                                                  warp.barrier
//                                                  scf.if { copies }
//                                                  use
//                                                }
//                                                warp.wgmma_wait
//                                                warp.mbarrier_wait %full    the last products
//                                                warp.barrier
//                                                use
//                                              }
//
// To the right where products run beside the next iteration's (Warpgroups/LateProducts.h).
#pragma once

#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {

struct CopyLoop {
  mlir::scf::ForOp loop;
  MbarrierInitOp init;
  llvm::SmallVector<StageOp> stages;        // of the barriers
  MbarrierWaitOp wait, waitOfFirst;         // of the loop, and of an iteration before it
  BarrierOp begun;                          // behind the first copies
  llvm::SmallVector<BarrierOp> read;        // behind waits, or that for the product before: tiles have been read
  llvm::SmallVector<mlir::scf::IfOp> first; // the copies before the loop
  mlir::scf::IfOp copies;                   // and in it
  mlir::Operation *lastRead = nullptr;
  /// Whether products go on into the next iteration: a wait in an iteration, `lastRead`, is for those of the one before.
  bool lags = false;
  /// Whether an iteration before the loop has started the first of them.
  bool late() { return waitOfFirst != nullptr; }
  bool readTogether = true; // by products of warpgroups alone

  SharedType ring() { return llvm::cast<SharedType>(init.getRing().getType()); }
  StageOp barrier() { return llvm::cast<StageOp>(wait.getBarrier().getDefiningOp()); }
  mlir::Value stage() { return barrier().getIndex(); }
};

/// Finds the loop of the ring of `init`, and what belongs to it. The reason where it is not of the expected form.
llvm::StringRef findCopyLoop(MbarrierInitOp init, CopyLoop &found);

} // namespace weft::warp
