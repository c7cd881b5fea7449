// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers and folds of the warp ops. The constraints C1, C2, ... are those of WarpOps.td.
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Layout/AxisRuns.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft::warp;
using weft::tile::elementTypeOf;
using weft::tile::shapeOf;

#define GET_OP_CLASSES
#include "dialects/Warp/IR/WarpOps.cpp.inc"

/// Checks that a tensor and one tile in shared memory have one shape and element type.
static LogicalResult verifyTile(Operation *op, Type tensor, Type element, SharedType shared) {
  if (shared.getStages() != 1)
    return op->emitOpError() << "expected one tile, but got a ring of " << shared.getStages()
                             << "; take one of its tiles with 'warp.stage'";
  if (shapeOf(tensor) != shared.getShape())
    return op->emitOpError() << "expected a tile of shape [" << shapeOf(tensor) << "], but got [" << shared.getShape()
                             << "]";
  if (element != shared.getElementType())
    return op->emitOpError() << "expected a tile of " << element << ", but got " << shared.getElementType();
  return success();
}

LogicalResult ConvertLayoutOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()), result = cast<RankedTensorType>(getResult().getType());
  if (source.getShape() != result.getShape() || source.getElementType() != result.getElementType())
    return emitOpError() << "expected a result that differs from " << source << " in its layout only, but got "
                         << result;
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor adaptor) {
  if (getSource().getType() == getResult().getType())
    return getSource();
  if (auto inner = getSource().getDefiningOp<ConvertLayoutOp>()) {
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getSource()))
    return splat.resizeSplat(cast<ShapedType>(getResult().getType()));
  return {};
}

/// Whether the layouts of a product's operands a and b and of its sums are fragments', rows, columns or K in another
/// order in all that have them: K by up to `mostNeighbours` in a lane.
static bool areInOneOrder(const std::array<LinearLayout, 3> &fragments, const std::array<LinearLayout, 3> &layouts,
                          unsigned mostNeighbours) {
  constexpr unsigned ofFragments = 2;
  for (unsigned neighbours = ofFragments; neighbours <= mostNeighbours; neighbours *= 2)
    for (bool ofRows : {false, true})
      for (bool ofColumns : {false, true}) {
        auto [left, right, sums] = fragments;
        if (neighbours > ofFragments) {
          left = byWordsAlongK(left, 1, neighbours);
          right = byWordsAlongK(right, 0, neighbours);
        }
        if (ofRows) {
          left = interleaved(left, 0);
          sums = interleaved(sums, 0);
        }
        if (ofColumns) {
          right = interleaved(right, 1);
          sums = interleaved(sums, 1);
        }
        if (std::array{left, right, sums} == layouts)
          return true;
      }
  return false;
}

LogicalResult MmaOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto acc = cast<RankedTensorType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2 || a.getDimSize(1) != b.getDimSize(0) ||
      acc.getDimSize(0) != a.getDimSize(0) || b.getDimSize(1) % acc.getDimSize(1) != 0)
    return emitOpError() << "expected matrices [M, K], [K, N] and [M, N], but got " << a << ", " << b << " and " << acc;
  if (getShape().size() != 3)
    return emitOpError() << "expected 'shape' to be [m, n, k], but got [" << getShape() << "]";
  const MmaFragments *fragments = fragmentsOf(getShape());
  if (!fragments)
    return emitOpError() << "expected 'shape' to be of instructions with known fragments, but got [" << getShape()
                         << "]";
  for (Type type : {Type(a), Type(b), Type(acc)})
    if (!layoutAttrOf(type))
      return emitOpError() << "expected operands with layouts, but got " << type;
  // The grid of warps is the one that makes the accumulator's layout; the operands' must follow from it.
  unsigned bits = a.getElementTypeBitWidth(), batch = b.getDimSize(1) / acc.getDimSize(1);
  unsigned count = layoutAttrOf(acc).getLayout().size(InDim::Warp);
  for (unsigned rows = 1; rows <= count; rows *= 2) {
    WarpGrid grid{rows, count / rows};
    LinearLayout sums = mmaAccLayout(acc.getShape(), grid, *fragments);
    LinearLayout left = mmaOperandLayout(MmaOperand::A, a.getShape(), grid, bits, *fragments);
    LinearLayout right = mmaOperandLayout(MmaOperand::B, b.getShape(), grid, bits, *fragments, batch);
    if (areInOneOrder({left, right, sums},
                      {layoutAttrOf(a).getLayout(), layoutAttrOf(b).getLayout(), layoutAttrOf(acc).getLayout()},
                      bits == 16 && getShape()[2] == 16 ? mostNeighboursAlongK(a.getDimSize(1)) : 2))
      return success();
  }
  return emitOpError() << "expected operands in the fragment layouts of one grid of warps, but got " << a << ", " << b
                       << " and " << acc;
}

Value weft::warp::tileViewed(Value shared) {
  while (auto permute = shared.getDefiningOp<PermuteSharedOp>())
    shared = permute.getSource();
  return shared;
}

Value weft::warp::allocationOf(Value shared) {
  shared = tileViewed(shared);
  auto stage = shared.getDefiningOp<StageOp>();
  return stage ? allocationOf(stage.getRing()) : shared;
}

LogicalResult BarrierOp::verify() {
  if (getOfCluster() && getWhere())
    return emitOpError(
        "expected a barrier 'ofCluster' to be one at which all arrive, but got one 'where' something holds");
  if (getProducerArrives() && (!getWithProducer() || getOfCluster() || getWhere()))
    return emitOpError("expected a barrier at which the producer arrives to be 'withProducer', and neither 'ofCluster' "
                       "nor one 'where' something holds");
  return success();
}

LogicalResult StageOp::verify() {
  auto ring = cast<SharedType>(getRing().getType());
  auto expected = SharedType::get(getContext(), 1, ring.getShape(), ring.getElementType(), ring.getLayout());
  if (getResult().getType() != expected)
    return emitOpError() << "expected a result of type " << expected << ", but got " << getResult().getType();
  if (getStep() <= 0)
    return emitOpError() << "expected a step of at least 1, but got " << getStep();
  return success();
}

LogicalResult PermuteSharedOp::verify() {
  auto source = cast<SharedType>(getSource().getType());
  SmallVector<int32_t> sorted(getOrder());
  llvm::sort(sorted);
  if (sorted.size() != source.getShape().size() || !llvm::equal(sorted, llvm::seq<int32_t>(0, sorted.size())))
    return emitOpError() << "expected 'order' to be a permutation of the " << source.getShape().size()
                         << " axes, but got [" << getOrder() << "]";
  LinearLayout layout = source.linear().permute(getOrder());
  auto expected = SharedType::get(getContext(), source.getStages(), layout.shape(), source.getElementType(),
                                  LayoutAttr::get(getContext(), layout));
  if (getResult().getType() != expected)
    return emitOpError() << "expected a result of type " << expected << ", but got " << getResult().getType();
  return success();
}

/// A margin is for what reads a tile shifted: its lines are apart.
static LogicalResult verifyNoMargin(Operation *op, SharedType shared) {
  if (shared.getMargin())
    return op->emitOpError() << "expected a tile without a margin, but got " << shared;
  return success();
}

LogicalResult LoadSharedOp::verify() {
  if (failed(verifyNoMargin(*this, getShared().getType())))
    return failure();
  return verifyTile(*this, getResult().getType(), elementTypeOf(getResult().getType()), getShared().getType());
}

LogicalResult LoadShiftedOp::verify() {
  if (failed(verifyTile(*this, getResult().getType(), elementTypeOf(getResult().getType()), getShared().getType())))
    return failure();
  ArrayRef<int64_t> shape = getShared().getType().getShape();
  int64_t axis = getAxisAttr().getInt(), offset = getOffsetAttr().getInt();
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()))
    return emitOpError() << "expected 'axis' between 0 and " << shape.size() - 1 << ", but got " << axis;
  if (std::abs(offset) >= shape[axis])
    return emitOpError() << "expected an 'offset' of a magnitude below " << shape[axis] << ", the size along axis "
                         << axis << ", but got " << offset;
  int64_t margin = getShared().getType().getMargin(), run = shape.size() - 2;
  if (margin && (axis != run || std::abs(offset) > margin))
    return emitOpError() << "expected axis " << run << " and an 'offset' of a magnitude of at most " << margin
                         << ", the margin, but got axis " << axis << " and " << offset;
  return success();
}

LogicalResult SpanSelectOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  const int64_t axis = getAxisAttr().getInt();
  if (axis < 0 || axis >= type.getRank())
    return emitOpError() << "expected 'axis' between 0 and " << type.getRank() - 1 << ", but got " << axis;
  if (!getLower() && !getUpper() && !getLeast() && !getEnd())
    return emitOpError("expected a bound, but got none");
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 1;
  for (auto [bound, shift] : {std::pair(getLower(), getLowerShift()), {getUpper(), getUpperShift()}}) {
    if (!bound != !shift)
      return emitOpError("expected a shift with each bound of rows");
    auto rows = bound ? cast<RankedTensorType>(bound.getType()) : RankedTensorType();
    if (rows && (rows.getShape() != ArrayRef(shape) || !rows.getElementType().isInteger(32)))
      return emitOpError() << "expected bounds of elements of i32, and of the result's shape with 1 along axis " << axis
                           << ", but got " << rows;
  }
  if (LayoutAttr layout = layoutAttrOf(type); layout && !runsAlong(layout.getLayout(), axis))
    return emitOpError() << "expected a layout whose registers walk along axis " << axis
                         << " in runs at equal distances, but got " << layout;
  return success();
}

LogicalResult ExtremeOp::verify() {
  if (Type element = elementTypeOf(getNumbers().getType()); !element.isInteger(32))
    return emitOpError() << "expected elements of i32, but got " << element;
  return success();
}

LogicalResult AnyOp::verify() {
  if (Type element = elementTypeOf(getTruths().getType()); !element.isInteger(1))
    return emitOpError() << "expected elements of i1, but got " << element;
  return success();
}

LogicalResult DeallocOp::verify() {
  if (!getShared().getDefiningOp<AllocOp>())
    return emitOpError("expected what a 'warp.alloc' gives, but got another value");
  return success();
}

LogicalResult StoreSharedOp::verify() {
  return verifyTile(*this, getValue().getType(), elementTypeOf(getValue().getType()), getShared().getType());
}

LogicalResult AsyncCopyOp::verify() {
  if (failed(verifyNoMargin(*this, getShared().getType())))
    return failure();
  Type pointers = getPtr().getType();
  if (failed(verifyTile(*this, pointers, weft::tile::pointeeTypeOf(pointers), getShared().getType())))
    return failure();
  if (getMask() && (shapeOf(getMask().getType()) != shapeOf(pointers) ||
                    layoutAttrOf(getMask().getType()) != layoutAttrOf(pointers)))
    return emitOpError() << "expected a mask in the shape and layout of the pointers, " << pointers << ", but got "
                         << getMask().getType();
  int64_t bytes = getContiguityAttr().getInt() * getShared().getType().getElementType().getIntOrFloatBitWidth() / 8;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return emitOpError() << "expected pieces of 4, 8 or 16 bytes, but got " << bytes;
  return success();
}

namespace {
/// A splat is made in the layout that is wanted.
struct ConvertSplat : OpRewritePattern<ConvertLayoutOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvertLayoutOp op, PatternRewriter &rewriter) const override {
    auto inner = op.getSource().getDefiningOp<weft::tile::SplatOp>();
    if (!inner)
      return rewriter.notifyMatchFailure(op, "the source is no splat");
    rewriter.replaceOpWithNewOp<weft::tile::SplatOp>(op, op.getResult().getType(), inner.getSource());
    return success();
  }
};
} // namespace

void ConvertLayoutOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<ConvertSplat>(context);
}
