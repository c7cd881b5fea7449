// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/TensorColumns.h"

#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace weft::warp {

// --- where threads meet ---

static bool hasProduct(Operation *op) {
  return op->walk([](TensorProductOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static bool isTouchedByItself(Operation *op) {
  return op->walk([](Operation *inner) {
             return isa<TensorLoadOp, TensorStoreOp>(inner) ? WalkResult::interrupt() : WalkResult::advance();
           })
      .wasInterrupted();
}

/// Whether threads may have accessed tensor memory since the last product behind a block, if they may have before it, or
/// `before`. With `insert`, ops are inserted.
static bool isTouchedBehind(Block &block, bool before, bool insert) {
  bool touched = before;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<TensorLoadOp, TensorStoreOp>(op))
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

// --- where tiles lie ---

namespace {
/// A tile of a warpgroup's columns, and the ops from the first to the last of which it is needed.
struct Columns {
  int64_t count = 0, first = 0;
  SmallVector<Operation *> ops;
  unsigned from = 0, to = 0;

  bool livesWith(const Columns &other) const { return from <= other.to && other.from <= to; }
};

using Tiles = llvm::MapVector<int32_t, Columns>;

/// Numbers of ops, in order; of what is within an op between its own two.
using Numbers = llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>>;
} // namespace

static void number(Block &block, Numbers &numbers, unsigned &clock) {
  for (Operation &op : block) {
    const unsigned from = ++clock;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner, numbers, clock);
    numbers[&op] = {from, ++clock};
  }
}

/// Columns of 32 bits that a warpgroup's part of a value takes.
static int64_t columnsOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t registers = layoutAttrOf(tensor).getLayout().size(InDim::Register);
  return llvm::divideCeil(registers * tensor.getElementTypeBitWidth(), 32);
}

static Tiles findTiles(func::FuncOp kernel) {
  Tiles tiles;
  auto add = [&](int32_t number, Type type, Operation *op) {
    Columns &tile = tiles[number];
    tile.count = std::max(tile.count, columnsOf(type));
    tile.ops.push_back(op);
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<TensorLoadOp>(op))
      add(load.getColumn(), load.getType(), op);
    if (auto store = dyn_cast<TensorStoreOp>(op))
      add(store.getColumn(), store.getValue().getType(), op);
    if (auto product = dyn_cast<TensorProductOp>(op)) {
      add(product.getColumn(), product.getSums(), op);
      if (product.getFrom())
        add(*product.getFrom(), *product.getStored(), op);
    }
  });
  return tiles;
}

/// The wait, in the block of a product, that it is over behind; null where there is none.
static Operation *awaitedBy(TensorProductOp product) {
  int started = 0;
  for (Operation *op = product->getNextNode(); op; op = op->getNextNode()) {
    if (auto wait = dyn_cast<TensorWaitOp>(op); wait && int(wait.getPending()) <= started)
      return wait;
    started += isa<TensorProductOp>(op);
  }
  return nullptr;
}

/// The outermost loop around an op, or the op.
static Operation *outermostLoop(Operation *op) {
  Operation *outermost = op;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
    if (isa<LoopLikeOpInterface>(parent))
      outermost = parent;
  return outermost;
}

/// The last op, in the order of numbers, of a block that something stands under.
static void spanOps(Columns &tile, const Numbers &numbers) {
  auto isWithin = [](Block *block) {
    return [block](Operation *op) { return block->findAncestorOpInBlock(*op) != nullptr; };
  };
  Block *block = tile.ops.front()->getBlock();
  while (!llvm::all_of(tile.ops, isWithin(block)))
    block = block->getParentOp()->getBlock();
  tile.from = ~0u;
  for (Operation *op : tile.ops) {
    auto [from, to] = numbers.at(block->findAncestorOpInBlock(*op));
    tile.from = std::min(tile.from, from);
    tile.to = std::max(tile.to, to);
  }
}

/// Adds what a tile is needed for beside the ops that name it: the ends of its products, and iterations that it goes
/// through, since they begin with what it held.
static void addReach(Columns &tile, const Numbers &numbers) {
  SmallVector<Operation *> more;
  for (Operation *op : tile.ops)
    if (auto product = dyn_cast<TensorProductOp>(op)) {
      Operation *end = awaitedBy(product);
      more.push_back(end ? end : outermostLoop(product));
    }
  llvm::append_range(tile.ops, more);
  // In each loop's body the first to touch it writes it anew, or the tile goes through the loop.
  for (Operation *op : llvm::to_vector(tile.ops))
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp()) {
      if (!isa<LoopLikeOpInterface>(parent))
        continue;
      Operation *first = nullptr;
      for (Operation *each : tile.ops)
        if (parent->isProperAncestor(each) && (!first || numbers.at(each).first < numbers.at(first).first))
          first = each;
      auto product = dyn_cast<TensorProductOp>(first);
      bool anew = first->getParentOp() == parent &&
                  (isa<TensorStoreOp>(first) || (product && product.getZero()));
      if (!anew)
        tile.ops.push_back(parent);
    }
}

LogicalResult placeColumns(func::FuncOp kernel, TensorBeginOp begin) {
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  Numbers numbers;
  unsigned clock = 0;
  number(kernel.getBody().front(), numbers, clock);
  Tiles tiles = findTiles(kernel);
  SmallVector<Columns *> order;
  for (auto &[name, tile] : tiles) {
    addReach(tile, numbers);
    spanOps(tile, numbers);
    order.push_back(&tile);
  }
  llvm::sort(order, [](Columns *a, Columns *b) { return std::tie(b->count, a->from) < std::tie(a->count, b->from); });
  int64_t total = 0;
  SmallVector<Columns *> placed;
  for (Columns *tile : order) {
    for (Columns *other : placed) // in rising order of columns
      if (tile->livesWith(*other) && other->first < tile->first + tile->count)
        tile->first = std::max(tile->first, other->first + other->count);
    placed.insert(llvm::upper_bound(placed, tile, [](Columns *a, Columns *b) { return a->first < b->first; }), tile);
    total = std::max(total, tile->first + tile->count);
  }
  const int64_t groups = tile::scheduleOf(kernel).warps / target.warpgroups.warps, least = 32;
  const int64_t columns = std::max<int64_t>(llvm::PowerOf2Ceil(total), llvm::divideCeil(least, groups));
  if (columns * groups > target.warpgroups.tensorColumns) {
    return kernel.emitError() << "expected sums and operands of at most " << target.warpgroups.tensorColumns
                              << " columns of tensor memory, the limit of a block on '" << StringRef(target.name)
                              << "', but got " << total << " for each of " << groups
                              << " warpgroups; use smaller tiles";
  }
  Builder b(kernel.getContext());
  auto columnOf = [&](int32_t name) { return b.getI32IntegerAttr(tiles.find(name)->second.first); };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<TensorLoadOp>(op))
      load.setColumnAttr(columnOf(load.getColumn()));
    if (auto store = dyn_cast<TensorStoreOp>(op))
      store.setColumnAttr(columnOf(store.getColumn()));
    if (auto product = dyn_cast<TensorProductOp>(op)) {
      product.setColumnAttr(columnOf(product.getColumn()));
      if (product.getFrom())
        product.setFromAttr(columnOf(*product.getFrom()));
    }
    if (auto end = dyn_cast<TensorEndOp>(op))
      end.setColumns(columns);
  });
  begin.setColumns(columns);
  return success();
}

} // namespace weft::warp
