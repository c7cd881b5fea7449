// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums that are narrowed as they leave tensor memory come a few columns at a time, so that not all of a row is in
// registers in 32 bits.
//
//   %x = warp.tensor_load [0]                 %x0 = warp.tensor_load [0]     32 columns
//   %y = arith.mulf %x, %by                   %y0 = arith.mulf %x0, %by0
//   %z = arith.truncf %y             ─▶       %z0 = arith.truncf %y0
//                                             ...
//                                             %z = warp.join_columns %z0, %z1, %z2, %z3
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

void splitResults(mlir::func::FuncOp kernel);

} // namespace weft::warp
