// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-split-loops: a loop whose tiles depend on which iteration it is becomes loops that know.
//
//   scf.for %i = %a to %b {                              %p = clamp %n to %a .. %b
//     %all = cmpi slt, %i, %n                            scf.for %i = %a to %p { .. ori true, %mask .. }
//     %m = ori (splat %all), %mask          ─▶           scf.for %i = %p to %b { .. ori false, %mask .. }
//     ..
//   }
//
// What runs ahead in the loop, copies and products, runs on from one loop into the next: each begins with what the one
// before it carried.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Copies/IndexSums.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSPLITLOOPS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct SplitLoops : weft::warp::impl::WarpSplitLoopsBase<SplitLoops> {
  void runOnOperation() override;
};

/// Where a comparison of a loop's variable changes: `before` in the iterations below `place`, else otherwise.
struct Change {
  arith::CmpIOp compare;
  IndexSum place;
  bool before;
};

using Changes = SmallVector<Change, 2>;
} // namespace

static bool isTensor(Value value) { return isa<RankedTensorType>(value.getType()); }

/// Whether a condition decides, with others or alone, what is selected of tiles. (Where it decides what is copied or loaded,
/// it is one more predicate, and costs nothing.)
static bool selectsTiles(Value condition) {
  return llvm::any_of(condition.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::SelectOp>(user))
      return use.getOperandNumber() == 0 && isTensor(user->getResult(0));
    return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, tile::SplatOp, tile::BroadcastOp, tile::ExpandDimsOp>(
               user) &&
           selectsTiles(user->getResult(0));
  });
}

/// Where a comparison changes over a loop; nothing where it is not of the loop's variable and of what does not change.
static std::optional<Change> changeOf(arith::CmpIOp compare, scf::ForOp loop) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  const bool atMost = predicate == Predicate::sle || predicate == Predicate::sgt;
  const bool isLess = predicate == Predicate::slt || predicate == Predicate::sle;
  if (!isLess && predicate != Predicate::sgt && predicate != Predicate::sge)
    return std::nullopt;
  IndexForms forms(loop);
  IndexSum difference = forms.sumOf(compare.getLhs()) - forms.sumOf(compare.getRhs()), rest;
  std::optional<int64_t> slope;
  for (auto &[factors, coefficient] : difference.terms) {
    if (factors.size() == 1 && factors.front() == loop.getInductionVar())
      slope = coefficient;
    else if (!llvm::all_of(factors, [&](Value factor) { return loop.isDefinedOutsideOfLoop(factor); }))
      return std::nullopt;
    else
      rest.add(factors, coefficient);
  }
  // difference < 0, or <= 0, or neither.
  const IndexSum bound(atMost ? 1 : 0);
  if (slope == 1)
    return Change{compare, bound - rest, isLess};
  if (slope == -1)
    return Change{compare, rest - bound + IndexSum(1), !isLess};
  return std::nullopt;
}

/// All comparisons that change where the first one does that selects tiles.
static Changes changesAtOnePlace(scf::ForOp loop) {
  Changes all, found;
  if (!matchPattern(loop.getStep(), m_One()) || loop.getUnsignedCmp())
    return found;
  loop.getBody()->walk([&](arith::CmpIOp compare) {
    if (!isTensor(compare.getResult()))
      if (std::optional<Change> change = changeOf(compare, loop))
        all.push_back(*change);
  });
  auto first = llvm::find_if(all, [](Change &each) { return selectsTiles(each.compare.getResult()); });
  if (first != all.end())
    llvm::copy_if(all, std::back_inserter(found), [&](const Change &each) { return each.place == first->place; });
  return found;
}

/// What an operation of one result folds to, or null.
static Value foldedTo(Operation *op, OpBuilder &b) {
  SmallVector<Value> folded;
  // A fold in place gives nothing: it moves a constant behind the other operand, where the next one sees it.
  if (succeeded(b.tryFold(op, folded)) && folded.empty() && failed(b.tryFold(op, folded)))
    return {};
  return folded.empty() || folded.front() == op->getResult(0) ? Value() : folded.front();
}

/// Replaces a value by what it is known to be, and all that this decides. The operations that made them are `decided`,
/// and not erased here: one is met again where another of its operands is decided.
static void decide(Value value, Value known, OpBuilder &b, SetVector<Operation *> &decided) {
  SmallVector<Operation *> users(value.getUsers());
  value.replaceAllUsesWith(known);
  for (Operation *user : users)
    if (user->getNumResults() == 1 && isMemoryEffectFree(user))
      if (Value folded = foldedTo(user, b))
        decide(user->getResult(0), folded, b, decided);
  if (Operation *made = value.getDefiningOp())
    decided.insert(made);
}

/// A copy of the loop over begin .. end - 1, before or behind the place of changes.
static scf::ForOp part(OpBuilder &b, scf::ForOp loop, Value begin, Value end, ValueRange carried,
                       const Changes &changes, bool before) {
  IRMapping map;
  auto made = cast<scf::ForOp>(b.clone(*loop, map));
  made.setLowerBound(begin);
  made.setUpperBound(end);
  made.getInitArgsMutable().assign(carried);
  SetVector<Operation *> decided;
  for (Change change : changes) {
    Value copy = map.lookup(change.compare.getResult());
    OpBuilder inside(made.getBody(), made.getBody()->begin());
    bool known = before == change.before;
    decide(copy, arith::ConstantOp::create(inside, copy.getLoc(), inside.getBoolAttr(known)), inside, decided);
  }
  for (Operation *op : decided)
    if (isOpTriviallyDead(op))
      op->erase();
  return made;
}

/// Splits a loop, and what becomes of it again, as often as it may.
static void split(scf::ForOp loop, unsigned times) {
  Changes changes = changesAtOnePlace(loop);
  if (changes.empty() || times == 0)
    return;
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Value place = changes.front().place.emit(b, loc, loop.getInductionVar().getType());
  place = arith::MinSIOp::create(b, loc, place, loop.getUpperBound());
  place = arith::MaxSIOp::create(b, loc, place, loop.getLowerBound());
  scf::ForOp first = part(b, loop, loop.getLowerBound(), place, loop.getInitArgs(), changes, /*before=*/true);
  scf::ForOp second = part(b, loop, place, loop.getUpperBound(), first.getResults(), changes, /*before=*/false);
  loop.replaceAllUsesWith(second.getResults());
  loop.erase();
  split(first, times - 1);
  split(second, times - 1);
}

/// What is selected by a mask or a condition of all elements, of few elements or many: by a branch on the condition, so
/// that where it is true no mask is computed.
static void branch(arith::SelectOp select) {
  auto repeated = select.getCondition().getDefiningOp<tile::BroadcastOp>();
  auto either = (repeated ? repeated.getSource() : select.getCondition()).getDefiningOp<arith::OrIOp>();
  if (!either || !isTensor(select.getResult()) || !either->hasOneUse() || !select.getCondition().hasOneUse())
    return;
  for (bool swapped : {false, true}) {
    auto all = (swapped ? either.getLhs() : either.getRhs()).getDefiningOp<tile::SplatOp>();
    if (!all)
      continue;
    OpBuilder b(select);
    Location loc = select.getLoc();
    auto branches = scf::IfOp::create(b, loc, TypeRange(select.getType()), all.getSource(), /*withElseRegion=*/true);
    b.setInsertionPointToStart(branches.thenBlock());
    scf::YieldOp::create(b, loc, select.getTrueValue());
    b.setInsertionPointToStart(branches.elseBlock());
    Value mask = swapped ? either.getRhs() : either.getLhs();
    if (repeated)
      mask = tile::BroadcastOp::create(b, loc, repeated.getType(), mask);
    Value masked = arith::SelectOp::create(b, loc, mask, select.getTrueValue(), select.getFalseValue());
    scf::YieldOp::create(b, loc, masked);
    select.replaceAllUsesWith(branches.getResult(0));
    select.erase();
    if (repeated)
      repeated.erase();
    either.erase();
    return;
  }
}

void SplitLoops::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation().walk([&](scf::ForOp loop) { loops.push_back(loop); });
  for (scf::ForOp loop : loops) // innermost first
    split(loop, /*times=*/2);   // before, within and behind a run of iterations
  SmallVector<arith::SelectOp> selects;
  getOperation().walk([&](arith::SelectOp select) {
    if (auto loop = select->getParentOfType<scf::ForOp>(); !loop || hasLoopInside(loop))
      selects.push_back(select);
  });
  llvm::for_each(selects, branch);
}
