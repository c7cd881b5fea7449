// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-order-accesses: a program's accesses to device memory happen in the order in which it makes them, though several
// threads make them.
//
// The walk follows the structured control flow and carries the accesses that no barrier has ordered yet. A barrier goes
//   - before an access that may touch, in another thread, what an earlier one touched, one of the two a write;
//   - before an atomic that releases, since one thread does that for all;
//   - between what acquires, in one thread, and the next access. After a volatile load, which acquires nothing by
//     itself, a fence goes first.
//
//   %x = tile.load %p                                     %x = tile.load %p
//   tile.store %p, %y                                     warp.barrier
//   tile.atomic_rmw exchange %lock, %zero        ─▶       tile.store %p, %y
//     {order = release}                                   warp.barrier
//                                                         tile.atomic_rmw exchange %lock, %zero ...
//
// Where a loop moves both accesses by a stride that is an argument, or one is so many strides behind the other, and a
// tile's elements reach less far than that is likely to be, the barrier is one that the block waits at only if the stride
// is near:
//
//   for %i: tile.store (x + w·%i + at[0..64)), %y   ─▶    warp.barrier where -64 < w and w < 64
//                                                         tile.store ...
//
// A load of what several threads hold, of which one writes what becomes of it, is that one's alone: no other would wait.
// Barriers that are there serve, and so do those of ops that hand values round through shared memory. What a loop would be
// given for the sake of accesses before it alone goes before the loop. The compiler's own kernels (`tile.orders_accesses`)
// place the first kind of barrier themselves.
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

namespace weft::warp {
#define GEN_PASS_DEF_WARPORDERACCESSES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// An access, and whether a back edge of a loop lies behind it.
using Key = std::pair<Operation *, bool>;

/// What no barrier has ordered yet.
struct State {
  std::map<Key, DeviceAccess> pending;
  bool acquired = false; // one thread has acquired
  bool unfenced = false; // what was read volatile has not become an acquire

  void join(const State &other) {
    for (auto &[key, access] : other.pending)
      pending.try_emplace(key, access).first->second.isAsync |= access.isAsync;
    acquired |= other.acquired;
    unfenced |= other.unfenced;
  }
  bool operator==(const State &other) const {
    return pending.size() == other.pending.size() && acquired == other.acquired && unfenced == other.unfenced;
  }
};

/// What goes before an op: a barrier, or one that is waited at where a stride is near.
struct Planned {
  bool waits = false, fences = false, barrier = false;
  SmallVector<FarStride, 1> near = {};                      // strides, and from where on they are far
  std::optional<std::pair<DeviceAccess, DeviceAccess>> why; // of a barrier: two accesses that may meet
};
using Plan = llvm::MapVector<Operation *, Planned>;

/// Adds a stride, which is far where all that were added for it and its `end` say so.
void addNear(SmallVectorImpl<FarStride> &near, const FarStride &far) {
  auto known = llvm::find_if(near, [&](auto &each) { return each.stride == far.stride && each.end == far.end; });
  if (known == near.end())
    near.push_back(far);
  else if (known->least)
    known->least = far.least ? std::optional(std::max(*known->least, *far.least)) : std::nullopt;
}

/// Walks one kernel, and plans.
class Orderer {
public:
  explicit Orderer(func::FuncOp kernel)
      : warps(tile::scheduleOf(kernel).warps), ordersAccesses(kernel->hasAttr(tile::ordersAccessesAttrName)),
        arraysApart(kernel->hasAttr(arraysApartAttrName)) {}
  void walk(Region &region, State &state);
  void insert();
  /// Pairs of arguments that are different arrays, or a barrier would be missing.
  ArrayRef<std::pair<unsigned, unsigned>> reliedApart() const { return relied.getArrayRef(); }

private:
  void visit(Operation &op, State &state);
  void visitAccess(const DeviceAccess &access, State &state);
  void visitIf(scf::IfOp op, State &state);
  void visitFor(scf::ForOp op, State &state);
  void iterate(scf::ForOp op, State &state);
  void orderBefore(scf::ForOp op, State &state);
  void visitWhile(scf::WhileOp op, State &state);
  bool needsBarrier(const DeviceAccess &access, const Ordering &ordering, const State &state, Planned &planned);

  unsigned warps;
  bool ordersAccesses, arraysApart;
  Plan plan;
  llvm::SetVector<std::pair<unsigned, unsigned>> relied;
};

struct OrderAccesses : weft::warp::impl::WarpOrderAccessesBase<OrderAccesses> {
  void runOnOperation() override;
};
} // namespace

/// What is left after a barrier, before `op`: copies under way.
static void passBarrier(State &state) {
  State left;
  for (auto &[key, access] : state.pending)
    if (access.isAsync)
      left.pending.insert({key, access});
  state = std::move(left);
}

/// What is left behind what was planned before an op.
static void pass(State &state, const Planned &planned) {
  if (planned.waits)
    for (auto &[key, access] : state.pending)
      access.isAsync = false;
  state.unfenced &= !planned.fences;
  if (planned.barrier)
    passBarrier(state);
}

/// The state at a loop's start, seen from its end.
static State carried(const State &state) {
  State next = state;
  next.pending.clear();
  for (auto &[key, access] : state.pending)
    next.pending.insert({Key{key.first, true}, access});
  return next;
}

/// Says that threads wait before an access that may touch what an earlier one touched in another thread.
static void sayOrdered(const DeviceAccess &earlier, const DeviceAccess &later, bool onlyNear) {
  remarks::missed(remarks::accessOrder, later.op)
      << remark::reason("threads wait before it{0}, as another one may have {1} there: by '{2}' of {3}",
                        onlyNear ? " where a stride is near" : "", earlier.writes ? "written" : "read",
                        earlier.op->getName().getStringRef(),
                        !earlier.base                ? "an unknown array"
                        : earlier.base == later.base ? "the same array, at addresses that are not known to differ"
                                                     : "another argument that may be the same array");
}

bool Orderer::needsBarrier(const DeviceAccess &access, const Ordering &ordering, const State &state, Planned &planned) {
  if (ordering.releases && !state.pending.empty())
    return true;
  // A volatile load that follows another is ordered with what comes after both.
  if (state.acquired && !ordering.needsFence)
    return true;
  if (ordersAccesses)
    return false;
  for (auto &[key, earlier] : state.pending) {
    const bool sameIteration = !key.second;
    if (needsOrder(earlier, access, sameIteration)) {
      std::optional<FarStride> far = needsOrderUnless(earlier, access, sameIteration);
      planned.why.emplace(earlier, access);
      if (!far)
        return true;
      addNear(planned.near, *far);
    } else if (!arraysApart && needsOrderInPlace(earlier, access)) {
      planned.why.emplace(earlier, access);
      return true;
    }
  }
  for (auto &[key, earlier] : state.pending)
    if (needsOrderInPlace(earlier, access))
      relied.insert(std::minmax(earlier.base.getArgNumber(), access.base.getArgNumber()));
  return false;
}

void Orderer::visitAccess(const DeviceAccess &access, State &state) {
  Operation *op = access.op;
  Ordering ordering = orderingOf(op, warps);
  Planned planned;
  if (!ordersAccesses && (access.writes || ordering.releases)) // a copy reads its source until it is waited for
    planned.waits = llvm::any_of(state.pending, [&](const auto &earlier) {
      return earlier.second.isAsync && (ordering.releases || mayShareBase(earlier.second, access));
    });
  pass(state, planned);
  if (needsBarrier(access, ordering, state, planned)) {
    planned.fences = state.unfenced;
    planned.barrier = !ordering.hasBarriers;
    state.unfenced = false;
    passBarrier(state);
  }
  if (planned.waits || planned.fences || planned.barrier || !planned.near.empty()) {
    Planned &all = plan[op];
    all.waits |= planned.waits;
    all.fences |= planned.fences;
    all.barrier |= planned.barrier;
    for (const FarStride &far : planned.near)
      addNear(all.near, far);
    if (!all.why)
      all.why = planned.why;
  }
  if (ordering.hasBarriers) { // all that is before it and it itself are ordered
    passBarrier(state);
    return;
  }
  // Copies into a ring are of later iterations, which `warp-pipeline` has shown may be read ahead.
  if (auto copy = dyn_cast<AsyncCopyOp>(op); !copy || !copy.getShared().getDefiningOp<StageOp>())
    state.pending.insert({Key{op, false}, access});
  state.acquired |= ordering.acquires;
  state.unfenced |= ordering.needsFence;
}

void Orderer::visitIf(scf::IfOp op, State &state) {
  State after;
  for (Region &branch : op->getRegions()) {
    State inner = state; // an empty region is a missing else
    walk(branch, inner);
    after.join(inner);
  }
  state = std::move(after);
}

/// Barriers that only what is before a loop asks of it go before it, as one.
void Orderer::orderBefore(scf::ForOp op, State &state) {
  if (ordersAccesses || (state.pending.empty() && !state.acquired))
    return;
  Orderer after = *this, alone = *this;
  State known = state, nothing;
  after.iterate(op, known);
  alone.iterate(op, nothing);
  for (auto &[inside, planned] : after.plan) {
    if (!planned.barrier || alone.plan.lookup(inside).barrier)
      continue;
    plan[op] = {/*waits=*/false, state.unfenced, /*barrier=*/true, /*near=*/{}, planned.why};
    pass(state, plan[op]);
    return;
  }
}

void Orderer::visitFor(scf::ForOp op, State &state) {
  orderBefore(op, state);
  iterate(op, state);
}

void Orderer::iterate(scf::ForOp op, State &state) {
  for (State start = state;;) { // planned barriers stay, so that this ends
    State inner = start;
    walk(op.getRegion(), inner);
    State next = start;
    next.join(carried(inner));
    state.join(inner);
    if (next == start)
      return;
    start = std::move(next);
  }
}

void Orderer::visitWhile(scf::WhileOp op, State &state) {
  for (State start = state;;) {
    State tested = start;
    walk(op.getBefore(), tested);
    State inner = tested;
    walk(op.getAfter(), inner);
    State next = start;
    next.join(carried(inner));
    if (next == start) {
      state = std::move(tested); // a while loop is left after its test
      return;
    }
    start = std::move(next);
  }
}

void Orderer::visit(Operation &op, State &state) {
  if (auto planned = plan.find(&op); planned != plan.end())
    pass(state, planned->second);
  auto barrier = dyn_cast<BarrierOp>(op);
  if ((barrier && !barrier.getWhere()) || isa<tile::BarrierOp>(op) || op.hasAttr(scratchAttrName)) {
    if (state.unfenced)
      plan[&op].fences = true;
    pass(state, {/*waits=*/false, /*fences=*/true, /*barrier=*/true, /*near=*/{}, std::nullopt});
    return;
  }
  if (auto wait = dyn_cast<AsyncWaitOp>(op)) {
    // Which copies a wait for some leaves is the business of the pass that placed it; what they read was copied then.
    for (auto &[key, access] : state.pending)
      access.isAsync = false;
    return;
  }
  if (std::optional<DeviceAccess> access = deviceAccessOf(&op, warps))
    visitAccess(*access, state);
  else if (auto branch = dyn_cast<scf::IfOp>(op))
    visitIf(branch, state);
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    visitFor(loop, state);
  else if (auto loop = dyn_cast<scf::WhileOp>(op))
    visitWhile(loop, state);
}

void Orderer::walk(Region &region, State &state) {
  for (Block &block : region)
    for (Operation &op : block)
      visit(op, state);
}

/// Whether a stride is near: less than each of its bounds, either way.
static Value isNear(OpBuilder &b, Location loc, const FarStride &far) {
  auto constant = [&](Type type, int64_t number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, number));
  };
  auto widened = [&](Value value, Type type) -> Value {
    return value.getType() == type ? value : arith::ExtSIOp::create(b, loc, type, value);
  };
  auto isLess = [&](Value stride, Value bound, Value below) -> Value {
    Value isBelow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, stride, bound);
    Value isAbove = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, stride, below);
    return arith::AndIOp::create(b, loc, isBelow, isAbove);
  };
  Type type = far.stride.getType();
  Value isWithin;
  if (far.least)
    isWithin = isLess(far.stride, constant(type, *far.least), constant(type, -*far.least));
  if (!far.end)
    return isWithin;
  Type wide = type.getIntOrFloatBitWidth() < far.end.getType().getIntOrFloatBitWidth() ? far.end.getType() : type;
  Value end = widened(far.end, wide), below = arith::SubIOp::create(b, loc, constant(wide, 0), end);
  Value isInColumns = isLess(widened(far.stride, wide), end, below);
  return isWithin ? arith::AndIOp::create(b, loc, isWithin, isInColumns).getResult() : isInColumns;
}

/// A barrier that a block waits at where one of the strides is near: the same in all threads.
static void insertWhereNear(OpBuilder &b, Location loc, ArrayRef<FarStride> near) {
  Value any;
  for (const FarStride &far : near) {
    Value one = isNear(b, loc, far);
    any = any ? arith::OrIOp::create(b, loc, any, one).getResult() : one;
  }
  BarrierOp::create(b, loc, any, /*withProducer=*/false, /*ofCluster=*/false);
}

void Orderer::insert() {
  for (auto &[op, planned] : plan) {
    OpBuilder builder(op);
    if (planned.waits)
      AsyncWaitOp::create(builder, op->getLoc(), builder.getI32IntegerAttr(0));
    if (planned.fences)
      FenceOp::create(builder, op->getLoc());
    if (planned.barrier)
      BarrierOp::create(builder, op->getLoc());
    else if (!planned.near.empty())
      insertWhereNear(builder, op->getLoc(), planned.near);
    if (planned.why)
      sayOrdered(planned.why->first, planned.why->second, !planned.barrier);
  }
}

/// Whether an op computes each element by itself, without a branch: which values it has may not matter to where a thread
/// goes.
static bool isStraightArithmetic(Operation *op) {
  if (!op->hasTrait<OpTrait::Elementwise>() || !isPure(op) || op->getNumResults() != 1)
    return false;
  if (isa<math::Exp2Op, math::ExpOp, math::Log2Op, math::LogOp, math::SqrtOp, math::RsqrtOp, math::AbsFOp, math::FmaOp>(
          op))
    return getElementTypeOrSelf(op->getResult(0).getType()).getIntOrFloatBitWidth() <= 32;
  return isa<arith::ArithDialect>(op->getDialect()) &&
         !isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::RemFOp, arith::FloorDivSIOp,
              arith::CeilDivSIOp, arith::CeilDivUIOp>(op) &&
         !(isa<arith::DivFOp>(op) && getElementTypeOrSelf(op->getResult(0).getType()).isF64());
}

/// Whether a kernel writes to the array that a load reads, as far as it is known.
static bool isOfWrittenArray(func::FuncOp kernel, tile::LoadOp load, unsigned warps) {
  std::optional<DeviceAccess> read = deviceAccessOf(load, warps);
  auto visit = [&](Operation *op) {
    std::optional<DeviceAccess> other = deviceAccessOf(op, warps);
    return WalkResult(failure(other && other->writes && mayShareBase(*read, *other)));
  };
  return kernel.walk(visit).wasInterrupted();
}

/// Whether nothing becomes of a load's elements but what is stored, or added to memory, by the thread that holds them in
/// its layout: what others load of them is for nothing, and may be what was stored already.
static bool isForOwners(tile::LoadOp load, unsigned warps) {
  constexpr size_t most = 64;                       // ops
  LayoutAttr layout = layoutAttrOf(load.getType()); // none of a scalar, which one thread holds for the others
  if (load.getIsVolatile() || repeatedThreadBits(load.getPtr().getType(), warps) == 0)
    return false;
  llvm::SetVector<Value> made;
  made.insert(load.getResult());
  bool isWritten = false;
  for (size_t i = 0; i < made.size(); ++i)
    for (OpOperand &use : made[i].getUses()) {
      Operation *user = use.getOwner();
      auto store = dyn_cast<tile::StoreOp>(user);
      auto atomic = dyn_cast<tile::AtomicRMWOp>(user);
      const bool writes = (store && use.get() == store.getValue() && use.get() != store.getMask()) ||
                          (atomic && atomic.use_empty() && use.get() == atomic.getValue());
      if (writes) {
        isWritten = true;
        continue;
      }
      const bool computes = isStraightArithmetic(user) && layoutAttrOf(user->getResult(0).getType()) == layout;
      if (!computes || made.size() > most)
        return false;
      made.insert(user->getResult(0));
    }
  return isWritten;
}

void OrderAccesses::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (!kernel->hasAttr(tile::ordersAccessesAttrName))
    kernel.walk([&](tile::LoadOp load) {
      const unsigned warps = tile::scheduleOf(kernel).warps;
      const bool isScalar = !isa<RankedTensorType>(load.getType());
      if (isForOwners(load, warps) && (!isScalar || isOfWrittenArray(kernel, load, warps)))
        load->setAttr(ofOwnersAttrName, UnitAttr::get(&getContext()));
    });
  State state;
  Orderer orderer(kernel);
  orderer.walk(kernel.getBody(), state);
  orderer.insert();
  SmallVector<int32_t> pairs;
  auto relied = llvm::to_vector(orderer.reliedApart());
  llvm::sort(relied); // they are found in the order of addresses of this process's memory
  for (auto [one, other] : relied)
    pairs.append({static_cast<int32_t>(one), static_cast<int32_t>(other)});
  if (!pairs.empty())
    kernel->setAttr(reliedApartAttrName, DenseI32ArrayAttr::get(&getContext(), pairs));
}
