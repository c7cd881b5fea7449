// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Folds and canonicalization of the ops that only move elements.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft::tile;

/// The splat constant that a shape op makes of a splat constant; null for any other source.
static OpFoldResult foldSplat(Attribute source, Type result) {
  auto splat = dyn_cast_or_null<SplatElementsAttr>(source);
  return splat ? OpFoldResult(splat.resizeSplat(cast<ShapedType>(result))) : OpFoldResult();
}

OpFoldResult MakeRangeOp::fold(FoldAdaptor) {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getNumElements() != 1)
    return {};
  return SplatElementsAttr::get(type, getStartAttr());
}

OpFoldResult SplatOp::fold(FoldAdaptor adaptor) {
  Attribute value = adaptor.getSource();
  if (!isa_and_nonnull<IntegerAttr, FloatAttr>(value))
    return {};
  return SplatElementsAttr::get(cast<ShapedType>(getResult().getType()), value);
}

OpFoldResult ExpandDimsOp::fold(FoldAdaptor adaptor) { return foldSplat(adaptor.getSource(), getResult().getType()); }

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<BroadcastOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return foldSplat(adaptor.getSource(), getResult().getType());
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  // Both keep the elements in row-major order, as a reshape of their source does.
  Operation *inner = getSource().getDefiningOp();
  if (isa_and_nonnull<ReshapeOp, ExpandDimsOp>(inner)) {
    getSourceMutable().assign(inner->getOperand(0));
    return getResult();
  }
  return foldSplat(adaptor.getSource(), getResult().getType());
}

OpFoldResult PermuteOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType() && llvm::is_sorted(getOrder()))
    return getSource();
  if (auto inner = getSource().getDefiningOp<PermuteOp>()) {
    SmallVector<int32_t> order;
    for (int32_t axis : getOrder())
      order.push_back(inner.getOrder()[axis]);
    getSourceMutable().assign(inner.getSource());
    setOrder(order);
    return getResult();
  }
  return foldSplat(adaptor.getSource(), getResult().getType());
}

OpFoldResult JoinOp::fold(FoldAdaptor) {
  auto split = getLhs().getDefiningOp<SplitOp>();
  if (!split || getLhs() != split.getLhs() || getRhs() != split.getRhs() ||
      split.getSource().getType() != getResult().getType())
    return {};
  return split.getSource();
}

LogicalResult SplitOp::fold(FoldAdaptor, SmallVectorImpl<OpFoldResult> &results) {
  auto join = getSource().getDefiningOp<JoinOp>();
  if (!join || join.getLhs().getType() != getLhs().getType() || join.getRhs().getType() != getRhs().getType())
    return failure();
  results.assign({join.getLhs(), join.getRhs()});
  return success();
}

namespace {
/// shape op(splat(x)) is splat(x) in the result's type.
template <typename ShapeOp> struct ShapeOfSplat : OpRewritePattern<ShapeOp> {
  using OpRewritePattern<ShapeOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ShapeOp op, PatternRewriter &rewriter) const override {
    auto splat = op.getSource().template getDefiningOp<SplatOp>();
    if (!splat)
      return rewriter.notifyMatchFailure(op, "the source is not a splat");
    rewriter.replaceOpWithNewOp<SplatOp>(op, op.getResult().getType(), splat.getSource());
    return success();
  }
};
} // namespace

void ExpandDimsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ExpandDimsOp>>(context);
}

void BroadcastOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<BroadcastOp>>(context);
}

void ReshapeOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<ReshapeOp>>(context);
}

void PermuteOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ShapeOfSplat<PermuteOp>>(context);
}
