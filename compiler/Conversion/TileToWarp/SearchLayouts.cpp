// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A load's layout is chosen by how it walks through memory, so that narrow and wide elements of one tile lie
// differently: 16 bytes of a lane are eight bf16 or four f32. Where what is computed of them meets, one is converted,
// in a loop once an iteration:
//
//   %q = tile.load : 16x64xbf16, lanes of [1, 8]             %q = tile.load : lanes of [1, 4], two of 8 bytes
//   %g = tile.load : 16x64xf32, lanes of [1, 4]       ─▶     %g = tile.load : lanes of [1, 4]
//   scf.for {                                                scf.for {
//     %e = math.exp2 %g - ...                                  %e = math.exp2 %g - ...
//     arith.mulf %q, (converted %e)                            arith.mulf %q, %e
//
// A move of some loads is one conversion undone, from either side; it is kept if the whole plan costs less. Conversions
// of most cost are tried first. Before them, tiles of which warps have rows are tried with warps side by side, and the
// other way round: of 8 rows of 2,048 columns a lane computes 4 columns' indices and 8 rows' then, and not 32 and 1.
//
// What is reduced in loops, scanned and split are tried in other layouts, too (LayoutMoves.h).
// Then come moves that undo no conversion: all loads of one shape to the layout of one access, vectors back to how they
// lie in memory from how they are wanted, stores to where they leave no gaps in sectors. What each plan costs decides.
#include "compiler/Conversion/TileToWarp/SearchLayouts.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "compiler/Conversion/TileToWarp/LayoutCost.h"
#include "compiler/Conversion/TileToWarp/LayoutMoves.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::Log2_64;
using llvm::SmallVector;
using weft::warp::InDim;
using weft::warp::LayoutAttr;
using weft::warp::LinearLayout;

namespace weft {
namespace {

/// A value whose conversion to `wanted` costs `cost` in all.
struct Conversion {
  Value value;
  LayoutAttr wanted;
  int64_t cost;
  size_t place; // in the kernel
};

class Mover {
public:
  Mover(const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target, MayMove mayMove)
      : plan(plan), axes(axes), target(target), mayMove(mayMove) {}

  /// The loads that `value` is computed from element by element, or by joins and splits, so that it comes to lie in
  /// `layout`.
  Preferred towards(Value value, LayoutAttr layout) {
    moved.clear();
    cut.clear();
    seen.clear();
    move(value, layout);
    return moved;
  }
  /// The same, but of loads that would read more in that layout, and of scans and the like, what first takes their values,
  /// so that these are exchanged as they are loaded or computed. Empty where there are none.
  Preferred behindOthers(Value value, LayoutAttr layout) {
    towards(value, layout);
    if (!cut.empty())
      cut.insert(moved.begin(), moved.end());
    return cut;
  }

private:
  void move(Value value, LayoutAttr layout, Operation *user = nullptr, LayoutAttr ofUser = {}) {
    LayoutAttr own = tensorOf(value) ? plan.own.lookup(value) : LayoutAttr();
    if (!own || !layout || own == layout || !seen.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())) {
        move(loop.getTiedLoopInit(argument)->get(), layout);
        move(loop.getTiedLoopYieldedValue(argument)->get(), layout);
      }
      return;
    }
    Operation *op = value.getDefiningOp();
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (!mayMove(load, plan))
        return;
      if (readsNoMore(load, own.getLayout(), layout.getLayout()))
        moved[load] = layout;
      else if (own.getLayout().rank() > 1)
        cutAt(user, ofUser);
      return;
    }
    if (auto split = dyn_cast<tile::SplitOp>(op))
      return move(split.getSource(), plan.rules.attr(joinedLayout(layout.getLayout())));
    const bool isJoin = isa<tile::JoinOp>(op) && splitLayout(layout.getLayout()); // pairs are registers of a thread
    OpKind kind = kindOf(op);
    if (kind == OpKind::Fixed && !isJoin)
      cutAt(user, ofUser);
    if (isJoin || kind == OpKind::Elementwise || kind == OpKind::Reorder)
      for (OpOperand &operand : op->getOpOperands())
        move(operand.get(), plan.rules.operandLayout(op, layout, operand.getOperandNumber()), op, layout);
  }

  /// Has arithmetic run in a layout that its operands do not lie in. What a shift gives, lies as its own rule says.
  void cutAt(Operation *user, LayoutAttr layout) {
    if (user && kindOf(user) == OpKind::Elementwise && !isa<tile::ShiftOp>(user))
      cut[user] = layout;
  }

  /// Whether a load reads no more sectors in the other layout: its instructions fill as much of each, and no more warps
  /// read the same. Vectors are few sectors, of which those that an instruction leaves half are filled by others; every
  /// warp may read one in a loop, where an exchange would be two barriers an iteration, and one of fewer elements than
  /// there are threads anywhere.
  bool readsNoMore(tile::LoadOp load, const LinearLayout &own, const LinearLayout &other) const {
    Access access = accessOf(load, axes, target);
    const bool isVector = access.shape.size() == 1;
    auto repeated = [](const LinearLayout &layout) { return llvm::popcount(layout.freeBits()[InDim::Warp]); };
    const unsigned threads = own.size(InDim::Lane) * own.size(InDim::Warp);
    if (repeated(other) > repeated(own))
      return isVector && (load->getParentOfType<LoopLikeOpInterface>() || access.shape.front() < threads);
    if (isVector)
      return true;
    return bytesPerRun(other, access) >= std::min<int64_t>(bytesPerRun(own, access), target.sectorBytes);
  }

  const LayoutPlan &plan;
  const AxisAnalysis &axes;
  const TargetInfo &target;
  MayMove mayMove;
  Preferred moved, cut;
  llvm::DenseSet<Value> seen;
};

/// A layout whose warps lie along `axis` as far as registers beyond an access do, which take what warps had along
/// others. None where there is nothing to exchange.
std::optional<LinearLayout> withWarpsAlong(unsigned axis, const LinearLayout &layout, unsigned accessBits) {
  auto isAlong = [&](uint32_t basis) { return basis && layout.delinearize(basis)[axis] != 0; };
  SmallVector<uint32_t> registers(layout.bases(InDim::Register)), warps(layout.bases(InDim::Warp));
  auto wanted = llvm::find_if(llvm::drop_begin(registers, std::min<size_t>(accessBits, registers.size())), isAlong);
  bool any = false;
  for (uint32_t &warp : warps) {
    if (!warp || isAlong(warp) || wanted == registers.end())
      continue;
    std::swap(warp, *wanted);
    wanted = std::find_if(wanted + 1, registers.end(), isAlong);
    any = true;
  }
  if (!any)
    return std::nullopt;
  LinearLayout other(layout.shape());
  auto append = [&](InDim dim, ArrayRef<uint32_t> bases) {
    for (uint32_t basis : bases)
      other.append(dim, basis);
  };
  append(InDim::Register, registers);
  append(InDim::Lane, layout.bases(InDim::Lane));
  append(InDim::Warp, warps);
  append(InDim::Block, layout.bases(InDim::Block));
  return other;
}

/// The loads of each layout, with warps along one axis and along another; but those of which something is reduced, whose
/// warps lie as is best for that.
SmallVector<Preferred> movesOfWarps(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                    const TargetInfo &target, MayMove mayMove) {
  llvm::MapVector<LayoutAttr, SmallVector<tile::LoadOp>> loads;
  function.walk([&](tile::LoadOp load) {
    LayoutAttr own = tensorOf(load.getResult()) ? plan.own.lookup(load.getResult()) : LayoutAttr();
    if (own && own.getLayout().rank() > 1 && mayMove(load, plan) && reducedAxes(load.getResult()).none())
      loads[own].push_back(load);
  });
  SmallVector<Preferred> moves;
  for (auto &[own, alike] : loads) {
    int64_t width = 1;
    for (tile::LoadOp load : alike)
      width = std::max(width, accessWidth(own.getLayout(), accessOf(load, axes, target)));
    for (unsigned axis = own.getLayout().rank(); axis-- > 0;)
      if (std::optional<LinearLayout> other = withWarpsAlong(axis, own.getLayout(), Log2_64(width))) {
        Preferred &move = moves.emplace_back();
        for (tile::LoadOp load : alike)
          move[load] = plan.rules.attr(*other);
      }
  }
  return moves;
}

/// A vector's layout in which the neighbours that a thread has are neighbouring registers.
LinearLayout withNeighboursFirst(const LinearLayout &layout) {
  SmallVector<uint32_t> registers(layout.bases(InDim::Register));
  llvm::sort(registers, [](uint32_t a, uint32_t b) { return a - 1 < b - 1; }); // repetitions last
  LinearLayout sorted(layout.shape());
  for (uint32_t basis : registers)
    sorted.append(InDim::Register, basis);
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim))
      sorted.append(dim, basis);
  return sorted;
}

/// Vectors that are loaded as what they meet wants them, as they lie in memory: of 256 indices that are compared with 32
/// each lane would load 64, and most lanes the same. Or in the same threads, of which one that has several neighbours,
/// apart by the order of a product's registers, loads them at once.
SmallVector<Preferred> movesOfVectors(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                      const TargetInfo &target, int warps) {
  SmallVector<Preferred> moves;
  function.walk([&](tile::LoadOp load) {
    LayoutAttr layout = plan.given.lookup(load);
    if (!layout || layout.getLayout().rank() != 1)
      return;
    Access access = accessOf(load, axes, target);
    LayoutAttr coalesced = plan.rules.attr(coalescedLayout(access, warps, target));
    LayoutAttr sorted = plan.rules.attr(withNeighboursFirst(layout.getLayout()));
    for (LayoutAttr other : {sorted, coalesced})
      if (instructionsOf(layout.getLayout(), access, {}) > instructionsOf(other.getLayout(), access, {}))
        moves.emplace_back()[load] = other;
  });
  return moves;
}

/// Loads of elements narrower than a register, one by one as their masks want it, whose lanes take neighbours that fill
/// one: these go on, to shared memory and to arithmetic of pairs, as one, and have one row's address.
SmallVector<Preferred> movesOfWords(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                    const TargetInfo &target, int warps) {
  llvm::MapVector<LayoutAttr, Preferred> found;
  function.walk([&](tile::LoadOp load) {
    LayoutAttr own = tensorOf(load.getResult()) ? plan.own.lookup(load.getResult()) : LayoutAttr();
    if (!own || !plan.isFree(load.getPtr()))
      return;
    Access access = accessOf(load, axes, target);
    LayoutAttr words = plan.rules.attr(coalescedLayout(asWords(access), warps, target));
    if (accessWidth(own.getLayout(), access) == 1 && accessWidth(words.getLayout(), asWords(access)) > 1)
      found[own][load] = words;
  });
  return llvm::map_to_vector(found, [](auto &each) { return std::move(each.second); });
}

/// All loads of one shape in the layout that one of them, or a store, has by itself: elements that are narrow to load
/// may be wide to store, or to load a neighbour of.
SmallVector<Preferred> movesOfShapes(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                                     const TargetInfo &target, int warps, MayMove mayMove) {
  SmallVector<tile::LoadOp> loads;
  llvm::SetVector<LayoutAttr> layouts;
  function.walk([&](Operation *op) {
    if (!isa<tile::LoadOp, tile::StoreOp>(op) || !tensorOf(op->getOperand(0)))
      return;
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && !mayMove(load, plan))
      return;
    if (load)
      loads.push_back(load);
    Access access = accessOf(op, axes, target);
    layouts.insert(plan.rules.attr(coalescedLayout(access, warps, target)));
    if (load && access.shape.size() > 1)
      layouts.insert(plan.rules.attr(coalescedLayout(access, warps, target, reducedAxes(load.getResult()))));
  });
  SmallVector<Preferred> found;
  for (LayoutAttr layout : layouts) {
    Preferred move;
    for (tile::LoadOp load : loads)
      if (tensorOf(load.getResult()).getShape() == layout.getLayout().shape() &&
          plan.own.lookup(load.getResult()) != layout)
        move[load] = layout;
    if (!move.empty())
      found.push_back(std::move(move));
  }
  return found;
}

/// Stores that would take less, of vectors that leave gaps in sectors or of elements far apart, and the layout in which
/// they do.
SmallVector<std::pair<tile::StoreOp, LayoutAttr>> betterStores(func::FuncOp function, const LayoutPlan &plan,
                                                               const AxisAnalysis &axes, const TargetInfo &target,
                                                               int warps) {
  SmallVector<std::pair<tile::StoreOp, LayoutAttr>> found;
  function.walk([&](tile::StoreOp store) {
    LayoutAttr layout = plan.running.lookup(store);
    if (!layout || (plan.isFree(store.getValue()) && plan.isFree(store.getPtr())))
      return;
    Access access = accessOf(store, axes, target);
    LayoutAttr coalesced = plan.rules.attr(coalescedLayout(access, warps, target));
    KnownCosts &known = plan.rules.knownCosts();
    if (accessCost(store, coalesced, axes, target, known) < accessCost(store, layout, axes, target, known))
      found.emplace_back(store, coalesced);
  });
  return found;
}

/// The conversions of a plan, the dearest first.
SmallVector<Conversion> conversionsOf(func::FuncOp function, const LayoutPlan &plan) {
  SmallVector<Conversion> found;
  function.walk([&](Operation *op) {
    for (Value value : op->getResults()) {
      LayoutAttr own = tensorOf(value) ? plan.own.lookup(value) : LayoutAttr();
      int64_t cost = own ? conversionsOf(value, plan) * tripsOf(op) : 0;
      if (cost > 0)
        for (LayoutAttr wanted : plan.layoutsOf(value))
          if (wanted != own)
            found.push_back({value, wanted, cost, found.size()});
    }
  });
  llvm::sort(found, [](const Conversion &a, const Conversion &b) {
    return std::pair(-a.cost, a.place) < std::pair(-b.cost, b.place);
  });
  return found;
}

/// The two ways to undo a conversion: the value comes to lie as it is wanted, or what it meets as it lies.
SmallVector<Preferred, 2> movesFor(const Conversion &conversion, const LayoutPlan &plan, Mover mover) {
  SmallVector<Preferred, 2> moves{mover.towards(conversion.value, conversion.wanted)};
  LayoutAttr own = plan.own.lookup(conversion.value);
  for (Operation *user : conversion.value.getUsers())
    if (kindOf(user) == OpKind::Elementwise && plan.running.lookup(user) == conversion.wanted)
      for (Value operand : user->getOperands())
        if (operand != conversion.value)
          moves.push_back(mover.towards(operand, own));
  return moves;
}

/// All conversions from one layout to another undone at once, in either way: where several values that share loads are
/// converted, to move those of one alone would only move the exchange.
SmallVector<Preferred> movesOfAll(func::FuncOp function, const LayoutPlan &plan, const Mover &mover) {
  llvm::MapVector<std::pair<LayoutAttr, LayoutAttr>, std::array<Preferred, 2>> groups;
  for (const Conversion &conversion : conversionsOf(function, plan)) {
    std::array<Preferred, 2> &ways = groups[{plan.own.lookup(conversion.value), conversion.wanted}];
    for (auto [i, move] : llvm::enumerate(movesFor(conversion, plan, mover)))
      ways[i > 0].insert(move.begin(), move.end());
  }
  SmallVector<Preferred> moves;
  for (auto &[between, ways] : groups)
    llvm::copy_if(ways, std::back_inserter(moves), [](const Preferred &move) { return !move.empty(); });
  return moves;
}

/// All that is computed element by element computed in the layout in which it is stored or meets others: what is loaded or
/// scanned otherwise is exchanged once, and not each of several results.
SmallVector<Preferred> movesBehindOthers(func::FuncOp function, const LayoutPlan &plan, Mover mover) {
  llvm::MapVector<LayoutAttr, Preferred> groups;
  for (const Conversion &conversion : conversionsOf(function, plan)) {
    Preferred move = mover.behindOthers(conversion.value, conversion.wanted);
    groups[conversion.wanted].insert(move.begin(), move.end());
  }
  SmallVector<Preferred> moves;
  for (auto &[wanted, move] : groups)
    if (!move.empty())
      moves.push_back(std::move(move));
  return moves;
}

/// The axis along which a thread has neighbours.
std::optional<unsigned> axisOfNeighbours(const LinearLayout &layout) {
  for (unsigned axis = 0; axis < layout.rank() && !layout.bases(InDim::Register).empty(); ++axis) {
    SmallVector<int64_t> next(layout.rank(), 0);
    next[axis] = 1;
    if (layout.shape()[axis] > 1 && layout.bases(InDim::Register).front() == layout.linearize(next))
      return axis;
  }
  return std::nullopt;
}

/// What is loaded in vectors along one axis and stored in vectors along another, with blocks along both in the registers of
/// either side, which rows of a tile a thread has being all the same to memory: an exchange then takes vectors, too, where
/// else one of its sides goes element by element. Those of 16 bits `ldmatrix` turns.
SmallVector<Preferred> movesOfTransposes(func::FuncOp function, const LayoutPlan &plan, Mover mover) {
  SmallVector<Preferred> moves;
  for (const Conversion &conversion : conversionsOf(function, plan)) {
    const LinearLayout &own = plan.own.lookup(conversion.value).getLayout(), &wanted = conversion.wanted.getLayout();
    std::optional<unsigned> from = axisOfNeighbours(own), to = axisOfNeighbours(wanted);
    if (!from || !to || from == to || tensorOf(conversion.value).getElementTypeBitWidth() == 16)
      continue;
    Preferred move;
    if (std::optional<LinearLayout> other = withNeighboursInRegisters(*to, own))
      move = mover.towards(conversion.value, plan.rules.attr(*other));
    if (std::optional<LinearLayout> other = withNeighboursInRegisters(*from, wanted))
      function.walk([&](tile::StoreOp store) {
        if (plan.running.lookup(store) == conversion.wanted)
          move[store] = plan.rules.attr(*other);
      });
    if (!move.empty())
      moves.push_back(std::move(move));
  }
  return moves;
}

/// A plan that moves make better, one after another.
class Search {
public:
  Search(func::FuncOp function, LayoutPlan plan, Preferred given, const AxisAnalysis &axes, const TargetInfo &target,
         llvm::function_ref<LayoutPlan(Preferred)> replan)
      : plan(std::move(plan)), function(function), axes(axes), target(target), replan(replan), given(std::move(given)),
        cost(costOf(function, this->plan, axes, target)) {}

  LayoutPlan plan;

  /// Takes a move if all that the kernel then executes is less; of `ties`, if it is no more.
  bool isBetter(const Preferred &move, bool ties = false) {
    Preferred with = given;
    auto isVector = [](const auto &each) { return each.second.getLayout().rank() == 1; };
    if (!llvm::all_of(move, isVector)) // vectors follow what they meet, as `replan` moves them
      for (auto [load, layout] : given)
        if (isVector(std::pair(load, layout)))
          with.erase(load);
    for (auto [load, layout] : move)
      with[load] = layout;
    LayoutPlan other = replan(with);
    int64_t otherCost = costOf(function, other, axes, target);
    // An estimate of rows that may lie anywhere is not trusted with much more traffic.
    constexpr int64_t mostTimes = 3;
    if (otherCost >= cost + ties ||
        sectorsRead(function, other, axes, target) > mostTimes * sectorsRead(function, plan, axes, target))
      return false;
    plan = std::move(other);
    cost = otherCost;
    given = std::move(with);
    return true;
  }
  void tryEach(const SmallVector<Preferred> &moves, bool ties = false) {
    constexpr size_t most = 6;
    for (const Preferred &move : ArrayRef(moves).take_front(most))
      isBetter(move, ties);
  }

private:
  func::FuncOp function;
  const AxisAnalysis &axes;
  const TargetInfo &target;
  llvm::function_ref<LayoutPlan(Preferred)> replan;
  Preferred given;
  int64_t cost;
};

} // namespace

LayoutPlan searchTiles(func::FuncOp function, LayoutPlan plan, Preferred given, const AxisAnalysis &axes,
                       const TargetInfo &target, llvm::function_ref<LayoutPlan(Preferred)> replan, MayMove mayMove) {
  auto mayMoveTile = [&](Operation *load, const LayoutPlan &plan) {
    const bool isTile =
        llvm::count_if(tensorOf(load->getResult(0)).getShape(), [](int64_t size) { return size > 1; }) > 1;
    return isTile && mayMove(load, plan);
  };
  SmallVector<Preferred> moves = movesOfScans(function, plan, mayMoveTile);
  llvm::append_range(moves, movesOfAll(function, plan, Mover(plan, axes, target, mayMoveTile)));
  if (moves.empty())
    return plan;
  auto withVectors = [&, vectors = given](Preferred with) {
    with.insert(vectors.begin(), vectors.end());
    return replan(std::move(with));
  };
  Search search(function, std::move(plan), std::move(given), axes, target, withVectors);
  search.tryEach(moves);
  return std::move(search.plan);
}

LayoutPlan searchLayouts(func::FuncOp function, LayoutPlan given, Preferred preferred, const AxisAnalysis &axes,
                         const TargetInfo &target, llvm::function_ref<LayoutPlan(Preferred)> replan, MayMove mayMove) {
  const int warps = tile::scheduleOf(function).warps;
  Search search(function, std::move(given), std::move(preferred), axes, target, replan);
  const LayoutPlan &plan = search.plan;
  search.tryEach(movesOfWarps(function, plan, axes, target, mayMove));
  search.tryEach(movesOfReductions(function, plan, mayMove));
  search.tryEach(movesOfRows(function, plan, axes, mayMove), /*ties=*/true); // strides that nobody knows may be small
  search.tryEach(movesOfScans(function, plan, mayMove));
  search.tryEach(movesOfSplits(function, plan, axes, target, warps));
  search.tryEach(movesOfAll(function, plan, Mover(plan, axes, target, mayMove)));
  int tries = 12; // plans of a kernel, each of which takes a walk or two
  for (bool better = true; better && tries > 0;) {
    better = false;
    for (const Conversion &conversion : conversionsOf(function, plan)) {
      for (const Preferred &move : movesFor(conversion, plan, Mover(plan, axes, target, mayMove)))
        if (!better && !move.empty() && tries-- > 0)
          better = search.isBetter(move);
      if (better)
        break;
    }
  }
  search.tryEach(movesBehindOthers(function, plan, Mover(plan, axes, target, mayMove)));
  search.tryEach(movesOfShapes(function, plan, axes, target, warps, mayMove));
  search.tryEach(movesOfWords(function, plan, axes, target, warps));
  search.tryEach(movesOfVectors(function, plan, axes, target, warps));
  // What is stored is loaded so that it lies as it is stored, or is exchanged, as it is loaded or stored.
  SmallVector<Preferred> loads, stores;
  for (auto [store, layout] : betterStores(function, plan, axes, target, warps)) {
    Mover mover(plan, axes, target, mayMove);
    for (Preferred move : {mover.towards(store.getValue(), layout), mover.behindOthers(store.getValue(), layout)})
      if (!move.empty() && !llvm::is_contained(loads, move))
        loads.push_back(std::move(move));
  }
  search.tryEach(loads);
  search.tryEach(movesOfTransposes(function, plan, Mover(plan, axes, target, mayMove)));
  for (auto [store, layout] : betterStores(function, plan, axes, target, warps))
    stores.emplace_back()[store] = layout;
  search.tryEach(stores);
  return std::move(search.plan);
}

} // namespace weft
