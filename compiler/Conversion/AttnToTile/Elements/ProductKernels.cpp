// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How products with weights, and the gradients of weights, become kernels of their own. (Those that belong together are
// one kernel: Expansions.)
#include "compiler/Conversion/AttnToTile/Elements/LowerElements.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"

using namespace mlir;

namespace weft {

namespace {
/// A product: its source is computed element by element on the way, and maps of its result before that is stored.
template <typename Op, LogicalResult (*lowering)(Op, ArrayRef<Value>, StoredValues &)>
struct ProductKernel : KernelOpInterface::ExternalModel<ProductKernel<Op, lowering>, Op> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto product = cast<Op>(op);
    for (Value operand : op->getOperands()) {
      bool isSource = operand == product.getSource();
      if (failed(isSource ? program.makeElementwise(operand, op) : program.store(operand, op)))
        return failure();
    }
    FailureOr<SmallVector<Value>> roots = program.joinMaps(op);
    return failed(roots) ? failure() : lowering(product, *roots, program.stored);
  }
};

/// The gradient of a weight, of two values that are computed element by element.
template <typename Op, LogicalResult (*lowering)(Op, StoredValues &)>
struct WeightGradKernel : KernelOpInterface::ExternalModel<WeightGradKernel<Op, lowering>, Op> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    for (Value operand : op->getOperands())
      if (failed(program.makeElementwise(operand, op)))
        return failure();
    return lowering(cast<Op>(op), program.stored);
  }
};
} // namespace

void attachProductKernels(MLIRContext &context) {
  attn::HeadConvOp::attachInterface<ProductKernel<attn::HeadConvOp, lowerHeadConv>>(context);
  attn::LinearOp::attachInterface<ProductKernel<attn::LinearOp, lowerLinear>>(context);
  attn::HeadConvWeightGradOp::attachInterface<WeightGradKernel<attn::HeadConvWeightGradOp, lowerHeadConvWeightGrad>>(
      context);
  attn::LinearWeightGradOp::attachInterface<WeightGradKernel<attn::LinearWeightGradOp, lowerLinearWeightGrad>>(context);
}

} // namespace weft
