// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See DeviceMemory.h.
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Accesses/Meeting.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft;
using namespace weft::warp;

/// The arguments behind a pointer, and whether they are all.
static bool collectArguments(Value pointer, llvm::DenseSet<Value> &seen, llvm::DenseSet<Value> &arguments) {
  if (!seen.insert(pointer).second)
    return true;
  auto all = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value value) { return collectArguments(value, seen, arguments); });
  };
  if (auto argument = dyn_cast<BlockArgument>(pointer)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (isa<func::FuncOp>(owner))
      return arguments.insert(argument), true;
    auto loop = dyn_cast<scf::ForOp>(owner);
    if (!loop || argument == loop.getInductionVar())
      return false;
    unsigned index = argument.getArgNumber() - 1;
    return all({loop.getInitArgs()[index], loop.getYieldedValues()[index]});
  }
  return TypeSwitch<Operation *, bool>(pointer.getDefiningOp())
      .Case([&](tile::AddPtrOp op) { return all(op.getPtr()); })
      .Case<tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::ReshapeOp, tile::PermuteOp, tile::PtrCastOp,
            ConvertLayoutOp>([&](Operation *op) { return all(op->getOperand(0)); })
      .Case([&](arith::SelectOp op) { return all({op.getTrueValue(), op.getFalseValue()}); })
      .Case([&](scf::ForOp loop) {
        unsigned index = cast<OpResult>(pointer).getResultNumber();
        return all({loop.getInitArgs()[index], loop.getYieldedValues()[index]});
      })
      .Case([&](scf::IfOp branch) {
        unsigned index = cast<OpResult>(pointer).getResultNumber();
        return all({branch.thenYield().getOperand(index), branch.elseYield().getOperand(index)});
      })
      .Default(false);
}

BlockArgument weft::warp::argumentBehind(Value pointer) {
  llvm::DenseSet<Value> seen, arguments;
  if (!collectArguments(pointer, seen, arguments) || arguments.size() != 1)
    return {};
  return cast<BlockArgument>(*arguments.begin());
}

std::optional<DeviceAccess> weft::warp::deviceAccessOf(Operation *op, unsigned warps) {
  auto access = [&](Value pointer, bool reads, bool writes, Value mask = {}) {
    return DeviceAccess{op, pointer, mask, argumentBehind(pointer), reads, writes};
  };
  return TypeSwitch<Operation *, std::optional<DeviceAccess>>(op)
      .Case([&](tile::LoadOp load) {
        DeviceAccess made = access(load.getPtr(), true, false, load.getMask());
        made.isMadeByAll = !load.getIsVolatile() && !load->hasAttr(ofOwnersAttrName) &&
                           repeatedThreadBits(load.getPtr().getType(), warps) != 0;
        return made;
      })
      .Case([&](tile::StoreOp store) { return access(store.getPtr(), false, true, store.getMask()); })
      .Case<tile::AtomicRMWOp, tile::AtomicCASOp>([&](auto atomic) {
        DeviceAccess made = access(atomic.getPtr(), true, true);
        made.isAtomic = true;
        return made;
      })
      .Case([&](BoxStoreOp store) {
        auto map = store.getMap().getDefiningOp<TensorMapOp>();
        DeviceAccess made = map ? access(map.getBase(), false, true) : DeviceAccess{op, {}, {}, {}, false, true};
        made.isAsync = true;
        return made;
      })
      .Case([&](AsyncCopyOp copy) {
        DeviceAccess made = access(copy.getPtr(), true, false);
        made.isAsync = true;
        return made;
      })
      .Default(std::nullopt);
}

Ordering weft::warp::orderingOf(Operation *op, unsigned warps) {
  Ordering ordering;
  auto ofAtomic = [&](auto atomic) {
    ordering.releases = tile::releases(atomic.getOrder());
    ordering.acquires = tile::acquires(atomic.getOrder());
    ordering.hasBarriers = !atomic->use_empty() && repeatedThreadBits(atomic.getPtr().getType(), warps) >= 32;
  };
  if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op))
    ofAtomic(atomic);
  else if (auto atomic = dyn_cast<tile::AtomicCASOp>(op))
    ofAtomic(atomic);
  else if (auto load = dyn_cast<tile::LoadOp>(op); load && load.getIsVolatile())
    ordering.acquires = ordering.needsFence = true;
  return ordering;
}

bool weft::warp::mayShareBase(const DeviceAccess &a, const DeviceAccess &b) {
  return !a.base || !b.base || a.base == b.base;
}

static bool isUniform(Value value) {
  return !isa<RankedTensorType>(value.getType()) || isa_and_nonnull<tile::SplatOp>(value.getDefiningOp()) ||
         matchPattern(value, m_Constant());
}

/// Whether the elements of a tensor of integers or pointers are known to differ from one another.
static bool areDistinct(Value value) {
  if (!isa<RankedTensorType>(value.getType()))
    return true;
  if (!value.getDefiningOp())
    return false;
  return TypeSwitch<Operation *, bool>(value.getDefiningOp())
      .Case([](tile::MakeRangeOp) { return true; })
      .Case<tile::ExpandDimsOp, tile::ReshapeOp, tile::PermuteOp, ConvertLayoutOp, arith::ExtSIOp, arith::ExtUIOp>(
          [](Operation *op) { return areDistinct(op->getOperand(0)); })
      .Case<tile::AddPtrOp, arith::AddIOp>([](Operation *op) {
        Value x = op->getOperand(0), y = op->getOperand(1);
        return (isUniform(x) && areDistinct(y)) || (isUniform(y) && areDistinct(x));
      })
      .Default(false);
}

/// Whether the thread that makes an access to an element of a tensor also makes the other one to that element.
static bool byOneThread(const DeviceAccess &a, const DeviceAccess &b) {
  return a.pointer.getType() == b.pointer.getType() && !isa<AsyncCopyOp>(a.op) && !isa<AsyncCopyOp>(b.op) &&
         !a.isMadeByAll && !b.isMadeByAll;
}

/// Whether one thread makes both accesses, wherever they are: by scalars.
static bool areOfOneThread(const DeviceAccess &a, const DeviceAccess &b) {
  auto isByScalar = [](const DeviceAccess &each) {
    return isa<tile::LoadOp, tile::StoreOp, tile::AtomicRMWOp, tile::AtomicCASOp>(each.op) &&
           !isa<RankedTensorType>(each.pointer.getType()) && !each.isMadeByAll;
  };
  return isByScalar(a) && isByScalar(b);
}

/// Whether a thread that makes one access to an address makes the other one to it, and no other thread does: the same
/// pointers, all different, held by the same threads.
static bool isSameThread(const DeviceAccess &a, const DeviceAccess &b, bool sameIteration) {
  if (areOfOneThread(a, b))
    return true;
  if (a.pointer != b.pointer || !byOneThread(a, b))
    return false;
  Operation *maker = a.pointer.getDefiningOp();
  bool isLasting = sameIteration || !maker || isa<func::FuncOp>(maker->getParentOp());
  return isLasting && areDistinct(a.pointer);
}

/// Whether two atomics may change places: they combine alike, and nobody looks at what was there before.
static bool commute(const DeviceAccess &a, const DeviceAccess &b) {
  auto first = dyn_cast<tile::AtomicRMWOp>(a.op), second = dyn_cast<tile::AtomicRMWOp>(b.op);
  return first && second && first.getKind() == second.getKind() && first.getKind() != tile::AtomicKind::Exchange &&
         first.use_empty() && second.use_empty();
}

bool weft::warp::needsOrder(const DeviceAccess &earlier, const DeviceAccess &later, bool sameIteration) {
  if ((!earlier.writes && !later.writes) || isSameThread(earlier, later, sameIteration) || commute(earlier, later))
    return false;
  if (!mayShareBase(earlier, later))
    return false;
  Meeting meeting = meetingOf({earlier.pointer, earlier.mask}, {later.pointer, later.mask}, sameIteration);
  return meeting == Meeting::Unknown || (meeting == Meeting::SameElement && !byOneThread(earlier, later));
}

std::optional<FarStride> weft::warp::needsOrderUnless(const DeviceAccess &earlier, const DeviceAccess &later,
                                                      bool sameIteration) {
  if (!earlier.pointer || !later.pointer || !earlier.base || earlier.base != later.base)
    return std::nullopt;
  std::optional<FarStride> far =
      farStrideOf({earlier.pointer, earlier.mask}, {later.pointer, later.mask}, sameIteration);
  const bool isDecided =
      far && (far->inOne == Meeting::Nowhere || (far->inOne == Meeting::SameElement && byOneThread(earlier, later)));
  return isDecided ? far : std::nullopt;
}

bool weft::warp::needsOrderInPlace(const DeviceAccess &earlier, const DeviceAccess &later) {
  const bool isHeldByMany = earlier.isMadeByAll || earlier.op->hasAttr(ofOwnersAttrName);
  return !mayShareBase(earlier, later) && isHeldByMany && later.writes && !later.isAtomic &&
         tile::pointeeTypeOf(earlier.pointer.getType()) == tile::pointeeTypeOf(later.pointer.getType());
}
