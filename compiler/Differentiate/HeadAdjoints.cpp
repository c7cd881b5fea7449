// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Adjoints of the ops that mix heads and channels: products with weights, and means over groups of heads.
//
//   %y = attn.linear %x, %w bias %b   =>   %dx = attn.linear %dy, %w {transposed}
//                                          %dw = attn.linear_weight_grad %x, %dy      %db = attn.sum %dy
#include "compiler/Differentiate/Adjoints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

/// The type of a contribution to the gradient of `value`.
static Type contributionType(const Gradients &gradients, Value value) {
  return tensorType(value).withElement(gradients.elementFor(value));
}

/// Adds to the gradient of a product's bias the sum of its result's over all axes but `axis`.
static void addBiasGradient(Gradients &gradients, Value bias, Value gradient, int64_t axis) {
  if (!bias || !gradients.wants(bias))
    return;
  SmallVector<int64_t> away;
  for (int64_t i = 0; i < tensorType(gradient).getRank(); ++i)
    if (i != axis)
      away.push_back(i);
  ImplicitLocOpBuilder &b = gradients.b;
  gradients.add(bias,
                attn::SumOp::create(b, contributionType(gradients, bias), gradient, b.getDenseI64ArrayAttr(away)));
}

namespace {

struct HeadConvAdjoint : DifferentiableOpInterface::ExternalModel<HeadConvAdjoint, attn::HeadConvOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto conv = cast<attn::HeadConvOp>(op);
    Value gradient = gradients.get(conv.getResult()), source = conv.getSource(), weight = conv.getWeight();
    if (!gradient)
      return success();
    ImplicitLocOpBuilder &b = gradients.b;
    if (gradients.wants(source))
      gradients.add(source, attn::HeadConvOp::create(b, contributionType(gradients, source), gradient,
                                                     gradients.primal(weight), Value(), !conv.getTransposed()));
    if (gradients.wants(weight)) {
      // Of the transpose, x and the gradient change places.
      Value x = gradients.primal(source), g = gradient;
      if (conv.getTransposed())
        std::swap(x, g);
      gradients.add(weight, attn::HeadConvWeightGradOp::create(b, contributionType(gradients, weight), x, g));
    }
    addBiasGradient(gradients, conv.getBias(), gradient, 1);
    return success();
  }
};

struct LinearAdjoint : DifferentiableOpInterface::ExternalModel<LinearAdjoint, attn::LinearOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto linear = cast<attn::LinearOp>(op);
    Value gradient = gradients.get(linear.getResult()), source = linear.getSource(), weight = linear.getWeight();
    if (!gradient)
      return success();
    ImplicitLocOpBuilder &b = gradients.b;
    if (gradients.wants(source))
      gradients.add(source,
                    attn::LinearOp::create(b, contributionType(gradients, source), gradient, gradients.primal(weight),
                                           Value(), !linear.getTransposed(), linear.getConcatenated()));
    if (gradients.wants(weight)) {
      Value x = gradients.primal(source), g = gradient;
      if (linear.getTransposed())
        std::swap(x, g);
      gradients.add(weight, attn::LinearWeightGradOp::create(b, contributionType(gradients, weight), x, g,
                                                             linear.getConcatenated()));
    }
    addBiasGradient(gradients, linear.getBias(), gradient, tensorType(gradient).getRank() - 1);
    return success();
  }
};

/// Each head of a group has its share of the gradient of the mean.
struct MeanHeadsAdjoint : DifferentiableOpInterface::ExternalModel<MeanHeadsAdjoint, attn::MeanHeadsOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto mean = cast<attn::MeanHeadsOp>(op);
    Value gradient = gradients.get(mean.getResult());
    if (!gradient)
      return success();
    WholeTensorType from = tensorType(mean.getSource()), to = tensorType(mean.getResult());
    int64_t few = to.getRank() == 3 ? 1 : *to.staticDim(1), groups = *from.staticDim(1) / few;
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
      SmallVector<Value> indices;
      for (int64_t axis = 0; axis < 4; ++axis)
        if (axis != 1 || to.getRank() == 4)
          indices.push_back(attn::IndexOp::create(b, b.getI32Type(), axis));
      if (to.getRank() == 4)
        indices[1] = arith::RemUIOp::create(b, indices[1], arith::ConstantIntOp::create(b, few, 32));
      Value share = arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f / groups));
      return {arith::MulFOp::create(b, attn::ElementOp::create(b, b.getF32Type(), gradient, indices), share)};
    };
    auto map = attn::MapOp::create(gradients.b, contributionType(gradients, mean.getSource()), ValueRange(), body);
    gradients.add(mean.getSource(), map.getResult(0));
    return success();
  }
};

} // namespace

void weft::attachHeadAdjoints(MLIRContext &context) {
  attn::HeadConvOp::attachInterface<HeadConvAdjoint>(context);
  attn::LinearOp::attachInterface<LinearAdjoint>(context);
  attn::MeanHeadsOp::attachInterface<MeanHeadsAdjoint>(context);
}
