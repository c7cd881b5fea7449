// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers and canonical forms of the ops in AttnHeadOps.td.
#include "dialects/Attn/IR/AttnChecks.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft::attn;

/// Elements that a product can be of: floats, and not f16 with bf16.
static LogicalResult checkFactors(Operation *op, ValueRange factors, Value result) {
  bool half = false, brain = false;
  for (Value value : factors) {
    Type element = tensorTypeOf(value).getElementType();
    if (!isa<FloatType>(element))
      return op->emitOpError() << "expected elements of floats, but got " << value.getType();
    half |= element.isF16();
    brain |= element.isBF16();
  }
  if (!isa<FloatType>(tensorTypeOf(result).getElementType()))
    return op->emitOpError() << "expected a result of floats, but got " << result.getType();
  if (half && brain)
    return op->emitOpError() << "expected operands of one width to be of one type, but got f16 and bf16";
  return success();
}

/// A static bias of `size`, and none where the op is transposed.
static LogicalResult checkBias(Operation *op, Value bias, bool transposed, StringRef size) {
  if (!bias)
    return success();
  if (transposed)
    return op->emitOpError() << "expected no bias of a transposed product";
  if (!isa<FloatType>(tensorTypeOf(bias).getElementType()))
    return op->emitOpError() << "expected a bias of floats, but got " << bias.getType();
  return checkSizes(op, "a bias", tensorTypeOf(bias), {size});
}

static bool isStatic(WholeTensorType type) {
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (!type.staticDim(axis))
      return false;
  return true;
}

/// `from` [B, H, N, D] and `to` [B, Ho, N, D] fit a weight [Ho, H, K].
static LogicalResult checkHeadConv(Operation *op, WholeTensorType from, WholeTensorType to, WholeTensorType weight) {
  if (weight.getRank() != 3 || !isStatic(weight) || *weight.staticDim(2) % 2 == 0)
    return op->emitOpError() << "expected a weight [Ho, H, K] of integers with odd K, but got " << weight;
  if (failed(checkRank(op, "a source", from, 4)))
    return failure();
  if (!from.staticDim(3))
    return op->emitOpError() << "expected a static number of channels, but got " << from;
  if (failed(checkSizes(op, "a source", from, {from.dim(0), weight.dim(1), from.dim(2), from.dim(3)})))
    return failure();
  return checkSizes(op, "a result", to, {from.dim(0), weight.dim(0), from.dim(2), from.dim(3)});
}

LogicalResult HeadConvOp::verify() {
  WholeTensorType from = tensorTypeOf(getSource()), to = tensorTypeOf(getResult()), weight = tensorTypeOf(getWeight());
  if (failed(checkFactors(*this, {getSource(), getWeight()}, getResult())))
    return failure();
  if (!getTransposed())
    return failed(checkHeadConv(*this, from, to, weight)) ? failure()
                                                          : checkBias(*this, getBias(), false, weight.dim(0));
  if (weight.getRank() == 3)
    weight =
        WholeTensorType::get({weight.getDims()[1], weight.getDims()[0], weight.getDims()[2]}, weight.getElementType());
  return failed(checkHeadConv(*this, from, to, weight)) ? failure() : checkBias(*this, getBias(), true, "");
}

LogicalResult HeadConvWeightGradOp::verify() {
  if (failed(checkFactors(*this, {getSource(), getGradient()}, getResult())))
    return failure();
  WholeTensorType weight = tensorTypeOf(getResult());
  if (failed(checkHeadConv(*this, tensorTypeOf(getSource()), tensorTypeOf(getGradient()), weight)))
    return failure();
  return checkBias(*this, getBias(), false, weight.dim(0));
}

/// `x` [B, G·H, N, D] and `y` [B, G, N, E] or [B, N, E] fit a weight [E, H·D]; messages call them so.
static LogicalResult checkConcatenated(Operation *op, WholeTensorType x, WholeTensorType y, WholeTensorType weight,
                                       StringRef xName, StringRef yName) {
  if (failed(checkRank(op, xName, x, 4)))
    return failure();
  std::optional<int64_t> heads = x.staticDim(1), channels = x.staticDim(3);
  int64_t row = *weight.staticDim(1);
  if (!heads || !channels || *channels < 1 || row < 1 || row % *channels || *heads * *channels % row)
    return op->emitOpError() << "expected " << xName << " [B, G*H, N, D] of which H heads have " << row
                             << " channels, but got " << x;
  std::string groups = std::to_string(*heads * *channels / row);
  if (y.getRank() == 3 && groups == "1")
    return checkSizes(op, yName, y, {x.dim(0), x.dim(2), weight.dim(0)});
  return checkSizes(op, yName, y, {x.dim(0), groups, x.dim(2), weight.dim(0)});
}

/// `x` [..., D] and `y` [..., E] fit a weight [E, D].
static LogicalResult checkLinear(Operation *op, WholeTensorType x, WholeTensorType y, WholeTensorType weight,
                                 StringRef xName, StringRef yName, bool concatenated) {
  if (weight.getRank() != 2 || !isStatic(weight))
    return op->emitOpError() << "expected a weight [E, D] of integers, but got " << weight;
  if (concatenated)
    return checkConcatenated(op, x, y, weight, xName, yName);
  if (x.getRank() < 1)
    return op->emitOpError() << "expected " << xName << " of rank 1 or more, but got " << x;
  SmallVector<StringRef> sizes = llvm::map_to_vector(x.getDims(), [](StringAttr size) { return size.getValue(); });
  sizes.back() = weight.dim(1);
  if (failed(checkSizes(op, xName, x, sizes)))
    return failure();
  sizes.back() = weight.dim(0);
  return checkSizes(op, yName, y, sizes);
}

LogicalResult LinearOp::verify() {
  if (failed(checkFactors(*this, {getSource(), getWeight()}, getResult())))
    return failure();
  WholeTensorType from = tensorTypeOf(getSource()), to = tensorTypeOf(getResult()), weight = tensorTypeOf(getWeight());
  LogicalResult fits = getTransposed()
                           ? checkLinear(*this, to, from, weight, "a result", "a source", getConcatenated())
                           : checkLinear(*this, from, to, weight, "a source", "a result", getConcatenated());
  return failed(fits) ? failure() : checkBias(*this, getBias(), getTransposed(), weight.dim(0));
}

LogicalResult LinearWeightGradOp::verify() {
  if (failed(checkFactors(*this, {getSource(), getGradient()}, getResult())))
    return failure();
  WholeTensorType weight = tensorTypeOf(getResult());
  if (failed(checkLinear(*this, tensorTypeOf(getSource()), tensorTypeOf(getGradient()), weight, "a source",
                         "a gradient", getConcatenated())))
    return failure();
  return checkBias(*this, getBias(), false, weight.dim(0));
}

LogicalResult MeanHeadsOp::verify() {
  WholeTensorType from = tensorTypeOf(getSource()), to = tensorTypeOf(getResult());
  if (failed(checkRank(*this, "a source", from, 4)))
    return failure();
  bool dropped = to.getRank() == 3;
  std::optional<int64_t> many = from.staticDim(1), few = dropped             ? 1
                                                         : to.getRank() == 4 ? to.staticDim(1)
                                                                             : std::nullopt;
  if (!many || !few || *few < 1 || *many % *few)
    return emitOpError() << "expected a result whose heads divide the source's, but got " << to << " of " << from;
  if (dropped)
    return checkSizes(*this, "a result", to, {from.dim(0), from.dim(2), from.dim(3)});
  return checkSizes(*this, "a result", to, {from.dim(0), to.dim(1), from.dim(2), from.dim(3)});
}

namespace {
/// mean over groups of (groups' heads side by side) Wᵀ + b  =>  (mean over groups, heads side by side) Wᵀ + b
struct MeanBeforeLinear : OpRewritePattern<MeanHeadsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MeanHeadsOp op, PatternRewriter &rewriter) const override {
    auto linear = op.getSource().getDefiningOp<LinearOp>();
    if (!linear || !linear.getConcatenated() || linear.getTransposed() || !linear->hasOneUse())
      return rewriter.notifyMatchFailure(op, "not of a linear map of concatenated heads that nothing else reads");
    WholeTensorType heads = tensorTypeOf(linear.getSource()), groups = tensorTypeOf(op.getSource());
    auto result = cast<WholeTensorType>(op.getType());
    if (result.getRank() == 4 && result.dim(1) != "1")
      return rewriter.notifyMatchFailure(op, "the mean is not of all groups");
    int64_t few = *heads.staticDim(1) / *groups.staticDim(1);
    Value mean = MeanHeadsOp::create(rewriter, op.getLoc(), heads.withDim(1, std::to_string(few)), linear.getSource());
    rewriter.replaceOpWithNewOp<LinearOp>(op, result, mean, linear.getWeight(), linear.getBias(),
                                          /*transposed=*/false, /*concatenated=*/true);
    return success();
  }
};

/// The mean of one group is the group.
struct MeanOfOne : OpRewritePattern<MeanHeadsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MeanHeadsOp op, PatternRewriter &rewriter) const override {
    if (op.getSource().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "of more than one group, or rounded");
    rewriter.replaceOp(op, op.getSource());
    return success();
  }
};
} // namespace

void MeanHeadsOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<MeanBeforeLinear, MeanOfOne>(context);
}

// --- padding ---

// Weights and bias are 0 for heads past the last.
Padding HeadConvOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  if (axis == 1)
    return Padding::Zero;
  return axis == 2 ? weightedWithBias(operands[0], static_cast<bool>(getBias())) : Padding::Unknown;
}

Padding LinearOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  int64_t last = cast<WholeTensorType>(getType()).getRank() - 1;
  bool alike = axis != last && !(getConcatenated() && axis != last - 1);
  return alike ? weightedWithBias(operands[0], static_cast<bool>(getBias())) : Padding::Unknown;
}

Padding MeanHeadsOp::paddingOf(unsigned, int64_t axis, ArrayRef<Padding> operands) {
  return axis == cast<WholeTensorType>(getType()).getRank() - 3 ? Padding::Unknown : weighted(operands[0]);
}

/// Tokens and their channels, of [B, H, N, D].
static SmallVector<StringAttr> signalsOf(Value value) {
  ArrayRef<StringAttr> dims = tensorTypeOf(value).getDims();
  return {dims[0], dims[2], dims[3]};
}

/// All axes but the last.
static SmallVector<StringAttr> rowsOf(Value value) {
  return llvm::to_vector(tensorTypeOf(value).getDims().drop_back());
}

Value HeadConvOp::weightOfProduct() { return getWeight(); }
SmallVector<StringAttr> HeadConvOp::axesOfProduct() { return signalsOf(getSource()); }
Value HeadConvWeightGradOp::weightOfProduct() { return getResult(); }
SmallVector<StringAttr> HeadConvWeightGradOp::axesOfProduct() { return signalsOf(getSource()); }
Value LinearOp::weightOfProduct() { return getWeight(); }
SmallVector<StringAttr> LinearOp::axesOfProduct() { return rowsOf(getTransposed() ? getSource() : getResult()); }
Value LinearWeightGradOp::weightOfProduct() { return getResult(); }
SmallVector<StringAttr> LinearWeightGradOp::axesOfProduct() { return rowsOf(getGradient()); }
