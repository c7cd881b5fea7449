// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-skip-rows: a warp passes over an iteration in which a mask leaves nothing of its rows.
//
//                                                     %last = warp.extreme %row {greatest}
//   scf.for .. iter_args(%acc) {                      scf.for .. iter_args(%acc) {
//     warp.barrier                                      warp.barrier
//     %k = warp.load_shared %tile
//     %s = warp.mma %q, %k, %zero                       %some = arith.cmpi sle, %begin, %last
//     %m = cmpi sle, %column, (broadcast %row)          %r = scf.if %some {
//     %p = arith.select %m, %s, %none {leaves}   ─▶       .. as before ..
//     %d = warp.mma %p, %v, %acc                          scf.yield %d
//     scf.yield %d                                      } else {
//   }                                                     scf.yield %acc
//                                                       }
//                                                       scf.yield %r
//                                                     }
//
// Where blocks lie across a diagonal, as many as half of the warps have none of their columns. They still meet the
// others at barriers and copy with them.
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Arithmetic/ComparedIndex.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSKIPROWS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct SkipRows : weft::warp::impl::WarpSkipRowsBase<SkipRows> {
  void runOnOperation() override;
};

using Ops = llvm::SetVector<Operation *>;

/// Registers of a thread for what is carried, from which on a branch is not worth it: beside 128 of 255 no room is left
/// for what it keeps alive on both of its ways, and ptxas spills.
constexpr int64_t mostRegisters = 128;

/// What a warp that has no column of its rows need not do: ops of the loop's body that only give what it carries.
struct Skippable {
  arith::SelectOp select;
  Ops ops;
  SmallVector<unsigned> carried; ///< numbers of the values carried that they give

  /// What they give, in registers of a thread.
  int64_t registers(scf::ForOp loop) const;
};
} // namespace

/// Whether a warp alone may leave an op out: it has no effect but reads, and waits for nobody.
static bool mayBeLeftOut(Operation *op) {
  if (op->hasAttr(scratchAttrName))
    return false;
  if (isMemoryEffectFree(op))
    return true;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  auto load = dyn_cast<tile::LoadOp>(op);
  return effects && effects.onlyHasEffect<MemoryEffects::Read>() && !(load && load.getIsVolatile());
}

int64_t Skippable::registers(scf::ForOp loop) const {
  int64_t bits = 0;
  for (unsigned number : carried) {
    Type type = loop.getRegionIterArg(number).getType();
    bits += int64_t(layoutAttrOf(type).getLayout().size(InDim::Register)) *
            tile::elementTypeOf(type).getIntOrFloatBitWidth();
  }
  return bits / 32;
}

/// Whether an op may stand before those that are left out, whatever it is: the end of a tile's life is none of a warp's.
static bool isNothing(Operation *op) { return isa<DeallocOp>(op); }

/// The ops at the end of a loop's body, behind all that warps do together.
static Ops opsAtEnd(scf::ForOp loop) {
  Ops ops;
  for (Operation &op : llvm::reverse(loop.getBody()->without_terminator())) {
    if (isNothing(&op))
      continue;
    if (!mayBeLeftOut(&op))
      break;
    ops.insert(&op);
  }
  return ops;
}

/// All ops among `ops` that a value is computed from, last ones first.
static void addSources(Value value, const Ops &ops, Ops &found) {
  Operation *op = value.getDefiningOp();
  if (!op || !ops.contains(op) || !found.insert(op))
    return;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      addSources(operand, ops, found);
  });
}

/// Which rows each warp has: what its bits add to the place along the first axis. None where they say anything of another.
static std::optional<SmallVector<int64_t>> rowsOfWarps(Type type) {
  LayoutAttr layout = layoutAttrOf(type);
  if (!layout)
    return std::nullopt;
  SmallVector<int64_t> rows;
  for (uint32_t base : layout.getLayout().bases(InDim::Warp)) {
    auto place = layout.getLayout().delinearize(base);
    if (llvm::any_of(ArrayRef(place).drop_front(), [](auto each) { return each != 0; }))
      return std::nullopt;
    rows.push_back(place.front());
  }
  return rows;
}

/// The ops at the end that a carried value is computed by, if the loop sums it up over the columns of the rows that `select`
/// is of, each warp for its own; none otherwise.
static Ops sumOfRows(scf::ForOp loop, unsigned number, arith::SelectOp select, const Ops &atEnd) {
  Value argument = loop.getRegionIterArg(number), yielded = loop.getYieldedValues()[number];
  if (!isa<RankedTensorType>(yielded.getType()) ||
      tile::shapeOf(yielded.getType()).front() != tile::shapeOf(select.getType()).front() ||
      rowsOfWarps(yielded.getType()) != rowsOfWarps(select.getType()))
    return {};
  Ops sources;
  addSources(yielded, atEnd, sources);
  auto takesArgument = [&](Operation *op) { return llvm::is_contained(op->getOperands(), argument); };
  return sources.contains(select) && llvm::any_of(sources, takesArgument) ? sources : Ops();
}

/// Whether warps have rows of their own, and so few that columns may pass by all that one of them has: of a block as wide
/// as high, which begins on the diagonal, each warp has some.
static bool mayEmptyWarps(arith::SelectOp select) {
  ArrayRef<int64_t> shape = tile::shapeOf(select.getType());
  std::optional<SmallVector<int64_t>> rows = rowsOfWarps(select.getType());
  return shape.size() == 2 && shape[0] > shape[1] && rows && !rows->empty();
}

/// Takes out what other ops of the body need as well, and what that is made of.
static void keepWhatOthersNeed(Skippable &found, scf::ForOp loop) {
  Operation *yield = loop.getBody()->getTerminator();
  auto givesOnlyCarried = [&](OpOperand &use) {
    Operation *user = loop.getBody()->findAncestorOpInBlock(*use.getOwner());
    return user == yield ? llvm::is_contained(found.carried, use.getOperandNumber()) : found.ops.contains(user);
  };
  for (Operation &op : llvm::reverse(*loop.getBody())) // users before what they use
    if (found.ops.contains(&op) && !llvm::all_of(op.getUses(), givesOnlyCarried))
      found.ops.remove(&op);
}

/// What may be left out of an iteration; none where that is not all that the selected elements decide.
static std::optional<Skippable> findSkippable(scf::ForOp loop) {
  Ops atEnd = opsAtEnd(loop);
  auto marked = llvm::find_if(atEnd, [](Operation *op) { return op->hasAttr(tile::leavesRowsAttrName); });
  auto select = marked == atEnd.end() ? arith::SelectOp() : dyn_cast<arith::SelectOp>(*marked);
  if (!select || !mayEmptyWarps(select))
    return std::nullopt;
  Skippable found{select, {}, {}};
  for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
    if (Ops sum = sumOfRows(loop, i, select, atEnd); !sum.empty()) {
      found.carried.push_back(i);
      found.ops.insert(sum.begin(), sum.end());
    }
  if (found.registers(loop) >= mostRegisters)
    return std::nullopt;
  keepWhatOthersNeed(found, loop);
  return found.ops.contains(select) ? std::optional(std::move(found)) : std::nullopt;
}

/// Whether a comparison lets any of `columns` columns through in a warp's rows, i1; null where it says nothing of rows that
/// is known before the loop. What is the same in all iterations is made there.
static Value passesColumns(arith::CmpIOp compare, int64_t columns, scf::ForOp loop, OpBuilder &b) {
  IndexForms forms{scf::ForOp()};
  std::optional<ComparedIndex> compared = comparedIndex(compare, /*axis=*/1, forms, b);
  if (!compared || compared->bounds.size() != 1 || compared->bounds.front().second)
    return {};
  Value bound = compared->bounds.front().first;
  if (!isa<RankedTensorType>(bound.getType()) || !loop.isDefinedOutsideOfLoop(bound))
    return {};
  // The first column is the least, and the last the greatest: one of them passes where any does.
  using P = arith::CmpIPredicate;
  Location loc = compare.getLoc();
  const bool isUpper = compared->isUpper, isStrict = compared->isStrict;
  OpBuilder before(loop);
  Value extreme = ExtremeOp::create(before, loc, before.getI32Type(), bound, /*greatest=*/isUpper);
  IndexSum column = isUpper ? compared->begin : compared->begin + IndexSum(columns - 1);
  P predicate = isUpper ? (isStrict ? P::slt : P::sle) : (isStrict ? P::sgt : P::sge);
  return arith::CmpIOp::create(b, loc, predicate, column.emit(b, loc, b.getI32Type()), extreme);
}

/// The same of a mask, as far as it is a conjunction of such comparisons.
static Value passesColumns(Value mask, int64_t columns, scf::ForOp loop, OpBuilder &b) {
  if (auto compare = mask.getDefiningOp<arith::CmpIOp>())
    return passesColumns(compare, columns, loop, b);
  auto both = mask.getDefiningOp<arith::AndIOp>();
  if (!both)
    return {};
  Value left = passesColumns(both.getLhs(), columns, loop, b), right = passesColumns(both.getRhs(), columns, loop, b);
  return left && right ? arith::AndIOp::create(b, mask.getLoc(), left, right).getResult() : left ? left : right;
}

/// Puts what may be left out under the condition that a warp has a column of its rows.
static void skip(scf::ForOp loop) {
  std::optional<Skippable> found = findSkippable(loop);
  if (!found)
    return;
  Operation *yield = loop.getBody()->getTerminator();
  OpBuilder b(yield);
  Location loc = found->select.getLoc();
  Value some = passesColumns(found->select.getCondition(), tile::shapeOf(found->select.getType())[1], loop, b);
  if (!some)
    return;
  keepWhatOthersNeed(*found, loop); // the condition may, as where a list says which columns come
  auto pick = [&](ValueRange values) {
    return llvm::map_to_vector(found->carried, [&](unsigned number) { return values[number]; });
  };
  SmallVector<Value> given = pick(loop.getYieldedValues()), kept = pick(loop.getRegionIterArgs());
  auto branch = scf::IfOp::create(b, loc, TypeRange(given), some, /*withElseRegion=*/true);
  for (auto [number, result] : llvm::zip_equal(found->carried, branch.getResults()))
    yield->setOperand(number, result);
  // Tiles live on to the end of what reads them.
  SmallVector<Operation *> body(llvm::make_pointer_range(loop.getBody()->without_terminator()));
  for (Operation *op : body)
    if (found->ops.contains(op))
      op->moveBefore(branch.thenBlock(), branch.thenBlock()->end());
    else if (isNothing(op))
      op->moveBefore(yield);
  b.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(b, loc, given);
  b.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(b, loc, kept);
}

void SkipRows::runOnOperation() {
  getOperation().walk([](scf::ForOp loop) { skip(loop); });
}
