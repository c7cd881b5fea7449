// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-read-late: tiles that one product by multiply-adds takes are read right before it.
//
//   %v = warp.load_shared %t                      warp.store_shared %p, %u
//   warp.store_shared %p, %u                      %q = warp.load_shared %u
//   %q = warp.load_shared %u               ─▶     %v = warp.load_shared %t
//   %d = tile.dot %q, %v, %c                      %d = tile.dot %q, %v, %c
//
// A thread takes whole rows and columns of its operands, which it would have to hold; where nothing stands between read
// and product, its code reads them a few elements at a time. What the block has written itself, and last, is read first,
// so that the barrier that it waits at stands before both. Barriers are inserted later.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPREADLATE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct ReadLate : weft::warp::impl::WarpReadLateBase<ReadLate> {
  void runOnOperation() override;
};
} // namespace

/// Whether a read may go past an op: it neither writes the read's memory nor lets other threads do so. The end of that
/// memory's life goes along.
static bool mayPass(LoadSharedOp load, Operation *op) {
  if (isa<LoadSharedOp, AllocOp, DeallocOp, AsyncWaitOp>(op))
    return true;
  if (auto store = dyn_cast<StoreSharedOp>(op))
    return allocationOf(store.getShared()) != allocationOf(load.getShared());
  return isMemoryEffectFree(op);
}

/// The read of an operand that nothing else takes and that may be as late as the product; null where it is none.
static LoadSharedOp movableRead(tile::DotOp dot, Value operand) {
  auto load = operand.getDefiningOp<LoadSharedOp>();
  if (!load || !load->hasOneUse() || load->getBlock() != dot->getBlock())
    return {};
  for (Operation *op = load->getNextNode(); op != dot; op = op->getNextNode())
    if (!mayPass(load, op))
      return {};
  return load;
}

/// What last writes a read's memory before it in its block; null where nothing there does.
static Operation *lastWriteOf(LoadSharedOp load) {
  Operation *last = nullptr;
  for (Operation *user : allocationOf(load.getShared()).getUsers())
    if (isa<StoreSharedOp>(user) && user->getBlock() == load->getBlock() && user->isBeforeInBlock(load) &&
        (!last || last->isBeforeInBlock(user)))
      last = user;
  return last;
}

/// Whether one read comes first of two: its memory was written later.
static bool isFirst(LoadSharedOp read, LoadSharedOp other) {
  Operation *written = lastWriteOf(read), *otherWritten = lastWriteOf(other);
  return written && (!otherWritten || otherWritten->isBeforeInBlock(written));
}

void ReadLate::runOnOperation() {
  getOperation().walk([](tile::DotOp dot) {
    SmallVector<LoadSharedOp, 2> reads;
    for (Value operand : {dot.getA(), dot.getB()})
      if (LoadSharedOp load = movableRead(dot, operand))
        reads.push_back(load);
    if (reads.size() == 2 && isFirst(reads[1], reads[0]))
      std::swap(reads[0], reads[1]);
    for (LoadSharedOp load : reads) {
      load->moveBefore(dot);
      for (Operation *user : allocationOf(load.getShared()).getUsers())
        if (isa<DeallocOp>(user) && user->getBlock() == dot->getBlock() && user->isBeforeInBlock(dot))
          user->moveAfter(dot);
    }
  });
}
