// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Roles/CopyLoop.h"

using namespace mlir;

namespace weft::warp {

static constexpr StringLiteral notOneLoop = "its waits do not stand in one loop behind its first copies";
static constexpr StringLiteral notOneBranch = "its copies do not stand in one branch of an iteration";

/// The wait for the product of the iteration before, where that goes on into the next one (LaggingProduct.h).
static WgmmaWaitOp waitForProductBefore(scf::ForOp loop) {
  for (auto wait : loop.getBody()->getOps<WgmmaWaitOp>())
    if (wait.getValues().empty())
      return wait;
  return {};
}

/// Finds the waits and the loop of one of them.
static StringRef findWaits(CopyLoop &found) {
  SmallVector<MbarrierWaitOp> waits;
  for (StageOp stage : found.stages)
    for (Operation *user : stage->getUsers())
      if (auto wait = dyn_cast<MbarrierWaitOp>(user))
        waits.push_back(wait);
  for (MbarrierWaitOp wait : waits)
    if (auto loop = dyn_cast<scf::ForOp>(wait->getParentOp())) {
      if (found.wait)
        return notOneLoop;
      found.loop = loop;
      found.wait = wait;
    }
  if (!found.loop)
    return notOneLoop;
  // With a first iteration before the loop there are last products behind it.
  for (MbarrierWaitOp wait : waits) {
    if (wait != found.wait && wait->getBlock() != found.loop->getBlock())
      return notOneLoop;
    if (wait != found.wait && wait->isBeforeInBlock(found.loop))
      found.waitOfFirst = wait;
    auto barrier = dyn_cast_or_null<BarrierOp>(wait->getNextNode());
    if (!barrier && wait == found.wait)
      if (WgmmaWaitOp before = waitForProductBefore(found.loop))
        barrier = dyn_cast<BarrierOp>(before->getNextNode());
    if (!barrier)
      return notOneBranch;
    found.read.push_back(barrier);
  }
  if (waits.size() != (found.late() ? 3 : 1))
    return notOneLoop;
  Operation *outermost = found.late() ? found.loop->getParentOp() : found.loop.getOperation();
  bool behind = outermost->getBlock() == found.init->getBlock() && (!found.late() || isa<scf::IfOp>(outermost));
  return behind ? StringRef() : StringRef(notOneLoop);
}

/// The outermost branch around an op that stands in one of `blocks`; null where there is none.
static scf::IfOp branchAround(Operation *op, ArrayRef<Block *> blocks) {
  while (auto branch = dyn_cast<scf::IfOp>(op->getParentOp())) {
    if (llvm::is_contained(blocks, branch->getBlock()))
      return branch;
    op = branch;
  }
  return {};
}

/// Finds the branches of copies.
static StringRef findCopies(CopyLoop &found) {
  Block *body = found.loop.getBody(), *before = found.init->getBlock();
  for (StageOp stage : found.stages)
    for (Operation *user : stage->getUsers()) {
      if (!isa<MbarrierExpectOp>(user))
        continue;
      scf::IfOp branch = branchAround(user, {body, found.loop->getBlock(), before});
      bool inLoop = branch && branch->getBlock() == body;
      if (!branch || branch.elseBlock() || (inLoop && found.copies && found.copies != branch))
        return notOneBranch;
      if (inLoop)
        found.copies = branch;
      else if (!llvm::is_contained(found.first, branch))
        found.first.push_back(branch);
    }
  Operation *outermost = before->findAncestorOpInBlock(*found.loop);
  for (Operation *op = found.init->getNextNode(); op != outermost; op = op->getNextNode())
    if (auto barrier = dyn_cast<BarrierOp>(op))
      found.begun = barrier;
  return found.copies && found.begun ? StringRef() : StringRef(notOneBranch);
}

/// The tile that a stage's index chooses, behind transpositions; null where it is no stage of a ring.
static StageOp stageOf(Value shared) { return tileViewed(shared).getDefiningOp<StageOp>(); }

/// Finds the last op that reads the iteration's tiles. The reason where the loop reads others, or copies by threads.
static StringRef findReads(CopyLoop &found) {
  StringRef hindrance;
  Value index = found.stage();
  auto reads = [&](Operation *op, Value shared) {
    StageOp stage = stageOf(shared);
    if (!stage || found.copies->isAncestor(op) || found.loop.isDefinedOutsideOfLoop(stage))
      return;
    if (stage.getIndex() != index)
      hindrance = "an iteration reads tiles of another one";
    Operation *here = found.loop.getBody()->findAncestorOpInBlock(*op);
    if (!found.lastRead || found.lastRead->isBeforeInBlock(here))
      found.lastRead = here;
    found.readTogether &= isa<WgmmaOp>(op);
  };
  WgmmaWaitOp ofBefore = waitForProductBefore(found.loop);
  found.loop.walk([&](Operation *op) {
    if (isa<AsyncWaitOp, AsyncCopyOp>(op))
      hindrance = "threads copy tiles beside it";
    if (auto wait = dyn_cast<WgmmaWaitOp>(op)) {
      bool carried = llvm::any_of(
          wait.getValues(), [&](Value value) { return llvm::is_contained(found.loop.getRegionIterArgs(), value); });
      if (found.late() && carried)
        ofBefore = wait;
    }
    if (auto product = dyn_cast<WgmmaOp>(op)) {
      for (Value operand : {product.getA(), product.getB()})
        if (isa<SharedType>(operand.getType()))
          reads(op, operand);
    } else if (isa<LoadSharedOp, LoadShiftedOp>(op)) {
      reads(op, op->getOperand(0));
    } else if (isa<StoreSharedOp>(op) && stageOf(op->getOperand(1))) {
      hindrance = "threads write its tiles";
    }
  });
  if (!found.lastRead)
    return "nothing reads its tiles";
  if (ofBefore) {
    found.lags = true;
    found.lastRead = ofBefore;
  }
  // A product has read when it has been waited for.
  for (Operation *op = found.lastRead; !found.lags && op; op = op->getNextNode())
    if (isa<WgmmaWaitOp>(op))
      found.lastRead = op;
  return hindrance;
}

StringRef findCopyLoop(MbarrierInitOp init, CopyLoop &found) {
  found.init = init;
  for (Operation *user : init.getRing().getUsers())
    if (auto stage = dyn_cast<StageOp>(user))
      found.stages.push_back(stage);
  for (auto find : {findWaits, findCopies})
    if (StringRef hindrance = find(found); !hindrance.empty())
      return hindrance;
  if (std::optional<APInt> count = found.loop.getStaticTripCount(); count && count->ule(found.ring().getStages()))
    return "the loop ends before its ring is filled twice";
  return findReads(found);
}

} // namespace weft::warp
