// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of the ops in AttnAttendOps.td, and of attn.softmax, which has the same operands but values.
#include "dialects/Attn/IR/AttnChecks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace weft::attn;

/// The queries and the keys, C1; patterns, C2; counts, C5.
template <typename Op> static LogicalResult verifyDomains(Op op) {
  WholeTensorType query = tensorTypeOf(op.getQuery());
  if (failed(checkRank(op, "queries", query, 4)) || failed(checkFloats(op, "queries", query)))
    return failure();
  if (op.getKeys().empty())
    return op.emitOpError() << "expected at least one domain of keys";
  for (Value key : op.getKeys()) {
    WholeTensorType type = tensorTypeOf(key);
    if (failed(checkRank(op, "keys", type, 4)) || failed(checkFloats(op, "keys", type)) ||
        failed(checkSizes(op, "keys", type, {query.dim(0), type.dim(1), type.dim(2), query.dim(3)})))
      return failure();
    if (!headGroup(query.dim(1), type.dim(1))) {
      auto error = op.emitOpError() << "expected the heads of the queries to be the keys' '" << type.dim(1)
                                    << "' or \"k*" << type.dim(1) << "\", but got '" << query.dim(1) << "'";
      return error;
    }
  }
  if (!op.getCounts().empty() && op.getCounts().size() != op.getKeys().size())
    return op.emitOpError() << "expected no counts or one for each of " << op.getKeys().size() << " domains, but got "
                            << op.getCounts().size();
  for (auto [count, key] : llvm::zip(op.getCounts(), op.getKeys())) {
    SmallVector<StringRef> sizes{query.dim(0), tensorTypeOf(key).dim(1)};
    if (tensorTypeOf(count).getRank() == 1) // the same for every head
      sizes.pop_back();
    if (failed(checkIndices(op, "counts", tensorTypeOf(count), sizes.size())) ||
        failed(checkSizes(op, "counts", tensorTypeOf(count), sizes)))
      return failure();
  }
  return checkPatterns(op, op.getPatterns(), op.getKeys().size(), op.getPatternOperands(), op.getMasks().size(),
                       query.dim(1));
}

template <typename Op> static LogicalResult verifySink(Op op) {
  if (!op.getSink())
    return success();
  return checkSizes(op, "the sink", tensorTypeOf(op.getSink()), {tensorTypeOf(op.getQuery()).dim(1)});
}

/// Values fit keys, C1.
template <typename Op> static LogicalResult verifyValues(Op op) {
  if (op.getValues().size() != op.getKeys().size())
    return op.emitOpError() << "expected as many values as keys, " << op.getKeys().size() << ", but got "
                            << op.getValues().size();
  WholeTensorType first = tensorTypeOf(op.getValues().front());
  if (failed(checkRank(op, "values", first, 4)))
    return failure();
  for (auto [key, value] : llvm::zip(op.getKeys(), op.getValues())) {
    WholeTensorType its = tensorTypeOf(key);
    if (failed(checkFloats(op, "values", tensorTypeOf(value))) ||
        failed(checkSizes(op, "values", tensorTypeOf(value), {its.dim(0), its.dim(1), its.dim(2), first.dim(3)})))
      return failure();
  }
  return success();
}

/// Packed sequences, C5.
template <typename Op> static LogicalResult verifyPacked(Op op) {
  if (op.getCuSeqlens().empty())
    return success();
  if (op.getCuSeqlens().size() != 2)
    return op.emitOpError() << "expected no sequence starts, or those of queries and of keys, but got "
                            << op.getCuSeqlens().size();
  for (Value cuSeqlens : op.getCuSeqlens())
    if (failed(checkIndices(op, "sequence starts", tensorTypeOf(cuSeqlens), 1)))
      return failure();
  // What is said of each token of the whole, and not of positions in a sequence.
  WalkResult tables = op.getPatterns().walk([](Attribute part) {
    return isa<SpanAttr, DocumentAttr, SectionAttr>(part) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (tables.wasInterrupted()) {
    InFlightDiagnostic error = op.emitOpError()
                               << "expected no span, no document and no section with sequence starts, but got "
                               << op.getPatterns();
    error.attachNote() << "their tables keep packed sequences apart by themselves: leave out the starts";
    return error;
  }
  if (differ(tensorTypeOf(op.getQuery()).dim(0), "1"))
    return op.emitOpError() << "expected a batch of 1 for packed sequences, but got " << tensorTypeOf(op.getQuery());
  return success();
}

/// An f32 number for each row of queries.
template <typename Op> static LogicalResult verifyRows(Op op, StringRef what, Value rows) {
  WholeTensorType query = tensorTypeOf(op.getQuery()), type = tensorTypeOf(rows);
  if (failed(checkSizes(op, what, type, {query.dim(0), query.dim(1), query.dim(2)})))
    return failure();
  if (!type.getElementType().isF32())
    return op.emitOpError() << "expected " << what << " of f32 elements, but got " << type;
  return success();
}

/// [B, H, N, Dv].
template <typename Op> static LogicalResult verifyOut(Op op, StringRef what, Value out) {
  WholeTensorType query = tensorTypeOf(op.getQuery());
  StringRef channels = tensorTypeOf(op.getValues().front()).dim(3);
  return checkSizes(op, what, tensorTypeOf(out), {query.dim(0), query.dim(1), query.dim(2), channels});
}

/// The regions, C4.
template <typename Op> static LogicalResult verifyScoreRegions(Op op) {
  Builder b(op.getContext());
  Type real = b.getF32Type(), index = b.getI32Type();
  if (!op.getScoreMod().empty() &&
      failed(checkScalarRegion(op, "score_mod", op.getScoreMod(), {real, index, index, index, index}, {real})))
    return failure();
  for (Region &mask : op.getMasks())
    if (failed(checkScalarRegion(op, "a mask", mask, {index, index, index, index}, {b.getI1Type()})))
      return failure();
  return success();
}

/// Split keys, C6.
template <typename Op> static LogicalResult verifySplits(Op op) {
  std::optional<uint64_t> splits = op.getSplits();
  if (!splits)
    return success();
  if (static_cast<int64_t>(*splits) < 0)
    return op.emitOpError() << "expected 'splits' to be at least 0, but got " << static_cast<int64_t>(*splits);
  return success();
}

LogicalResult SoftmaxOp::verify() {
  return success(succeeded(verifyDomains(*this)) && succeeded(verifySink(*this)) && succeeded(verifyPacked(*this)) &&
                 succeeded(verifySplits(*this)));
}
LogicalResult SoftmaxOp::verifyRegions() { return verifyScoreRegions(*this); }

LogicalResult AttendOp::verify() {
  if (failed(verifyDomains(*this)) || failed(verifyValues(*this)) || failed(verifyPacked(*this)) ||
      failed(verifySink(*this)) || failed(verifySplits(*this)) || failed(verifyOut(*this, "outputs", getOut())))
    return failure();
  return verifyRows(*this, "lse", getLse());
}
LogicalResult AttendOp::verifyRegions() { return verifyScoreRegions(*this); }

/// Tangents have the types of what they are the tangents of; there may be none.
static LogicalResult verifyTangents(Operation *op, StringRef what, ArrayRef<Value> tangents, ArrayRef<Value> of) {
  if (!tangents.empty() && tangents.size() != of.size())
    return op->emitOpError() << "expected no tangents of " << what << " or " << of.size() << ", but got "
                             << tangents.size();
  for (auto [tangent, value] : llvm::zip(tangents, of))
    if (tangent.getType() != value.getType())
      return op->emitOpError() << "expected a tangent of " << what << " of type " << value.getType() << ", but got "
                               << tangent.getType();
  return success();
}

/// dq, and dk and dv of each domain, have the shapes of query, keys and values.
template <typename Op> static LogicalResult verifyGradients(Op op, Value dQuery, ValueRange gradients) {
  auto like = [&](StringRef what, Value result, Value of) {
    SmallVector<StringRef> sizes;
    for (StringAttr dim : tensorTypeOf(of).getDims())
      sizes.push_back(dim.getValue());
    return checkSizes(op, what, tensorTypeOf(result), sizes);
  };
  if (failed(like("the queries' gradient", dQuery, op.getQuery())))
    return failure();
  size_t domains = op.getKeys().size();
  if (gradients.size() < 2 * domains)
    return op.emitOpError() << "expected a gradient of keys and one of values for each of " << domains
                            << " domains, but got " << gradients.size();
  for (size_t i = 0; i < domains; ++i)
    if (failed(like("the keys' gradient", gradients[2 * i], op.getKeys()[i])) ||
        failed(like("the values' gradient", gradients[2 * i + 1], op.getValues()[i])))
      return failure();
  return success();
}

LogicalResult AttendTangentOp::verify() {
  if (failed(verifyDomains(*this)) || failed(verifyValues(*this)) || failed(verifyPacked(*this)) ||
      failed(verifySink(*this)) || failed(verifyOut(*this, "outputs", getOut())) ||
      failed(verifyRows(*this, "lse", getLse())) || failed(verifyOut(*this, "the outputs' tangent", getOutTangent())) ||
      failed(verifyRows(*this, "lse's tangent", getLseTangent())))
    return failure();
  if (getSinkTangent() && !getSink())
    return emitOpError() << "expected a sink's tangent only with a sink";
  ArrayRef<Value> sink, sinkTangent;
  Value itsSink = getSink(), itsTangent = getSinkTangent(), query = getQuery(), queryTangent = getQueryTangent();
  if (itsTangent)
    sink = itsSink, sinkTangent = itsTangent;
  ArrayRef<Value> ofQuery;
  if (queryTangent)
    ofQuery = queryTangent;
  return success(
      succeeded(verifyTangents(*this, "the queries", ofQuery, query)) &&
      succeeded(verifyTangents(*this, "the keys", llvm::to_vector(getKeyTangents()), llvm::to_vector(getKeys()))) &&
      succeeded(
          verifyTangents(*this, "the values", llvm::to_vector(getValueTangents()), llvm::to_vector(getValues()))) &&
      succeeded(verifyTangents(*this, "the sink", sinkTangent, sink)));
}

LogicalResult AttendTangentOp::verifyRegions() {
  if (getScoreMod().empty() != getScoreModTangent().empty())
    return emitOpError() << "expected both score_mod and its tangent, or neither";
  if (failed(verifyScoreRegions(*this)))
    return failure();
  if (getScoreModTangent().empty())
    return success();
  Builder b(getContext());
  Type real = b.getF32Type(), index = b.getI32Type();
  return checkScalarRegion(*this, "the tangent of score_mod", getScoreModTangent(),
                           {real, index, index, index, index, real}, {real});
}

LogicalResult AttendBackwardOp::verify() {
  if (failed(verifyDomains(*this)) || failed(verifyValues(*this)) || failed(verifyPacked(*this)) ||
      failed(verifyRows(*this, "lse", getLse())) || failed(verifyRows(*this, "delta", getDelta())) ||
      failed(verifyOut(*this, "the outputs' gradient", getDOut())))
    return failure();
  return verifyGradients(*this, getDQuery(), getGradients());
}

LogicalResult AttendBackwardOp::verifyRegions() {
  if (getScoreMod().empty() != getScoreModGrad().empty())
    return emitOpError() << "expected both score_mod and its gradient, or neither";
  if (failed(verifyScoreRegions(*this)))
    return failure();
  if (getScoreModGrad().empty())
    return success();
  Builder b(getContext());
  Type real = b.getF32Type(), index = b.getI32Type();
  if (failed(checkScalarRegion(*this, "the gradient of score_mod", getScoreModGrad(),
                               {real, index, index, index, index, real}, {real})))
    return failure();
  auto captures = getGradients().drop_front(2 * getKeys().size());
  WalkResult walked = getScoreModGrad().walk([&](AccumulateOp op) -> WalkResult {
    if (op.getTarget() >= captures.size())
      return op.emitOpError() << "expected one of " << captures.size() << " gradients of captured tensors, but got "
                              << op.getTarget();
    WholeTensorType type = tensorTypeOf(captures[op.getTarget()]);
    if (static_cast<int64_t>(op.getIndices().size()) != type.getRank())
      return op.emitOpError() << "expected " << type.getRank() << " indices into " << type << ", but got "
                              << op.getIndices().size();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult LaunchOp::verify() {
  if (getGrid().size() != 3)
    return emitOpError() << "expected a grid of three extents, but got " << getGrid().size();
  int64_t after = 0;
  for (int64_t result : getZeroed()) {
    if (result < after || result >= getNumResults())
      return emitOpError() << "expected `zeroed` to number some of " << getNumResults()
                           << " results in ascending order, but got " << result;
    after = result + 1;
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "expected " << getKernelAttr() << " to be a kernel of the module";
  size_t parameters = getSizes().size() + getReals().size();
  for (Value tensor : llvm::concat<Value>(getInputs(), getResults()))
    parameters += std::max<size_t>(tensorTypeOf(tensor).getRank(), 1); // an address, and the strides but the last
  if (kernel.getNumArguments() == parameters)
    return success();
  InFlightDiagnostic error = emitOpError() << "expected " << getKernelAttr() << " to take " << parameters
                                           << " parameters, but it takes " << kernel.getNumArguments();
  error.attachNote(kernel.getLoc()) << "the kernel is here";
  return error;
}

LogicalResult AttendBackwardTangentOp::verify() {
  if (failed(verifyDomains(*this)) || failed(verifyValues(*this)) || failed(verifyPacked(*this)) ||
      failed(verifyRows(*this, "lse", getLse())) || failed(verifyRows(*this, "delta", getDelta())) ||
      failed(verifyOut(*this, "the outputs' gradient", getDOut())))
    return failure();
  SmallVector<Value> values{getQuery(), getLse(), getDelta(), getDOut()},
      tangents{getQueryTangent(), getLseTangent(), getDeltaTangent(), getDOutTangent()};
  llvm::append_range(values, getKeys());
  llvm::append_range(values, getValues());
  llvm::append_range(tangents, getKeyTangents());
  llvm::append_range(tangents, getValueTangents());
  if (failed(verifyTangents(*this, "the operands", tangents, values)))
    return failure();
  return verifyGradients(*this, getDQueryTangent(), getGradientTangents());
}

LogicalResult AttendBackwardTangentOp::verifyRegions() {
  if (getScoreMod().empty() != getScoreModTangent().empty() || getScoreMod().empty() != getScoreModGrad().empty() ||
      getScoreMod().empty() != getScoreModGradTangent().empty())
    return emitOpError() << "expected score_mod, its gradient and their tangents, or none";
  if (failed(verifyScoreRegions(*this)))
    return failure();
  if (getScoreMod().empty())
    return success();
  Builder b(getContext());
  Type real = b.getF32Type(), index = b.getI32Type();
  SmallVector<Type> taken{real, index, index, index, index, real};
  if (failed(checkScalarRegion(*this, "the tangent of score_mod", getScoreModTangent(), taken, {real})) ||
      failed(checkScalarRegion(*this, "the gradient of score_mod", getScoreModGrad(), taken, {real})))
    return failure();
  taken.append({real, real});
  return checkScalarRegion(*this, "the tangent of score_mod's gradient", getScoreModGradTangent(), taken, {real});
}
