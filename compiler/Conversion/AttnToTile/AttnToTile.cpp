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
#include "compiler/Conversion/AttnToTile/AttnToTile.h"
#include "compiler/Conversion/AttnToTile/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/AttendForward.h"
#include "compiler/Conversion/AttnToTile/ElementTile.h"
#include "compiler/Conversion/AttnToTile/Expansion.h"
#include "compiler/Conversion/AttnToTile/Lowerings.h"
#include "compiler/Conversion/AttnToTile/WideValues.h"
#include "compiler/Conversion/AttnToTile/Windows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
namespace {

/// The lowering of one program.
class ProgramLowering {
public:
  explicit ProgramLowering(func::FuncOp program) : program(program) {
    for (Value argument : program.getArguments())
      stored[argument] = argument;
  }
  LogicalResult run();

private:
  LogicalResult lower(Operation *op);
  LogicalResult lower(attn::AttendOp op);
  LogicalResult lower(attn::AttendBackwardOp op);
  LogicalResult lower(attn::MergeUnitsOp op);
  LogicalResult lower(const Expansion &expansion);
  /// Sees to it that `value` is stored.
  LogicalResult store(Value value, Operation *anchor);
  /// Sees to it that a tile of `value` can be had in a kernel at `anchor`: stored, or row-local on what can be had.
  LogicalResult makePullable(Value value, Operation *anchor);
  /// Sees to it that any element of `value` can be had in a kernel at `anchor`: stored, or computed from elements.
  LogicalResult makeElementwise(Value value, Operation *anchor);
  /// A product with a weight: its source is computed element by element on the way.
  template <typename Op>
  LogicalResult lowerProduct(Op op, LogicalResult (*lowering)(Op, ArrayRef<Value>, StoredValues &));
  template <typename Op> LogicalResult lowerWeightGrad(Op op, LogicalResult (*lowering)(Op, StoredValues &));
  LogicalResult storeCaptured(Operation *op, Operation *anchor);
  /// The results of `anchor` and what is computed from them row by row that others need; sees to it that all they take
  /// can be had. `channelsSplit` where each program has a part of the results' channels alone.
  FailureOr<SmallVector<Value>> joinRowLocalUsers(Operation *anchor, ValueRange results, bool channelsSplit = false);
  /// The same of maps of the result of a product.
  FailureOr<SmallVector<Value>> joinMaps(Operation *anchor);

  /// dq in the place of its sums in memory: scaled, and rounded, by whoever takes it.
  void takeSums(attn::AttendBackwardOp op, Value sums);

  func::FuncOp program;
  StoredValues stored;
};

/// [B, H, N] of a type of the row space.
ArrayRef<StringAttr> rowSpaceOf(Value value) {
  return cast<attn::WholeTensorType>(value.getType()).getDims().take_front(3);
}

} // namespace

LogicalResult ProgramLowering::storeCaptured(Operation *op, Operation *anchor) {
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, captured);
  for (Value value : captured)
    if (isa<attn::WholeTensorType>(value.getType()) && failed(store(value, anchor)))
      return failure();
  return success();
}

LogicalResult ProgramLowering::makePullable(Value value, Operation *anchor) {
  if (stored.count(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (!isRowLocal(op))
    return store(value, anchor);
  if (failed(storeCaptured(op, anchor)))
    return failure();
  for (OpOperand &operand : op->getOpOperands()) {
    // What is read as a whole (taps, gains, units) has to be there; the first operand of others is what they work on
    // row by row.
    bool whole = isa<attn::SpreadOp>(op) ||
                 (isa<attn::ConvolveOp, attn::RmsNormOp, attn::ShiftOp>(op) && operand.getOperandNumber() > 0);
    if (failed(whole ? store(operand.get(), anchor) : makePullable(operand.get(), anchor)))
      return failure();
  }
  return success();
}

LogicalResult ProgramLowering::store(Value value, Operation *anchor) {
  if (stored.count(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (isRowLocal(op)) {
    if (failed(makePullable(value, anchor)))
      return failure();
    lowerRows(anchor, value, stored);
    return success();
  }
  if (auto mean = dyn_cast<attn::MeanHeadsOp>(op))
    return failed(makeElementwise(mean.getSource(), anchor)) ? failure() : lowerMeanHeads(mean, stored);
  auto map = dyn_cast<attn::MapOp>(op);
  if (!map)
    return op->emitOpError() << "has no kernel of its own";
  for (Value input : map.getInputs())
    if (failed(store(input, anchor)))
      return failure();
  if (failed(storeCaptured(map, anchor)))
    return failure();
  return lowerFlatMap(map, stored);
}

FailureOr<SmallVector<Value>> ProgramLowering::joinRowLocalUsers(Operation *anchor, ValueRange results,
                                                                 bool channelsSplit) {
  llvm::SetVector<Value> inside;
  inside.insert(results.begin(), results.end());
  ArrayRef<StringAttr> space = rowSpaceOf(results.front());
  // What is had at the tile's rows; `apart` from this kernel's results, where other rows of it are asked for.
  std::function<bool(Value, bool)> isKnown = [&](Value value, bool apart) {
    if (stored.count(value))
      return true;
    if (inside.contains(value))
      return !apart;
    Operation *op = value.getDefiningOp();
    return op && isRowLocal(op) &&
           llvm::all_of(op->getOperands(), [&](Value v) { return isKnown(v, apart || readsOtherRows(op)); });
  };
  auto known = [&](Value value) { return isKnown(value, /*apart=*/false); };
  SmallVector<Operation *> joined{anchor};
  for (Operation *op = anchor->getNextNode(); op; op = op->getNextNode()) {
    if (!isRowLocal(op) || readsOtherRows(op) || (channelsSplit && isa<attn::SumOp, attn::RmsNormOp>(op)))
      continue;
    bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return inside.contains(v); });
    bool sameRows = llvm::all_of(op->getResults(), [&](Value v) { return rowSpaceOf(v) == space; });
    if (!depends || !sameRows || !llvm::all_of(op->getOperands(), known))
      continue;
    joined.push_back(op);
    inside.insert(op->getResults().begin(), op->getResults().end());
  }
  for (Operation *op : llvm::drop_begin(joined)) {
    if (failed(storeCaptured(op, anchor)))
      return failure();
    for (Value operand : op->getOperands())
      if (!inside.contains(operand) && failed(makePullable(operand, anchor)))
        return failure();
  }
  SmallVector<Value> roots;
  for (Value value : inside)
    if (llvm::any_of(value.getUsers(), [&](Operation *user) { return !llvm::is_contained(joined, user); }))
      roots.push_back(value);
  return roots;
}

LogicalResult ProgramLowering::makeElementwise(Value value, Operation *anchor) {
  Operation *op = value.getDefiningOp();
  if (stored.count(value))
    return success();
  if (!isElementwise(op))
    return store(value, anchor);
  if (failed(storeCaptured(op, anchor)))
    return failure();
  for (Value operand : op->getOperands())
    if (failed(makeElementwise(operand, anchor)))
      return failure();
  return success();
}

/// Whether an op computes what it reads element by element, and so needs no map of stored values stored.
static bool pullsElements(Operation *op) {
  return isa<attn::MapOp, attn::HeadConvOp, attn::LinearOp, attn::HeadConvWeightGradOp, attn::LinearWeightGradOp>(op);
}

FailureOr<SmallVector<Value>> ProgramLowering::joinMaps(Operation *anchor) {
  llvm::SetVector<Value> inside;
  inside.insert(anchor->getResult(0));
  ArrayRef<StringAttr> shape = cast<attn::WholeTensorType>(anchor->getResult(0).getType()).getDims();
  std::function<bool(Value)> known = [&](Value value) {
    if (inside.contains(value) || stored.count(value))
      return true;
    Operation *op = value.getDefiningOp();
    return isElementwise(op) && llvm::all_of(op->getOperands(), known);
  };
  llvm::SetVector<Operation *> joined;
  joined.insert(anchor);
  for (Operation *op = anchor->getNextNode(); op; op = op->getNextNode()) {
    auto map = dyn_cast<attn::MapOp>(op);
    if (!map || cast<attn::WholeTensorType>(map.getResult(0).getType()).getDims() != shape)
      continue;
    if (llvm::any_of(map.getInputs(), [&](Value v) { return inside.contains(v); }) &&
        llvm::all_of(map.getInputs(), known)) {
      joined.insert(map);
      inside.insert(map.getResults().begin(), map.getResults().end());
    }
  }
  auto readOutside = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return !joined.contains(user); });
  };
  // A map of what is stored anyway, for those who compute it as well: left to them.
  for (Operation *op : llvm::reverse(llvm::to_vector(llvm::drop_begin(joined)))) {
    bool needed = llvm::any_of(op->getOperands(), [&](Value v) { return inside.contains(v) && !readOutside(v); });
    if (needed || !llvm::all_of(op->getUsers(), pullsElements))
      continue;
    joined.remove(op);
    for (Value result : op->getResults())
      inside.remove(result);
  }
  for (Operation *op : llvm::drop_begin(joined)) {
    if (failed(storeCaptured(op, anchor)))
      return failure();
    for (Value operand : op->getOperands())
      if (!inside.contains(operand) && failed(makeElementwise(operand, anchor)))
        return failure();
  }
  SmallVector<Value> roots;
  for (Value value : inside)
    if (readOutside(value))
      roots.push_back(value);
  return roots;
}

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
  FailureOr<SmallVector<Value>> roots =
      joinRowLocalUsers(op, op.getResults(), splitOverGrid(Attend::of(op)).has_value());
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
  for (Value operand : op->getOperands())
    if (failed(llvm::is_contained(op.getSources(), operand) ? makePullable(operand, op) : store(operand, op)))
      return failure();
  SmallVector<Value> along = attendedAlong(op, stored);
  for (Value value : along)
    if (failed(makePullable(value, op)))
      return failure();
  return lowerMergeUnits(op, along, stored);
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
  if (failed(store(expansion.source, anchor)))
    return failure();
  for (Operation *op : expansion.ops)
    if (!isa<attn::MapOp>(op))
      for (Value weight : op->getOperands().drop_front())
        if (failed(store(weight, anchor)))
          return failure();
  lowerExpansion(expansion, stored);
  return success();
}

LogicalResult ProgramLowering::lower(Operation *op) {
  if (auto backward = dyn_cast<attn::AttendBackwardOp>(op))
    return lower(backward);
  if (auto attend = dyn_cast<attn::AttendOp>(op))
    return lower(attend);
  if (auto sum = dyn_cast<attn::SumOp>(op)) {
    if (failed(sumsTokens(sum) || sumsTokensOfBatches(sum) ? makePullable(sum.getSource(), op)
                                                           : store(sum.getSource(), op)))
      return failure();
    return lowerSum(sum, stored);
  }
  if (auto mean = dyn_cast<attn::PrefixMeanOp>(op))
    return failed(store(mean.getSource(), op)) ? failure() : lowerPrefixMean(mean, stored);
  if (auto merge = dyn_cast<attn::MergeUnitsOp>(op))
    return lower(merge);
  if (auto convolve = dyn_cast<attn::ConvolveOp>(op)) // (A long one; the others are row-local.)
    return failed(makePullable(convolve.getSource(), op)) || failed(store(convolve.getTaps(), op))
               ? failure()
               : lowerLongConvolve(convolve, stored);
  if (auto taps = dyn_cast<attn::ConvolveTapsGradOp>(op)) {
    for (Value operand : op->getOperands())
      if (failed(makePullable(operand, op)))
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
  hoistAllButAttention(program.front());
  SmallVector<Operation *> ops;
  for (Operation &op : program.front().without_terminator())
    ops.push_back(&op);
  llvm::DenseMap<Operation *, const Expansion *> expansions; // by each of their ops
  SmallVector<Expansion> found = findExpansions(program.front());
  for (const Expansion &expansion : found)
    for (Operation *op : expansion.ops)
      expansions[op] = &expansion;
  for (Operation *op : ops) {
    const Expansion *expansion = expansions.lookup(op);
    if (expansion && op != expansion->ops.back())
      continue;
    if (expansion ? failed(lower(*expansion)) : !isRowLocal(op) && failed(lower(op)))
      return failure();
  }
  Operation *end = program.front().getTerminator();
  llvm::DenseSet<Value> returned;
  for (OpOperand &operand : end->getOpOperands()) {
    if (failed(store(operand.get(), end)))
      return failure();
    Value tensor = stored.lookup(operand.get());
    if (isa<BlockArgument>(tensor) || !returned.insert(tensor).second) {
      // Every output is a tensor of its own.
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
struct AttnToTile : PassWrapper<AttnToTile, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AttnToTile)
  StringRef getArgument() const final { return "attn-to-tile"; }
  StringRef getDescription() const final { return "programs on whole tensors become launches of tile kernels"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<tile::TileDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect>();
  }
  void runOnOperation() final {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attn::programAttrName))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(ProgramLowering(program).run()))
        return signalPassFailure();
  }
};
} // namespace

std::unique_ptr<Pass> createAttnToTilePass() { return std::make_unique<AttnToTile>(); }
void registerAttnToTilePass() { PassRegistration<AttnToTile>(); }

} // namespace weft
