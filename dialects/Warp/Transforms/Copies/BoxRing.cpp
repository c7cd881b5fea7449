// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/BoxRing.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include <limits>

using namespace mlir;

namespace weft::warp {

/// A coordinate along an axis of `size` elements, of which a map has one at least: outside of those where there is none.
static Value onAxis(OpBuilder &b, OpBuilder &atBegin, Location loc, Value coordinate, Value size) {
  IntegerAttr known;
  if (matchPattern(size, m_Constant(&known)))
    return coordinate;
  auto number = [&](Type type, int64_t value) -> Value {
    return arith::ConstantOp::create(atBegin, loc, atBegin.getIntegerAttr(type, value));
  };
  Value none = arith::CmpIOp::create(atBegin, loc, arith::CmpIPredicate::slt, size, number(size.getType(), 1));
  Type type = coordinate.getType();
  Value far =
      arith::SelectOp::create(atBegin, loc, none, number(type, std::numeric_limits<int32_t>::min()), number(type, 0));
  return arith::AddIOp::create(b, loc, coordinate, far);
}

MappedBox mapBox(const Box &box, Operation *op) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  OpBuilder b(kernel.getContext());
  Location loc = op->getLoc();
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto emitAll = [&](ArrayRef<IndexSum> sums, Type type) {
    return llvm::map_to_vector(sums, [&](const IndexSum &sum) { return sum.emit(b, loc, type); });
  };
  Value base = box.base;
  if (!box.baseOffset.isZero())
    base = tile::AddPtrOp::create(b, loc, base.getType(), base, box.baseOffset.emit(b, loc, b.getI64Type()));
  SmallVector<Value> sizes = emitAll(box.sizes, b.getI64Type()), strides = emitAll(box.strides, b.getI64Type());
  MappedBox mapped;
  mapped.map =
      TensorMapOp::create(b, loc, TensorMapType::get(b.getContext()), base, sizes, strides, box.box, box.isVector);
  OpBuilder atBegin = b;
  b.setInsertionPoint(op);
  for (auto [coordinate, size] : llvm::zip_equal(emitAll(box.coordinates, b.getI32Type()), sizes))
    mapped.coordinates.push_back(onAxis(b, atBegin, loc, coordinate, size));
  return mapped;
}

SmallVector<Value> coordinatesOf(OpBuilder &b, Location loc, ValueRange box, const BoxPart &part) {
  auto moved = [&](Value coordinate, int32_t distance) -> Value {
    if (distance == 0)
      return coordinate;
    return arith::AddIOp::create(b, loc, coordinate, arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(distance)));
  };
  SmallVector<Value> coordinates(box);
  coordinates[0] = moved(coordinates[0], part.along);
  if (part.row != 0) // a vector has no lines
    coordinates[1] = moved(coordinates[1], part.row);
  return coordinates;
}

void copyParts(OpBuilder &b, Location loc, const Box &box, Value map, ValueRange coordinates, Value tile,
               Value barrier) {
  for (const BoxPart &part : box.parts)
    BoxCopyOp::create(b, loc, map, coordinatesOf(b, loc, coordinates, part), tile, barrier, /*where=*/Value(),
                      b.getI64IntegerAttr(part.offset), /*by=*/IntegerAttr());
}

/// Whether the parity of a phase is the highest bit of a sum, which overflows after two times round.
bool RingSteps::countsTurns() const { return llvm::isPowerOf2_64(stages); }

static Value i32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

Value RingSteps::isLast(OpBuilder &b, Location loc, Value place) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, place, i32(b, loc, (stages - 1) * pitch));
}

Value RingSteps::placeBehind(OpBuilder &b, Location loc, Value place) const {
  if (stages == 2)
    return arith::XOrIOp::create(b, loc, place, i32(b, loc, pitch));
  Value end = isLast(b, loc, place), behind = arith::AddIOp::create(b, loc, place, i32(b, loc, pitch));
  return arith::SelectOp::create(b, loc, end, i32(b, loc, 0), behind);
}

Value RingSteps::turnBehind(OpBuilder &b, Location loc, Value place, Value turn) const {
  if (countsTurns())
    return arith::AddIOp::create(b, loc, turn, i32(b, loc, (int64_t(1) << 31) / stages));
  Value flips = arith::ExtUIOp::create(b, loc, b.getI32Type(), isLast(b, loc, place));
  return arith::XOrIOp::create(b, loc, turn, flips);
}

Value RingSteps::parity(OpBuilder &b, Location loc, Value turn) const {
  return countsTurns() ? arith::ShRUIOp::create(b, loc, turn, i32(b, loc, 31)).getResult() : turn;
}

SharedType BoxRing::typeOf(MLIRContext *context, int stages) {
  int64_t one[] = {1};
  return SharedType::get(context, stages, one, IntegerType::get(context, 64),
                         LayoutAttr::get(context, LinearLayout(one)));
}

BoxRing::BoxRing(OpBuilder &b, Location loc, int stages)
    : ring(AllocOp::create(b, loc, typeOf(b.getContext(), stages), IntegerAttr(), IntegerAttr())) {}

void BoxRing::begin(OpBuilder &b, Location loc, int64_t bytes) {
  pitch = bytes;
  MbarrierInitOp::create(b, loc, ring);
}

Value BoxRing::barrierOf(OpBuilder &b, Location loc, Value stage) {
  return StageOp::create(b, loc, typeOf(b.getContext(), 1), ring, stage, pitch);
}

/// A branch of one thread, and no predicates: what stands behind it is computed by that thread's uniform registers.
static scf::IfOp branchOfOne(OpBuilder &b, Location loc, Value condition) {
  Value acts = IsFirstThreadOp::create(b, loc);
  if (condition)
    acts = arith::AndIOp::create(b, loc, condition, acts);
  return scf::IfOp::create(b, loc, acts, /*withElseRegion=*/false);
}

static int64_t bytesOf(ArrayRef<BoxTarget> targets) {
  int64_t bytes = 0;
  for (const BoxTarget &target : targets)
    bytes += cast<SharedType>(target.ring.getType()).getTileBytes();
  return bytes;
}

void BoxRing::copy(OpBuilder &b, Location loc, const BoxCopies &copies, Value stage) {
  auto branch = branchOfOne(b, loc, copies.condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  expect(b, loc, bytesOf(copies.targets), stage);
  start(b, loc, copies.targets, stage);
}

void BoxRing::copyWithLate(OpBuilder &b, Location loc, const BoxCopies &own, const BoxCopies &late, Value stage) {
  auto branch = branchOfOne(b, loc, late.condition);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  int64_t lateBytes = bytesOf(late.targets);
  auto which = scf::IfOp::create(b, loc, own.condition, /*withElseRegion=*/true);
  b.setInsertionPointToStart(which.thenBlock());
  expect(b, loc, bytesOf(own.targets) + lateBytes, stage);
  start(b, loc, own.targets, stage);
  b.setInsertionPointToStart(which.elseBlock());
  expect(b, loc, lateBytes, stage);
  b.setInsertionPointAfter(which);
  start(b, loc, late.targets, stage);
}

void BoxRing::expect(OpBuilder &b, Location loc, int64_t bytes, Value stage) {
  MbarrierExpectOp::create(b, loc, barrierOf(b, loc, stage), b.getI64IntegerAttr(bytes));
}

void BoxRing::start(OpBuilder &b, Location loc, ArrayRef<BoxTarget> targets, Value stage) {
  Value barrier = barrierOf(b, loc, stage);
  for (const BoxTarget &target : targets) {
    auto ring = cast<SharedType>(target.ring.getType());
    auto type = SharedType::get(b.getContext(), 1, ring.getShape(), ring.getElementType(), ring.getLayout());
    Value tile = StageOp::create(b, loc, type, target.ring, stage, pitch);
    SmallVector<Value> coordinates = llvm::map_to_vector(
        target.mapped->coordinates, [&](Value each) { return target.mapping->lookupOrDefault(each); });
    copyParts(b, loc, *target.box, target.mapped->map, coordinates, tile, barrier);
  }
}

void BoxRing::wait(OpBuilder &b, Location loc, Value stage, Value parity) {
  MbarrierWaitOp::create(b, loc, barrierOf(b, loc, stage), parity);
}

void BoxRing::end(OpBuilder &b, Location loc, ValueRange next) {
  MbarrierInvalOp::create(b, loc, ring, next);
  DeallocOp::create(b, loc, ring);
}

} // namespace weft::warp
