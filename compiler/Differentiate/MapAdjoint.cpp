// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The adjoint of attn.map: one map whose scalars are the derivatives times the results' gradients, and a sum wherever
// an input was repeated.
//
//   %y = attn.map ins(%x, %row) { x * row }   =>   %0:2 = attn.map ins(%x, %row, %dy) { dy * row, dy * x }
//                                                  %dx = %0#0        %drow = attn.sum %0#1
//
// A gradient that passes through unchanged (a sum's) is the result's gradient itself and needs no map.
#include "compiler/Differentiate/Adjoints.h"
#include "compiler/Differentiate/ScalarDerivative.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

namespace {

/// The axes of a map at whose positions `attn.element` takes elements of a tensor; nothing for an input.
using ElementAxes = std::optional<SmallVector<int64_t>>;

/// The adjoint map while it is written: a block of its own, since which inputs it needs shows only at its end.
class MapAdjointWriter {
public:
  MapAdjointWriter(attn::MapOp op, Gradients &gradients) : op(op), gradients(gradients), b(op.getLoc(), op) {
    block = new Block;
    region.push_back(block);
    b.setInsertionPointToEnd(block);
  }
  LogicalResult run();

private:
  /// A scalar that the map computes, and what it is the gradient of.
  struct Output {
    Value tensor;     ///< an input, or a tensor that `attn.element` reads
    ElementAxes axes; ///< of the latter
    Value scalar;     ///< in the block
  };

  SmallVector<Operation *> copyBody();
  /// Writes the map of the outputs' scalars, and gives its results.
  ResultRange writeMap(ArrayRef<Output> outputs);
  /// Adds a gradient in the results' shape to that of what `output` is for.
  void contribute(const Output &output, Value gradient);

  attn::MapOp op;
  Gradients &gradients;
  ImplicitLocOpBuilder b; ///< writes in the block
  Region region;
  Block *block;
  llvm::DenseMap<Value, Value>
      tensorOf; ///< by argument of the block: an input of the program's map, or a result's gradient
  SmallVector<std::pair<unsigned, BlockArgument>> resultGradients;
};

} // namespace

/// Nothing where an index is anything but a position of the map, or axes do not ascend.
static ElementAxes axesOf(attn::ElementOp element) {
  SmallVector<int64_t> axes;
  for (Value index : element.getIndices()) {
    auto position = index.getDefiningOp<attn::IndexOp>();
    if (!position || (!axes.empty() && static_cast<int64_t>(position.getAxis()) <= axes.back()))
      return std::nullopt;
    axes.push_back(position.getAxis());
  }
  return axes;
}

SmallVector<Operation *> MapAdjointWriter::copyBody() {
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip(op.getInputs(), op.getBody().getArguments())) {
    Value copy = block->addArgument(argument.getType(), argument.getLoc());
    mapping.map(argument, copy);
    tensorOf[copy] = input;
  }
  SmallVector<Operation *> ops;
  for (Operation &each : op.getBody().front())
    ops.push_back(b.clone(each, mapping));
  return ops;
}

/// A gradient of what is read in another order would have to be added up by place.
static LogicalResult refuseElsewhere(attn::ElementOp element) {
  auto error = element.emitOpError() << "expected the elements of a differentiated tensor at the map's own positions, "
                                        "'attn.index' of ascending axes";
  error.attachNote() << "a tensor whose gradient nobody asks for may be read anywhere: differentiate=False, or "
                        "--forward-only, asks for none";
  return error;
}

LogicalResult MapAdjointWriter::run() {
  SmallVector<Value> known = llvm::map_to_vector(op.getResults(), [&](Value result) { return gradients.get(result); });
  if (llvm::none_of(known, [](Value gradient) { return bool(gradient); }))
    return success();

  SmallVector<Operation *> ops = copyBody();
  Operation *yield = ops.pop_back_val();
  SmallVector<ScalarGradient> seeds;
  for (auto [gradient, yielded] : llvm::zip(known, yield->getOperands())) {
    if (!gradient)
      continue;
    Value seed = block->addArgument(b.getF32Type(), op.getLoc());
    tensorOf[seed] = gradient;
    seeds.push_back({yielded, seed});
  }
  yield->erase();

  unsigned inputs = op.getInputs().size();
  auto isLeaf = [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getArgNumber() < inputs && gradients.wants(tensorOf.lookup(value));
    auto element = value.getDefiningOp<attn::ElementOp>();
    return element && gradients.wants(element.getTensor());
  };
  FailureOr<ScalarGradients> found = differentiateScalars(b, ops, seeds, isLeaf);
  if (failed(found))
    return failure();

  SmallVector<Output> outputs;
  auto output = [&](Value tensor, const ElementAxes &axes, Value leaf) {
    Value scalar = found->lookup(leaf);
    if (!scalar)
      return;
    if (auto argument = dyn_cast<BlockArgument>(scalar); argument && argument.getArgNumber() >= inputs)
      contribute({tensor, axes, scalar}, tensorOf.lookup(argument));
    else
      outputs.push_back({tensor, axes, scalar});
  };
  for (auto [input, argument] : llvm::zip(op.getInputs(), block->getArguments()))
    if (isLeaf(argument))
      output(input, std::nullopt, argument);
  for (Operation *each : ops) {
    auto element = dyn_cast<attn::ElementOp>(each);
    if (!element || !isLeaf(element) || !found->count(element))
      continue;
    ElementAxes axes = axesOf(element);
    if (!axes)
      return refuseElsewhere(element);
    output(element.getTensor(), axes, element);
  }
  if (outputs.empty())
    return success();
  for (auto [each, result] : llvm::zip(outputs, writeMap(outputs)))
    contribute(each, result);
  return success();
}

ResultRange MapAdjointWriter::writeMap(ArrayRef<Output> outputs) {
  attn::YieldOp::create(b, llvm::map_to_vector(outputs, [](const Output &each) { return each.scalar; }));
  eraseUnused(*block);
  auto shape = tensorType(op.getResult(0));
  SmallVector<Type> types;
  for (const Output &each : outputs) {
    bool whole = !each.axes && tensorType(each.tensor).getDims() == shape.getDims();
    types.push_back(shape.withElement(whole ? gradients.elementFor(each.tensor) : b.getF32Type()));
  }
  unsigned programInputs = op.getInputs().size();
  SmallVector<Value> inputs;
  llvm::BitVector unused(block->getNumArguments());
  for (BlockArgument argument : block->getArguments()) {
    Value tensor = tensorOf.lookup(argument);
    if (argument.use_empty())
      unused.set(argument.getArgNumber());
    else
      inputs.push_back(argument.getArgNumber() < programInputs ? gradients.primal(tensor) : tensor);
  }
  block->eraseArguments(unused);
  gradients.usePrimals(region);
  auto map = attn::MapOp::create(gradients.b, types, inputs);
  map.getBody().takeBody(region);
  return map.getResults();
}

void MapAdjointWriter::contribute(const Output &output, Value gradient) {
  if (!output.axes)
    return gradients.addSummed(output.tensor, gradient);
  // Every axis of the map that the tensor has not is summed away; one on which it has size 1 is summed to that.
  SmallVector<int64_t> away;
  for (int64_t axis = 0, rank = tensorType(gradient).getRank(); axis < rank; ++axis)
    if (!llvm::is_contained(*output.axes, axis))
      away.push_back(axis);
  WholeTensorType type = tensorType(output.tensor);
  ImplicitLocOpBuilder &end = gradients.b;
  Value sum = gradient;
  if (type.getDims() != tensorType(gradient).getDims())
    sum = attn::SumOp::create(end, gradients.contributionType(output.tensor), gradient,
                              away.empty() ? DenseI64ArrayAttr() : end.getDenseI64ArrayAttr(away));
  gradients.add(output.tensor, sum);
}

/// Forward mode: one map of the results' tangents, beside the map itself.
///
///   %y = attn.map ins(%x) { x * x }   =>   %dy = attn.map ins(%x, %dx) { dx * x + x * dx }
static LogicalResult addMapTangents(attn::MapOp op, Tangents &tangents) {
  Region region;
  auto *block = new Block;
  region.push_back(block);
  ImplicitLocOpBuilder b(op.getLoc(), op);
  b.setInsertionPointToEnd(block);
  SmallVector<Value> inputs;
  IRMapping mapping;
  llvm::DenseMap<Value, Value> ofInput;
  auto take = [&](Value tensor, BlockArgument like) {
    inputs.push_back(tensor);
    return block->addArgument(like.getType(), like.getLoc());
  };
  for (auto [input, argument] : llvm::zip(op.getInputs(), op.getBody().getArguments()))
    mapping.map(argument, take(tangents.primal(input), argument));
  for (auto [input, argument] : llvm::zip(op.getInputs(), op.getBody().getArguments()))
    if (Value tangent = tangents.get(input))
      ofInput[mapping.lookup(argument)] = take(tangent, argument);

  SmallVector<Operation *> ops;
  for (Operation &each : op.getBody().front())
    ops.push_back(b.clone(each, mapping));
  Operation *yield = ops.pop_back_val();
  auto tangentOf = [&](Value value) -> Value {
    auto element = value.getDefiningOp<attn::ElementOp>();
    if (!element)
      return ofInput.lookup(value);
    Value tangent = tangents.get(element.getTensor());
    return tangent ? attn::ElementOp::create(b, value.getType(), tangent, element.getIndices()) : Value();
  };
  FailureOr<ScalarGradients> found = lineariseScalars(b, ops, tangentOf);
  if (failed(found))
    return failure();
  SmallVector<Value> yielded, results;
  for (auto [result, scalar] : llvm::zip(op.getResults(), yield->getOperands())) {
    Value tangent = isa<BlockArgument>(scalar) ? ofInput.lookup(scalar) : found->lookup(scalar);
    if (!tangent || !isFloatTensor(result))
      continue;
    yielded.push_back(tangent);
    results.push_back(result);
  }
  yield->erase();
  if (results.empty())
    return success();
  attn::YieldOp::create(b, yielded);
  eraseUnused(*block);
  llvm::BitVector unused(block->getNumArguments());
  for (BlockArgument argument : llvm::reverse(block->getArguments()))
    if (argument.use_empty()) {
      unused.set(argument.getArgNumber());
      inputs.erase(inputs.begin() + argument.getArgNumber());
    }
  block->eraseArguments(unused);
  tangents.usePrimals(region);
  auto map = attn::MapOp::create(tangents.b, ValueRange(results).getTypes(), inputs);
  map.getBody().takeBody(region);
  for (auto [result, tangent] : llvm::zip(results, map.getResults()))
    tangents.set(result, tangent);
  return success();
}

namespace {
struct MapTangent : LinearisableOpInterface::ExternalModel<MapTangent, attn::MapOp> {
  LogicalResult addTangent(Operation *op, Tangents &tangents) const {
    return addMapTangents(cast<attn::MapOp>(op), tangents);
  }
};
struct MapAdjoint : DifferentiableOpInterface::ExternalModel<MapAdjoint, attn::MapOp> {
  LogicalResult addAdjoint(Operation *op, Gradients &gradients) const {
    return MapAdjointWriter(cast<attn::MapOp>(op), gradients).run();
  }
};
} // namespace

void weft::attachMapAdjoint(MLIRContext &context) { attn::MapOp::attachInterface<MapAdjoint, MapTangent>(context); }
