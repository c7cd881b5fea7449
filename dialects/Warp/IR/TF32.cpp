// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/IR/TF32.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

bool weft::warp::isTF32(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<arith::ExtFOp, RoundTF32Op>(op))
    return true;
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op))
    return getElementTypeOrSelf(op->getOperand(0)).getIntOrFloatBitWidth() <= 8;
  if (SplatElementsAttr numbers; matchPattern(op, m_Constant(&numbers)))
    return numbers.getSplatValue<APFloat>().bitcastToAPInt().countr_zero() >= bitsBeyondTF32;
  if (auto bits = dyn_cast<arith::BitcastOp>(op)) {
    auto cut = bits.getIn().getDefiningOp<arith::AndIOp>();
    APInt kept;
    return cut && matchPattern(cut.getRhs(), m_ConstantInt(&kept)) && kept.countr_zero() >= bitsBeyondTF32;
  }
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isTF32(select.getTrueValue()) && isTF32(select.getFalseValue());
  return isa<arith::NegFOp, math::AbsFOp, ConvertLayoutOp, tile::ReshapeOp, tile::PermuteOp, tile::BroadcastOp,
             tile::ExpandDimsOp>(op) &&
         isTF32(op->getOperand(0));
}
