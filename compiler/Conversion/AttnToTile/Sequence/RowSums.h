// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums of everything that rows of a value hold, to a single number: every program of a kernel that has the rows at hand
// stores the sum of its own, and who wants the number adds these parts in their order.
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// Whether a sum is one of [B, H, N] or [B, H, N, D], with rows that kernels walk, to a single number, and not yet one
/// of parts.
bool sumsRows(attn::SumOp op);

/// Such sums inside a kernel whose programs have `stretch` rows each.
class RowSums {
public:
  /// Makes the kernel's outputs, [B, H, programs of a head].
  RowSums(KernelFrame &frame, Puller &puller, llvm::ArrayRef<attn::SumOp> sums, int64_t stretch);

  bool empty() const { return sums.empty(); }
  unsigned size() const { return sums.size(); }
  /// f32 [rows]: what rows add to a sum; 0 where `inside` (may be null) is false.
  mlir::Value terms(unsigned sum, const RowTile &rows, mlir::Value inside);
  /// Stores the program's part of a sum: all of `terms`, f32 [rows], added.
  void store(unsigned sum, mlir::Value terms);
  /// The sums become those of the parts, `results` of the kernel's launch.
  void replace(mlir::ValueRange results, StoredValues &stored);

private:
  TileBuilder &b;
  Puller &puller;
  llvm::SmallVector<attn::SumOp> sums;
  llvm::SmallVector<TensorParameter> outputs;
};

/// Sums of tokens that are only added become one: a kernel reads once what both are of.
void addBeforeSumming(mlir::Block &block);

} // namespace weft
