// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-multicast: programs that are neighbours along the grid's first axis share what their producers copy.
//
//   warp.mbarrier_init %ring {1, 8}            warp.mbarrier_init %ring {2, 16}
//   warp.barrier {withProducer}                warp.barrier {withProducer, ofCluster}
//   scf.for {                                  scf.for {
//     warp.produce {                             warp.produce {
//       warp.mbarrier_wait %empty                  warp.mbarrier_wait %empty {ofCluster}
//       warp.mbarrier_expect %full        ─▶       warp.mbarrier_expect %full {ofCluster}
//       warp.box_copy %k[%i] on %full              warp.box_copy %k[%i] on %full {by = 0}
//       warp.box_copy %v[%i] on %full              warp.box_copy %v[%i] on %full {by = 1}
//     }                                          }
//     warp.mbarrier_arrive %empty                warp.mbarrier_arrive %empty {ofCluster}
//   }                                          }
//   warp.barrier                               warp.barrier {withProducer, ofCluster}
//   warp.mbarrier_inval %ring                  warp.mbarrier_inval %ring
//
// A copy goes to all blocks of the cluster where its coordinates are the same in all of them: nothing that they are
// computed from differs along that axis. Where it may, what they are computed from before all loops is computed as the
// other blocks compute it, and a predicate of the copy says whether it is the same (`where`): so the rows of a matmul's
// programs are shared whatever order a grid of one axis puts them in. The blocks take turns in making copies, and each
// waits, before it copies, until all of them have read what lay there; so they must make as many iterations. It tells the
// others, too, that it got that far: else a block whose copies are all its own could arrive twice at a barrier before the
// other block's warps have arrived once, which count for the same. No block's barriers end before all are done with them.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPMULTICAST
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct Multicast : weft::warp::impl::WarpMulticastBase<Multicast> {
  void runOnOperation() override;
};

/// Values that may differ between programs that are neighbours along the grid's first axis.
class Differing {
public:
  explicit Differing(func::FuncOp kernel);
  bool contains(Value value) const { return values.contains(value); }
  bool containsAny(ValueRange all) const {
    return llvm::any_of(all, [&](Value each) { return contains(each); });
  }

private:
  void add(ValueRange more) {
    for (Value each : more)
      if (values.insert(each).second)
        pending.push_back(each);
  }
  void addUser(OpOperand &use);
  void addYielded(Operation *parent, unsigned index);

  DenseSet<Value> values;
  SmallVector<Value> pending;
};
} // namespace

/// What a kernel writes that other programs of it may read. Programs over whole tensors read none of what they write.
static SmallVector<DeviceAccess> writesOf(func::FuncOp kernel) {
  SmallVector<DeviceAccess> writes;
  if (!kernel->hasAttr(tile::ordersAccessesAttrName))
    kernel.walk([&](Operation *op) {
      if (std::optional<DeviceAccess> access = deviceAccessOf(op, /*warps=*/1); access && access->writes)
        writes.push_back(*access);
    });
  return writes;
}

/// What gives another number in each program, whatever it is given: its place in the grid, what PTX reads of the machine,
/// what memory gives to one alone, and what others may have written before one reads it. (A place in shared memory is the
/// same in all blocks.)
static bool isOfProgram(Operation *op, ArrayRef<DeviceAccess> writes) {
  if (auto id = dyn_cast<tile::ProgramIdOp>(op))
    return id.getAxis() == tile::Axis::X;
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    DeviceAccess read = *deviceAccessOf(load, /*warps=*/1);
    return load.getIsVolatile() ||
           llvm::any_of(writes, [&](const DeviceAccess &write) { return mayShareBase(read, write); });
  }
  return isa<tile::InlineAsmOp>(op) || (op->getNumRegions() == 0 && !isMemoryEffectFree(op) && !isa<AllocOp>(op));
}

Differing::Differing(func::FuncOp kernel) {
  SmallVector<DeviceAccess> writes = writesOf(kernel);
  kernel.walk([&](Operation *op) {
    if (isOfProgram(op, writes))
      add(op->getResults());
  });
  while (!pending.empty())
    for (OpOperand &use : pending.pop_back_val().getUses())
      addUser(use);
}

/// What a region's terminator gives its op: the same number of a result, and of what the next iteration starts with.
void Differing::addYielded(Operation *parent, unsigned index) {
  if (auto loop = dyn_cast<scf::ForOp>(parent))
    return add({loop.getResult(index), loop.getRegionIterArg(index)});
  if (isa<scf::IfOp>(parent))
    return add(parent->getResult(index));
  add(parent->getResults());
  for (Region &region : parent->getRegions())
    for (Block &block : region)
      add(block.getArguments());
}

void Differing::addUser(OpOperand &use) {
  Operation *user = use.getOwner();
  if (user->hasTrait<OpTrait::IsTerminator>() && !isa<func::FuncOp>(user->getParentOp()))
    return addYielded(user->getParentOp(), use.getOperandNumber());
  if (auto loop = dyn_cast<scf::ForOp>(user)) {
    unsigned controls = loop.getNumControlOperands();
    if (use.getOperandNumber() >= controls)
      return addYielded(loop, use.getOperandNumber() - controls);
    add(loop.getInductionVar()); // another number of iterations: whatever they carry differs, too
    add(loop.getRegionIterArgs());
  }
  add(user->getResults());
  if (!isa<scf::ForOp, scf::IfOp>(user))
    for (Region &region : user->getRegions())
      for (Block &block : region)
        add(block.getArguments());
}

/// Whether all blocks come to an op equally often.
static bool isReachedByAll(Operation *op, const Differing &differing) {
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent); parent = parent->getParentOp()) {
    if (isa<ProduceOp>(parent))
      continue;
    if (!isa<scf::ForOp, scf::IfOp>(parent))
      return false;
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (differing.containsAny(loop ? ValueRange(loop->getOperands().take_front(loop.getNumControlOperands()))
                                   : ValueRange(parent->getOperands())))
      return false;
  }
  return true;
}

namespace {
/// Copies whose coordinates may be the same in all blocks, and where that is known only when they run, the values that
/// tell: computed before all loops.
struct SharedCopy {
  BoxCopyOp copy;
  SmallVector<Value, 2> compared;
};

/// What producers of a cluster do together.
struct Shared {
  SmallVector<SharedCopy> copies;
  int own = 0; // copies that each block makes for itself
  SmallVector<MbarrierInitOp> rings;
  SmallVector<MbarrierInvalOp> ends;
  SmallVector<MbarrierArriveOp> arrivals;
  SmallVector<MbarrierWaitOp> waits;
  SmallVector<MbarrierExpectOp> expects;
  SmallVector<BarrierOp> begun;
};
} // namespace

/// What a value is computed from that may differ between programs, itself included, in order.
static FailureOr<SetVector<Operation *>> differingSlice(Operation *op, const Differing &differing) {
  SetVector<Operation *> from;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *each) { return differing.containsAny(each->getResults()); };
  if (failed(getBackwardSlice(op, &from, options)))
    return failure();
  return from;
}

/// Whether what gives a value may be computed as another program would: by arithmetic on scalars alone.
static bool isArithmetic(Operation *op) {
  auto isScalar = [](Type type) { return !isa<ShapedType>(type); };
  return op && op->getNumRegions() == 0 && isMemoryEffectFree(op) && !isa<tile::InlineAsmOp>(op) &&
         llvm::all_of(op->getOperandTypes(), isScalar) && llvm::all_of(op->getResultTypes(), isScalar);
}

/// Whether a value is another one in every program: a program's number, times a constant, plus what all have.
static bool isDistinct(Value value, const Differing &differing) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<tile::ProgramIdOp>(op))
    return differing.contains(value);
  if (isa_and_nonnull<arith::ExtSIOp, arith::ExtUIOp>(op))
    return isDistinct(op->getOperand(0), differing);
  if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op))
    return false;
  Value left = op->getOperand(0), right = op->getOperand(1);
  if (isa<arith::MulIOp, arith::ShLIOp>(op))
    return isDistinct(left, differing) && matchPattern(right, m_Constant()) && !matchPattern(right, m_Zero());
  return (isDistinct(left, differing) && !differing.contains(right)) ||
         (isDistinct(right, differing) && !differing.contains(left));
}

/// The differing values before all loops that a value is computed from; false where it differs for another reason, or
/// in every program.
static bool findCompared(Value value, const Differing &differing, SmallVectorImpl<Value> &compared) {
  if (!differing.contains(value) || llvm::is_contained(compared, value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!isArithmetic(op) || isDistinct(value, differing))
    return false;
  if (!isa<func::FuncOp>(op->getParentOp()))
    return llvm::all_of(op->getOperands(), [&](Value each) { return findCompared(each, differing, compared); });
  FailureOr<SetVector<Operation *>> from = differingSlice(op, differing);
  if (failed(from) || !llvm::all_of(*from, isArithmetic))
    return false;
  compared.push_back(value);
  return true;
}

/// Finds it in a kernel, or says why there is nothing that all can share.
static StringRef findShared(func::FuncOp kernel, const Differing &differing, Shared &found) {
  bool together = true;
  auto meet = [&](Operation *op) { together = together && isReachedByAll(op, differing); };
  kernel.walk([&](Operation *op) {
    if (auto init = dyn_cast<MbarrierInitOp>(op); init && init.getArrivals().size() == 2) {
      found.rings.push_back(init);
    } else if (auto arrive = dyn_cast<MbarrierArriveOp>(op)) {
      found.arrivals.push_back(arrive);
      meet(op);
    } else if (auto barrier = dyn_cast<BarrierOp>(op); barrier && barrier.getWithProducer()) {
      found.begun.push_back(barrier);
      meet(op);
    } else if (auto wait = dyn_cast<MbarrierWaitOp>(op);
               wait && cast<SharedType>(wait.getBarrier().getType()).getShape()[0] == 2) {
      found.waits.push_back(wait);
      meet(op);
    } else if (op->getParentOfType<ProduceOp>()) {
      if (auto expect = dyn_cast<MbarrierExpectOp>(op)) {
        found.expects.push_back(expect);
        meet(op);
      }
      if (auto copy = dyn_cast<BoxCopyOp>(op)) {
        SharedCopy shared{copy, {}};
        bool may = isReachedByAll(op, differing) && llvm::all_of(op->getOperands(), [&](Value each) {
                     return findCompared(each, differing, shared.compared);
                   });
        may ? found.copies.push_back(std::move(shared)) : void(++found.own);
      }
    }
  });
  kernel.walk([&](MbarrierInvalOp end) {
    if (llvm::any_of(found.rings, [&](MbarrierInitOp ring) { return ring.getRing() == end.getRing(); }))
      found.ends.push_back(end);
  });
  if (found.rings.empty())
    return "no warp of its own makes a loop's copies";
  if (!together)
    return "how often they copy depends on the program";
  return found.copies.empty() ? StringRef("all their copies depend on the program") : StringRef();
}

/// A value as the block computes it whose number in the cluster differs from this one's in the bits of `distance`. What is
/// the same in both is not computed again: a loop that counts may write memory, too.
static Value asIn(Value value, int64_t distance, const Differing &differing, OpBuilder &b) {
  FailureOr<SetVector<Operation *>> from = differingSlice(value.getDefiningOp(), differing);
  assert(succeeded(from) && "findCompared has found it");
  IRMapping mapping;
  for (Operation *op : *from) {
    b.clone(*op, mapping);
    auto id = dyn_cast<tile::ProgramIdOp>(op);
    if (!id || id.getAxis() != tile::Axis::X)
      continue;
    Value bits = arith::ConstantOp::create(b, op->getLoc(), b.getI32IntegerAttr(static_cast<int32_t>(distance)));
    mapping.map(id.getResult(), arith::XOrIOp::create(b, op->getLoc(), id, bits).getResult());
  }
  return mapping.lookup(value);
}

/// Whether values are the same in all blocks of the cluster, computed behind the last of them as each of the other
/// blocks computes them.
static Value areSame(ArrayRef<Value> values, int64_t blocks, const Differing &differing) {
  Operation *last = nullptr;
  for (Value value : values)
    if (!last || last->isBeforeInBlock(value.getDefiningOp()))
      last = value.getDefiningOp();
  OpBuilder b(last->getContext());
  b.setInsertionPointAfter(last);
  Location loc = last->getLoc();
  Value same;
  for (int64_t distance = 1; distance < blocks; ++distance)
    for (Value value : values) {
      Value equal = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value, asIn(value, distance, differing, b));
      same = same ? arith::AndIOp::create(b, loc, same, equal).getResult() : equal;
    }
  return same;
}

static void share(Shared &found, int64_t blocks, const Differing &differing) {
  for (MbarrierInitOp ring : found.rings)
    ring.setArrivals({ring.getArrivals()[0] * blocks, ring.getArrivals()[1] * blocks});
  for (MbarrierArriveOp arrive : found.arrivals)
    arrive.setOfCluster(true);
  for (MbarrierWaitOp wait : found.waits)
    wait.setOfCluster(true);
  for (MbarrierExpectOp expect : found.expects)
    expect.setOfCluster(true);
  for (BarrierOp barrier : found.begun)
    barrier.setOfCluster(true);
  for (auto [number, shared] : llvm::enumerate(found.copies)) {
    shared.copy.setBy(static_cast<int64_t>(number) % blocks);
    if (!shared.compared.empty())
      shared.copy.getWhereMutable().assign(areSame(shared.compared, blocks, differing));
  }
  for (MbarrierInvalOp end : found.ends) {
    OpBuilder b(end);
    auto before = dyn_cast_or_null<BarrierOp>(end->getPrevNode());
    BarrierOp::create(b, end.getLoc(), Value(), /*withProducer=*/true, /*ofCluster=*/true);
    if (before && !before.getWhere() && !before.getWithProducer())
      before.erase();
  }
}

void Multicast::runOnOperation() {
  func::FuncOp kernel = getOperation();
  tile::Schedule schedule = tile::scheduleOf(kernel);
  if (schedule.cluster == 1)
    return;
  Shared found;
  Differing differing(kernel);
  StringRef hindrance = TargetInfo::ofOrDefault(kernel).mostCluster < schedule.cluster
                            ? StringRef("the target has no clusters of so many")
                            : findShared(kernel, differing, found);
  if (hindrance.empty()) {
    share(found, schedule.cluster, differing);
    remarks::decided(remarks::clusters, kernel) << remark::reason(
        "{0} blocks share {1} of {2} copies", schedule.cluster, found.copies.size(), found.copies.size() + found.own);
    return;
  }
  remarks::missed(remarks::sharedCopies, kernel) << remark::reason("blocks share no copies: {0}", hindrance);
  kernel->setAttr(tile::scheduleAttrName,
                  tile::ScheduleAttr::get(&getContext(), schedule.warps, schedule.stages, /*cluster=*/1));
}
