// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products, reductions, scans, gathers and histograms of tensors in pieces.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/Transforms/Pieces.h"
#include "dialects/Tile/Transforms/SplitPatterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace weft::tile {

bool isElementwise(Region &combiner) {
  return llvm::all_of(combiner.front().without_terminator(), [](Operation &op) {
    return OpTrait::hasElementwiseMappableTraits(&op) || isa<arith::ConstantOp>(op);
  });
}

namespace {

using Values = llvm::SmallVector<Value>;

/// A scalar in every element of `shape`; itself where that has no axes.
Value spread(OpBuilder &b, Location loc, Value scalar, ArrayRef<int64_t> shape) {
  return shape.empty() ? scalar
                       : Value(SplatOp::create(b, loc, RankedTensorType::get(shape, scalar.getType()), scalar));
}

/// The combiner's region applied to what was accumulated and what is new, element by element.
Values combine(OpBuilder &b, Location loc, Region &combiner, ArrayRef<Value> accumulated, ArrayRef<Value> fresh) {
  ArrayRef<int64_t> shape = shapeOf(accumulated.front().getType());
  IRMapping known;
  Block &block = combiner.front();
  for (auto [argument, value] : llvm::zip_equal(block.getArguments(), llvm::concat<const Value>(accumulated, fresh)))
    known.map(argument, value);
  auto valueOf = [&](Value scalar) {
    if (!known.contains(scalar)) // made outside of the region
      known.map(scalar, spread(b, loc, scalar, shape));
    return known.lookup(scalar);
  };
  for (Operation &op : block.without_terminator()) {
    for (Value operand : op.getOperands())
      valueOf(operand);
    if (isa<arith::ConstantOp>(op)) {
      known.map(op.getResult(0), spread(b, loc, b.clone(op)->getResult(0), shape));
      continue;
    }
    Operation *made = op.clone(known);
    if (!shape.empty())
      for (OpResult result : made->getResults())
        result.setType(RankedTensorType::get(shape, result.getType()));
    b.insert(made);
  }
  Values results;
  for (Value result : block.getTerminator()->getOperands())
    results.push_back(valueOf(result));
  return results;
}

/// A copy of an op of pieces, with a region, if it has one, of its own.
template <typename OpTy> OpTy cloneWith(OpBuilder &b, OpTy op, ArrayRef<Value> operands, TypeRange results) {
  auto made = cast<OpTy>(op->clone());
  made->setOperands(operands);
  for (auto [result, type] : llvm::zip_equal(made->getResults(), results))
    result.setType(type);
  b.insert(made);
  return made;
}

Sizes without(ArrayRef<int64_t> sizes, unsigned axis) {
  Sizes rest(sizes);
  rest.erase(rest.begin() + axis);
  return rest;
}

// --- products ---

/// The least inner size that a matrix instruction takes of a type.
int64_t leastInner(Type element) { return element.getIntOrFloatBitWidth() == 8 ? 32 : 8; }

/// Zeros behind the elements of a matrix, up to sizes of at least `rows` and `columns`.
Value filled(OpBuilder &b, Location loc, Value matrix, int64_t rows, int64_t columns) {
  for (unsigned axis : {0u, 1u})
    while (shapeOf(matrix.getType())[axis] < (axis == 0 ? rows : columns))
      matrix = concatenate(b, loc, matrix, zerosOf(b, loc, cast<RankedTensorType>(matrix.getType())), axis);
  return matrix;
}

/// The first elements of a matrix.
Value corner(OpBuilder &b, Location loc, Value matrix, ArrayRef<int64_t> shape) {
  for (unsigned axis : {0u, 1u})
    while (shapeOf(matrix.getType())[axis] > shape[axis])
      matrix = halfOf(b, loc, matrix, axis, /*second=*/false);
  return matrix;
}

struct SplitDot : OpConversionPattern<DotOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(DotOp op, OneToNOpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = shapeOf(op.getType());
    PieceGrid a(shapeOf(op.getA().getType()), adaptor.getA()), b(shapeOf(op.getB().getType()), adaptor.getB());
    int64_t inner = leastInner(elementTypeOf(op.getA().getType()));
    Values pieces;
    for (auto [place, acc] : llvm::zip_equal(placesOf(shape), adaptor.getAcc())) {
      Value sum = filled(rewriter, loc, acc, 16, 8);
      for (int64_t k = 0; k < a.count(1); ++k) {
        Value left = filled(rewriter, loc, a.at({place[0], k}), 16, inner);
        Value right = filled(rewriter, loc, b.at({k, place[1]}), inner, 8);
        sum = cloneWith(rewriter, op, {left, right, sum}, sum.getType());
      }
      pieces.push_back(corner(rewriter, loc, sum, shapeOf(acc.getType())));
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

// --- reductions and scans ---

/// One piece of each source.
Values piecesAt(ArrayRef<PieceGrid> sources, ArrayRef<int64_t> place) {
  Values values;
  for (const PieceGrid &source : sources)
    values.push_back(source.at(place));
  return values;
}

llvm::SmallVector<PieceGrid> gridsOf(ArrayRef<int64_t> shape, ArrayRef<ValueRange> sources) {
  llvm::SmallVector<PieceGrid> grids;
  for (ValueRange source : sources)
    grids.emplace_back(shape, source);
  return grids;
}

/// A piece of a reduction's, or all of it, by a copy of the op along `axis`.
Values reduced(OpBuilder &b, ReduceOp op, ArrayRef<Value> sources, unsigned axis) {
  Sizes rest = without(shapeOf(sources.front().getType()), axis);
  llvm::SmallVector<Type> types;
  for (Value source : sources) {
    Type element = elementTypeOf(source.getType());
    types.push_back(rest.empty() ? element : Type(RankedTensorType::get(rest, element)));
  }
  ReduceOp made = cloneWith(b, op, sources, types);
  made.setAxis(axis);
  return llvm::to_vector_of<Value>(made.getResults());
}

/// Each two values along a last axis of 2.
Values joined(OpBuilder &b, Location loc, ArrayRef<Value> first, ArrayRef<Value> second) {
  Values pairs;
  for (auto [a, c] : llvm::zip_equal(first, second)) {
    Sizes shape(shapeOf(a.getType()));
    shape.push_back(2);
    pairs.push_back(JoinOp::create(b, loc, typeOfPiece(a.getType(), shape), a, c));
  }
  return pairs;
}

/// Two results of a reduction as one: by its region, or, where that is not element-wise, by a reduction of both.
Values combined(OpBuilder &b, ReduceOp op, ArrayRef<Value> first, ArrayRef<Value> second) {
  if (shapeOf(first.front().getType()).empty() || isElementwise(op.getCombiner()))
    return combine(b, op.getLoc(), op.getCombiner(), first, second);
  Values pairs = joined(b, op.getLoc(), first, second);
  return reduced(b, op, pairs, shapeOf(pairs.front().getType()).size() - 1);
}

struct SplitReduce : OpConversionPattern<ReduceOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> shape = shapeOf(op.getSources().front().getType());
    llvm::SmallVector<PieceGrid> grids = gridsOf(shape, adaptor.getSources());
    unsigned axis = op.getAxis();
    llvm::SmallVector<Values> results(op.getNumResults());
    for (Sizes place : placesOf(without(shape, axis))) {
      place.insert(place.begin() + axis, 0);
      Values whole = reduced(rewriter, op, piecesAt(grids, place), axis);
      for (place[axis] = 1; place[axis] < grids.front().count(axis); ++place[axis])
        whole = combined(rewriter, op, whole, reduced(rewriter, op, piecesAt(grids, place), axis));
      for (auto [pieces, value] : llvm::zip_equal(results, whole))
        pieces.push_back(value);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// The last (or, in reverse, the first) elements of `value` along an axis, in every element of a tensor of `shape`.
Value carried(OpBuilder &b, Location loc, Value value, unsigned axis, bool reverse, ArrayRef<int64_t> shape) {
  Sizes one(shapeOf(value.getType()));
  auto last = static_cast<int32_t>(reverse ? 0 : one[axis] - 1);
  one[axis] = 1;
  auto indices = DenseElementsAttr::get(RankedTensorType::get(one, b.getI32Type()), last);
  Value picked = GatherOp::create(b, loc, typeOfPiece(value.getType(), one), value,
                                  arith::ConstantOp::create(b, loc, indices), axis);
  return BroadcastOp::create(b, loc, typeOfPiece(value.getType(), shape), picked);
}

/// What a scan's function makes of two values, the first of which comes before: by its region, or, where that is not
/// element-wise, by scans of both.
Values inOrder(OpBuilder &b, ScanOp op, ArrayRef<Value> first, ArrayRef<Value> second) {
  if (isElementwise(op.getCombiner()))
    return combine(b, op.getLoc(), op.getCombiner(), first, second);
  Values pairs = joined(b, op.getLoc(), first, second);
  ScanOp made = cloneWith(b, op, pairs, ValueRange(pairs).getTypes());
  made.setAxis(shapeOf(pairs.front().getType()).size() - 1);
  made.setReverse(false);
  Values results;
  for (auto [scanned, like] : llvm::zip_equal(made.getResults(), first))
    results.push_back(SplitOp::create(b, op.getLoc(), like.getType(), like.getType(), scanned).getRhs());
  return results;
}

struct SplitScan : OpConversionPattern<ScanOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(ScanOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    ArrayRef<int64_t> shape = shapeOf(op.getSources().front().getType());
    llvm::SmallVector<PieceGrid> grids = gridsOf(shape, adaptor.getSources());
    unsigned axis = op.getAxis();
    int64_t count = grids.front().count(axis);
    llvm::SmallVector<Sizes> places = placesOf(shape);
    llvm::SmallVector<Values> results(op.getNumResults(), Values(places.size()));
    for (size_t i = 0; i < places.size(); ++i) {
      // Pieces along the axis are taken one after the other, in reverse from the last to the first.
      size_t number = op.getReverse() ? places.size() - 1 - i : i;
      Sizes place = places[number];
      Values sources = piecesAt(grids, place);
      Values scanned =
          llvm::to_vector_of<Value>(cloneWith(rewriter, op, sources, ValueRange(sources).getTypes()).getResults());
      if (place[axis] != (op.getReverse() ? count - 1 : 0)) {
        place[axis] += op.getReverse() ? 1 : -1;
        size_t before = llvm::find(places, place) - places.begin();
        Values carry;
        for (Values &pieces : results)
          carry.push_back(carried(rewriter, op.getLoc(), pieces[before], axis, op.getReverse(),
                                  shapeOf(sources.front().getType())));
        scanned = inOrder(rewriter, op, carry, scanned);
      }
      for (auto [pieces, value] : llvm::zip_equal(results, scanned))
        pieces[number] = value;
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

// --- elements found by their numbers ---

/// `value` minus a constant, element by element.
Value minus(OpBuilder &b, Location loc, Value value, int64_t constant) {
  if (constant == 0)
    return value;
  auto all = DenseElementsAttr::get(cast<ShapedType>(value.getType()), static_cast<int32_t>(constant));
  return arith::SubIOp::create(b, loc, value, arith::ConstantOp::create(b, loc, all));
}

/// `indices` where they lie between 0 and a power of two, anything there where they do not: of a piece that has not the
/// element nothing is read beyond its end.
Value inRange(OpBuilder &b, Location loc, Value indices, int64_t size) {
  auto mask = DenseElementsAttr::get(cast<ShapedType>(indices.getType()), static_cast<int32_t>(size - 1));
  return arith::AndIOp::create(b, loc, indices, arith::ConstantOp::create(b, loc, mask));
}

struct SplitGather : OpConversionPattern<GatherOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(GatherOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ArrayRef<int64_t> from = shapeOf(op.getSource().getType()), to = shapeOf(op.getType());
    PieceGrid sources(from, adaptor.getSource());
    unsigned axis = op.getAxis();
    Values pieces;
    for (auto [place, indices] : llvm::zip_equal(placesOf(to), adaptor.getIndices())) {
      Value found;
      for (auto [number, span] : llvm::enumerate(spansOf(from[axis]))) {
        place[axis] = number;
        Value within = minus(rewriter, loc, indices, span.start);
        Value picked = GatherOp::create(rewriter, loc, typeOfPiece(op.getType(), shapeOf(indices.getType())),
                                        sources.at(place), inRange(rewriter, loc, within, span.size), axis);
        if (!found) {
          found = picked;
          continue;
        }
        Value zero = zerosOf(rewriter, loc, cast<RankedTensorType>(within.getType()));
        Value here = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, within, zero);
        found = arith::SelectOp::create(rewriter, loc, here, picked, found);
      }
      pieces.push_back(found);
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

struct SplitHistogram : OpConversionPattern<HistogramOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult matchAndRewrite(HistogramOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Values pieces;
    for (Span span : spansOf(shapeOf(op.getType()).front())) {
      Value counts;
      for (auto [number, values] : llvm::enumerate(adaptor.getValues())) {
        Value mask = op.getMask() ? adaptor.getMask()[number] : Value();
        Value more = HistogramOp::create(rewriter, loc, typeOfPiece(op.getType(), {span.size}),
                                         minus(rewriter, loc, values, span.start), mask);
        counts = counts ? Value(arith::AddIOp::create(rewriter, loc, counts, more)) : more;
      }
      pieces.push_back(counts);
    }
    rewriter.replaceOpWithMultiple(op, {pieces});
    return success();
  }
};

} // namespace

void populateSplitCombiningOps(const TypeConverter &converter, RewritePatternSet &patterns) {
  patterns.add<SplitDot, SplitReduce, SplitScan, SplitGather, SplitHistogram>(converter, patterns.getContext());
}

} // namespace weft::tile
