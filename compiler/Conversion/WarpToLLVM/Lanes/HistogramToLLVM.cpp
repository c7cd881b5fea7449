// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.histogram: counters in shared memory, zeroed, added to by one thread for each element, and read.
//
//     st.shared.b32 [counter], 0;  bar.sync;  @inside red.shared.add.u32 [counters + 4 * value], 1;  bar.sync;
//     ld.shared.b32
//
// A value below 0 is a large unsigned one, so that one comparison tells whether it has a counter.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// Adds 1 to the counter of each element that has one, where `owner` (null: everywhere) and its mask hold.
void count(tile::HistogramOp op, Value base, int64_t bins, Emitter &e) {
  Value owner = e.isOwner(layoutOf(op.getValues().getType()));
  ArrayRef<Value> values = e.registers(op.getValues());
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  SmallVector<unsigned> holders = firstHolders(layoutOf(op.getValues().getType()));
  for (auto [index, value] : llvm::enumerate(values)) {
    if (holders[index] != index)
      continue; // another register of the thread counts this element
    Value condition = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, value, e.i32(bins));
    for (Value also : {owner, masks.empty() ? Value() : masks[index]})
      if (also)
        condition = LLVM::AndOp::create(e.b, e.loc, condition, also);
    Value bytes = LLVM::ShlOp::create(e.b, e.loc, value, e.i32(2));
    Value pointer = LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(), e.offset(base, bytes));
    e.inlineAsm("@$1 red.shared.add.u32 [$0], 1;", "r,b,~{memory}", {}, {pointer, condition}, /*sideEffects=*/true);
  }
}

LogicalResult lowerHistogram(tile::HistogramOp op, Emitter &e) {
  auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
  if (!scratch)
    return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
  const LinearLayout &result = layoutOf(op.getType());
  SharedAccess access = accessOf(result, swizzledLayout(result.shape(), 0, 4), 4);
  Value base = e.sharedPointer(scratch.getInt());
  emitSharedStore(e, base, access, Registers(*registerCount(op.getType()), e.i32(0)));
  e.barrier();
  count(op, base, result.shape()[0], e);
  e.barrier();
  e.bind(op.getResult(), emitSharedLoad(e, base, access, e.b.getI32Type()));
  return success();
}

} // namespace

void addHistogramLowerings(LoweringTable &table) { table.add<tile::HistogramOp>(lowerHistogram); }

} // namespace weft
