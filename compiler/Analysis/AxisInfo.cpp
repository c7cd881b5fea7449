// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The lattice and the walk. What single ops do to the facts is in AxisTransfer.cpp.
//
//   %r = tile.make_range 8 .. 72     contiguity 64, divisibility 8, constancy 1
//   %s = tile.splat %n               contiguity 1, divisibility 16, constancy 64        (%n: tile.divisibility = 16)
//   %i = arith.addi %r, %s           contiguity 64, divisibility 8, constancy 1
//
// A value that the walk has not reached has no entry, which stands for "every fact may hold"; facts are only ever lost,
// so the walk ends. A loop is gone over until what its body yields takes nothing more away from its arguments; but for
// the first time, only what uses a value whose facts have changed.
#include "compiler/Analysis/AxisInfo.h"

#include "compiler/Analysis/Assumptions.h"
#include "compiler/Analysis/AxisTransfer.h"
#include "compiler/Analysis/IndexRanges.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinTypes.h"
#include <algorithm>

using namespace mlir;

namespace weft {

AxisInfo AxisInfo::unknown(unsigned rank) {
  Axes ones(std::max(rank, 1u), 1);
  return {ones, ones, ones, std::nullopt, std::nullopt};
}

int64_t AxisInfo::divisibilityAt(unsigned axis, int64_t run, int64_t unit) const {
  // Runs shorter than the contiguous ones begin inside them, a multiple of `run` units after their first element.
  return contiguity[axis] <= run ? divisibility[axis] : std::min(divisibility[axis], run * lowestBit(unit));
}

int64_t AxisInfo::divisibilityOfAll(int64_t unit) const {
  int64_t best = 1;
  for (unsigned axis = 0; axis < rank(); ++axis)
    best = std::max(best, divisibilityAt(axis, 1, unit));
  return best;
}

AxisInfo join(const AxisInfo &a, const AxisInfo &b) {
  AxisInfo result = AxisInfo::unknown(a.rank());
  for (unsigned axis = 0; axis < std::min(a.rank(), b.rank()); ++axis) {
    int64_t contiguity = std::min(a.contiguity[axis], b.contiguity[axis]);
    result.contiguity[axis] = contiguity;
    result.divisibility[axis] = std::min(a.divisibilityAt(axis, contiguity), b.divisibilityAt(axis, contiguity));
    result.constancy[axis] = std::min(a.constancy[axis], b.constancy[axis]);
  }
  if (a.constant && a.constant == b.constant)
    result.constant = a.constant;
  if (a.range && b.range)
    result.range = a.range->rangeUnion(*b.range);
  return result;
}

AxisAnalysis::~AxisAnalysis() = default;

AxisAnalysis::AxisAnalysis(Operation *function, Promises promises)
    : promises(promises), assumptions(std::make_unique<Assumptions>(function)) {
  if (auto func = dyn_cast<FunctionOpInterface>(function); func && !func.isExternal())
    for (BlockArgument argument : func.getArguments()) {
      AxisInfo info = AxisInfo::unknown(0);
      if (auto promise = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), "tile.divisibility"))
        info.divisibility[0] = lowestBit(promise.getInt());
      known[argument] = info;
    }
  bool isFirst = true;
  do {
    function->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (waiting.erase(op) || isFirst)
        visit(op);
    });
    isFirst = false;
  } while (!waiting.empty());
}

AxisInfo AxisAnalysis::lookup(Value value) const {
  auto found = known.find(value);
  return found == known.end() ? AxisInfo::unknown(rankOf(value)) : found->second;
}

const AxisSteps &AxisAnalysis::stepsOf(Value pointers) const {
  auto [found, isNew] = steps.try_emplace(pointers);
  if (isNew)
    found->second = weft::stepsOf(pointers, *this);
  return found->second;
}

void AxisAnalysis::update(Value value, const AxisInfo &info) {
  auto [entry, isNew] = known.try_emplace(value, info);
  if (!isNew) {
    AxisInfo both = join(entry->second, info);
    if (both == entry->second)
      return;
    entry->second = both;
  }
  for (Operation *user : value.getUsers()) // what a region yields, the op around it asks for
    waiting.insert(user->hasTrait<OpTrait::IsTerminator>() ? user->getParentOp() : user);
}

void AxisAnalysis::meet(Value value, ValueRange sources, bool carried) {
  if (!hasAxisInfo(value))
    return;
  std::optional<AxisInfo> all;
  for (Value source : sources)
    if (auto found = known.find(source); found != known.end())
      all = all ? join(*all, found->second) : found->second;
  if (!all)
    return;
  if (auto before = known.find(value); carried && before != known.end())
    all->range = widened(before->second.range, all->range);
  update(value, *all);
}

std::optional<AxisInfo> AxisAnalysis::operandInfo(Operation *op, Value operand) const {
  auto found = known.find(operand);
  if (found != known.end())
    return assumptions->refined(operand, found->second, op);
  if (hasAxisInfo(operand))
    return std::nullopt;
  return AxisInfo::unknown(rankOf(operand));
}

void AxisAnalysis::visitFor(Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  // The induction variable is a multiple of whatever divides its start and its step. Steps are positive.
  AxisInfo variable = AxisInfo::unknown(0);
  auto bound = [&](Value value) { return operandInfo(op, value).value_or(AxisInfo::unknown(0)); };
  AxisInfo start = bound(loop.getLowerBound()), step = bound(loop.getStep());
  variable.divisibility[0] = std::min(start.divisibility[0], step.divisibility[0]);
  variable.range = rangeOfLoop(start.range, loop.getUnsignedCmp() ? std::nullopt : bound(loop.getUpperBound()).range);
  update(loop.getInductionVar(), variable);
  for (auto [argument, init, yielded, result] :
       llvm::zip(loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues(), loop.getResults())) {
    meet(argument, {init, yielded}, /*carried=*/true);
    meet(result, {init, yielded}, /*carried=*/true);
  }
}

void AxisAnalysis::visitWhile(Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  for (auto [argument, init, yielded] :
       llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
    meet(argument, {init, yielded}, /*carried=*/true);
  for (auto [argument, result, passed] :
       llvm::zip(loop.getAfterArguments(), loop.getResults(), loop.getConditionOp().getArgs())) {
    meet(argument, {passed}, /*carried=*/true);
    meet(result, {passed}, /*carried=*/true);
  }
}

/// Whether integers may come out of an op as others than those that its facts are of.
static bool mayWrap(Operation *op, ArrayRef<AxisInfo> operands) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    return !operands[0].isNonNegative();
  if (isa<arith::TruncIOp>(op)) {
    const IndexRange &range = operands[0].range;
    unsigned width = type.getIntOrFloatBitWidth();
    return !range || !range->smin().isSignedIntN(width) || !range->smax().isSignedIntN(width);
  }
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp>(op) && type.isIntOrFloat() &&
         type.getIntOrFloatBitWidth() < 32;
}

void AxisAnalysis::visit(Operation *op) {
  if (isa<scf::ForOp>(op))
    return visitFor(op);
  if (isa<scf::WhileOp>(op))
    return visitWhile(op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    for (OpResult result : branch.getResults())
      meet(result,
           {branch.thenYield().getOperand(result.getResultNumber()),
            branch.elseYield().getOperand(result.getResultNumber())},
           /*carried=*/false);
    return;
  }

  llvm::SmallVector<AxisInfo> operands;
  for (Value operand : op->getOperands()) {
    std::optional<AxisInfo> info = operandInfo(op, operand);
    if (!info)
      return; // not reached yet: a later round
    operands.push_back(*info);
  }
  for (OpResult result : op->getResults())
    if (hasAxisInfo(result)) {
      AxisInfo info = transfer(op, operands, result);
      if (promises == Promises::Believed)
        info = withPromises(op, info);
      else if (mayWrap(op, operands))
        info = AxisInfo::unknown(info.rank());
      update(result, info);
    }
}

} // namespace weft
