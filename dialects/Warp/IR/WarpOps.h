// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the warp dialect.
#pragma once

#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/Warp/IR/WarpOps.h.inc"

namespace weft::warp {

/// The tile, or the stage of a ring, that a transposed view of shared memory is of.
mlir::Value tileViewed(mlir::Value shared);
/// The allocation, or a value of unknown origin, that a tile of shared memory is a stage or a view of.
mlir::Value allocationOf(mlir::Value shared);

} // namespace weft::warp
