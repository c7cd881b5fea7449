// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Roles/KeptRing.h"

#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "dialects/Warp/Transforms/Scratch.h"

using namespace mlir;

namespace weft::warp {

std::unique_ptr<KeptRing> findKeptRing(MbarrierInitOp init, StringRef &hindrance) {
  if (std::unique_ptr<KeptRing> late = findLateRing(init))
    return late;
  return findPlainRing(init, hindrance);
}

bool KeptRing::addLife(Value shared, ArrayRef<Block *> blocks) {
  auto alloc = shared.getDefiningOp<AllocOp>();
  if (!alloc || !llvm::is_contained(blocks, alloc->getBlock()))
    return false;
  lives.insert(alloc);
  for (Operation *user : alloc->getUsers())
    if (isa<DeallocOp>(user)) {
      if (user->getBlock() != alloc->getBlock())
        return false;
      lives.insert(user);
    }
  return true;
}

void KeptRing::orderLives() {
  auto order = lives.takeVector();
  llvm::sort(order, [](Operation *a, Operation *b) {
    Operation *here = a->getBlock()->findAncestorOpInBlock(*b);
    return here ? a->isBeforeInBlock(here) : b->getBlock()->findAncestorOpInBlock(*a)->isBeforeInBlock(b);
  });
  lives.insert(order.begin(), order.end());
}

bool KeptRing::fits(Operation *first, Operation *last, const TargetInfo &target) {
  auto kernel = init->getParentOfType<func::FuncOp>();
  int64_t most = sharesOf(kernel, target).consumer ? target.sharedBytesPerBlock
                                                   : mostSharedBytes(kernel, leastSharedBytes(kernel), target);
  SmallVector<std::pair<Operation *, Operation *>> back; // with what comes behind each
  for (Operation *op : lives)
    back.emplace_back(op, op->getNextNode());
  for (Operation *op : lives)
    isa<AllocOp>(op) ? op->moveBefore(first) : op->moveAfter(last);
  bool fits = leastSharedBytes(kernel) <= most;
  for (auto [op, next] : llvm::reverse(back))
    op->moveBefore(next);
  return fits;
}

void KeptRing::moveOut(scf::ForOp outer) {
  for (Operation *op : lives)
    if (isa<AllocOp>(op))
      op->moveBefore(outer);
  for (Operation *before = init->getPrevNode(); isa_and_nonnull<BarrierOp, ProxyFenceOp>(before);) {
    Operation *op = std::exchange(before, before->getPrevNode());
    op->erase();
  }
  OpBuilder b(outer);
  ProxyFenceOp::create(b, init.getLoc());
  BarrierOp::create(b, init.getLoc());
  init->moveBefore(outer);
  begun->moveBefore(outer);
  Operation *last = outer;
  auto moveBehind = [&](Operation *op) {
    op->moveAfter(last);
    last = op;
  };
  if (auto barrier = dyn_cast_or_null<BarrierOp>(end->getPrevNode()); barrier && !barrier.getWhere())
    moveBehind(barrier);
  moveBehind(end);
  for (Operation *op : lives)
    if (isa<DeallocOp>(op))
      moveBehind(op);
}

} // namespace weft::warp
