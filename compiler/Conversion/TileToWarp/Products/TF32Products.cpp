// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/TF32Products.h"

#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/TF32.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace weft {
void roundTF32Products(func::FuncOp function, const TargetInfo &target, int warps) {
  SmallVector<tile::DotOp> products;
  function.walk([&](tile::DotOp dot) {
    if (tile::elementTypeOf(dot.getA().getType()).isF32())
      products.push_back(dot);
  });
  if (products.empty() || target.warpgroups.families.size() == 0)
    return;
  WgmmaPlans plans = planWgmma(function, chainedProducts(function), AxisAnalysis(function), target, warps);
  llvm::DenseMap<Value, Value> known;
  for (tile::DotOp dot : products) {
    if (!plans.taken.contains(dot))
      continue;
    for (unsigned index : {0, 1}) {
      OpOperand &operand = dot->getOpOperand(index);
      Value root = rootOf(operand.get());
      if (warp::isTF32(root))
        continue;
      Value &even = known[root];
      if (!even) {
        OpBuilder b(dot.getContext());
        b.setInsertionPointAfterValue(root);
        even = warp::RoundTF32Op::create(b, root.getLoc(), root);
      }
      // Both ways of one tile have one rounding, and transpositions of it are for this product alone.
      Value value = even;
      SmallVector<tile::PermuteOp> permutes;
      for (Value each = operand.get(); each != root; each = permutes.back().getSource())
        permutes.push_back(each.getDefiningOp<tile::PermuteOp>());
      OpBuilder b(dot);
      for (tile::PermuteOp permute : llvm::reverse(permutes))
        value = tile::PermuteOp::create(b, permute.getLoc(), permute.getType(), value, permute.getOrder());
      operand.set(value);
    }
  }
}

namespace {

/// What an operand of a product of single warps is a copy of: in another layout, or transposed.
Value sourceOf(Value operand) {
  while (Operation *op = operand.getDefiningOp())
    if (isa<warp::ConvertLayoutOp, tile::PermuteOp, tile::ReshapeOp>(op))
      operand = op->getOperand(0);
    else
      break;
  return operand;
}

/// The registers of a thread that hold different elements.
int64_t registersOf(Value value) {
  auto encoding = cast<warp::LayoutAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
  const warp::LinearLayout &layout = encoding.getLayout();
  return layout.size(warp::InDim::Register) >> llvm::popcount(layout.freeBits()[warp::InDim::Register]);
}

/// The same copy of another source.
Value copyOf(Value operand, Value source, Value other) {
  if (operand == source)
    return other;
  Operation *op = operand.getDefiningOp();
  OpBuilder b(op);
  Operation *copy = b.clone(*op);
  copy->setOperand(0, copyOf(op->getOperand(0), source, other));
  return copy->getResult(0);
}

} // namespace

void roundOperandsOnce(func::FuncOp function) {
  // ptxas makes three instructions of a rounding, and two where a matrix instruction alone reads it.
  constexpr int64_t apart = 3, beside = 2;
  llvm::MapVector<Value, SmallVector<OpOperand *>> products;
  function.walk([&](warp::MmaOp mma) {
    if (mma.getPrecision() != tile::Precision::TF32 || !tile::elementTypeOf(mma.getA().getType()).isF32())
      return;
    for (OpOperand &operand : mma->getOpOperands().take_front(2)) {
      Value source = sourceOf(operand.get());
      Operation *op = source.getDefiningOp();
      if (op && !isa<tile::LoadOp>(op) && !warp::isTF32(source))
        products[source].push_back(&operand);
    }
  });
  for (auto &[source, operands] : products) {
    int64_t rounded = 0;
    for (OpOperand *operand : operands)
      rounded += registersOf(operand->get());
    if (rounded * beside <= registersOf(source) * apart)
      continue;
    OpBuilder b(function.getContext());
    b.setInsertionPointAfterValue(source);
    Value even = warp::RoundTF32Op::create(b, source.getLoc(), source);
    for (OpOperand *operand : operands)
      operand->set(copyOf(operand->get(), source, even));
  }
}

} // namespace weft
