// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/TensorOrder.h"

#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include <map>

using namespace mlir;

namespace weft::warp {

// --- where threads meet ---

static bool hasProduct(Operation *op) {
  return op->walk([](TensorProductOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static bool isTouchedByItself(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<TensorLoadOp, TensorStoreOp, TensorScaleOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether threads may have accessed tensor memory since the last product behind a block, if they may have before it, or
/// `before`. With `insert`, ops are inserted.
static bool isTouchedBehind(Block &block, bool before, bool insert) {
  bool touched = before;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<TensorLoadOp, TensorStoreOp, TensorScaleOp>(op))
      touched = true;
    if (isa<TensorProductOp>(op)) {
      if (touched && insert) {
        OpBuilder b(&op);
        TensorReadyOp::create(b, op.getLoc());
      }
      touched = false;
    }
    if (op.getNumRegions() == 0 || isa<ProducerOp>(op))
      continue;
    // Before a loop whose own threads touch nothing they meet once.
    if (touched && isa<LoopLikeOpInterface>(op) && hasProduct(&op) && !isTouchedByItself(&op)) {
      if (insert) {
        OpBuilder b(&op);
        TensorReadyOp::create(b, op.getLoc());
      }
      touched = false;
    }
    // A region may run again behind itself, or not at all.
    bool into = touched;
    if (isa<LoopLikeOpInterface>(op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          into |= isTouchedBehind(inner, touched, /*insert=*/false);
    bool behind = touched;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        behind |= isTouchedBehind(inner, into, insert);
    touched = behind;
  }
  return touched;
}

void insertReady(Block &block) { isTouchedBehind(block, /*before=*/false, /*insert=*/true); }

// --- what products under way use ---

namespace {
/// Tiles that products may still use, and how many products at least have started since the last of those.
using InUse = std::map<int32_t, int>;

class StoreWaits {
public:
  explicit StoreWaits(TensorBeginOp begin) : begin(begin) {}

  /// What is in use behind a block, if `used` is before it.
  InUse behind(Block &block, InUse used, bool insert) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto wait = dyn_cast<TensorWaitOp>(op))
        settle(used, wait.getPending());
      else if (auto product = dyn_cast<TensorProductOp>(op))
        start(used, product);
      else if (auto store = dyn_cast<TensorStoreOp>(op))
        await(used, store, insert);
      else if (op.getNumRegions() != 0 && !isa<ProducerOp>(op))
        used = behindRegions(&op, std::move(used), insert);
    }
    return used;
  }

private:
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
  void await(InUse &used, TensorStoreOp store, bool insert) {
    auto known = used.find(store.getColumn());
    if (known == used.end())
      return;
    const int pending = std::min(known->second, mostUnderWay - 1);
    if (insert) {
      OpBuilder b(store);
      TensorWaitOp::create(b, store.getLoc(), begin.getSlots(), pending);
    }
    settle(used, pending);
  }
  InUse behindRegions(Operation *op, InUse used, bool insert) {
    auto join = [](InUse &into, const InUse &from) {
      bool changed = false;
      for (auto [tile, since] : from) {
        auto [known, isNew] = into.insert({tile, since});
        changed |= isNew || since < known->second;
        known->second = std::min(known->second, since);
      }
      return changed;
    };
    auto through = [&](const InUse &into, bool inserts) {
      InUse behindAll = used;
      for (Region &region : op->getRegions())
        for (Block &inner : region)
          join(behindAll, behind(inner, into, inserts));
      return behindAll;
    };
    InUse into = used;
    if (isa<LoopLikeOpInterface>(op))
      while (join(into, through(into, /*inserts=*/false)))
        ;
    return through(into, insert);
  }

  TensorBeginOp begin;
};
} // namespace

void awaitBeforeStores(Block &block, TensorBeginOp begin) { StoreWaits(begin).behind(block, {}, /*insert=*/true); }

// --- how many products are under way ---

/// Counts ops through a kernel's regions: what `step` makes of a count at each op of `block`, in order, with `insert` where
/// it may insert ops. A loop's body begins with the most that it may begin with.
static int countThrough(Block &block, int before, bool insert, llvm::function_ref<int(Operation &, int, bool)> step) {
  int count = before;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    count = step(op, count, insert);
    if (op.getNumRegions() == 0 || isa<ProducerOp>(op))
      continue;
    auto behindRegions = [&](int into, bool inserts) {
      int behind = count;
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          behind = std::max(behind, countThrough(inner, into, inserts, step));
      return behind;
    };
    int into = count;
    if (isa<LoopLikeOpInterface>(op)) // until one iteration more adds none
      for (int behind; into < (behind = behindRegions(into, /*inserts=*/false));)
        into = behind;
    count = behindRegions(into, insert);
  }
  return count;
}

void boundUnderWay(Block &block, TensorBeginOp begin) {
  countThrough(block, /*before=*/0, /*insert=*/true, [&](Operation &op, int count, bool insert) {
    if (auto wait = dyn_cast<TensorWaitOp>(op)) {
      const int pending = wait.getPending();
      if (insert)
        wait.setCount(std::max(1, count - pending));
      return std::min(count, pending);
    }
    if (!isa<TensorProductOp>(op))
      return count;
    if (count == mostUnderWay) {
      if (insert) {
        OpBuilder b(&op);
        TensorWaitOp::create(b, op.getLoc(), begin.getSlots(), mostUnderWay - 1);
      }
      --count;
    }
    return count + 1;
  });
}

// A warp that has not met the others since m products waits for none before the mostUnderWay ones that came before these. Where
// the next product is of number c, that is for none before c - m - mostUnderWay: the barriers' last phases, as long as
// these are fewer than there are barriers.
void boundLead(Block &block) {
  constexpr int most = tensorBarriers - mostUnderWay;
  countThrough(block, /*before=*/0, /*insert=*/true, [&](Operation &op, int count, bool insert) {
    if (isa<TensorReadyOp>(op))
      return 0;
    if (!isa<TensorProductOp>(op))
      return count;
    if (count == most) {
      if (insert) {
        OpBuilder b(&op);
        TensorReadyOp::create(b, op.getLoc());
      }
      count = 0;
    }
    return count + 1;
  });
}

} // namespace weft::warp
