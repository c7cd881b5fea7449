// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ScalarDerivative.h.
#include "compiler/Differentiate/ScalarDerivative.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace weft;

namespace {

/// Short names for arithmetic on scalars of one float type; constants take their type from `like`.
struct Partials {
  ImplicitLocOpBuilder &b;

  Value constant(Value like, double value) const {
    return arith::ConstantOp::create(b, FloatAttr::get(like.getType(), value));
  }
  Value add(Value x, Value y) const { return b.createOrFold<arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) const { return b.createOrFold<arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) const { return b.createOrFold<arith::MulFOp>(x, y); }
  Value mul(Value x, double y) const { return mul(x, constant(x, y)); }
  Value div(Value x, Value y) const { return b.createOrFold<arith::DivFOp>(x, y); }
  Value neg(Value x) const { return b.createOrFold<arith::NegFOp>(x); }
  Value select(Value condition, Value x, Value y) const { return arith::SelectOp::create(b, condition, x, y); }
  Value compare(arith::CmpFPredicate predicate, Value x, Value y) const {
    return arith::CmpFOp::create(b, predicate, x, y);
  }
  Value zeroLike(Value x) const { return constant(x, 0.0); }
};

/// What an operand of an op gets of the gradient `g` of its only result. Null: nothing. Operands of other types than
/// floats get nothing. Nothing at all (nullopt): the op has no derivative that we know.
std::optional<Value> partial(const Partials &s, Operation *op, unsigned operand, Value g) {
  Value x = op->getOperand(0), r = op->getResult(0);
  auto other = [&] { return op->getOperand(1 - operand); };
  using P = arith::CmpFPredicate;
  return TypeSwitch<Operation *, std::optional<Value>>(op)
      .Case<arith::AddFOp>([&](auto) { return g; })
      .Case<arith::SubFOp>([&](auto) { return operand == 0 ? g : s.neg(g); })
      .Case<arith::MulFOp>([&](auto) { return s.mul(g, other()); })
      .Case<arith::DivFOp>([&](auto) {
        Value quotient = s.div(g, op->getOperand(1));
        return operand == 0 ? quotient : s.neg(s.mul(quotient, r));
      })
      .Case<arith::NegFOp>([&](auto) { return s.neg(g); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        Value first = s.compare(P::OGT, x, op->getOperand(1)), zero = s.zeroLike(g);
        return operand == 0 ? s.select(first, g, zero) : s.select(first, zero, g);
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        Value first = s.compare(P::OLT, x, op->getOperand(1)), zero = s.zeroLike(g);
        return operand == 0 ? s.select(first, g, zero) : s.select(first, zero, g);
      })
      .Case<arith::SelectOp>([&](auto) {
        Value zero = s.zeroLike(g);
        return operand == 1 ? s.select(x, g, zero) : s.select(x, zero, g);
      })
      .Case<arith::ExtFOp>([&](auto) { return arith::TruncFOp::create(s.b, x.getType(), g).getResult(); })
      .Case<arith::TruncFOp>([&](auto) { return arith::ExtFOp::create(s.b, x.getType(), g).getResult(); })
      .Case<math::ExpOp>([&](auto) { return s.mul(g, r); })
      .Case<math::Exp2Op>([&](auto) { return s.mul(s.mul(g, r), M_LN2); })
      .Case<math::ExpM1Op>([&](auto) { return s.add(s.mul(g, r), g); })
      .Case<math::LogOp>([&](auto) { return s.div(g, x); })
      .Case<math::Log2Op>([&](auto) { return s.div(s.mul(g, M_LOG2E), x); })
      .Case<math::Log10Op>([&](auto) { return s.div(s.mul(g, M_LOG10E), x); })
      .Case<math::Log1pOp>([&](auto) { return s.div(g, s.add(x, s.constant(x, 1.0))); })
      .Case<math::TanhOp>([&](auto) { return s.mul(g, s.sub(s.constant(r, 1.0), s.mul(r, r))); })
      .Case<math::SqrtOp>([&](auto) { return s.div(s.mul(g, 0.5), r); })
      .Case<math::RsqrtOp>([&](auto) { return s.mul(s.mul(g, -0.5), s.mul(r, s.mul(r, r))); })
      .Case<math::AbsFOp>([&](auto) {
        Value zero = s.zeroLike(x);
        Value notBelow = s.select(s.compare(P::OGT, x, zero), g, zero);
        return s.select(s.compare(P::OLT, x, zero), s.neg(g), notBelow);
      })
      .Case<math::SinOp>([&](auto) { return s.mul(g, math::CosOp::create(s.b, x)); })
      .Case<math::CosOp>([&](auto) { return s.neg(s.mul(g, math::SinOp::create(s.b, x))); })
      .Case<math::ErfOp>([&](auto) {
        Value bell = math::ExpOp::create(s.b, s.neg(s.mul(x, x)));
        return s.mul(s.mul(g, M_2_SQRTPI), bell);
      })
      .Case<math::PowFOp>([&](auto) {
        Value y = op->getOperand(1);
        if (operand == 0)
          return s.mul(g, s.mul(y, math::PowFOp::create(s.b, x, s.sub(y, s.constant(y, 1.0)))));
        // The limit at a base of 0: a power does not depend on its exponent there.
        Value isZero = s.compare(P::OEQ, x, s.zeroLike(x));
        return s.select(isZero, s.zeroLike(g), s.mul(g, s.mul(r, math::LogOp::create(s.b, x))));
      })
      .Case<math::FmaOp>([&](auto) { return operand == 2 ? g : s.mul(g, other()); })
      .Case<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>([&](auto) { return Value(); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace

/// Of r = 1 / (1 + exp(u)), the logistic function of -u: exp(u). Null of other ops.
static math::ExpOp logisticPower(Operation *op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  if (!division || !matchPattern(division.getLhs(), m_OneFloat()))
    return {};
  auto sum = division.getRhs().getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  Value other = matchPattern(sum.getLhs(), m_OneFloat())   ? sum.getRhs()
                : matchPattern(sum.getRhs(), m_OneFloat()) ? sum.getLhs()
                                                           : Value();
  return other ? other.getDefiningOp<math::ExpOp>() : math::ExpOp();
}

/// The derivative of r = 1 / (1 + exp(u)) by u, times `g`: -g r (1 - r). Op by op it would be NaN where exp(u) is
/// infinite, 0 times infinity, though r is 0 there. Below 0, where r is near 1, 1 - r is exp(u) r without cancelling.
static Value logisticPartial(const Partials &s, math::ExpOp power, Value r, Value g) {
  Value u = power.getOperand();
  Value below = s.compare(arith::CmpFPredicate::OLT, u, s.zeroLike(u));
  Value rest = s.select(below, s.mul(power, r), s.sub(s.constant(r, 1.0), r));
  return s.neg(s.mul(s.mul(g, r), rest));
}

static FailureOr<Value> partialOrError(const Partials &s, Operation *op, unsigned operand, Value g) {
  std::optional<Value> part = partial(s, op, operand, g);
  if (part)
    return *part;
  op->emitError() << "expected an op with a derivative in a scalar region, but got '" << op->getName() << "'";
  return failure();
}

FailureOr<ScalarGradients> weft::differentiateScalars(ImplicitLocOpBuilder &b, ArrayRef<Operation *> ops,
                                                      ArrayRef<ScalarGradient> seeds,
                                                      function_ref<bool(Value)> isLeaf) {
  Partials s{b};
  // Only what depends on a leaf is followed, so that ops without a derivative may compute the rest.
  llvm::DenseSet<Value> dependent;
  auto depends = [&](Value value) {
    return isa<FloatType>(value.getType()) && (dependent.contains(value) || isLeaf(value));
  };
  for (Operation *op : ops)
    if (llvm::any_of(op->getOperands(), depends))
      dependent.insert(op->result_begin(), op->result_end());

  ScalarGradients gradients;
  auto add = [&](Value of, Value gradient) {
    Value &sum = gradients[of];
    sum = sum ? s.add(sum, gradient) : gradient;
  };
  for (const ScalarGradient &seed : seeds)
    if (depends(seed.of))
      add(seed.of, seed.gradient);
  for (Operation *op : llvm::reverse(ops)) {
    if (op->getNumResults() != 1 || isLeaf(op->getResult(0)))
      continue;
    Value gradient = gradients.lookup(op->getResult(0));
    if (!gradient)
      continue;
    if (math::ExpOp power = logisticPower(op)) {
      if (depends(power.getOperand()))
        add(power.getOperand(), logisticPartial(s, power, op->getResult(0), gradient));
      continue;
    }
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (!depends(operand))
        continue;
      FailureOr<Value> part = partialOrError(s, op, i, gradient);
      if (failed(part))
        return failure();
      if (*part)
        add(operand, *part);
    }
  }
  return gradients;
}

FailureOr<ScalarGradients> weft::lineariseScalars(ImplicitLocOpBuilder &b, ArrayRef<Operation *> ops,
                                                  function_ref<Value(Value)> tangentOf) {
  Partials s{b};
  ScalarGradients tangents;
  auto known = [&](Value value) {
    if (!isa<FloatType>(value.getType()))
      return Value();
    auto found = tangents.find(value);
    return found != tangents.end() ? found->second : tangentOf(value);
  };
  for (Operation *op : ops) {
    if (op->getNumResults() != 1 || !isa<FloatType>(op->getResult(0).getType()))
      continue;
    Value result = op->getResult(0);
    if (Value given = tangentOf(result)) {
      tangents[result] = given;
      continue;
    }
    if (math::ExpOp power = logisticPower(op)) {
      if (Value tangent = known(power.getOperand()))
        tangents[result] = logisticPartial(s, power, result, tangent);
      continue;
    }
    Value sum;
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      Value tangent = known(operand);
      if (!tangent)
        continue;
      // What is the transpose of a cast to wider floats casts to narrower ones.
      FailureOr<Value> part =
          isa<arith::ExtFOp, arith::TruncFOp>(op)
              ? b.create(op->getLoc(), op->getName().getIdentifier(), tangent, result.getType())->getResult(0)
              : partialOrError(s, op, i, tangent);
      if (failed(part))
        return failure();
      if (*part)
        sum = sum ? s.add(sum, *part) : *part;
    }
    if (sum)
      tangents[result] = sum;
  }
  return tangents;
}

void weft::eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!op.hasTrait<OpTrait::IsTerminator>() && isOpTriviallyDead(&op))
      op.erase();
}
