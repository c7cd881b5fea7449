// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass `convert-warp-to-llvm`: kernels on tensors with layouts become LLVM functions of one thread.
#pragma once

#include "mlir/Pass/Pass.h"

namespace weft {

/// Lowers every `func.func` with `tile.kernel` of a module to an `llvm.func` for `nvvm`, and erases it. The module must
/// name its target
/// (`warp.target`) and every tensor have a layout. What cannot be lowered is reported at the op.
std::unique_ptr<mlir::Pass> createConvertWarpToLLVMPass();

} // namespace weft
