// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Adjoints of the ops that mix heads and channels: products with weights, and means over groups of heads.
//
//   %y = attn.linear %x, %w bias %b   =>   %dx = attn.linear %dy, %w {transposed}
//                                          %dw, %db = attn.linear_weight_grad %x, %dy
#include "compiler/Differentiate/Adjoints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

/// The type of the gradient of a product's source. Where nothing else reads the source, it is rounded as the source is:
/// what comes next is most often another product, which would round it.
static Type sourceType(const Gradients &gradients, Value source) {
  return gradients.isReadOnce(source) ? tensorType(source) : gradients.contributionType(source);
}

/// The gradient of a product's result as the factor that it becomes: in the narrower of its and the weight's types.
static Value gradientAsFactor(Gradients &gradients, Value result, Value weight) {
  Type own = tensorType(result).getElementType(), other = tensorType(weight).getElementType();
  return gradients.get(result, other.getIntOrFloatBitWidth() < own.getIntOrFloatBitWidth() ? other : own);
}

/// The gradients of a product's weight and bias. `make(weight, bias, x, gradient)` makes the op with results of these
/// types; the bias' may be null. `axis` is the bias' among those of the gradient.
template <typename ProductOp>
static void addWeightGradients(Gradients &gradients, ProductOp product, Value gradient, int64_t axis,
                               llvm::function_ref<Operation *(Type, Type, Value, Value)> make) {
  Value weight = product.getWeight(), bias = product.getBias();
  bool wantsBias = bias && gradients.wants(bias);
  Type biasType = wantsBias ? gradients.contributionType(bias) : Type();
  if (gradients.wants(weight)) {
    // Of the transpose, x and the gradient change places.
    Value x = gradients.primal(product.getSource()), g = gradient;
    if (product.getTransposed())
      std::swap(x, g);
    Operation *op = make(gradients.contributionType(weight), biasType, x, g);
    gradients.add(weight, op->getResult(0));
    if (wantsBias)
      gradients.add(bias, op->getResult(1));
  } else if (wantsBias) {
    SmallVector<int64_t> away;
    for (int64_t i = 0; i < tensorType(gradient).getRank(); ++i)
      if (i != axis)
        away.push_back(i);
    ImplicitLocOpBuilder &b = gradients.b;
    gradients.add(bias, attn::SumOp::create(b, biasType, gradient, b.getDenseI64ArrayAttr(away)));
  }
}

/// The tangent of a product with a weight, y = w x + b: w dx + db, and dw x.
template <typename ProductOp>
static LogicalResult addProductTangent(ProductOp product, int64_t axis, Tangents &tangents) {
  Value bias = product.getBias(), ofBias = bias ? tangents.get(bias) : Value();
  SmallVector<Operation *> terms;
  for (unsigned operand : {0, 1}) {
    Operation *term = tangents.cloneWithTangent(product, operand);
    if (!term)
      continue;
    // One of the terms takes the bias' tangent.
    if (bias && ofBias && terms.empty())
      term->setOperand(2, ofBias);
    else if (bias)
      term->eraseOperand(2);
    terms.push_back(term);
  }
  if (terms.empty() && ofBias) {
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
      Value index = attn::IndexOp::create(b, b.getI32Type(), axis);
      return {attn::ElementOp::create(b, b.getF32Type(), ofBias, index)};
    };
    terms.push_back(attn::MapOp::create(tangents.b, product.getResult().getType(), ValueRange(), body));
  }
  tangents.setSum(product, terms);
  return success();
}

namespace {

struct HeadConvTangent : LinearisableOpInterface::ExternalModel<HeadConvTangent, attn::HeadConvOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    return addProductTangent(cast<attn::HeadConvOp>(op), 1, tangents);
  }
};
struct LinearTangent : LinearisableOpInterface::ExternalModel<LinearTangent, attn::LinearOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    auto linear = cast<attn::LinearOp>(op);
    return addProductTangent(linear, tensorType(linear.getResult()).getRank() - 1, tangents);
  }
};
struct MeanHeadsTangent : LinearisableOpInterface::ExternalModel<MeanHeadsTangent, attn::MeanHeadsOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    if (Operation *term = tangents.cloneWithTangent(op, 0))
      tangents.setSum(op, term);
    return success();
  }
};

/// The gradient of a weight is linear in the source and in the gradient; that of the bias, if it is there, in the
/// gradient alone.
template <typename Op> struct WeightGradTangent : LinearisableOpInterface::ExternalModel<WeightGradTangent<Op>, Op> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    auto gradient = cast<Op>(op);
    Operation *ofSource = tangents.cloneWithTangent(op, 0), *ofGradient = tangents.cloneWithTangent(op, 1);
    if (ofSource && gradient.getBias()) {
      Operation *alone = dropBias(cast<Op>(ofSource), tangents.b);
      ofSource->erase();
      ofSource = alone;
    }
    if (ofGradient && gradient.getBias())
      tangents.set(gradient.getBias(), cast<Op>(ofGradient).getBias());
    SmallVector<Value> parts;
    for (Operation *term : {ofSource, ofGradient})
      if (term)
        parts.push_back(term->getResult(0));
    tangents.set(gradient.getResult(), tangents.sum(parts));
    return success();
  }
  static Operation *dropBias(attn::HeadConvWeightGradOp op, ImplicitLocOpBuilder &b) {
    return attn::HeadConvWeightGradOp::create(b, op.getResult().getType(), Type(), op.getSource(), op.getGradient());
  }
  static Operation *dropBias(attn::LinearWeightGradOp op, ImplicitLocOpBuilder &b) {
    return attn::LinearWeightGradOp::create(b, op.getResult().getType(), Type(), op.getSource(), op.getGradient(),
                                            op.getConcatenated());
  }
};

struct HeadConvAdjoint : DifferentiableOpInterface::ExternalModel<HeadConvAdjoint, attn::HeadConvOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto conv = cast<attn::HeadConvOp>(op);
    Value source = conv.getSource(), weight = conv.getWeight();
    Value gradient = gradientAsFactor(gradients, conv.getResult(), weight);
    if (!gradient)
      return success();
    ImplicitLocOpBuilder &b = gradients.b;
    if (gradients.wants(source))
      gradients.add(source, attn::HeadConvOp::create(b, sourceType(gradients, source), gradient,
                                                     gradients.primal(weight), Value(), !conv.getTransposed()));
    addWeightGradients(gradients, conv, gradient, 1, [&](Type weightType, Type biasType, Value x, Value g) {
      return attn::HeadConvWeightGradOp::create(b, weightType, biasType, x, g);
    });
    return success();
  }
};

struct LinearAdjoint : DifferentiableOpInterface::ExternalModel<LinearAdjoint, attn::LinearOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto linear = cast<attn::LinearOp>(op);
    Value source = linear.getSource(), weight = linear.getWeight();
    Value gradient = gradientAsFactor(gradients, linear.getResult(), weight);
    if (!gradient)
      return success();
    ImplicitLocOpBuilder &b = gradients.b;
    if (gradients.wants(source))
      gradients.add(source, attn::LinearOp::create(b, sourceType(gradients, source), gradient, gradients.primal(weight),
                                                   Value(), !linear.getTransposed(), linear.getConcatenated()));
    int64_t last = tensorType(gradient).getRank() - 1;
    addWeightGradients(gradients, linear, gradient, last, [&](Type weightType, Type biasType, Value x, Value g) {
      return attn::LinearWeightGradOp::create(b, weightType, biasType, x, g, linear.getConcatenated());
    });
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
    auto map = attn::MapOp::create(gradients.b, gradients.contributionType(mean.getSource()), ValueRange(), body);
    gradients.add(mean.getSource(), map.getResult(0));
    return success();
  }
};

} // namespace

void weft::attachHeadAdjoints(MLIRContext &context) {
  attn::HeadConvOp::attachInterface<HeadConvAdjoint, HeadConvTangent>(context);
  attn::LinearOp::attachInterface<LinearAdjoint, LinearTangent>(context);
  attn::MeanHeadsOp::attachInterface<MeanHeadsAdjoint, MeanHeadsTangent>(context);
  attn::HeadConvWeightGradOp::attachInterface<WeightGradTangent<attn::HeadConvWeightGradOp>>(context);
  attn::LinearWeightGradOp::attachInterface<WeightGradTangent<attn::LinearWeightGradOp>>(context);
}
