// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LayoutMoves.h.
//
//   scf.for .. (%state in lanes of [1, 32])              scf.for .. (%state in lanes of [32, 1])
//     %p = arith.mulf %state, %row             ─▶          %p = arith.mulf %state, %row
//     tile.reduce %p over axis 1, by shuffles              tile.reduce %p over axis 1, in registers
//
//   %x in lanes of [2, 16], registers of [8, 1]          %x in registers of [8, 1], lanes of [2, 16]
//   tile.scan %x over axis 0, of strided registers  ─▶   tile.scan %x over axis 0, neighbours one after another
//
//   %x in lanes of [8, 2], registers of [4, 1]           %x exchanged: lanes of [16, 1], registers of [2, 2]
//   tile.split %x                              ─▶        tile.split %x, without lanes that have one half alone
#include "compiler/Conversion/TileToWarp/LayoutMoves.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/MapVector.h"
#include <algorithm>

using namespace mlir;
using llvm::SmallVector;
using weft::warp::InDim;
using weft::warp::LayoutAttr;
using weft::warp::LinearLayout;

namespace weft {

/// A layout with lanes beside `axis` in place of those along it, but for `kept` bits of them, as far as registers lie
/// beside it; these take what lanes had: what is reduced along the axis is then brought together in registers. None
/// where there is nothing to exchange. Along the axis a lane has pieces of a vector's size, beside those of others.
static std::optional<LinearLayout> withLanesBeside(unsigned axis, const LinearLayout &layout, size_t kept) {
  auto isAlong = [&](uint32_t basis) { return layout.delinearize(basis)[axis] != 0; };
  SmallVector<uint32_t> registers, beside, along, lanes;
  for (uint32_t basis : layout.bases(InDim::Register))
    (isAlong(basis) || basis == 0 ? registers : beside).push_back(basis);
  for (uint32_t basis : layout.bases(InDim::Lane))
    (isAlong(basis) ? along : lanes).push_back(basis);
  llvm::sort(along);
  const size_t moved = std::min(beside.size(), along.size() - std::min(kept, along.size()));
  if (moved == 0)
    return std::nullopt;
  constexpr size_t ofVector = 2; // bits
  const size_t first = std::min(moved, ofVector), left = along.size() - moved;
  std::rotate(along.begin() + first, along.begin() + first + left, along.end()); // what lanes keep goes last
  llvm::append_range(lanes, ArrayRef(along).drop_front(moved));
  llvm::append_range(lanes, ArrayRef(beside).take_front(moved));
  // Neighbours in neighbouring lanes; those that repeat others behind them.
  llvm::sort(lanes, [](uint32_t a, uint32_t b) { return a - 1 < b - 1; });
  LinearLayout other(layout.shape());
  auto append = [&](InDim dim, ArrayRef<uint32_t> bases) {
    for (uint32_t basis : bases)
      other.append(dim, basis);
  };
  append(InDim::Register, ArrayRef(along).take_front(moved));
  append(InDim::Register, registers);
  append(InDim::Register, ArrayRef(beside).drop_front(moved));
  append(InDim::Lane, lanes);
  append(InDim::Warp, layout.bases(InDim::Warp));
  append(InDim::Block, layout.bases(InDim::Block));
  return other;
}

SmallVector<Preferred> movesOfReductions(func::FuncOp function, const LayoutPlan &plan, MayMove mayMove) {
  llvm::MapVector<LayoutAttr, std::pair<unsigned, SmallVector<Operation *>>>
      found; // the first one's axis, and what runs
  function.walk([&](tile::ReduceOp reduce) {
    LayoutAttr own = plan.running.lookup(reduce);
    if (own && own.getLayout().rank() > 1 && reduce->getParentOfType<LoopLikeOpInterface>())
      found.try_emplace(own, reduce.getAxis(), SmallVector<Operation *>()).first->second.second.push_back(reduce);
  });
  function.walk([&](tile::LoadOp load) {
    auto entry = found.find(tensorOf(load.getResult()) ? plan.own.lookup(load.getResult()) : LayoutAttr());
    if (entry != found.end() && mayMove(load, plan))
      entry->second.second.push_back(load);
  });
  constexpr size_t most = 3; // bits of lanes that are kept along the axis
  SmallVector<Preferred> moves;
  for (auto &[own, together] : found)
    for (size_t kept = 0; kept <= most; ++kept)
      if (std::optional<LinearLayout> other = withLanesBeside(together.first, own.getLayout(), kept)) {
        Preferred &move = moves.emplace_back();
        for (Operation *op : together.second)
          move[op] = plan.rules.attr(*other);
      }
  return moves;
}

/// Tiles of one layout to another: loads, and what scans and reduces them, as which lies what is compared or counted
/// and not loaded.
static Preferred moveOfTiles(func::FuncOp function, LayoutAttr own, const LinearLayout &other, const LayoutPlan &plan,
                             MayMove mayMove) {
  Preferred move;
  function.walk([&](Operation *op) {
    auto load = dyn_cast<tile::LoadOp>(op);
    const bool isLoad = load && tensorOf(load.getResult()) && plan.own.lookup(load.getResult()) == own;
    if (isLoad ? mayMove(load, plan) : isa<tile::ScanOp, tile::ReduceOp>(op) && plan.running.lookup(op) == own)
      move[op] = plan.rules.attr(other);
  });
  return move;
}

/// A layout whose registers have the lowest bits beside `axis` of those that registers and warps have there. None where it
/// is so.
static std::optional<LinearLayout> withRowsTogether(unsigned axis, const LinearLayout &layout) {
  auto isBeside = [&](uint32_t basis) { return basis && layout.delinearize(basis)[axis] == 0; };
  SmallVector<uint32_t> beside;
  for (InDim dim : {InDim::Register, InDim::Warp})
    llvm::copy_if(layout.bases(dim), std::back_inserter(beside), isBeside);
  llvm::sort(beside);
  LinearLayout other(layout.shape());
  auto next = beside.begin();
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim)) {
      const bool isMoved = (dim == InDim::Register || dim == InDim::Warp) && isBeside(basis);
      other.append(dim, isMoved ? *next++ : basis);
    }
  return other == layout ? std::nullopt : std::optional(other);
}

SmallVector<Preferred> movesOfRows(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                   MayMove mayMove) {
  bool storesApart = false;
  function.walk([&](tile::StoreOp store) {
    LayoutAttr layout = plan.running.lookup(store);
    storesApart |= layout && layout.getLayout().rank() == 1 && axes.lookup(store.getPtr()).contiguity.front() == 1;
  });
  if (!storesApart)
    return {};
  llvm::MapVector<LayoutAttr, Preferred> moves;
  function.walk([&](tile::ReduceOp reduce) {
    LayoutAttr own = plan.running.lookup(reduce);
    if (!own || own.getLayout().rank() != 2 || moves.count(own))
      return;
    std::optional<LinearLayout> other = withRowsTogether(reduce.getAxis(), own.getLayout());
    if (!other)
      return;
    moves[own] = moveOfTiles(function, own, *other, plan, mayMove);
  });
  return llvm::map_to_vector(moves, [](auto &each) { return std::move(each.second); });
}

std::optional<LinearLayout> withNeighboursInRegisters(unsigned axis, const LinearLayout &layout) {
  constexpr InDim dims[] = {InDim::Register, InDim::Lane, InDim::Warp};
  auto isAlong = [&](uint32_t basis) { return basis && layout.delinearize(basis)[axis] != 0; };
  SmallVector<uint32_t> along;
  for (InDim dim : dims)
    llvm::copy_if(layout.bases(dim), std::back_inserter(along), isAlong);
  llvm::sort(along);
  LinearLayout other(layout.shape());
  auto next = along.begin();
  for (InDim dim : dims)
    for (uint32_t basis : layout.bases(dim))
      other.append(dim, isAlong(basis) ? *next++ : basis);
  for (uint32_t basis : layout.bases(InDim::Block))
    other.append(InDim::Block, basis);
  return other == layout ? std::nullopt : std::optional(other);
}

SmallVector<Preferred> movesOfScans(func::FuncOp function, const LayoutPlan &plan, MayMove mayMove) {
  SmallVector<Preferred> moves;
  llvm::SmallSetVector<LayoutAttr, 2> seen;
  function.walk([&](tile::ScanOp scan) {
    LayoutAttr own = plan.running.lookup(scan);
    if (!own || own.getLayout().rank() < 2 || !seen.insert(own))
      return;
    // What is scanned is joined in registers first, and once by what lies before.
    std::optional<LinearLayout> other = withNeighboursInRegisters(scan.getAxis(), own.getLayout());
    if (!other)
      return;
    moves.push_back(moveOfTiles(function, own, *other, plan, mayMove));
  });
  return moves;
}

/// A layout in which registers hold the pairs along the last axis that lanes or warps have between them, which take the
/// last register's elements instead: an exchange of half of what each holds. None where pairs lie so, or there is
/// nothing to exchange.
static std::optional<LinearLayout> withPairsInRegisters(const LinearLayout &layout) {
  ArrayRef<uint32_t> registers = layout.bases(InDim::Register);
  if (registers.empty() || registers.back() == 0 || llvm::is_contained(registers, 1u))
    return std::nullopt;
  LinearLayout other(layout.shape());
  other.append(InDim::Register, uint32_t(1));
  for (uint32_t basis : registers.drop_back())
    other.append(InDim::Register, basis);
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim))
      other.append(dim, basis == 1 ? registers.back() : basis);
  return splitLayout(other) ? std::optional(other) : std::nullopt;
}

SmallVector<Preferred> movesOfSplits(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                     const TargetInfo &target, int warps) {
  SmallVector<Preferred> exchanged, stored;
  function.walk([&](tile::SplitOp split) {
    LayoutAttr own = plan.own.lookup(split.getSource());
    if (!own || plan.running.lookup(split) == own)
      return;
    if (std::optional<LinearLayout> pairs = withPairsInRegisters(own.getLayout()))
      exchanged.emplace_back()[split] = plan.rules.attr(*pairs);
    ArrayRef<int64_t> half = tensorOf(split.getLhs()).getShape();
    function.walk([&](tile::StoreOp store) {
      RankedTensorType type = tensorOf(store.getValue());
      if (!type || type.getShape() != half)
        return WalkResult::advance();
      LinearLayout layout = coalescedLayout(accessOf(store, axes, target), warps, target);
      stored.emplace_back()[split] = plan.rules.attr(joinedLayout(layout));
      return WalkResult::interrupt();
    });
  });
  llvm::append_range(exchanged, stored);
  return exchanged;
}

} // namespace weft
