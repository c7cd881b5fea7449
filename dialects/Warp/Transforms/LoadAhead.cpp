// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-load-ahead: what a loop still loads into registers is loaded one iteration ahead, so that what an iteration
// computes hides the latency of the next one's loads.
//
//   scf.for %i = ... {                        %x0 = tile.load f(first) masked by first < end
//     %x = tile.load f(%i)                    scf.for %i = ... iter_args(.., %x = %x0) {
//     %d = warp.mma use(%x), ...     ─▶         use(%x)
//   }                                           %y = tile.load f(%i + step) masked by %i + step < end
//                                               %d = warp.mma use(%x), ...
//                                               scf.yield .., %y
//                                             }
//
// Addresses are computed from what the loop computes without loads. An index, from which others are computed, is loaded an
// iteration further ahead than what it addresses, so that it is there when that is loaded:
//
//   %j = tile.load f(%i)                use(%x), %j1 carried   (of this iteration, and the next)
//   %x = tile.load g(%j)         ─▶     %y = tile.load g(%j1)
//   use(%x)                             %j2 = tile.load f(%i + 2·step)
//
// A number that there is no room for is loaded before the first product of its own iteration.
//
// A value is carried in registers, so that only as
// many are as a thread has room for beside what lives in the loop; the smallest first. In loops without products other
// warps hide latency as well, so that registers are only taken that leave room for those.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPLOADAHEAD
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct LoadAhead : weft::warp::impl::WarpLoadAheadBase<LoadAhead> {
  void runOnOperation() override;
};

/// The loads of a loop that go ahead, and what their addresses are computed from.
struct Loads {
  SmallVector<tile::LoadOp> ops;
  Slice slice;
};

/// A loop whose loads went ahead, and those of its next iteration that are in no branch.
struct Rewritten {
  scf::ForOp loop;
  SmallVector<tile::LoadOp> loads;
};

/// Rewrites one loop.
class LoadRewriter {
public:
  LoadRewriter(scf::ForOp loop, Loads loads)
      : loop(loop), loads(std::move(loads)), slice(inOrder(this->loads.slice, loop)), b(loop), loc(loop.getLoc()) {}
  Rewritten run();

private:
  Value isLess(Value x, Value y) {
    auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  /// The loads of an iteration whose values `mapping` has; `isInside` says whether it is run. `next`: of the one after
  /// this, each where it stands best, else all here.
  SmallVector<Value> loadFor(IRMapping &mapping, Value isInside, bool next);
  Value loadWhere(tile::LoadOp load, IRMapping &mapping, Value isInside);
  SmallVector<Value> loadInBranch(ArrayRef<tile::LoadOp> ops, IRMapping &mapping, Value isInside, bool next);
  Value masked(Type pointers, Value mask, Value isInside);
  /// What the loop carries into the next iteration, for the slice.
  IRMapping nextIteration();

  scf::ForOp loop;
  Loads loads;
  SmallVector<Operation *> slice;
  OpBuilder b;
  Location loc;
};
} // namespace

// --- finding what to load ahead ---

static bool isProduct(Operation *op) { return isa<MmaOp, WgmmaOp, tile::DotOp>(op); }

static bool hasProducts(scf::ForOp loop) {
  return loop.getBody()
      ->walk([](Operation *op) { return isProduct(op) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

/// Registers of floats that a loop computes in an iteration: what its loads are for.
static int64_t computedIn(scf::ForOp loop) {
  int64_t total = 0;
  loop.getBody()->walk([&](Operation *op) {
    for (Value operand : isa<tile::ReduceOp>(op) ? op->getOperands() : ValueRange(op->getResults()))
      if (isa<FloatType>(getElementTypeOrSelf(operand.getType())) && !isa<tile::LoadOp>(op))
        total += registersOf(operand);
  });
  return total;
}

/// How many iterations of a loop are in flight, if its author says so.
static std::optional<int64_t> stagesAsked(scf::ForOp loop) {
  auto stages = loop->getAttrOfType<IntegerAttr>(tile::numStagesAttrName);
  return stages ? std::optional(stages.getInt()) : std::nullopt;
}

/// Registers that a loop leaves for values loaded ahead, with a quarter of a thread's for addresses and counters. Without
/// products: an eighth of what there is, or up to a quarter of a thread's in all; and unless the loop's author asks for
/// iterations in flight, none where a multiprocessor holds so many warps that they hide latency, nor where an iteration
/// computes little of what it loads, so that masks and carried values would be much of it.
static int64_t registersLeft(scf::ForOp loop, const TargetInfo &target) {
  constexpr int64_t computedOfEach = 16;
  int64_t alive = mostAlive(loop, Indices::OfAccesses), most = target.registersPerThread * 3 / 4;
  if (hasProducts(loop))
    return most - alive;
  const bool isAsked = stagesAsked(loop).value_or(1) > 1;
  if (alive < target.registersPerThread / 6 && !isAsked)
    return 0;
  most = std::min(most, std::max<int64_t>(target.registersPerThread / 4, alive + alive / 8));
  return isAsked ? most - alive : std::min(most - alive, computedIn(loop) / computedOfEach);
}

/// Whether a loop stores what may be the tile that it loads next: of one argument given twice, a program in place. A
/// loop with products reads ahead of stores to other arguments all the same, as its copies to shared memory do.
static bool mayBeInPlace(tile::LoadOp load, scf::ForOp loop) {
  auto shapeOf = [](Value pointer) {
    auto type = dyn_cast<RankedTensorType>(pointer.getType());
    return type ? type.getShape() : ArrayRef<int64_t>();
  };
  return loop
      .walk([&](Operation *op) {
        std::optional<DeviceAccess> other = deviceAccessOf(op, /*warps=*/1);
        bool alike = other && other->writes && shapeOf(other->pointer) == shapeOf(load.getPtr()) &&
                     tile::pointeeTypeOf(other->pointer.getType()) == tile::pointeeTypeOf(load.getPtr().getType());
        return alike ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether a loop may run often enough for what is computed before it to pay.
static bool runsOften(scf::ForOp loop) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  return !trips || trips->ugt(2);
}

/// Whether a load has so many predicates that a branch around it costs less than what says in each of them whether
/// there is a next iteration. Words of several elements would be taken apart where the branch ends; of elements that are
/// equal, which one load reads, each would go round the loop in a register of its own.
static bool hasManyPredicates(tile::LoadOp load) {
  constexpr int64_t many = 4;
  constexpr unsigned wordBits = 32;
  auto type = load.getMask() ? dyn_cast<RankedTensorType>(load.getMask().getType()) : RankedTensorType();
  auto layout = type ? dyn_cast_or_null<LayoutAttr>(type.getEncoding()) : LayoutAttr();
  auto contiguity = load->getAttrOfType<IntegerAttr>(contiguityAttrName);
  int64_t width = contiguity ? contiguity.getInt() : 1;
  Type element = getElementTypeOrSelf(load.getType());
  bool isWhole = width == 1 || !element.isIntOrFloat() || element.getIntOrFloatBitWidth() >= wordBits;
  return layout && isWhole && registersThatDiffer(load) >= many * width;
}

/// Whether only the next iteration reads what a load reads: it is ahead already.
static bool isAhead(tile::LoadOp load) { return llvm::all_of(load->getUsers(), llvm::IsaPred<scf::YieldOp>); }

/// Adds to `slice` what the operands of a load are computed from; false where they cannot be for the next iteration
/// while this one begins: what it carries is computed from what is there.
static bool addForNext(tile::LoadOp load, scf::ForOp loop, bool mayLoad, Slice &slice) {
  auto addOperand = [&](Value operand) { return addWithin(operand, loop, mayLoad, slice); };
  return llvm::all_of(load->getOperands(), addOperand) && llvm::all_of(slice.carried, [&](unsigned index) {
           Slice toNext;
           return addWithin(loop.getYieldedValues()[index], loop, /*mayLoad=*/false, toNext);
         });
}

/// Why a load may not read before what the iteration before its own does; empty where it may.
static StringRef whyNotBefore(tile::LoadOp load, scf::ForOp loop) {
  if (load.getIsVolatile())
    return "it is volatile";
  bool mayWrite = !mayReadAhead(load, loop) || (!hasProducts(loop) && mayBeInPlace(load, loop));
  return mayWrite ? "the loop may write what is loaded" : "";
}

/// Why a load cannot be made ahead, empty where it can; adds to `slice` what it needs.
static StringRef whyNotAhead(tile::LoadOp load, scf::ForOp loop, bool mayLoad, Slice &slice) {
  if (StringRef hindrance = whyNotBefore(load, loop); !hindrance.empty())
    return hindrance;
  return addForNext(load, loop, mayLoad, slice) ? "" : "its address needs what the loop loads or computes before";
}

static void sayNotAhead(tile::LoadOp load, StringRef hindrance) {
  remarks::missed(remarks::pipelining, load)
      << remark::reason("the load is not made an iteration ahead: {0}", hindrance);
}

/// The loads of a loop that are not ahead yet, the smallest first.
static SmallVector<tile::LoadOp> bySize(scf::ForOp loop) {
  llvm::MapVector<int64_t, SmallVector<tile::LoadOp>> ofSize;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (!isAhead(load))
      ofSize[registersAhead(load)].push_back(load);
  auto sizes = ofSize.takeVector();
  llvm::sort(sizes, llvm::less_first());
  SmallVector<tile::LoadOp> loads;
  for (auto &[size, sameSize] : sizes)
    llvm::append_range(loads, sameSize);
  return loads;
}

/// Adds to `found` the indices that a load's address is computed from; false where one cannot go two iterations ahead.
static bool addIndices(tile::LoadOp load, scf::ForOp loop, llvm::SetVector<tile::LoadOp> &found) {
  Slice slice;
  if (!whyNotAhead(load, loop, /*mayLoad=*/true, slice).empty())
    return false;
  for (Operation *op : inOrder(slice, loop))
    if (auto index = dyn_cast<tile::LoadOp>(op)) {
      Slice toIndex;
      if (!whyNotAhead(index, loop, /*mayLoad=*/false, toIndex).empty() || hasManyPredicates(index))
        return false;
      found.insert(index);
    }
  return true;
}

/// The indices of a loop that go ahead with what they address: as many as registers are left for both.
static Loads findIndices(scf::ForOp loop, const TargetInfo &target) {
  int64_t left = registersLeft(loop, target);
  llvm::SetVector<tile::LoadOp> indices;
  for (tile::LoadOp load : bySize(loop)) {
    llvm::SetVector<tile::LoadOp> with = indices;
    int64_t size = registersAhead(load);
    if (!addIndices(load, loop, with))
      continue;
    for (tile::LoadOp index : with.getArrayRef().drop_front(indices.size()))
      size += registersAhead(index) + registersOf(index.getResult());
    if (size > left)
      continue;
    left -= size;
    indices = std::move(with);
  }
  Loads found{indices.takeVector(), {}};
  for (tile::LoadOp index : found.ops)
    addForNext(index, loop, /*mayLoad=*/false, found.slice);
  return found;
}

static Loads findLoads(scf::ForOp loop, const TargetInfo &target) {
  int64_t left = registersLeft(loop, target);
  Loads found;
  for (tile::LoadOp load : bySize(loop)) {
    Slice withLoad = found.slice;
    int64_t size = registersAhead(load);
    StringRef hindrance = whyNotAhead(load, loop, /*mayLoad=*/false, withLoad);
    if (hindrance.empty() && size > left)
      hindrance = "the loop's registers have no room for its value";
    if (!hindrance.empty()) {
      sayNotAhead(load, hindrance);
      continue;
    }
    left -= size;
    found.slice = std::move(withLoad);
    found.ops.push_back(load);
  }
  return found;
}

// --- rewriting ---

Value LoadRewriter::masked(Type pointers, Value mask, Value isInside) {
  auto tensor = dyn_cast<RankedTensorType>(pointers);
  if (tensor)
    isInside = tile::SplatOp::create(
        b, loc, RankedTensorType::get(tensor.getShape(), b.getI1Type(), tensor.getEncoding()), isInside);
  return mask ? arith::AndIOp::create(b, loc, mask, isInside).getResult() : isInside;
}

/// The last op of the block that reads a value's registers, or the value's own: under another shape they are the same.
static Operation *lastReaderOf(Value value, Operation *last) {
  for (Operation *user : value.getUsers()) {
    Operation *here = last->getBlock()->findAncestorOpInBlock(*user);
    if (last->isBeforeInBlock(here))
      last = here;
    if (isa<tile::ReshapeOp, tile::PermuteOp, tile::ExpandDimsOp>(user))
      last = lastReaderOf(user->getResult(0), last);
  }
  return last;
}

/// Where the next iteration's load stands: behind the last reader of this one's value, so that both can be in the same
/// registers, if products follow to hide it; else at the iteration's start, before `first`.
static Operation *placeOf(tile::LoadOp load, Operation *first) {
  Operation *last = lastReaderOf(load.getResult(), load);
  for (Operation *later = last->getNextNode(); later; later = later->getNextNode())
    if (later->walk([](Operation *op) { return isProduct(op) ? WalkResult::interrupt() : WalkResult::advance(); })
            .wasInterrupted())
      return last->getNextNode();
  return first;
}

Value LoadRewriter::loadWhere(tile::LoadOp load, IRMapping &mapping, Value isInside) {
  auto clone = cast<tile::LoadOp>(b.clone(*load, mapping));
  b.setInsertionPoint(clone);
  if (!clone.getMask()) // past the loop's end, what is loaded is not read
    clone->setAttr(unreadElsewhereAttrName, b.getUnitAttr());
  clone.getMaskMutable().assign(masked(clone.getPtr().getType(), clone.getMask(), isInside));
  return clone.getResult();
}

/// Past the loop's end nobody reads what is loaded: there is this iteration's value still, so that no register takes
/// another one.
SmallVector<Value> LoadRewriter::loadInBranch(ArrayRef<tile::LoadOp> ops, IRMapping &mapping, Value isInside,
                                              bool next) {
  SmallVector<Value> inside, past;
  SmallVector<Type> types = llvm::map_to_vector(ops, [](tile::LoadOp load) { return Type(load.getType()); });
  auto branch = scf::IfOp::create(b, loc, types, isInside, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  for (tile::LoadOp load : ops)
    inside.push_back(b.clone(*load, mapping)->getResult(0));
  scf::YieldOp::create(b, loc, inside);
  b.setInsertionPointToStart(branch.elseBlock());
  for (tile::LoadOp load : ops)
    past.push_back(next ? load.getResult() : ub::PoisonOp::create(b, loc, load.getType()).getResult());
  scf::YieldOp::create(b, loc, past);
  return branch.getResults();
}

SmallVector<Value> LoadRewriter::loadFor(IRMapping &mapping, Value isInside, bool next) {
  for (Operation *op : slice)
    b.clone(*op, mapping);
  Operation *here = &*b.getInsertionPoint();
  llvm::MapVector<Operation *, SmallVector<tile::LoadOp>> inBranches;
  DenseMap<Operation *, Value> loaded;
  for (tile::LoadOp load : loads.ops) {
    Operation *place = next ? placeOf(load, here) : here;
    if (hasManyPredicates(load)) {
      inBranches[place].push_back(load);
      continue;
    }
    b.setInsertionPoint(place);
    loaded[load] = loadWhere(load, mapping, isInside);
  }
  for (auto &[place, ops] : inBranches) {
    b.setInsertionPoint(place);
    for (auto [load, value] : llvm::zip_equal(ops, loadInBranch(ops, mapping, isInside, next)))
      loaded[load] = value;
  }
  return llvm::map_to_vector(loads.ops, [&](tile::LoadOp load) { return loaded.lookup(load); });
}

IRMapping LoadRewriter::nextIteration() {
  IRMapping now, next;
  Slice toNext;
  for (unsigned index : loads.slice.carried)
    addWithin(loop.getYieldedValues()[index], loop, /*mayLoad=*/false, toNext);
  for (Operation *op : inOrder(toNext, loop))
    b.clone(*op, now);
  for (unsigned index : loads.slice.carried)
    next.map(loop.getRegionIterArg(index), now.lookupOrDefault(loop.getYieldedValues()[index]));
  next.map(loop.getInductionVar(), arith::AddIOp::create(b, loc, loop.getInductionVar(), loop.getStep()).getResult());
  return next;
}

Rewritten LoadRewriter::run() {
  Value lastStart = arith::SubIOp::create(b, loc, loop.getUpperBound(), loop.getStep());
  IRMapping first;
  first.map(loop.getInductionVar(), loop.getLowerBound());
  for (unsigned index : loads.slice.carried)
    first.map(loop.getRegionIterArg(index), loop.getInitArgs()[index]);
  SmallVector<Value> inits = loadFor(first, isLess(loop.getLowerBound(), loop.getUpperBound()), /*next=*/false);

  b.setInsertionPointToStart(loop.getBody());
  IRMapping next = nextIteration();
  SmallVector<Value> loaded = loadFor(next, isLess(loop.getInductionVar(), lastStart), /*next=*/true);

  IRRewriter rewriter(b);
  rewriter.setInsertionPoint(loop);
  unsigned count = loop.getNumRegionIterArgs();
  auto replaced = cast<scf::ForOp>(
      *loop.replaceWithAdditionalYields(rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
                                        [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return loaded; }));
  for (auto [load, carried] : llvm::zip_equal(loads.ops, replaced.getRegionIterArgs().drop_front(count))) {
    load.getResult().replaceAllUsesWith(carried);
    load.erase();
  }
  removeUnusedCarriedValues(replaced);
  Rewritten rewritten{replaced, {}};
  for (Value value : loaded)
    if (auto load = value.getDefiningOp<tile::LoadOp>())
      rewritten.loads.push_back(load);
  return rewritten;
}

/// The first product of a loop that an op stands behind; null where it stands behind none.
static Operation *productBefore(Operation *op) {
  for (Operation &each : *op->getBlock()) {
    if (&each == op)
      return nullptr;
    if (isProduct(&each))
      return &each;
  }
  return nullptr;
}

/// Numbers that registers have no room for an iteration ahead are loaded before their own iteration's first product.
static void startEarly(scf::ForOp loop) {
  constexpr int64_t ofNumber = 3;
  for (tile::LoadOp load : bySize(loop)) {
    Slice slice;
    Operation *product = productBefore(load);
    auto addOperand = [&](Value operand) { return addWithin(operand, loop, /*mayLoad=*/false, slice); };
    if (registersAhead(load) > ofNumber || !product || !whyNotBefore(load, loop).empty() ||
        !llvm::all_of(load->getOperands(), addOperand) || slice.ops.contains(product))
      continue;
    slice.ops.insert(load);
    for (Operation *op : inOrder(slice, loop))
      if (product->isBeforeInBlock(op))
        op->moveBefore(product);
  }
}

/// Loads indices two iterations ahead, what they address and the rest one.
static void loadAhead(scf::ForOp loop, const TargetInfo &target) {
  if (Loads indices = findIndices(loop, target); !indices.ops.empty()) {
    Rewritten once = LoadRewriter(loop, std::move(indices)).run();
    Loads again{once.loads, {}};
    for (tile::LoadOp load : again.ops)
      addForNext(load, once.loop, /*mayLoad=*/false, again.slice);
    loop = LoadRewriter(once.loop, std::move(again)).run().loop;
  }
  if (Loads loads = findLoads(loop, target); !loads.ops.empty())
    loop = LoadRewriter(loop, std::move(loads)).run().loop;
  startEarly(loop);
}

void LoadAhead::runOnOperation() {
  auto schedule = getOperation()->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
  // Kernels that the compiler writes have schedules that were chosen for the registers they take.
  if (getOperation()->hasAttr(tile::ordersAccessesAttrName))
    return;
  const int64_t stages = schedule ? schedule.getStages() : 2;
  SmallVector<scf::ForOp> loops;
  getOperation().walk([&](scf::ForOp loop) {
    if (!hasLoopInside(loop) && stagesAsked(loop).value_or(stages) > 1 && (hasProducts(loop) || runsOften(loop)))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    loadAhead(loop, TargetInfo::ofOrDefault(getOperation()));
}
