// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which products have their sums in tensor memory, and what a kernel with such products keeps of shared memory.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

/// Products of a warpgroup that may be under way at once; and its barriers, at which they arrive in turn: as many more as
/// the thread that starts them may be ahead of a warp that still waits.
constexpr int mostUnderWay = 4, tensorBarriers = 8;

/// Whether a product's sums are in tensor memory.
bool isInTensorMemory(WgmmaOp product);

/// Whether tensor memory holds the sums of all products of a product's block at once, so that none need wait until another's
/// have been loaded.
bool fitsBesideOthers(WgmmaOp product);

/// The tile of a kernel's barriers, in shared memory, for as many warps; null where no product needs it.
SharedType tensorSlots(mlir::func::FuncOp kernel, const TargetInfo &target);

} // namespace weft::warp
