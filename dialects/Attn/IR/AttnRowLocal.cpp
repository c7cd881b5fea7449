// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which ops are computed at a tile of rows, and what they take of their operands (RowLocalOpInterface).
#include "dialects/Attn/IR/AttnOps.h"

using namespace mlir;
using namespace weft::attn;

bool MapOp::readsByRow(unsigned) { return true; }

// Over channels alone: the result is [B, H, N, 1] or [B, H, N]. (Without a batch of 1, [H, N, 1] is neither.)
bool SumOp::isRowLocal() {
  auto from = cast<WholeTensorType>(getSource().getType()), result = cast<WholeTensorType>(getType());
  WholeTensorType to = resultAtSourceRank();
  bool rows = result.getRank() == 4 || (result.getRank() == 3 && getAway() == ArrayRef<int64_t>{3});
  return rows && from.getRank() == 4 && from.staticDim(3) && to.dim(3) == "1" &&
         from.getDims().take_front(3) == to.getDims().take_front(3);
}

bool ConvolveOp::readsOtherRows() { return true; }

bool ShiftOp::readsOtherRows() { return true; }

// Units lie anywhere.
bool SpreadOp::readsByRow(unsigned) { return false; }
bool SpreadOp::readsOtherRows() { return true; }
