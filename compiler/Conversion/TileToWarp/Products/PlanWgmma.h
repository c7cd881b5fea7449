// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which products of a kernel are made by matrix instructions of warpgroups, where the target has them.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Conversion/TileToWarp/LayoutRules.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// A product that instructions of warpgroups do not take, and why; `isOwn`: whatever is done with the others.
struct WgmmaRefusal {
  mlir::Operation *dot;
  std::string hindrance;
  bool isOwn;
};

struct WgmmaPlans {
  llvm::DenseMap<mlir::Operation *, DotPlan> taken;
  llvm::SmallVector<WgmmaRefusal> refused;
};

/// What an operand is a transposition of.
mlir::Value rootOf(mlir::Value operand);
/// The axis of `rootOf(operand)` that is `axis` of an operand.
unsigned axisOfRoot(mlir::Value operand, unsigned axis);

/// A plan for every product that instructions of warpgroups take. Products that are computed from one another row by row
/// (`chained`) have one kind of instruction, so that rows stay where they are. Operands of 8 bits are taken where they
/// lie along K, as `axes` tells of those that are loaded. Nothing where the target has no such instructions.
WgmmaPlans planWgmma(mlir::func::FuncOp function, const llvm::DenseSet<mlir::Operation *> &chained,
                     const AxisAnalysis &axes, const TargetInfo &target, int warps);

} // namespace weft
