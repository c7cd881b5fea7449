// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-narrow-extrema: the larger, or smaller, of numbers that were widened is one of them, and is found before it is
// widened.
//
//   %a = extf %x : f16 to f32
//   %b = extf %y : f16 to f32                       %n = maxnumf %x, %y : f16         max.f16x2, of two elements
//   %m = maxnumf %a, %b                  ─▶         %m = extf %n : f16 to f32
//
// Every number of 16 bits has a float32 of its own, in the same order; zeros and NaN are told apart alike in both. Where a
// widened operand has other uses, nothing is saved: it is widened anyway, and the result would be too.
#include "dialects/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace weft::tile {
#define GEN_PASS_DEF_TILENARROWEXTREMA
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft;

/// A number of every element, as `narrow` has it; null where it does not.
static Value constantIn(Value wide, Type narrow, PatternRewriter &rewriter) {
  APFloat number(0.0f);
  if (!matchPattern(wide, m_ConstantFloat(&number)))
    return {};
  auto element = cast<FloatType>(getElementTypeOrSelf(narrow));
  bool loses = false;
  number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &loses);
  if (loses || number.isNaN())
    return {};
  TypedAttr value = FloatAttr::get(element, number);
  if (auto shaped = dyn_cast<ShapedType>(narrow))
    value = DenseElementsAttr::get(shaped, Attribute(value));
  return arith::ConstantOp::create(rewriter, wide.getLoc(), value);
}

/// What was widened to a value that nothing else uses.
static Value widenedOnce(Value wide) {
  auto extend = wide.getDefiningOp<arith::ExtFOp>();
  if (!extend || !wide.hasOneUse())
    return {};
  Type element = getElementTypeOrSelf(extend.getIn().getType());
  return element.isF16() || element.isBF16() ? extend.getIn() : Value();
}

namespace {
template <typename Extremum> struct Narrow : OpRewritePattern<Extremum> {
  using OpRewritePattern<Extremum>::OpRewritePattern;

  LogicalResult matchAndRewrite(Extremum op, PatternRewriter &rewriter) const override {
    if (!isa<RankedTensorType>(op.getType()))
      return rewriter.notifyMatchFailure(op, "a scalar, of which there is one");
    Value left = widenedOnce(op.getLhs()), right = widenedOnce(op.getRhs());
    if (!left && !right)
      return rewriter.notifyMatchFailure(op, "no operand was widened for it alone");
    if (!left)
      left = constantIn(op.getLhs(), right.getType(), rewriter);
    if (!right && left)
      right = constantIn(op.getRhs(), left.getType(), rewriter);
    if (!left || !right || left.getType() != right.getType())
      return rewriter.notifyMatchFailure(op, "the narrow type does not have both operands");
    auto narrow = Extremum::create(rewriter, op.getLoc(), left, right, op.getFastmath());
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), narrow.getResult());
    return success();
  }
};

/// Whether an op is the larger or the smaller of two blocks. Most kernels have none, and are not looked through for patterns.
bool isExtremum(Operation *op) {
  return isa<arith::MaxNumFOp, arith::MinNumFOp, arith::MaximumFOp, arith::MinimumFOp>(op) &&
         isa<RankedTensorType>(op->getResult(0).getType());
}

struct NarrowExtrema : weft::tile::impl::TileNarrowExtremaBase<NarrowExtrema> {
  void runOnOperation() override;
};
} // namespace

void NarrowExtrema::runOnOperation() {
  auto found = getOperation()->walk(
      [](Operation *op) { return isExtremum(op) ? WalkResult::interrupt() : WalkResult::advance(); });
  if (!found.wasInterrupted())
    return markAllAnalysesPreserved();
  RewritePatternSet patterns(&getContext());
  patterns
      .add<Narrow<arith::MaxNumFOp>, Narrow<arith::MinNumFOp>, Narrow<arith::MaximumFOp>, Narrow<arith::MinimumFOp>>(
          &getContext());
  if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
    signalPassFailure();
}
