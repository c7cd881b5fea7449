// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where tiles lie in tensor memory, and where a warpgroup's threads meet before its products.
#pragma once

#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft::warp {

/// Inserts a `warp.tensor_ready` before each product that threads may have accessed tensor memory before, since the last.
void insertReady(mlir::Block &block);

/// Inserts waits so that nothing is stored to a tile that a product may still read or write.
void awaitBeforeStores(mlir::Block &block, TensorBeginOp begin);

/// Inserts waits so that no product comes to a barrier that one before it, not known to be over, will arrive at.
void boundUnderWay(mlir::Block &block, TensorBeginOp begin);

/// Gives each tile, which ops name by numbers as their columns, its columns, and the kernel as many as that takes. Tiles
/// that are not needed at once share columns. Fails, with an error, where there are not enough.
llvm::LogicalResult placeColumns(mlir::func::FuncOp kernel, TensorBeginOp begin);

} // namespace weft::warp
