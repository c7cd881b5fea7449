// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Whether a warp for copies pays in a kernel, and how its block shares out registers then.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

/// How a kernel's block is made of roles, or why it is not.
struct RoleShares {
  int consumerWarps = 0, producerWarps = 0;
  int producer = 0, consumer = 0; ///< registers of a thread; 0 where roles do not trade them
  llvm::StringRef hindrance;
  llvm::StringRef idle; ///< why it does not pay where it could be: a loop may ask for it all the same
};

RoleShares sharesOf(mlir::func::FuncOp kernel, const TargetInfo &target);

} // namespace weft::warp
