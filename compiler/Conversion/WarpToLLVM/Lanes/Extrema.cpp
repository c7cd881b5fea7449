// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Extrema.h.
#include "compiler/Conversion/WarpToLLVM/Lanes/Extrema.h"

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {

/// The op by which a combiner of two floats takes one of them; null where it does anything else.
static Operation *extremumBy(Region &combiner) {
  Block &body = combiner.front();
  if (body.getNumArguments() != 2 || !llvm::hasNItems(body, 2))
    return nullptr;
  Operation &op = body.front();
  bool isExtremum = isa<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(op);
  bool ofBoth = op.getNumOperands() == 2 && op.getOperand(0) != op.getOperand(1) &&
                llvm::all_of(op.getOperands(), llvm::IsaPred<BlockArgument>);
  return isExtremum && ofBoth ? &op : nullptr;
}

/// The extremum of two floats, or of the halves of two words.
static Value extremum(Operation *by, Value left, Value right, Emitter &e) {
  return llvm::TypeSwitch<Operation *, Value>(by)
      .Case([&](arith::MaxNumFOp) { return LLVM::MaxNumOp::create(e.b, e.loc, left, right); })
      .Case([&](arith::MinNumFOp) { return LLVM::MinNumOp::create(e.b, e.loc, left, right); })
      .Case([&](arith::MaximumFOp) { return LLVM::MaximumOp::create(e.b, e.loc, left, right); })
      .Default([&](Operation *) { return LLVM::MinimumOp::create(e.b, e.loc, left, right); });
}

/// What a tile of float32 was widened from, and of its sizes or of what they are the sizes of; else the tile itself.
static Halves beforeWidening(Value value, Emitter &e) {
  Halves found{value};
  auto skip = [&] {
    // The same registers in another shape.
    while (auto reshape = found.source.getDefiningOp<tile::ReshapeOp>()) {
      if (e.registers(reshape.getSource()) != e.registers(found.source))
        break;
      found.source = reshape.getSource();
    }
    if (auto size = found.source.getDefiningOp<math::AbsFOp>()) {
      found.source = size.getOperand();
      found.absolute = true;
    }
  };
  skip();
  if (auto wide = found.source.getDefiningOp<arith::ExtFOp>(); wide && tile::elementTypeOf(value.getType()).isF32()) {
    found.source = wide.getIn();
    skip();
  }
  return found;
}

std::optional<Halves> halvesReduced(tile::ReduceOp op, const LinearLayout &source, Emitter &e) {
  constexpr size_t few = 4; // numbers of which pairs save nothing
  if (op.getSources().size() != 1 || !extremumBy(op.getCombiner()))
    return std::nullopt;
  Halves found = beforeWidening(op.getSources().front(), e);
  Type element = tile::elementTypeOf(found.source.getType());
  ArrayRef<Value> values = e.registers(found.source);
  const bool areNeighbours = source.size(InDim::Register) > few && !(source.freeBits()[InDim::Register] & 1) &&
                             source.delinearize(source.bases(InDim::Register).front())[op.getAxis()] != 0;
  if (!areNeighbours || !(element.isF16() || element.isBF16()))
    return std::nullopt;
  for (size_t r = 0; r < values.size(); r += 2)
    if (!e.unpackedFrom(values.slice(r, 2)))
      return std::nullopt;
  return found;
}

Value extremumOf(tile::ReduceOp op, const Halves &halves, ArrayRef<Value> values, Emitter &e) {
  Operation *by = extremumBy(op.getCombiner());
  Type pair = VectorType::get(2, values.front().getType());
  SmallVector<Value> pairs;
  for (; !values.empty(); values = values.drop_front(2)) {
    Value both = e.bitcast(e.unpackedFrom(values.take_front(2)), pair);
    pairs.push_back(halves.absolute ? LLVM::FAbsOp::create(e.b, e.loc, both).getResult() : both);
  }
  // Neighbours first: as few steps in a row as there can be.
  while (pairs.size() > 1) {
    SmallVector<Value> found;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
      found.push_back(extremum(by, pairs[i], pairs[i + 1], e));
    if (pairs.size() % 2)
      found.push_back(pairs.back());
    pairs = std::move(found);
  }
  auto half = [&](int index) -> Value {
    Value narrow = LLVM::ExtractElementOp::create(e.b, e.loc, pairs.front(), e.i32(index));
    return tile::elementTypeOf(op.getSources().front().getType()).isF32() ? extendToF32(narrow, e) : narrow;
  };
  return extremum(by, half(0), half(1), e);
}

} // namespace weft
