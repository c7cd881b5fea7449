// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnRecurrenceOps.td.
#include "dialects/Attn/IR/AttnChecks.h"
#include "dialects/Attn/IR/Recurrence.h"

using namespace mlir;
using namespace weft::attn;

int64_t RecurrenceOperands::chunk() const {
  std::optional<int64_t> tokens = queryType().staticDim(2);
  return tokens && *tokens <= 16 ? 16 : 64;
}

std::string RecurrenceOperands::states() const {
  if (initialState)
    return tensorTypeOf(initialState).dim(0).str();
  return cuSeqlens ? "(" + tensorTypeOf(cuSeqlens).dim(0).str() + ") - 1" : queryType().dim(0).str();
}

WholeTensorType RecurrenceOperands::byQueryHead(Value operand) const {
  return tensorTypeOf(operand).withDim(1, queryType().dim(1));
}

SmallVector<Type> RecurrenceOperands::resultTypes(Type element) const {
  WholeTensorType out = byQueryHead(value);
  WholeTensorType state =
      out.withDim(0, states()).withDim(2, queryType().dim(3)).withElement(Float32Type::get(query.getContext()));
  SmallVector<Type> types{out.withElement(element), state};
  if (beta)
    types.append({out, out.withDim(3, std::to_string(chunk()))});
  return types;
}

/// `what` has the batch and tokens of the query, and heads that divide its heads.
static LogicalResult checkTokens(Operation *op, StringRef what, WholeTensorType query, WholeTensorType type) {
  if (!isa<FloatType>(type.getElementType()))
    return op->emitOpError() << "expected " << what << " of floats, but got " << type;
  if (differ(type.dim(0), query.dim(0)) || differ(type.dim(2), query.dim(2)))
    return op->emitOpError() << "expected " << what << " of the batch and the tokens of " << query << ", but got "
                             << type;
  if (differ(type.dim(1), query.dim(1)) && !headGroup(query.dim(1), type.dim(1)))
    return op->emitOpError() << "expected the heads of " << what << " to divide those of " << query << ", but got "
                             << type;
  return success();
}

/// C1 of attn.recur.
static LogicalResult checkProducts(Operation *op, const RecurrenceOperands &its) {
  for (auto [what, value] :
       {std::pair("a query", its.query), std::pair("a key", its.key), std::pair("a value", its.value)}) {
    if (!value)
      continue;
    WholeTensorType type = tensorTypeOf(value);
    if (failed(checkRank(op, what, type, 4)) || failed(checkFloats(op, what, type)))
      return failure();
    if (!type.staticDim(3))
      return op->emitOpError() << "expected " << what << " with a static last size, but got " << type;
    if (failed(checkTokens(op, what, its.queryType(), type)))
      return failure();
    if (type.getElementType() != its.queryType().getElementType())
      return op->emitOpError() << "expected " << what << " of the query's element type, but got " << type;
  }
  if (its.headSize() > 256)
    return op->emitOpError() << "expected heads of at most 256 channels, but got " << its.headSize();
  return checkSizes(
      op, "a key", tensorTypeOf(its.key),
      {its.queryType().dim(0), tensorTypeOf(its.key).dim(1), its.queryType().dim(2), its.queryType().dim(3)});
}

/// C2 and C3.
static LogicalResult checkFactors(Operation *op, const RecurrenceOperands &its) {
  if (its.decay) {
    WholeTensorType type = tensorTypeOf(its.decay);
    if (type.getRank() != 3 && type.getRank() != 4)
      return op->emitOpError() << "expected a decay [B, H, N] or [B, H, N, D], but got " << type;
    if (failed(checkTokens(op, "a decay", its.queryType(), type)))
      return failure();
    if (type.getRank() == 4 && differ(type.dim(3), its.queryType().dim(3)))
      return op->emitOpError() << "expected a decay for each of " << its.headSize() << " channels, but got " << type;
    if (type.getRank() == 4 && its.beta)
      return op->emitOpError() << "expected a decay [B, H, N] with beta, but got " << type;
  }
  for (Value numbers : {its.decay, its.beta})
    if (numbers && failed(checkFloats(op, "numbers of tokens", tensorTypeOf(numbers))))
      return failure();
  for (Value numbers : {its.decay, its.beta})
    if (numbers && tensorTypeOf(numbers).getRank() == 3 && differ(tensorTypeOf(numbers).dim(1), its.queryType().dim(1)))
      return op->emitOpError() << "expected numbers of tokens for each of the query's heads, but got "
                               << numbers.getType();
  if (!its.beta)
    return success();
  return success(succeeded(checkRank(op, "beta", tensorTypeOf(its.beta), 3)) &&
                 succeeded(checkTokens(op, "beta", its.queryType(), tensorTypeOf(its.beta))));
}

static LogicalResult checkState(Operation *op, StringRef what, const RecurrenceOperands &its, WholeTensorType type) {
  if (!type.getElementType().isF32())
    return op->emitOpError() << "expected " << what << " of f32, but got " << type;
  StringRef batch = its.cuSeqlens ? type.dim(0) : its.queryType().dim(0);
  return checkSizes(
      op, what, type,
      {batch, its.queryType().dim(1), its.queryType().dim(3), its.value ? its.valueType().dim(3) : type.dim(3)});
}

/// C1-C4.
static LogicalResult checkOperands(Operation *op, const RecurrenceOperands &its) {
  if (failed(checkProducts(op, its)) || failed(checkFactors(op, its)) || failed(checkCuSeqlens(op, its.cuSeqlens)))
    return failure();
  if (its.cuSeqlens && differ(its.queryType().dim(0), "1"))
    return op->emitOpError() << "expected packed sequences in a batch of 1, but got " << its.queryType();
  if (!its.initialState)
    return success();
  WholeTensorType state = tensorTypeOf(its.initialState);
  return success(succeeded(checkRank(op, "a state", state, 4)) && succeeded(checkState(op, "a state", its, state)));
}

/// The two tensors of C5 that come with beta.
static LogicalResult checkDelta(Operation *op, const RecurrenceOperands &its, ValueRange delta) {
  if (delta.size() != (its.beta ? 2 : 0))
    return op->emitOpError() << "expected " << (its.beta ? "two tensors" : "no tensors") << " of residuals, but got "
                             << delta.size();
  WholeTensorType out = its.byQueryHead(its.value);
  std::string chunk = std::to_string(its.chunk());
  SmallVector<StringRef> lasts{out.dim(3), chunk};
  for (auto [value, last] : llvm::zip(delta, lasts))
    if (failed(checkSizes(op, "residuals", tensorTypeOf(value), {out.dim(0), out.dim(1), out.dim(2), last})))
      return failure();
  return success();
}

LogicalResult RecurrenceOp::verify() { return checkOperands(*this, RecurrenceOperands::of(*this)); }

LogicalResult FinalStateOp::verify() {
  if (failed(checkRank(*this, "a value", tensorTypeOf(getValue()), 4)) ||
      failed(checkRank(*this, "a state", tensorTypeOf(getResult()), 4)))
    return failure();
  WholeTensorType value = tensorTypeOf(getValue()), state = tensorTypeOf(getResult());
  if (!value.staticDim(3))
    return emitOpError() << "expected a value with a static last size, but got " << value;
  if (!state.getElementType().isF32() || !state.staticDim(2) || state.dim(3) != value.dim(3))
    return emitOpError() << "expected a state of f32 with static channels, the last ones the values', but got "
                         << state;
  return success();
}

LogicalResult RecurOp::verify() {
  auto its = RecurrenceOperands::of(*this);
  if (failed(checkOperands(*this, its)))
    return failure();
  WholeTensorType out = its.byQueryHead(its.value);
  if (failed(checkSizes(*this, "a result", tensorTypeOf(getOut()), {out.dim(0), out.dim(1), out.dim(2), out.dim(3)})) ||
      failed(checkRank(*this, "a final state", tensorTypeOf(getFinalState()), 4)) ||
      failed(checkState(*this, "a final state", its, tensorTypeOf(getFinalState()))))
    return failure();
  return checkDelta(*this, its, getDelta());
}

LogicalResult RecurBackwardOp::verify() {
  auto its = RecurrenceOperands::of(*this);
  if (failed(checkOperands(*this, its)) || failed(checkDelta(*this, its, getDelta())))
    return failure();
  WholeTensorType out = its.byQueryHead(its.value), gradient = tensorTypeOf(getDOut());
  if (failed(checkSizes(*this, "a gradient", gradient, {out.dim(0), out.dim(1), out.dim(2), out.dim(3)})))
    return failure();
  if (gradient.getElementType() != its.valueType().getElementType())
    return emitOpError() << "expected a gradient of the values' element type, but got " << gradient;
  if (getDState() && (failed(checkRank(*this, "a state's gradient", tensorTypeOf(getDState()), 4)) ||
                      failed(checkState(*this, "a state's gradient", its, tensorTypeOf(getDState())))))
    return failure();
  SmallVector<Value> read{its.query, its.key, its.value};
  for (Value operand : {its.decay, its.beta, its.initialState})
    if (operand)
      read.push_back(operand);
  if (getNumResults() != read.size())
    return emitOpError() << "expected " << read.size() << " gradients, one for each operand, but got "
                         << getNumResults();
  for (auto [operand, result] : llvm::zip(read, getResults())) {
    SmallVector<StringRef> sizes =
        llvm::map_to_vector(its.byQueryHead(operand).getDims(), [](StringAttr size) { return size.getValue(); });
    if (failed(checkSizes(*this, "a gradient", tensorTypeOf(result), sizes)))
      return failure();
  }
  return success();
}
