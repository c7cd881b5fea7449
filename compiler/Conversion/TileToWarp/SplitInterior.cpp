// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-split-interior: a kernel whose masks keep accesses narrow has a body of its own for programs inside of all bounds.
//
//   %i = addi (splat %first), %r          %r: 0 .. 1023      %last = addi %first, 1023
//   %m = cmpi slt, %i, (splat %n)                            %inside = andi (cmpi slt, %last, %n), (cmpi sle, %first, %last)
//   %x = tile.load %p, %m                        ─▶          scf.if %inside { %x = tile.load %p .. }
//   ..                                                       else { %x = tile.load %p, %m .. }
//
// A bound that is no multiple of a vector may end within one, so that elements are accessed one by one under it, in all
// programs though only one meets the bound.
#include "compiler/Conversion/TileToWarp/AssignLayouts.h"
#include "compiler/Conversion/TileToWarp/Passes.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace weft {
#define GEN_PASS_DEF_TILESPLITINTERIOR
#include "compiler/Conversion/TileToWarp/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {
struct SplitInterior : weft::impl::TileSplitInteriorBase<SplitInterior> {
  LogicalResult initialize(MLIRContext *) override {
    simplify = OpPassManager(func::FuncOp::getOperationName());
    simplify.addPass(createCanonicalizerPass());
    simplify.addPass(createCSEPass());
    return success();
  }
  void runOnOperation() override;

  OpPassManager simplify;
};

/// What a kernel's body consists of: what is computed without accesses to tensors, and all from the first of those on.
struct Body {
  Block *block;
  Block::iterator tail;
  bool isBefore(Value value) const {
    Operation *op = value.getDefiningOp();
    return !op || op->getBlock() != block || (tail != block->end() && op->isBeforeInBlock(&*tail));
  }
};

/// A scalar at one end of what a tensor of indices counts, made where it is asked for.
class Ends {
public:
  Ends(OpBuilder &b, const Body &body) : b(b), body(body) {}
  /// Null where the tensor does not count up along its axes from what is known before the body's tail.
  Value of(Value value, bool last);

private:
  OpBuilder &b;
  const Body &body;
};
} // namespace

/// Bodies longer than this are not worth twice the code.
static constexpr int longest = 400;

Value Ends::of(Value value, bool last) {
  Location loc = value.getLoc();
  auto number = [&](int64_t of) -> Value {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(getElementTypeOrSelf(value.getType()), of));
  };
  if (!isa<RankedTensorType>(value.getType()))
    return body.isBefore(value) ? value : Value();
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return number(constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (auto range = dyn_cast_or_null<tile::MakeRangeOp>(op))
    return number(last ? int64_t(range.getEnd()) - 1 : int64_t(range.getStart()));
  if (auto splat = dyn_cast_or_null<tile::SplatOp>(op))
    return of(splat.getSource(), last);
  if (isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp, tile::PromiseOp>(op))
    return of(op->getOperand(0), last);
  if (auto wide = dyn_cast_or_null<arith::ExtSIOp>(op)) {
    Value narrow = of(wide.getIn(), last);
    return narrow ? b.createOrFold<arith::ExtSIOp>(loc, getElementTypeOrSelf(value.getType()), narrow) : Value();
  }
  if (auto add = dyn_cast_or_null<arith::AddIOp>(op)) {
    Value lhs = of(add.getLhs(), last), rhs = lhs ? of(add.getRhs(), last) : Value();
    return rhs ? b.createOrFold<arith::AddIOp>(loc, lhs, rhs) : Value();
  }
  return {};
}

/// The comparisons that all have to hold for a mask to be true everywhere; none where it asks for anything else.
static bool collectComparisons(Value mask, SmallVectorImpl<arith::CmpIOp> &found) {
  Operation *op = mask.getDefiningOp();
  if (isa_and_nonnull<tile::BroadcastOp, tile::ExpandDimsOp, tile::SplatOp>(op))
    return collectComparisons(op->getOperand(0), found);
  if (isa_and_nonnull<arith::AndIOp>(op))
    return collectComparisons(op->getOperand(0), found) && collectComparisons(op->getOperand(1), found);
  auto compare = dyn_cast_or_null<arith::CmpIOp>(op);
  if (compare)
    found.push_back(compare);
  return compare != nullptr;
}

/// Whether a comparison is true of every element: a scalar, null where nothing is known or it never is. What counts up may wrap, so that
/// its first element has to be below its last.
static Value holdsEverywhere(arith::CmpIOp compare, const Body &body, OpBuilder &b) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  bool isUpper = predicate == Predicate::slt || predicate == Predicate::sle;
  if (!isUpper && predicate != Predicate::sgt && predicate != Predicate::sge)
    return {};
  Ends ends(b, body);
  Location loc = compare.getLoc();
  auto notWrapped = [&](Value first, Value last, Value known) -> Value {
    Value rises = b.createOrFold<arith::CmpIOp>(loc, Predicate::sle, first, last);
    return b.createOrFold<arith::AndIOp>(loc, known, rises);
  };
  Value lhs[2], rhs[2];
  for (bool last : {false, true}) {
    lhs[last] = ends.of(compare.getLhs(), last);
    rhs[last] = lhs[last] ? ends.of(compare.getRhs(), last) : Value();
    if (!rhs[last])
      return {};
  }
  Value known = b.createOrFold<arith::CmpIOp>(loc, predicate, lhs[isUpper], rhs[!isUpper]);
  if (matchPattern(known, m_Zero()))
    return {};
  return notWrapped(rhs[0], rhs[1], notWrapped(lhs[0], lhs[1], known));
}

static Value maskOf(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return load.getMask();
  if (auto store = dyn_cast<tile::StoreOp>(op))
    return store.getMask();
  return {};
}

/// Whether an access would take more elements at once without its mask.
static bool isKeptNarrow(Operation *op, const AxisAnalysis &axes, const TargetInfo &target, int warps) {
  if (!isa<RankedTensorType>(op->getOperand(0).getType()))
    return false;
  auto width = [&](const Access &access) { return accessWidth(coalescedLayout(access, warps, target), access); };
  Access access = accessOf(op, axes, target), whole = access;
  whole.mask = std::nullopt;
  return width(whole) > width(access);
}

/// Whether an access goes wherever its indices say: to elements that are neighbours more often of lanes than of registers,
/// so that vectors of others would scatter it.
static bool isScattered(Operation *op, const AxisAnalysis &axes) {
  if (!isa<tile::LoadOp, tile::StoreOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op) ||
      !isa<RankedTensorType>(op->getOperand(0).getType()))
    return false;
  AxisInfo pointer = axes.lookup(op->getOperand(0));
  return llvm::all_of(llvm::zip_equal(pointer.contiguity, pointer.constancy), [](auto axis) {
    auto [contiguity, constancy] = axis;
    return contiguity == 1 && constancy == 1;
  });
}

/// A kernel's body, if it is a single run of ops that is not long.
static std::optional<Body> bodyOf(func::FuncOp function) {
  if (function.isExternal() || !function->hasAttr(tile::kernelAttrName) ||
      function->hasAttr(tile::ordersAccessesAttrName) || !llvm::hasSingleElement(function.getBody()))
    return std::nullopt;
  Block &block = function.getBody().front();
  int count = 0;
  for (Operation &op : block)
    if (++count > longest || isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op))
      return std::nullopt;
  auto tail = llvm::find_if(block.without_terminator(), [](Operation &op) {
    bool isScalarLoad = isa<tile::LoadOp>(op) && !isa<RankedTensorType>(op.getResult(0).getType());
    return !isScalarLoad && !isa<tile::AssumeOp>(op) && !isMemoryEffectFree(&op);
  });
  if (tail == block.without_terminator().end())
    return std::nullopt;
  return Body{&block, tail};
}

/// The comparisons that keep accesses narrow, each with what says whether it holds everywhere.
static llvm::MapVector<Operation *, Value> boundsOf(const Body &body, const AxisAnalysis &axes,
                                                    const TargetInfo &target, int warps, OpBuilder &b) {
  llvm::MapVector<Operation *, Value> bounds;
  auto tail = llvm::make_range(body.tail, body.block->end());
  if (llvm::any_of(tail, [&](Operation &op) { return isScattered(&op, axes); }))
    return bounds;
  for (Operation &op : tail) {
    SmallVector<arith::CmpIOp> compared;
    Value mask = maskOf(&op);
    if (!mask || !isKeptNarrow(&op, axes, target, warps) || !collectComparisons(mask, compared))
      continue;
    llvm::MapVector<Operation *, Value> own;
    bool known = llvm::all_of(compared, [&](arith::CmpIOp compare) {
      Value holds = bounds.lookup(compare);
      return (own[compare] = holds ? holds : holdsEverywhere(compare, body, b)) != nullptr;
    });
    if (known)
      for (auto &each : own)
        bounds.insert(each);
  }
  return bounds;
}

/// The body's tail anew, with the masks that are true, and what is made of these before it.
static void cloneInside(const Body &body, const llvm::MapVector<Operation *, Value> &bounds, OpBuilder &b) {
  IRMapping known;
  llvm::DenseSet<Operation *> decided;
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(body.block->begin(), body.block->end()))) {
    if (bounds.contains(&op)) {
      Type type = op.getResult(0).getType();
      auto tensor = dyn_cast<RankedTensorType>(type);
      TypedAttr yes = tensor ? TypedAttr(DenseElementsAttr::get(tensor, true)) : b.getBoolAttr(true);
      known.map(op.getResult(0), arith::ConstantOp::create(b, op.getLoc(), yes));
      decided.insert(&op);
      continue;
    }
    bool depends = llvm::any_of(op.getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && decided.contains(operand.getDefiningOp());
    });
    bool isTail = &op == &*body.tail || body.tail->isBeforeInBlock(&op);
    if (op.hasTrait<OpTrait::IsTerminator>() || (!isTail && !depends))
      continue;
    b.clone(op, known);
    decided.insert(&op);
  }
}

static void split(func::FuncOp function, Body body, const llvm::MapVector<Operation *, Value> &bounds, OpBuilder &b) {
  Location loc = function.getLoc();
  Value inside;
  for (auto [compare, holds] : bounds)
    inside = inside ? Value(arith::AndIOp::create(b, loc, inside, holds)) : holds;
  auto branch = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/true);
  remarks::decided(remarks::access, branch) << remark::reason(
      "programs inside of bounds have a body of their own, without their masks; {0} comparisons decide", bounds.size());
  OpBuilder within(branch.thenBlock(), branch.thenBlock()->begin());
  Operation *terminator = body.block->getTerminator();
  cloneInside(body, bounds, within);
  Block *otherwise = branch.elseBlock();
  otherwise->getOperations().splice(otherwise->begin(), body.block->getOperations(), body.tail,
                                    Block::iterator(terminator));
}

void SplitInterior::runOnOperation() {
  func::FuncOp function = getOperation();
  std::optional<Body> body = bodyOf(function);
  if (!body)
    return markAllAnalysesPreserved();
  const TargetInfo &target = TargetInfo::ofOrDefault(function);
  OpBuilder b(body->block, body->tail);
  llvm::MapVector<Operation *, Value> bounds =
      boundsOf(*body, AxisAnalysis(function), target, tile::scheduleOf(function).warps, b);
  if (bounds.empty())
    return warp::eraseDeadOps(function); // scalars of comparisons that are not known
  split(function, *body, bounds, b);
  if (failed(runPipeline(simplify, function)))
    signalPassFailure();
}
