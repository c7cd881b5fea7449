// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What reductions and scans share: applying a combiner region to tuples of scalars, and arrays in scratch memory.
//
//   combine(^bb0(%a, %i, %b, %j): greater of two with its index; {3.0, 7}, {5.0, 2})   =   {5.0, 2}
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft {

/// One scalar for each operand of a reduction or scan.
using Tuple = llvm::SmallVector<mlir::Value, 2>;

/// The combiner region applied to two tuples, the earlier first. None after a reported failure.
std::optional<Tuple> combine(Emitter &emitter, mlir::Region &combiner, const Tuple &earlier, const Tuple &later);

/// All terms combined, neighbours first: as few steps in a row as there can be. The order of the terms is kept.
std::optional<Tuple> combineTree(Emitter &emitter, mlir::Region &combiner, llvm::SmallVector<Tuple> terms);

/// All terms combined by a combiner that asks for no order, in two chains: each step takes in one term, so that
/// products become fused multiply-adds.
std::optional<Tuple> combineChains(Emitter &emitter, mlir::Region &combiner, llvm::ArrayRef<Tuple> terms);

/// All terms combined by a sum, or a least or greatest, of f32, as the target has them: sums of pairs at once, extrema of
/// three. None where it has not, or the combiner is another.
std::optional<Tuple> combineAtOnce(Emitter &emitter, mlir::Region &combiner, llvm::ArrayRef<Tuple> terms);

/// An array of scalars in the block's shared memory.
class ScratchArray {
public:
  /// `offset` bytes from the start of shared memory; elements of LLVM type `type`, of `bytes` bytes each.
  ScratchArray(Emitter &emitter, int64_t offset, mlir::Type type, unsigned bytes);
  /// Writes element `index` (i32) where `predicate` is true; null means everywhere.
  void store(mlir::Value index, mlir::Value value, mlir::Value predicate);
  mlir::Value load(mlir::Value index);
  /// As `store` and `load`, of 1, 2 or 4 neighbours from element `index`, a multiple of their number, in one access.
  /// Elements have 4 bytes.
  void storeVector(mlir::Value index, llvm::ArrayRef<mlir::Value> values, mlir::Value predicate);
  llvm::SmallVector<mlir::Value> loadVector(mlir::Value index, unsigned count);

private:
  mlir::Value address(mlir::Value index);
  Emitter &emitter;
  mlir::Value base;
  mlir::Type type, stored;
  unsigned bytes;
};

} // namespace weft
