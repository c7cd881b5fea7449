// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-fold-exp-scale: the machine has 2^x, so e^x costs a product. Where its argument is a product with a constant or
// with one scalar already, that product takes the factor along:
//
//   %y = arith.mulf %x, %c                              %c2 = c · log2 e
//   %p = math.exp %y                        -->         %y2 = arith.mulf %x, %c2
//                                                       %p = math.exp2 %y2
//
// e^(x - y) is left alone: (x - y) · log2 e is exact in x - y near the maximum, x · log2 e - y · log2 e is not.

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft::warp {
#define GEN_PASS_DEF_WARPFOLDEXPSCALE
#include "dialects/Warp/Transforms/Passes.h.inc"

namespace {

constexpr double log2OfE = 1.4426950408889634;

/// `factor` times log2 e, if it is a constant or a scalar in every element; else null. Created before `builder`'s
/// position.
Value scaledFactor(Value factor, OpBuilder &b) {
  Location loc = factor.getLoc();
  if (auto constant = factor.getDefiningOp<arith::ConstantOp>()) {
    auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!elements && isa<ShapedType>(factor.getType()))
      return {};
    double number = (elements ? elements.getSplatValue<APFloat>() : cast<FloatAttr>(constant.getValue()).getValue())
                        .convertToDouble();
    auto scaled = b.getF32FloatAttr(static_cast<float>(number * log2OfE));
    if (elements)
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(cast<ShapedType>(factor.getType()), Attribute(scaled)));
    return arith::ConstantOp::create(b, loc, scaled);
  }
  if (auto splat = factor.getDefiningOp<tile::SplatOp>()) {
    b.setInsertionPoint(splat); // where a splat is hoisted, so is the product
    Value scale = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(static_cast<float>(log2OfE)));
    Value product = arith::MulFOp::create(b, loc, splat.getSource(), scale);
    return tile::SplatOp::create(b, loc, splat.getType(), product);
  }
  return {};
}

/// Rewrites `op` if its argument is a product that can take the factor; whether it did.
bool fold(math::ExpOp op) {
  auto product = op.getOperand().getDefiningOp<arith::MulFOp>();
  if (!product || !getElementTypeOrSelf(op.getType()).isF32())
    return false;
  for (bool swapped : {false, true}) {
    OpBuilder b(op);
    Value other = swapped ? product.getRhs() : product.getLhs();
    Value factor = scaledFactor(swapped ? product.getLhs() : product.getRhs(), b);
    if (!factor)
      continue;
    b.setInsertionPoint(op);
    Value argument = arith::MulFOp::create(b, product.getLoc(), other, factor, product.getFastmath());
    op.replaceAllUsesWith(math::Exp2Op::create(b, op.getLoc(), argument, op.getFastmath()).getResult());
    op.erase();
    if (product->use_empty())
      product.erase();
    return true;
  }
  return false;
}

struct FoldExpScale : weft::warp::impl::WarpFoldExpScaleBase<FoldExpScale> {
  void runOnOperation() override {
    getOperation().walk([](math::ExpOp op) { fold(op); });
  }
};

} // namespace
} // namespace weft::warp
