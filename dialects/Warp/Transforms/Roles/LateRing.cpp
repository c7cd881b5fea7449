// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A producer's ring whose loop runs its second products beside the next iteration's (Warpgroups/LateProducts.h), as
// `warp-specialise` and `warp-copy-with-ring` leave it, and what keeps it in a loop around that one:
//
//   for %tile {                              warp.mbarrier_init %ring
//     warp.mbarrier_init %ring               for %tile iter_args(%place, %turn) {
//     produce k(0), and q                      produce k(0), and q, where it is read no more
//     if any iteration {                       %next = if any iteration {
//       wait; produce k(1), v(0); use            wait; produce k(1), v(0), where the tile is free; use
//       for {                                    for {
//         arrive; wait; produce; use    ─▶         arrive; wait; produce; use
//       }                                        }
//       the last products                        arrive; the last products; arrive
//     }                                        }
//     warp.mbarrier_inval %ring                store
//     store                                    yield %next
//   }                                        }
//                                            warp.mbarrier_inval %ring
//
// The ring's place and turn go on from one iteration of the outer loop to the next. The copies before the loop go where
// others have been read: each waits as a copy in the loop would. What is copied beside the first tiles, for the loop to
// read in each iteration, waits until the last iteration's first products have read it: they arrive behind the loop.
#include "dialects/Warp/Transforms/Copies/BoxRing.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/Roles/KeptRing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft::warp {
namespace {
struct LateRing : KeptRing {
  RingStartOp start;
  scf::ForOp loop;
  MbarrierArriveOp arrive;       // of the loop, for the iteration before
  MbarrierWaitOp last;           // for the tiles of the last products
  SmallVector<ProduceOp> copies; // before the loop, in the order of their iterations
  bool hasBeside = false;        // whether other tiles come with the first ones

  void keep(scf::ForOp &outer) override;

  int stages() { return cast<SharedType>(init.getRing().getType()).getStages(); }
};
} // namespace

// --- finding it ---

/// Finds the waits and arrivals of the warps that use the ring.
static bool findUses(LateRing &ring, SmallVectorImpl<MbarrierWaitOp> &waits) {
  for (Operation *user : ring.init.getRing().getUsers()) {
    if (auto start = dyn_cast<RingStartOp>(user))
      ring.start = start;
    if (auto end = dyn_cast<MbarrierInvalOp>(user))
      ring.end = end;
    if (!isa<StageOp>(user))
      continue;
    for (Operation *use : user->getUsers()) {
      if (use->getParentOfType<ProduceOp>())
        continue;
      if (auto wait = dyn_cast<MbarrierWaitOp>(use)) {
        waits.push_back(wait);
      } else if (auto arrive = dyn_cast<MbarrierArriveOp>(use); arrive && !ring.arrive) {
        ring.arrive = arrive;
      } else {
        return false;
      }
    }
  }
  return ring.start && ring.end && ring.arrive && ring.end->getBlock() == ring.init->getBlock();
}

/// The loop, and the waits for the first tiles and the last ones in the block around it.
static bool findLoop(LateRing &ring, ArrayRef<MbarrierWaitOp> waits) {
  ring.loop = dyn_cast<scf::ForOp>(ring.arrive->getParentOp());
  if (!ring.loop || waits.size() != 3)
    return false;
  bool hasFirst = false, hasOwn = false;
  for (MbarrierWaitOp wait : waits) {
    if (wait->getParentOp() == ring.loop)
      hasOwn = true;
    else if (wait->getBlock() != ring.loop->getBlock())
      return false;
    else if (wait->isBeforeInBlock(ring.loop))
      hasFirst = true;
    else
      ring.last = wait;
  }
  return hasFirst && hasOwn && ring.last;
}

/// The copies before the loop, one iteration's each.
static bool findCopies(LateRing &ring) {
  Operation *branch = ring.loop->getParentOp();
  if (!isa<scf::IfOp>(branch) || branch->getBlock() != ring.init->getBlock())
    return false;
  for (Operation *op = ring.init->getNextNode(); op && op != branch; op = op->getNextNode())
    if (auto produce = dyn_cast<ProduceOp>(op))
      ring.copies.push_back(produce);
  for (Operation *op = &ring.loop->getBlock()->front(); op != ring.loop; op = op->getNextNode())
    if (auto produce = dyn_cast<ProduceOp>(op))
      ring.copies.push_back(produce);
  ring.begun = dyn_cast_or_null<BarrierOp>(ring.init->getNextNode());
  auto isBranch = [](ProduceOp produce) { return isa<scf::IfOp>(produce.getBody().front().front()); };
  return ring.begun && ring.begun.getWithProducer() && int(ring.copies.size()) == ring.stages() &&
         llvm::all_of(ring.copies, isBranch);
}

/// Whether all who read a tile do so before the last products arrive at the ring.
static bool isReadBeforeLast(Value tile, LateRing &ring) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    if (isa<BoxCopyOp, DeallocOp>(user))
      return true;
    if (auto permute = dyn_cast<PermuteSharedOp>(user))
      return isReadBeforeLast(permute.getResult(), ring);
    Operation *here = ring.loop->getBlock()->findAncestorOpInBlock(*user);
    return here && (here == ring.loop || here->isBeforeInBlock(ring.loop));
  });
}

/// The allocations of the ring, of the tiles that it stands for, and of those that come with the first.
static bool findLives(LateRing &ring) {
  Block *block = ring.init->getBlock();
  SmallVector<Block *> blocks{block};
  for (Operation *parent = block->getParentOp(); isa<scf::IfOp>(parent); parent = parent->getParentOp())
    blocks.push_back(parent->getBlock());
  bool known = ring.addLife(ring.init.getRing(), {block});
  auto addTiles = [&](ProduceOp produce) {
    produce.walk([&](StageOp stage) { known = known && ring.addLife(stage.getRing(), {block}); });
  };
  llvm::for_each(ring.copies, addTiles);
  llvm::for_each(ring.loop.getBody()->getOps<ProduceOp>(), addTiles);
  for (ProduceOp produce : ring.copies)
    produce.walk([&](BoxCopyOp copy) {
      if (copy.getShared().getDefiningOp<StageOp>())
        return;
      known = known && produce == ring.copies.front() && isReadBeforeLast(copy.getShared(), ring) &&
              ring.addLife(copy.getShared(), blocks);
      ring.hasBeside = true;
    });
  if (known)
    ring.orderLives();
  return known;
}

std::unique_ptr<KeptRing> findLateRing(MbarrierInitOp init) {
  auto ring = std::make_unique<LateRing>();
  ring->init = init;
  SmallVector<MbarrierWaitOp> waits;
  bool found = findUses(*ring, waits) && ring->end.getNext().size() == 2 && findLoop(*ring, waits) &&
               findCopies(*ring) && findLives(*ring);
  return found ? std::move(ring) : nullptr;
}

// --- keeping it ---

/// A branch that gives some values more; `branch` is changed to it.
static SmallVector<Value> giveMore(scf::IfOp &branch, ValueRange given, ValueRange otherwise) {
  OpBuilder b(branch);
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, given.getTypes());
  auto wider = scf::IfOp::create(b, branch.getLoc(), types, branch.getCondition(), /*addThenBlock=*/false,
                                 /*addElseBlock=*/false);
  wider->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  wider.getThenRegion().takeBody(branch.getThenRegion());
  wider.getElseRegion().takeBody(branch.getElseRegion());
  if (wider.getElseRegion().empty()) {
    b.createBlock(&wider.getElseRegion());
    scf::YieldOp::create(b, branch.getLoc());
  }
  wider.thenYield()->insertOperands(wider.thenYield()->getNumOperands(), given);
  wider.elseYield()->insertOperands(wider.elseYield()->getNumOperands(), otherwise);
  unsigned before = branch.getNumResults();
  branch->replaceAllUsesWith(wider.getResults().take_front(before));
  branch->erase();
  branch = wider;
  return llvm::to_vector_of<Value>(wider.getResults().drop_front(before));
}

namespace {
/// Where a ring stands (`warp.ring_start`).
struct RingState {
  Value place, turn;
};
} // namespace

/// Lets the outer loop carry on where the ring stands.
static RingState carryOn(LateRing &ring, scf::ForOp &outer) {
  IRRewriter rewriter(outer);
  Value zero = arith::ConstantOp::create(rewriter, outer.getLoc(), rewriter.getI32IntegerAttr(0));
  const unsigned before = outer.getNumRegionIterArgs();
  auto next = outer.replaceWithAdditionalYields(
      rewriter, ValueRange{zero, zero}, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> added) { return SmallVector<Value>(added); });
  outer = cast<scf::ForOp>(next->getOperation());
  SmallVector<Value> now = llvm::to_vector_of<Value>(outer.getRegionIterArgs().drop_front(before));
  SmallVector<Value> then(ring.end.getNext());
  ring.end.getNextMutable().clear();
  for (Operation *parent = ring.init->getParentOp(); parent != outer; parent = parent->getParentOp()) {
    auto branch = cast<scf::IfOp>(parent);
    then = giveMore(branch, then, now);
    parent = branch;
  }
  Operation *yield = outer.getBody()->getTerminator();
  for (auto [index, value] : llvm::enumerate(then))
    yield->setOperand(before + index, value);
  return {now[0], now[1]};
}

/// Where the ring stands at its start is `now`.
static void startFrom(LateRing &ring, RingState now) {
  OpBuilder b(ring.start);
  Location loc = ring.start.getLoc();
  auto i32 = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); };
  const int64_t pitch = ring.start.getBefore() / (ring.stages() - 1);
  Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, now.place, i32(0));
  Value before = arith::SubIOp::create(b, loc, now.place, i32(pitch));
  Value freed = arith::SelectOp::create(b, loc, isFirst, i32(ring.start.getBefore()), before);
  ring.start->replaceAllUsesWith(ValueRange{now.place, freed, now.turn});
  ring.start->erase();
}

/// The copies before the loop go where the ring is by then, when what lay there has been read.
static void placeCopies(LateRing &ring, RingState now) {
  OpBuilder b(ring.copies.front());
  Location loc = ring.init.getLoc();
  auto barrier = cast<StageOp>(ring.last.getBarrier().getDefiningOp());
  const RingSteps steps{ring.stages(), int64_t(barrier.getStep())};
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  SmallVector<Value> places, parities;
  for (int64_t number = 0; number < steps.stages; ++number) {
    places.push_back(now.place);
    parities.push_back(arith::XOrIOp::create(b, loc, steps.parity(b, loc, now.turn), one));
    now = {steps.placeBehind(b, loc, now.place), steps.turnBehind(b, loc, now.place, now.turn)};
  }
  // What comes beside the first tiles waits for the tile of the iteration before the last: behind its own products the last
  // iteration's first ones have read. Who has arrived for that has for those before.
  const size_t covered = ring.hasBeside ? steps.stages - 2 : 0;
  for (auto [number, produce] : llvm::enumerate(ring.copies)) {
    OpBuilder inside(produce.getContext());
    inside.setInsertionPointToStart(cast<scf::IfOp>(produce.getBody().front().front()).thenBlock());
    Value place = places[number];
    produce.walk([&](StageOp stage) { stage.getIndexMutable().assign(place); });
    if (number > 0 && number <= covered)
      continue;
    const size_t read = std::max(number, covered);
    Value stage =
        StageOp::create(inside, loc, barrier.getResult().getType(), ring.init.getRing(), places[read], steps.pitch);
    MbarrierWaitOp::create(inside, loc, stage, parities[read], /*index=*/1);
  }
}

/// Warps arrive behind the loop for the last iteration's tiles, and for those of the last products.
static void arriveForLast(LateRing &ring) {
  Block *block = ring.loop->getBlock();
  Operation *done = ring.loop->getNextNode();
  while (!isa<WgmmaWaitOp>(done))
    done = done->getNextNode();
  OpBuilder b(block, std::next(done->getIterator()));
  IRMapping behind;
  behind.map(ring.loop.getRegionIterArgs(), ring.loop.getResults());
  cloneComputed(ring.arrive.getBarrier(), b, behind, ring.loop.getBody());
  b.clone(*ring.arrive, behind);
  b.setInsertionPoint(block->getTerminator());
  MbarrierArriveOp::create(b, ring.last.getLoc(), ring.last.getBarrier(), /*index=*/1, ring.arrive.getTogether());
}

void LateRing::keep(scf::ForOp &outer) {
  RingState now = carryOn(*this, outer);
  placeCopies(*this, now);
  startFrom(*this, now);
  arriveForLast(*this);
  moveOut(outer);
}

} // namespace weft::warp
