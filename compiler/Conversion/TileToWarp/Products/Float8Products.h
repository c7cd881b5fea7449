// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which products of 8-bit floats their own instructions make, and how exactly.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Operands of 8-bit floats that no instruction takes become f16, which holds them all; a remark says why where the
/// target's warpgroups have such instructions. The sum of a product that one takes is added to its accumulator by an
/// addition of f32, unless the product says `tile.imprecise_sums` or the target's instructions sum in f32: others' own
/// additions keep fewer bits. On targets that sum in f32, operands that were converted from 8-bit floats go in as these.
void settleFloat8Products(mlir::func::FuncOp function, const TargetInfo &target, int warps);

} // namespace weft
