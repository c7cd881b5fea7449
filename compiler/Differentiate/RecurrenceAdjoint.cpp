// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The adjoint of attn.recur: attn.recur_backward, and the sums of what heads share.

#include "compiler/Differentiate/Adjoints.h"
#include "dialects/Attn/IR/Recurrence.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

namespace {

struct RecurAdjoint : DifferentiableOpInterface::ExternalModel<RecurAdjoint, attn::RecurOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const;
};

} // namespace

/// The gradient of the outputs, in the element type in which it enters products; zeros where nothing asks for them.
static Value outGradient(attn::RecurOp op, Gradients &gradients) {
  Type element = tensorType(op.getValue()).getElementType();
  if (Value known = gradients.get(op.getOut(), element))
    return known;
  auto zero = [](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    return {arith::ConstantOp::create(b, b.getF32FloatAttr(0))};
  };
  return attn::MapOp::create(gradients.b, tensorType(op.getOut()).withElement(element), ValueRange(), zero)
      .getResult(0);
}

LogicalResult RecurAdjoint::addAdjoint(Operation *op, Gradients &gradients) const {
  auto recur = cast<attn::RecurOp>(op);
  ImplicitLocOpBuilder &b = gradients.b;
  Value dState = gradients.get(recur.getFinalState(), b.getF32Type());
  if (!dState && !gradients.get(recur.getOut()))
    return success();
  auto its = attn::RecurrenceOperands::of(recur);
  auto primal = [&](Value value) { return value ? gradients.primal(value) : value; };
  SmallVector<Value> read{its.query, its.key, its.value}, delta;
  for (Value operand : {its.decay, its.beta, its.initialState})
    if (operand)
      read.push_back(operand);
  SmallVector<Type> types;
  for (Value operand : read) {
    // What heads share is added up in f32.
    WholeTensorType byHead = its.byQueryHead(operand), own = tensorType(operand);
    bool shared = byHead.getDims() != own.getDims();
    types.push_back(byHead.withElement(shared ? b.getF32Type() : gradients.elementFor(operand)));
  }
  for (Value value : recur.getDelta())
    delta.push_back(gradients.primal(value));
  Value dOut = outGradient(recur, gradients);
  auto backward = attn::RecurBackwardOp::create(b, types[0], types[1], types[2], ArrayRef(types).drop_front(3),
                                                primal(its.query), primal(its.key), primal(its.value),
                                                primal(its.decay), primal(its.beta), primal(its.initialState),
                                                primal(its.cuSeqlens), delta, dOut, dState, recur.getScaleAttr());
  for (auto [operand, gradient] : llvm::zip_equal(read, backward.getResults()))
    gradients.addSummed(operand, gradient);
  return success();
}

void weft::attachRecurrenceAdjoint(MLIRContext &context) { attn::RecurOp::attachInterface<RecurAdjoint>(context); }
