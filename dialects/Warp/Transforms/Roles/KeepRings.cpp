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
// ring lies beside whatever else the outer loop has; where there is no room for both, it stays as it is. Rings of loops
// whose products run late are of another form (LateRing.h).
#include "compiler/Support/Remarks.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/LateRing.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

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
struct Ring : KeptRing {
  scf::ForOp outer, inner;
  MbarrierWaitOp wait;               // of the warps that use it
  MbarrierArriveOp arrive;           // that they have
  SmallVector<ProduceOp> first;      // the copies before the inner loop
  llvm::SetVector<unsigned> carried; // what the inner loop carries of it
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
  Block *body = ring.outer.getBody();
  bool known = ring.addLife(ring.init.getRing(), {body});
  for (ProduceOp produce : all)
    produce.walk([&](StageOp stage) { known = known && ring.addLife(stage.getRing(), {body}); });
  // Every tile of a stage must be known where it is: what is used elsewhere is another's.
  for (ProduceOp produce : ring.first)
    produce.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        known = known && (!isa<SharedType>(operand.getType()) || isa<StageOp>(op) ||
                          produce->isAncestor(operand.getParentBlock()->getParentOp()));
    });
  if (!known)
    return otherForm;
  ring.orderLives();
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

/// Where a ring that is not kept stands at its start.
static void startAnew(func::FuncOp kernel) {
  kernel.walk([](MbarrierInvalOp end) { end.getNextMutable().clear(); });
  kernel.walk([](RingStartOp start) {
    OpBuilder b(start);
    auto i32 = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, start.getLoc(), b.getI32IntegerAttr(value));
    };
    Value zero = i32(0);
    start->replaceAllUsesWith(ValueRange{zero, i32(start.getBefore()), zero});
    start->erase();
  });
}

/// The loop around a ring, but for branches.
static scf::ForOp loopAround(MbarrierInitOp init) {
  Operation *parent = init->getParentOp();
  while (isa<scf::IfOp>(parent))
    parent = parent->getParentOp();
  return dyn_cast<scf::ForOp>(parent);
}

/// Why a ring does not outlive an iteration of the loop around its own; empty where it does.
static StringRef keep(MbarrierInitOp init, scf::ForOp outer, const TargetInfo &target) {
  constexpr StringLiteral noRoom = "shared memory does not hold it beside the other tiles of the loop around it";
  LateRing late;
  if (StringRef hindrance = findLateRing(init, late); hindrance.empty()) {
    if (!late.fits(outer, outer, target))
      return noRoom;
    keepLateRing(late, outer);
    return {};
  }
  Ring ring;
  ring.init = init;
  ring.outer = outer;
  for (auto find : {findOps, findLives, findCarried})
    if (StringRef hindrance = find(ring); !hindrance.empty())
      return hindrance;
  if (!ring.fits(outer, outer, target))
    return noRoom;
  carryOn(ring);
  placeFirst(ring);
  ring.moveOut(ring.outer);
  return {};
}

void KeepRings::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) {
    if (init.getArrivals().size() == 2 && loopAround(init))
      rings.push_back(init);
  });
  if (!rings.empty())
    eraseDeadOps(kernel); // what boxes store is no longer exchanged between threads, which would take room
  for (MbarrierInitOp init : rings)
    if (StringRef hindrance = keep(init, loopAround(init), target); !hindrance.empty())
      remarks::missed(remarks::keptRings, init)
          << remark::reason("the ring begins anew in each iteration of the loop around its own: {0}", hindrance);
  startAnew(kernel);
}
