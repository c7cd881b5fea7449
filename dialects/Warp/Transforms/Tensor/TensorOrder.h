// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Waits and meetings that order products in tensor memory with what threads store and load there, and with one another.
#pragma once

#include "dialects/Warp/IR/WarpOps.h"

namespace weft::warp {

/// Whether ops between two of a block, or under such, write tensor memory: the tile `tile`, or any where there is none.
bool writesBetween(mlir::Operation *first, mlir::Operation *last, std::optional<int32_t> tile = std::nullopt);

/// Inserts a `warp.tensor_ready` before each product that threads may have accessed tensor memory before, since the last.
void insertReady(mlir::Block &block);

/// Inserts waits so that nothing is stored to a tile that a product may still read or write.
void awaitBeforeStores(mlir::Block &block, TensorBeginOp begin);

/// Inserts waits so that no more products are under way than may be, and has each wait know of all that none was for.
void boundUnderWay(mlir::Block &block, TensorBeginOp begin);

/// Inserts a `warp.tensor_ready` where the thread that starts products could otherwise be so far ahead of a warp that a
/// barrier ends two phases while the warp waits for the first.
void boundLead(mlir::Block &block);

} // namespace weft::warp
