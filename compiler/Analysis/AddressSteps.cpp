// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AddressSteps.h.
#include "compiler/Analysis/AddressSteps.h"

#include "compiler/Analysis/AxisInfo.h"
#include "compiler/Analysis/AxisTransfer.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cstdlib>

using namespace mlir;

namespace weft {
namespace {

/// Larger steps are as good as unknown, and could overflow.
constexpr int64_t mostStep = int64_t(1) << 31;

AxisStep sum(AxisStep a, AxisStep b, int64_t factor) { return {a.by + factor * b.by, std::min(a.run, b.run)}; }

AxisStep quotient(AxisStep a, int64_t divisor) {
  if (a.by % divisor == 0)
    return {a.by / divisor, a.run};
  if (divisor % a.by != 0)
    return {};
  return {0, std::min(a.run, lowestBit(divisor / a.by))};
}

AxisStep remainder(AxisStep a, int64_t divisor) {
  if (a.by == 0 || divisor % a.by != 0)
    return a.by == 0 ? a : AxisStep();
  return {a.by, std::min(a.run, lowestBit(divisor / a.by))};
}

/// What may come from either: what counts, where the other does not.
AxisStep either(AxisStep a, AxisStep b) {
  if (a.by != b.by && a.by != 0 && b.by != 0)
    return {};
  return {a.by ? a.by : b.by, std::min(a.run, b.run)};
}

/// Follows a value to the ranges that it counts by.
class Walker {
public:
  explicit Walker(const AxisAnalysis &axes) : axes(axes) {}

  AxisSteps of(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return {};
    if (auto found = known.find(value); found != known.end())
      return found->second;
    known[value] = AxisSteps(type.getRank()); // of what a loop carries, while it is followed
    AxisSteps steps = axes.lookup(value).constant ? uniform(type) : find(value, type);
    for (AxisStep &step : steps)
      if (std::abs(step.by) >= mostStep)
        step = {};
    return known[value] = std::move(steps);
  }

private:
  static AxisSteps uniform(RankedTensorType type) {
    return llvm::map_to_vector<2>(type.getShape(), [](int64_t size) { return AxisStep{0, size}; });
  }

  /// A function of two operands' steps, axis by axis.
  AxisSteps each(Operation *op, unsigned first, function_ref<AxisStep(AxisStep, AxisStep)> combine) {
    AxisSteps a = of(op->getOperand(first)), b = of(op->getOperand(first + 1));
    for (auto [left, right] : llvm::zip_equal(a, b))
      left = combine(left, right);
    return a;
  }

  /// A function of one operand's steps and of the constant that the other is; of other ones, that of any function.
  AxisSteps byConstant(Operation *op, function_ref<AxisStep(AxisStep, int64_t)> change) {
    for (unsigned index : {1, 0}) {
      std::optional<int64_t> constant = axes.lookup(op->getOperand(index)).constant;
      if (!constant || *constant <= 0 || *constant >= mostStep || (index == 0 && !isa<arith::MulIOp>(op)))
        continue;
      AxisSteps steps = of(op->getOperand(1 - index));
      const AxisInfo info = axes.lookup(op->getOperand(1 - index));
      for (auto [step, begin] : llvm::zip(steps, info.divisibility)) {
        // What counts by one begins a run where it is known to, or a quotient would end it elsewhere.
        if (step.by == 1 && !isa<arith::MulIOp>(op))
          step.run = std::min(step.run, begin);
        step = change(step, *constant);
      }
      return steps;
    }
    return ofAny(op);
  }

  /// What any function, element by element, has: it repeats where all operands do.
  AxisSteps ofAny(Operation *op) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    AxisSteps steps = uniform(type);
    for (Value operand : op->getOperands())
      for (auto [step, other] : llvm::zip(steps, of(operand)))
        step = other.by == 0 ? AxisStep{0, std::min(step.run, other.run)} : AxisStep();
    return steps;
  }

  /// Memory repeats where its address does, wherever it is read.
  AxisSteps ofLoad(tile::LoadOp load) {
    AxisSteps steps = of(load.getPtr());
    for (AxisStep &step : steps)
      step = step.by == 0 ? step : AxisStep();
    return steps;
  }

  AxisSteps ofShape(Operation *op, RankedTensorType type) {
    AxisSteps from = of(op->getOperand(0));
    if (auto expand = dyn_cast<tile::ExpandDimsOp>(op)) {
      from.insert(from.begin() + expand.getAxis(), AxisStep());
    } else if (auto permute = dyn_cast<tile::PermuteOp>(op)) {
      AxisSteps source = from;
      for (auto [to, axis] : llvm::enumerate(permute.getOrder()))
        from[to] = source[axis];
    } else {
      auto source = cast<RankedTensorType>(op->getOperand(0).getType());
      for (int64_t axis = 0; axis < type.getRank(); ++axis)
        if (source.getDimSize(axis) == 1)
          from[axis] = {0, type.getDimSize(axis)};
    }
    return from;
  }

  AxisSteps find(Value value, RankedTensorType type) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
      return loop ? of(loop.getTiedLoopInit(argument)->get()) : AxisSteps(type.getRank());
    }
    Operation *op = value.getDefiningOp();
    if (op->getNumResults() != 1 || op->getNumRegions() != 0)
      return AxisSteps(type.getRank());
    return TypeSwitch<Operation *, AxisSteps>(op)
        .Case([&](tile::SplatOp) { return uniform(type); })
        .Case([&](tile::MakeRangeOp) { return AxisSteps{{1, type.getDimSize(0)}}; })
        .Case<tile::ExpandDimsOp, tile::PermuteOp, tile::BroadcastOp>([&](auto) { return ofShape(op, type); })
        .Case<arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, tile::PromiseOp>(
            [&](auto) { return of(op->getOperand(0)); })
        .Case<arith::AddIOp, tile::AddPtrOp>(
            [&](auto) { return each(op, 0, [](auto a, auto b) { return sum(a, b, 1); }); })
        .Case([&](arith::SubIOp) { return each(op, 0, [](auto a, auto b) { return sum(a, b, -1); }); })
        .Case([&](arith::MulIOp) {
          return byConstant(op, [](AxisStep step, int64_t factor) { return AxisStep{step.by * factor, step.run}; });
        })
        .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) { return byConstant(op, quotient); })
        .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) { return byConstant(op, remainder); })
        .Case([&](arith::SelectOp) { return each(op, 1, either); })
        .Case<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>([&](auto) { return each(op, 0, either); })
        .Case([&](tile::LoadOp load) { return ofLoad(load); })
        .Default([&](Operation *) {
          return OpTrait::hasElementwiseMappableTraits(op) ? ofAny(op) : AxisSteps(type.getRank());
        });
  }

  const AxisAnalysis &axes;
  llvm::DenseMap<Value, AxisSteps> known;
};

} // namespace

AxisSteps stepsOf(Value value, const AxisAnalysis &axes) { return Walker(axes).of(value); }

} // namespace weft
