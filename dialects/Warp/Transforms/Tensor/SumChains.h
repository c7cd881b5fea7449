// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums that products hand on to one another without a thread between, and so share one tile of tensor memory.
//
//   %d = warp.wgmma .., %acc      %acc, %d, %e and what a loop carries of them are one chain
//   %e = warp.wgmma_wait %d
#pragma once

#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace weft::warp {

class SumChains {
public:
  explicit SumChains(mlir::func::FuncOp kernel);

  /// Whether a value is sums as a product, or a wait for one, gave them.
  bool contains(mlir::Value value) const { return chains.contains(value.getAsOpaquePointer()); }
  /// One value that stands for all of the chain.
  mlir::Value leader(mlir::Value value) const;
  /// Whether a product that gave a value may be under way where the value is defined.
  bool isUnderWay(mlir::Value value) const;

private:
  void follow(mlir::func::FuncOp kernel);
  /// Finds results of an op that would share a tile although they are two, and keeps them in registers from then on.
  bool findApart(mlir::func::FuncOp kernel);
  void join(mlir::Value from, mlir::Value to, llvm::SmallVectorImpl<mlir::Value> &open);

  llvm::EquivalenceClasses<const void *> chains;
  llvm::DenseSet<mlir::Value> apart; ///< results of loops and branches that stay in registers
};

} // namespace weft::warp
