// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-own-bytes: a ring in bytes of shared memory that nothing else has before begins without a wait, and one in bytes
// that nothing else has behind needs no end.
//
//   warp.proxy_fence                           warp.produce {
//   warp.barrier                                 warp.mbarrier_init %ring
//   warp.mbarrier_init %ring                   }
//   warp.barrier {withProducer}        ─▶      warp.barrier {producerArrives, withProducer}
//   ...                                        ...
//   warp.barrier
//   warp.mbarrier_inval %ring
//
// What a kernel copies first is what it waits for longest. The producer makes the barriers of the first ring itself, and
// copies at once, while the other warps still compute addresses and copy what is theirs; these wait for the barriers where
// they would have made them. Behind a kernel's last loop its warpgroups end one by one.
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPOWNBYTES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
struct OwnBytes : weft::warp::impl::WarpOwnBytesBase<OwnBytes> {
  void runOnOperation() override;
};

/// Bytes of shared memory that an op takes.
struct Taken {
  Operation *op;
  int64_t first, end;
  unsigned at; // where the op stands among all, regions nested inside their op

  bool meets(const Taken &other) const { return first < other.end && other.first < end; }
};
} // namespace

/// The tiles of all stages, and what lies between them.
static Taken takenBy(AllocOp alloc, unsigned at) {
  auto [first, end] = bytesFromFirstToLast(alloc);
  return {alloc, first, end, at};
}

namespace {
/// What a kernel's ops take of shared memory, and when.
class SharedMemory {
public:
  explicit SharedMemory(func::FuncOp kernel) {
    kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
      places[op] = ++count;
      if (auto alloc = dyn_cast<AllocOp>(op))
        taken.push_back(takenBy(alloc, count));
      else if (auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName))
        taken.push_back({op, scratch.getInt(), scratch.getInt() + scratchBytes(op), count});
    });
  }

  /// Whether what else takes these bytes does so behind an op, or, `before`, before it. All else may in a loop.
  bool isAlone(const Taken &bytes, llvm::ArrayRef<Operation *> its, Operation *op, bool before) const {
    if (op->getParentOfType<LoopLikeOpInterface>())
      return false;
    return llvm::none_of(taken, [&](const Taken &other) {
      return other.meets(bytes) && !llvm::is_contained(its, other.op) && (other.at < places.at(op)) == before;
    });
  }

private:
  llvm::DenseMap<Operation *, unsigned> places;
  SmallVector<Taken> taken;
  unsigned count = 0;
};

/// A ring of barriers, and the tiles that lie with it.
struct Ring {
  explicit Ring(MbarrierInitOp init) : init(init), barriers(takenBy(init.getRing().getDefiningOp<AllocOp>(), 0)) {
    its.push_back(barriers.op);
    bytes = barriers;
    for (AllocOp each : ringsBefore(cast<AllocOp>(barriers.op))) {
      its.push_back(each);
      Taken tiles = takenBy(each, 0);
      bytes.first = std::min(bytes.first, tiles.first);
      bytes.end = std::max(bytes.end, tiles.end);
    }
  }

  bool hasTiles() const { return its.size() > 1; }

  MbarrierInitOp init;
  SmallVector<Operation *> its;
  Taken barriers, bytes; // of the barriers, and of all
};
} // namespace

static bool isPlain(BarrierOp barrier) {
  return barrier && !barrier.getWhere() && !barrier.getWithProducer() && !barrier.getOfCluster();
}

/// Erases the barrier right before an op, with the fence before it.
static void eraseWaitBefore(Operation *op) {
  auto barrier = dyn_cast_or_null<BarrierOp>(op->getPrevNode());
  if (!isPlain(barrier))
    return;
  barrier.erase();
  if (auto fence = dyn_cast_or_null<ProxyFenceOp>(op->getPrevNode()))
    fence.erase();
}

/// Whether the warps that compute do nothing there but wait for copies, and the producer waits for nobody.
static bool isPassed(Operation *op) {
  if (isa<ProduceOp>(op))
    return !op->walk([](MbarrierWaitOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return isa<AsyncWaitOp, ProxyFenceOp, IsFirstThreadOp>(op) || (isPure(op) && op->getNumRegions() == 0);
}

/// The barrier takes the place of the next one of the warps that compute, where nothing between needs it.
static void joinWithNext(BarrierOp barrier) {
  Operation *next = barrier->getNextNode();
  while (next && isPassed(next))
    next = next->getNextNode();
  auto other = dyn_cast_or_null<BarrierOp>(next);
  if (!isPlain(other))
    return;
  barrier->moveBefore(other);
  other.erase();
}

/// The ring's barriers are made by the producer, which goes on at once.
static void beginByProducer(Ring &ring) {
  auto begun = cast<BarrierOp>(ring.init->getNextNode());
  joinWithNext(begun);
  OpBuilder b(ring.init);
  auto produce = ProduceOp::create(b, ring.init.getLoc());
  Block *body = b.createBlock(&produce.getBody());
  ring.init->moveBefore(body, body->end());
  begun.setProducerArrives(true);
}

void OwnBytes::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (weft::tile::scheduleOf(kernel).cluster > 1)
    return; // other blocks arrive at the barriers, or copy to the tiles
  SmallVector<Ring> rings;
  SmallVector<MbarrierInvalOp> ends;
  kernel.walk([&](Operation *op) {
    auto init = dyn_cast<MbarrierInitOp>(op);
    if (init && init.getRing().getDefiningOp<AllocOp>())
      rings.emplace_back(init);
    if (auto end = dyn_cast<MbarrierInvalOp>(op))
      ends.push_back(end);
  });
  if (rings.empty())
    return;
  const SharedMemory memory(kernel);
  bool hasBegun = false;
  for (Ring &ring : rings) {
    const bool begins = ring.hasTiles() && memory.isAlone(ring.bytes, ring.its, ring.init, /*before=*/true);
    auto begun = dyn_cast_or_null<BarrierOp>(ring.init->getNextNode());
    auto end = llvm::find_if(ends, [&](MbarrierInvalOp each) { return each.getRing() == ring.init.getRing(); });
    if (end != ends.end() && memory.isAlone(ring.barriers, ring.its, *end, /*before=*/false)) {
      if (ring.hasTiles() && memory.isAlone(ring.bytes, ring.its, *end, /*before=*/false))
        eraseWaitBefore(*end);
      end->erase();
    }
    if (!begins)
      continue;
    eraseWaitBefore(ring.init);
    if (begun && begun.getWithProducer() && !std::exchange(hasBegun, true))
      beginByProducer(ring);
  }
}
