// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an op that becomes a kernel asks of the program around it, and the interface by which it becomes one.
//
// An op declares itself by an external model in its room (Attention/AttendKernels.cpp, Sequence/SequenceKernels.cpp,
// Elements/Products):
//
//   struct PrefixMeanKernel : KernelOpInterface::ExternalModel<PrefixMeanKernel, attn::PrefixMeanOp> {
//     LogicalResult lower(Operation *op, ProgramKernels &program) const {
//       auto mean = cast<attn::PrefixMeanOp>(op);
//       if (failed(program.store(mean.getSource(), op)))  // what it reads is stored before its kernel
//         return failure();
//       return lowerPrefixMean(mean, program.stored);     // writes the kernel, and where the result is stored
//     }
//   };
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"

namespace weft {

/// The program that is being lowered, as its ops see it. `anchor`: the op before which kernels are launched.
class ProgramKernels {
public:
  virtual ~ProgramKernels() = default;

  /// Sees to it that `value` is stored, as its type says: partial sums are added.
  virtual mlir::LogicalResult store(mlir::Value value, mlir::Operation *anchor) = 0;
  /// The same of several values, those that are row-local by one kernel.
  virtual mlir::LogicalResult storeRows(llvm::ArrayRef<mlir::Value> values, mlir::Operation *anchor) = 0;
  /// The same of what an op's regions read elements of.
  virtual mlir::LogicalResult storeCaptured(mlir::Operation *op, mlir::Operation *anchor) = 0;
  /// Sees to it that a tile of `value` can be had in a kernel at `anchor`: stored, if only as partial sums, or
  /// row-local on what can be had.
  virtual mlir::LogicalResult makePullable(mlir::Value value, mlir::Operation *anchor) = 0;
  /// Sees to it that any element of `value` can be had in a kernel at `anchor`: stored, or computed from elements.
  virtual mlir::LogicalResult makeElementwise(mlir::Value value, mlir::Operation *anchor) = 0;

  /// The results of `anchor` and what is computed from them row by row that others need; sees to it that all they take
  /// can be had. `channelsSplit` where each program has a part of the results' channels alone.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  joinRowLocalUsers(mlir::Operation *anchor, mlir::ValueRange results, bool channelsSplit = false) = 0;
  /// The same of maps of the result of a product.
  virtual mlir::FailureOr<llvm::SmallVector<mlir::Value>> joinMaps(mlir::Operation *anchor) = 0;

  /// Sums of squares that norms within `values` need, where a kernel that makes `others` computes them anyway.
  virtual llvm::SmallVector<mlir::Value> squaresFor(mlir::ValueRange values, llvm::ArrayRef<mlir::Value> others) = 0;
  /// What a value of tokens is computed from beside `tables`, by maps. Nothing where it is not, or not of what is at
  /// hand.
  virtual std::optional<llvm::SmallVector<mlir::Value>> takenBeside(mlir::Value value,
                                                                    llvm::ArrayRef<mlir::Value> tables) = 0;

  StoredValues stored;
};

} // namespace weft

#include "compiler/Conversion/AttnToTile/Kernel/KernelOpInterface.h.inc"
