// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Tile/Transforms/WideForms.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>

using namespace mlir;

namespace weft::tile {

MaybeBounds within(int64_t most, __int128 lowest, __int128 highest) {
  if (lowest < -most || highest > most)
    return std::nullopt;
  return Bounds{static_cast<int64_t>(lowest), static_cast<int64_t>(highest)};
}

static MaybeBounds sum(int64_t most, const Bounds &a, const Bounds &b, int sign) {
  __int128 low = sign > 0 ? b.lowest : -static_cast<__int128>(b.highest);
  __int128 high = sign > 0 ? b.highest : -static_cast<__int128>(b.lowest);
  return within(most, a.lowest + low, a.highest + high);
}

static MaybeBounds product(int64_t most, const Bounds &a, const Bounds &b) {
  auto times = [](int64_t x, int64_t y) { return static_cast<__int128>(x) * y; };
  auto [lowest, highest] = std::minmax(
      {times(a.lowest, b.lowest), times(a.lowest, b.highest), times(a.highest, b.lowest), times(a.highest, b.highest)});
  return within(most, lowest, highest);
}

static constexpr int64_t most32 = std::numeric_limits<int32_t>::max();

WideForm WideForms::of(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  std::optional<WideForm> form;
  // What is promised of an op's result does not hold of its parts.
  if (Operation *op = value.getDefiningOp(); op && op->getDiscardableAttrDictionary().empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfter(op);
    form = compute(op);
  }
  return known[value] = form.value_or(WideForm{{}, Bounds{0, 0}, value});
}

WideForm WideForms::ofUniform(Value scalar) const {
  APInt constant;
  if (matchPattern(scalar, m_ConstantInt(&constant)) && constant.isZero())
    return WideForm{{}, Bounds{0, 0}, {}};
  return WideForm{scalar, boundsOf(scalar, Bounds::most), {}};
}

Value WideForms::widened(Value tensor, Location loc) {
  if (!elementTypeOf(tensor.getType()).isInteger(32))
    return tensor;
  return arith::ExtSIOp::create(b, loc, cast<RankedTensorType>(tensor.getType()).clone(b.getI64Type()), tensor);
}

template <typename Op> Value WideForms::combine(Value x, Value y, Location loc) {
  if (elementTypeOf(x.getType()) != elementTypeOf(y.getType())) {
    x = widened(x, loc);
    y = widened(y, loc);
  }
  return Op::create(b, loc, x, y);
}

MaybeBounds WideForms::boundsOf(Value value, int64_t most) const {
  const auto *found = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!found || found->getValue().isUninitialized())
    return std::nullopt;
  const ConstantIntRanges &range = found->getValue().getValue();
  return within(most, range.smin().getSExtValue(), range.smax().getSExtValue());
}

std::optional<WideForm> WideForms::sumOf(const WideForm &x, const WideForm &y, int sign, Location loc) {
  WideForm form = x;
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
  form.varying =
      sign > 0 ? combine<arith::AddIOp>(x.varying, y.varying, loc) : combine<arith::SubIOp>(x.varying, y.varying, loc);
  form.ofVarying = bounds.value_or(Bounds{0, 0});
  return form;
}

std::optional<WideForm> WideForms::productOf(const WideForm &x, const WideForm &factor, RankedTensorType type,
                                             Location loc) {
  if (factor.varying)
    return std::nullopt;
  if (!factor.uniform)
    return WideForm{{}, Bounds{0, 0}, {}};
  WideForm form{{}, Bounds{0, 0}, {}};
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
std::optional<WideForm> WideForms::movedBy(Operation *op) {
  WideForm form = of(op->getOperand(0));
  if (!form.varying)
    return form;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Operation *moved = b.clone(*op);
  moved->setOperand(0, form.varying);
  moved->getResult(0).setType(type.clone(elementTypeOf(form.varying.getType())));
  form.varying = moved->getResult(0);
  return form;
}

std::optional<WideForm> WideForms::compute(Operation *op) {
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return TypeSwitch<Operation *, std::optional<WideForm>>(op)
      .Case([&](SplatOp splat) { return ofUniform(splat.getSource()); })
      .Case([&](arith::ConstantOp constant) -> std::optional<WideForm> {
        auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
        if (!elements || !elements.isSplat())
          return std::nullopt;
        int64_t number = elements.getSplatValue<APInt>().getSExtValue();
        if (number == 0)
          return WideForm{{}, Bounds{0, 0}, {}};
        Value scalar = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(number));
        return WideForm{scalar, within(Bounds::most, number, number), {}};
      })
      .Case([&](arith::ExtSIOp extend) -> std::optional<WideForm> {
        MaybeBounds bounds = boundsOf(extend.getIn(), most32);
        if (!elementTypeOf(extend.getIn().getType()).isInteger(32))
          return std::nullopt;
        return WideForm{{}, Bounds{0, 0}, extend.getIn(), bounds.value_or(Bounds{-most32 - 1, most32})};
      })
      .Case([&](arith::AddIOp add) { return sumOf(of(add.getLhs()), of(add.getRhs()), 1, loc); })
      .Case([&](arith::SubIOp sub) { return sumOf(of(sub.getLhs()), of(sub.getRhs()), -1, loc); })
      .Case([&](arith::MulIOp mul) {
        WideForm x = of(mul.getLhs()), y = of(mul.getRhs());
        return y.varying ? productOf(y, x, type, loc) : productOf(x, y, type, loc);
      })
      .Case<ExpandDimsOp, BroadcastOp, PermuteOp>([&](auto) { return movedBy(op); })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace weft::tile
