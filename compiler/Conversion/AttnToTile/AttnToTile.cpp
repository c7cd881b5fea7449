// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-to-tile: every op of a program that walks the sequence (attend, its gradient, sums over tokens, causal means)
// becomes a launch of a tile kernel of its own. What is computed row by row joins them: producers of operands are
// recomputed on the tile inside the kernel, and what is computed from its results alone ends the kernel. What is left
// (maps of other shapes) gets kernels of its own.
//
//   %q2 = attn.rope %q                                        func.func @attend(...) attributes {tile.kernel} {
//   %o, %lse = attn.attend %q2 ...                  ─▶           load q, rotate, walk blocks, add t, store y
//   %y = attn.map ins(%o, %t) { add }                         }
//   return %y                                                 %y = attn.launch @attend(%q, ..., %t) grid [...]
#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendForward.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "compiler/Conversion/AttnToTile/ProgramLowering.h"
#include "compiler/Conversion/AttnToTile/Rows/RowSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNTOTILE
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

template <typename Op>
LogicalResult ProgramLowering::lowerProduct(Op op, LogicalResult (*lowering)(Op, ArrayRef<Value>, StoredValues &)) {
  for (Value operand : op->getOperands())
    if (failed(operand == op.getSource() ? makeElementwise(operand, op) : store(operand, op)))
      return failure();
  FailureOr<SmallVector<Value>> roots = joinMaps(op);
  return failed(roots) ? failure() : lowering(op, *roots, stored);
}

template <typename Op>
LogicalResult ProgramLowering::lowerWeightGrad(Op op, LogicalResult (*lowering)(Op, StoredValues &)) {
  for (Value operand : op->getOperands())
    if (failed(makeElementwise(operand, op)))
      return failure();
  return lowering(op, stored);
}

/// Whether keys or values are those of the diagonal and of nothing else: their own tokens' programs meet them.
template <typename Op> static bool isMetOnDiagonalOnly(Op op, Value value) {
  std::optional<unsigned> own;
  if constexpr (std::is_same_v<Op, attn::AttendOp>)
    own = diagonalDomain(Attend::of(op));
  else
    own = diagonalDomain(op);
  bool met = false, walked = value == op.getQuery();
  for (auto [i, key, its] : llvm::enumerate(op.getKeys(), op.getValues()))
    if (key == value || its == value)
      (i == own ? met : walked) = true;
  return met && !walked;
}

LogicalResult ProgramLowering::lower(attn::AttendOp op) {
  // Keys and values that each program meets once are computed on the way; others would be computed for every tile of
  // queries.
  bool once = windowTiling(Attend::of(op)).has_value();
  auto onTheWay = [&](Value value) {
    return value == op.getQuery() || isMetOnDiagonalOnly(op, value) ||
           (once && (llvm::is_contained(op.getKeys(), value) || llvm::is_contained(op.getValues(), value)));
  };
  for (Value value : op->getOperands())
    if (failed(onTheWay(value) ? makePullable(value, op) : store(value, op)))
      return failure();
  if (failed(storeCaptured(op, op)))
    return failure();
  FailureOr<SmallVector<Value>> roots = joinRowLocalUsers(op, op.getResults(), hasWideValues(Attend::of(op)));
  if (failed(roots))
    return failure();
  return lowerAttend(op, *roots, stored);
}

LogicalResult ProgramLowering::lower(attn::AttendBackwardOp op) {
  SmallVector<BackwardPart> parts = backwardParts(op);
  // Of several kernels, each walks what another holds: only the numbers of a query can be computed on the way.
  bool once = parts.front().kind == BackwardPart::Kind::Window;
  auto onTheWay = [&](Value value) {
    return once || value == op.getLse() || value == op.getDelta() || isMetOnDiagonalOnly(op, value);
  };
  for (Value value : op->getOperands())
    if (failed(onTheWay(value) ? makePullable(value, op) : store(value, op)))
      return failure();
  if (failed(storeCaptured(op, op)))
    return failure();
  SoftmaxNumbers numbers;
  if (!once)
    numbers = lowerSoftmaxNumbers(op, stored);
  for (const BackwardPart &part : parts) {
    FailureOr<SmallVector<Value>> roots = joinRowLocalUsers(op, part.results, part.kind == BackwardPart::Kind::Values);
    if (succeeded(roots) && part.kind == BackwardPart::Kind::OnePass) {
      OnePass done = lowerOnePass(op, part, numbers, *roots, stored);
      if (failed(done.lowered))
        return failure();
      takeSums(op, done.sums);
      continue;
    }
    if (failed(roots) || failed(lowerBackwardPart(op, part, numbers, *roots, stored)))
      return failure();
  }
  return success();
}

/// Maps of a merge's computed sources that attention takes: the merge has their rows at hand.
static SmallVector<Value> attendedAlong(attn::MergeUnitsOp merge, const StoredValues &stored) {
  llvm::SetVector<Value> along;
  auto isSource = [&](Value value) { return llvm::is_contained(merge.getSources(), value); };
  for (Value source : merge.getSources())
    for (Operation *user : source.getUsers()) {
      auto map = dyn_cast<attn::MapOp>(user);
      if (!map || stored.count(source) || map.getNumResults() != 1 || !llvm::all_of(map.getInputs(), isSource))
        continue;
      Value result = map.getResult(0);
      if (wholeType(result).getDims() == wholeType(source).getDims() && !stored.count(result) &&
          llvm::any_of(result.getUsers(), llvm::IsaPred<attn::AttendOp>))
        along.insert(result);
    }
  return along.takeVector();
}

LogicalResult ProgramLowering::lower(attn::MergeUnitsOp op) {
  // Sums to numbers of what the merge says of tokens; what else they take is stored together with the joins, which are
  // often of the same rows.
  SmallVector<attn::SumOp> sums;
  SmallVector<Value> rows{op.getJoins()};
  for (auto sum : program.front().getOps<attn::SumOp>()) {
    if (!sumsRows(sum) || rowSpaceOf(sum.getSource()) != rowSpaceOf(op.getUnit()))
      continue;
    if (std::optional<SmallVector<Value>> taken = takenBeside(sum.getSource(), tokenTablesOf(op))) {
      sums.push_back(sum);
      rows.append(*taken);
    }
  }
  if (!stored.count(op.getJoins()))
    rows.append(squaresFor(op.getSources(), rows));
  if (failed(storeRows(rows, op)))
    return failure();
  for (Value operand : op->getOperands())
    if (failed(llvm::is_contained(op.getSources(), operand) ? makePullable(operand, op) : store(operand, op)))
      return failure();
  SmallVector<Value> along = attendedAlong(op, stored);
  for (Value value : along)
    if (failed(makePullable(value, op)))
      return failure();
  return lowerMergeUnits(op, along, sums, stored);
}

void ProgramLowering::takeSums(attn::AttendBackwardOp op, Value sums) {
  stored[sums] = sums;
  double scale = op.getScale().convertToDouble();
  auto scaled = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    return {arith::MulFOp::create(b, x[0], arith::ConstantOp::create(b, b.getF32FloatAttr(scale)))};
  };
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto map = attn::MapOp::create(b, op.getDQuery().getType(), sums, scaled);
  op.getDQuery().replaceAllUsesWith(map.getResult(0));
}

LogicalResult ProgramLowering::lower(const Expansion &expansion) {
  Operation *anchor = expansion.ops.back();
  for (Value source : expansion.sources())
    if (failed(store(source, anchor)))
      return failure();
  for (Operation *op : expansion.ops)
    for (Value weight : op->getOperands().drop_front(sourcesOf(op).size()))
      if (failed(store(weight, anchor)))
        return failure();
  return lowerExpansion(expansion, stored);
}

LogicalResult ProgramLowering::lower(Operation *op) {
  if (auto backward = dyn_cast<attn::AttendBackwardOp>(op))
    return lower(backward);
  if (auto attend = dyn_cast<attn::AttendOp>(op))
    return lower(attend);
  if (auto sum = dyn_cast<attn::SumOp>(op)) {
    if (isNumber(sum.getResult())) // (Waits until someone needs it, or has what it sums up at hand.)
      return success();
    if (failed(sumsTokens(sum) || sumsTokensOfBatches(sum) ? makePullable(sum.getSource(), op)
                                                           : store(sum.getSource(), op)))
      return failure();
    return lowerSum(sum, stored);
  }
  if (auto mean = dyn_cast<attn::PrefixMeanOp>(op))
    return failed(store(mean.getSource(), op)) ? failure() : lowerPrefixMean(mean, stored);
  if (auto mean = dyn_cast<attn::SequenceMeanOp>(op))
    return failed(makePullable(mean.getSource(), op)) || failed(store(mean.getCuSeqlens(), op))
               ? failure()
               : lowerSequenceMean(mean, stored);
  if (auto merge = dyn_cast<attn::MergeUnitsOp>(op))
    return lower(merge);
  if (auto convolve = dyn_cast<attn::ConvolveOp>(op)) // (A long one; the others are row-local.)
    return failed(makePullable(convolve.getSource(), op)) || failed(store(convolve.getTaps(), op))
               ? failure()
               : lowerLongConvolve(convolve, stored);
  if (auto taps = dyn_cast<attn::ConvolveTapsGradOp>(op)) {
    for (Value operand : {taps.getSource(), taps.getGradient()})
      if (failed(makePullable(operand, op)))
        return failure();
    if (taps.getCuSeqlens() && failed(store(taps.getCuSeqlens(), op)))
      return failure();
    bool isLong = isLongConvolution(taps, wholeType(taps.getResult()));
    return isLong ? lowerLongTapsGrad(taps, stored) : lowerTapsGrad(taps, stored);
  }
  if (auto conv = dyn_cast<attn::HeadConvOp>(op))
    return lowerProduct(conv, lowerHeadConv);
  if (auto linear = dyn_cast<attn::LinearOp>(op))
    return lowerProduct(linear, lowerLinear);
  if (auto grad = dyn_cast<attn::HeadConvWeightGradOp>(op))
    return lowerWeightGrad(grad, lowerHeadConvWeightGrad);
  if (auto grad = dyn_cast<attn::LinearWeightGradOp>(op))
    return lowerWeightGrad(grad, lowerLinearWeightGrad);
  return success(); // (Maps wait until someone needs them.)
}

/// Moves what is no attention as far up as its operands allow: sums over tokens that an attention's kernel ends with
/// come before it.
static void hoistAllButAttention(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block.without_terminator())) {
    if (isa<attn::AttendOp, attn::AttendBackwardOp>(op))
      continue;
    llvm::SetVector<Value> used;
    used.insert(op.operand_begin(), op.operand_end());
    for (Region &region : op.getRegions())
      getUsedValuesDefinedAbove(region, used);
    Operation *last = nullptr;
    for (Value value : used)
      if (Operation *definition = value.getDefiningOp(); definition && (!last || last->isBeforeInBlock(definition)))
        last = definition;
    if (last)
      op.moveAfter(last);
    else
      op.moveBefore(&block, block.begin());
  }
}

LogicalResult ProgramLowering::run() {
  if (!llvm::hasSingleElement(program.getBody()))
    return program.emitOpError() << "expected a program of one block";
  addBeforeSumming(program.front());
  hoistAllButAttention(program.front());
  SmallVector<Expansion> found = findGradientExpansions(program.front());
  for (const Expansion &expansion : found)
    inExpansions.insert(expansion.ops.begin(), expansion.ops.end());
  found.append(findExpansions(program.front(), inExpansions));
  SmallVector<Operation *> ops;
  for (Operation &op : program.front().without_terminator())
    ops.push_back(&op);
  llvm::DenseMap<Operation *, const Expansion *> expansions; // by each of their ops
  for (const Expansion &expansion : found)
    for (Operation *op : expansion.ops) {
      expansions[op] = &expansion;
      inExpansions.insert(op);
    }
  for (Operation *op : ops) {
    const Expansion *expansion = expansions.lookup(op);
    if (expansion && op != expansion->ops.back())
      continue;
    if (expansion ? failed(lower(*expansion)) : !isRowLocal(op) && failed(lower(op)))
      return failure();
  }
  Operation *end = program.front().getTerminator();
  for (Value value : end->getOperands())
    if (!isNumber(value) && failed(store(value, end)))
      return failure();
  if (failed(storeNumbers(end)))
    return failure();
  llvm::DenseSet<Value> returned;
  for (OpOperand &operand : end->getOpOperands()) {
    Value tensor = stored.lookup(operand.get());
    bool inParts = tensor.getType() != operand.get().getType();
    if (isa<BlockArgument>(tensor) || inParts || !returned.insert(tensor).second) {
      // Every output is a tensor of its own, and whole: sums over tokens are stored in parts, which readers add.
      auto same = [](ImplicitLocOpBuilder &, ValueRange x) -> SmallVector<Value> { return {x[0]}; };
      OpBuilder builder(end);
      auto copy = attn::MapOp::create(builder, end->getLoc(), operand.get().getType(), operand.get(), same);
      if (failed(store(copy.getResult(0), end)))
        return failure();
      tensor = stored.lookup(copy.getResult(0));
    }
    operand.set(tensor);
  }
  // (With what lowering made beside them.)
  SmallVector<Operation *> done;
  for (Operation &op : program.front().without_terminator())
    if (!isa<attn::LaunchOp>(op))
      done.push_back(&op);
  for (Operation *op : llvm::reverse(done))
    op->erase();
  return success();
}

namespace {
struct AttnToTile : impl::AttnToTileBase<AttnToTile> {
  void runOnOperation() final {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attn::programAttrName))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(ProgramLowering(program).run()))
        return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(refusedAttrName)) // (It has been reported.)
        return signalPassFailure();
  }
};
} // namespace

} // namespace weft
