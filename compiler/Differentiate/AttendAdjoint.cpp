// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The adjoint of attn.attend: with P = exp(s - lse) and delta = the row sum of dOut ⊙ out, less dLse,
//
//   dP = dOut vᵀ,  ds = P ⊙ (dP - delta),  dq = scale ds k,  dk = scale dsᵀ q,  dv = Pᵀ dOut,  dsink = -Σ p_sink delta,
//
// of which attn.attend_backward does all but delta and the sink. P is made in its kernels tile by tile and never
// stored.

#include "compiler/Differentiate/Adjoints.h"
#include "compiler/Differentiate/ScalarDerivative.h"
#include "dialects/Attn/IR/AttentionAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

namespace {

class AttendAdjointWriter {
public:
  AttendAdjointWriter(attn::AttendOp op, Gradients &gradients) : op(op), gradients(gradients), b(gradients.b) {}
  LogicalResult run();

private:
  Value makeDelta(Value dOut, Value dLse);
  /// The gradient of the outputs, in the element type in which it enters products; zeros where nothing asks for the
  /// outputs.
  Value makeOutGradient();
  attn::AttendBackwardOp makeBackward(Value delta, Value dOut);
  void addSinkGradient(Value delta);
  /// Writes the region of the score's gradient; captures that have gradients are `captured`.
  LogicalResult writeScoreGradient(attn::AttendBackwardOp backward);
  SmallVector<Value> primals(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return gradients.primal(value); });
  }

  attn::AttendOp op;
  Gradients &gradients;
  ImplicitLocOpBuilder &b;
  /// A tensor that score_mod reads, and at which of the pair's own indices; null for any others. What is read at a query
  /// and at a key is added up by other kernels, so that each has a gradient of its own.
  using Read = std::pair<Value, Attribute>;
  static Read readOf(attn::ElementOp element);
  llvm::SetVector<Read> captured; ///< those whose gradients are wanted
};

using Scalars = SmallVector<Value>;

} // namespace

AttendAdjointWriter::Read AttendAdjointWriter::readOf(attn::ElementOp element) {
  SmallVector<int64_t> numbers;
  for (Value index : element.getIndices())
    if (auto argument = dyn_cast<BlockArgument>(index); argument && argument.getOwner() == element->getBlock())
      numbers.push_back(argument.getArgNumber());
    else
      return {element.getTensor(), Attribute()};
  return {element.getTensor(), DenseI64ArrayAttr::get(element.getContext(), numbers)};
}

LogicalResult AttendAdjointWriter::run() {
  Value dLse = gradients.get(op.getLse());
  if (!dLse && !gradients.get(op.getOut()))
    return success();
  if (!op.getScoreMod().empty())
    op.getScoreMod().walk([&](attn::ElementOp element) {
      if (gradients.wants(element.getTensor()) && isFloatTensor(element.getTensor()))
        captured.insert(readOf(element));
    });
  Value dOut = makeOutGradient();
  Value delta = makeDelta(dOut, dLse);
  attn::AttendBackwardOp backward = makeBackward(delta, dOut);
  if (!op.getScoreMod().empty() && failed(writeScoreGradient(backward)))
    return failure();

  gradients.add(op.getQuery(), backward.getDQuery());
  ResultRange rest = backward.getGradients();
  for (auto [i, key, value] : llvm::enumerate(op.getKeys(), op.getValues())) {
    gradients.add(key, rest[2 * i]);
    gradients.add(value, rest[2 * i + 1]);
  }
  // What is only compared has no gradient, and no sum of pairs' shares.
  llvm::DenseSet<int64_t> added;
  backward.getScoreModGrad().walk([&](attn::AccumulateOp share) { added.insert(share.getTarget()); });
  for (auto [i, read] : llvm::enumerate(captured))
    if (added.contains(i))
      gradients.add(read.first, rest[2 * op.getKeys().size() + i]);
  if (op.getSink() && gradients.wants(op.getSink()))
    addSinkGradient(delta);
  return success();
}

Value AttendAdjointWriter::makeOutGradient() {
  Type element = tensorType(op.getValues().front()).getElementType();
  if (Value known = gradients.get(op.getOut(), element))
    return known;
  auto zero = [](ImplicitLocOpBuilder &b, ValueRange) -> Scalars {
    return {arith::ConstantOp::create(b, b.getF32FloatAttr(0))};
  };
  return attn::MapOp::create(b, tensorType(op.getOut()).withElement(element), ValueRange(), zero).getResult(0);
}

Value AttendAdjointWriter::makeDelta(Value dOut, Value dLse) {
  WholeTensorType row = tensorType(op.getLse());
  if (!gradients.get(op.getOut())) {
    auto negate = [](ImplicitLocOpBuilder &b, ValueRange x) -> Scalars { return {arith::NegFOp::create(b, x[0])}; };
    return attn::MapOp::create(b, row, dLse, negate).getResult(0);
  }
  auto multiply = [](ImplicitLocOpBuilder &b, ValueRange x) -> Scalars {
    return {arith::MulFOp::create(b, x[0], x[1])};
  };
  auto whole = tensorType(op.getOut()).withElement(b.getF32Type());
  Value products = attn::MapOp::create(b, whole, {dOut, gradients.primal(op.getOut())}, multiply).getResult(0);
  Value delta = attn::SumOp::create(b, row, products, b.getDenseI64ArrayAttr({3}));
  if (!dLse)
    return delta;
  auto subtract = [](ImplicitLocOpBuilder &b, ValueRange x) -> Scalars {
    return {arith::SubFOp::create(b, x[0], x[1])};
  };
  return attn::MapOp::create(b, row, {delta, dLse}, subtract).getResult(0);
}

attn::AttendBackwardOp AttendAdjointWriter::makeBackward(Value delta, Value dOut) {
  auto typeOf = [&](Value value) -> Type { return gradients.contributionType(value); };
  SmallVector<Type> types;
  for (auto [key, value] : llvm::zip(op.getKeys(), op.getValues()))
    types.append({typeOf(key), typeOf(value)});
  // f32: sums over many pairs, which kernels may have to add up in memory.
  for (const Read &read : captured)
    types.push_back(tensorType(read.first).withElement(b.getF32Type()));
  SmallVector<Value> keys = primals(op.getKeys()), values = primals(op.getValues());
  Value query = gradients.primal(op.getQuery()), lse = gradients.primal(op.getLse());
  SmallVector<Value> counts = primals(op.getCounts()), lengths = primals(op.getCuSeqlens());
  SmallVector<Value> patternOperands = primals(op.getPatternOperands());
  Region scoreMod;
  IRMapping mapping;
  op.getScoreMod().cloneInto(&scoreMod, mapping);
  gradients.usePrimals(scoreMod);
  SmallVector<std::unique_ptr<Region>> masks;
  for (Region &mask : op.getMasks()) {
    masks.push_back(std::make_unique<Region>());
    mask.cloneInto(masks.back().get(), mapping);
    gradients.usePrimals(*masks.back());
  }
  bool fast = gradients.fast || op->hasAttr(attn::fastAttrName);
  auto backward = attn::AttendBackwardOp::create(
      b, typeOf(op.getQuery()), types, query, keys, values, counts, lse, delta, dOut, lengths, patternOperands,
      op.getPatternsAttr(), op.getScaleAttr(), op.getPrecisionAttr(), fast ? b.getUnitAttr() : UnitAttr(),
      /*scheduleQuery=*/attn::ScheduleAttr(), /*scheduleKeys=*/attn::ScheduleAttr(),
      /*scheduleValues=*/attn::ScheduleAttr(), masks.size());
  if (Attribute number = op->getDiscardableAttr(attn::numberAttrName))
    backward->setDiscardableAttr(attn::numberAttrName, number);
  backward.getScoreMod().takeBody(scoreMod);
  for (auto [from, to] : llvm::zip(masks, backward.getMasks()))
    to.takeBody(*from);
  return backward;
}

LogicalResult AttendAdjointWriter::writeScoreGradient(attn::AttendBackwardOp backward) {
  OpBuilder::InsertionGuard guard(b);
  Region &region = backward.getScoreModGrad();
  IRMapping mapping;
  op.getScoreMod().cloneInto(&region, mapping);
  Block &block = region.front();
  Value g = block.addArgument(b.getF32Type(), op.getLoc());
  Operation *yield = block.getTerminator();
  SmallVector<Operation *> ops;
  for (Operation &each : block.without_terminator())
    ops.push_back(&each);

  Value score = block.getArgument(0);
  auto isLeaf = [&](Value value) {
    auto element = value.getDefiningOp<attn::ElementOp>();
    return value == score || (element && captured.contains(readOf(element)));
  };
  ImplicitLocOpBuilder scalars(op.getLoc(), yield);
  FailureOr<ScalarGradients> found = differentiateScalars(scalars, ops, {{yield->getOperand(0), g}}, isLeaf);
  if (failed(found))
    return failure();
  for (Operation *each : ops) {
    auto element = dyn_cast<attn::ElementOp>(each);
    Value gradient = element ? found->lookup(element) : Value();
    if (!gradient)
      continue;
    auto target = llvm::find(captured, readOf(element)) - captured.begin();
    attn::AccumulateOp::create(scalars, gradient, target, element.getIndices());
  }
  Value ofScore = found->lookup(score);
  if (!ofScore)
    ofScore = arith::ConstantOp::create(scalars, scalars.getF32FloatAttr(0));
  yield->setOperands(ofScore);
  eraseUnused(block);
  b.setInsertionPoint(backward);
  gradients.usePrimals(region);
  return success();
}

void AttendAdjointWriter::addSinkGradient(Value delta) {
  Value sink = gradients.primal(op.getSink()), lse = gradients.primal(op.getLse());
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> Scalars {
    Value head = attn::IndexOp::create(b, b.getI32Type(), 1);
    Value logit = attn::ElementOp::create(b, b.getF32Type(), sink, head);
    Value probability = math::ExpOp::create(b, arith::SubFOp::create(b, logit, x[0]));
    // A row without pairs whose sink is -inf has lse -inf and no probabilities.
    Value nothing = arith::ConstantOp::create(b, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
    Value isNothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x[0], nothing);
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    Value product = arith::NegFOp::create(b, arith::MulFOp::create(b, probability, x[1]));
    return {arith::SelectOp::create(b, isNothing, zero, product)};
  };
  Value rows = attn::MapOp::create(b, tensorType(op.getLse()), {lse, delta}, body).getResult(0);
  Type type = gradients.contributionType(op.getSink());
  gradients.add(op.getSink(), attn::SumOp::create(b, type, rows, b.getDenseI64ArrayAttr({0, 2})));
}

namespace {
struct AttendAdjoint : DifferentiableOpInterface::ExternalModel<AttendAdjoint, attn::AttendOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    return AttendAdjointWriter(cast<attn::AttendOp>(op), gradients).run();
  }
};
} // namespace

void weft::attachAttendAdjoint(MLIRContext &context) { attn::AttendOp::attachInterface<AttendAdjoint>(context); }
