// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How products with weights, and the gradients of weights, become kernels of their own, one product a file of
// Elements/Products. Products that belong together are one kernel: see Expansions.
#pragma once

#include "compiler/Conversion/AttnToTile/Elements/Products.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"

namespace weft {

/// A product: its source is computed element by element on the way, and maps of its result before that is stored.
/// `lowering` stores the roots, its result or what is computed from it.
template <typename Op, mlir::LogicalResult (*lowering)(Op, llvm::ArrayRef<mlir::Value>, StoredValues &)>
struct ProductKernel : KernelOpInterface::ExternalModel<ProductKernel<Op, lowering>, Op> {
  bool readsElements(mlir::Operation *) const { return true; }
  mlir::LogicalResult lower(mlir::Operation *op, ProgramKernels &program) const {
    auto product = mlir::cast<Op>(op);
    for (mlir::Value operand : op->getOperands()) {
      bool isSource = operand == product.getSource();
      if (failed(isSource ? program.makeElementwise(operand, op) : program.store(operand, op)))
        return mlir::failure();
    }
    mlir::FailureOr<llvm::SmallVector<mlir::Value>> roots = program.joinMaps(op);
    return failed(roots) ? mlir::failure() : lowering(product, *roots, program.stored);
  }
};

/// The gradient of a weight, of two values that are computed element by element.
template <typename Op, mlir::LogicalResult (*lowering)(Op, StoredValues &)>
struct WeightGradKernel : KernelOpInterface::ExternalModel<WeightGradKernel<Op, lowering>, Op> {
  bool readsElements(mlir::Operation *) const { return true; }
  mlir::LogicalResult lower(mlir::Operation *op, ProgramKernels &program) const {
    for (mlir::Value operand : op->getOperands())
      if (failed(program.makeElementwise(operand, op)))
        return mlir::failure();
    return lowering(mlir::cast<Op>(op), program.stored);
  }
};

/// Makes known to the context, with the dialect, which ops are such (Elements/Products).
void registerProductKernels(mlir::DialectRegistry &registry);

} // namespace weft
