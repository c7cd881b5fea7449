// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What is stored, and what is computed on the way in kernels that need it. See ProgramLowering.h.
#include "compiler/Conversion/AttnToTile/Elements/ElementTile.h"
#include "compiler/Conversion/AttnToTile/Elements/LowerElements.h"
#include "compiler/Conversion/AttnToTile/Kernel/Numbers.h"
#include "compiler/Conversion/AttnToTile/ProgramLowering.h"
#include "compiler/Conversion/AttnToTile/Rows/ChannelSums.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

/// The tensors that an op's regions read elements of.
static SmallVector<Value> capturedBy(Operation *op) {
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, captured);
  captured.remove_if([](Value value) { return !isa<attn::WholeTensorType>(value.getType()); });
  return captured.takeVector();
}

/// Whether what an op's regions read is computed from results of `anchor`, which the op would join: elements are read
/// of what is stored before.
static bool capturesResultsOf(Operation *anchor, Operation *op) {
  llvm::SetVector<Value> reached;
  auto reach = [&](ArrayRef<Value> values) { reached.insert(values.begin(), values.end()); };
  reach(capturedBy(op));
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *made = reached[i].getDefiningOp();
    if (made == anchor)
      return true;
    if (!made || made->isBeforeInBlock(anchor))
      continue;
    reach(SmallVector<Value>(made->getOperands()));
    reach(capturedBy(made));
  }
  return false;
}

LogicalResult ProgramLowering::storeCaptured(Operation *op, Operation *anchor) {
  for (Value value : capturedBy(op)) {
    bool computed = isNumber(value) && isa<attn::MapOp>(op);
    if (failed(computed ? makeNumber(value, anchor, /*sums=*/false) : store(value, anchor)))
      return failure();
  }
  return success();
}

LogicalResult ProgramLowering::makeNumber(Value value, Operation *anchor, bool sums) {
  if (stored.contains(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (auto sum = dyn_cast<attn::SumOp>(op); sum && sums)
    return sumsRows(sum) ? lowerRowSum(sum, anchor) : store(sum.getSource(), anchor);
  if (!isa<attn::MapOp>(op))
    return store(value, anchor);
  SmallVector<Value> read(op->getOperands());
  read.append(capturedBy(op));
  for (Value each : read)
    if (failed(isNumber(each) ? makeNumber(each, anchor, sums) : store(each, anchor)))
      return failure();
  return success();
}

/// The most taps that a kernel applies for one tile of a convolution of what is computed on the way. Each level of
/// nested convolutions multiplies them, and the code that computes them.
static constexpr int64_t mostTaps = 256;

int64_t ProgramLowering::tapsApplied(Value value, llvm::DenseMap<Value, int64_t> &known) {
  Operation *op = value.getDefiningOp();
  if (stored.contains(value) || !isRowLocal(op))
    return 0;
  if (auto found = known.find(value); found != known.end())
    return found->second;
  auto local = cast<RowLocalOpInterface>(op);
  int64_t taps = 0;
  for (OpOperand &operand : op->getOpOperands())
    if (local.readsByRow(operand.getOperandNumber()))
      taps += tapsApplied(operand.get(), known);
  if (local.tilesRead() > 1)
    taps = local.tilesRead() * std::max<int64_t>(taps, 1);
  // Beyond the most the source is stored, and the number counts no more.
  return known[value] = std::min(taps, mostTaps + 1);
}

LogicalResult ProgramLowering::makePullable(Value value, Operation *anchor) {
  if (stored.contains(value))
    return success();
  Operation *op = value.getDefiningOp();
  if (isNumber(value))
    return makeNumber(value, anchor, /*sums=*/false);
  if (!isRowLocal(op))
    return store(value, anchor);
  if (failed(storeCaptured(op, anchor)))
    return failure();
  // What is read as a whole (taps, gains, units) has to be there.
  auto local = cast<RowLocalOpInterface>(op);
  llvm::DenseMap<Value, int64_t> known;
  bool tooMany = local.tilesRead() > 1 && tapsApplied(value, known) > mostTaps;
  for (OpOperand &operand : op->getOpOperands()) {
    bool byRow = local.readsByRow(operand.getOperandNumber()) && !(tooMany && operand.getOperandNumber() == 0);
    if (failed(byRow ? makePullable(operand.get(), anchor) : store(operand.get(), anchor)))
      return failure();
  }
  return success();
}

LogicalResult ProgramLowering::store(Value value, Operation *anchor) {
  if (stored.contains(value)) {
    if (stored.isInParts(value))
      addTokenParts(anchor, value, stored);
    return success();
  }
  Operation *op = value.getDefiningOp();
  if (isRowLocal(op))
    return storeRows(value, anchor);
  if (isNumber(value) && isa<attn::MapOp, attn::SumOp>(op)) {
    if (failed(makeNumber(value, anchor, /*sums=*/true)))
      return failure();
    lowerNumbers(anchor, value, stored);
    return success();
  }
  if (auto mean = dyn_cast<attn::MeanHeadsOp>(op))
    return failed(makeElementwise(mean.getSource(), anchor)) ? failure() : lowerMeanHeads(mean, anchor, stored);
  auto map = dyn_cast<attn::MapOp>(op);
  if (!map)
    return op->emitOpError() << "has no kernel of its own";
  for (Value input : map.getInputs())
    if (failed(isNumber(input) ? makeNumber(input, anchor, /*sums=*/false) : store(input, anchor)))
      return failure();
  if (failed(storeCaptured(map, anchor)))
    return failure();
  return lowerFlatMap(map, anchor, stored);
}

LogicalResult ProgramLowering::storeRows(ArrayRef<Value> values, Operation *anchor) {
  RowRoots roots;
  for (Value value : values) {
    if (stored.contains(value))
      continue;
    bool together = isRowLocal(value.getDefiningOp()) && rowSpaceOf(value) == rowSpaceOf(values.front());
    if (failed(together ? makePullable(value, anchor) : store(value, anchor)))
      return failure();
    if (together)
      roots.values.push_back(value);
  }
  if (roots.values.empty())
    return success();
  roots.sums = sumsAlong(roots.values);
  for (attn::SumOp sum : roots.sums)
    if (failed(makePullable(sum.getSource(), anchor)))
      return failure();
  lowerRows(anchor, roots, stored);
  return success();
}

bool ProgramLowering::isAtHand(Value value) {
  Operation *op = value.getDefiningOp();
  if (stored.contains(value))
    return true;
  if (!isRowLocal(op) && !(isNumber(value) && isa<attn::MapOp>(op)))
    return false;
  auto atHand = [&](Value each) { return isAtHand(each); };
  return llvm::all_of(op->getOperands(), atHand) && llvm::all_of(capturedBy(op), atHand);
}

llvm::SetVector<Value> ProgramLowering::computedFor(ArrayRef<Value> roots) {
  llvm::SetVector<Value> reached(roots.begin(), roots.end());
  for (size_t i = 0; i < reached.size(); ++i)
    if (Operation *op = reached[i].getDefiningOp(); !stored.contains(reached[i]) && isRowLocal(op))
      reached.insert(op->operand_begin(), op->operand_end());
  reached.remove_if([&](Value value) { return stored.contains(value) || isNumber(value); });
  return reached;
}

SmallVector<Value> ProgramLowering::squaresFor(ValueRange values, ArrayRef<Value> others) {
  llvm::SetVector<Value> elsewhere = computedFor(others);
  SmallVector<Value> found;
  for (Value value : computedFor(SmallVector<Value>(values)))
    if (auto norm = value.getDefiningOp<attn::RmsNormOp>())
      if (attn::SumOp sum = sumOfSquares(norm.getSource()); sum && elsewhere.contains(sum.getResult()))
        found.push_back(sum.getResult());
  return found;
}

SmallVector<attn::SumOp> ProgramLowering::sumsAlong(ArrayRef<Value> values) {
  llvm::SetVector<Value> computed = computedFor(values);
  SmallVector<attn::SumOp> sums;
  for (auto sum : program.front().getOps<attn::SumOp>()) {
    Value source = sum.getSource();
    if (sumsRows(sum) && rowSpaceOf(source) == rowSpaceOf(values.front()) && isAtHand(source) &&
        llvm::any_of(computedFor(source), [&](Value value) { return computed.contains(value); }))
      sums.push_back(sum);
  }
  return sums;
}

std::optional<SmallVector<Value>> ProgramLowering::takenBeside(Value value, ArrayRef<Value> tables) {
  if (llvm::is_contained(tables, value))
    return SmallVector<Value>();
  auto map = stored.contains(value) ? attn::MapOp() : value.getDefiningOp<attn::MapOp>();
  if (!map || wholeType(value).getRank() != 3 ||
      !llvm::all_of(capturedBy(map), [&](Value each) { return isAtHand(each); }))
    return std::nullopt;
  SmallVector<Value> taken;
  bool some = false;
  for (Value input : map.getInputs()) {
    std::optional<SmallVector<Value>> its = takenBeside(input, tables);
    if (!its && !isAtHand(input))
      return std::nullopt;
    some |= its.has_value();
    taken.append(its ? *its : SmallVector<Value>{input});
  }
  return some ? std::optional(taken) : std::nullopt;
}

LogicalResult ProgramLowering::lowerRowSum(attn::SumOp sum, Operation *anchor) {
  RowRoots roots;
  roots.sums = sumsAlong(sum.getSource());
  if (!llvm::is_contained(roots.sums, sum))
    roots.sums.push_back(sum);
  for (attn::SumOp each : roots.sums)
    if (failed(makePullable(each.getSource(), anchor)))
      return failure();
  lowerRows(anchor, roots, stored);
  return success();
}

/// Whether a value is had apart from `inside`, the values that the kernel of `anchor` makes: stored, or computed of such
/// by ops that `computes` accepts and whose regions read nothing of the kernel's results.
static bool isApart(Value value, Operation *anchor, const llvm::SetVector<Value> &inside, const StoredValues &stored,
                    llvm::function_ref<bool(Operation *)> computes) {
  if (stored.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  return !inside.contains(value) && computes(op) && !capturesResultsOf(anchor, op) &&
         llvm::all_of(op->getOperands(), [&](Value v) { return isApart(v, anchor, inside, stored, computes); });
}

FailureOr<SmallVector<Value>> ProgramLowering::joinRowLocalUsers(Operation *anchor, ValueRange results,
                                                                 bool channelsSplit) {
  llvm::SetVector<Value> inside;
  inside.insert(results.begin(), results.end());
  ArrayRef<StringAttr> space = rowSpaceOf(results.front());
  // What is had apart from this kernel's results: an op that takes these, and has not joined, takes other rows or
  // channels of them.
  auto known = [&](Value value) {
    return inside.contains(value) || isApart(value, anchor, inside, stored, isRowLocal);
  };
  SmallVector<Operation *> joined{anchor};
  for (Operation *op = anchor->getNextNode(); op; op = op->getNextNode()) {
    if (!isRowLocal(op) || readsOtherRows(op) || inExpansions.contains(op) || (channelsSplit && sumsChannels(op)))
      continue;
    bool depends = llvm::any_of(op->getOperands(), [&](Value v) { return inside.contains(v); });
    bool sameRows = llvm::all_of(op->getResults(), [&](Value v) { return rowSpaceOf(v) == space; });
    if (!depends || !sameRows || !llvm::all_of(op->getOperands(), known) || capturesResultsOf(anchor, op))
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

LogicalResult ProgramLowering::makeElementwise(Value value, Operation *anchor, const llvm::SetVector<Value> &inside) {
  Operation *op = value.getDefiningOp();
  if (stored.contains(value) || inside.contains(value))
    return success();
  if (!isElementwise(op))
    return store(value, anchor);
  if (failed(storeCaptured(op, anchor)))
    return failure();
  for (Value operand : op->getOperands())
    if (failed(makeElementwise(operand, anchor, inside)))
      return failure();
  return success();
}

/// Whether an op computes what it reads element by element, and so needs no map of stored values stored.
static bool readsElements(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return isa<attn::MapOp>(op) || (kernel && kernel.readsElements());
}

FailureOr<SmallVector<Value>> ProgramLowering::joinMaps(Operation *anchor) {
  llvm::SetVector<Value> inside;
  inside.insert(anchor->getResult(0));
  ArrayRef<StringAttr> shape = cast<attn::WholeTensorType>(anchor->getResult(0).getType()).getDims();
  // An op that reads the product and has not joined, such as a mean over heads, reads other elements than the tile's.
  auto known = [&](Value value) {
    return inside.contains(value) || isApart(value, anchor, inside, stored, isElementwise);
  };
  llvm::SetVector<Operation *> joined;
  joined.insert(anchor);
  for (Operation *op = anchor->getNextNode(); op; op = op->getNextNode()) {
    auto map = dyn_cast<attn::MapOp>(op);
    if (!map || inExpansions.contains(map) ||
        cast<attn::WholeTensorType>(map.getResult(0).getType()).getDims() != shape)
      continue;
    if (llvm::any_of(map.getInputs(), [&](Value v) { return inside.contains(v); }) &&
        llvm::all_of(map.getInputs(), known) && !capturesResultsOf(anchor, map)) {
      joined.insert(map);
      inside.insert(map.getResults().begin(), map.getResults().end());
    }
  }
  auto readOutside = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) { return !joined.contains(user); });
  };
  // A map of what is stored anyway, for those who compute it as well: left to them.
  // A copy, since the loop removes ops from `joined`.
  SmallVector<Operation *> maps(llvm::drop_begin(joined));
  for (Operation *op : llvm::reverse(maps)) {
    bool needed = llvm::any_of(op->getOperands(), [&](Value v) { return inside.contains(v) && !readOutside(v); });
    if (needed || !llvm::all_of(op->getUsers(), readsElements))
      continue;
    joined.remove(op);
    for (Value result : op->getResults())
      inside.remove(result);
  }
  for (Operation *op : llvm::drop_begin(joined)) {
    if (failed(storeCaptured(op, anchor)))
      return failure();
    for (Value operand : op->getOperands())
      if (failed(makeElementwise(operand, anchor, inside)))
        return failure();
  }
  SmallVector<Value> roots;
  for (Value value : inside)
    if (readOutside(value))
      roots.push_back(value);
  return roots;
}

LogicalResult ProgramLowering::storeNumbers(Operation *end) {
  llvm::SetVector<Value> numbers;
  for (Value value : end->getOperands())
    if (isNumber(value) && !stored.contains(value) && isa<attn::MapOp, attn::SumOp>(value.getDefiningOp()))
      numbers.insert(value);
  for (Value number : numbers)
    if (failed(makeNumber(number, end, /*sums=*/true)))
      return failure();
  if (!numbers.empty())
    lowerNumbers(end, numbers.getArrayRef(), stored);
  return success();
}

} // namespace weft
