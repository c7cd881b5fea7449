// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The lowering of one program by attn-to-tile: what each op becomes (AttnToTile.cpp), and what of its operands is
// stored, by which kernel (Storing.cpp).
#pragma once

#include "compiler/Conversion/AttnToTile/Expansions/Expansion.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerRows.h"
#include "llvm/ADT/SetVector.h"

namespace weft {

/// The lowering of one program.
class ProgramLowering : public ProgramKernels {
public:
  explicit ProgramLowering(mlir::func::FuncOp program) : program(program) {
    stored.recordAsValues(program.getArguments());
  }
  mlir::LogicalResult run();

  mlir::LogicalResult store(mlir::Value value, mlir::Operation *anchor) final;
  mlir::LogicalResult storeRows(llvm::ArrayRef<mlir::Value> values, mlir::Operation *anchor) final;
  mlir::LogicalResult storeCaptured(mlir::Operation *op, mlir::Operation *anchor) final;
  mlir::LogicalResult makePullable(mlir::Value value, mlir::Operation *anchor) final;
  mlir::LogicalResult makeElementwise(mlir::Value value, mlir::Operation *anchor) final {
    return makeElementwise(value, anchor, {});
  }
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> joinRowLocalUsers(mlir::Operation *anchor, mlir::ValueRange results,
                                                                    bool channelsSplit) final;
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> joinMaps(mlir::Operation *anchor) final;
  llvm::SmallVector<mlir::Value> squaresFor(mlir::ValueRange values, llvm::ArrayRef<mlir::Value> others) final;
  std::optional<llvm::SmallVector<mlir::Value>> takenBeside(mlir::Value value,
                                                            llvm::ArrayRef<mlir::Value> tables) final;

private:
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lower(const Expansion &expansion);
  /// `inside` are values that the kernel makes.
  mlir::LogicalResult makeElementwise(mlir::Value value, mlir::Operation *anchor,
                                      const llvm::SetVector<mlir::Value> &inside);
  /// Sees to it that a kernel at `anchor` can have a number: stored, or a map of such; where `sums`, the sum of a
  /// stored tensor too.
  mlir::LogicalResult makeNumber(mlir::Value value, mlir::Operation *anchor, bool sums);
  /// Sees to it that the numbers that the program gives are stored, by one kernel.
  mlir::LogicalResult storeNumbers(mlir::Operation *end);
  /// Whether nothing but row-local ops lies between a value and what is stored.
  bool isAtHand(mlir::Value value);
  /// The sums to numbers that a kernel which makes `values` can add up on its way: of what it computes anyway.
  llvm::SmallVector<attn::SumOp> sumsAlong(llvm::ArrayRef<mlir::Value> values);
  /// A sum to a number, by a kernel of its own.
  mlir::LogicalResult lowerRowSum(attn::SumOp sum, mlir::Operation *anchor);
  /// What a kernel of `roots` computes: all but what is stored.
  llvm::SetVector<mlir::Value> computedFor(llvm::ArrayRef<mlir::Value> roots);

  /// How many taps of convolutions a kernel applies that computes a tile of `value` on the way.
  int64_t tapsApplied(mlir::Value value, llvm::DenseMap<mlir::Value, int64_t> &known);

  mlir::func::FuncOp program;
  llvm::DenseSet<mlir::Operation *> inExpansions; ///< what their kernels compute, nobody else does
};

// The models by which ops become kernels, of each room.
void attachAttentionKernels(mlir::MLIRContext &context);
void attachSequenceKernels(mlir::MLIRContext &context);
void attachRecurrenceKernels(mlir::MLIRContext &context);

} // namespace weft
