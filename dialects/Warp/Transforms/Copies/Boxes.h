// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Accesses whose addresses are a box of a strided tensor, and whose masks are its sizes.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/IndexSums.h"

namespace weft::warp {

/// What one bulk copy brings of a tile: boxes are no longer than a line of shared memory, nor higher than the target's.
struct BoxPart {
  int64_t offset;     ///< bytes from the tile's begin
  int32_t along, row; ///< from the tile's first element
};

/// A tile as boxes of a tensor. Axes innermost first: that of neighbours, that of a matrix' lines, then what else the
/// address is a product of.
struct Box {
  mlir::Value base;
  IndexSum baseOffset; ///< of the launch
  llvm::SmallVector<IndexSum, 5> sizes, strides, coordinates;
  llvm::SmallVector<int32_t, 5> box;
  llvm::SmallVector<BoxPart, 4> parts;
  bool isVector = false; ///< whose elements lie one behind another; else in panels of matrix instructions
};

/// A box, or why there is none.
struct FoundBox {
  std::optional<Box> box;
  llvm::StringRef hindrance;
};

/// The boxes that a copy in `loop` is. The sizes are those of its mask; where it has none, the program has promised that
/// nothing lies outside, and they are as large as may be.
FoundBox findBox(AsyncCopyOp copy, mlir::scf::ForOp loop, const TargetInfo &target);

/// The boxes that a tensor of pointers is, `op`'s, under a mask that may be null, and the tile through which they go.
struct FoundStoredBox {
  FoundBox found;
  SharedType tile;
};
FoundStoredBox findStoredBox(mlir::Operation *op, mlir::Value ptr, mlir::Value mask, const TargetInfo &target);

} // namespace weft::warp
