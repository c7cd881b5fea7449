// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Waits for what threads copy before a loop whose first tiles threads copy too.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

/// Moves each wait for the copies before a loop, with the barrier behind it and what is read then, behind the copies that
/// the loop starts before its first iteration: both arrive together. Where the loop is in a branch, the other side waits
/// for itself, and who reads behind both reads again. Left as they are where shared memory for both at once would cost a
/// resident block.
void awaitGroupsLate(mlir::func::FuncOp kernel);

} // namespace weft::warp
