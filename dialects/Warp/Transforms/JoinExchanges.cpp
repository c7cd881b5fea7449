// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-join-exchanges: conversions through shared memory that do not wait for one another share one barrier.
//
//   %a = warp.convert_layout %x                   %p = arith.mulf %y, %z
//   %u = arith.addf %a, %b                        %a = warp.convert_layout %x {warp.joined}
//   %p = arith.mulf %y, %z                ─▶      %q = warp.convert_layout %p
//   %q = warp.convert_layout %p                   %u = arith.addf %a, %b
//
// A joined one writes its scratch memory where it stands, and reads it behind the barrier of the next exchange, which
// follows it. In straight code the earlier one goes down to the later one, and what is computed from it behind both:
// arithmetic and loads from device memory may be between, no product and nothing that threads wait at. Its value is held
// meanwhile, and what is computed with it, so that only small ones go. Both then need scratch memory at once: only as much as lets a multiprocessor hold
// as many blocks as before, and only where the barriers are fewer in all. Scratch memory in bytes that others may still
// read would want another one before it.
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SharedFlow.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPJOINEXCHANGES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct JoinExchanges : weft::warp::impl::WarpJoinExchangesBase<JoinExchanges> {
  void runOnOperation() override;
};

/// The exchange that others can be joined with, and what before it is computed from them.
struct Next {
  ConvertLayoutOp exchange;
  SmallVector<Operation *> dependent;
};
} // namespace

static ConvertLayoutOp asExchange(Operation *op) {
  auto convert = dyn_cast<ConvertLayoutOp>(op);
  return convert && scratchBytes(op) > 0 ? convert : ConvertLayoutOp();
}

/// Whether a conversion takes so little that its value may as well be held until the next one's is there.
static bool isSmall(ConvertLayoutOp exchange) {
  constexpr int64_t fewRegisters = 4;
  return registersOf(exchange.getSource()) <= fewRegisters;
}

/// Whether an op makes more than may be held until the next exchange: what it takes is held then, too.
static bool makesMuch(Operation *op) {
  constexpr int64_t manyRegisters = 32;
  return llvm::any_of(op->getResults(), [](Value result) { return registersOf(result) > manyRegisters; });
}

/// Whether a conversion may go past an op: what it computes stays the same wherever, and nobody waits there.
static bool isStraight(Operation *op) {
  if (isa<MmaOp, WgmmaOp, tile::DotOp, tile::RowDotOp>(op) || scratchBytes(op) > 0)
    return false;
  auto load = dyn_cast<tile::LoadOp>(op);
  return load ? !load.getIsVolatile() : isMemoryEffectFree(op) && !isa<LoopLikeOpInterface>(op);
}

static bool dependsOn(Operation *op, const llvm::DenseSet<Operation *> &makers) {
  auto isMade = [&](Value operand) { return makers.contains(operand.getDefiningOp()); };
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), isMade) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// What the exchanges of a group, which stand one right after another, can be joined with: the next one of their block,
/// if straight code is between that does not make its value from theirs.
static std::optional<Next> nextOf(ArrayRef<ConvertLayoutOp> group) {
  if (!isSmall(group.back()))
    return std::nullopt;
  Next next;
  llvm::DenseSet<Operation *> makers;
  for (ConvertLayoutOp each : group)
    makers.insert(each);
  for (Operation *op = ConvertLayoutOp(group.back())->getNextNode(); op; op = op->getNextNode()) {
    const bool isDependent = dependsOn(op, makers);
    if (ConvertLayoutOp exchange = asExchange(op)) {
      next.exchange = exchange;
      return isDependent ? std::nullopt : std::optional(next);
    }
    if (!isStraight(op) || (isDependent && (isa<tile::LoadOp>(op) || makesMuch(op))))
      return std::nullopt;
    if (isDependent) {
      makers.insert(op);
      next.dependent.push_back(op);
    }
  }
  return std::nullopt;
}

/// Moves a group to its next exchange, and what is computed from it behind that.
static void join(ArrayRef<ConvertLayoutOp> group, const Next &next) {
  Operation *last = next.exchange;
  for (ConvertLayoutOp each : group)
    each->moveBefore(last);
  for (Operation *op : next.dependent) {
    op->moveAfter(last);
    last = op;
  }
}

/// How often threads wait at the barriers of exchanges and for tiles' places: what is in a loop counts as often as that is
/// likely to run.
static int64_t barriersOf(func::FuncOp kernel, const TargetInfo &target) {
  constexpr int64_t trips = 8;
  placeShared(kernel, target);
  llvm::SetVector<Operation *> waiting;
  walkSharedFlow(kernel.getBody(), {[&](Operation *op, Unfinished) { waiting.insert(op); }, [](auto &, auto &) {}});
  auto runsOf = [&](Operation *op) {
    int64_t runs = 1;
    for (Operation *parent = op->getParentOp(); parent != kernel; parent = parent->getParentOp())
      runs *= isa<LoopLikeOpInterface>(parent) ? trips : 1;
    return runs;
  };
  int64_t total = 0;
  for (Operation *op : waiting)
    total += runsOf(op);
  kernel.walk([&](ConvertLayoutOp op) { total += asExchange(op) && !op->hasAttr(joinedAttrName) ? runsOf(op) : 0; });
  return total;
}

namespace {
/// Joins exchanges of a kernel as long as it takes no more than `most` bytes of shared memory, and fewer barriers.
class Joiner {
public:
  Joiner(func::FuncOp kernel, const TargetInfo &target)
      : kernel(kernel), target(target), most(mostSharedBytes(kernel, leastSharedBytes(kernel), target)),
        barriers(barriersOf(kernel, target)) {}
  void joinIn(Block &block);

private:
  bool isBetter();

  func::FuncOp kernel;
  const TargetInfo &target;
  int64_t most, barriers;
};
} // namespace

bool Joiner::isBetter() {
  if (leastSharedBytes(kernel) > most)
    return false;
  int64_t fewer = barriersOf(kernel, target);
  if (fewer >= barriers)
    return false;
  barriers = fewer;
  return true;
}

void Joiner::joinIn(Block &block) {
  SmallVector<ConvertLayoutOp> group;
  for (Operation *op = &block.front(); op; op = op->getNextNode()) {
    ConvertLayoutOp exchange = asExchange(op);
    if (!exchange)
      continue;
    group.push_back(exchange);
    std::optional<Next> next = nextOf(group);
    if (next)
      exchange->setAttr(joinedAttrName, UnitAttr::get(op->getContext()));
    if (next && isBetter()) {
      join(group, *next);
      continue;
    }
    exchange->removeAttr(joinedAttrName);
    group.clear();
  }
}

void JoinExchanges::runOnOperation() {
  func::FuncOp kernel = getOperation();
  SmallVector<Block *> blocks;
  kernel.walk([&](Block *block) {
    auto canBeJoined = [](Operation &op) {
      ConvertLayoutOp exchange = asExchange(&op);
      return exchange && nextOf(exchange);
    };
    if (llvm::any_of(*block, canBeJoined))
      blocks.push_back(block);
  });
  if (blocks.empty())
    return;
  const TargetInfo *target = TargetInfo::of(kernel);
  if (!target)
    return signalPassFailure();
  if (leastSharedBytes(kernel) > target->sharedBytesPerBlock)
    return; // which warp-allocate-shared refuses
  Joiner joiner(kernel, *target);
  for (Block *block : blocks)
    joiner.joinIn(*block);
  kernel.walk([](Operation *op) { // places that memory was given to count barriers
    op->removeAttr(scratchAttrName);
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      alloc.removeOffsetAttr();
      alloc.removePitchAttr();
    }
  });
}
