// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Decides, for a whole kernel and without changing it, in which layout every op runs and in which layouts every value
// is needed.
//
//   1. Ops that are worth running once (loads, products, reductions) get a layout of their own.
//   2. Their layouts spread forward through element-wise ops, loops and branches; where several meet, a product's wins.
//      A value that no such layout reaches stays *free*: constants, ranges, pointer and mask arithmetic.
//   3. Needs spread backward: an op needs its operands in certain layouts; a free value is made in each of them, any
//      other is made once and converted.
#pragma once

#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "compiler/Conversion/TileToWarp/LayoutRules.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace weft {

/// Layouts given to some accesses, and to arithmetic that takes what is loaded otherwise; the others choose theirs.
using Preferred = llvm::DenseMap<mlir::Operation *, warp::LayoutAttr>;

/// The layouts of one kernel.
struct LayoutPlan {
  explicit LayoutPlan(LayoutRules rules) : rules(std::move(rules)) {}

  LayoutRules rules;
  /// What the plan was made of.
  Preferred given;
  /// The layout in which each op that is emitted once runs: kinds Fixed and Effect, and those that the layout of one
  /// has reached.
  llvm::DenseMap<mlir::Operation *, warp::LayoutAttr> running;
  /// The layout of every tensor that is not free.
  llvm::DenseMap<mlir::Value, warp::LayoutAttr> own;
  /// Every layout in which a tensor is needed, its own too if anything takes it so.
  llvm::DenseMap<mlir::Value, llvm::SmallSetVector<warp::LayoutAttr, 2>> needed;

  /// The layouts in which a tensor is there after its definition: its own first, or all that are needed of a free one.
  llvm::SmallVector<warp::LayoutAttr> layoutsOf(mlir::Value value) const;
  bool isFree(mlir::Value value) const { return !own.contains(value); }
};

/// Plans a kernel of `warps` warps. Fails, with a diagnostic at the op, for an op that has no rule or a product that
/// the target cannot compute.
mlir::FailureOr<LayoutPlan> assignLayouts(mlir::func::FuncOp function, const AxisAnalysis &axes,
                                          const TargetInfo &target, int warps);

/// The axes along which what is computed of a tensor element by element, in loops and branches too, is reduced; those
/// of what is reduced again, too, unless no axis is left.
llvm::SmallBitVector reducedAxes(mlir::Value value);

/// The access that a load, store or atomic makes, for `coalescedLayout` and `accessWidth`.
Access accessOf(mlir::Operation *op, const AxisAnalysis &axes, const TargetInfo &target);

} // namespace weft
