// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/TensorOrder.h"

#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include <map>

using namespace mlir;

namespace weft::warp {

/// Goes through a kernel's ops in their order with what is known before each: `step` gives what is known behind an op, and may
/// insert ops where `insert` is set. Behind regions, which may not run, what is known before them is joined to what is behind
/// each; a loop's body begins with what is known before the loop and behind the body, until one iteration more adds nothing.
/// `join` adds to what is known, and says whether that was anything.
template <typename State, typename Step, typename Join>
static State flowThrough(Block &block, State state, bool insert, Step step, Join join) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    step(op, state, insert);
    if (op.getNumRegions() == 0 || isa<ProducerOp>(op))
      continue;
    auto behindRegions = [&](const State &into, bool inserts) {
      State behind = state;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          join(behind, flowThrough(inner, into, inserts, step, join));
      return behind;
    };
    State into = state;
    if (isa<LoopLikeOpInterface>(op))
      while (join(into, behindRegions(into, /*inserts=*/false)))
        ;
    state = behindRegions(into, insert);
  }
  return state;
}

/// The same of a number, of which the greatest is known.
template <typename Step> static void countThrough(Block &block, Step step) {
  auto join = [](int &into, int from) {
    const bool grows = from > into;
    into = std::max(into, from);
    return grows;
  };
  flowThrough(block, 0, /*insert=*/true, step, join);
}

template <typename Which> static bool hasWithin(Operation &op, Which which) {
  return op.walk([&](Operation *inner) { return which(inner) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

// --- what is written between ---

/// The tile that an op writes, if it does.
static std::optional<int32_t> writtenTile(Operation *op) {
  if (auto store = dyn_cast<TensorStoreOp>(op))
    return store.getColumn();
  if (auto scale = dyn_cast<TensorScaleOp>(op))
    return scale.getColumn();
  auto product = dyn_cast<TensorProductOp>(op);
  return product ? std::optional<int32_t>(product.getColumn()) : std::nullopt;
}

bool writesBetween(Operation *first, Operation *last, std::optional<int32_t> tile) {
  auto writes = [&](Operation *op) {
    std::optional<int32_t> written = writtenTile(op);
    return written && (!tile || written == tile);
  };
  for (Operation *op = first->getNextNode(); op != last; op = op->getNextNode())
    if (hasWithin(*op, writes))
      return true;
  return false;
}

// --- what is inserted ---

static void meetBefore(Operation &op) {
  OpBuilder b(&op);
  TensorReadyOp::create(b, op.getLoc());
}

static void waitBefore(Operation *op, TensorBeginOp begin, int pending) {
  OpBuilder b(op);
  TensorWaitOp::create(b, op->getLoc(), begin.getSlots(), pending);
}

// --- where threads meet ---

static bool isTouch(Operation *op) { return isa<TensorLoadOp, TensorStoreOp, TensorScaleOp>(op); }

void insertReady(Block &block) {
  // 1 where threads may have accessed tensor memory since the last product.
  countThrough(block, [](Operation &op, int &touched, bool insert) {
    if (isTouch(&op))
      touched = 1;
    // Before a loop whose own threads touch nothing they meet once.
    bool isBeforeLoop = isa<LoopLikeOpInterface>(op) && !hasWithin(op, isTouch) &&
                        hasWithin(op, [](Operation *inner) { return isa<TensorProductOp>(inner); });
    if (!isa<TensorProductOp>(op) && !isBeforeLoop)
      return;
    if (touched && insert)
      meetBefore(op);
    touched = 0;
  });
}

// --- what products under way use ---

/// Tiles that products may still use, and how many products at least have started since the last of those.
using InUse = std::map<int32_t, int>;

/// A wait leaves what the last `pending` products use.
static void settle(InUse &used, int pending) {
  for (auto each = used.begin(); each != used.end();)
    each = each->second >= pending ? used.erase(each) : std::next(each);
}

static void start(InUse &used, TensorProductOp product) {
  for (auto &[tile, since] : used)
    ++since;
  used[product.getColumn()] = 0;
  if (product.getFrom())
    used[*product.getFrom()] = 0;
}

static bool joinUses(InUse &into, const InUse &from) {
  bool changed = false;
  for (auto [tile, since] : from) {
    auto [known, isNew] = into.insert({tile, since});
    changed |= isNew || since < known->second;
    known->second = std::min(known->second, since);
  }
  return changed;
}

void awaitBeforeStores(Block &block, TensorBeginOp begin) {
  auto step = [&](Operation &op, InUse &used, bool insert) {
    if (auto wait = dyn_cast<TensorWaitOp>(op))
      settle(used, wait.getPending());
    if (auto product = dyn_cast<TensorProductOp>(op))
      start(used, product);
    auto store = dyn_cast<TensorStoreOp>(op);
    auto known = store ? used.find(store.getColumn()) : used.end();
    if (known == used.end())
      return;
    const int pending = std::min(known->second, mostUnderWay - 1);
    if (insert)
      waitBefore(store, begin, pending);
    settle(used, pending);
  };
  flowThrough(block, InUse(), /*insert=*/true, step, joinUses);
}

// --- how many products are under way ---

void boundUnderWay(Block &block, TensorBeginOp begin) {
  countThrough(block, [&](Operation &op, int &count, bool insert) {
    if (auto wait = dyn_cast<TensorWaitOp>(op)) {
      const int pending = wait.getPending();
      if (insert)
        wait.setCount(std::max(1, count - pending));
      count = std::min(count, pending);
    }
    if (!isa<TensorProductOp>(op))
      return;
    if (count == mostUnderWay) {
      if (insert)
        waitBefore(&op, begin, mostUnderWay - 1);
      --count;
    }
    ++count;
  });
}

// A warp that has not met the others since m products waits for none before the mostUnderWay ones that came before these. Where
// the next product is of number c, that is for none before c - m - mostUnderWay: the barriers' last phases, as long as
// these are fewer than there are barriers.
void boundLead(Block &block) {
  constexpr int most = tensorBarriers - mostUnderWay;
  countThrough(block, [](Operation &op, int &count, bool insert) {
    if (isa<TensorReadyOp>(op))
      count = 0;
    if (!isa<TensorProductOp>(op))
      return;
    if (count == most) {
      if (insert)
        meetBefore(op);
      count = 0;
    }
    ++count;
  });
}

} // namespace weft::warp
