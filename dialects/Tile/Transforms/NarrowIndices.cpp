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
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Analysis/DataFlow/Utils.h"
#include "mlir/Analysis/DataFlowFramework.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Iterators.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
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
  MaybeBounds boundsOf(Value value, int64_t most) const;
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
};
} // namespace

/// A bound as 32 bits hold it: of what lies beyond every element, a number that does too. Powers of two, which leave the
/// bound's own divisors.
static Value clamped(OpBuilder &b, Location loc, Value bound) {
  constexpr int64_t beyond = int64_t(1) << 30;
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  Value inside =
      arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, bound, number(beyond)), number(-beyond));
  return arith::TruncIOp::create(b, loc, b.getI32Type(), inside);
}

/// The difference of what is uniform in x and y; null where it might wrap.
static Value difference(OpBuilder &b, Location loc, const Form &x, const Form &y) {
  if (!y.ofUniform)
    return {};
  auto number = [&](int64_t value) { return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value)); };
  Value left = x.uniform ? x.uniform : Value(number(0));
  // A bound beyond what the sums can reach says as much as one just beyond it.
  if (x.uniform && !x.ofUniform)
    left = arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, left, number(2 * Bounds::most)),
                                  number(-2 * Bounds::most));
  return y.uniform ? Value(arith::SubIOp::create(b, loc, left, y.uniform)) : left;
}

/// A comparison of 64-bit numbers in 32 bits; whether it could be.
static bool narrow(arith::CmpIOp op, Forms &forms) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool isSigned = llvm::is_contained(
      {Predicate::eq, Predicate::ne, Predicate::slt, Predicate::sle, Predicate::sgt, Predicate::sge}, predicate);
  if (!isSigned)
    return false;
  Form x = forms.of(op.getLhs()), y = forms.of(op.getRhs());
  constexpr int64_t most = int64_t(1) << 29; // so that the difference of two is less than what a bound is clamped to
  auto isSmall = [&](const Form &form) {
    return form.isNarrow() && within(most, form.ofVarying.lowest, form.ofVarying.highest);
  };
  if ((!x.varying && !y.varying) || !isSmall(x) || !isSmall(y))
    return false;
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getLhs().getType()).clone(b.getI32Type());
  Value left = x.varying, right = y.varying;
  if (x.uniform != y.uniform) {
    Value bound = left ? difference(b, loc, y, x) : difference(b, loc, x, y);
    if (!bound)
      return false;
    Value all = SplatOp::create(b, loc, type, clamped(b, loc, bound));
    if (!left)
      left = all;
    else
      right = right ? Value(arith::AddIOp::create(b, loc, right, all)) : all;
  }
  auto orZero = [&](Value value) -> Value {
    return value ? value : arith::ConstantOp::create(b, loc, DenseElementsAttr::get(cast<ShapedType>(type), APInt(32, 0)));
  };
  op.replaceAllUsesWith(arith::CmpIOp::create(b, loc, predicate, orZero(left), orZero(right)).getResult());
  op.erase();
  return true;
}

/// Pointers at 64-bit distances from one: what is uniform moves that one.
static void narrow(AddPtrOp op, Forms &forms) {
  auto base = op.getPtr().getDefiningOp<SplatOp>();
  Form form = forms.of(op.getOffset());
  if (form.uniform ? !base : form.varying == op.getOffset())
    return;
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value pointers = op.getPtr();
  if (form.uniform)
    pointers =
        SplatOp::create(b, loc, pointers.getType(), AddPtrOp::create(b, loc, base.getSource(), form.uniform).getResult());
  if (form.varying) {
    auto moved = AddPtrOp::create(b, loc, pointers, form.varying);
    moved->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    pointers = moved;
  }
  op.replaceAllUsesWith(pointers);
  op.erase();
}

static bool isOfWideIndices(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isInteger(64);
}

void NarrowIndices::runOnOperation() {
  SmallVector<arith::CmpIOp> comparisons;
  SmallVector<AddPtrOp> pointers;
  getOperation().walk([&](Operation *op) {
    if (auto compare = dyn_cast<arith::CmpIOp>(op); compare && isOfWideIndices(compare.getLhs()))
      comparisons.push_back(compare);
    else if (auto pointer = dyn_cast<AddPtrOp>(op); pointer && isOfWideIndices(pointer.getOffset()))
      pointers.push_back(pointer);
  });
  if (comparisons.empty() && pointers.empty())
    return markAllAnalysesPreserved();
  DataFlowSolver solver;
  dataflow::loadBaselineAnalyses(solver);
  solver.load<dataflow::IntegerRangeAnalysis>();
  if (failed(solver.initializeAndRun(getOperation())))
    return signalPassFailure();
  Forms forms(solver, &getContext());
  for (arith::CmpIOp op : comparisons)
    narrow(op, forms);
  for (AddPtrOp op : pointers)
    narrow(op, forms);
  // What was computed for a form that nothing took, and the indices themselves.
  getOperation().walk<WalkOrder::PostOrder, ReverseIterator>([](Operation *op) {
    if (isOpTriviallyDead(op))
      op->erase();
  });
}
