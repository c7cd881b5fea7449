// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Loop-carried values, and ops, that nothing needs any more.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {

/// Replaces `loop`, which is changed to the new one, by one without the carried values whose results are unused and
/// which serve only to compute themselves and each other, and erases the ops that computed those.
void removeUnusedCarriedValues(mlir::scf::ForOp &loop);

/// The same in all loops of a kernel but those of a `warp.producer`, and erases what nothing needs any more.
void removeUnusedOfConsumers(mlir::func::FuncOp kernel);

/// Erases the ops within another that nothing uses and that have no effect, and those that only they used.
void eraseDeadOps(mlir::Operation *within);

} // namespace weft::warp
