// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The lowering of one program by attn-to-tile: what each op becomes (AttnToTile.cpp), and what of its operands is
// stored, by which kernel (Storing.cpp).
#pragma once

#include "compiler/Conversion/AttnToTile/Expansions/Expansion.h"
#include "compiler/Conversion/AttnToTile/Lowerings.h"
#include "llvm/ADT/SetVector.h"

namespace weft {

/// The lowering of one program.
class ProgramLowering {
public:
  explicit ProgramLowering(mlir::func::FuncOp program) : program(program) {
    for (mlir::Value argument : program.getArguments())
      stored[argument] = argument;
  }
  mlir::LogicalResult run();

private:
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lower(attn::AttendOp op);
  mlir::LogicalResult lower(attn::AttendBackwardOp op);
  mlir::LogicalResult lower(attn::MergeUnitsOp op);
  mlir::LogicalResult lower(const Expansion &expansion);
  /// Sees to it that `value` is stored, as its type says: partial sums are added.
  mlir::LogicalResult store(mlir::Value value, mlir::Operation *anchor);
  /// Sees to it that a tile of `value` can be had in a kernel at `anchor`: stored, if only as partial sums, or
  /// row-local on what can be had.
  mlir::LogicalResult makePullable(mlir::Value value, mlir::Operation *anchor);
  /// Sees to it that any element of `value` can be had in a kernel at `anchor`: stored, or computed from elements.
  /// `inside` are values that the kernel makes.
  mlir::LogicalResult makeElementwise(mlir::Value value, mlir::Operation *anchor,
                                      const llvm::SetVector<mlir::Value> &inside = {});
  /// A product with a weight: its source is computed element by element on the way.
  template <typename Op>
  mlir::LogicalResult lowerProduct(Op op,
                                   mlir::LogicalResult (*lowering)(Op, llvm::ArrayRef<mlir::Value>, StoredValues &));
  template <typename Op>
  mlir::LogicalResult lowerWeightGrad(Op op, mlir::LogicalResult (*lowering)(Op, StoredValues &));
  /// The same of several values, those that are row-local by one kernel.
  mlir::LogicalResult storeRows(llvm::ArrayRef<mlir::Value> values, mlir::Operation *anchor);
  /// Sees to it that a kernel at `anchor` can have a number: stored, or a map of such; where `sums`, the sum of a
  /// stored tensor too.
  mlir::LogicalResult makeNumber(mlir::Value value, mlir::Operation *anchor, bool sums);
  /// Sees to it that the numbers that the program gives are stored, by one kernel.
  mlir::LogicalResult storeNumbers(mlir::Operation *end);
  mlir::LogicalResult storeCaptured(mlir::Operation *op, mlir::Operation *anchor);
  /// Whether nothing but row-local ops lies between a value and what is stored.
  bool isAtHand(mlir::Value value);
  /// The sums to numbers that a kernel which makes `values` can add up on its way: of what it computes anyway.
  llvm::SmallVector<attn::SumOp> sumsAlong(llvm::ArrayRef<mlir::Value> values);
  /// A sum to a number, by a kernel of its own.
  mlir::LogicalResult lowerRowSum(attn::SumOp sum, mlir::Operation *anchor);
  /// Sums of squares that norms within `values` need, where a kernel that makes `others` computes them anyway.
  llvm::SmallVector<mlir::Value> squaresFor(mlir::ValueRange values, llvm::ArrayRef<mlir::Value> others);
  /// What a kernel of `roots` computes: all but what is stored.
  llvm::SetVector<mlir::Value> computedFor(llvm::ArrayRef<mlir::Value> roots);
  /// What a value of tokens is computed from beside `tables`, by maps. Nothing where it is not, or not of what is at
  /// hand.
  std::optional<llvm::SmallVector<mlir::Value>> takenBeside(mlir::Value value, llvm::ArrayRef<mlir::Value> tables);
  /// The results of `anchor` and what is computed from them row by row that others need; sees to it that all they take
  /// can be had. `channelsSplit` where each program has a part of the results' channels alone.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> joinRowLocalUsers(mlir::Operation *anchor, mlir::ValueRange results,
                                                                    bool channelsSplit = false);
  /// The same of maps of the result of a product.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> joinMaps(mlir::Operation *anchor);

  /// dq in the place of its sums in memory: scaled, and rounded, by whoever takes it.
  void takeSums(attn::AttendBackwardOp op, mlir::Value sums);

  mlir::func::FuncOp program;
  StoredValues stored;
  llvm::DenseSet<mlir::Operation *> inExpansions; ///< what their kernels compute, nobody else does
};

/// [B, H, N] of a type of the row space.
inline llvm::ArrayRef<mlir::StringAttr> rowSpaceOf(mlir::Value value) {
  return wholeType(value).getDims().take_front(3);
}

} // namespace weft
