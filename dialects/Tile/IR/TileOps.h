// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the tile dialect.
#pragma once

#include "dialects/Tile/IR/TileDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft::tile {

/// Most elements a tensor may have.
inline constexpr int64_t maxElements = int64_t(1) << 20;

/// Checks that every tensor among the operands and results has an axis, sizes of at least 1, and at most
/// `maxElements` elements.
mlir::LogicalResult verifyTensorSizes(mlir::Operation *op);

/// The trait behind Tile_SizedTensors.
template <typename ConcreteOp> struct SizedTensors : mlir::OpTrait::TraitBase<ConcreteOp, SizedTensors> {
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return verifyTensorSizes(op); }
};

} // namespace weft::tile

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileOps.h.inc"
