// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/Transforms/Pieces.h"
#include "dialects/Tile/Transforms/SplitPatterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft::tile {
namespace {

using Values = llvm::SmallVector<Value>;

/// The shape of an op's only result.
ArrayRef<int64_t> resultShape(Operation *op) { return shapeOf(op->getResult(0).getType()); }

/// Elements of a constant that a box has, in its row-major order.
DenseElementsAttr elementsOf(DenseElementsAttr whole, const Box &box) {
  RankedTensorType type = typeOfPiece(whole.getType(), box.shape);
  if (whole.isSplat())
    return whole.resizeSplat(type);
  auto all = llvm::to_vector(whole.getValues<Attribute>());
  llvm::SmallVector<Attribute> found;
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    int64_t rest = i, index = 0, stride = 1;
    for (size_t axis = box.shape.size(); axis-- > 0; rest /= box.shape[axis]) {
      index += (box.start[axis] + rest % box.shape[axis]) * stride;
      stride *= whole.getType().getDimSize(axis);
    }
    found.push_back(all[index]);
  }
  return DenseElementsAttr::get(type, found);
}

struct SplitConstant : OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto whole = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!whole)
      return rewriter.notifyMatchFailure(op, "the constant is no dense tensor");
    Values pieces;
    for (const Box &box : boxesOf(resultShape(op)))
      pieces.push_back(arith::ConstantOp::create(rewriter, op.getLoc(), cast<TypedAttr>(elementsOf(whole, box))));
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitMakeRange : OpConversionPattern<MakeRangeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(MakeRangeOp op, OneToNOpAdaptor, ConversionPatternRewriter &rewriter) const override {
    Values pieces;
    for (Span span : spansOf(resultShape(op).front())) {
      auto first = static_cast<int32_t>(op.getStart() + span.start);
      pieces.push_back(MakeRangeOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), {span.size}), first,
                                           first + static_cast<int32_t>(span.size)));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitSplat : OpConversionPattern<SplatOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(SplatOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Values pieces;
    for (const Box &box : boxesOf(resultShape(op)))
      pieces.push_back(
          SplatOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), box.shape), adaptor.getSource().front()));
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitExpandDims : OpConversionPattern<ExpandDimsOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ExpandDimsOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Values pieces; // the new axis has one piece, so that the order of all stays
    for (auto [box, source] : llvm::zip_equal(boxesOf(resultShape(op)), adaptor.getSource()))
      pieces.push_back(
          ExpandDimsOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), box.shape), source, op.getAxis()));
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitBroadcast : OpConversionPattern<BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(BroadcastOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> from = shapeOf(op.getSource().getType()), to = resultShape(op);
    PieceGrid sources(from, adaptor.getSource());
    Values pieces;
    for (auto [place, box] : llvm::zip_equal(placesOf(to), boxesOf(to))) {
      Sizes source = place;
      for (size_t axis = 0; axis < from.size(); ++axis)
        source[axis] = from[axis] == 1 ? 0 : place[axis];
      pieces.push_back(
          BroadcastOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), box.shape), sources.at(source)));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitPermute : OpConversionPattern<PermuteOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(PermuteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> to = resultShape(op);
    PieceGrid sources(shapeOf(op.getSource().getType()), adaptor.getSource());
    Values pieces;
    for (auto [place, box] : llvm::zip_equal(placesOf(to), boxesOf(to))) {
      Sizes source(place.size());
      for (auto [axis, number] : llvm::zip_equal(op.getOrder(), place))
        source[axis] = number;
      pieces.push_back(PermuteOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), box.shape),
                                         sources.at(source), op.getOrderAttr()));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitReshape : OpConversionPattern<ReshapeOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReshapeOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(op, {reshapePieces(rewriter, op.getLoc(), adaptor.getSource(),
                                                      shapeOf(op.getSource().getType()), resultShape(op))});
    return success();
  }
};

struct SplitJoin : OpConversionPattern<JoinOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(JoinOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Values pieces;
    for (auto [box, left, right] : llvm::zip_equal(boxesOf(resultShape(op)), adaptor.getLhs(), adaptor.getRhs()))
      pieces.push_back(JoinOp::create(rewriter, op.getLoc(), typeOfPiece(op.getType(), box.shape), left, right));
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitSplit : OpConversionPattern<SplitOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(SplitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Values left, right;
    for (auto [box, source] : llvm::zip_equal(boxesOf(resultShape(op)), adaptor.getSource())) {
      Type half = typeOfPiece(op.getLhs().getType(), box.shape);
      auto split = SplitOp::create(rewriter, op.getLoc(), half, half, source);
      left.push_back(split.getLhs());
      right.push_back(split.getRhs());
    }
    rewriter.replaceOpWithMultiple(op, {left, right});
    return success();
  }
};

} // namespace

void populateSplitShapeOps(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<SplitConstant, SplitMakeRange, SplitSplat, SplitExpandDims, SplitBroadcast, SplitPermute, SplitReshape,
               SplitJoin, SplitSplit>(converter, patterns.getContext());
}

} // namespace weft::tile
