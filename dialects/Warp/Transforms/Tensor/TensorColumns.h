// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where tiles lie in tensor memory.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

namespace weft::warp {

/// Columns of 32 bits that a warpgroup's part of a value takes for products of `m` rows, which fill as many lanes.
int64_t columnsOf(mlir::Type type, int64_t m);

/// Ops that name a tile, from the first to the last of which it is needed.
struct TileWeb {
  llvm::SmallVector<mlir::Operation *> ops;
  unsigned from = 0, to = 0;
};

/// A tile of a warpgroup's columns. Where operands of several blocks share it, each is a web of its own.
struct TileColumns {
  int64_t count = 0, first = 0;
  llvm::MapVector<mlir::Block *, TileWeb> webs;

  bool livesWith(const TileColumns &other) const;
};

/// Where the tiles of a kernel lie, which ops name by numbers as their columns. Tiles that are not needed at once share
/// columns.
class ColumnPlaces {
public:
  explicit ColumnPlaces(mlir::func::FuncOp kernel);

  /// Whether the target has as many columns.
  bool fit() const;
  /// Has the ops name columns, and gives the kernel as many as they take.
  void set(TensorBeginOp begin);
  /// Has a kernel whose blocks may wait for one another ask for as much shared memory that a multiprocessor holds no more of
  /// them than it has columns for: one that waits for columns would otherwise be waited for.
  void keepOthersOff();
  /// An error that says what takes the columns.
  void report();

private:
  mlir::func::FuncOp kernel;
  const TargetInfo &target;
  int64_t groups, total = 0, columns = 0;
  llvm::MapVector<int32_t, TileColumns> tiles;
};

} // namespace weft::warp
