// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Tile/Transforms/Sums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using llvm::APInt;

namespace weft::tile {

void Sum::add(Value value, const APInt &factor) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant))) {
    number += factor * constant;
    return;
  }
  Operation *op = value.getDefiningOp();
  constexpr unsigned enough = 256;
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op) && looked++ < enough) {
    add(op->getOperand(0), factor);
    add(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor);
    return;
  }
  if (isa_and_nonnull<arith::MulIOp>(op) && matchPattern(op->getOperand(1), m_ConstantInt(&constant)))
    return add(op->getOperand(0), factor * constant);
  auto [term, isNew] = terms.try_emplace(value, factor);
  if (!isNew)
    term->second += factor;
}

} // namespace weft::tile
