// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Ops that move no data: ranges, splats, and changes of shape, which only rename registers.
//
// To find the register of the source that a register of the result is, the result's layout is carried over into the
// source's shape: there both layouts speak of the same elements, and `registerPermutation` gives the answer.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LinearLayout;

namespace weft {
namespace {

/// `layout` onto a tensor of `shape`, each basis at the coordinates that `move` makes of its own.
LinearLayout moveBases(const LinearLayout &layout, ArrayRef<int64_t> shape,
                       llvm::function_ref<SmallVector<int64_t>(ArrayRef<int64_t>)> move) {
  LinearLayout result(shape);
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t base : layout.bases(dim))
      result.append(dim, ArrayRef<int64_t>(move(layout.delinearize(base))));
  return result;
}

/// Binds the only result of `op` to registers of `source`; `wanted` is the result's layout in the source's shape.
LogicalResult rename(Operation *op, Value source, const LinearLayout &wanted, Emitter &e) {
  auto permutation = wanted.registerPermutation(layoutOf(source.getType()));
  if (!permutation)
    return op->emitOpError("changes the layout in a way that needs a 'warp.convert_layout'");
  ArrayRef<Value> from = e.registers(source);
  e.bind(op->getResult(0), llvm::map_to_vector(*permutation, [&](uint32_t r) { return from[r]; }));
  return success();
}

LogicalResult lowerMakeRange(tile::MakeRangeOp op, Emitter &e) {
  const LinearLayout &layout = layoutOf(op.getType());
  Value start = e.i32(op.getStart());
  Registers results;
  for (unsigned r = 0; r < layout.size(InDim::Register); ++r) {
    Value index = e.coordinate(layout, 0, r);
    if (op.getStart() != 0)
      index = LLVM::AddOp::create(e.b, e.loc, index, start, LLVM::IntegerOverflowFlags::nsw);
    results.push_back(index);
  }
  e.bind(op.getResult(), results);
  return success();
}

LogicalResult lowerSplat(tile::SplatOp op, Emitter &e) {
  e.bind(op.getResult(), Registers(*registerCount(op.getType()), e.scalar(op.getSource())));
  return success();
}

LogicalResult lowerExpandDims(tile::ExpandDimsOp op, Emitter &e) {
  return rename(op, op.getSource(), layoutOf(op.getType()).reshape(tile::shapeOf(op.getSource().getType())), e);
}

LogicalResult lowerReshape(tile::ReshapeOp op, Emitter &e) {
  return rename(op, op.getSource(), layoutOf(op.getType()).reshape(tile::shapeOf(op.getSource().getType())), e);
}

LogicalResult lowerBroadcast(tile::BroadcastOp op, Emitter &e) {
  ArrayRef<int64_t> shape = tile::shapeOf(op.getSource().getType());
  auto wanted = moveBases(layoutOf(op.getType()), shape, [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> source(at);
    for (auto [coordinate, size] : llvm::zip_equal(source, shape))
      coordinate = size == 1 ? 0 : coordinate;
    return source;
  });
  return rename(op, op.getSource(), wanted, e);
}

LogicalResult lowerPermute(tile::PermuteOp op, Emitter &e) {
  ArrayRef<int32_t> order = op.getOrder();
  auto wanted = moveBases(layoutOf(op.getType()), tile::shapeOf(op.getSource().getType()), [&](ArrayRef<int64_t> at) {
    SmallVector<int64_t> source(at.size());
    for (auto [i, axis] : llvm::enumerate(order))
      source[axis] = at[i];
    return source;
  });
  return rename(op, op.getSource(), wanted, e);
}

/// `layout` without its last axis.
LinearLayout withoutLastAxis(const LinearLayout &layout) {
  return moveBases(layout, layout.shape().drop_back(),
                   [](ArrayRef<int64_t> at) { return SmallVector<int64_t>(at.drop_back()); });
}

/// Whether the last axis is walked by registers alone.
bool lastAxisInRegisters(const LinearLayout &layout) {
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t base : layout.bases(dim))
      if (layout.delinearize(base).back() != 0)
        return false;
  return true;
}

LogicalResult lowerJoin(tile::JoinOp op, Emitter &e) {
  const LinearLayout &layout = layoutOf(op.getType());
  auto permutation = withoutLastAxis(layout).registerPermutation(layoutOf(op.getLhs().getType()));
  if (!permutation || !lastAxisInRegisters(layout))
    return op.emitOpError("expected operands in the result's layout without its last axis, which registers walk along");
  Registers results;
  for (auto [r, source] : llvm::enumerate(*permutation)) {
    bool second = layout.delinearize(layout.apply(InDim::Register, r)).back() != 0;
    results.push_back(e.registers(second ? op.getRhs() : op.getLhs())[source]);
  }
  e.bind(op.getResult(), results);
  return success();
}

LogicalResult lowerSplit(tile::SplitOp op, Emitter &e) {
  const LinearLayout &source = layoutOf(op.getSource().getType());
  // Element (0, ..., 0, 1) has row-major index 1: the register that is there holds the second half of register 0.
  std::optional<uint32_t> second;
  for (uint32_t r = 0; r < source.size(InDim::Register); ++r)
    if (source.apply(InDim::Register, r) == 1)
      second = r;
  auto halves = moveBases(layoutOf(op.getLhs().getType()), source.shape(), [](ArrayRef<int64_t> at) {
    SmallVector<int64_t> first(at);
    first.push_back(0);
    return first;
  });
  auto permutation = halves.registerPermutation(source);
  if (!permutation || !second || !lastAxisInRegisters(source))
    return op.emitOpError(
        "expected a source whose last axis registers walk along, and results in its layout without that axis");
  ArrayRef<Value> from = e.registers(op.getSource());
  Registers lhs, rhs;
  for (uint32_t r : *permutation) {
    lhs.push_back(from[r]);
    rhs.push_back(from[r ^ *second]);
  }
  e.bind(op.getLhs(), lhs);
  e.bind(op.getRhs(), rhs);
  return success();
}

} // namespace

void addShapeLowerings(LoweringTable &table) {
  table.add<tile::MakeRangeOp>(lowerMakeRange);
  table.add<tile::SplatOp>(lowerSplat);
  table.add<tile::ExpandDimsOp>(lowerExpandDims);
  table.add<tile::ReshapeOp>(lowerReshape);
  table.add<tile::BroadcastOp>(lowerBroadcast);
  table.add<tile::PermuteOp>(lowerPermute);
  table.add<tile::JoinOp>(lowerJoin);
  table.add<tile::SplitOp>(lowerSplit);
}

} // namespace weft
