// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A scalar region (arith, math, attn.element ...) evaluated on tiles.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"

namespace weft {

/// What a region's ops mean inside a kernel, beside arithmetic.
struct RegionContext {
  KernelFrame &frame;
  /// An element of a stored tensor at indices (tiles of i32 or scalars): f32, i32 or i1.
  llvm::function_ref<mlir::Value(mlir::Value tensor, mlir::ValueRange indices)> element;
  /// `attn.index axis`.
  llvm::function_ref<mlir::Value(int64_t axis)> index;
  /// `attn.accumulate`; may be null where the region has none.
  llvm::function_ref<void(int64_t target, mlir::Value value, mlir::ValueRange indices)> accumulate;
  /// For each of the region's arguments, whether it may be any number, as an index that a pattern's shift has moved;
  /// others that are integers are positions of an axis. Empty: all are.
  llvm::ArrayRef<bool> moved = {};
};

/// Evaluates `region` with its block's arguments standing for `arguments` (scalars, or tiles that broadcast together).
/// Gives what its `attn.yield` yields; values that depend on no argument stay scalars.
llvm::SmallVector<mlir::Value> evaluateRegion(mlir::Region &region, mlir::ValueRange arguments,
                                              const RegionContext &context);

/// A tile of positions all of which exist: they are below the size of an axis that types spell so.
struct WholePlaces {
  mlir::Value places; ///< a tile of i32
  llvm::StringRef axis;
};

/// The default of RegionContext::element: loads it, 0 where `inside` is false. Other tiles than those of `whole` are
/// kept below the size of the tensor's axis.
mlir::Value loadElement(KernelFrame &frame, mlir::Value tensor, mlir::ValueRange indices, mlir::Value inside = {},
                        const WholePlaces &whole = {});

} // namespace weft
