// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels over tiles of rows, for row-local values that are stored.
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// What a kernel over rows of one row space ([B, H, N, ...]) makes: row-local values, and parts of sums of such to
/// single numbers (RowSums.h).
struct RowRoots {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<attn::SumOp> sums;

  /// The values, and what is summed up.
  llvm::SmallVector<mlir::Value> pulled() const {
    llvm::SmallVector<mlir::Value> all(values);
    for (attn::SumOp sum : sums)
      all.push_back(sum.getSource());
    return all;
  }
};

/// Rows of a tile of so many channels, such that it has about 4,096 elements.
int64_t rowsOfTile(int64_t channels);

/// Makes `roots` by one kernel over tiles of rows, launched before `anchor`.
void lowerRows(mlir::Operation *anchor, const RowRoots &roots, StoredValues &stored);

/// The same for roots that need the row before each row, which is then carried along; false where they do not.
bool walkRows(mlir::Operation *anchor, const RowRoots &roots, StoredValues &stored);

} // namespace weft
