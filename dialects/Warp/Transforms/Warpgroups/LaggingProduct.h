// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A product of warpgroups that goes on while its loop begins the next iteration.
//
//   scf.for .. iter_args(%acc) {                     scf.for .. iter_args(%acc) {
//     warp.barrier                                     warp.barrier
//     %d = warp.wgmma %s, %t, %acc              ─▶     %d = warp.wgmma %s, %t, %acc
//     %e = warp.wgmma_wait %d {pending = 0}            warp.wgmma_wait {pending = 1}     the iteration before is done
//     scf.yield %e                                     scf.yield %d
//   }                                                }
//                                                    %r = warp.wgmma_wait {pending = 0}
//
// The tiles that it reads are then written one iteration later than otherwise.
#pragma once

#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {

/// The wait for a loop's only product, if that may lag: its sums go to the next iteration's product and nowhere else, and
/// its operands are tiles of `rings` or from before the loop. Null where there is none.
WgmmaWaitOp waitOfLaggingProduct(mlir::scf::ForOp loop, const llvm::DenseSet<mlir::Value> &rings);

/// Lets the product of `wait` be under way across iterations of the loop around it.
void leaveUnderWay(WgmmaWaitOp wait);

} // namespace weft::warp
