// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-pipeline: copies into shared memory run ahead of the loop that reads them, by one iteration less than the
// kernel's schedule has stages.
//
//   scf.for %i = ... {                        %r = warp.alloc : ring of S tiles
//     %s = warp.alloc                         copies of iterations 0 .. S-2, a group each
//     warp.async_copy f(%i) to %s             scf.for %i = ... iter_args(.., %stage = 0, %freed = S-1) {
//     warp.async_commit                         warp.async_wait {pending = S-2}
//     warp.async_wait {pending = 0}     ─▶      warp.barrier
//     %x = warp.load_shared %s                  warp.async_copy f(%i + (S-1)·step) to %r[%freed]
//     warp.dealloc %s                           warp.async_commit
//     use(%x)                                   %x = warp.load_shared %r[%stage]
//   }                                           use(%x)
//                                             }
//                                             warp.async_wait {pending = 0}
//                                             warp.barrier
//                                             warp.dealloc %r
//
// One barrier an iteration does both that it has to: after it, every thread's share of this iteration's tiles has
// arrived, and every thread has read the tiles of the iteration before, whose place the new copies take. Copies past
// the loop's end are masked off; where a loop is known to have few iterations, and these copies and their addresses are
// much of what it does, a branch leaves both out. What these addresses take from a page's entry in a table is held until
// the next page begins (Copies/HeldValues.h).
//
// What a copy's address and mask are computed from is computed a second time, S-1 iterations ahead; loop-carried values
// in it (pointers that a loop advances) are carried a second time. Where it includes loads (a table of blocks), these
// are masked at the loop's end, and run ahead too if the loop writes no memory. Copies that depend on anything else
// stay as they are. Only loops without loops inside are pipelined.
//
// The product of warpgroups that a loop adds up may go on into the next iteration (Warpgroups/LaggingProduct.h). The tiles
// of the iteration before are free when this iteration's product has been started and that one's waited for: copies stand
// there, behind a barrier. That of the tiles' arrival is left to copies of threads: bulk copies have told every thread.
//
// Products of warpgroups that take what is computed from an iteration's other products run an iteration later, beside the
// next one's (Warpgroups/LateProducts.h): the tiles that they alone read are then copied with those of that iteration.
//
// Where a block of the target cannot hold so many tiles beside what lives across the loop, the kernel gets fewer
// stages, and its schedule says so; also where a multiprocessor holds more blocks with fewer, and so more tiles.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/BoxRing.h"
#include "dialects/Warp/Transforms/Copies/HeldValues.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/Warpgroups/LaggingProduct.h"
#include "dialects/Warp/Transforms/Warpgroups/LateProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPPIPELINE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// A tile that one iteration fills and reads. Tiles that are read in one place share their wait; the other ops are a
/// tile's own.
struct StagedTile {
  AllocOp alloc;
  AsyncCopyOp copy;
  AsyncCommitOp commit;
  AsyncWaitOp wait;
  DeallocOp dealloc;
  std::shared_ptr<const Box> box; // what bulk copies can bring in its place; null where they cannot
  MappedBox mapped;               // where they do
  bool late = false;              // read in the iteration after
};

/// A loop's tiles that can go ahead, and what has to be computed ahead for them.
struct Ahead {
  scf::ForOp loop;
  SmallVector<StagedTile> tiles;
  Slice slice, lateSlice = {}; // of late tiles
  LateProducts late = {};
};

struct Pipeline : weft::warp::impl::WarpPipelineBase<Pipeline> {
  using WarpPipelineBase::WarpPipelineBase;
  void runOnOperation() override;
};

/// Rewrites one loop.
class LoopPipeliner {
public:
  LoopPipeliner(Ahead &ahead, ArrayRef<AsyncWaitOp> waits, int stages)
      : loop(ahead.loop), tiles(ahead.tiles), waits(waits), slice(ahead.slice), lateSlice(ahead.lateSlice),
        late(ahead.late), stages(stages), depth(stages - 1), b(loop), loc(loop.getLoc()) {
    hasGroups = llvm::any_of(tiles, [](const StagedTile &tile) { return !tile.mapped; });
    hasBoxes = llvm::any_of(tiles, [](const StagedTile &tile) { return bool(tile.mapped); });
    if (hasBoxes && stages < 3)
      return;
    llvm::DenseSet<Value> own;
    for (const StagedTile &tile : tiles)
      own.insert(tile.alloc->getResult(0));
    lagging = waitOfLaggingProduct(loop, own);
  }
  void run();

private:
  Value i32(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }
  Value ofLoopType(int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(loop.getInductionVar().getType(), value));
  }
  Value isLess(Value x, Value y) {
    auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  /// An iteration, ahead of the one that is run: its values of the loop's, and whether it is run at all; null: it is.
  struct Iteration {
    IRMapping mapping;
    Value isInside;
    SmallVector<Value> held = {}; // of the one before, then its own; none of the first
  };
  /// Computes the slices for other iterations and starts their copies into the tiles `stage`: of `lateOne`, the one
  /// before `one`, what is read late, unless that is before the first.
  void copyAhead(Iteration &one, Iteration *lateOne, Value stage);
  void startAhead(Iteration &one, Iteration *lateOne, Value stage);
  /// Whether a branch leaves out iterations that are not run: what the loop carries has to be computed for these too, and
  /// one thread's copies have a branch already.
  bool branches() const {
    return loop->hasAttr(tile::fewIterationsAttrName) && !hasBoxes && late.none() && slice.carried.empty();
  }
  void startBranch(Iteration &one, Value stage);
  void cloneSlice(ArrayRef<Operation *> ordered, Iteration &iteration);
  Value masked(Type pointers, Value mask, Value isInside);
  void cloneLoad(tile::LoadOp load, IRMapping &mapping, Value isInside);
  void startCopies();
  /// Starts the copies that bring bytes to the tiles' barrier, of one stage.
  void copyBoxes(Iteration &one, Iteration *lateOne, Value stage);
  Iteration fromFirst(int distance, const Slice &slice, ArrayRef<Value> ahead);
  void advance(SmallVector<Value> &ahead, const Slice &slice, const IRMapping &mapping);
  struct Distance {
    Value steps, end; // null where it is none
  };
  Distance distance(int iterations);
  Iteration fromThis(Distance distance, const Slice &slice, scf::ForOp pipelined, ValueRange carried);
  void waitForTiles(Value stage, Value parity);
  void rewriteLoop();
  SmallVector<Value> firstPlaces();
  void endRings(ValueRange places);
  void moveCoordinates(Block *body);
  /// Whether the ring may go on from an iteration of a loop around this one to the next (warp-keep-rings).
  bool mayGoOn() const {
    return boxes && !late.none() &&
           (loop->getParentOfType<scf::ForOp>() || tile::scheduleOf(loop->getParentOfType<func::FuncOp>()).persistent);
  }
  SmallVector<Value> nextPlaces(Value stage, Value freed, Value parity);
  void readFromRing(Value stage);

  scf::ForOp loop;
  MutableArrayRef<StagedTile> tiles;
  ArrayRef<AsyncWaitOp> waits; // that the tiles no longer need, nor anything else
  const Slice &slice, &lateSlice;
  const LateProducts &late;
  int stages, depth;
  WgmmaWaitOp lagging; // for a product that reads its tiles into the next iteration; null where none does
  OpBuilder b;
  Location loc;
  SmallVector<Value> rings;
  std::optional<BoxRing> boxes; // where bulk copies fill tiles
  bool hasBoxes = false;        // where they do
  bool hasGroups = false;       // where copies of threads do
  int64_t pitch = 0;            // bytes from the tiles of a stage to those of the next
  SmallVector<Operation *> orderedSlice, orderedLateSlice;
  SmallVector<Value> ahead;     // the carried values of the slice, `depth` iterations ahead
  SmallVector<Value> lateAhead; // of the late slice, one iteration less
  HeldValues held;              // what addresses of copies in a branch follow from
  SmallVector<Value> growths, heldAhead;
  SmallVector<unsigned> placesCarried; // which of the loop's carried values say where a ring stands that may go on
  BarrierOp arrived;                   // behind which an iteration's tiles are there
};
} // namespace

// --- finding what to pipeline ---

/// The tile that a copy fills, if it is one that `warp-stage-operands` makes: allocated, filled, awaited, read and
/// freed in one block.
static std::optional<StagedTile> stagedTile(AsyncCopyOp copy) {
  auto alloc = copy.getShared().getDefiningOp<AllocOp>();
  auto commit = dyn_cast_or_null<AsyncCommitOp>(copy->getNextNode());
  if (!alloc || alloc->getBlock() != copy->getBlock() || !commit)
    return std::nullopt;
  if (llvm::count_if(alloc->getUsers(), llvm::IsaPred<AsyncCopyOp>) != 1)
    return std::nullopt;
  StagedTile tile{alloc, copy, commit, {}, {}, {}, {}};
  for (Operation *user : alloc->getUsers())
    if (auto dealloc = dyn_cast<DeallocOp>(user); dealloc && dealloc->getBlock() == copy->getBlock())
      tile.dealloc = dealloc;
  // Its own wait is the first after the commit that waits for everything; copies in between have waits of their own.
  // Behind it other tiles that it is for may be turned first.
  for (Operation *op = commit; op && !tile.wait; op = op->getNextNode()) {
    auto wait = dyn_cast<AsyncWaitOp>(op);
    if (!wait)
      continue;
    Operation *read = wait->getNextNode();
    auto readsIt = [&](Operation *user) {
      return isa<LoadSharedOp, PermuteSharedOp, WgmmaOp>(user) &&
             read->getBlock()->findAncestorOpInBlock(*user) == read;
    };
    while (isa<PermuteSharedOp>(read) && llvm::none_of(alloc->getUsers(), readsIt))
      read = read->getNextNode();
    if (llvm::any_of(alloc->getUsers(), readsIt))
      tile.wait = wait;
  }
  if (!tile.dealloc || !tile.wait)
    return std::nullopt;
  return tile;
}

static bool addToSlice(AsyncCopyOp copy, scf::ForOp loop, bool mayLoad, Slice &slice) {
  return addToSlice(copy.getPtr(), loop, mayLoad, slice) &&
         (!copy.getMask() || addToSlice(copy.getMask(), loop, mayLoad, slice));
}

// --- rewriting ---

Value LoopPipeliner::masked(Type pointers, Value mask, Value isInside) {
  if (!isInside)
    return mask;
  auto tensor = dyn_cast<RankedTensorType>(pointers);
  if (!tensor)
    return mask ? arith::AndIOp::create(b, loc, mask, isInside).getResult() : isInside;
  auto type = RankedTensorType::get(tensor.getShape(), b.getI1Type(), tensor.getEncoding());
  Value inside = tile::SplatOp::create(b, loc, type, isInside);
  return mask ? arith::AndIOp::create(b, loc, mask, inside).getResult() : inside;
}

/// A zero or null pointer, or a tensor of them.
static Value zeroOf(OpBuilder &b, Location loc, Type type) {
  bool isPointer = isa<tile::PointerType>(tile::elementTypeOf(type));
  Type numbers = isPointer ? tile::withElementType(type, b.getI64Type()) : type;
  Value zero = arith::ConstantOp::create(b, loc, cast<TypedAttr>(b.getZeroAttr(numbers)));
  return isPointer ? tile::IntToPtrOp::create(b, loc, type, zero).getResult() : zero;
}

void LoopPipeliner::cloneLoad(tile::LoadOp load, IRMapping &mapping, Value isInside) {
  Value mask = load.getMask() ? mapping.lookupOrDefault(load.getMask()) : Value();
  // Past the loop's end it gives zeros, with which addresses that nobody reads are computed.
  auto zeros = [&] { return zeroOf(b, load.getLoc(), load.getType()); };
  Value other = load.getOther() ? mapping.lookupOrDefault(load.getOther()) : load.getMask() ? Value() : zeros();
  auto clone = tile::LoadOp::create(b, load.getLoc(), load.getType(), mapping.lookupOrDefault(load.getPtr()),
                                    masked(load.getPtr().getType(), mask, isInside), other, load.getCacheAttr(),
                                    load.getEvictionAttr(), UnitAttr());
  clone->setDiscardableAttrs(load->getDiscardableAttrDictionary());
  Value loaded = clone.getResult();
  if (!other)
    loaded =
        arith::SelectOp::create(b, load.getLoc(), masked(load.getPtr().getType(), Value(), isInside), loaded, zeros());
  mapping.map(load.getResult(), loaded);
}

void LoopPipeliner::cloneSlice(ArrayRef<Operation *> ordered, Iteration &iteration) {
  for (Operation *op : ordered) {
    if (auto load = dyn_cast<tile::LoadOp>(op); load && iteration.isInside)
      cloneLoad(load, iteration.mapping, iteration.isInside);
    else
      b.clone(*op, iteration.mapping);
  }
}

void LoopPipeliner::copyAhead(Iteration &one, Iteration *lateOne, Value stage) {
  if (one.isInside && branches())
    startBranch(one, stage);
  else
    startAhead(one, lateOne, stage);
  // A group each, also of no copies: waits count them.
  if (hasGroups)
    AsyncCommitOp::create(b, loc);
}

/// Starts the copies of an iteration that is run, and holds what the next one's addresses follow from.
void LoopPipeliner::startBranch(Iteration &one, Value stage) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> before = one.held;
  if (before.empty()) // is the first: what is held if it is not run is not read
    for (const HeldValue &value : held.values)
      before.push_back(zeroOf(b, loc, value.value.getType()));
  auto isRun = before.empty() ? scf::IfOp::create(b, loc, one.isInside, /*withElseRegion=*/false)
                              : scf::IfOp::create(b, loc, ValueRange(before).getTypes(), one.isInside, true, true);
  one.isInside = {};
  b.setInsertionPointToStart(isRun.thenBlock());
  startAhead(one, nullptr, stage);
  if (!before.empty()) {
    scf::YieldOp::create(b, loc, llvm::map_to_vector(held.values, [&](const HeldValue &value) {
                           return one.mapping.lookup(value.value);
                         }));
    b.setInsertionPointToStart(isRun.elseBlock());
    scf::YieldOp::create(b, loc, before);
  }
  one.held.assign(isRun.result_begin(), isRun.result_end());
}

void LoopPipeliner::startAhead(Iteration &one, Iteration *lateOne, Value stage) {
  if (one.held.empty())
    cloneSlice(orderedSlice, one);
  else
    held.mapBehind(b, loc, orderedSlice, one.mapping, one.held, growths);
  if (lateOne)
    cloneSlice(orderedLateSlice, *lateOne);
  if (boxes)
    copyBoxes(one, lateOne, stage);
  for (auto [tile, ring] : llvm::zip_equal(tiles, rings)) {
    AsyncCopyOp copy = tile.copy;
    if (tile.mapped || (tile.late && !lateOne))
      continue;
    Iteration &of = tile.late ? *lateOne : one;
    Value mask = copy.getMask() ? of.mapping.lookupOrDefault(copy.getMask()) : Value();
    Value target = StageOp::create(b, copy.getLoc(), copy.getShared().getType(), ring, stage, pitch);
    AsyncCopyOp::create(b, copy.getLoc(), of.mapping.lookupOrDefault(copy.getPtr()),
                        masked(copy.getPtr().getType(), mask, of.isInside), target, copy.getContiguity(),
                        copy.getUndefined(), copy.getThroughL1());
  }
}

void LoopPipeliner::copyBoxes(Iteration &one, Iteration *lateOne, Value stage) {
  SmallVector<BoxTarget> targets, lateTargets;
  for (auto [tile, ring] : llvm::zip_equal(tiles, rings)) {
    if (tile.mapped && tile.late && lateOne)
      lateTargets.push_back({tile.box.get(), &tile.mapped, ring, &lateOne->mapping});
    else if (tile.mapped && !tile.late)
      targets.push_back({tile.box.get(), &tile.mapped, ring, &one.mapping});
  }
  if (!lateOne)
    return boxes->copy(b, loc, {targets, one.isInside}, stage);
  boxes->copyWithLate(b, loc, {targets, one.isInside}, {lateTargets, lateOne->isInside}, stage);
}

/// The iteration `distance` behind the first, whose carried values are known.
LoopPipeliner::Iteration LoopPipeliner::fromFirst(int distance, const Slice &slice, ArrayRef<Value> ahead) {
  Value before = arith::MulIOp::create(b, loc, loop.getStep(), ofLoopType(distance));
  Iteration found;
  found.mapping.map(loop.getInductionVar(), arith::AddIOp::create(b, loc, loop.getLowerBound(), before).getResult());
  for (auto [index, value] : llvm::zip_equal(slice.carried, ahead))
    found.mapping.map(loop.getRegionIterArg(index), value);
  found.isInside = isLess(loop.getLowerBound(), arith::SubIOp::create(b, loc, loop.getUpperBound(), before));
  return found;
}

void LoopPipeliner::advance(SmallVector<Value> &ahead, const Slice &slice, const IRMapping &mapping) {
  for (auto [index, value] : llvm::zip_equal(slice.carried, ahead))
    value = mapping.lookupOrDefault(loop.getYieldedValues()[index]);
}

/// What the copies of `tiles` take.
static SmallVector<Value> addressesOf(ArrayRef<StagedTile> tiles) {
  SmallVector<Value> values;
  for (const StagedTile &tile : tiles)
    llvm::append_range(values, AsyncCopyOp(tile.copy)->getOperands());
  return values;
}

/// The rings, and the copies of the first iterations.
void LoopPipeliner::startCopies() {
  for (const StagedTile &tile : tiles) {
    auto type = cast<SharedType>(tile.alloc->getResult(0).getType());
    auto ring = SharedType::get(b.getContext(), stages, type.getShape(), type.getElementType(), type.getLayout());
    rings.push_back(AllocOp::create(b, tile.copy->getLoc(), ring, IntegerAttr(), IntegerAttr()));
  }
  SmallVector<SharedType> types =
      llvm::map_to_vector(rings, [](Value ring) { return cast<SharedType>(ring.getType()); });
  if (llvm::any_of(tiles, [](const StagedTile &tile) { return tile.mapped; })) {
    boxes.emplace(b, loc, stages);
    types.push_back(boxes->type());
  }
  pitch = ringPitch(types, tileAlignment(loop->getParentOfType<func::FuncOp>()));
  // The rings may take the place of tiles that other threads still read, or wrote.
  if (boxes)
    ProxyFenceOp::create(b, loc);
  BarrierOp::create(b, loc);
  if (boxes)
    boxes->begin(b, loc, pitch);
  for (unsigned index : slice.carried)
    ahead.push_back(loop.getInitArgs()[index]);
  for (unsigned index : lateSlice.carried)
    lateAhead.push_back(loop.getInitArgs()[index]);
  growths = held.growths(b, loc);
  for (int number = 0; number < depth; ++number) {
    Iteration one = fromFirst(number, slice, ahead);
    one.held = heldAhead;
    std::optional<Iteration> lateOne;
    if (!late.none() && number > 0)
      lateOne = fromFirst(number - 1, lateSlice, lateAhead);
    copyAhead(one, lateOne ? &*lateOne : nullptr, i32(number * pitch));
    advance(ahead, slice, one.mapping);
    heldAhead = one.held;
    if (lateOne)
      advance(lateAhead, lateSlice, lateOne->mapping);
  }
  if (boxes)
    BarrierOp::create(b, loc); // behind which all threads may wait at the barriers
}

/// The original reads, from the ring's tile `stage`; the original copies go.
void LoopPipeliner::readFromRing(Value stage) {
  for (auto [tile, ring] : llvm::zip_equal(tiles, rings)) {
    AllocOp alloc = tile.alloc;
    b.setInsertionPoint(alloc); // where the builder stands may be an op that goes
    Value read = StageOp::create(b, loc, alloc.getResult().getType(), ring, stage, pitch);
    tile.copy->erase();
    tile.commit->erase();
    tile.dealloc->erase();
    alloc.getResult().replaceAllUsesWith(read);
    alloc->erase();
  }
  for (AsyncWaitOp wait : waits)
    wait->erase();
}

/// Moves a loop's operations to the body of another, whose first arguments take the place of its own.
static void takeBody(Block *body, Block *from) {
  body->clear();
  body->getOperations().splice(body->end(), from->getOperations());
  for (auto [old, argument] : llvm::zip(from->getArguments(), body->getArguments()))
    old.replaceAllUsesWith(argument);
}

/// Coordinates that are arguments of the loop's body are those of `body` from here on.
void LoopPipeliner::moveCoordinates(Block *body) {
  for (StagedTile &tile : tiles)
    for (Value &coordinate : tile.mapped.coordinates)
      if (auto argument = dyn_cast<BlockArgument>(coordinate); argument && argument.getOwner() == loop.getBody())
        coordinate = body->getArgument(argument.getArgNumber());
}

/// Where the next iteration reads, where its copies go unless that is known from the first, and the parity of the phase
/// for which it waits: a ring's barriers end one each time round.
SmallVector<Value> LoopPipeliner::nextPlaces(Value stage, Value freed, Value parity) {
  const RingSteps steps{stages, pitch};
  SmallVector<Value> next;
  if (stages == 2) {
    next.push_back(freed);
  } else {
    next.push_back(steps.placeBehind(b, loc, stage));
    // A warp of its own for copies need not know the other.
    next.push_back(lagging && boxes ? steps.placeBehind(b, loc, freed) : stage);
  }
  if (boxes)
    next.push_back(steps.turnBehind(b, loc, stage, parity));
  return next;
}

/// How far an iteration is behind this one, and the bound before which this one has to be for that to be run.
LoopPipeliner::Distance LoopPipeliner::distance(int iterations) {
  if (iterations == 0)
    return {};
  Value distance = arith::MulIOp::create(b, loc, loop.getStep(), ofLoopType(iterations));
  return {distance, arith::SubIOp::create(b, loc, loop.getUpperBound(), distance)};
}

/// The iteration `distance` behind the one that the loop runs.
LoopPipeliner::Iteration LoopPipeliner::fromThis(Distance distance, const Slice &slice, scf::ForOp pipelined,
                                                 ValueRange carried) {
  Iteration found;
  Value now = pipelined.getInductionVar();
  found.mapping.map(now, distance.steps ? arith::AddIOp::create(b, loc, now, distance.steps).getResult() : now);
  for (auto [index, value] : llvm::zip(slice.carried, carried))
    found.mapping.map(pipelined.getRegionIterArg(index), value);
  if (distance.end)
    found.isInside = isLess(now, distance.end);
  return found;
}

/// Waits for an iteration's tiles, and stands where the place of those of the iteration before may be taken.
void LoopPipeliner::waitForTiles(Value stage, Value parity) {
  if (hasGroups)
    AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(depth - 1));
  if (boxes)
    boxes->wait(b, loc, stage, RingSteps{stages, pitch}.parity(b, loc, parity));
  if (!lagging || hasGroups)
    arrived = BarrierOp::create(b, loc);
  if (!lagging)
    return;
  b.setInsertionPointAfter(lagging);
  BarrierOp::create(b, loc); // behind which every warpgroup's product of the iteration before has read its tiles
}

/// Where the loop's first iteration reads, where its copies go unless that is known from the first, and the turn of the phase
/// for which it waits. A tile's number is the count of bytes before it.
SmallVector<Value> LoopPipeliner::firstPlaces() {
  Value place = i32(0), freed = i32((stages - 1) * pitch), turn = place;
  if (mayGoOn()) {
    auto start = RingStartOp::create(b, loc, boxes->barriers(), (stages - 1) * pitch);
    place = start.getPlace();
    freed = start.getFreed();
    turn = start.getTurn();
  }
  SmallVector<Value> places{place};
  if (stages != 2)
    places.push_back(freed);
  if (boxes)
    places.push_back(turn);
  return places;
}

/// `places`: those of the iteration that would come next.
void LoopPipeliner::endRings(ValueRange places) {
  if (hasGroups)
    AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(0));
  BarrierOp::create(b, loc);
  if (boxes)
    boxes->end(b, loc, mayGoOn() ? ValueRange({places.front(), places.back()}) : ValueRange());
  for (Value ring : rings)
    DeallocOp::create(b, loc, ring);
}

void LoopPipeliner::rewriteLoop() {
  Distance toOne = distance(depth), toLate = late.none() ? Distance() : distance(depth - 1);
  bool two = stages == 2; // then the tile that is not read is the freed one and the next
  SmallVector<Value> inits(loop.getInitArgs());
  unsigned oldCount = inits.size();
  inits.append(ahead);
  inits.append(lateAhead);
  inits.append(heldAhead);
  Value next = i32(pitch);
  const unsigned carriedBefore = inits.size();
  inits.append(firstPlaces());
  if (mayGoOn())
    llvm::append_range(placesCarried, llvm::seq<unsigned>(carriedBefore, inits.size()));
  auto pipelined = scf::ForOp::create(b, loc, loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), inits);
  pipelined->setAttrs(loop->getAttrs());

  Block *body = pipelined.getBody();
  takeBody(body, loop.getBody());
  moveCoordinates(body);
  ValueRange extra = pipelined.getRegionIterArgs().drop_front(oldCount);
  unsigned firstHeld = ahead.size() + lateAhead.size(), place = firstHeld + heldAhead.size();
  Value stage = extra[place], parity = extra.back();

  b.setInsertionPointToStart(body);
  waitForTiles(stage, parity);
  Iteration one = fromThis(toOne, slice, pipelined, extra), lateOne;
  llvm::append_range(one.held, extra.slice(firstHeld, heldAhead.size()));
  if (!late.none())
    lateOne = fromThis(toLate, lateSlice, pipelined, extra.drop_front(ahead.size()));
  Value freed = two ? arith::XOrIOp::create(b, loc, stage, next).getResult() : extra[place + 1];
  copyAhead(one, late.none() ? nullptr : &lateOne, freed);
  readFromRing(stage);

  auto yield = cast<scf::YieldOp>(body->getTerminator());
  b.setInsertionPoint(yield);
  SmallVector<Value> yielded(yield.getOperands());
  for (unsigned index : slice.carried)
    yielded.push_back(one.mapping.lookupOrDefault(yield.getOperand(index)));
  for (unsigned index : lateSlice.carried)
    yielded.push_back(lateOne.mapping.lookupOrDefault(yield.getOperand(index)));
  llvm::append_range(yielded, one.held);
  llvm::append_range(yielded, nextPlaces(stage, freed, parity));
  yield->setOperands(yielded);

  b.setInsertionPointAfter(pipelined);
  endRings(pipelined.getResults().drop_front(carriedBefore));
  loop->replaceAllUsesWith(pipelined->getResults().take_front(oldCount));
  loop->erase();
  loop = pipelined;
}

void LoopPipeliner::run() {
  orderedSlice = inOrder(slice, loop);
  orderedLateSlice = inOrder(lateSlice, loop);
  if (branches())
    held = findHeldValues(slice, addressesOf(tiles), loop);
  startCopies();
  rewriteLoop();
  if (lagging)
    leaveUnderWay(lagging);
  Slice both = slice;
  both.ops.insert(lateSlice.ops.begin(), lateSlice.ops.end());
  SmallVector<Operation *> ordered = inOrder(both, loop);
  for (Operation *op : llvm::reverse(ordered))
    if (isOpTriviallyDead(op))
      op->erase();
  if (!late.none())
    loop = runLate(loop, late, arrived, placesCarried);
  removeUnusedCarriedValues(loop);
}

/// The waits of `tiles` that no other copy of the loop needs.
static SmallVector<AsyncWaitOp> ownWaits(scf::ForOp loop, ArrayRef<StagedTile> tiles) {
  llvm::SetVector<AsyncWaitOp> waits;
  llvm::DenseSet<AsyncCopyOp> ahead;
  for (const StagedTile &tile : tiles) {
    waits.insert(tile.wait);
    ahead.insert(tile.copy);
  }
  for (auto copy : loop.getBody()->getOps<AsyncCopyOp>()) {
    if (ahead.contains(copy))
      continue;
    // A copy that stays needs its own wait or, where that is not known, any that comes after it.
    std::optional<StagedTile> staying = stagedTile(copy);
    waits.remove_if([&](AsyncWaitOp wait) { return staying ? wait == staying->wait : copy->isBeforeInBlock(wait); });
  }
  return waits.takeVector();
}

/// Says that a loop's copy starts where its tile is read, and the loop waits for it.
static void sayNotAhead(AsyncCopyOp copy, StringRef hindrance) {
  remarks::missed(remarks::pipelining, copy)
      << remark::reason("the copy is not started iterations ahead: {0}", hindrance);
}

/// The boxes that a copy is, on targets that copy boxes.
static std::shared_ptr<const Box> boxOf(AsyncCopyOp copy, scf::ForOp loop) {
  const TargetInfo &target = TargetInfo::ofOrDefault(copy);
  if (target.boxCopies.mostRank == 0)
    return nullptr;
  FoundBox found = findBox(copy, loop, target);
  if (!found.box)
    remarks::missed(remarks::boxCopy, copy)
        << remark::reason("threads copy pieces of the tile, and no bulk copy all of it: {0}", found.hindrance);
  return found.box ? std::make_shared<const Box>(std::move(*found.box)) : nullptr;
}

/// A vector is a box only where all matrices are: threads that copy anyway bring it with what they bring.
static void copyVectorsAlike(MutableArrayRef<StagedTile> tiles) {
  bool threadsCopy = llvm::any_of(
      tiles, [](StagedTile tile) { return !tile.box && tile.alloc.getResult().getType().getShape().size() > 1; });
  if (!threadsCopy)
    return;
  for (StagedTile &tile : tiles)
    if (tile.box && tile.box->isVector) {
      tile.box = nullptr;
      remarks::missed(remarks::boxCopy, tile.copy)
          << remark::reason("threads copy pieces of the tile, and no bulk copy all of it: threads copy another tile of "
                            "its loop");
    }
}

/// What of a loop can go ahead.
static Ahead findTiles(scf::ForOp loop, bool withBoxes) {
  // Copies that share a commit would lose it with the first that goes ahead.
  for (auto copy : loop.getBody()->getOps<AsyncCopyOp>())
    if (!isa_and_nonnull<AsyncCommitOp>(copy->getNextNode())) {
      sayNotAhead(copy, "several copies of the loop share a commit");
      return {loop, {}, {}};
    }
  bool mayLoad = !writesMemory(loop);
  SmallVector<StagedTile> tiles;
  Slice slice;
  for (auto copy : loop.getBody()->getOps<AsyncCopyOp>()) {
    std::optional<StagedTile> tile = stagedTile(copy);
    Slice withCopy = slice;
    StringRef hindrance = !tile                       ? "its tile is not read and freed in one block"
                          : !mayReadAhead(copy, loop) ? "the loop may write what is copied"
                          : !addToSlice(copy, loop, mayLoad, withCopy)
                              ? "its address needs what the loop computes before"
                              : "";
    if (!hindrance.empty()) {
      sayNotAhead(copy, hindrance);
      continue;
    }
    if (withBoxes)
      tile->box = boxOf(copy, loop);
    tiles.push_back(*tile);
    slice = std::move(withCopy);
  }
  copyVectorsAlike(tiles);
  return {loop, std::move(tiles), std::move(slice)};
}

/// The most bytes of shared memory that a loop needs at once beside its rings: of tiles that lie in it, and of exchanges.
static int64_t mostInside(const Ahead &ahead) {
  auto isRing = [&](AllocOp alloc) {
    return llvm::any_of(ahead.tiles, [&](const StagedTile &tile) { return AllocOp(tile.alloc) == alloc; });
  };
  auto bytesOf = [&](AllocOp alloc) { return isRing(alloc) ? 0 : alloc.getResult().getType().getBytes(); };
  int64_t alive = 0, most = 0;
  scf::ForOp(ahead.loop).getBody()->walk([&](Operation *op) {
    if (auto alloc = dyn_cast<AllocOp>(op))
      alive += bytesOf(alloc);
    most = std::max(most, alive + scratchBytes(op));
    auto dealloc = dyn_cast<DeallocOp>(op);
    if (auto alloc = dealloc ? dealloc.getShared().getDefiningOp<AllocOp>() : AllocOp();
        alloc && ahead.loop->isAncestor(alloc))
      alive -= bytesOf(alloc);
  });
  return most;
}

/// Bytes of shared memory that a loop needs beside its rings at the least: of tiles from before it that are freed
/// behind it or never, and of what lies in it at once.
static int64_t bytesBeside(const Ahead &ahead) {
  scf::ForOp loop = ahead.loop;
  int64_t across = 0;
  loop->getParentOfType<func::FuncOp>().walk([&](AllocOp alloc) {
    Operation *here = alloc->getBlock()->findAncestorOpInBlock(*loop);
    if (!here || !alloc->isBeforeInBlock(here))
      return;
    bool freedBefore = llvm::any_of(alloc->getUsers(), [&](Operation *user) {
      return isa<DeallocOp>(user) && user->getBlock() == here->getBlock() && user->isBeforeInBlock(here);
    });
    if (!freedBefore)
      across += alloc.getResult().getType().getBytes();
  });
  return across + mostInside(ahead) + bytesOfTensorSlots(loop->getParentOfType<func::FuncOp>());
}

/// Bytes of a stage of a loop's tiles.
static int64_t stagePitch(const Ahead &ahead, int stages) {
  scf::ForOp loop = ahead.loop;
  auto types = llvm::map_to_vector(ahead.tiles, [](StagedTile tile) { return tile.alloc.getResult().getType(); });
  if (llvm::any_of(ahead.tiles, [](const StagedTile &tile) { return tile.box != nullptr; }))
    types.push_back(BoxRing::typeOf(loop.getContext(), stages));
  return ringPitch(types, tileAlignment(loop->getParentOfType<func::FuncOp>()));
}

/// The most stages, up to `stages`, that a block of `target` holds of a loop's tiles.
static int stagesThatFit(const Ahead &ahead, int stages, const TargetInfo &target) {
  int64_t room = target.sharedBytesPerBlock - bytesBeside(ahead);
  return static_cast<int>(std::clamp<int64_t>(room / std::max<int64_t>(stagePitch(ahead, stages), 1), 1, stages));
}

/// How many blocks of so many warps a multiprocessor holds at once with a loop's tiles in so many stages. Registers are
/// those that live in the loop, with a quarter of all for addresses and counters.
static int64_t blocksHeld(const Ahead &ahead, int stages, int warps, const TargetInfo &target) {
  const int64_t bytes = bytesBeside(ahead) + stages * stagePitch(ahead, stages) + target.reservedSharedBytes;
  const int64_t registers = std::clamp<int64_t>(mostAlive(ahead.loop) * 4 / 3, 32, target.registersPerThread);
  return std::min({target.sharedBytesPerProcessor / bytes, int64_t(target.maxBlocksPerProcessor),
                   int64_t(target.maxWarpsPerProcessor / warps),
                   target.registersPerProcessor / (registers * warps * target.warpSize)});
}

/// The stages, up to `stages`, with which most tiles are on their way to a multiprocessor: with fewer it may hold more
/// blocks. Of as many, the most. Bulk copies and products of warpgroups are of few blocks with deep rings.
static int stagesForMost(const Ahead &ahead, int stages, int warps, const TargetInfo &target) {
  scf::ForOp loop = ahead.loop;
  const bool ofFew = llvm::any_of(ahead.tiles, [](const StagedTile &tile) { return tile.box != nullptr; }) ||
                     loop->walk([](WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
  auto underWay = [&](int each) { return blocksHeld(ahead, each, warps, target) * (each - 1); };
  int best = stages;
  for (int fewer = stages - 1; fewer >= 2 && !ofFew; --fewer)
    if (underWay(fewer) > underWay(best))
      best = fewer;
  return best;
}

/// The innermost loops that have tiles to start ahead.
static std::vector<Ahead> findLoops(func::FuncOp kernel, bool withBoxes) {
  std::vector<Ahead> found;
  kernel.walk([&](scf::ForOp loop) {
    if (hasLoopInside(loop)) {
      for (auto copy : loop.getBody()->getOps<AsyncCopyOp>())
        sayNotAhead(copy, "its loop has another loop inside");
      return;
    }
    if (Ahead ahead = findTiles(loop, withBoxes); !ahead.tiles.empty())
      found.push_back(std::move(ahead));
  });
  return found;
}

/// Finds the products of a loop that may run an iteration later, and marks the tiles that they read.
static void findLate(Ahead &ahead) {
  auto rings = llvm::map_to_vector(ahead.tiles, [](StagedTile tile) -> Value { return tile.alloc.getResult(); });
  ahead.late = findLateProducts(ahead.loop, rings, TargetInfo::ofOrDefault(ahead.loop));
  if (!ahead.late.hindrance.empty())
    remarks::missed(remarks::productOverlap, ahead.loop) << remark::reason(
        "the loop's second product is not run beside the next iteration's first: {0}", ahead.late.hindrance);
  for (StagedTile &tile : ahead.tiles)
    tile.late = llvm::is_contained(ahead.late.tiles, tile.alloc.getResult());
}

/// Has bulk copies bring what they can: of those, only coordinates are computed ahead.
static void findSlices(Ahead &ahead) {
  bool mayLoad = !writesMemory(ahead.loop);
  ahead.slice = {};
  for (StagedTile &tile : ahead.tiles) {
    Slice &slice = tile.late ? ahead.lateSlice : ahead.slice;
    if (!tile.box) {
      addToSlice(tile.copy, ahead.loop, mayLoad, slice);
      continue;
    }
    tile.mapped = mapBox(*tile.box, tile.copy);
    for (Value coordinate : tile.mapped.coordinates)
      addToSlice(coordinate, ahead.loop, mayLoad, slice);
  }
}

/// Says which copies of a loop start ahead, and by what.
static void sayAhead(const Ahead &ahead, int stages) {
  for (const StagedTile &tile : ahead.tiles)
    remarks::decided(remarks::copiesAhead, tile.copy)
        << remark::reason("{0} copies the tile {1} iteration{2} before it is read, into a ring of {3} stages",
                          tile.box ? "one thread" : "every thread", stages - 1, stages == 2 ? "" : "s", stages);
}

void Pipeline::runOnOperation() {
  func::FuncOp kernel = getOperation();
  auto schedule = kernel->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
  int wanted = schedule ? schedule.getStages() : 3, stages = wanted;
  if (wanted < 2) {
    kernel.walk([](AsyncCopyOp copy) {
      if (isa<scf::ForOp>(copy->getParentOp()))
        sayNotAhead(copy, "the schedule has one stage");
    });
    return;
  }
  std::vector<Ahead> loops = findLoops(kernel, boxes);
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  for (const Ahead &ahead : loops)
    stages = std::min(stages, stagesThatFit(ahead, stages, target));
  if (stages < wanted)
    remarks::missed(remarks::pipelineStages, kernel) << remark::reason(
        "a block's shared memory holds {0} of the {1} stages that the schedule asks for", stages, wanted);
  const int held = stages;
  if (schedule &&
      !kernel->hasAttr(tile::ordersAccessesAttrName)) // the compiler's own have schedules chosen as they are
    for (const Ahead &ahead : loops)
      stages = std::min(stages, stagesForMost(ahead, held, schedule.getWarps(), target));
  if (stages < held)
    remarks::missed(remarks::pipelineStages, kernel) << remark::reason(
        "with {0} stages of the {1} that the schedule asks for a multiprocessor holds more blocks, and "
        "more tiles are under way",
        stages, wanted);
  if (schedule && stages < wanted)
    kernel->setAttr(tile::scheduleAttrName, tile::ScheduleAttr::get(&getContext(), schedule.getWarps(), stages,
                                                                    schedule.getCluster(), schedule.getPersistent()));
  if (stages < 2)
    return;
  // From the last loop to the first: a box may be placed by what an earlier loop gives, which is another value once that
  // loop is rewritten.
  for (Ahead &ahead : llvm::reverse(loops)) {
    findLate(ahead);
    findSlices(ahead);
    sayAhead(ahead, stages);
    LoopPipeliner(ahead, ownWaits(ahead.loop, ahead.tiles), stages).run();
  }
}
