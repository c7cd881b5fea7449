// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/Float8Products.h"

#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/DotSums.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {
namespace {

bool isFloat8(Type type) { return isa<Float8E4M3FNType, Float8E5M2Type>(tile::elementTypeOf(type)); }

bool isOfFloat8(Operation *op) {
  auto dot = dyn_cast<tile::DotOp>(op);
  return dot && isFloat8(dot.getA().getType());
}

/// The conversion by which an operand of 16 bits, or what it is transposed from, became so from an 8-bit float; or null.
arith::ExtFOp widenedFrom(Value operand) {
  if (auto permute = operand.getDefiningOp<tile::PermuteOp>())
    operand = permute.getSource();
  auto widened = operand.getDefiningOp<arith::ExtFOp>();
  bool isOf16 = tile::elementTypeOf(operand.getType()).getIntOrFloatBitWidth() == 16;
  return widened && isOf16 && isFloat8(widened.getIn().getType()) ? widened : arith::ExtFOp();
}

/// Whether an instruction of single warps multiplies what `dot` does, of operands of `element`.
bool isOfWarp(tile::DotOp dot, Type element, const TargetInfo &target) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  Type sums = tile::elementTypeOf(dot.getType());
  auto instruction = target.mmaFor(element, sums, a.getDimSize(0), a.getDimSize(1));
  return instruction && a.getDimSize(1) % instruction->shape[2] == 0;
}

/// The products of 8-bit floats that no instruction takes. Where warpgroups have some, those that no widening of others
/// changes come first, alone: their neighbours may be taken once they are widened.
SmallVector<WgmmaRefusal> refusedOf(func::FuncOp function, const AxisAnalysis &axes, const TargetInfo &target,
                                    int warps) {
  SmallVector<WgmmaRefusal> refused;
  if (target.warpgroups.families.size() == 0) {
    function.walk([&](tile::DotOp dot) {
      if (isOfFloat8(dot) && !isOfWarp(dot, tile::elementTypeOf(dot.getA().getType()), target))
        refused.push_back({dot, "", /*isOwn=*/true});
    });
    return refused;
  }
  refused = planWgmma(function, chainedProducts(function), axes, target, warps).refused;
  llvm::erase_if(refused, [](const WgmmaRefusal &each) { return !isOfFloat8(each.dot); });
  if (llvm::any_of(refused, [](const WgmmaRefusal &each) { return each.isOwn; }))
    llvm::erase_if(refused, [](const WgmmaRefusal &each) { return !each.isOwn; });
  return refused;
}

/// Has products take operands that were widened from 8-bit floats as they were: every product is exact, and the sums of
/// this target's instructions for them are as those for wider operands.
void takeNarrow(tile::DotOp dot, const TargetInfo &target) {
  auto a = widenedFrom(dot.getA()), b = widenedFrom(dot.getB());
  if (!a || !b || dot.getBatch() > 1 || !tile::elementTypeOf(dot.getType()).isF32())
    return;
  Type element = tile::elementTypeOf(a.getIn().getType());
  if (element != tile::elementTypeOf(b.getIn().getType()) || !isOfWarp(dot, element, target))
    return;
  OpBuilder builder(dot);
  for (unsigned index : {0, 1}) {
    arith::ExtFOp widened = index ? b : a;
    Value narrow = widened.getIn();
    if (auto permute = dot->getOperand(index).getDefiningOp<tile::PermuteOp>())
      narrow = tile::PermuteOp::create(builder, permute.getLoc(), tile::withElementType(permute.getType(), element),
                                       narrow, permute.getOrder());
    Operation *wide = dot->getOperand(index).getDefiningOp();
    dot->setOperand(index, narrow);
    if (wide != widened && wide->use_empty())
      wide->erase();
  }
  if (a != b && a->use_empty())
    a->erase();
  if (b->use_empty())
    b->erase();
}

/// Makes operands f16, each value once.
class Widener {
public:
  void widen(Operation *dot) {
    for (unsigned index : {0, 1})
      dot->setOperand(index, halvesOf(dot->getOperand(index)));
    dot->removeAttr(tile::impreciseSumsAttrName);
  }

private:
  Value halvesOf(Value value) {
    Value &half = known[value];
    if (!half) {
      OpBuilder b(value.getContext());
      b.setInsertionPointAfterValue(value);
      half = arith::ExtFOp::create(b, value.getLoc(), tile::withElementType(value.getType(), b.getF16Type()), value);
    }
    return half;
  }

  llvm::DenseMap<Value, Value> known;
};

/// a · b + c as (a · b + 0) + c, the last sum of f32. One of f16 has no more bits than the instruction's.
void promote(tile::DotOp dot) {
  Value before = dot.getAcc();
  if (matchPattern(before, m_AnyZeroFloat()) || tile::elementTypeOf(before.getType()).isF16())
    return;
  OpBuilder b(dot);
  auto zero = arith::ConstantOp::create(b, dot.getLoc(), b.getZeroAttr(before.getType()));
  dot.getAccMutable().assign(zero);
  b.setInsertionPointAfter(dot);
  auto sum = arith::AddFOp::create(b, dot.getLoc(), before, dot.getResult());
  dot.getResult().replaceAllUsesExcept(sum, sum);
}

} // namespace

void settleFloat8Products(func::FuncOp function, const TargetInfo &target, int warps) {
  if (target.wholeFloat8Sums)
    function.walk([&](tile::DotOp dot) { takeNarrow(dot, target); });
  if (!function.walk([](tile::DotOp dot) { return isOfFloat8(dot) ? WalkResult::interrupt() : WalkResult::advance(); })
           .wasInterrupted())
    return;
  AxisAnalysis axes(function); // of addresses, which no widening changes
  Widener widener;
  for (;;) {
    SmallVector<WgmmaRefusal> refused = refusedOf(function, axes, target, warps);
    if (refused.empty())
      break;
    for (const WgmmaRefusal &refusal : refused) {
      if (!refusal.hindrance.empty())
        remarks::missed(remarks::warpgroupProducts, refusal.dot)
            << remark::reason("operands of {0} are converted to f16: {1}",
                              tile::elementTypeOf(refusal.dot->getOperand(0).getType()), refusal.hindrance);
      widener.widen(refusal.dot);
    }
  }
  function.walk([&](tile::DotOp dot) {
    if (isOfFloat8(dot) && !dot->removeAttr(tile::impreciseSumsAttrName) && !target.wholeFloat8Sums)
      promote(dot);
  });
}

} // namespace weft
