// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-apply-mixers: linear maps over the sequence, applied, become ops on tensors.
//
//   %s = attn.softmax %q keys(%k) ...        %o, %lse = attn.attend %q keys(%k) values(%v) ... -> f32
//   %m = attn.mean                           %t = attn.sum %v -> [B, H, 1, D], f32
//   %a = attn.add %s, %m              =>     %u = attn.map ins(%t) { t / M }
//   %y = attn.apply %a, %v                   %y = attn.map ins(%o, %u) { o + u } -> f16
//
// What a sum adds and what a gate multiplies stays f32, so that an application rounds once, at its end. What enters a
// product (the values of a softmax) or is stored to be read several times (those of a convolution or a mean) has the
// element type of the values.

#include "dialects/Attn/IR/AttentionAttributes.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/Recurrence.h"
#include "dialects/Attn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Iterators.h"

namespace weft::attn {
#define GEN_PASS_DEF_ATTNAPPLYMIXERS
#include "dialects/Attn/Transforms/Passes.h.inc"
} // namespace weft::attn

using namespace mlir;
using namespace weft::attn;

namespace {

WholeTensorType typeOf(Value value) { return cast<WholeTensorType>(value.getType()); }

/// The shape of a mixer's result on values: batch and channels are the values', heads and rows the mixer's.
WholeTensorType resultShape(Value mixer, WholeTensorType values) {
  Operation *op = mixer.getDefiningOp();
  auto withRows = [&](WholeTensorType rows) { return values.withDim(1, rows.dim(1)).withDim(2, rows.dim(2)); };
  if (auto softmax = dyn_cast<SoftmaxOp>(op))
    return withRows(typeOf(softmax.getQuery()));
  if (auto recurrence = dyn_cast<RecurrenceOp>(op))
    return withRows(typeOf(recurrence.getQuery()));
  if (auto diag = dyn_cast<DiagOp>(op)) {
    WholeTensorType gate = typeOf(diag.getGate());
    bool isNumber = llvm::all_of(gate.getDims(), [](StringAttr dim) { return dim.getValue() == "1"; });
    return isNumber ? values : withRows(gate);
  }
  if (auto compose = dyn_cast<ComposeOp>(op))
    return resultShape(compose.getLhs(), resultShape(compose.getRhs(), values));
  if (auto add = dyn_cast<AddOp>(op)) {
    WholeTensorType lhs = resultShape(add.getLhs(), values), rhs = resultShape(add.getRhs(), values);
    return broadcastsTo(lhs, rhs) ? rhs : lhs;
  }
  return values; // A mean or a convolution.
}

/// A recurrence applied to values, with elements of `element`.
RecurOp recur(ImplicitLocOpBuilder &b, RecurrenceOp mixer, Value value, Type element) {
  auto its = RecurrenceOperands::of(mixer);
  its.value = value;
  return RecurOp::create(b, its.resultTypes(element), its.query, its.key, its.value, its.decay, its.beta,
                         its.initialState, its.cuSeqlens, mixer.getScaleAttr());
}

/// The state that a recurrence leaves, of the op that applies it to the same values, or of one of its own.
LogicalResult applyFinalState(FinalStateOp op) {
  auto mixer = op.getMixer().getDefiningOp<RecurrenceOp>();
  if (!mixer)
    return op.emitOpError() << "expected a mixer made by 'attn.recurrence'";
  auto its = RecurrenceOperands::of(mixer);
  for (Operation *user : op.getValue().getUsers())
    if (auto applied = dyn_cast<RecurOp>(user); applied && applied->isBeforeInBlock(op) &&
                                                applied.getValue() == op.getValue() &&
                                                applied.getScaleAttr() == mixer.getScaleAttr()) {
      auto theirs = RecurrenceOperands::of(applied);
      if (theirs.query == its.query && theirs.key == its.key && theirs.decay == its.decay && theirs.beta == its.beta &&
          theirs.initialState == its.initialState && theirs.cuSeqlens == its.cuSeqlens) {
        op.replaceAllUsesWith(applied.getFinalState());
        op.erase();
        return success();
      }
    }
  ImplicitLocOpBuilder b(op.getLoc(), op);
  op.replaceAllUsesWith(recur(b, mixer, op.getValue(), typeOf(op.getValue()).getElementType()).getFinalState());
  op.erase();
  return success();
}

/// Rewrites one `attn.apply`.
class Application {
public:
  Application(ImplicitLocOpBuilder &b, ApplyOp op) : b(b), op(op) {}

  /// What the application gives, in the type of its result; nothing after an error that has been reported.
  FailureOr<Value> run() {
    return apply(op.getMixer(), llvm::to_vector(op.getValues()), cast<WholeTensorType>(op.getType()));
  }

private:
  /// The mixer applied, a tensor of `type`.
  FailureOr<Value> apply(Value mixer, ArrayRef<Value> values, WholeTensorType type);
  /// The terms whose sum is the mixer applied: each of `type`'s element type or f32, and each broadcasts to it.
  LogicalResult addTerms(Value mixer, ArrayRef<Value> values, WholeTensorType type, SmallVectorImpl<Value> &terms);
  /// One primitive mixer applied to values that are tensors of their own; may be smaller than `type`, to which it
  /// broadcasts.
  FailureOr<Value> applyPrimitive(Operation *mixer, ArrayRef<Value> values, WholeTensorType type);

  Value attend(SoftmaxOp softmax, ArrayRef<Value> values, Type element);
  Value mean(MeanOp mean, Value values, Type element);
  Value gate(DiagOp diag, Value values, WholeTensorType type);
  /// One map that adds terms in f32 and rounds once.
  Value sum(ArrayRef<Value> terms, WholeTensorType type);

  ImplicitLocOpBuilder &b;
  ApplyOp op;
};

FailureOr<Value> Application::apply(Value mixer, ArrayRef<Value> values, WholeTensorType type) {
  SmallVector<Value> terms;
  bool several = isa_and_nonnull<AddOp>(mixer.getDefiningOp());
  if (failed(addTerms(mixer, values, several ? type.withElement(b.getF32Type()) : type, terms)))
    return failure();
  if (terms.size() == 1 && terms.front().getType() == type)
    return terms.front();
  return sum(terms, type);
}

LogicalResult Application::addTerms(Value mixer, ArrayRef<Value> values, WholeTensorType type,
                                    SmallVectorImpl<Value> &terms) {
  Operation *made = mixer.getDefiningOp();
  if (auto add = dyn_cast_or_null<AddOp>(made))
    return success(succeeded(addTerms(add.getLhs(), values, type, terms)) &&
                   succeeded(addTerms(add.getRhs(), values, type, terms)));
  if (auto compose = dyn_cast_or_null<ComposeOp>(made)) {
    // Only a gate takes its values as they are computed; other mixers read them more than once.
    Type element = isa_and_nonnull<DiagOp>(compose.getLhs().getDefiningOp()) ? b.getF32Type()
                                                                             : typeOf(values.front()).getElementType();
    WholeTensorType inner = resultShape(compose.getRhs(), typeOf(values.front())).withElement(element);
    FailureOr<Value> mixed = apply(compose.getRhs(), values, inner);
    return failed(mixed) ? failure() : addTerms(compose.getLhs(), *mixed, type, terms);
  }
  FailureOr<Value> term = applyPrimitive(made, values, type);
  if (failed(term))
    return failure();
  terms.push_back(*term);
  return success();
}

FailureOr<Value> Application::applyPrimitive(Operation *mixer, ArrayRef<Value> values, WholeTensorType type) {
  if (auto softmax = dyn_cast_or_null<SoftmaxOp>(mixer)) {
    if (values.size() == softmax.getKeys().size())
      return attend(softmax, values, type.getElementType());
    op.emitOpError() << "expected one tensor of values for each of the softmax's " << softmax.getKeys().size()
                     << " domains, but got " << values.size();
    return failure();
  }
  if (!isa_and_nonnull<MeanOp, ToeplitzOp, DiagOp, RecurrenceOp>(mixer)) {
    op.emitOpError() << "expected a mixer made by an op of the attn dialect";
    return failure();
  }
  if (values.size() != 1) {
    op.emitOpError() << "expected one tensor of values for '" << mixer->getName() << "', but got " << values.size();
    return failure();
  }
  if (auto recurrence = dyn_cast<RecurrenceOp>(mixer))
    return Value(recur(b, recurrence, values.front(), type.getElementType()).getOut());
  if (auto diag = dyn_cast<DiagOp>(mixer))
    return gate(diag, values.front(), type);
  if (auto mean = dyn_cast<MeanOp>(mixer))
    return this->mean(mean, values.front(), type.getElementType());
  auto toeplitz = cast<ToeplitzOp>(mixer);
  Type its = typeOf(values.front()).withElement(type.getElementType());
  return Value(ConvolveOp::create(b, its, values.front(), toeplitz.getTaps(), toeplitz.getCuSeqlens(),
                                  toeplitz.getCentredAttr(), toeplitz.getDilationAttr(), toeplitz.getGridAttr(),
                                  /*transposed=*/nullptr));
}

/// The result has the softmax's own heads: where a sum has more, each serves a group of them.
Value Application::attend(SoftmaxOp softmax, ArrayRef<Value> values, Type element) {
  WholeTensorType type = resultShape(softmax.getResult(), typeOf(values.front())).withElement(element);
  auto lse = WholeTensorType::get(typeOf(softmax.getQuery()).getDims().drop_back(), b.getF32Type());
  // What another mixer gave may have more heads than the keys, each of which then serves a group of them.
  SmallVector<Value> keys;
  for (auto [key, value] : llvm::zip_equal(softmax.getKeys(), values)) {
    WholeTensorType repeated = typeOf(key).withDim(1, typeOf(value).dim(1));
    keys.push_back(repeated == key.getType() ? key : sum(key, repeated));
  }
  auto attend = AttendOp::create(b, type, lse, softmax.getQuery(), keys, values, softmax.getCounts(), softmax.getSink(),
                                 softmax.getCuSeqlens(), softmax.getPatternOperands(), softmax.getPatternsAttr(),
                                 softmax.getScaleAttr(), softmax.getPrecisionAttr(), softmax.getSplitsAttr(),
                                 softmax.getScheduleAttr(), softmax.getMasks().size());
  for (StringRef name : {fastAttrName, float8AttrName})
    if (softmax->hasAttr(name))
      attend->setDiscardableAttr(name, b.getUnitAttr());
  // Copied, not moved, since a mixer may be applied more than once.
  IRMapping mapping;
  softmax.getScoreMod().cloneInto(&attend.getScoreMod(), mapping);
  for (auto [from, to] : llvm::zip(softmax.getMasks(), attend.getMasks()))
    from.cloneInto(&to, mapping);
  return attend.getOut();
}

Value Application::mean(MeanOp mean, Value values, Type element) {
  WholeTensorType type = typeOf(values);
  if (mean.getCausal())
    return PrefixMeanOp::create(b, type.withElement(element), values, /*transposed=*/nullptr);
  if (mean.getCuSeqlens())
    return SequenceMeanOp::create(b, type.withElement(b.getF32Type()), values, mean.getCuSeqlens());
  WholeTensorType row = type.withDim(2, "1").withElement(b.getF32Type());
  Value sum = SumOp::create(b, row, values);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange scalars) -> SmallVector<Value> {
    Value size = SizeOp::create(b, b.getI32Type(), type.dim(2));
    return {arith::DivFOp::create(b, scalars[0], arith::SIToFPOp::create(b, b.getF32Type(), size))};
  };
  return MapOp::create(b, row, sum, body).getResult(0);
}

/// A gate [B, H, N] as [B, H, N, 1]: each element is looked for.
static Value withChannelAxis(ImplicitLocOpBuilder &b, Value gate) {
  WholeTensorType type = typeOf(gate);
  SmallVector<StringAttr> dims(type.getDims());
  dims.push_back(b.getStringAttr("1"));
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    SmallVector<Value> indices;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      indices.push_back(IndexOp::create(b, b.getI32Type(), axis));
    return {ElementOp::create(b, scalarTypeOf(type), gate, indices)};
  };
  return MapOp::create(b, WholeTensorType::get(dims, type.getElementType()), ValueRange(), body).getResult(0);
}

Value Application::gate(DiagOp diag, Value values, WholeTensorType type) {
  Value gate = diag.getGate();
  if (typeOf(gate).getRank() == 3)
    gate = withChannelAxis(b, gate);
  auto body = [](ImplicitLocOpBuilder &b, ValueRange scalars) -> SmallVector<Value> {
    return {arith::MulFOp::create(b, scalars[0], scalars[1])};
  };
  return MapOp::create(b, type, {gate, values}, body).getResult(0);
}

Value Application::sum(ArrayRef<Value> terms, WholeTensorType type) {
  auto body = [](ImplicitLocOpBuilder &b, ValueRange scalars) -> SmallVector<Value> {
    Value sum = scalars.front();
    for (Value scalar : scalars.drop_front())
      sum = arith::AddFOp::create(b, sum, scalar);
    return {sum};
  };
  return MapOp::create(b, type, terms, body).getResult(0);
}

struct ApplyMixersPass : weft::attn::impl::AttnApplyMixersBase<ApplyMixersPass> {
  void runOnOperation() override;
};

} // namespace

void ApplyMixersPass::runOnOperation() {
  WalkResult result = getOperation().walk([](ApplyOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    FailureOr<Value> applied = Application(b, op).run();
    if (failed(applied))
      return WalkResult::interrupt();
    op.replaceAllUsesWith(*applied);
    op.erase();
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return signalPassFailure();
  result = getOperation().walk(
      [](FinalStateOp op) { return failed(applyFinalState(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
  if (result.wasInterrupted())
    return signalPassFailure();
  // Mixers are only read by mixers now: users are erased before what they use.
  getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (op->getNumResults() == 1 && isa<MixerType>(op->getResult(0).getType()) && op->use_empty())
      op->erase();
  });
}
