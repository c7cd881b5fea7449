// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-keep-rings: a ring outlives an iteration of the loop around its own, so that the producer goes on.
//
//   scf.for %tile {                            %ring = warp.alloc
//     %ring = warp.alloc                       warp.mbarrier_init %ring
//     warp.mbarrier_init %ring                 scf.for %tile iter_args(%at, %turn) {
//     warp.produce {                             warp.produce {
//       copy to %ring[0]                           warp.mbarrier_wait %empty[%at], %before
//     }                                            copy to %ring[%at]
//     scf.for iter_args(0, 0) {                  }
//       use                              ─▶      scf.for iter_args(%at, %turn) {
//     }                                            use
//     warp.mbarrier_inval %ring                  }
//     store                                      store
//   }                                            scf.yield its last place and turn
//                                              }
//                                              warp.mbarrier_inval %ring
//
// A persistent kernel's producer then copies the first tiles of what comes next while the other warps still store what
// they have computed, and no warp waits at a barrier for a new ring to begin. What the inner loop carries of the ring (its
// place, its turns, what has been read) is carried on by the outer one. The first copies of an iteration go where others
// have been read: each waits as a copy of the loop's iteration that comes that much earlier would. In shared memory the
// ring lies beside whatever else the outer loop has; where there is no room for both, it stays as it is.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPKEEPRINGS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct KeepRings : weft::warp::impl::WarpKeepRingsBase<KeepRings> {
  void runOnOperation() override;
};

/// A producer's ring in an iteration of an outer loop.
struct Ring {
  scf::ForOp outer, inner;
  MbarrierInitOp init;
  MbarrierInvalOp end;
  MbarrierWaitOp wait;                // of the warps that use it
  MbarrierArriveOp arrive;            // that they have
  SmallVector<ProduceOp> first;       // the copies before the inner loop
  BarrierOp begun;                    // behind the init
  llvm::SetVector<Operation *> lives; // allocations of it and of the tiles, and their ends
  llvm::SetVector<unsigned> carried;  // what the inner loop carries of it
};
} // namespace

static constexpr StringLiteral otherForm = "its copies and waits are not of one loop inside";

/// Adds what the inner loop carries that a value of an iteration is computed from. False where it is computed from the
/// iteration's number, too, or starts as another number each time.
static bool addCarried(Value value, Ring &ring) {
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == ring.inner.getBody()) {
    if (argument == ring.inner.getInductionVar())
      return false;
    unsigned index = argument.getArgNumber() - 1;
    if (!ring.carried.insert(index))
      return true;
    return matchPattern(ring.inner.getInitArgs()[index], m_Constant()) &&
           addCarried(ring.inner.getYieldedValues()[index], ring);
  }
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != ring.inner.getBody())
    return matchPattern(value, m_Constant());
  return isPure(op) && llvm::all_of(op->getOperands(), [&](Value each) { return addCarried(each, ring); });
}

/// Finds the ops of a ring that stand in the outer loop's body, the inner loop among them.
static StringRef findOps(Ring &ring) {
  for (Operation *user : ring.init.getRing().getUsers()) {
    if (auto end = dyn_cast<MbarrierInvalOp>(user))
      ring.end = end;
    auto stage = dyn_cast<StageOp>(user);
    if (!stage)
      continue;
    for (Operation *use : stage->getUsers()) {
      if (use->getParentOfType<ProduceOp>())
        continue;
      auto wait = dyn_cast<MbarrierWaitOp>(use);
      auto arrive = dyn_cast<MbarrierArriveOp>(use);
      if ((wait && ring.wait) || (arrive && ring.arrive) || (!wait && !arrive))
        return otherForm;
      ring.wait = wait ? wait : ring.wait;
      ring.arrive = arrive ? arrive : ring.arrive;
    }
  }
  if (!ring.wait || !ring.arrive || !ring.end || ring.end->getBlock() != ring.outer.getBody())
    return otherForm;
  ring.inner = dyn_cast<scf::ForOp>(ring.wait->getParentOp());
  if (!ring.inner || ring.inner->getParentOp() != ring.outer || ring.arrive->getParentOp() != ring.inner)
    return otherForm;
  ring.begun = dyn_cast_or_null<BarrierOp>(ring.init->getNextNode());
  for (Operation *op = ring.init->getNextNode(); op && op != ring.inner; op = op->getNextNode())
    if (auto produce = dyn_cast<ProduceOp>(op))
      ring.first.push_back(produce);
  bool known = ring.begun && ring.begun.getWithProducer() && !ring.first.empty();
  return known ? StringRef() : StringRef(otherForm);
}

/// Finds the allocations of the ring and of the tiles that it stands for.
static StringRef findLives(Ring &ring) {
  SmallVector<ProduceOp> all(ring.first);
  llvm::append_range(all, ring.inner.getOps<ProduceOp>());
  bool known = true;
  auto add = [&](Value shared) {
    auto alloc = shared.getDefiningOp<AllocOp>();
    known = known && alloc && alloc->getBlock() == ring.outer.getBody();
    if (!known)
      return;
    ring.lives.insert(alloc);
    for (Operation *user : alloc->getUsers())
      if (isa<DeallocOp>(user)) {
        known = known && user->getBlock() == ring.outer.getBody();
        ring.lives.insert(user);
      }
  };
  add(ring.init.getRing());
  for (ProduceOp produce : all)
    produce.walk([&](StageOp stage) { add(stage.getRing()); });
  // Every tile of a stage must be known where it is: what is used elsewhere is another's.
  for (ProduceOp produce : ring.first)
    produce.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        known = known && (!isa<SharedType>(operand.getType()) || isa<StageOp>(op) ||
                          produce->isAncestor(operand.getParentBlock()->getParentOp()));
    });
  if (!known)
    return otherForm;
  // Rings of a loop lie among one another in the order of their allocations.
  auto lives = ring.lives.takeVector();
  llvm::sort(lives, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  ring.lives.insert(lives.begin(), lives.end());
  return {};
}

static StringRef findCarried(Ring &ring) {
  bool known = addCarried(ring.wait.getParity(), ring);
  auto addStage = [&](StageOp stage) { known = known && addCarried(stage.getIndex(), ring); };
  addStage(ring.wait.getBarrier().getDefiningOp<StageOp>());
  addStage(ring.arrive.getBarrier().getDefiningOp<StageOp>());
  for (ProduceOp produce : ring.inner.getOps<ProduceOp>())
    produce.walk([&](Operation *op) {
      if (auto stage = dyn_cast<StageOp>(op))
        addStage(stage);
      if (auto wait = dyn_cast<MbarrierWaitOp>(op))
        known = known && addCarried(wait.getParity(), ring);
    });
  // The first copies fill the ring's stages one after another.
  for (auto [number, produce] : llvm::enumerate(ring.first)) {
    const int64_t stageNumber = static_cast<int64_t>(number);
    produce.walk([&](StageOp stage) {
      APInt index;
      known = known && matchPattern(stage.getIndex(), m_ConstantInt(&index)) &&
              index.getSExtValue() == stageNumber * static_cast<int64_t>(stage.getStep());
    });
  }
  return known ? StringRef() : StringRef("where its copies go depends on the iteration");
}

// --- the code ---

/// Values of the inner loop's iterations from its first on, without running it.
namespace {
class Iterations {
public:
  Iterations(Ring &ring, OpBuilder &b) : ring(ring), b(b) {
    for (unsigned index : ring.carried)
      carried.map(ring.inner.getRegionIterArg(index), ring.inner.getInitArgs()[index]);
  }
  /// A value of this iteration.
  Value of(Value value) {
    if (Value known = carried.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (op->getBlock() != ring.inner.getBody())
      return value;
    for (Value operand : op->getOperands())
      of(operand);
    Operation *cloned = b.clone(*op, carried);
    carried.map(op->getResults(), cloned->getResults());
    return carried.lookup(value);
  }
  void advance() {
    IRMapping next;
    for (unsigned index : ring.carried)
      next.map(ring.inner.getRegionIterArg(index), of(ring.inner.getYieldedValues()[index]));
    carried = next;
  }

private:
  Ring &ring;
  OpBuilder &b;
  IRMapping carried;
};
} // namespace

/// Lets the outer loop carry on what the inner one carries of the ring.
static void carryOn(Ring &ring) {
  IRRewriter rewriter(ring.outer.getContext());
  rewriter.setInsertionPoint(ring.outer);
  SmallVector<Value> inits;
  for (unsigned index : ring.carried)
    inits.push_back(rewriter.clone(*ring.inner.getInitArgs()[index].getDefiningOp())->getResult(0));
  unsigned before = ring.outer.getNumRegionIterArgs();
  auto next = ring.outer.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return llvm::map_to_vector(ring.carried, [&](unsigned index) -> Value { return ring.inner.getResult(index); });
      });
  ring.outer = cast<scf::ForOp>(next->getOperation());
  for (auto [number, index] : llvm::enumerate(ring.carried))
    ring.inner.getInitArgsMutable()[index].set(ring.outer.getRegionIterArg(before + number));
}

/// The first copies of an iteration go where the ring is by then, when what lay there has been read.
static void placeFirst(Ring &ring) {
  OpBuilder b(ring.first.front());
  Location loc = ring.init.getLoc();
  Value stage = cast<StageOp>(ring.wait.getBarrier().getDefiningOp()).getIndex();
  // Warps that arrive an iteration late do so for another stage than that which they wait for.
  bool lags = cast<StageOp>(ring.arrive.getBarrier().getDefiningOp()).getIndex() != stage;
  Iterations iterations(ring, b);
  SmallVector<Value> places, parities;
  for (int64_t number = 0, count = ring.first.size() + lags; number < count; ++number) {
    if (number > 0)
      iterations.advance();
    places.push_back(iterations.of(stage));
    parities.push_back(iterations.of(ring.wait.getParity()));
  }
  Value one = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(1));
  for (auto [number, produce] : llvm::enumerate(ring.first)) {
    Value before = arith::XOrIOp::create(b, loc, parities[number + lags], one);
    produce.walk([&](Operation *op) {
      if (auto expect = dyn_cast<MbarrierExpectOp>(op)) {
        OpBuilder inside(op);
        MbarrierWaitOp::create(inside, op->getLoc(), expect.getBarrier(), before, /*index=*/1);
      }
    });
    Value place = places[number];
    produce.walk([&](StageOp op) { op.getIndexMutable().assign(place); });
  }
}

/// Moves what begins the ring before the outer loop, and what ends it behind.
static void moveOut(Ring &ring) {
  for (Operation *op : ring.lives)
    if (isa<AllocOp>(op))
      op->moveBefore(ring.outer);
  for (Operation *before = ring.init->getPrevNode(); isa_and_nonnull<BarrierOp, ProxyFenceOp>(before);) {
    Operation *op = std::exchange(before, before->getPrevNode());
    op->erase();
  }
  OpBuilder b(ring.outer);
  ProxyFenceOp::create(b, ring.init.getLoc());
  BarrierOp::create(b, ring.init.getLoc());
  ring.init->moveBefore(ring.outer);
  ring.begun->moveBefore(ring.outer);
  Operation *last = ring.outer;
  auto moveBehind = [&](Operation *op) {
    op->moveAfter(last);
    last = op;
  };
  if (auto barrier = dyn_cast_or_null<BarrierOp>(ring.end->getPrevNode()); barrier && !barrier.getWhere())
    moveBehind(barrier);
  moveBehind(ring.end);
  for (Operation *op : ring.lives)
    if (isa<DeallocOp>(op))
      moveBehind(op);
}

/// Whether shared memory holds the ring beside all else of the outer loop, and as many blocks as before: one where the
/// producer leaves its registers to the others.
static bool fitsBeside(Ring &ring, const TargetInfo &target) {
  auto kernel = ring.outer->getParentOfType<func::FuncOp>();
  int64_t most = sharesOf(kernel, target).consumer ? target.sharedBytesPerBlock
                                                   : mostSharedBytes(kernel, leastSharedBytes(kernel), target);
  SmallVector<std::pair<Operation *, Operation *>> back; // with what comes behind each
  for (Operation *op : ring.lives)
    back.emplace_back(op, op->getNextNode());
  for (Operation *op : ring.lives)
    isa<AllocOp>(op) ? op->moveBefore(ring.outer) : op->moveAfter(ring.outer);
  bool fits = leastSharedBytes(kernel) <= most;
  for (auto [op, next] : llvm::reverse(back))
    op->moveBefore(next);
  return fits;
}

void KeepRings::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) {
    if (init.getArrivals().size() == 2 && isa<scf::ForOp>(init->getParentOp()))
      rings.push_back(init);
  });
  if (!rings.empty())
    eraseDeadOps(kernel); // what boxes store is no longer exchanged between threads, which would take room
  for (MbarrierInitOp init : rings) {
    Ring ring;
    ring.init = init;
    ring.outer = cast<scf::ForOp>(init->getParentOp());
    StringRef hindrance;
    for (auto find : {findOps, findLives, findCarried})
      if (hindrance.empty())
        hindrance = find(ring);
    if (hindrance.empty() && !fitsBeside(ring, target))
      hindrance = "shared memory does not hold it beside the other tiles of the loop around it";
    if (!hindrance.empty()) {
      remarks::missed(remarks::keptRings, init)
          << remark::reason("the ring begins anew in each iteration of the loop around its own: {0}", hindrance);
      continue;
    }
    carryOn(ring);
    placeFirst(ring);
    moveOut(ring);
  }
}
