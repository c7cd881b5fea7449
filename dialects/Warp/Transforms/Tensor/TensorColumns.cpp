// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/TensorColumns.h"

#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace weft::warp {

bool TileColumns::livesWith(const TileColumns &other) const {
  return llvm::any_of(webs, [&](const auto &web) {
    return llvm::any_of(other.webs, [&](const auto &each) {
      return web.second.from <= each.second.to && each.second.from <= web.second.to;
    });
  });
}

/// Numbers of ops, in order; of what is within an op between its own two.
using Numbers = llvm::DenseMap<Operation *, std::pair<unsigned, unsigned>>;

static void number(Block &block, Numbers &numbers, unsigned &clock) {
  for (Operation &op : block) {
    const unsigned from = ++clock;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        number(inner, numbers, clock);
    numbers[&op] = {from, ++clock};
  }
}

int64_t columnsOf(Type type, int64_t m) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t registers = layoutAttrOf(tensor).getLayout().size(InDim::Register);
  return llvm::divideCeil(registers * tensor.getElementTypeBitWidth(), 32) * (tensorRows / m);
}

/// Rows of the instructions of sums; those of operands are of one kind in a kernel.
static int64_t rowsOf(Type sums) { return wgmmaGridOf(layoutAttrOf(sums).getLayout())->m; }

static llvm::MapVector<int32_t, TileColumns> findTiles(func::FuncOp kernel) {
  llvm::MapVector<int32_t, TileColumns> tiles;
  // A store to an operand's tile is of as many rows as the product that reads it.
  llvm::DenseMap<int32_t, int64_t> rowsOfOperand;
  kernel.walk([&](TensorProductOp product) {
    if (product.getFrom())
      rowsOfOperand[*product.getFrom()] = rowsOf(product.getSums());
  });
  auto add = [&](int32_t number, Type type, Operation *op) {
    TileColumns &tile = tiles[number];
    auto operand = rowsOfOperand.find(number);
    tile.count = std::max(tile.count, columnsOf(type, operand != rowsOfOperand.end() ? operand->second : rowsOf(type)));
    tile.webs[rowsOfOperand.contains(number) ? op->getBlock() : nullptr].ops.push_back(op);
  };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<TensorLoadOp>(op))
      add(load.getColumn(), load.getType(), op);
    if (auto store = dyn_cast<TensorStoreOp>(op))
      add(store.getColumn(), store.getValue().getType(), op);
    if (auto scale = dyn_cast<TensorScaleOp>(op))
      add(scale.getColumn(), scale.getBy().getType(), op);
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

/// Until where a product that its own block does not wait for may be under way: the wait for all behind the loop, or
/// branch, that it is in, or behind the one around that; the end of the kernel.
static Operation *endOfUnawaited(TensorProductOp product) {
  Operation *op = product->getParentOp();
  for (; !isa<func::FuncOp>(op->getParentOp()); op = op->getParentOp())
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (auto wait = dyn_cast<TensorWaitOp>(next); wait && wait.getPending() == 0)
        return wait;
  for (Operation *next = op; next; next = next->getNextNode())
    if (auto wait = dyn_cast<TensorWaitOp>(next); wait && wait.getPending() == 0)
      return wait;
  return op->getBlock()->getTerminator();
}

/// From where to where the ops of a web reach, in the innermost block that all of them stand under.
static void spanOps(TileWeb &web, const Numbers &numbers) {
  auto isWithin = [](Block *block) {
    return [block](Operation *op) { return block->findAncestorOpInBlock(*op) != nullptr; };
  };
  Block *block = web.ops.front()->getBlock();
  while (!llvm::all_of(web.ops, isWithin(block)))
    block = block->getParentOp()->getBlock();
  web.from = ~0u;
  for (Operation *op : web.ops) {
    auto [from, to] = numbers.at(block->findAncestorOpInBlock(*op));
    web.from = std::min(web.from, from);
    web.to = std::max(web.to, to);
  }
}

/// Whether an iteration of a loop may begin with what a tile held: whether the first op to name it there, in its block with
/// all others, does not write it anew.
static bool goesThrough(Operation *loop, ArrayRef<Operation *> ops, const Numbers &numbers) {
  Operation *first = nullptr;
  for (Operation *each : ops)
    if (loop->isProperAncestor(each) && (!first || numbers.at(each).first < numbers.at(first).first))
      first = each;
  auto product = dyn_cast<TensorProductOp>(first);
  auto isBeside = [&](Operation *each) {
    return !loop->isProperAncestor(each) || first->getBlock()->findAncestorOpInBlock(*each);
  };
  return !(isa<TensorStoreOp>(first) || (product && product.getZero())) || !llvm::all_of(ops, isBeside);
}

/// Adds what a tile is needed for beside the ops that name it: the ends of its products, and loops that it goes through.
static void addReach(TileWeb &web, const Numbers &numbers) {
  llvm::SetVector<Operation *> more;
  for (Operation *op : web.ops) {
    if (auto product = dyn_cast<TensorProductOp>(op)) {
      Operation *end = awaitedBy(product);
      more.insert(end ? end : endOfUnawaited(product));
    }
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp())
      if (isa<LoopLikeOpInterface>(parent) && !more.contains(parent) && goesThrough(parent, web.ops, numbers))
        more.insert(parent);
  }
  web.ops.append(more.begin(), more.end());
}

ColumnPlaces::ColumnPlaces(func::FuncOp kernel)
    : kernel(kernel), target(TargetInfo::ofOrDefault(kernel)),
      groups(tile::scheduleOf(kernel).warps / target.warpgroups.warps), tiles(findTiles(kernel)) {
  Numbers numbers;
  unsigned clock = 0;
  number(kernel.getBody().front(), numbers, clock);
  SmallVector<TileColumns *> order, placed;
  for (auto &[name, tile] : tiles) {
    for (auto &[block, web] : tile.webs) {
      addReach(web, numbers);
      spanOps(web, numbers);
    }
    order.push_back(&tile);
  }
  auto firstFrom = [](TileColumns *tile) { return tile->webs.front().second.from; };
  llvm::sort(order, [&](TileColumns *a, TileColumns *b) {
    return std::pair(b->count, firstFrom(a)) < std::pair(a->count, firstFrom(b));
  });
  for (TileColumns *tile : order) {
    for (TileColumns *other : placed) // in rising order of columns
      if (tile->livesWith(*other) && other->first < tile->first + tile->count)
        tile->first = std::max(tile->first, other->first + other->count);
    auto isBefore = [](TileColumns *a, TileColumns *b) { return a->first < b->first; };
    placed.insert(llvm::upper_bound(placed, tile, isBefore), tile);
    total = std::max(total, tile->first + tile->count);
  }
  constexpr int64_t least = 32; // that a block takes
  columns = std::max<int64_t>(llvm::PowerOf2Ceil(total), llvm::divideCeil(least, groups));
}

bool ColumnPlaces::fit() const { return columns * groups <= target.warpgroups.tensorColumns; }

void ColumnPlaces::set(TensorBeginOp begin) {
  Builder b(kernel.getContext());
  auto columnOf = [&](int32_t name) { return b.getI32IntegerAttr(tiles.find(name)->second.first); };
  kernel.walk([&](Operation *op) {
    if (auto load = dyn_cast<TensorLoadOp>(op))
      load.setColumnAttr(columnOf(load.getColumn()));
    if (auto store = dyn_cast<TensorStoreOp>(op))
      store.setColumnAttr(columnOf(store.getColumn()));
    if (auto scale = dyn_cast<TensorScaleOp>(op))
      scale.setColumnAttr(columnOf(scale.getColumn()));
    if (auto product = dyn_cast<TensorProductOp>(op)) {
      product.setColumnAttr(columnOf(product.getColumn()));
      if (product.getFrom())
        product.setFromAttr(columnOf(*product.getFrom()));
    }
    if (auto end = dyn_cast<TensorEndOp>(op))
      end.setColumns(columns);
  });
  begin.setColumns(columns);
}

/// Whether a block goes on asking memory for what others are to write there.
static bool mayWaitForBlocks(func::FuncOp kernel) {
  auto asks = [](Operation *op) {
    return isa<tile::LoadOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op) ? WalkResult::interrupt()
                                                                       : WalkResult::advance();
  };
  return kernel
      .walk([&](scf::WhileOp loop) {
        return loop.walk(asks).wasInterrupted() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void ColumnPlaces::keepOthersOff() {
  const int64_t blocks = target.warpgroups.tensorColumns / (columns * groups);
  const int64_t byWarps = target.maxWarpsPerProcessor / tile::scheduleOf(kernel).warps;
  if (std::min<int64_t>(byWarps, target.maxBlocksPerProcessor) <= blocks || !mayWaitForBlocks(kernel))
    return;
  constexpr int64_t granule = 128;
  const int64_t least = target.sharedBytesPerProcessor / (blocks + 1) - target.reservedSharedBytes + 1;
  auto asked = kernel->getAttrOfType<IntegerAttr>(sharedBytesAttrName);
  const int64_t bytes = std::max(asked ? asked.getInt() : 0, int64_t(llvm::alignTo(least, granule)));
  kernel->setAttr(sharedBytesAttrName, Builder(kernel.getContext()).getI64IntegerAttr(bytes));
}

void ColumnPlaces::report() {
  InFlightDiagnostic diagnostic = kernel.emitError()
                                  << "expected sums and operands of at most " << target.warpgroups.tensorColumns
                                  << " columns of tensor memory, the limit of a block on '" << StringRef(target.name)
                                  << "', but got " << total << " for each of " << groups << " warpgroups";
  for (const auto &[name, tile] : tiles)
    diagnostic.attachNote(tile.webs.front().second.ops.front()->getLoc()) << tile.count << " columns for this";
  diagnostic.attachNote() << "use smaller tiles";
}

} // namespace weft::warp
