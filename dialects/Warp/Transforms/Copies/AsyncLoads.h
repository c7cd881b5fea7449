// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Loads that asynchronous copies into shared memory can take the place of.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"

namespace weft::warp {

/// Bytes that a lane of a load reads at once.
int64_t pieceBytes(tile::LoadOp load);

/// Why `cp.async` does not do what the load does; empty where it does: pieces of a size it has, zeros where the mask is
/// false, and the caches asked for. `.cg` is of 16 bytes, which then pass by L1, so that a priority there says nothing.
llvm::StringRef whyNotAsync(tile::LoadOp load, const TargetInfo &target);

/// Starts the copy that takes the place of a load, into a tile, as a group of its own.
void startCopy(mlir::OpBuilder &b, tile::LoadOp load, mlir::Value shared);

} // namespace weft::warp
