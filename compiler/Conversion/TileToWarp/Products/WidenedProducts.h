// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products of operands that were widened: f32 of 16 bits, written out, and what was turned behind its widening.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Products of f32 at TF32's precision take operands of 16 bits where both were widened from them: each product of two is
/// exact either way, and half as many instructions, at twice the rate, sum them in f32 as well. `ieee` products are left
/// alone, whose sums are rounded at each addition.
void narrowWidenedProducts(mlir::func::FuncOp function);

/// Operands that are widened from 8 bits and then turned are turned before: they come from memory as they are.
void turnBeforeWidening(mlir::func::FuncOp function);

} // namespace weft
