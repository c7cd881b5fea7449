// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layouts of loads, chosen by what the whole kernel then costs.
#pragma once

#include "compiler/Conversion/TileToWarp/AssignLayouts.h"

namespace weft {

/// Whether a load of a plan may take any layout.
using MayMove = llvm::function_ref<bool(mlir::Operation *, const LayoutPlan &)>;

/// Improves a plan of `given` layouts: where a conversion stands between two values that are computed from loads, one
/// side's loads take the other's layout, if all that the kernel then executes is less (LayoutCost.h). `replan` makes the
/// plan of given layouts; `mayMove` says which loads may take any layout.
LayoutPlan searchLayouts(mlir::func::FuncOp function, LayoutPlan plan, Preferred given, const AxisAnalysis &axes,
                         const TargetInfo &target, llvm::function_ref<LayoutPlan(Preferred)> replan, MayMove mayMove);

/// The same of tiles alone, of what is scanned and of conversions that are undone at once: vectors stay as they are.
LayoutPlan searchTiles(mlir::func::FuncOp function, LayoutPlan plan, Preferred given, const AxisAnalysis &axes,
                       const TargetInfo &target, llvm::function_ref<LayoutPlan(Preferred)> replan, MayMove mayMove);

} // namespace weft
