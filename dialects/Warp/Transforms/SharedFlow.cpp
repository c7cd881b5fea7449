// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See SharedFlow.h.
#include "dialects/Warp/Transforms/SharedFlow.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace weft::warp;

using Accesses = std::set<SharedBytes>;

static void addTile(Accesses &accesses, Value shared, bool isWrite) {
  auto alloc = allocationOf(shared).getDefiningOp<AllocOp>();
  if (alloc && alloc.getResult().getType().getStages() == 1) { // rings are not looked at
    int64_t offset = alloc.getOffset().value_or(0);
    accesses.insert({offset, offset + alloc.getResult().getType().getBytes(), isWrite});
  }
}

/// What is left after a barrier: copies and products under way.
static Accesses afterBarrier(const Accesses &pending) {
  Accesses left;
  for (const SharedBytes &access : pending)
    if (access.isUnfinished())
      left.insert(access);
  return left;
}

/// What is left after a wait: its copies have become writes of this thread, which others see after a barrier. Which
/// groups a wait leaves unfinished is the business of the pass that placed it.
static Accesses afterWait(const Accesses &pending) {
  Accesses left;
  for (SharedBytes access : pending) {
    access.isUnderWay = false;
    left.insert(access);
  }
  return left;
}

/// What is left when another product has been started: those before are one further behind.
static Accesses afterProduct(const Accesses &pending) {
  Accesses left;
  for (SharedBytes access : pending) {
    if (access.productsSince >= 0)
      access.productsSince = std::min(access.productsSince + 1, WgmmaWaitOp::mostPending);
    left.insert(access);
  }
  return left;
}

/// What is left after a wait that the last `unfinished` products may outlast: the others' reads have been this warpgroup's,
/// which others know after a barrier.
static Accesses afterProductWait(const Accesses &pending, int unfinished) {
  Accesses left;
  for (SharedBytes access : pending) {
    if (access.productsSince >= unfinished)
      access.productsSince = -1;
    left.insert(access);
  }
  return left;
}

/// What an op does to shared memory before its own barrier, if it has one.
static Accesses accessesOf(Operation *op) {
  Accesses accesses;
  if (auto load = dyn_cast<LoadSharedOp>(op))
    addTile(accesses, load.getShared(), /*isWrite=*/false);
  else if (auto shifted = dyn_cast<LoadShiftedOp>(op))
    addTile(accesses, shifted.getShared(), /*isWrite=*/false);
  else if (auto store = dyn_cast<StoreSharedOp>(op))
    addTile(accesses, store.getShared(), /*isWrite=*/true);
  else if (auto copy = dyn_cast<AsyncCopyOp>(op))
    addTile(accesses, copy.getShared(), /*isWrite=*/true);
  else if (auto boxStore = dyn_cast<BoxStoreOp>(op))
    addTile(accesses, boxStore.getShared(), /*isWrite=*/false);
  else if (auto boxWait = dyn_cast<BoxWaitOp>(op)) { // until here the tiles may be read
    for (Value tile : boxWait.getTiles())
      addTile(accesses, tile, /*isWrite=*/false);
  } else if (auto product = dyn_cast<WgmmaOp>(op)) {
    for (Value operand : {product.getA(), product.getB()})
      if (isa<SharedType>(operand.getType()))
        addTile(accesses, operand, /*isWrite=*/false);
  } else if (auto inval = dyn_cast<MbarrierInvalOp>(op)) {
    // One thread ends all barriers of a ring, before their bytes are anything else.
    if (auto ring = inval.getRing().getDefiningOp<AllocOp>()) {
      auto [first, end] = bytesFromFirstToLast(ring);
      accesses.insert({first, end, /*isWrite=*/true});
    }
  } else if (auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName))
    accesses.insert({scratch.getInt(), scratch.getInt() + scratchBytes(op), /*isWrite=*/true});
  return accesses;
}

namespace {
class Walk {
public:
  explicit Walk(const SharedFlowEvents &events) : events(events) {}
  void region(Region &region, Accesses &pending) {
    for (Block &block : region)
      for (Operation &op : llvm::make_early_inc_range(block))
        visit(op, pending);
  }

private:
  void visit(Operation &op, Accesses &pending);
  void regions(Operation &op, Accesses &pending);
  void order(Operation &op, const Accesses &own, Accesses &pending);

  const SharedFlowEvents &events;
  Accesses joined; // scratch memory that the next exchange's barrier orders
};
} // namespace

/// An scf.if: what is pending after either branch. Any other op with regions is a loop: again until nothing new arrives
/// at its start, to which accesses are only ever added.
void Walk::regions(Operation &op, Accesses &pending) {
  if (isa<scf::IfOp>(op)) {
    Accesses after;
    for (Region &branch : op.getRegions()) {
      Accesses inner = pending; // an empty region is a missing else
      region(branch, inner);
      after.insert(inner.begin(), inner.end());
    }
    pending = std::move(after);
    return;
  }
  for (size_t before = ~size_t(0); before != pending.size();) {
    before = pending.size();
    Accesses inner = pending;
    for (Region &body : op.getRegions()) {
      region(body, inner);
      // A while loop is left after its first region, a for loop after its only one.
      pending.insert(inner.begin(), inner.end());
    }
  }
}

/// Waits where an op's accesses ask for it; then tells what they meet nevertheless.
void Walk::order(Operation &op, const Accesses &own, Accesses &pending) {
  bool conflict = false;
  Unfinished before;
  for (const SharedBytes &access : own)
    for (const SharedBytes &earlier : pending)
      if (access.conflictsWith(earlier)) {
        conflict = true;
        before.copies |= earlier.isUnderWay;
        before.products |= earlier.productsSince >= 0;
      }
  if (conflict) {
    events.waits(&op, before);
    if (before.copies)
      pending = afterWait(pending);
    if (before.products)
      pending = afterProductWait(pending, /*unfinished=*/0);
    pending = afterBarrier(pending);
  }
  for (const SharedBytes &access : own)
    for (const SharedBytes &earlier : pending)
      if (access.isWrite || earlier.isWrite)
        events.meets(earlier, access);
}

/// Whether a barrier is there for the end of a ring alone, which does not come again.
static bool isOfEnd(Operation &barrier) {
  return isa_and_nonnull<MbarrierInvalOp>(barrier.getNextNode()) && !barrier.getParentOfType<LoopLikeOpInterface>();
}

void Walk::visit(Operation &op, Accesses &pending) {
  if (!events.endsOrder && isOfEnd(op))
    return;
  if (isa<BarrierOp, weft::tile::BarrierOp>(op)) {
    pending = afterBarrier(pending);
    return;
  }
  if (isa<AsyncWaitOp>(op)) {
    pending = afterWait(pending);
    return;
  }
  if (auto wait = dyn_cast<WgmmaWaitOp>(op)) {
    pending = afterProductWait(pending, wait.getPending());
    return;
  }
  Accesses own = accessesOf(&op);
  order(op, own, pending);
  if (op.hasAttr(joinedAttrName))
    joined.insert(own.begin(), own.end());
  else if (op.hasAttr(scratchAttrName)) {
    // Its own barrier between writing and reading orders everything before; what is left are its reads, and those of the
    // exchanges that it is the barrier of.
    pending = afterBarrier(pending);
    joined.insert(own.begin(), own.end());
    for (SharedBytes access : joined)
      pending.insert({access.first, access.end, /*isWrite=*/false});
    joined.clear();
    return;
  }
  if (isa<WgmmaOp>(op))
    pending = afterProduct(pending);
  for (SharedBytes access : own) {
    access.isUnderWay = isa<AsyncCopyOp>(op);
    access.productsSince = isa<WgmmaOp>(op) ? 0 : -1;
    pending.insert(access);
  }
  if (op.getNumRegions() != 0)
    regions(op, pending);
}

void weft::warp::walkSharedFlow(Region &kernel, const SharedFlowEvents &events) {
  Accesses pending;
  Walk(events).region(kernel, pending);
}
