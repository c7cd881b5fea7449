// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ElementTile.h.
#include "compiler/Conversion/AttnToTile/Elements/ElementTile.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

Value AxisIndex::whole(TileBuilder &b) const {
  if (!start)
    return offsets ? offsets : b.i32(0);
  return offsets ? b.add(offsets, start) : start;
}

Value axisRange(TileBuilder &b, int64_t size, int64_t axis, int64_t rank) {
  Value range = b.range(size);
  for (int64_t i = 0; i < axis; ++i)
    range = b.expand(range, 0);
  for (int64_t i = axis + 1; i < rank; ++i)
    range = b.expand(range, i);
  return range;
}

Value andAlso(TileBuilder &b, Value one, Value other) { return !one ? other : other ? b.both(one, other) : one; }

bool isElementwise(Operation *op) { return isa_and_nonnull<attn::MapOp, attn::MeanHeadsOp>(op); }

Value ElementPuller::pointers(const TensorParameter &tensor, const Place &place) {
  Value pointer = tensor.pointer, offsets;
  for (auto [axis, index] : llvm::enumerate(place.axes)) {
    if (tensor.type.dim(axis) == "1")
      continue;
    Value stride = axis < tensor.strides.size() ? tensor.strides[axis] : Value();
    if (index.start) {
      Value step = b.cast(index.start, b.getI64Type());
      pointer = b.addPtr(pointer, stride ? b.mul(step, stride) : step);
    }
    if (index.offsets) {
      // Within a tile elements lie less than 2³¹ apart, so that 32 bits hold the offsets.
      Value step = stride ? b.mul(index.offsets, b.cast(stride, b.getI32Type())) : index.offsets;
      offsets = offsets ? b.add(offsets, step) : step;
    }
  }
  pointer = b.broadcast(pointer, place.shape);
  return offsets ? b.addPtr(pointer, b.broadcast(offsets, place.shape)) : pointer;
}

Value ElementPuller::loadAt(const TensorParameter &tensor, const Place &place) {
  return b.load(pointers(tensor, place), place.exists);
}

Value ElementPuller::load(Value value, Value outside, const Place &place) {
  const TensorParameter tensor = frame.input(outside);
  auto type = wholeType(value);
  if (type.getRank() != 4 || type.dim(2) != "1" || tensor.type.dim(2) == "1")
    return loadAt(tensor, place);
  // Partial sums of what has one row: added here.
  Place part = place;
  Value sum;
  for (int64_t i = 0; i < *tensor.type.staticDim(2); ++i) {
    part.axes[2] = {b.i32(i), {}};
    Value term = loadAt(tensor, part);
    sum = sum ? b.add(sum, term) : term;
  }
  return b.cast(sum, type.getElementType());
}

/// The place, in an input of a map, that belongs to one in the map's results.
static Place inputPlace(TileBuilder &b, attn::WholeTensorType input, attn::WholeTensorType result, const Place &place) {
  Place its{{}, place.shape, place.exists};
  int64_t lead = result.getRank() - input.getRank();
  for (int64_t axis = 0; axis < input.getRank(); ++axis) {
    AxisIndex index = place.axes[axis + lead];
    int64_t group = attn::headGroup(result.dim(axis + lead), input.dim(axis)).value_or(1);
    if (input.dim(axis) == "1")
      index = {};
    else if (group > 1 && index.offsets)
      index = {{}, b.div(index.whole(b), b.i32(group))};
    else if (group > 1)
      index = {b.div(index.whole(b), b.i32(group)), {}};
    its.axes.push_back(index);
  }
  return its;
}

Value ElementPuller::map(attn::MapOp op, Value value, const Place &place) {
  auto shape = wholeType(value);
  SmallVector<Value> arguments;
  for (Value input : op.getInputs()) {
    auto type = wholeType(input);
    arguments.push_back(b.cast(pull(input, inputPlace(b, type, shape, place)), attn::scalarTypeOf(type)));
  }
  auto element = [&](Value tensor, ValueRange indices) {
    return elementOf(frame, stored, tensor, indices, place.exists);
  };
  auto position = [&](int64_t axis) { return place.axes[axis].whole(b); };
  SmallVector<Value> results = evaluateRegion(op.getBody(), arguments, {frame, element, position, nullptr});
  Value tile = b.broadcast(results[cast<OpResult>(value).getResultNumber()], place.shape);
  if (place.exists)
    tile = b.select(b.broadcast(place.exists, place.shape), tile, b.full(place.shape, 0, TileBuilder::elementOf(tile)));
  return b.cast(tile, shape.getElementType());
}

Value ElementPuller::meanHeads(attn::MeanHeadsOp op, const Place &place) {
  auto from = wholeType(op.getSource()), to = wholeType(op.getResult());
  bool dropped = to.getRank() == 3;
  int64_t few = dropped ? 1 : *to.staticDim(1), groups = *from.staticDim(1) / few;
  Place source = place;
  if (dropped)
    source.axes.insert(source.axes.begin() + 1, AxisIndex());
  AxisIndex head = source.axes[1];
  Value sum;
  for (int64_t group = 0; group < groups; ++group) {
    source.axes[1].start = head.start ? b.add(head.start, b.i32(group * few)) : b.i32(group * few);
    Value term = b.cast(pull(op.getSource(), source), b.getF32Type());
    sum = sum ? b.add(sum, term) : term;
  }
  return b.cast(b.mul(sum, b.f32(1.0 / groups)), to.getElementType());
}

Value ElementPuller::pull(Value value, const Place &place) {
  if (Value tile = provided.lookup(value))
    return tile;
  if (Value outside = stored.find(value))
    return load(value, outside, place);
  if (isNumber(value))
    return b.broadcast(b.cast(numberOf(frame, stored, value), wholeType(value).getElementType()), place.shape);
  Operation *op = value.getDefiningOp();
  if (auto map = dyn_cast_if_present<attn::MapOp>(op))
    return this->map(map, value, place);
  if (auto mean = dyn_cast_if_present<attn::MeanHeadsOp>(op))
    return meanHeads(mean, place);
  frame.refuse(value);
  return b.full(place.shape, 0, wholeType(value).getElementType());
}

void ElementPuller::makeOutputs(ValueRange values) {
  for (Value value : values)
    outputs.push_back(frame.output(wholeType(value)));
}

void ElementPuller::storeAt(ValueRange values, const Place &place) {
  for (auto [value, output] : llvm::zip(values, outputs))
    store(output, place, pull(value, place));
}

void ElementPuller::store(const TensorParameter &tensor, const Place &place, Value tile) {
  b.store(pointers(tensor, place), b.cast(tile, tensor.type.getElementType()), place.exists);
}

} // namespace weft
