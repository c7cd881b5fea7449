// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/BoxRing.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace weft::warp {

MappedBox mapBox(const Box &box, AsyncCopyOp copy) {
  auto kernel = copy->getParentOfType<func::FuncOp>();
  OpBuilder b(kernel.getContext());
  Location loc = copy.getLoc();
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto emitAll = [&](ArrayRef<IndexSum> sums, Type type) {
    return llvm::map_to_vector(sums, [&](const IndexSum &sum) { return sum.emit(b, loc, type); });
  };
  Value base = box.base;
  if (!box.baseOffset.isZero())
    base = tile::AddPtrOp::create(b, loc, base.getType(), base, box.baseOffset.emit(b, loc, b.getI64Type()));
  SmallVector<Value> sizes = emitAll(box.sizes, b.getI64Type()), strides = emitAll(box.strides, b.getI64Type());
  MappedBox mapped;
  mapped.map = TensorMapOp::create(b, loc, TensorMapType::get(b.getContext()), base, sizes, strides, box.box);
  b.setInsertionPoint(copy);
  mapped.coordinates = emitAll(box.coordinates, b.getI32Type());
  return mapped;
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

void BoxRing::copy(OpBuilder &b, Location loc, ArrayRef<BoxTarget> targets, IRMapping &mapping, Value stage,
                   Value condition) {
  int64_t bytes = 0;
  for (const BoxTarget &target : targets)
    bytes += cast<SharedType>(target.ring.getType()).getTileBytes();
  // A branch, and no predicates: what stands behind it is computed by one thread's uniform registers.
  Value acts = arith::AndIOp::create(b, loc, condition, IsFirstThreadOp::create(b, loc));
  auto branch = scf::IfOp::create(b, loc, acts, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value barrier = barrierOf(b, loc, stage);
  MbarrierExpectOp::create(b, loc, barrier, b.getI64IntegerAttr(bytes));
  for (const BoxTarget &target : targets) {
    auto ring = cast<SharedType>(target.ring.getType());
    auto type = SharedType::get(b.getContext(), 1, ring.getShape(), ring.getElementType(), ring.getLayout());
    Value tile = StageOp::create(b, loc, type, target.ring, stage, pitch);
    auto moved = [&](Value coordinate, int32_t distance) -> Value {
      if (distance == 0)
        return coordinate;
      return arith::AddIOp::create(b, loc, coordinate,
                                   arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(distance)));
    };
    for (const BoxPart &part : target.box->parts) {
      SmallVector<Value> coordinates =
          llvm::map_to_vector(target.mapped->coordinates, [&](Value each) { return mapping.lookupOrDefault(each); });
      coordinates[0] = moved(coordinates[0], part.along);
      coordinates[1] = moved(coordinates[1], part.row);
      BoxCopyOp::create(b, loc, target.mapped->map, coordinates, tile, barrier, b.getI64IntegerAttr(part.offset));
    }
  }
}

void BoxRing::wait(OpBuilder &b, Location loc, Value stage, Value parity) {
  MbarrierWaitOp::create(b, loc, barrierOf(b, loc, stage), parity);
}

void BoxRing::end(OpBuilder &b, Location loc) {
  MbarrierInvalOp::create(b, loc, ring);
  DeallocOp::create(b, loc, ring);
}

} // namespace weft::warp
