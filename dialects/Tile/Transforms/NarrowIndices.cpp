// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-narrow-indices: what is the same for all elements of a tensor of 64-bit indices is computed once, as a scalar,
// and what differs in 32 bits.
//
//   %i = addi (splat %row), (extsi %r)                       %r: 0 .. 63
//   %a = addptr (splat %p), (muli %i, 128)      ─▶           %q = addptr %p, %row * 128     %a = addptr (splat %q), (muli %r, 128)
//   %c = cmpi slt, %i, (splat %n)               ─▶           %m = trunci (clamp (%n - %row))    %c = cmpi slt, %r, (splat %m)
//
// A 64-bit sum and a comparison are two instructions each, for each element; a scalar's are paid once. Sums and products of
// addresses are taken modulo 2^64, so that they may be taken apart; bounds are moved where ranges say that nothing wraps.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Sums.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

namespace weft::tile {
#define GEN_PASS_DEF_TILENARROWINDICES
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft;
using namespace weft::tile;

namespace {

/// Bounds that are known, ends included; none where an end leaves `most`.
struct Bounds {
  int64_t lowest, highest;

  /// Sums and differences of these do not leave 64 bits.
  static constexpr int64_t most = int64_t(1) << 61;
};
using MaybeBounds = std::optional<Bounds>;

/// What a tensor of i64 is: `uniform` for all elements, plus `varying`.
struct Form {
  Value uniform;             ///< an i64; null for 0
  MaybeBounds ofUniform;     ///< {0, 0} for 0
  Value varying;             ///< a tensor of i32, or of i64 where 32 bits might not do; null for 0
  Bounds ofVarying = {0, 0}; ///< where it is of i32

  bool isNarrow() const { return !varying || elementTypeOf(varying.getType()).isInteger(32); }
};

MaybeBounds within(int64_t most, __int128 lowest, __int128 highest) {
  if (lowest < -most || highest > most)
    return std::nullopt;
  return Bounds{static_cast<int64_t>(lowest), static_cast<int64_t>(highest)};
}

MaybeBounds sum(int64_t most, const Bounds &a, const Bounds &b, int sign) {
  __int128 low = sign > 0 ? b.lowest : -static_cast<__int128>(b.highest);
  __int128 high = sign > 0 ? b.highest : -static_cast<__int128>(b.lowest);
  return within(most, a.lowest + low, a.highest + high);
}

MaybeBounds product(int64_t most, const Bounds &a, const Bounds &b) {
  auto times = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  auto [lowest, highest] = std::minmax({times(a.lowest, b.lowest), times(a.lowest, b.highest),
                                        times(a.highest, b.lowest), times(a.highest, b.highest)});
  return within(most, lowest, highest);
}

constexpr int64_t most32 = std::numeric_limits<int32_t>::max();

/// Finds the forms of tensors of i64. What a form needs is computed where its tensor is.
class Forms {
public:
  Forms(const DataFlowSolver &solver, MLIRContext *context) : solver(solver), b(context) {}

  Form of(Value value) {
    if (auto found = known.find(value); found != known.end())
      return found->second;
    std::optional<Form> form;
    // What is promised of an op's result does not hold of its parts.
    if (Operation *op = value.getDefiningOp(); op && op->getDiscardableAttrDictionary().empty()) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointAfter(op);
      form = compute(op);
    }
    return known[value] = form.value_or(Form{{}, Bounds{0, 0}, value});
  }

  /// Those of a value that the function had to begin with.
  MaybeBounds boundsOf(Value value, int64_t most) const;

private:
  std::optional<Form> compute(Operation *op);
  Form ofUniform(Value scalar) {
    APInt constant;
    if (matchPattern(scalar, m_ConstantInt(&constant)) && constant.isZero())
      return Form{{}, Bounds{0, 0}, {}};
    return Form{scalar, boundsOf(scalar, Bounds::most), {}};
  }
  std::optional<Form> sumOf(const Form &a, const Form &b, int sign, Location loc);
  std::optional<Form> productOf(const Form &a, const Form &b, RankedTensorType type, Location loc);
  std::optional<Form> movedBy(Operation *op);
  Value widened(Value tensor, Location loc) {
    if (!elementTypeOf(tensor.getType()).isInteger(32))
      return tensor;
    return arith::ExtSIOp::create(b, loc, cast<RankedTensorType>(tensor.getType()).clone(b.getI64Type()), tensor);
  }
  template <typename Op> Value combine(Value x, Value y, Location loc) {
    if (elementTypeOf(x.getType()) != elementTypeOf(y.getType())) {
      x = widened(x, loc);
      y = widened(y, loc);
    }
    return Op::create(b, loc, x, y);
  }

  const DataFlowSolver &solver;
  OpBuilder b;
  llvm::DenseMap<Value, Form> known;
};

} // namespace

MaybeBounds Forms::boundsOf(Value value, int64_t most) const {
  const auto *found = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!found || found->getValue().isUninitialized())
    return std::nullopt;
  const ConstantIntRanges &range = found->getValue().getValue();
  return within(most, range.smin().getSExtValue(), range.smax().getSExtValue());
}

std::optional<Form> Forms::sumOf(const Form &x, const Form &y, int sign, Location loc) {
  Form form = x;
  if (y.uniform) {
    Value zero = x.uniform ? x.uniform : Value(arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(0)));
    form.uniform = sign > 0 ? (x.uniform ? Value(arith::AddIOp::create(b, loc, zero, y.uniform)) : y.uniform)
                            : Value(arith::SubIOp::create(b, loc, zero, y.uniform));
    form.ofUniform = x.ofUniform && y.ofUniform ? sum(Bounds::most, *x.ofUniform, *y.ofUniform, sign) : std::nullopt;
  }
  if (!y.varying)
    return form;
  if (!x.varying && sign > 0) {
    form.varying = y.varying;
    form.ofVarying = y.ofVarying;
    return form;
  }
  MaybeBounds bounds;
  if (x.varying && x.isNarrow() && y.isNarrow())
    bounds = sum(most32, x.ofVarying, y.ofVarying, sign);
  if (!x.varying || (!bounds && x.isNarrow() && y.isNarrow()))
    return std::nullopt;
  form.varying = sign > 0 ? combine<arith::AddIOp>(x.varying, y.varying, loc)
                          : combine<arith::SubIOp>(x.varying, y.varying, loc);
  form.ofVarying = bounds.value_or(Bounds{0, 0});
  return form;
}

std::optional<Form> Forms::productOf(const Form &x, const Form &factor, RankedTensorType type, Location loc) {
  if (factor.varying)
    return std::nullopt;
  if (!factor.uniform)
    return Form{{}, Bounds{0, 0}, {}};
  Form form{{}, Bounds{0, 0}, {}};
  if (x.uniform) {
    form.uniform = arith::MulIOp::create(b, loc, x.uniform, factor.uniform);
    form.ofUniform =
        x.ofUniform && factor.ofUniform ? product(Bounds::most, *x.ofUniform, *factor.ofUniform) : std::nullopt;
  }
  if (!x.varying)
    return form;
  MaybeBounds bounds;
  APInt constant;
  if (x.isNarrow() && factor.ofUniform && matchPattern(factor.uniform, m_ConstantInt(&constant)))
    bounds = product(most32, x.ofVarying, *factor.ofUniform);
  if (bounds) {
    auto narrow = cast<RankedTensorType>(x.varying.getType());
    APInt number = constant.trunc(32);
    form.varying = arith::MulIOp::create(
        b, loc, x.varying, arith::ConstantOp::create(b, loc, DenseElementsAttr::get(cast<ShapedType>(narrow), number)));
    form.ofVarying = *bounds;
    return form;
  }
  form.varying = arith::MulIOp::create(b, loc, widened(x.varying, loc), SplatOp::create(b, loc, type, factor.uniform));
  return form;
}

/// Of an op that moves or repeats elements: the form of its operand, whose varying part is moved alike.
std::optional<Form> Forms::movedBy(Operation *op) {
  Form form = of(op->getOperand(0));
  if (!form.varying)
    return form;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Operation *moved = b.clone(*op);
  moved->setOperand(0, form.varying);
  moved->getResult(0).setType(type.clone(elementTypeOf(form.varying.getType())));
  form.varying = moved->getResult(0);
  return form;
}

std::optional<Form> Forms::compute(Operation *op) {
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return TypeSwitch<Operation *, std::optional<Form>>(op)
      .Case([&](SplatOp splat) { return ofUniform(splat.getSource()); })
      .Case([&](arith::ConstantOp constant) -> std::optional<Form> {
        auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
        if (!elements || !elements.isSplat())
          return std::nullopt;
        int64_t number = elements.getSplatValue<APInt>().getSExtValue();
        if (number == 0)
          return Form{{}, Bounds{0, 0}, {}};
        Value scalar = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(number));
        return Form{scalar, within(Bounds::most, number, number), {}};
      })
      .Case([&](arith::ExtSIOp extend) -> std::optional<Form> {
        MaybeBounds bounds = boundsOf(extend.getIn(), most32);
        if (!elementTypeOf(extend.getIn().getType()).isInteger(32))
          return std::nullopt;
        return Form{{}, Bounds{0, 0}, extend.getIn(), bounds.value_or(Bounds{-most32 - 1, most32})};
      })
      .Case([&](arith::AddIOp add) { return sumOf(of(add.getLhs()), of(add.getRhs()), 1, loc); })
      .Case([&](arith::SubIOp sub) { return sumOf(of(sub.getLhs()), of(sub.getRhs()), -1, loc); })
      .Case([&](arith::MulIOp mul) {
        Form x = of(mul.getLhs()), y = of(mul.getRhs());
        return y.varying ? productOf(y, x, type, loc) : productOf(x, y, type, loc);
      })
      .Case<ExpandDimsOp, BroadcastOp, PermuteOp>([&](auto) { return movedBy(op); })
      .Default([](Operation *) { return std::nullopt; });
}

namespace {
struct NarrowIndices : weft::tile::impl::TileNarrowIndicesBase<NarrowIndices> {
  void runOnOperation() override;
  /// Narrows comparisons and pointers; whether there were any to look at.
  bool narrowWide();
};
} // namespace

/// A bound as 32 bits hold it: of what lies beyond every element, a number that does too. Powers of two, which leave the
/// bound's own divisors.
constexpr int64_t beyond = int64_t(1) << 30;

static Value clamped(OpBuilder &b, Location loc, Value bound) {
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  Value inside =
      arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, bound, number(beyond)), number(-beyond));
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
static std::optional<Distance> difference(OpBuilder &b, Location loc, const Form &x, const Form &y, const Forms &forms) {
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
static bool isSmall(const Form &form) {
  constexpr int64_t most = int64_t(1) << 29;
  return form.isNarrow() && within(most, form.ofVarying.lowest, form.ofVarying.highest);
}

/// A comparison of 64-bit numbers in 32 bits; null where it cannot be.
static Value narrowed(arith::CmpIOp op, Forms &forms) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool isSigned = llvm::is_contained(
      {Predicate::eq, Predicate::ne, Predicate::slt, Predicate::sle, Predicate::sgt, Predicate::sge}, predicate);
  if (!isSigned)
    return {};
  Form x = forms.of(op.getLhs()), y = forms.of(op.getRhs());
  if ((!x.varying && !y.varying) || !isSmall(x) || !isSmall(y))
    return {};
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLhs().getType()).clone(b.getI32Type());
  auto constant = [&](int64_t number) -> Value {
    APInt value(32, static_cast<uint32_t>(std::clamp(number, -beyond, beyond)));
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
static Value narrowed(AddPtrOp op, Forms &forms) {
  Form form = forms.of(op.getOffset());
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

bool NarrowIndices::narrowWide() {
  SmallVector<arith::CmpIOp> comparisons;
  SmallVector<AddPtrOp> pointers;
  getOperation().walk([&](Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && isOfWideIndices(compare.getLhs()))
      comparisons.push_back(compare);
    else if (auto pointer = dyn_cast<AddPtrOp>(op); pointer && isOfWideIndices(pointer.getOffset()))
      pointers.push_back(pointer);
  });
  if (comparisons.empty() && pointers.empty())
    return false;
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  if (failed(solver.initializeAndRun(getOperation()))) {
    signalPassFailure();
    return false;
  }
  Forms forms(solver, &getContext());
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
