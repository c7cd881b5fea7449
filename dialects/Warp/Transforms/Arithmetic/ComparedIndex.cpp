// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ComparedIndex.h.
#include "dialects/Warp/Transforms/Arithmetic/ComparedIndex.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace weft;
using namespace weft::warp;

/// The sum that an element is along the axis, less its index; none where it is anything else.
static std::optional<IndexSum> beginAlong(Value indices, unsigned axis, IndexForms &forms) {
  std::optional<IndexForm> form = forms.of(indices);
  if (!form || form->base)
    return std::nullopt;
  for (auto [i, step] : llvm::enumerate(form->steps))
    if (i == axis ? step.constant() != 1 : !step.isZero())
      return std::nullopt;
  return form->offset;
}

/// A bound that is one for all, or one for each row; null where it is neither.
Value warp::boundAlong(Value bound, unsigned axis, OpBuilder &b) {
  DenseElementsAttr constant;
  if (matchPattern(bound, m_Constant(&constant)) && constant.isSplat())
    return arith::ConstantOp::create(b, bound.getLoc(), constant.getSplatValue<IntegerAttr>());
  if (auto splat = bound.getDefiningOp<tile::SplatOp>())
    return splat.getSource();
  auto broadcast = bound.getDefiningOp<tile::BroadcastOp>();
  if (!broadcast)
    return {};
  SmallVector<int64_t> rows(tile::shapeOf(bound.getType()));
  rows[axis] = 1;
  return tile::shapeOf(broadcast.getSource().getType()) == ArrayRef(rows) ? broadcast.getSource() : Value();
}

namespace {
/// A sum of one running index, added or subtracted, and of what is one for each row.
struct RowSum {
  std::optional<IndexSum> begin; ///< of the index
  bool subtractsIndex = false;
  SmallVector<std::pair<Value, bool>, 2> others; ///< and whether they are subtracted
};
} // namespace

/// Adds a value, or subtracts it; whether it is such a sum.
static bool addTo(RowSum &sum, Value value, bool subtract, unsigned axis, IndexForms &forms, OpBuilder &b) {
  if (Value bound = boundAlong(value, axis, b)) {
    sum.others.push_back({bound, subtract});
    return true;
  }
  if (std::optional<IndexSum> begin = beginAlong(value, axis, forms)) {
    sum.subtractsIndex = subtract;
    return !std::exchange(sum.begin, std::move(begin));
  }
  if (auto add = value.getDefiningOp<arith::AddIOp>())
    return addTo(sum, add.getLhs(), subtract, axis, forms, b) && addTo(sum, add.getRhs(), subtract, axis, forms, b);
  if (auto sub = value.getDefiningOp<arith::SubIOp>())
    return addTo(sum, sub.getLhs(), subtract, axis, forms, b) && addTo(sum, sub.getRhs(), !subtract, axis, forms, b);
  return false;
}

std::optional<ComparedIndex> warp::comparedIndex(arith::CmpIOp op, unsigned axis, IndexForms &forms, OpBuilder &b) {
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  bool less = predicate == Predicate::slt || predicate == Predicate::sle;
  bool greater = predicate == Predicate::sgt || predicate == Predicate::sge;
  RowSum sum; // lhs - rhs
  if ((!less && !greater) || !tile::elementTypeOf(op.getLhs().getType()).isInteger(32) ||
      !addTo(sum, op.getLhs(), /*subtract=*/false, axis, forms, b) ||
      !addTo(sum, op.getRhs(), /*subtract=*/true, axis, forms, b) || !sum.begin)
    return std::nullopt;
  ComparedIndex comparison{std::move(*sum.begin), std::move(sum.others), sum.subtractsIndex ? greater : less,
                           predicate == Predicate::slt || predicate == Predicate::sgt};
  if (!sum.subtractsIndex)
    for (auto &[bound, subtract] : comparison.bounds)
      subtract = !subtract;
  return comparison;
}
