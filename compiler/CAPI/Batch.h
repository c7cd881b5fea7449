// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The batch of a program: the size along which it computes each entry from that entry alone.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::capi {

/// The symbol of the first axis of all results such that entry i of every result depends on entry i alone of the inputs
/// that have the axis, and in no way on i itself. Whoever has several batches runs them as one. Empty where there is
/// none. The program is of attn ops, its mixers applied.
llvm::StringRef batchOf(mlir::func::FuncOp program);

} // namespace weft::capi
