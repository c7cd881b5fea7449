// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LateProducts.h.
#include "dialects/Warp/Transforms/Warpgroups/LateProducts.h"
#include "dialects/Tile/IR/Schedule.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft::warp {

/// The wait for a product, which stands behind it and has nothing else to wait for; null where there is another.
static WgmmaWaitOp waitOf(WgmmaOp product) {
  auto wait = dyn_cast_or_null<WgmmaWaitOp>(product->getNextNode());
  bool own = wait && wait.getValues().size() == 1 && wait.getValues().front() == product.getResult();
  return own && product.getResult().hasOneUse() ? wait : WgmmaWaitOp();
}

static Value sumsOf(WgmmaOp product) { return waitOf(product).getResults().front(); }

// --- finding them ---

namespace {
/// Ops of a loop's body that need one of some values, in the same iteration.
class Dependents {
public:
  explicit Dependents(scf::ForOp loop) : body(loop.getBody()) {}
  void add(Value value) {
    for (Operation *user : value.getUsers())
      if (Operation *here = body->findAncestorOpInBlock(*user); here && ops.insert(here))
        for (Value result : here->getResults())
          add(result);
  }
  bool contains(Operation *op) const { return ops.contains(op); }
  /// Whether an operand is computed from one of the values.
  bool give(Value operand) const { return operand.getDefiningOp() && contains(operand.getDefiningOp()); }
  SmallVector<Operation *> inOrder() const {
    SmallVector<Operation *> ordered(ops.begin(), ops.end());
    llvm::sort(ordered, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
    return ordered;
  }

private:
  Block *body;
  llvm::SetVector<Operation *> ops;
};
} // namespace

/// The number of the carried value that a product's sums become, if nothing else takes them.
static std::optional<unsigned> carriedSums(WgmmaOp product, scf::ForOp loop) {
  Value sums = sumsOf(product);
  if (!sums.hasOneUse() || *sums.getUsers().begin() != loop.getBody()->getTerminator())
    return std::nullopt;
  return sums.use_begin()->getOperandNumber();
}

/// Whether one of `products` goes on from a product's sums, and nothing else takes them.
static bool goesOnIn(WgmmaOp product, ArrayRef<WgmmaOp> products) {
  Value sums = sumsOf(product);
  return sums.hasOneUse() && llvm::any_of(products, [&](WgmmaOp next) { return next.getAcc() == sums; });
}

static int64_t threadsOf(scf::ForOp loop) { return 32 * tile::scheduleOf(loop->getParentOfType<func::FuncOp>()).warps; }

/// Shared memory of a block, at the most.
static int64_t sharedBytes(func::FuncOp kernel, ArrayRef<Value> rings) {
  auto schedule = kernel->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
  const int64_t stages = schedule ? schedule.getStages() : 1;
  int64_t bytes = 0;
  kernel.walk([&](AllocOp alloc) {
    bytes += alloc.getResult().getType().getBytes() * (llvm::is_contained(rings, alloc.getResult()) ? stages : 1);
  });
  return bytes;
}

/// Why tensor memory, or the registers that are loaded from it, do not allow them; empty where they do.
static StringRef whyNoColumns(scf::ForOp loop, const ProductRegisters &registers, int64_t most,
                              const TargetInfo &target) {
  // A row of sums is a thread's: as many columns as it would have registers.
  int64_t columns = registers.fromZero + registers.operands;
  for (Value carried : loop.getRegionIterArgs())
    if (auto sums = dyn_cast<RankedTensorType>(carried.getType()); sums && sums.getRank() == 2)
      columns += registersOf(carried);
  const auto products = loop.getBody()->getOps<WgmmaOp>();
  const int64_t lanes = products.empty() ? target.warpgroups.m : (*products.begin()).getShape()[0];
  if (columns * threadsOf(loop) > int64_t(target.warpgroups.tensorColumns) * lanes)
    return "tensor memory does not hold its sums and its operand beside the other products' sums";
  return registers.fromZero + registers.operands > most ? "a thread's registers do not hold its operand beside scores"
                                                        : "";
}

/// Why a thread's registers do not allow the late products an iteration later; empty where they do.
static StringRef whyNoRegisters(scf::ForOp loop, ArrayRef<Value> rings, const TargetInfo &target) {
  const ProductRegisters registers = registersOfProducts(loop);
  const int64_t threads = threadsOf(loop);
  // An eighth is for addresses, masks and what is computed on the way.
  const int64_t most = std::min<int64_t>(target.registersPerThread, target.registersPerProcessor / threads) * 7 / 8;
  if (target.warpgroups.tensorColumns)
    return whyNoColumns(loop, registers, most, target);
  if (registers.carried + registers.fromZero + registers.operands > most)
    return "a thread's registers do not hold its sums and its operand beside the other products' sums";
  auto twoFit = [&](int64_t count) { return 2 * threads * count <= target.registersPerProcessor; };
  const int64_t shared = sharedBytes(loop->getParentOfType<func::FuncOp>(), rings) + target.reservedSharedBytes;
  if (twoFit(registers.atOnce()) && !twoFit(registers.late()) && 2 * shared <= target.sharedBytesPerProcessor)
    return "a multiprocessor holds two blocks without, of which one computes while the other waits";
  return "";
}

/// Why a late product cannot run an iteration later; empty where it can, whose tile is added to `tiles`.
static StringRef whyNotLate(WgmmaOp product, scf::ForOp loop, ArrayRef<WgmmaOp> late, ArrayRef<Value> rings,
                            llvm::SetVector<Value> &tiles) {
  if (!product.takesRegisters())
    return "its first operand lies in shared memory";
  if (!carriedSums(product, loop) && !goesOnIn(product, late))
    return "the loop needs its sums at once";
  Value tile = tileViewed(product.getB());
  if (loop.isDefinedOutsideOfLoop(tile))
    return "";
  if (!llvm::is_contained(rings, tile))
    return "the copies into its tile do not run ahead";
  tiles.insert(tile);
  return "";
}

/// Whether a tile is read by `late` alone.
static bool isReadBy(ArrayRef<WgmmaOp> late, Value tile) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    if (auto permute = dyn_cast<PermuteSharedOp>(user))
      return isReadBy(late, permute.getResult());
    if (auto product = dyn_cast<WgmmaOp>(user))
      return llvm::is_contained(late, product);
    return isa<AsyncCopyOp, DeallocOp>(user);
  });
}

/// Whether an op is one of `products` or the wait for one.
static bool isOf(ArrayRef<WgmmaOp> products, Operation *op) {
  auto wait = dyn_cast<WgmmaWaitOp>(op);
  return llvm::any_of(products, [&](WgmmaOp product) { return product == op || (wait && waitOf(product) == wait); });
}

/// Whether an op may move to the next iteration.
static bool mayWait(Operation *op) { return isMemoryEffectFree(op) && scratchBytes(op) == 0; }

/// Whether only ops of `before` and late products take what an op gives.
static bool givesOnly(Operation *op, const llvm::SetVector<Operation *> &before, ArrayRef<WgmmaOp> late) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    Operation *here = op->getBlock()->findAncestorOpInBlock(*user);
    return before.contains(here) || isOf(late, here);
  });
}

/// Adds the casts of f32 that give an operand to `before`. False where there is none: what gives the next operand would
/// write registers that the product under way reads.
static bool addCasts(Value operand, scf::ForOp loop, ArrayRef<WgmmaOp> late, llvm::SetVector<Operation *> &before) {
  bool any = false;
  for (Operation *op = operand.getDefiningOp();
       isa_and_nonnull<CastOpInterface>(op) && op->getBlock() == loop.getBody() && op->getNumOperands() == 1 &&
       getElementTypeOrSelf(op->getOperand(0)).isF32() && mayWait(op) && givesOnly(op, before, late);
       op = op->getOperand(0).getDefiningOp()) {
    before.insert(op);
    any = true;
  }
  return any;
}

/// Whether what is computed from the sums of the iteration before can be written over them: a value that two ops take
/// lives when the first of them has given the product's new sums, which then have registers of their own. The copies
/// back, on the way to the next iteration, would read sums that the product under way still writes.
static bool areOverwritten(Value sums) {
  if (!sums.hasOneUse())
    return false;
  Operation *user = *sums.getUsers().begin();
  return isa<WgmmaOp>(user) || user->hasTrait<OpTrait::Elementwise>();
}

LateProducts findLateProducts(scf::ForOp loop, ArrayRef<Value> rings, const TargetInfo &target) {
  Dependents fromProducts(loop), fromLate(loop);
  SmallVector<WgmmaOp> early, late;
  bool others = false; // products that are not followed here
  loop.getBody()->walk([&](WgmmaOp product) {
    if (product->getBlock() != loop.getBody() || !waitOf(product)) {
      others = true;
      return;
    }
    bool takes = fromProducts.give(product.getA()) || fromProducts.give(product.getB());
    (takes || fromLate.give(product.getAcc()) ? late : early).push_back(product);
    fromProducts.add(product.getResult());
    if (!late.empty() && late.back() == product)
      fromLate.add(product.getResult());
  });
  if (others || early.empty() || late.empty())
    return {};
  llvm::SetVector<Value> tiles;
  for (WgmmaOp product : late)
    if (StringRef hindrance = whyNotLate(product, loop, late, rings, tiles); !hindrance.empty())
      return {{}, {}, {}, hindrance};
  if (!llvm::all_of(tiles, [&](Value tile) { return isReadBy(late, tile); }))
    return {{}, {}, {}, "an iteration's other products read its tile too"};
  Dependents fromSums(loop);
  for (WgmmaOp product : late)
    if (std::optional<unsigned> index = carriedSums(product, loop))
      fromSums.add(loop.getRegionIterArg(*index));
  if (llvm::any_of(early, [&](WgmmaOp product) { return fromSums.contains(product); }))
    return {{}, {}, {}, "the next iteration's products need its sums"};
  llvm::SetVector<Operation *> before;
  for (Operation *op : fromSums.inOrder())
    if (!isOf(late, op) && !op->hasTrait<OpTrait::IsTerminator>())
      before.insert(op);
  if (!llvm::all_of(before, [&](Operation *op) { return mayWait(op) && givesOnly(op, before, late); }))
    return {{}, {}, {}, "something else needs what is computed from its sums"};
  for (WgmmaOp product : late)
    if (std::optional<unsigned> index = carriedSums(product, loop);
        index && !areOverwritten(loop.getRegionIterArg(*index)))
      return {{}, {}, {}, "more than one takes its sums of the iteration before"};
  for (WgmmaOp product : late)
    if (!addCasts(product.getA(), loop, late, before))
      return {{}, {}, {}, "its operand is no cast of f32 of its own"};
  if (StringRef hindrance = whyNoRegisters(loop, rings, target); !hindrance.empty())
    return {{}, {}, {}, hindrance};
  SmallVector<Operation *> ordered = before.takeVector();
  llvm::sort(ordered, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  return {std::move(late), std::move(ordered), llvm::to_vector(tiles), {}};
}

// --- running them late ---

namespace {
/// Rewrites one loop.
class Rewriter {
public:
  Rewriter(scf::ForOp loop, const LateProducts &late, Operation *arrived, ArrayRef<unsigned> places);
  scf::ForOp run();

private:
  bool isLate(Operation *op) const { return isOf(late.products, op) || llvm::is_contained(late.before, op); }
  /// Clones what stands before the late products where the builder stands, behind a wait for their sums of the iteration
  /// before. `mapping` has these, and what else the ops take.
  void cloneBefore(IRMapping &mapping);
  /// Clones the late products, behind those, and maps their sums.
  void cloneProducts(IRMapping &mapping);
  void cloneFirst(IRMapping &mapping);
  scf::ForOp loopOverRest(const IRMapping &first);
  void cloneBody(scf::ForOp rest, IRMapping &mapping, IRMapping &lateMapping);
  SmallVector<Value> cloneLast(scf::ForOp rest);
  IRMapping ofIterationBefore(ValueRange carried);

  scf::ForOp loop;
  const LateProducts &late;
  Operation *arrived;
  ArrayRef<unsigned> places; // carried values that say where the ring stands
  OpBuilder b;
  Location loc;
  llvm::SetVector<Value> taken;                   // from the iteration before, besides sums
  SmallVector<std::pair<unsigned, WgmmaOp>> sums; // carried values, and the products that give them
};
} // namespace

Rewriter::Rewriter(scf::ForOp loop, const LateProducts &late, Operation *arrived, ArrayRef<unsigned> places)
    : loop(loop), late(late), arrived(arrived), places(places), b(loop), loc(loop.getLoc()) {
  llvm::SmallDenseSet<Value> arguments;
  for (WgmmaOp product : late.products)
    if (std::optional<unsigned> index = carriedSums(product, loop)) {
      sums.emplace_back(*index, product);
      arguments.insert(loop.getRegionIterArg(*index));
    }
  auto take = [&](Value operand) {
    Operation *op = operand.getDefiningOp();
    bool here = op ? op->getBlock() == loop.getBody() : operand.getParentBlock() == loop.getBody();
    if (here && !arguments.contains(operand) && !(op && isLate(op)) && !isa<SharedType>(operand.getType()))
      taken.insert(operand);
  };
  for (Operation *op : late.before)
    op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), take); });
  for (WgmmaOp product : late.products)
    llvm::for_each(product->getOperands(), take);
}

/// The values of the iteration before, by what a loop carries of them.
IRMapping Rewriter::ofIterationBefore(ValueRange carried) {
  IRMapping mapping;
  for (const auto &[index, product] : sums)
    mapping.map(loop.getRegionIterArg(index), carried[index]);
  for (auto [value, argument] : llvm::zip_equal(taken, carried.drop_front(loop.getNumRegionIterArgs())))
    mapping.map(value, argument);
  return mapping;
}

void Rewriter::cloneBefore(IRMapping &mapping) {
  // Operands are converted behind the wait too, into registers that the products read.
  llvm::SetVector<Value> tied;
  for (const auto &[index, product] : sums)
    tied.insert(loop.getRegionIterArg(index));
  for (Value value : taken)
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType());
        tensor && tensor.getElementType().isF32() && llvm::any_of(value.getUsers(), [&](Operation *user) {
          return llvm::is_contained(late.before, user) && user->getNumOperands() == 1;
        }))
      tied.insert(value);
  auto values = llvm::map_to_vector(tied, [&](Value value) { return mapping.lookup(value); });
  auto wait = WgmmaWaitOp::create(b, loc, values, /*pending=*/0);
  for (auto [value, done] : llvm::zip_equal(tied, wait.getResults()))
    mapping.map(value, done);
  for (Operation *op : late.before)
    b.clone(*op, mapping);
}

void Rewriter::cloneProducts(IRMapping &mapping) {
  for (WgmmaOp product : late.products) {
    cloneComputed(product.getB(), b, mapping, loop.getBody());
    b.clone(*product, mapping);
    if (!carriedSums(product, loop))
      b.clone(*waitOf(product), mapping);
  }
}

/// The first iteration, but for its late products and what stands before them.
void Rewriter::cloneFirst(IRMapping &mapping) {
  mapping.map(loop.getInductionVar(), loop.getLowerBound());
  mapping.map(loop.getRegionIterArgs(), loop.getInitArgs());
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isLate(&op))
      b.clone(op, mapping);
}

void Rewriter::cloneBody(scf::ForOp rest, IRMapping &mapping, IRMapping &lateMapping) {
  b.setInsertionPointToStart(rest.getBody());
  cloneBefore(lateMapping);
  Operation *lastEarly = nullptr;
  for (Operation &op : loop.getBody()->without_terminator()) {
    if (isLate(&op))
      continue;
    Operation *clone = b.clone(op, mapping);
    if (isa<WgmmaWaitOp>(clone))
      lastEarly = clone;
  }
  b.setInsertionPointAfter(lastEarly);
  for (auto [argument, now] : llvm::zip(loop.getRegionIterArgs(), rest.getRegionIterArgs()))
    if (isa<IntegerType>(argument.getType()) && !lateMapping.contains(argument))
      lateMapping.map(argument, now); // where tiles lie
  cloneProducts(lateMapping);
}

scf::ForOp Rewriter::loopOverRest(const IRMapping &first) {
  SmallVector<Value> inits;
  for (auto [yielded, init] : llvm::zip_equal(loop.getYieldedValues(), loop.getInitArgs()))
    inits.push_back(yielded.getDefiningOp() && isLate(yielded.getDefiningOp()) ? init : first.lookupOrDefault(yielded));
  for (Value value : taken)
    inits.push_back(first.lookup(value));
  Value second = arith::AddIOp::create(b, loc, loop.getLowerBound(), loop.getStep());
  auto rest = scf::ForOp::create(b, loc, second, loop.getUpperBound(), loop.getStep(), inits);
  rest->setAttrs(loop->getAttrs());
  IRMapping mapping, lateMapping = ofIterationBefore(rest.getRegionIterArgs());
  mapping.map(loop.getBody()->getArguments(),
              rest.getBody()->getArguments().take_front(loop.getBody()->getNumArguments()));
  cloneBody(rest, mapping, lateMapping);
  SmallVector<Value> yielded = llvm::map_to_vector(loop.getYieldedValues(), [&](Value value) -> Value {
    bool sum = value.getDefiningOp() && isLate(value.getDefiningOp());
    return sum ? Value() : mapping.lookupOrDefault(value);
  });
  for (auto &[index, product] : sums)
    yielded[index] = lateMapping.lookup(Value(product.getResult()));
  for (Value value : taken)
    yielded.push_back(mapping.lookupOrDefault(value));
  b.setInsertionPointToEnd(rest.getBody());
  scf::YieldOp::create(b, loc, yielded);
  b.setInsertionPointAfter(rest);
  return rest;
}

/// The last late products, whose tiles are waited for; what the loop gives.
SmallVector<Value> Rewriter::cloneLast(scf::ForOp rest) {
  unsigned count = loop.getNumRegionIterArgs();
  IRMapping mapping = ofIterationBefore(rest.getResults()), now;
  cloneBefore(mapping);
  now.map(loop.getRegionIterArgs(), rest.getResults().take_front(count));
  for (Operation &op : *loop.getBody()) {
    b.clone(op, now);
    if (&op == arrived)
      break;
  }
  for (auto [argument, value] : llvm::zip(loop.getRegionIterArgs(), rest.getResults()))
    if (isa<IntegerType>(argument.getType()) && !mapping.contains(argument))
      mapping.map(argument, value);
  cloneProducts(mapping);
  SmallVector<Value> results(rest.getResults().take_front(count)), started;
  for (auto &[index, product] : sums)
    started.push_back(mapping.lookup(Value(product.getResult())));
  auto wait = WgmmaWaitOp::create(b, loc, started, /*pending=*/0);
  for (auto [sum, done] : llvm::zip_equal(sums, wait.getResults()))
    results[sum.first] = done;
  for (unsigned index : places) {
    cloneComputed(loop.getYieldedValues()[index], b, now, loop.getBody());
    results[index] = now.lookupOrDefault(loop.getYieldedValues()[index]);
  }
  return results;
}

scf::ForOp Rewriter::run() {
  auto predicate = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value any = arith::CmpIOp::create(b, loc, predicate, loop.getLowerBound(), loop.getUpperBound());
  auto branch = scf::IfOp::create(b, loc, loop.getResultTypes(), any, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, loop.getInitArgs());
  b.setInsertionPointToStart(branch.thenBlock());
  IRMapping first;
  cloneFirst(first);
  scf::ForOp rest = loopOverRest(first);
  scf::YieldOp::create(b, loc, cloneLast(rest));
  loop->replaceAllUsesWith(branch.getResults());
  loop->erase();
  return rest;
}

scf::ForOp runLate(scf::ForOp loop, const LateProducts &late, Operation *arrived, ArrayRef<unsigned> places) {
  return Rewriter(loop, late, arrived, places).run();
}

} // namespace weft::warp
