// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-narrow-indices: what is the same for all elements of a tensor of 64-bit indices is computed once, as a scalar,
// and what differs in 32 bits.
//
//   %i = addi (splat %row), (extsi %r)                       %r: 0 .. 63
//   %a = addptr (splat %p), (muli %i, 128)      ─▶           %q = addptr %p, %row * 128     %a = addptr (splat %q), (muli %r, 128)
//   %c = cmpi slt, %i, (splat %n)               ─▶           %m = trunci (clamp (%n - %row))    %c = cmpi slt, %r, (splat %m)
//
// A 64-bit sum and a comparison are two instructions each, for each element; a scalar's are paid once, which is more where
// a thread has one element: kernels whose tiles are no larger than that stay as they are. Sums and products of
// addresses are taken modulo 2^64, so that they may be taken apart; bounds are moved where ranges say that nothing wraps.
// Quotients and remainders of numbers that 32 bits hold are of 32 bits, scalars' too: a division takes twice as long, and
// more, in 64.
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Sums.h"
#include "dialects/Tile/Transforms/WideForms.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <limits>

namespace weft::tile {
#define GEN_PASS_DEF_TILENARROWINDICES
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft;
using namespace weft::tile;

namespace {
struct NarrowIndices : weft::tile::impl::TileNarrowIndicesBase<NarrowIndices> {
  void runOnOperation() override;
  /// Narrows comparisons and pointers; whether there were any to look at.
  bool narrowWide();
};
} // namespace

/// A bound as 32 bits hold it: of what lies beyond every element, a number that does too. Powers of two, which leave the
/// bound's own divisors.
static Value clamped(OpBuilder &b, Location loc, Value bound) {
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  Value inside = arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, bound, number(beyondIndices)),
                                        number(-beyondIndices));
  return arith::TruncIOp::create(b, loc, b.getI32Type(), inside);
}

/// The numbers of which a scalar is the smallest, or itself.
static void collectSmallest(Value value, SmallVectorImpl<Value> &found) {
  constexpr size_t few = 4;
  if (auto smaller = value.getDefiningOp<arith::MinSIOp>(); smaller && found.size() < few) {
    collectSmallest(smaller.getLhs(), found);
    collectSmallest(smaller.getRhs(), found);
    return;
  }
  found.push_back(value);
}

/// How far two numbers are apart, where that is a number.
static std::optional<int64_t> distance(Value x, Value y) {
  Sum apart(64);
  apart.add(x, APInt(64, 1));
  apart.add(y, -APInt(64, 1));
  return apart.isNumber() ? std::optional(apart.number.getSExtValue()) : std::nullopt;
}

namespace {
/// What a bound is beyond a uniform part: the smallest of a number and of a scalar.
struct Distance {
  std::optional<int64_t> number;
  Value rest; ///< i64; null where the number says all
};
} // namespace

/// x less y, which both are uniform in their forms; none where it might wrap.
static std::optional<Distance> difference(OpBuilder &b, Location loc, const WideForm &x, const WideForm &y,
                                          const WideForms &forms) {
  if (!y.ofUniform)
    return std::nullopt;
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  Distance apart;
  SmallVector<Value> smallest;
  if (x.uniform)
    collectSmallest(x.uniform, smallest);
  else
    smallest.push_back(number(0));
  Value left;
  bool isBounded = true;
  for (Value each : smallest) {
    bool isKnown = smallest.size() == 1 ? x.ofUniform.has_value() : forms.boundsOf(each, Bounds::most).has_value();
    std::optional<int64_t> known = isKnown && y.uniform ? distance(each, y.uniform) : std::nullopt;
    if (known) {
      apart.number = std::min(apart.number.value_or(*known), *known);
      continue;
    }
    left = left ? Value(arith::MinSIOp::create(b, loc, left, each)) : each;
    isBounded &= isKnown;
  }
  if (!left)
    return apart;
  // A bound beyond what the sums can reach says as much as one just beyond it.
  if (!isBounded)
    left = arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, left, number(2 * Bounds::most)),
                                  number(-2 * Bounds::most));
  apart.rest = y.uniform ? Value(arith::SubIOp::create(b, loc, left, y.uniform)) : left;
  return apart;
}

/// Whether 32 bits hold a varying part, and its difference from another of its kind with room to spare.
static bool isSmall(const WideForm &form) {
  constexpr int64_t most = int64_t(1) << 29;
  return form.isNarrow() && within(most, form.ofVarying.lowest, form.ofVarying.highest);
}

/// A comparison of 64-bit numbers in 32 bits; null where it cannot be.
static Value narrowed(arith::CmpIOp op, WideForms &forms) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool isSigned = llvm::is_contained(
      {Predicate::eq, Predicate::ne, Predicate::slt, Predicate::sle, Predicate::sgt, Predicate::sge}, predicate);
  if (!isSigned)
    return {};
  WideForm x = forms.of(op.getLhs()), y = forms.of(op.getRhs());
  if ((!x.varying && !y.varying) || !isSmall(x) || !isSmall(y))
    return {};
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLhs().getType()).clone(b.getI32Type());
  auto constant = [&](int64_t number) -> Value {
    APInt value(32, static_cast<uint32_t>(std::clamp(number, -beyondIndices, beyondIndices)));
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(cast<ShapedType>(type), value));
  };
  Value left = x.varying ? x.varying : Value();
  if (x.uniform == y.uniform)
    return arith::CmpIOp::create(b, loc, predicate, left ? left : constant(0), y.varying ? y.varying : constant(0));
  std::optional<Distance> apart = left ? difference(b, loc, y, x, forms) : difference(b, loc, x, y, forms);
  bool isBelow = left && !y.varying && (predicate == Predicate::slt || predicate == Predicate::sle);
  // What is less than the smallest of two is less than both.
  if (!apart || (apart->number && apart->rest && !isBelow))
    return {};
  auto compareWith = [&](Value bound) -> Value {
    if (!left)
      return arith::CmpIOp::create(b, loc, predicate, bound, y.varying);
    Value right = y.varying ? Value(arith::AddIOp::create(b, loc, y.varying, bound)) : bound;
    return arith::CmpIOp::create(b, loc, predicate, left, right);
  };
  Value all;
  if (apart->number)
    all = compareWith(constant(*apart->number));
  if (apart->rest) {
    Value rest = compareWith(SplatOp::create(b, loc, type, clamped(b, loc, apart->rest)));
    all = all ? Value(arith::AndIOp::create(b, loc, all, rest)) : rest;
  }
  return all;
}

/// The pointers `value`, made where `op` is, with the one that all of them are counted from moved; null where there is none
/// that nothing else is counted from, or where it is counted from outside of a loop that `op` is in.
static Value movedFrom(Value value, Value distance, Operation *op, OpBuilder &b) {
  Operation *made = value.getDefiningOp();
  if (auto splat = dyn_cast_or_null<SplatOp>(made))
    return SplatOp::create(b, op->getLoc(), splat.getType(),
                           AddPtrOp::create(b, op->getLoc(), splat.getSource(), distance).getResult());
  if (!isa_and_nonnull<AddPtrOp, BroadcastOp, ExpandDimsOp>(made) || !made->hasOneUse() ||
      made->getBlock() != op->getBlock())
    return {};
  Value moved = movedFrom(made->getOperand(0), distance, op, b);
  if (!moved)
    return {};
  Operation *copy = b.clone(*made);
  copy->setOperand(0, moved);
  return copy->getResult(0);
}

/// Pointers at 64-bit distances, with what is uniform of them added once; null where nothing is gained.
static Value narrowed(AddPtrOp op, WideForms &forms) {
  WideForm form = forms.of(op.getOffset());
  OpBuilder b(op);
  Value pointers = op.getPtr();
  if (form.uniform)
    pointers = movedFrom(pointers, form.uniform, op, b);
  else if (form.varying == op.getOffset())
    return {};
  if (!pointers || !form.varying)
    return pointers;
  auto moved = AddPtrOp::create(b, op.getLoc(), pointers, form.varying);
  moved->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return moved;
}

/// What a signed remainder is by a divisor of this range: nearer to 0 than it, of which ranges as such say nothing where
/// it may be 0.
static ConstantIntRanges remainderBy(const ConstantIntRanges &divisor) {
  APInt most = llvm::APIntOps::umax(divisor.smin().abs(), divisor.smax().abs()); // as no sign: -2^63 has none
  most -= most.isZero() ? 0 : 1;
  return ConstantIntRanges::fromSigned(-most, most);
}

/// Between which bounds a value lies by what computes it, as far as a few ops say.
static ConstantIntRanges rangeOf(Value value, unsigned depth = 8) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return ConstantIntRanges::constant(constant);
  ConstantIntRanges range = ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(value.getType()));
  auto infers = value.getDefiningOp<InferIntRangeInterface>();
  if (!infers || depth == 0)
    return range;
  SmallVector<ConstantIntRanges> ranges;
  for (Value operand : infers->getOperands()) {
    if (!getElementTypeOrSelf(operand.getType()).isIntOrIndex())
      return range;
    ranges.push_back(rangeOf(operand, depth - 1));
  }
  infers.inferResultRanges(ranges, [&](Value result, const ConstantIntRanges &inferred) {
    if (result == value)
      range = inferred;
  });
  if (value.getDefiningOp<arith::RemSIOp>())
    range = range.intersection(remainderBy(ranges[1]));
  return range;
}

/// A mask of ones or zeros, where ranges decide a comparison for every element; else null.
static Value decided(arith::CmpIOp op) {
  APInt constant;
  if (!matchPattern(op.getRhs(), m_ConstantInt(&constant)) && !matchPattern(op.getLhs(), m_ConstantInt(&constant)))
    return {};
  std::optional<APInt> truth = rangeOf(op.getResult()).getConstantValue();
  if (!truth)
    return {};
  OpBuilder b(op);
  return arith::ConstantOp::create(b, op.getLoc(), DenseElementsAttr::get(cast<ShapedType>(op.getType()), *truth));
}

/// A quotient or a remainder of 64 bits by one of 32, where ranges say that 32 hold both numbers, and the quotient; else
/// null. The most negative number by -1 is what does not fit.
template <typename Op> static Value narrowedDivision(Op op) {
  Type type = op.getType();
  if (!getElementTypeOrSelf(type).isInteger(64))
    return {};
  constexpr bool isSigned = llvm::is_one_of<Op, arith::DivSIOp, arith::RemSIOp>::value;
  ConstantIntRanges left = rangeOf(op.getLhs()), right = rangeOf(op.getRhs());
  auto fits = [](const ConstantIntRanges &range) {
    return isSigned ? range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32) : range.umax().isIntN(32);
  };
  if (!fits(left) || !fits(right) ||
      (isSigned && left.smin().getSExtValue() == std::numeric_limits<int32_t>::min() && right.smin().isNegative()))
    return {};
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type narrow = b.getI32Type();
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    narrow = tensor.clone(narrow);
  Value x = arith::TruncIOp::create(b, narrow, op.getLhs()), y = arith::TruncIOp::create(b, narrow, op.getRhs());
  Value result = Op::create(b, x, y);
  return isSigned ? Value(arith::ExtSIOp::create(b, type, result)) : Value(arith::ExtUIOp::create(b, type, result));
}

static bool isOfWideIndices(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isInteger(64);
}

/// Puts a value in the place of an op's result; whether there is one.
static bool replaceBy(Value value, Operation *op) {
  if (!value)
    return false;
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
  return true;
}

/// Whether a thread has one element at most of each tile that is read or written.
static bool hasOneElementEach(func::FuncOp function) {
  constexpr int64_t warpSize = 32;
  auto schedule = function->getAttrOfType<ScheduleAttr>(scheduleAttrName);
  int64_t largest = 0;
  function.walk([&](Operation *op) {
    if (isa<LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp>(op))
      if (auto tile = dyn_cast<RankedTensorType>(op->getOperand(0).getType()))
        largest = std::max(largest, tile.getNumElements());
  });
  return schedule && largest > 0 && largest <= warpSize * schedule.getWarps();
}

bool NarrowIndices::narrowWide() {
  SmallVector<arith::CmpIOp> comparisons;
  SmallVector<AddPtrOp> pointers;
  getOperation().walk([&](Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && isOfWideIndices(compare.getLhs()))
      comparisons.push_back(compare);
    else if (auto pointer = dyn_cast<AddPtrOp>(op); pointer && isOfWideIndices(pointer.getOffset()))
      pointers.push_back(pointer);
  });
  if ((comparisons.empty() && pointers.empty()) || hasOneElementEach(getOperation()))
    return false;
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  if (failed(solver.initializeAndRun(getOperation()))) {
    signalPassFailure();
    return false;
  }
  WideForms forms(solver, &getContext());
  for (arith::CmpIOp op : comparisons)
    replaceBy(narrowed(op, forms), op);
  for (AddPtrOp op : pointers)
    replaceBy(narrowed(op, forms), op);
  return true;
}

void NarrowIndices::runOnOperation() {
  bool changed = narrowWide();
  getOperation().walk([&](arith::CmpIOp op) {
    if (isa<RankedTensorType>(op.getType()))
      changed |= replaceBy(decided(op), op);
  });
  getOperation().walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
        [&](auto division) { changed |= replaceBy(narrowedDivision(division), division); });
  });
  if (!changed)
    return markAllAnalysesPreserved();
  // What was computed for a form that nothing took, masks that are all ones, and what a loop computes anew.
  OpPassManager simplify(func::FuncOp::getOperationName());
  simplify.addPass(createCanonicalizerPass());
  simplify.addPass(createCSEPass());
  simplify.addPass(createLoopInvariantCodeMotionPass());
  if (failed(runPipeline(simplify, getOperation())))
    signalPassFailure();
}
