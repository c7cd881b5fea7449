// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-mark-wraps: which indices wrap around a matrix's end though nobody reads what they bring from its begin.
//
//   %w = remsi %rows, (splat %m)                             %w = remsi %rows, (splat %m) {tile.wraps_unread}
//   %a = tile.load (p + %w * stride)
//   %c = tile.dot %a, %b, %zero                    ─▶
//   tile.store .., %c, (cmpi slt, %rows, (splat %m))
//
// So of indices that are the first one, or the last, from the end on: (select %inside, %rows, 0), (minsi %rows, %m - 1).
// The usual matmul of Triton's tutorials wraps its rows and columns, so that no load needs a mask. What wraps is no box
// of a tensor, and every thread would compute addresses for what one bulk copy brings; what ends is one.
#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Conversion/TileToWarp/Passes.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Copies/Wraps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft {
#define GEN_PASS_DEF_TILEMARKWRAPS
#include "compiler/Conversion/TileToWarp/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {
struct MarkWraps : weft::impl::TileMarkWrapsBase<MarkWraps> {
  void runOnOperation() override;
};

using Axes = llvm::SmallBitVector;

/// What is computed from indices that wrap: along which axes of each value the element of the same place decides.
class Reached {
public:
  explicit Reached(warp::Wrapped wrapped) : wrapped(wrapped) {}

  /// Whether all that is computed from indices' places behind the end stays there, and is not stored.
  bool endsUnread(Value indices);

private:
  void add(Value value, Axes axes);
  void addAll(ValueRange values, const Axes &axes) {
    llvm::for_each(values, [&](Value each) { add(each, axes); });
  }
  bool follow(OpOperand &use, const Axes &axes);
  bool followLoad(tile::LoadOp load, OpOperand &use, const Axes &axes);
  bool followDot(tile::DotOp dot, OpOperand &use, const Axes &axes);
  bool followReduce(tile::ReduceOp reduce, const Axes &axes);
  bool followYield(scf::YieldOp yield, unsigned number, const Axes &axes);
  bool isMasked(tile::StoreOp store, OpOperand &use, const Axes &axes) const;

  struct Reach {
    Axes axes;
    bool isLoaded; ///< made of what was loaded from there, which may be another number than the program's
  };

  const warp::Wrapped wrapped;
  llvm::DenseMap<Value, Reach> reached;
  SmallVector<Value> toFollow;
  bool isLoaded = false; ///< of what is followed
};
} // namespace

static unsigned rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

/// The same axes of a value of another rank, by where each comes from.
static Axes mapped(const Axes &axes, unsigned rank, llvm::function_ref<std::optional<unsigned>(unsigned)> source) {
  Axes result(rank);
  for (unsigned axis = 0; axis < rank; ++axis)
    if (std::optional<unsigned> from = source(axis); from && axes.test(*from))
      result.set(axis);
  return result;
}

/// Whether two values are computed in the same way from the same ones.
static bool isSame(Value a, Value b, unsigned most = 8) {
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  if (a == b || !x || !y || !most)
    return a == b;
  return isPure(x) && cast<OpResult>(a).getResultNumber() == cast<OpResult>(b).getResultNumber() &&
         OperationEquivalence::isEquivalentTo(
             x, y, [&](Value left, Value right) { return success(isSame(left, right, most - 1)); },
             /*markEquivalent=*/nullptr, OperationEquivalence::IgnoreLocations);
}

/// Whether a value is the same in all iterations of a loop.
static bool isOfAllIterations(Value value, scf::ForOp loop, unsigned most = 8) {
  Operation *op = value.getDefiningOp();
  return loop.isDefinedOutsideOfLoop(value) ||
         (op && most && isPure(op) && !op->getNumRegions() &&
          llvm::all_of(op->getOperands(), [&](Value each) { return isOfAllIterations(each, loop, most - 1); }));
}

/// What a value repeats along its other axes, and which of its axes `axis` is; none where it repeats along `axis` too.
static std::optional<std::pair<Value, unsigned>> repeated(Value value, unsigned axis) {
  Operation *op = value.getDefiningOp();
  if (auto broadcast = dyn_cast_or_null<tile::BroadcastOp>(op)) {
    bool repeats = cast<RankedTensorType>(broadcast.getSource().getType()).getDimSize(axis) == 1;
    return repeats ? std::nullopt : std::optional(std::pair(broadcast.getSource(), axis));
  }
  if (auto expand = dyn_cast_or_null<tile::ExpandDimsOp>(op))
    return axis == expand.getAxis() ? std::nullopt
                                    : std::optional(std::pair(expand.getSource(), axis - (axis > expand.getAxis())));
  if (auto permute = dyn_cast_or_null<tile::PermuteOp>(op))
    return std::pair(permute.getSource(), unsigned(permute.getOrder()[axis]));
  return std::nullopt;
}

/// Whether a value's elements along an axis are those of a vector.
static bool isAlong(Value value, unsigned axis, Value vector) {
  while (!isSame(value, vector)) {
    auto source = repeated(value, axis);
    if (!source)
      return false;
    std::tie(value, axis) = *source;
  }
  return rankOf(value) == 1;
}

/// Whether all elements of a value are a scalar, or number.
static bool isAll(Value value, OpFoldResult element) {
  while (isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  OpFoldResult found = warp::elementOf(value);
  auto scalar = dyn_cast_or_null<Value>(found), wanted = dyn_cast_or_null<Value>(element);
  return scalar && wanted ? isSame(scalar, wanted) : found && found == element;
}

/// Whether a mask is true only where the index along an axis is less than its size.
static bool keepsInside(Value mask, unsigned axis, const warp::Wrapped &wrapped) {
  if (auto both = mask.getDefiningOp<arith::AndIOp>())
    return keepsInside(both.getLhs(), axis, wrapped) || keepsInside(both.getRhs(), axis, wrapped);
  if (auto compare = mask.getDefiningOp<arith::CmpIOp>()) {
    auto known = warp::lessAndMore(compare);
    return known && isAlong(known->first, axis, wrapped.index) && isAll(known->second, wrapped.size);
  }
  auto source = repeated(mask, axis);
  return source && keepsInside(source->first, source->second, wrapped);
}

void Reached::add(Value value, Axes axes) {
  auto [found, isNew] = reached.insert({value, {axes, isLoaded}});
  if (!isNew) {
    Reach &before = found->second;
    axes |= before.axes;
    if (axes == before.axes && isLoaded <= before.isLoaded)
      return;
    before = {axes, isLoaded || before.isLoaded};
  }
  toFollow.push_back(value);
}

bool Reached::followLoad(tile::LoadOp load, OpOperand &use, const Axes &axes) {
  // What is loaded in place of the program's numbers leads addresses anywhere, also those of what nobody stores.
  bool leads = use.get() == load.getPtr() || use.get() == load.getMask();
  if (load.getIsVolatile() || (isLoaded && leads))
    return false;
  isLoaded = true;
  add(load.getResult(), axes);
  return true;
}

bool Reached::followDot(tile::DotOp dot, OpOperand &use, const Axes &axes) {
  // Rows of the left and columns of the right operand are the result's; what is summed over is all of it.
  unsigned number = use.getOperandNumber();
  if (dot.getBatch() != 1 || (number < 2 && axes.test(1 - number)))
    return false;
  add(dot.getResult(), axes);
  return true;
}

bool Reached::followReduce(tile::ReduceOp reduce, const Axes &axes) {
  unsigned axis = reduce.getAxis();
  if (axes.test(axis))
    return false;
  for (Value result : reduce.getResults())
    add(result, mapped(axes, rankOf(result), [&](unsigned each) { return each + (each >= axis); }));
  return true;
}

bool Reached::followYield(scf::YieldOp yield, unsigned number, const Axes &axes) {
  if (auto loop = dyn_cast<scf::ForOp>(yield->getParentOp())) {
    // What an iteration leaves to the next one meets the masks of that one, of other indices or another size.
    auto size = dyn_cast<Value>(wrapped.size); // or a number
    if (!isOfAllIterations(wrapped.index, loop) || (size && !isOfAllIterations(size, loop)))
      return false;
    addAll({loop.getRegionIterArg(number), loop.getResult(number)}, axes);
  } else if (auto branch = dyn_cast<scf::IfOp>(yield->getParentOp()))
    add(branch.getResult(number), axes);
  else
    return false;
  return true;
}

bool Reached::isMasked(tile::StoreOp store, OpOperand &use, const Axes &axes) const {
  Value mask = store.getMask();
  return mask && use.get() != mask &&
         llvm::all_of(axes.set_bits(), [&](unsigned axis) { return keepsInside(mask, axis, wrapped); });
}

bool Reached::follow(OpOperand &use, const Axes &axes) {
  Operation *op = use.getOwner();
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](tile::DotOp dot) { return followDot(dot, use, axes); })
      .Case([&](tile::ReduceOp reduce) { return followReduce(reduce, axes); })
      .Case([&](scf::YieldOp yield) { return followYield(yield, use.getOperandNumber(), axes); })
      .Case([&](scf::ForOp loop) {
        BlockArgument argument = loop.getTiedLoopRegionIterArg(&use);
        addAll({argument, loop.getTiedLoopResult(&use)}, axes);
        return true;
      })
      .Case([&](tile::StoreOp store) { return isMasked(store, use, axes); })
      .Case([&](tile::LoadOp load) { return followLoad(load, use, axes); })
      .Case([&](tile::ExpandDimsOp expand) {
        unsigned added = expand.getAxis();
        add(expand.getResult(), mapped(axes, axes.size() + 1, [&](unsigned axis) -> std::optional<unsigned> {
              return axis == added ? std::nullopt : std::optional(axis - (axis > added));
            }));
        return true;
      })
      .Case([&](tile::PermuteOp permute) {
        add(permute.getResult(),
            mapped(axes, axes.size(), [&](unsigned axis) { return unsigned(permute.getOrder()[axis]); }));
        return true;
      })
      .Default([&](Operation *each) {
        bool byElement = OpTrait::hasElementwiseMappableTraits(each) ||
                         isa<tile::BroadcastOp, tile::AddPtrOp, tile::PromiseOp>(each);
        addAll(each->getResults(), axes);
        return byElement && isMemoryEffectFree(each) && !each->getNumRegions();
      });
}

bool Reached::endsUnread(Value indices) {
  add(indices, Axes(1, true));
  while (!toFollow.empty()) {
    Value value = toFollow.pop_back_val();
    const Reach reach = reached.find(value)->second;
    for (OpOperand &use : value.getUses()) {
      isLoaded = reach.isLoaded;
      if (!follow(use, reach.axes))
        return false;
    }
  }
  return true;
}

void MarkWraps::runOnOperation() {
  if (TargetInfo::ofOrDefault(getOperation()).boxCopies.mostRank == 0)
    return;
  std::optional<AxisAnalysis> facts; // of kernels with remainders
  auto isNeverNegative = [&](Value index) {
    if (!facts)
      facts.emplace(getOperation(), Promises::Ignored);
    return facts->lookup(index).isNonNegative();
  };
  getOperation().walk([&](Operation *op) {
    std::optional<warp::Wrapped> wrapped = warp::wrappedBy(op);
    if (!wrapped || rankOf(op->getResult(0)) != 1)
      return;
    // A remainder of an index below 0 is another one.
    bool isIndexBelow = isa<arith::SelectOp, arith::MinSIOp>(op) || isNeverNegative(wrapped->index);
    if (isIndexBelow && Reached(*wrapped).endsUnread(op->getResult(0)))
      op->setAttr(tile::wrapsUnreadAttrName, UnitAttr::get(op->getContext()));
  });
}
