// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Adjoints of sums, convolutions and rms_norm.
//
//   %y = attn.sum %x -> [B, H, 1, D]          =>   %dx = attn.map ins(%dy) { dy }, of [B, H, N, D]
//   %y = attn.convolve %x, %t                 =>   %dx = attn.convolve %dy, %t {transposed}
//                                                  %dt = attn.convolve_taps_grad %x, %dy
#include "compiler/Differentiate/Adjoints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;
using Scalars = SmallVector<Value>;

/// What the backward has of an optional operand.
static Value primalOrNone(Gradients &gradients, Value operand) { return operand ? gradients.primal(operand) : Value(); }

namespace {

/// The transpose of a sum repeats: what broadcasts in `attn.map` is handed on as it is.
struct SumAdjoint : DifferentiableOpInterface::ExternalModel<SumAdjoint, attn::SumOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto sum = cast<attn::SumOp>(op);
    Value gradient = gradients.get(sum.getResult());
    if (!gradient)
      return success();
    if (!sum.getAway()) {
      gradients.add(sum.getSource(), gradient);
      return success();
    }
    // Not aligned at the last axis: each element looks for its sum.
    WholeTensorType source = tensorType(sum.getSource());
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> Scalars {
      Scalars indices;
      for (int64_t axis = 0; axis < source.getRank(); ++axis)
        if (!llvm::is_contained(*sum.getAway(), axis))
          indices.push_back(attn::IndexOp::create(b, b.getI32Type(), axis));
      return {attn::ElementOp::create(b, b.getF32Type(), gradient, indices)};
    };
    auto map = attn::MapOp::create(gradients.b, gradients.contributionType(sum.getSource()), ValueRange(), body);
    gradients.add(sum.getSource(), map.getResult(0));
    return success();
  }
};

/// An op that is linear in each of the first `count` of its operands alone.
template <typename Op, unsigned count>
struct MultilinearTangent : LinearisableOpInterface::ExternalModel<MultilinearTangent<Op, count>, Op> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    SmallVector<Operation *> terms;
    for (unsigned operand = 0; operand < count; ++operand)
      if (Operation *term = tangents.cloneWithTangent(op, operand))
        terms.push_back(term);
    tangents.setSum(op, terms);
    return success();
  }
};

struct ConvolveAdjoint : DifferentiableOpInterface::ExternalModel<ConvolveAdjoint, attn::ConvolveOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    auto convolve = cast<attn::ConvolveOp>(op);
    Value gradient = gradients.get(convolve.getResult());
    Value source = convolve.getSource(), taps = convolve.getTaps();
    Value cuSeqlens = primalOrNone(gradients, convolve.getCuSeqlens());
    if (gradient && gradients.wants(source))
      gradients.add(source, attn::ConvolveOp::create(gradients.b, gradients.contributionType(source), gradient,
                                                     gradients.primal(taps), cuSeqlens, convolve.getCentred(),
                                                     convolve.getDilation(), convolve.getGridAttr(),
                                                     !convolve.getTransposed()));
    if (gradient && gradients.wants(taps))
      gradients.add(taps, attn::ConvolveTapsGradOp::create(gradients.b, gradients.contributionType(taps),
                                                           gradients.primal(source), gradient, cuSeqlens,
                                                           convolve.getCentred(), convolve.getDilation(),
                                                           convolve.getGridAttr(), convolve.getTransposed()));
    return success();
  }
};

/// y = x r gain with r = 1 / sqrt(mean(x²) + eps):
///   dx = r (dy gain - x r² mean(dy gain x)),  dgain = Σ dy x r over batch and rows.
struct RmsNormAdjoint : DifferentiableOpInterface::ExternalModel<RmsNormAdjoint, attn::RmsNormOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const;
};

} // namespace

/// The gain of a map's element of [B, H, N, D], times `value`; without a gain `value`.
static Value timesGain(ImplicitLocOpBuilder &b, Value gain, Value value) {
  if (!gain)
    return value;
  Value head = attn::IndexOp::create(b, b.getI32Type(), 1), channel = attn::IndexOp::create(b, b.getI32Type(), 3);
  Value its = attn::ElementOp::create(b, b.getF32Type(), gain, ValueRange{head, channel});
  return arith::MulFOp::create(b, value, its);
}

/// By row, r and r³ mean(x g gain), of a norm of x and what goes along with it, g.
static std::pair<Value, Value> rowsOfNorm(ImplicitLocOpBuilder &b, attn::RmsNormOp norm, Value x, Value g, Value gain) {
  WholeTensorType whole = tensorType(norm.getSource()).withElement(b.getF32Type()), row = whole.withDim(3, "1");
  auto mulElements = [](ImplicitLocOpBuilder &b, Value x, Value y) { return arith::MulFOp::create(b, x, y); };
  auto productsBody = [&](ImplicitLocOpBuilder &b, ValueRange s) -> Scalars {
    return {mulElements(b, s[0], s[0]), mulElements(b, timesGain(b, gain, s[1]), s[0])};
  };
  auto products = attn::MapOp::create(b, {whole, whole}, {x, g}, productsBody);
  Value squares = attn::SumOp::create(b, row, products.getResult(0));
  Value inner = attn::SumOp::create(b, row, products.getResult(1));

  auto rowBody = [&](ImplicitLocOpBuilder &b, ValueRange s) -> Scalars {
    Value size = arith::SIToFPOp::create(b, b.getF32Type(), attn::SizeOp::create(b, b.getI32Type(), whole.dim(3)));
    Value eps = arith::ConstantOp::create(b, b.getF32FloatAttr(norm.getEps().convertToDouble()));
    Value r = math::RsqrtOp::create(b, arith::AddFOp::create(b, arith::DivFOp::create(b, s[0], size), eps));
    Value part = mulElements(b, mulElements(b, r, mulElements(b, r, r)), arith::DivFOp::create(b, s[1], size));
    return {r, part};
  };
  auto rows = attn::MapOp::create(b, {row, row}, {squares, inner}, rowBody);
  return {rows.getResult(0), rows.getResult(1)};
}

LogicalResult RmsNormAdjoint::addAdjoint(Operation *op, Gradients &gradients) const {
  auto norm = cast<attn::RmsNormOp>(op);
  Value dy = gradients.get(norm.getResult());
  if (!dy)
    return success();
  ImplicitLocOpBuilder &b = gradients.b;
  Value x = gradients.primal(norm.getSource());
  Value gain = norm.getGain() ? gradients.primal(norm.getGain()) : Value();
  WholeTensorType whole = tensorType(norm.getSource()).withElement(b.getF32Type());
  auto [r, part] = rowsOfNorm(b, norm, x, dy, gain);
  auto mulElements = [](ImplicitLocOpBuilder &b, Value x, Value y) { return arith::MulFOp::create(b, x, y); };

  if (gradients.wants(norm.getSource())) {
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange s) -> Scalars {
      Value along = mulElements(b, s[2], timesGain(b, gain, s[1]));
      return {arith::SubFOp::create(b, along, mulElements(b, s[0], s[3]))};
    };
    Type type = gradients.contributionType(norm.getSource());
    gradients.add(norm.getSource(), attn::MapOp::create(b, type, {x, dy, r, part}, body).getResult(0));
  }
  if (gain && gradients.wants(norm.getGain())) {
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange s) -> Scalars {
      return {mulElements(b, s[1], mulElements(b, s[0], s[2]))};
    };
    Value terms = attn::MapOp::create(b, whole, {x, dy, r}, body).getResult(0);
    gradients.add(norm.getGain(), attn::SumOp::create(b, gradients.contributionType(norm.getGain()), terms,
                                                      b.getDenseI64ArrayAttr({0, 2})));
  }
  return success();
}

namespace {

/// With the same r: dy = (dx r - x r³ mean(x dx)) gain + x r dgain.
struct RmsNormTangent : LinearisableOpInterface::ExternalModel<RmsNormTangent, attn::RmsNormOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    auto norm = cast<attn::RmsNormOp>(op);
    ImplicitLocOpBuilder &b = tangents.b;
    Value x = tangents.primal(norm.getSource()), dx = tangents.getOrZero(norm.getSource());
    Value gain = norm.getGain() ? tangents.primal(norm.getGain()) : Value();
    Value dGain = gain ? tangents.get(norm.getGain()) : Value();
    auto [r, part] = rowsOfNorm(b, norm, x, dx, Value());
    auto body = [&](ImplicitLocOpBuilder &b, ValueRange s) -> Scalars {
      auto mul = [&](Value left, Value right) { return arith::MulFOp::create(b, left, right); };
      Value along = arith::SubFOp::create(b, mul(s[1], s[2]), mul(s[0], s[3]));
      Value tangent = timesGain(b, gain, along);
      if (dGain)
        tangent = arith::AddFOp::create(b, tangent, timesGain(b, dGain, mul(s[0], s[2])));
      return {tangent};
    };
    Type type = norm.getResult().getType();
    tangents.set(norm.getResult(), attn::MapOp::create(b, type, {x, dx, r, part}, body).getResult(0));
    return success();
  }
};

} // namespace

void weft::attachSequenceAdjoints(MLIRContext &context) {
  attn::SumOp::attachInterface<SumAdjoint, MultilinearTangent<attn::SumOp, 1>>(context);
  attn::ConvolveOp::attachInterface<ConvolveAdjoint, MultilinearTangent<attn::ConvolveOp, 2>>(context);
  attn::ConvolveTapsGradOp::attachInterface<MultilinearTangent<attn::ConvolveTapsGradOp, 2>>(context);
  attn::RmsNormOp::attachInterface<RmsNormAdjoint, RmsNormTangent>(context);
}
