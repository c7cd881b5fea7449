// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Numbers.h.
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

bool isNumber(Value value) {
  auto type = dyn_cast<attn::WholeTensorType>(value.getType());
  return type && type.getRank() == 0;
}

/// The sum of a tensor's elements, f32, each of which one program reads in an order that never changes.
static Value sumOfAll(KernelFrame &frame, Value tensor) {
  TileBuilder &b = frame.b;
  const TensorParameter source = frame.input(tensor);
  constexpr int64_t block = 1024;
  SmallVector<Value> sizes;
  Value count = b.i32(1);
  for (StringAttr dim : source.type.getDims()) {
    sizes.push_back(frame.size(dim.getValue()));
    count = b.mul(count, sizes.back());
  }
  auto loop = scf::ForOp::create(b, b.i32(0), b.ceilDiv(count, block), b.i32(1), b.zeros({block}));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value flat = b.add(b.mul(loop.getInductionVar(), b.i32(block)), b.range(block)), inside = b.less(flat, count);
    Value offset = b.full({block}, 0, b.getI64Type());
    for (int64_t axis = source.type.getRank() - 1; axis >= 0; --axis) {
      Value index = axis == 0 ? flat : b.rem(flat, sizes[axis]);
      flat = axis == 0 ? flat : b.div(flat, sizes[axis]);
      Value step = b.cast(index, b.getI64Type());
      if (static_cast<size_t>(axis) < source.strides.size())
        step = b.mul(step, source.strides[axis]);
      offset = b.add(offset, step);
    }
    Value terms = b.load(b.addPtr(source.pointer, offset), inside);
    scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), b.cast(terms, b.getF32Type())));
  }
  return b.reduceSum(loop.getResult(0), 0);
}

/// The number that a map of numbers gives.
static Value mapped(KernelFrame &frame, const StoredValues &stored, OpResult number) {
  auto map = cast<attn::MapOp>(number.getOwner());
  auto arguments = llvm::map_to_vector(map.getInputs(), [&](Value input) { return numberOf(frame, stored, input); });
  auto element = [&](Value tensor, ValueRange indices) { return elementOf(frame, stored, tensor, indices); };
  SmallVector<Value> results = evaluateRegion(map.getBody(), arguments, {frame, element, nullptr, nullptr});
  return results[number.getResultNumber()];
}

Value numberOf(KernelFrame &frame, const StoredValues &stored, Value number) {
  return frame.once(number, [&]() -> Value {
    if (Value outside = stored.find(number))
      return loadElement(frame, outside, {});
    TileBuilder &b = frame.b;
    attn::WholeTensorType type = wholeType(number);
    auto sum = number.getDefiningOp<attn::SumOp>();
    Value value = sum ? sumOfAll(frame, stored.at(sum.getSource())) : mapped(frame, stored, cast<OpResult>(number));
    // Rounded as if it had been stored.
    return b.cast(b.cast(value, type.getElementType()), attn::scalarTypeOf(type));
  });
}

Value elementOf(KernelFrame &frame, const StoredValues &stored, Value tensor, ValueRange indices, Value inside) {
  return isNumber(tensor) ? numberOf(frame, stored, tensor) : loadElement(frame, stored.at(tensor), indices, inside);
}

void lowerNumbers(Operation *anchor, ArrayRef<Value> numbers, StoredValues &stored) {
  KernelFrame frame(anchor, "numbers");
  TileBuilder &b = frame.b;
  for (Value number : numbers) {
    TensorParameter output = frame.output(wholeType(number));
    Value value = b.cast(numberOf(frame, stored, number), output.type.getElementType());
    b.store(b.broadcast(output.pointer, {1}), b.broadcast(value, {1}), {});
  }
  stored.record(numbers, frame.finish({{"1", "1", "1"}, 4, 1}));
}

} // namespace weft
