// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an iteration computes from a table's entry, which is the same one for many iterations: where rows of a page lie.
//
//   %number = %i >> 3                 the page of block %i, of 8 blocks
//   %place = %i & 7                   its place there
//   %entry = tile.load table[%number]
//   %rows = pages + %entry · %a + %place · %b        held: %b more than the iteration before, unless a page begins
#pragma once

#include "dialects/Warp/Transforms/LoopSlice.h"
#include "mlir/IR/IRMapping.h"

namespace weft::warp {

/// A product of numbers that the loop does not change.
struct HeldTerm {
  int64_t count = 1;
  llvm::SmallVector<mlir::Value, 2> factors; // of 64 bits
};

/// A scalar that grows by a sum of products from iteration to iteration of a period.
struct HeldValue {
  /// What it is where a period begins.
  enum class Begin {
    Computed,
    Zero, // a remainder
    Next, // a quotient: one more
  };
  mlir::Value value;
  llvm::SmallVector<HeldTerm, 2> growth; // in elements, of a pointer
  Begin begin = Begin::Computed;
  int64_t last = 0; // a remainder's last value
};

/// Scalars of a slice that need a load only where a period begins, behind the remainders and quotients that say where.
struct HeldValues {
  llvm::SmallVector<HeldValue, 4> values;           // the first is a remainder
  llvm::DenseSet<mlir::Operation *> needed, others; // ops of the slice that the values need; what else the results need

  bool none() const { return values.empty(); }
  /// What each value grows by in an iteration; null: by nothing.
  llvm::SmallVector<mlir::Value> growths(mlir::OpBuilder &b, mlir::Location loc) const;
  /// Computes the slice, whose ops are in order, of an iteration whose number `mapping` has, from the values of the one
  /// before.
  void mapBehind(mlir::OpBuilder &b, mlir::Location loc, llvm::ArrayRef<mlir::Operation *> slice,
                 mlir::IRMapping &mapping, mlir::ValueRange before, mlir::ValueRange growths) const;
};

/// The scalars of `slice`, from which `results` are computed, that may be held. None where nothing is loaded for them, a
/// period is one iteration, or what is loaded follows from the iteration's number otherwise too.
HeldValues findHeldValues(const Slice &slice, llvm::ArrayRef<mlir::Value> results, mlir::scf::ForOp loop);

} // namespace weft::warp
