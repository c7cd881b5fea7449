// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LateGroups.h.
//
//   warp.async_copy %q to %tile                      warp.async_copy %q to %tile
//   warp.async_commit                                warp.async_commit
//   warp.async_wait {pending = 0}                    %r = scf.if %any {
//   %x = warp.load_shared %tile                        the ring's first copies, two groups
//   warp.dealloc %tile                                 warp.async_wait {pending = 2}
//   %r = scf.if %any {                     ─▶          %x = warp.load_shared %tile
//     the ring's first copies, two groups              %r = scf.for .. { .. %x .. }
//     %r = scf.for .. { .. %x .. }                   } else {
//   }                                                  warp.async_wait {pending = 0}
//   use(%x)                                          }
//                                                    %y = warp.load_shared %tile
//                                                    use(%y)
//                                                    warp.dealloc %tile
#include "dialects/Warp/Transforms/Copies/LateGroups.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft::warp {
namespace {

/// A wait that may move, with what stands behind it.
struct LateWait {
  AsyncWaitOp wait;
  BarrierOp barrier;                      // behind it; may be null
  llvm::SetVector<Value> tiles;           // that are copied before
  SmallVector<Operation *> computed = {}; // reads of these, and what is computed of them, in order
  SmallVector<DeallocOp> freed = {};      // of the tiles
  Operation *user = nullptr;              // the first op that needs what is computed, or has it inside
  int64_t groups = 0;                     // that begin before that, in the wait's block

  bool reads(Value value) const { return value.getDefiningOp() && llvm::is_contained(computed, value.getDefiningOp()); }
  bool isUsedIn(Operation *op) const {
    return op
        ->walk([&](Operation *inside) {
          return llvm::any_of(inside->getOperands(), [&](Value value) { return reads(value); })
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  }
};
} // namespace

/// Whether an op begins a ring, or computes what copies take; `groups` counts those that it begins.
static bool startsCopies(Operation *op, int64_t &groups) {
  if (isa<AsyncCommitOp>(op)) {
    ++groups;
    return true;
  }
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    int64_t inside = 0;
    for (Region *region : {&choice.getThenRegion(), &choice.getElseRegion()})
      for (Operation &each : region->getOps())
        if (!startsCopies(&each, inside))
          return false;
    return inside == 0; // groups are of all threads
  }
  return isa<AllocOp, BarrierOp, AsyncCopyOp, tile::LoadOp>(op) || (isMemoryEffectFree(op) && op->getNumRegions() == 0);
}

/// The tiles that are copied before a wait and behind the one before.
static llvm::SetVector<Value> tilesBefore(AsyncWaitOp wait) {
  llvm::SetVector<Value> tiles;
  for (Operation *op = wait->getPrevNode(); op && !isa<AsyncWaitOp>(op); op = op->getPrevNode())
    if (auto copy = dyn_cast<AsyncCopyOp>(op))
      tiles.insert(copy.getShared());
  return tiles;
}

/// Goes on behind a wait to the first user of what is read there; false where something is in the way.
static bool follow(LateWait &late) {
  Operation *op = late.wait->getNextNode();
  while (op && isMemoryEffectFree(op) && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>())
    op = op->getNextNode();
  late.barrier = dyn_cast_or_null<BarrierOp>(op); // which else is put before what reads
  for (op = late.barrier ? op->getNextNode() : op; op && !op->hasTrait<OpTrait::IsTerminator>();
       op = op->getNextNode()) {
    if (auto read = dyn_cast<LoadSharedOp>(op); read && late.tiles.contains(read.getShared())) {
      late.computed.push_back(op);
    } else if (auto freed = dyn_cast<DeallocOp>(op); freed && late.tiles.contains(freed.getOperand())) {
      late.freed.push_back(freed);
    } else if (late.isUsedIn(op)) {
      if (isMemoryEffectFree(op) && op->getNumRegions() == 0) {
        late.computed.push_back(op);
        continue;
      }
      late.user = op;
      return true;
    } else if (!startsCopies(op, late.groups)) {
      return false;
    }
  }
  return false;
}

/// Whether nothing but what moves touches the tiles: each is read behind the wait, and freed.
static bool ownsTiles(const LateWait &late) {
  return !late.computed.empty() && late.freed.size() == late.tiles.size() && llvm::all_of(late.tiles, [&](Value tile) {
    return tile.getDefiningOp<AllocOp>() && llvm::all_of(tile.getUsers(), [&](Operation *user) {
             return isa<AsyncCopyOp, DeallocOp>(user) || llvm::is_contained(late.computed, user);
           });
  });
}

/// Whether the kernel may have the tiles beside the ring.
static bool hasRoom(const LateWait &late, func::FuncOp kernel) {
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  int64_t least = leastSharedBytes(kernel), more = 0;
  for (Value tile : late.tiles)
    more += cast<SharedType>(tile.getType()).getBytes();
  return least + more <= mostSharedBytes(kernel, least, target);
}

/// Moves what stands behind the wait, and the wait, before `place`, where `groups` younger ones are under way.
static void moveBefore(LateWait &late, Operation *place, int64_t groups) {
  late.wait.setPending(groups);
  late.wait->moveBefore(place);
  if (late.barrier)
    late.barrier->moveBefore(place);
  for (Operation *op : late.computed)
    op->moveBefore(place);
}

/// Reads again what ops of a block use, from `first` on: before the first that does, in a branch of its own where that is a
/// choice.
static void readAgain(const LateWait &late, Block::iterator first, Block *block) {
  for (Operation &op : llvm::make_range(first, block->end())) {
    if (!late.isUsedIn(&op))
      continue;
    if (auto choice = dyn_cast<scf::IfOp>(op)) {
      for (Region *region : {&choice.getThenRegion(), &choice.getElseRegion()})
        if (!region->empty())
          readAgain(late, region->front().begin(), &region->front());
      continue;
    }
    OpBuilder b(&op);
    IRMapping again;
    for (Operation *each : late.computed)
      b.clone(*each, again);
    for (Operation *each : late.computed)
      for (Value result : each->getResults())
        result.replaceUsesWithIf(again.lookup(result), [&](OpOperand &use) {
          Operation *owner = block->findAncestorOpInBlock(*use.getOwner());
          return owner && !owner->isBeforeInBlock(&op);
        });
    return;
  }
}

/// Moves a wait into a branch that starts copies; the other side waits for itself, and who reads the tiles behind both
/// reads them again. (Tensors that leave a branch do so element by element.)
static void moveInto(LateWait &late, scf::IfOp choice, Operation *place, int64_t groups) {
  if (choice.getElseRegion().empty())
    choice.getElseRegion().emplaceBlock();
  OpBuilder b = OpBuilder::atBlockBegin(choice.elseBlock());
  b.clone(*late.wait);
  if (late.barrier)
    b.clone(*late.barrier);
  if (choice.elseBlock()->empty() || !choice.elseBlock()->back().hasTrait<OpTrait::IsTerminator>()) {
    b.setInsertionPointToEnd(choice.elseBlock());
    scf::YieldOp::create(b, choice.getLoc());
  }
  readAgain(late, b.getInsertionPoint(), choice.elseBlock());
  readAgain(late, std::next(choice->getIterator()), choice->getBlock());
  Operation *last = choice;
  for (Value tile : late.tiles)
    for (Operation *user : tile.getUsers())
      if (Operation *here = choice->getBlock()->findAncestorOpInBlock(*user);
          !isa<DeallocOp>(user) && last->isBeforeInBlock(here))
        last = here;
  late.user = last;
  moveBefore(late, place, groups);
}

/// Where in a branch a wait may stand, and how many groups begin before that; null where it may not.
static std::pair<Operation *, int64_t> placeIn(scf::IfOp choice, const LateWait &late) {
  int64_t groups = 0;
  for (Operation &op : choice.thenBlock()->without_terminator()) {
    if (late.isUsedIn(&op))
      return {&op, groups};
    if (!startsCopies(&op, groups))
      break;
  }
  return {nullptr, 0};
}

void awaitGroupsLate(func::FuncOp kernel) {
  SmallVector<AsyncWaitOp> waits;
  kernel.walk([&](AsyncWaitOp wait) {
    if (wait.getPending() == 0 && isa<func::FuncOp, scf::ForOp>(wait->getParentOp()))
      waits.push_back(wait);
  });
  for (AsyncWaitOp wait : waits) {
    LateWait late{wait, {}, tilesBefore(wait)};
    if (late.tiles.empty() || !follow(late) || !ownsTiles(late))
      continue;
    if (isa<scf::ForOp>(late.user) && late.groups > 0 && hasRoom(late, kernel)) {
      moveBefore(late, late.user, late.groups);
    } else if (auto choice = dyn_cast<scf::IfOp>(late.user); choice && late.groups == 0) {
      auto [place, groups] = placeIn(choice, late);
      if (!place || groups == 0 || !hasRoom(late, kernel))
        continue;
      moveInto(late, choice, place, groups);
    } else {
      continue;
    }
    for (DeallocOp freed : llvm::reverse(late.freed))
      freed->moveAfter(late.user);
  }
}

} // namespace weft::warp
