// Part of Weft. SPDX-License-Identifier: Apache-2.0
//
//   %a = arith.extf %x : bf16 to f32
//   %b = arith.extf %y : bf16 to f32
//   tile.dot %a, (tile.permute %b)     ─▶     tile.dot %x, (tile.permute %y)
#include "compiler/Conversion/TileToWarp/Products/WidenedProducts.h"

#include "compiler/Conversion/TileToWarp/LayoutCost.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {
namespace {

/// Whether an op takes elements as they are to other places, or changes signs alone.
bool keepsBits(Operation *op) {
  return isa<tile::PermuteOp, tile::ReshapeOp, tile::BroadcastOp, tile::ExpandDimsOp, tile::SplatOp, arith::NegFOp,
             math::AbsFOp>(op);
}

/// The numbers of a constant, if `element` holds them.
std::optional<APFloat> constantOf(Value value, FloatType element) {
  APFloat number(0.0f);
  bool isCut = false;
  if (!matchPattern(value, m_ConstantFloat(&number)))
    return std::nullopt;
  number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isCut);
  return isCut ? std::nullopt : std::optional(number);
}

/// Whether a value of f32 was widened from 16-bit floats, from one of which `element` becomes their type; null stands for
/// any. False where it was not, or from others.
bool isWidened(Value value, FloatType &element) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto widened = dyn_cast<arith::ExtFOp>(op)) {
    auto from = cast<FloatType>(tile::elementTypeOf(widened.getIn().getType()));
    if (from.getWidth() != 16)
      return from.getWidth() == 8; // f16 and bf16 hold those of both kinds
    if (!element)
      element = from;
    return element == from;
  }
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return tile::elementTypeOf(op->getOperand(0).getType()).getIntOrFloatBitWidth() <= 8;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isWidened(select.getTrueValue(), element) && isWidened(select.getFalseValue(), element);
  if (op->hasTrait<OpTrait::ConstantLike>())
    return true; // asked again once the element is known
  return keepsBits(op) && isWidened(op->getOperand(0), element);
}

/// Makes values of 16 bits of those that were widened from them, each once.
class Narrower {
public:
  /// The same numbers as `element`; null where that does not hold a constant.
  Value of(Value value, FloatType element) {
    auto [found, isNew] = known.try_emplace({value, element});
    if (!isNew)
      return found->second;
    Value made = make(value, element);
    return known[{value, element}] = made;
  }

private:
  Value make(Value value, FloatType element) {
    Operation *op = value.getDefiningOp();
    Type type = tile::withElementType(value.getType(), element);
    OpBuilder b(op->getContext());
    b.setInsertionPointAfter(op);
    if (op->hasTrait<OpTrait::ConstantLike>()) {
      std::optional<APFloat> number = constantOf(value, element);
      if (!number)
        return {};
      auto attribute = FloatAttr::get(element, *number);
      auto shaped = dyn_cast<ShapedType>(type);
      return arith::ConstantOp::create(
          b, op->getLoc(), shaped ? TypedAttr(DenseElementsAttr::get(shaped, Attribute(attribute))) : attribute);
    }
    if (auto widened = dyn_cast<arith::ExtFOp>(op); widened && widened.getIn().getType() == type)
      return widened.getIn();
    IRMapping mapping;
    for (Value operand : op->getOperands())
      if (tile::elementTypeOf(operand.getType()).isF32()) {
        Value narrow = of(operand, element);
        if (!narrow)
          return {};
        mapping.map(operand, narrow);
      }
    Operation *copy = b.clone(*op, mapping);
    copy->getResult(0).setType(type);
    return copy->getResult(0);
  }

  llvm::DenseMap<std::pair<Value, Type>, Value> known;
};

} // namespace

void narrowWidenedProducts(func::FuncOp function) {
  Narrower narrower;
  bool isChanged = false;
  function.walk([&](tile::DotOp dot) {
    FloatType element;
    if (!tile::elementTypeOf(dot.getA().getType()).isF32() || dot.getPrecision() == tile::Precision::IEEE ||
        !isWidened(dot.getA(), element) || !isWidened(dot.getB(), element) || !element)
      return;
    Value a = narrower.of(dot.getA(), element), b = narrower.of(dot.getB(), element);
    if (!a || !b)
      return;
    dot.getAMutable().assign(a);
    dot.getBMutable().assign(b);
    dot.setPrecision(tile::Precision::TF32);
    isChanged = true;
  });
  if (isChanged)
    warp::eraseDeadOps(function);
}

void turnBeforeWidening(func::FuncOp function) {
  function.walk([](tile::PermuteOp permute) {
    Operation *widening = wideningOf(permute.getSource());
    if (!widening || !widening->hasOneUse() || !llvm::all_of(permute->getUsers(), llvm::IsaPred<tile::DotOp>))
      return;
    Value narrow = widening->getOperand(0);
    Type element = tile::elementTypeOf(narrow.getType());
    if (element.getIntOrFloatBitWidth() != 8)
      return;
    OpBuilder b(permute);
    Value turned = tile::PermuteOp::create(b, permute.getLoc(), tile::withElementType(permute.getType(), element),
                                           narrow, permute.getOrder());
    Operation *again = b.clone(*widening);
    again->setOperand(0, turned);
    again->getResult(0).setType(permute.getType());
    permute.replaceAllUsesWith(again->getResult(0));
    permute->erase();
    widening->erase();
  });
}

} // namespace weft
