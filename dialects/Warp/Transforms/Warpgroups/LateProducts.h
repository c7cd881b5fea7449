// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products of warpgroups that take what is computed from an iteration's other products run an iteration later, beside
// those of the next: while threads compute from the one, matrix units work on the other.
//
//   scf.for %i .. iter_args(%acc) {                if any iteration {
//     arrive(%i); copies ahead                       arrive(first); copies ahead
//     %s = q · k(%i)                                 %w = f(q · k(first))
//     %w = f(%s)                                     scf.for %i = second .. iter_args(%acc, %w) {
//     %p, %c = g(%w, %acc)                ─▶           wait for %acc
//     %acc' = %p · v(%i) + %c                          %p, %c = g(%w, %acc)
//     scf.yield %acc'                                  arrive(%i); copies ahead
//   }                                                  %s = q · k(%i)
//                                                      %acc' = %p · v(%i - 1) + %c
//                                                      wait for %s
//                                                      %w' = f(%s)                       beside the second product
//                                                      scf.yield %acc', %w'
//                                                    }
//                                                    wait for %acc; %p, %c = g(%w, %acc)
//                                                    arrive(last + 1)
//                                                    %acc' = %p · v(last) + %c
//                                                  }
//
// So their tiles are brought with those of the iteration after their own: a ring's entry i holds k(i) and v(i - 1). What
// needs the sums, and the conversions to operands, g, begin the next iteration: there ptxas moves no wait up to before f.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallVector.h"

namespace weft::warp {

/// The products of a loop's body that may run an iteration later.
struct LateProducts {
  llvm::SmallVector<WgmmaOp> products;         ///< in the order of the body
  llvm::SmallVector<mlir::Operation *> before; ///< ops on the sums and operands that stand before them, in order
  llvm::SmallVector<mlir::Value> tiles;        ///< of those given, the ones that they alone read
  llvm::StringRef hindrance; ///< why there are none although a product takes what is computed from another

  bool none() const { return products.empty(); }
};

/// Finds them. `rings`: allocations of tiles that copies fill ahead. Beside the sums of the other products, registers
/// have to hold theirs and their operands.
LateProducts findLateProducts(mlir::scf::ForOp loop, llvm::ArrayRef<mlir::Value> rings, const TargetInfo &target);

/// Rewrites a loop in which iteration i copies and waits for what `late` says; what stands before `arrived` in the body,
/// and it, waits for an iteration's tiles. `places`: which of the loop's carried values say where its ring stands: the last
/// products take one of its entries more. Returns the loop of all iterations but the first.
mlir::scf::ForOp runLate(mlir::scf::ForOp loop, const LateProducts &late, mlir::Operation *arrived,
                         llvm::ArrayRef<unsigned> places);

} // namespace weft::warp
