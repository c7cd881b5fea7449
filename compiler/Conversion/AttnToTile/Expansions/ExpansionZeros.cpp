// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an expansion's values are where tokens, or heads of a piece, do not exist. A tile's last tokens may be past the
// end; sources are read as zeros there, and what adds up tokens must not see what is made of them. Adjoints are linear
// in the gradient: they stay zero, and then it is enough that what they are multiplied by is a number.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"

using namespace mlir;

namespace weft {

attn::Padding paddingOf(const Expansion &expansion, Value value, int64_t axis) {
  Operation *op = value.getDefiningOp();
  if (!expansion.has(op))
    return attn::Padding::Zero;
  auto padded = dyn_cast<attn::PaddingOpInterface>(op);
  if (!padded)
    return attn::Padding::Unknown;
  // Sources come first. No op's padding depends on what weights, which follow, hold past the end.
  SmallVector<attn::Padding> operands(op->getNumOperands(), attn::Padding::Unknown);
  for (auto [padding, source] : llvm::zip(operands, sourcesOf(op)))
    padding = paddingOf(expansion, source, axis);
  return padded.paddingOf(cast<OpResult>(value).getResultNumber(), axis, operands);
}

} // namespace weft
