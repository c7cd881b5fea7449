// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A producer's ring whose loop waits for a tile, and says that it has read it, in each iteration, and what keeps it in a
// loop around that one.
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
// What the inner loop carries of the ring (its place, its turns, what has been read) is carried on by the outer one. The
// first copies of an iteration go where others have been read: each waits as a copy of the loop's iteration that comes that
// much earlier would.
#include "dialects/Warp/Transforms/Roles/KeptRing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::warp {
namespace {
struct PlainRing : KeptRing {
  scf::ForOp inner;
  MbarrierWaitOp wait;               // of the warps that use it
  MbarrierArriveOp arrive;           // that they have
  SmallVector<ProduceOp> first;      // the copies before the inner loop
  llvm::SetVector<unsigned> carried; // what the inner loop carries of it

  void keep(scf::ForOp &outer) override;
};
} // namespace

static constexpr StringLiteral otherForm = "its copies and waits are not of one loop inside";

/// Adds what the inner loop carries that a value of an iteration is computed from. False where it is computed from the
/// iteration's number, too, or starts as another number each time.
static bool addCarried(Value value, PlainRing &ring) {
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

/// Finds the ops of a ring that stand beside its init, the inner loop among them.
static StringRef findOps(PlainRing &ring) {
  if (isa<scf::IfOp>(ring.init->getParentOp()))
    return "it is begun in a branch";
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
  if (!ring.wait || !ring.arrive || !ring.end || ring.end->getBlock() != ring.init->getBlock())
    return otherForm;
  ring.inner = dyn_cast<scf::ForOp>(ring.wait->getParentOp());
  if (!ring.inner || ring.inner->getBlock() != ring.init->getBlock() || ring.arrive->getParentOp() != ring.inner)
    return otherForm;
  ring.begun = dyn_cast_or_null<BarrierOp>(ring.init->getNextNode());
  for (Operation *op = ring.init->getNextNode(); op && op != ring.inner; op = op->getNextNode())
    if (auto produce = dyn_cast<ProduceOp>(op))
      ring.first.push_back(produce);
  bool known = ring.begun && ring.begun.getWithProducer() && !ring.first.empty();
  return known ? StringRef() : StringRef(otherForm);
}

/// Finds the allocations of the ring and of the tiles that it stands for.
static StringRef findLives(PlainRing &ring) {
  SmallVector<ProduceOp> all(ring.first);
  llvm::append_range(all, ring.inner.getOps<ProduceOp>());
  Block *body = ring.init->getBlock();
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

static StringRef findCarried(PlainRing &ring) {
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

std::unique_ptr<KeptRing> findPlainRing(MbarrierInitOp init, StringRef &hindrance) {
  auto ring = std::make_unique<PlainRing>();
  ring->init = init;
  hindrance = {};
  for (auto find : {findOps, findLives, findCarried})
    if (hindrance.empty())
      hindrance = find(*ring);
  return hindrance.empty() ? std::move(ring) : nullptr;
}

// --- keeping it ---

/// Values of the inner loop's iterations from its first on, without running it.
namespace {
class Iterations {
public:
  Iterations(PlainRing &ring, OpBuilder &b) : ring(ring), b(b) {
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
  PlainRing &ring;
  OpBuilder &b;
  IRMapping carried;
};
} // namespace

/// Lets the outer loop carry on what the inner one carries of the ring.
static void carryOn(PlainRing &ring, scf::ForOp &outer) {
  IRRewriter rewriter(outer);
  SmallVector<Value> inits;
  for (unsigned index : ring.carried)
    inits.push_back(rewriter.clone(*ring.inner.getInitArgs()[index].getDefiningOp())->getResult(0));
  unsigned before = outer.getNumRegionIterArgs();
  auto next = outer.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false, [&](OpBuilder &, Location, ArrayRef<BlockArgument>) {
        return llvm::map_to_vector(ring.carried, [&](unsigned index) -> Value { return ring.inner.getResult(index); });
      });
  outer = cast<scf::ForOp>(next->getOperation());
  for (auto [number, index] : llvm::enumerate(ring.carried))
    ring.inner.getInitArgsMutable()[index].set(outer.getRegionIterArg(before + number));
}

/// The first copies of an iteration go where the ring is by then, when what lay there has been read.
static void placeFirst(PlainRing &ring) {
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

void PlainRing::keep(scf::ForOp &outer) {
  carryOn(*this, outer);
  placeFirst(*this);
  moveOut(outer);
}

} // namespace weft::warp
