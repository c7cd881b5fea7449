// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Splitting of f32 operands into parts of TF32, and rounding to it: for instructions of warpgroups, which read them from shared memory as they are, and
// where several warps or products would round the same.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// Products of f32 by three of TF32 become three, where instructions of warpgroups then take all of them: those read
/// operands from shared memory, so that both parts lie there. Instructions of single warps split what they have in
/// registers.
void splitTF32Products(mlir::func::FuncOp function, const TargetInfo &target, int warps);

/// Operands of the products of f32 that instructions of warpgroups take are rounded to TF32, each value once: to nearest,
/// ties away from zero. The lowering of instructions of single warps rounds what they have in registers.
void roundTF32Products(mlir::func::FuncOp function, const TargetInfo &target, int warps);

/// After layouts: what is computed and goes into products of single warps is rounded where it is computed, if that takes
/// fewer instructions than rounding what each warp takes of it.
void roundOperandsOnce(mlir::func::FuncOp function);

} // namespace weft
