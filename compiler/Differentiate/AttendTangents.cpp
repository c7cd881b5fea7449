// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tangent rules of attn.attend, which attn.attend_tangent takes the place of, and of attn.attend_backward, beside
// which attn.attend_backward_tangent stands.
#include "compiler/Differentiate/Adjoints.h"
#include "compiler/Differentiate/ScalarDerivative.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft;

/// What of the tangents of several values of one kind an attention takes: none where all are zero, else one of each.
static SmallVector<Value> someTangents(Tangents &tangents, ValueRange values) {
  if (llvm::none_of(values, [&](Value value) { return bool(tangents.get(value)); }))
    return {};
  return llvm::map_to_vector(values, [&](Value value) { return tangents.getOrZero(value); });
}

/// Writes `to`, the region of how what `from` yields changes: it takes what `from` does, and the tangents of those of its
/// arguments that `changing` numbers.
static LogicalResult writeRegionTangent(Region &from, Region &to, ArrayRef<unsigned> changing, Tangents &tangents) {
  IRMapping mapping;
  from.cloneInto(&to, mapping);
  Block &block = to.front();
  Operation *yield = block.getTerminator();
  llvm::DenseMap<Value, Value> ofArguments;
  for (unsigned number : changing) {
    BlockArgument argument = block.getArgument(number);
    ofArguments[argument] = block.addArgument(argument.getType(), argument.getLoc());
  }
  SmallVector<Operation *> ops;
  for (Operation &each : block.without_terminator())
    ops.push_back(&each);
  ImplicitLocOpBuilder b(yield->getLoc(), yield);
  auto tangentOf = [&](Value value) -> Value {
    auto element = value.getDefiningOp<attn::ElementOp>();
    if (!element)
      return ofArguments.lookup(value);
    Value tangent = tangents.get(element.getTensor());
    return tangent ? attn::ElementOp::create(b, value.getType(), tangent, element.getIndices()) : Value();
  };
  FailureOr<ScalarGradients> found = lineariseScalars(b, ops, tangentOf);
  if (failed(found))
    return failure();
  Value yielded = yield->getOperand(0);
  Value tangent = isa<BlockArgument>(yielded) ? ofArguments.lookup(yielded) : found->lookup(yielded);
  if (!tangent)
    tangent = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  yield->setOperands(tangent);
  eraseUnused(block);
  tangents.usePrimals(to);
  return success();
}

/// The regions of an attention in the linearised function.
struct Regions {
  Region scoreMod;
  SmallVector<std::unique_ptr<Region>> masks;

  template <typename Op> Regions(Op op, Tangents &tangents) {
    IRMapping mapping;
    op.getScoreMod().cloneInto(&scoreMod, mapping);
    tangents.usePrimals(scoreMod);
    for (Region &mask : op.getMasks()) {
      masks.push_back(std::make_unique<Region>());
      mask.cloneInto(masks.back().get(), mapping);
      tangents.usePrimals(*masks.back());
    }
  }
  template <typename Op> void moveTo(Op made) {
    made.getScoreMod().takeBody(scoreMod);
    for (auto [from, to] : llvm::zip(masks, made.getMasks()))
      to.takeBody(*from);
  }
};

/// attn.attend_tangent, in the place of the attention itself.
static LogicalResult addAttendTangent(attn::AttendOp op, Tangents &tangents) {
  SmallVector<Value> keys = tangents.primals(op.getKeys()), values = tangents.primals(op.getValues());
  Value query = tangents.primal(op.getQuery()), sink = op.getSink() ? tangents.primal(op.getSink()) : Value();
  SmallVector<Value> counts = tangents.primals(op.getCounts()), lengths = tangents.primals(op.getCuSeqlens());
  SmallVector<Value> patternOperands = tangents.primals(op.getPatternOperands());
  Regions regions(op, tangents);
  SmallVector<Value> ofKeys = someTangents(tangents, op.getKeys()), ofValues = someTangents(tangents, op.getValues());
  Type out = op.getOut().getType(), lse = op.getLse().getType();
  auto made = attn::AttendTangentOp::create(tangents.b, out, lse, out, lse, query, keys, values, counts, sink, lengths,
                                            patternOperands, tangents.get(op.getQuery()), ofKeys, ofValues,
                                            op.getSink() ? tangents.get(op.getSink()) : Value(), op.getPatternsAttr(),
                                            op.getScaleAttr(), op.getPrecisionAttr(), regions.masks.size());
  regions.moveTo(made);
  if (!op.getScoreMod().empty() &&
      failed(writeRegionTangent(op.getScoreMod(), made.getScoreModTangent(), {0}, tangents)))
    return failure();
  tangents.setPrimal(op.getOut(), made.getOut());
  tangents.setPrimal(op.getLse(), made.getLse());
  tangents.set(op.getOut(), made.getOutTangent());
  tangents.set(op.getLse(), made.getLseTangent());
  return success();
}

/// Values of more channels are taken piece by piece, for which this tangent has no kernel.
static constexpr int64_t widestValues = 256;

static LogicalResult addBackwardTangent(attn::AttendBackwardOp op, Tangents &tangents) {
  unsigned domains = op.getKeys().size();
  if (tensorType(op.getValues().front()).staticDim(3).value_or(0) > widestValues)
    return op.emitOpError() << "has no tangent of values of more than " << widestValues << " channels";
  if (op.getGradients().size() > 2 * domains)
    return op.emitOpError() << "has no tangent of the gradients of tensors that score_mod reads";
  auto all = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) { return tangents.getOrZero(value); });
  };
  SmallVector<Value> keys = tangents.primals(op.getKeys()), values = tangents.primals(op.getValues());
  SmallVector<Value> counts = tangents.primals(op.getCounts()), lengths = tangents.primals(op.getCuSeqlens());
  SmallVector<Value> patternOperands = tangents.primals(op.getPatternOperands());
  SmallVector<Value> ofKeys = all(op.getKeys()), ofValues = all(op.getValues());
  Value query = tangents.primal(op.getQuery()), lse = tangents.primal(op.getLse()),
        delta = tangents.primal(op.getDelta()), dOut = tangents.primal(op.getDOut());
  Value ofQuery = tangents.getOrZero(op.getQuery()), ofLse = tangents.getOrZero(op.getLse()),
        ofDelta = tangents.getOrZero(op.getDelta()), ofDOut = tangents.getOrZero(op.getDOut());
  Regions regions(op, tangents);
  auto made = attn::AttendBackwardTangentOp::create(
      tangents.b, op.getDQuery().getType(), op.getGradients().getTypes(), query, keys, values, counts, lse, delta, dOut,
      lengths, patternOperands, ofQuery, ofKeys, ofValues, ofLse, ofDelta, ofDOut, op.getPatternsAttr(),
      op.getScaleAttr(), op.getPrecisionAttr(), regions.masks.size());
  regions.moveTo(made);
  if (!op.getScoreMod().empty()) {
    IRMapping mapping;
    op.getScoreModGrad().cloneInto(&made.getScoreModGrad(), mapping);
    tangents.usePrimals(made.getScoreModGrad());
    if (failed(writeRegionTangent(op.getScoreMod(), made.getScoreModTangent(), {0}, tangents)) ||
        failed(writeRegionTangent(op.getScoreModGrad(), made.getScoreModGradTangent(), {0, 5}, tangents)))
      return failure();
  }
  tangents.set(op.getDQuery(), made.getDQueryTangent());
  for (auto [gradient, tangent] : llvm::zip(op.getGradients(), made.getGradientTangents()))
    tangents.set(gradient, tangent);
  return success();
}

namespace {
struct AttendTangent : LinearisableOpInterface::ExternalModel<AttendTangent, attn::AttendOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    return addAttendTangent(cast<attn::AttendOp>(op), tangents);
  }
};
struct AttendBackwardTangent : LinearisableOpInterface::ExternalModel<AttendBackwardTangent, attn::AttendBackwardOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    return addBackwardTangent(cast<attn::AttendBackwardOp>(op), tangents);
  }
};
} // namespace

void weft::attachAttendTangents(MLIRContext &context) {
  attn::AttendOp::attachInterface<AttendTangent>(context);
  attn::AttendBackwardOp::attachInterface<AttendBackwardTangent>(context);
}
