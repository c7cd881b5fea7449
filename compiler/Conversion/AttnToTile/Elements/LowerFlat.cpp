// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels over tensors of any shape, element by element in row-major order.
//
//   %y = attn.map ins(%x : [N]) { a * a }      ─▶      func.func @map {                  grid [cdiv(N, 512), 1, 1]
//                                                        %i = 512 · program x + 0 .. 511
//                                                        %x = tile.load x + %i, %i < N, 0
//                                                        tile.store y + %i, %x * %x, %i < N
//                                                      }
#include "compiler/Conversion/AttnToTile/Elements/ElementTile.h"
#include "compiler/Conversion/AttnToTile/Elements/LowerElements.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"

using namespace mlir;

namespace weft {

LogicalResult lowerFlatMap(attn::MapOp op, Operation *anchor, StoredValues &stored) {
  KernelFrame frame(anchor, "map");
  TileBuilder &b = frame.b;
  constexpr int64_t block = 512;
  auto shape = cast<attn::WholeTensorType>(op.getResult(0).getType());
  Value flat = b.add(b.mul(b.programId(tile::Axis::X), b.i32(block)), b.range(block));
  Value count = b.i32(1);
  for (StringAttr dim : shape.getDims())
    count = b.mul(count, frame.size(dim.getValue()));
  Value inside = b.less(flat, count);
  SmallVector<Value> index(shape.getRank());
  Value rest = flat;
  for (int64_t axis = shape.getRank() - 1; axis >= 0; --axis) {
    Value size = frame.size(shape.dim(axis));
    index[axis] = axis == 0 ? rest : b.rem(rest, size);
    rest = axis == 0 ? rest : b.div(rest, size);
  }
  SmallVector<Value> arguments;
  for (Value input : op.getInputs()) {
    if (isNumber(input)) {
      arguments.push_back(numberOf(frame, stored, input));
      continue;
    }
    const TensorParameter tensor = frame.input(stored.at(input));
    int64_t lead = shape.getRank() - tensor.type.getRank();
    Value offset = b.full({block}, 0, b.getI64Type());
    for (int64_t axis = 0; axis < tensor.type.getRank(); ++axis) {
      if (tensor.type.dim(axis) == "1")
        continue;
      Value at = index[axis + lead];
      if (int64_t group = attn::headGroup(shape.dim(axis + lead), tensor.type.dim(axis)).value_or(1); group > 1)
        at = b.div(at, b.i32(group));
      Value step = b.cast(at, b.getI64Type());
      if (static_cast<size_t>(axis) < tensor.strides.size())
        step = b.mul(step, tensor.strides[axis]);
      offset = b.add(offset, step);
    }
    Value loaded = b.load(b.addPtr(tensor.pointer, offset), inside);
    arguments.push_back(b.cast(loaded, attn::scalarTypeOf(tensor.type)));
  }
  auto element = [&](Value tensor, ValueRange indices) { return elementOf(frame, stored, tensor, indices); };
  auto position = [&](int64_t axis) { return index[axis]; };
  SmallVector<Value> results = evaluateRegion(op.getBody(), arguments, {frame, element, position, nullptr});
  for (auto [result, tile] : llvm::zip(op.getResults(), results)) {
    TensorParameter output = frame.output(cast<attn::WholeTensorType>(result.getType()));
    Value rounded = b.cast(b.broadcast(tile, {block}), output.type.getElementType());
    b.store(b.addPtr(output.pointer, flat), rounded, inside);
  }
  stored.record(op.getResults(), frame.finish({{blocksOf(shape, block), "1", "1"}, 4, 1}));
  return success();
}

LogicalResult lowerMeanHeads(attn::MeanHeadsOp op, Operation *anchor, StoredValues &stored) {
  KernelFrame frame(anchor, "mean_heads");
  TileBuilder &b = frame.b;
  constexpr int64_t block = 512;
  auto shape = wholeType(op.getResult());
  Value rest = b.add(b.mul(b.programId(tile::Axis::X), b.i32(block)), b.range(block)), count = b.i32(1);
  for (StringAttr dim : shape.getDims())
    count = b.mul(count, frame.size(dim.getValue()));
  Place place{SmallVector<AxisIndex>(shape.getRank()), {block}, b.less(rest, count)};
  for (int64_t axis = shape.getRank() - 1; axis >= 0; --axis) {
    Value size = frame.size(shape.dim(axis));
    place.axes[axis].offsets = axis == 0 ? rest : b.rem(rest, size);
    rest = axis == 0 ? rest : b.div(rest, size);
  }
  ElementPuller puller(frame, stored);
  puller.makeOutputs(op->getResults());
  puller.storeAt(op->getResults(), place);
  stored.record(ValueRange(op.getResult()), frame.finish({{blocksOf(shape, block), "1", "1"}, 4, 1}));
  return success();
}

} // namespace weft
