// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How each product of a kernel is computed: by which instruction, and shared by the warps in which way.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Conversion/TileToWarp/LayoutRules.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// The products that others are computed from row by row, and those others; and what accumulates into one sum with
/// them, as chunks of an inner axis do, so that the sum stays where it is.
llvm::DenseSet<mlir::Operation *> chainedProducts(mlir::func::FuncOp function);

/// A plan for every tile.dot. Products that feed each other's first operand through element-wise ops and reductions
/// (attention's) have all their warps along M, so that a row of the first stays in the warp that needs it for the
/// second; but for those between which nothing is reduced and whose rows are too few for all warps. What instructions of
/// warpgroups could not take is said in a remark. Fails, with a diagnostic at the op, for a product that the target
/// cannot compute.
mlir::FailureOr<llvm::DenseMap<mlir::Operation *, DotPlan>>
planDots(mlir::func::FuncOp function, const AxisAnalysis &axes, const TargetInfo &target, int warps);

} // namespace weft
