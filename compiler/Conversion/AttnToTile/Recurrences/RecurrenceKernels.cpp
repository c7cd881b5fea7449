// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How linear recurrences become kernels.
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "compiler/Conversion/AttnToTile/Recurrences/RecurrenceKernel.h"

using namespace mlir;

namespace weft {
namespace {

/// Several kernels read the operands: each is stored.
LogicalResult storeOperands(Operation *op, ProgramKernels &program) {
  SmallVector<Value> operands(op->getOperands());
  if (failed(program.storeRows(operands, op)))
    return failure();
  for (Value operand : operands)
    if (failed(program.store(operand, op)))
      return failure();
  return success();
}

struct RecurKernel : KernelOpInterface::ExternalModel<RecurKernel, attn::RecurOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    return failed(storeOperands(op, program)) ? failure() : lowerRecur(cast<attn::RecurOp>(op), program.stored);
  }
};

struct RecurBackwardKernel : KernelOpInterface::ExternalModel<RecurBackwardKernel, attn::RecurBackwardOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    return failed(storeOperands(op, program)) ? failure()
                                              : lowerRecurBackward(cast<attn::RecurBackwardOp>(op), program.stored);
  }
};

} // namespace

void attachRecurrenceKernels(MLIRContext &context) {
  attn::RecurOp::attachInterface<RecurKernel>(context);
  attn::RecurBackwardOp::attachInterface<RecurBackwardKernel>(context);
}

} // namespace weft
