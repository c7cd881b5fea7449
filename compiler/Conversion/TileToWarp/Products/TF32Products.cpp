// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/TF32Products.h"

#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/TF32.h"
#include "dialects/Warp/IR/WarpOps.h"

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

} // namespace weft
