// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which products have their sums in tensor memory, and what a kernel with such products keeps of shared memory.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

/// Products of a warpgroup that may be under way at once, each with a barrier of its own.
constexpr int tensorBarriers = 4;

/// Whether a product's sums are in tensor memory.
bool isInTensorMemory(WgmmaOp product);

/// The tile of a kernel's barriers, in shared memory, for as many warps; null where no product needs it.
SharedType tensorSlots(mlir::func::FuncOp kernel, const TargetInfo &target);

} // namespace weft::warp
