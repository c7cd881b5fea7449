// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-insert-proxy-fences: what threads write to shared memory is made known to matrix instructions of warpgroups, and
// to bulk copies that store boxes of it.
//
// These read shared memory through the asynchronous proxy. A write reaches them by a fence in the thread that made it,
// or that waited for its copy, and a barrier behind. Barriers are in their places by now: before each of them goes a
// fence where the thread may have written, since the last fence, a tile that one of them reads.
//
//   warp.async_wait {pending = 0}             warp.async_wait {pending = 0}
//   warp.barrier                       ─▶     warp.proxy_fence
//   %d = warp.wgmma %s, %t, %c                warp.barrier
//                                             %d = warp.wgmma %s, %t, %c
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPINSERTPROXYFENCES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
struct InsertProxyFences : weft::warp::impl::WarpInsertProxyFencesBase<InsertProxyFences> {
  void runOnOperation() override;
};

/// What a thread may have done since its last fence, on some path.
struct State {
  bool written = false; // a tile, by stores or by copies that it has waited for
  bool copying = false; // a tile, by copies that are under way
  bool operator==(const State &other) const { return written == other.written && copying == other.copying; }
  void merge(State other) {
    written |= other.written;
    copying |= other.copying;
  }
};

class Walk {
public:
  explicit Walk(llvm::DenseSet<Value> tiles) : tiles(std::move(tiles)) {}
  void walk(Region &region, State &state) {
    for (Block &block : region)
      for (Operation &op : block)
        visit(op, state);
  }

private:
  void visit(Operation &op, State &state);
  void visitRegions(Operation &op, State &state);
  bool isRead(Value shared) const;

  llvm::DenseSet<Value> tiles; // that the instructions read
};
} // namespace

bool Walk::isRead(Value shared) const { return tiles.contains(allocationOf(shared)); }

/// As in `warp-insert-barriers`: branches meet behind an `scf.if`; a loop is walked until its end adds nothing.
void Walk::visitRegions(Operation &op, State &state) {
  if (isa<scf::IfOp>(op)) {
    State after;
    for (Region &branch : op.getRegions()) {
      State inner = state; // an empty region is a missing else
      walk(branch, inner);
      after.merge(inner);
    }
    state = after;
    return;
  }
  State before;
  do {
    before = state;
    State inner = state;
    for (Region &body : op.getRegions()) {
      walk(body, inner);
      state.merge(inner); // a while loop is left after its first region, a for loop after its only one
    }
  } while (!(before == state));
}

void Walk::visit(Operation &op, State &state) {
  bool ordersBlock = isa<BarrierOp, weft::tile::BarrierOp>(op) || op.hasAttr(scratchAttrName);
  if (ordersBlock && state.written) {
    OpBuilder b(&op);
    ProxyFenceOp::create(b, op.getLoc());
    state.written = false;
  }
  if (isa<ProxyFenceOp>(op))
    state.written = false;
  else if (auto store = dyn_cast<StoreSharedOp>(op))
    state.written |= isRead(store.getShared());
  else if (auto copy = dyn_cast<AsyncCopyOp>(op))
    state.copying |= isRead(copy.getShared());
  else if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
    state.written |= state.copying;
    state.copying &= wait.getPending() != 0;
  }
  if (op.getNumRegions() != 0)
    visitRegions(op, state);
}

void InsertProxyFences::runOnOperation() {
  llvm::DenseSet<Value> tiles;
  getOperation().walk([&](WgmmaOp product) {
    for (Value operand : {product.getA(), product.getB()})
      if (isa<SharedType>(operand.getType()))
        tiles.insert(allocationOf(operand));
  });
  getOperation().walk([&](BoxStoreOp store) { tiles.insert(allocationOf(store.getShared())); });
  if (tiles.empty())
    return;
  State state;
  Walk(std::move(tiles)).walk(getOperation().getBody(), state);
}
