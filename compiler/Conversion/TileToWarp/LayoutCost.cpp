// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What is counted is what two plans of one kernel differ by, so that constants
// need not be exact: a shuffle is an instruction, an access to memory is worth more than one, a barrier several.
#include "compiler/Conversion/TileToWarp/LayoutCost.h"

#include "compiler/Analysis/AxisTransfer.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "dialects/Warp/Layout/ShuffleExchange.h"
#include "dialects/Warp/Transforms/Accesses/AffineAddress.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LayoutAttr;
using weft::warp::LinearLayout;

namespace weft {
namespace {
/// As often has an element to be repeated that widening it there is considered to be too much.
constexpr int64_t manyTimes = 8;
constexpr int64_t instruction = costOfInstruction, access = 3 * instruction, barrier = 12 * instruction,
                  sector = instruction;

/// The registers of a thread that hold different elements.
int64_t registersOf(const LinearLayout &layout) {
  return layout.size(InDim::Register) >> llvm::popcount(layout.freeBits()[InDim::Register]);
}

unsigned bytesOf(Value value) { return warp::elementBytes(tensorOf(value).getElementType()); }

/// Instructions for an element, about.
int64_t instructionsOf(Operation *op) {
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(op))
    return getElementTypeOrSelf(op->getResult(0)).isInteger(64) ? 40 : 16;
  return isa<math::MathDialect>(op->getDialect()) ? 2 : 1;
}

/// The registers of a thread that an op's result differs in: indices repeat in runs, of which one is computed.
int64_t registersComputed(Operation *op, const LinearLayout &layout, const AxisAnalysis &axes) {
  const int64_t held = registersOf(layout);
  if (op->getNumResults() != 1 || !tensorOf(op->getResult(0)) || !hasAxisInfo(op->getResult(0)))
    return held;
  const AxisInfo info = axes.lookup(op->getResult(0));
  const bool isRepeated = llvm::any_of(info.constancy, [](int64_t run) { return run != 1; });
  return isRepeated ? std::min(held, registersThatDiffer(layout, info.constancy)) : held;
}

/// Arithmetic: on each register that differs. What is made of constants and the thread's place folds for the most part.
int64_t arithmeticCost(Operation *op, const LayoutPlan &plan, const AxisAnalysis &axes) {
  if (LayoutAttr layout = plan.running.lookup(op))
    return registersComputed(op, layout.getLayout(), axes) * instruction * instructionsOf(op);
  llvm::SmallSetVector<LayoutAttr, 2> layouts;
  for (Value result : op->getResults())
    for (LayoutAttr layout : plan.layoutsOf(result))
      layouts.insert(layout);
  int64_t cost = 0;
  for (LayoutAttr layout : layouts)
    cost += registersOf(layout.getLayout());
  return cost;
}

/// Whether an index counts up along its axis by small numbers that nobody knows, as a scan does of what it counts:
/// what is kept of a row goes to places side by side.
bool countsUp(Value index) {
  Operation *op = index.getDefiningOp();
  if (auto scan = dyn_cast_or_null<tile::ScanOp>(op))
    return scan.getSources().size() == 1 && isa<arith::AddIOp>(scan.getCombiner().front().front());
  auto isShared = [](Value each) {
    return bool(each.getDefiningOp<tile::SplatOp>()) || matchPattern(each, m_Constant());
  };
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return countsUp(op->getOperand(0));
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) && isShared(op->getOperand(1)))
    return countsUp(op->getOperand(0));
  return isa_and_nonnull<arith::AddIOp>(op) && isShared(op->getOperand(0)) && countsUp(op->getOperand(1));
}

Traffic findTraffic(Operation *op, const LinearLayout &layout, const AxisAnalysis &axes, const TargetInfo &target) {
  Access accessed = accessOf(op, axes, target);
  std::optional<warp::AffineAddress> sum = warp::affineAddressOf(op->getOperand(0));
  if (sum)
    accessed.steps.clear();
  for (size_t axis = 0; sum && axis < accessed.shape.size(); ++axis) {
    bool isKnown = llvm::all_of(sum->strided, [&](const auto &term) { return term.second.along(axis) == 0; });
    accessed.steps.push_back(isKnown ? AxisStep{sum->along(axis), accessed.shape[axis]} : AxisStep());
  }
  auto scattered = op->getOperand(0).getDefiningOp<tile::AddPtrOp>();
  if (!sum && scattered && accessed.shape.size() == 1 && countsUp(scattered.getOffset()))
    accessed.steps.assign(1, {1, accessed.shape.front()});
  AxisInfo::Axes equal;
  int64_t ofLane = accessWidth(layout, accessed) * accessed.elementBytes;
  if (isa<tile::LoadOp>(op)) { // one load for those that are equal, as `describeRepeats` says of them
    equal = accessed.pointer.constancy;
    if (accessed.mask)
      for (auto [run, ofMask] : llvm::zip_equal(equal, accessed.mask->constancy))
        run = std::min(run, ofMask);
    // What one of a lane's loads leaves of a word, its next ones find in the L1 cache, in as many of its accesses.
    ofLane = std::max(ofLane, accessWidth(layout, asWords(accessed)) * accessed.elementBytes);
  }
  int64_t instructions = instructionsOf(layout, accessed, equal), lanes = layout.size(InDim::Lane),
          filled = instructions * llvm::divideCeil(lanes * ofLane, target.sectorBytes);
  // Lanes that share an element store it once.
  if (!isa<tile::LoadOp>(op))
    filled = llvm::divideCeil(instructions * (lanes >> llvm::popcount(layout.freeBits()[InDim::Lane])) * ofLane,
                              target.sectorBytes);
  auto isWhole = [](const auto &each) { return std::get<0>(each).run == std::get<1>(each); };
  const bool isKnown = sum && llvm::all_of(llvm::zip(accessed.steps, accessed.shape), isWhole);
  return {instructions, sectorsTouched(layout, accessed, target), filled, isKnown};
}

/// What an access takes in a layout, which is looked for once for all plans of a kernel.
Traffic trafficOf(Operation *op, LayoutAttr layout, const AxisAnalysis &axes, const TargetInfo &target,
                  KnownCosts &known) {
  auto [found, isNew] = known.traffic.try_emplace({op, layout});
  if (isNew)
    found->second = findTraffic(op, layout.getLayout(), axes, target);
  return found->second;
}

/// A reduction along an axis: its registers, then shuffles, then the warps' parts through shared memory, which
/// every warp reads, or which are brought together in turn.
int64_t reductionCost(const LinearLayout &layout, unsigned axis) {
  auto along = [&](InDim dim) {
    return llvm::count_if(layout.bases(dim), [&](uint32_t basis) { return layout.delinearize(basis)[axis] != 0; });
  };
  int64_t results = registersOf(layout.dropAxis(axis));
  warp::WarpReduction reduction = warp::warpReduction(layout, axis);
  warp::LaneReduction lanes = warp::laneReduction(results, along(InDim::Lane), 1, 1, reduction.partials == 1);
  int64_t cost = (registersOf(layout) + lanes.instructions) * instruction;
  if (reduction.partials == 1)
    return cost;
  return cost + results * (reduction.inTurn ? 3 : 1 + reduction.partials) * access +
         (reduction.inTurn ? 3 : 1) * barrier;
}

/// Whether a loop does nothing with a sum but add it to what it carries: what crosses lanes and warps is done behind the loop
/// (`warp-defer-reduction`).
bool isAddedUp(tile::ReduceOp reduce) {
  if (reduce->getNumResults() != 1 || !isa<arith::AddFOp>(reduce.getCombiner().front().front()) ||
      !isa<scf::ForOp>(reduce->getParentOp()) || !reduce->getResult(0).hasOneUse())
    return false;
  auto sum = dyn_cast<arith::AddFOp>(*reduce->getUsers().begin());
  return sum && sum->hasOneUse() && isa<scf::YieldOp>(*sum->getUsers().begin()) &&
         sum->getBlock() == reduce->getBlock();
}

/// A scan along an axis: neighbours in registers, one after another; of each such run one total, which steps between
/// registers, lanes and warps join, and whose share is put before each element.
int64_t scanCost(const LinearLayout &layout, unsigned axis) {
  auto along = [&](InDim dim) {
    return llvm::count_if(layout.bases(dim), [&](uint32_t basis) { return layout.delinearize(basis)[axis] != 0; });
  };
  int64_t run = 1, held = registersOf(layout), beside = 1;
  for (int64_t size : layout.shape().drop_front(axis + 1))
    beside *= size;
  while (llvm::is_contained(layout.bases(InDim::Register), uint32_t(run * beside)) && run < layout.shape()[axis])
    run *= 2;
  const int64_t totals = llvm::divideCeil(held, run), lanes = along(InDim::Lane), warps = along(InDim::Warp);
  int64_t cost = held * instruction;
  if (run < layout.shape()[axis])
    cost += (2 * held + totals * (1 + 3 * lanes)) * instruction;
  if (warps)
    cost += totals * (1 + (int64_t(1) << warps)) * access + barrier;
  return cost;
}

int64_t costOf(Operation *op, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target) {
  OpKind kind = kindOf(op);
  if (kind == OpKind::Elementwise)
    return arithmeticCost(op, plan, axes);
  LayoutAttr layout = plan.running.lookup(op);
  if (!layout)
    return 0;
  if (isa<tile::LoadOp, tile::StoreOp, tile::AtomicRMWOp>(op))
    return accessCost(op, layout, axes, target, plan.rules.knownCosts());
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    const int64_t inThreads = registersOf(layout.getLayout()) * instruction;
    const int64_t cost = reductionCost(layout.getLayout(), reduce.getAxis());
    return isAddedUp(reduce) ? inThreads + (cost - inThreads) / tripsOf(op) : cost;
  }
  if (auto scan = dyn_cast<tile::ScanOp>(op))
    return scanCost(layout.getLayout(), scan.getAxis()) * scan.getSources().size();
  return 0;
}
} // namespace

// What a load leaves of a sector, another may find in the L1 cache; each store takes its sectors to the L2 cache.
int64_t accessCost(Operation *op, LayoutAttr layout, const AxisAnalysis &axes, const TargetInfo &target,
                   KnownCosts &known) {
  Traffic traffic = trafficOf(op, layout, axes, target, known);
  int64_t gaps = std::max<int64_t>(traffic.instructions * traffic.sectors - traffic.filled, 0);
  return traffic.instructions * access + gaps * (isa<tile::LoadOp>(op) ? sector : access);
}

int64_t tripsOf(Operation *op) {
  constexpr int64_t unknown = 8, most = 64;
  int64_t trips = 1;
  for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp()) {
    if (!isa<LoopLikeOpInterface>(parent))
      continue;
    auto loop = dyn_cast<scf::ForOp>(parent);
    std::optional<llvm::APInt> known = loop ? loop.getStaticTripCount() : std::nullopt;
    trips *= known ? std::min<int64_t>(known->getLimitedValue(most), most) : unknown;
  }
  return trips;
}

int64_t conversionCost(const LinearLayout &from, const LinearLayout &to, unsigned bytes, bool inLoop) {
  if (to.registerPermutation(from))
    return 0;
  if (auto exchange = warp::shuffleExchange(from, to, bytes)) {
    int64_t cost = 0, candidates = int64_t(1) << exchange->choosingBits().size(), words = llvm::divideCeil(bytes, 4);
    llvm::SmallSetVector<uint32_t, 8> lanes; // each of which is computed, before a loop
    for (uint32_t lane : exchange->laneOf) {
      cost += ((exchange->isOwnLane() && lane == 0 ? 0 : candidates) + candidates - 1) * words;
      lanes.insert(lane);
    }
    return (cost + (inLoop ? 0 : int64_t(lanes.size()) - 1)) * instruction;
  }
  LinearLayout shared = warp::scratchLayout(from, to, bytes);
  auto accesses = [&](const LinearLayout &layout) {
    warp::SharedAccess access = warp::accessOf(layout, shared, bytes);
    return std::max<int64_t>(registersOf(layout) / access.pieceElements(), wavefrontsOf(access, bytes).needed / 4);
  };
  return (accesses(from) + accesses(to)) * access + 2 * barrier;
}

Operation *wideningOf(Value value) {
  Operation *op = value.getDefiningOp();
  auto isOf8 = [&] { return tile::elementTypeOf(op->getOperand(0).getType()).isInteger(8); };
  return isa_and_nonnull<arith::ExtFOp>(op) || (isa_and_nonnull<arith::SIToFPOp, arith::UIToFPOp>(op) && isOf8())
             ? op
             : nullptr;
}

bool travelsNarrow(Value value, const LinearLayout &from, const LinearLayout &to) {
  Operation *widened = wideningOf(value);
  if (!widened)
    return false;
  const bool isFloat = isa<arith::ExtFOp>(widened);
  if (!llvm::all_of(value.getUsers(), llvm::IsaPred<tile::DotOp>))
    return isFloat;
  int64_t held = registersOf(from), more = (registersOf(to) - held) * instruction;
  return (isFloat && registersOf(to) < manyTimes * held) ||
         conversionCost(from, to, bytesOf(widened->getOperand(0))) + more <= conversionCost(from, to, bytesOf(value));
}

unsigned travellingBytes(Value value, const LinearLayout &from, const LinearLayout &to) {
  return bytesOf(travelsNarrow(value, from, to) ? value.getDefiningOp()->getOperand(0) : value);
}

/// `conversionCost`, which is looked for once for all plans of a kernel: shared memory has many layouts to compare.
static int64_t conversionCost(LayoutAttr from, LayoutAttr to, unsigned bytes, bool inLoop, KnownCosts &known) {
  auto [found, isNew] = known.conversions.try_emplace({from, to, 2 * bytes + inLoop}, 0);
  if (isNew)
    found->second = conversionCost(from.getLayout(), to.getLayout(), bytes, inLoop);
  return found->second;
}

int64_t conversionsOf(Value value, const LayoutPlan &plan) {
  LayoutAttr own = tensorOf(value) ? plan.own.lookup(value) : LayoutAttr();
  if (!own)
    return 0;
  int64_t cost = 0;
  const bool inLoop = bool(value.getParentRegion()->getParentOfType<LoopLikeOpInterface>());
  for (LayoutAttr other : plan.layoutsOf(value)) {
    if (other == own)
      continue;
    const LinearLayout &from = own.getLayout(), &to = other.getLayout();
    cost += (travelsNarrow(value, from, to) ? registersOf(to) * instruction : 0) +
            conversionCost(own, other, travellingBytes(value, from, to), inLoop, plan.rules.knownCosts());
  }
  return cost;
}

int64_t sectorsRead(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target) {
  int64_t total = 0;
  function.walk([&](Operation *op) {
    LayoutAttr layout = plan.running.lookup(op);
    if (!layout || !isa<tile::LoadOp>(op))
      return;
    // Where all lie as far apart as is known, what one instruction leaves of a sector the next one finds in a cache.
    Traffic traffic = trafficOf(op, layout, axes, target, plan.rules.knownCosts());
    int64_t sectors = traffic.instructions * traffic.sectors;
    if (traffic.isKnown)
      sectors = std::min(sectors, std::max(traffic.sectors, traffic.filled));
    total += sectors * tripsOf(op);
  });
  return total;
}

int64_t costOf(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target) {
  int64_t total = 0;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    int64_t cost = costOf(op, plan, axes, target);
    for (Value result : op->getResults())
      cost += conversionsOf(result, plan);
    total += cost * tripsOf(op);
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        total += conversionsOf(argument, plan) * tripsOf(&region.front().front());
  });
  return total;
}

} // namespace weft
