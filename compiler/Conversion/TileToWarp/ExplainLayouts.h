// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The layouts of a plan as remarks, for `weft explain --decisions`.
#pragma once

#include "compiler/Conversion/TileToWarp/AssignLayouts.h"

namespace weft {

/// Says of every value of a kernel in which layout it lies, of accesses also what the kernel costs with it and with the
/// next best one, and of every conversion how it is made. `replan` makes the plan of given layouts. Does nothing where
/// nobody asks for decisions.
void explainLayouts(mlir::func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                    const TargetInfo &target, int warps, llvm::function_ref<LayoutPlan(Preferred)> replan);

} // namespace weft
